//! [`ToolService`]: a tool as everything around it sees it, and [`OfferedTool`], the service with
//! what must be known of it before it is called.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ai::{ArgumentValidator, ToolSpec};
use serde_json::{Map, Value};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Layer, Service, ServiceExt, service_fn};

use crate::effect::Effects;
use crate::outcome::{CancelGrace, OutcomeLayer};
use crate::tool::{ExecutionMode, Tool, ToolError, ToolOutput};
use crate::tool_call::ToolCall;
use crate::validate::ValidateLayer;

/// A tool behind whatever layers it has. A tool that fails is an `Ok` output marked as error.
pub type ToolService = BoxCloneSyncService<ToolCall, ToolOutput, ToolFault>;

/// A call that came to no output at all.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ToolFault {
    /// Whom it concerns.
    pub kind: ToolFaultKind,
    /// What happened.
    pub message: String,
}

/// Whom a fault concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolFaultKind {
    /// This call only: it becomes an error result and the run goes on.
    Call,
    /// The host, such as a log that cannot be written: the batch is closed and the run ends.
    Host,
}

impl ToolFault {
    /// A fault of this call only.
    pub fn call(message: impl Into<String>) -> Self {
        Self { kind: ToolFaultKind::Call, message: message.into() }
    }

    /// A fault of the host.
    pub fn host(message: impl Into<String>) -> Self {
        Self { kind: ToolFaultKind::Host, message: message.into() }
    }
}

/// What a foreign layer answers, such as tower's `Elapsed`, concerns its call only. A fault of ours
/// that went through such a layer keeps its kind.
impl From<BoxError> for ToolFault {
    fn from(error: BoxError) -> Self {
        match error.downcast::<Self>() {
            Ok(fault) => *fault,
            Err(other) => Self::call(other.to_string()),
        }
    }
}

/// A schema that is no JSON Schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the schema of tool {tool} is not usable: {message}")]
pub struct InvalidSchema {
    /// The tool's name.
    pub tool: String,
    /// What is wrong with it.
    pub message: String,
}

type Ask<T> = Arc<dyn Fn(&Map<String, Value>) -> T + Send + Sync>;

/// A tool that can be offered to a model: its specification, what can be asked of a call before it
/// is made, and the service that makes it. Cheap to clone.
#[derive(Clone)]
pub struct OfferedTool {
    spec: Arc<ToolSpec>,
    validator: Arc<ArgumentValidator>,
    execution_mode: Ask<ExecutionMode>,
    effects: Ask<Effects>,
    title: Ask<String>,
    service: ToolService,
}

impl OfferedTool {
    /// A tool with nothing around its body.
    ///
    /// # Errors
    /// When the argument type's schema cannot be compiled.
    pub fn new<T: Tool>(tool: T) -> Result<Self, InvalidSchema> {
        let schema = schemars::generate::SchemaSettings::draft2020_12()
            .with(|settings| {
                settings.meta_schema = None;
                settings.inline_subschemas = true;
            })
            .into_generator()
            .into_root_schema_for::<T::Arguments>();
        let mut input_schema = schema.to_value();
        plain(&mut input_schema);
        if let Some(object) = input_schema.as_object_mut() {
            // The tool's own description says what it is.
            object.remove("description");
        }
        let spec = ToolSpec {
            name: tool.name().to_owned(),
            description: tool.description().to_owned(),
            input_schema,
        };
        let validator = ArgumentValidator::new(&spec.input_schema).map_err(|error| {
            InvalidSchema { tool: spec.name.clone(), message: error.to_string() }
        })?;
        let validator = validator.with_other_names(tool.other_names());
        let tool = Arc::new(tool);
        Ok(Self {
            execution_mode: ask(&tool, T::execution_mode, |_| ExecutionMode::Exclusive),
            effects: ask(&tool, T::effects, |why| match why {
                // The body refuses them before it does anything.
                Unanswered::Unreadable => Effects::Declared(Vec::new()),
                Unanswered::Panicked => Effects::Undeclared,
            }),
            title: {
                let name = spec.name.clone();
                ask(&tool, T::title, move |_| name.clone())
            },
            spec: Arc::new(spec),
            validator: Arc::new(validator),
            service: ToolService::new(service_fn(move |call| run(Arc::clone(&tool), call))),
        })
    }

    /// The same tool inside one more layer, which becomes its outermost.
    #[must_use]
    pub fn layer<L>(self, layer: &L) -> Self
    where
        L: Layer<ToolService>,
        L::Service: Service<ToolCall, Response = ToolOutput> + Clone + Send + Sync + 'static,
        <L::Service as Service<ToolCall>>::Error: Into<BoxError>,
        <L::Service as Service<ToolCall>>::Future: Send + 'static,
    {
        let service = layer.layer(self.service).map_err(|error| ToolFault::from(error.into()));
        Self { service: ToolService::new(service), ..self }
    }

    /// The tool as the model sees it.
    pub fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    /// The check of arguments against the tool's schema.
    pub fn validator(&self) -> &Arc<ArgumentValidator> {
        &self.validator
    }

    /// Whether a call with these arguments may run beside others. Arguments that the tool cannot
    /// read are exclusive.
    pub fn execution_mode(&self, arguments: &Map<String, Value>) -> ExecutionMode {
        (self.execution_mode)(arguments)
    }

    /// What a call with these arguments will do. With arguments that the tool cannot read that is
    /// nothing: its body refuses them. A tool that panics over the question has not declared anything.
    pub fn effects(&self, arguments: &Map<String, Value>) -> Effects {
        (self.effects)(arguments)
    }

    /// A few words for a person.
    pub fn title(&self, arguments: &Map<String, Value>) -> String {
        (self.title)(arguments)
    }

    /// The service with its layers, without the outermost two that [`OfferedTool::call`] adds.
    pub fn service(&self) -> ToolService {
        self.service.clone()
    }

    /// Makes one call through the whole onion: the outcome layer and the first validation around
    /// the layers that this tool has.
    ///
    /// # Errors
    /// Only a fault of the host; everything else is an output.
    pub async fn call(&self, call: ToolCall) -> Result<ToolOutput, ToolFault> {
        self.call_with_grace(call, CancelGrace::default()).await
    }

    /// As [`OfferedTool::call`], with a grace of one's own.
    ///
    /// # Errors
    /// Only a fault of the host.
    pub async fn call_with_grace(
        &self,
        call: ToolCall,
        grace: CancelGrace,
    ) -> Result<ToolOutput, ToolFault> {
        let validated = ValidateLayer::model(Arc::clone(&self.validator)).layer(self.service());
        OutcomeLayer::new(grace).layer(validated).oneshot(call).await
    }
}

impl fmt::Debug for OfferedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfferedTool").field("name", &self.spec.name).finish_non_exhaustive()
    }
}

/// Leaves out of a derived schema what tells a model nothing: titles, Rust's number formats, and
/// `null` beside the type of an argument that may be left out anyway.
fn plain(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(plain),
        Value::Object(object) => {
            // An argument may be called by these names too; then its value is a schema, not a word.
            for word in ["title", "format"] {
                if object.get(word).is_some_and(Value::is_string) {
                    object.remove(word);
                }
            }
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".to_owned(), only);
                }
            }
            object.values_mut().for_each(plain);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Why a tool did not answer a question about its arguments.
#[derive(Clone, Copy, Debug)]
enum Unanswered {
    /// It cannot read them, although they fit its schema: a number may be too large for its type.
    Unreadable,
    Panicked,
}

/// Turns a question about typed arguments into one about JSON.
fn ask<T: Tool, R: 'static>(
    tool: &Arc<T>,
    question: fn(&T, &T::Arguments) -> R,
    otherwise: impl Fn(Unanswered) -> R + Send + Sync + 'static,
) -> Ask<R> {
    let tool = Arc::clone(tool);
    Arc::new(move |arguments| {
        // The tool's own code answers, outside the task that its body runs in.
        let answer = catch_unwind(AssertUnwindSafe(|| {
            decode::<T>(arguments).ok().map(|arguments| question(&tool, &arguments))
        }));
        match answer {
            Ok(Some(answer)) => answer,
            Ok(None) => otherwise(Unanswered::Unreadable),
            Err(_) => otherwise(Unanswered::Panicked),
        }
    })
}

fn decode<T: Tool>(arguments: &Map<String, Value>) -> Result<T::Arguments, serde_json::Error> {
    serde_json::from_value(Value::Object(arguments.clone()))
}

/// The innermost service: decodes the arguments where they enter the tool, once more.
async fn run<T: Tool>(tool: Arc<T>, call: ToolCall) -> Result<ToolOutput, ToolFault> {
    let arguments = match decode::<T>(&call.arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let kind = ai::ToolErrorKind::InvalidArguments;
            let message = format!("invalid arguments for {}: {error}", call.name);
            return Ok(ToolError::new(kind, message).into());
        }
    };
    Ok(tool.run(arguments, &call).await.unwrap_or_else(ToolOutput::from))
}
