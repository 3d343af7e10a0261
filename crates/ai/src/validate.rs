//! [`ArgumentValidator`]: a call's arguments against its tool's JSON Schema (SPEC M19).
//!
//! Compiled once for each tool; fetches nothing. Models write `"42"` where a number is wanted, or one
//! value where a list is: where the meaning is the same in either form, the arguments are corrected
//! and it is said. Nothing is guessed and nothing is added.
//!
//! Corrections follow the validator's own errors, so references, unions and nesting need no second
//! reading of the schema. Arguments that are valid are never touched.
//!
//! ```
//! use ai::ArgumentValidator;
//! use serde_json::json;
//!
//! let validator = ArgumentValidator::new(&json!({
//!     "type": "object",
//!     "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
//!     "required": ["path"],
//! }))?;
//! let mut arguments = json!({"path": "a.txt", "limit": "42"}).as_object().unwrap().clone();
//! let notes = validator.validate(&mut arguments).unwrap();
//! assert_eq!(arguments["limit"], 42);
//! assert_eq!(notes, [r#"`/limit`: string "42" was taken as integer 42"#]);
//! # Ok::<(), ai::InvalidSchema>(())
//! ```

use std::fmt;
use std::io;
use std::iter;
use std::mem;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError, Validator};
use serde_json::{Map, Number, Value};

/// One correction may uncover the need for another inside it; deeper chains are no slip of a model.
const MAX_PASSES: usize = 8;

/// A model mends a handful of mistakes at once; a list of hundreds would only fill its window.
const MAX_PROBLEMS: usize = 20;

/// Values are quoted to be recognised, not to be read.
const MAX_QUOTE_CHARS: usize = 120;

/// A constraint, such as a long list of permitted words, may be quoted at more length.
const MAX_EXPECTATION_CHARS: usize = 500;

/// `f64` holds every decimal number of so many digits; longer ones could change.
const EXACT_DECIMAL_DIGITS: usize = 15;

/// Checks arguments against one schema. See the module docs.
pub struct ArgumentValidator {
    validator: Validator,
    other_names: &'static [(&'static str, &'static str)],
}

/// A schema that is none, or that refers to something outside itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid schema at `{path}`: {reason}")]
pub struct InvalidSchema {
    /// Where, as a JSON pointer.
    pub path: String,
    /// What is wrong there.
    pub reason: String,
}

/// Arguments that do not fit their schema, in words that a model can act on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct InvalidArguments {
    /// What does not fit, in the order of the schema; at most 20.
    pub problems: Vec<ArgumentProblem>,
    /// How many more there were.
    pub omitted: usize,
}

/// One place where arguments do not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentProblem {
    /// Where, as a JSON pointer into the arguments; empty for the whole.
    pub path: String,
    /// What the schema wants there.
    pub expected: String,
    /// What is there.
    pub got: String,
}

impl fmt::Display for InvalidArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the arguments do not fit the tool's schema:")?;
        for ArgumentProblem { path, expected, got } in &self.problems {
            let path = if path.is_empty() { "/" } else { path };
            write!(f, "\n- `{path}`: expected {expected}, got {got}")?;
        }
        if self.omitted > 0 {
            write!(f, "\n- and {} more", self.omitted)?;
        }
        Ok(())
    }
}

impl ArgumentValidator {
    /// Compiles a schema. References to anything outside it are refused, not fetched.
    pub fn new(schema: &Value) -> Result<Self, InvalidSchema> {
        match jsonschema::options().offline().build(schema) {
            Ok(validator) => Ok(Self { validator, other_names: &[] }),
            Err(error) => Err(InvalidSchema {
                path: error.instance_path().to_string(),
                reason: shortened(&error.to_string(), MAX_EXPECTATION_CHARS),
            }),
        }
    }

    /// The same check, which also knows properties by the names that models bring from elsewhere:
    /// pairs of theirs and the schema's. Where a required property is missing and its other name is
    /// there, that is taken for it, and it is said.
    #[must_use]
    pub fn with_other_names(self, other_names: &'static [(&'static str, &'static str)]) -> Self {
        Self { other_names, ..self }
    }

    /// Checks `arguments` and corrects them where that loses nothing; returns what was corrected.
    /// On an error they are as they were.
    pub fn validate(
        &self,
        arguments: &mut Map<String, Value>,
    ) -> Result<Vec<String>, InvalidArguments> {
        let original = Value::Object(mem::take(arguments));
        let outcome = if self.validator.is_valid(&original) {
            Ok((original, Vec::new()))
        } else {
            match self.corrected(&original) {
                Some(corrected) => Ok(corrected),
                None => Err((self.problems(&original), original)),
            }
        };
        let (value, result) = match outcome {
            Ok((value, notes)) => (value, Ok(notes)),
            Err((error, value)) => (value, Err(error)),
        };
        if let Value::Object(fields) = value {
            *arguments = fields;
        }
        result
    }

    /// A valid version of `original`, if corrections alone lead to one.
    fn corrected(&self, original: &Value) -> Option<(Value, Vec<String>)> {
        let mut value = original.clone();
        let mut notes = Vec::new();
        for _ in 0..MAX_PASSES {
            let before = notes.len();
            let errors: Vec<ValidationError<'static>> =
                self.validator.iter_errors(&value).map(ValidationError::to_owned).collect();
            if errors.is_empty() {
                return Some((value, notes));
            }
            for error in &errors {
                self.correct(&mut value, error, &mut notes);
            }
            if notes.len() == before {
                return None;
            }
        }
        self.validator.is_valid(&value).then_some((value, notes))
    }

    fn correct(&self, value: &mut Value, error: &ValidationError<'_>, notes: &mut Vec<String>) {
        let path = error.instance_path().as_str();
        match error.kind() {
            ValidationErrorKind::Type { kind } => {
                notes.extend(correct_type(value, path, &wanted(kind)));
            }
            ValidationErrorKind::Required { property } => {
                notes.extend(self.correct_name(value, path, property.as_str().unwrap_or_default()));
            }
            // A union: the first branch whose own errors can be corrected away.
            ValidationErrorKind::AnyOf { context }
            | ValidationErrorKind::OneOfNotValid { context } => {
                for branch in context {
                    let mut attempt = value.clone();
                    let mut said = Vec::new();
                    for inner in branch {
                        self.correct(&mut attempt, inner, &mut said);
                    }
                    let stands = |rest: ValidationError<'_>| {
                        rest.instance_path() == error.instance_path()
                            && rest.schema_path() == error.schema_path()
                    };
                    if !said.is_empty() && !self.validator.iter_errors(&attempt).any(stands) {
                        *value = attempt;
                        notes.append(&mut said);
                        return;
                    }
                }
            }
            _ => {}
        }
    }

    /// Gives what the object at `path` has under another name of `property` its own name.
    fn correct_name(&self, value: &mut Value, path: &str, property: &str) -> Option<String> {
        let fields = value.pointer_mut(path)?.as_object_mut()?;
        let (theirs, ours) = self
            .other_names
            .iter()
            .find(|(theirs, ours)| *ours == property && fields.contains_key(*theirs))?;
        let moved = fields.shift_remove(*theirs)?;
        fields.insert((*ours).to_owned(), moved);
        Some(format!("`{}` was taken as `{ours}`", below(path, theirs)))
    }

    fn problems(&self, value: &Value) -> InvalidArguments {
        let mut problems = Vec::new();
        let mut omitted = 0;
        for error in self.validator.iter_errors(value) {
            let room = MAX_PROBLEMS - problems.len();
            omitted += count(&error).saturating_sub(room);
            problems.extend(describe(&error).take(room));
        }
        InvalidArguments { problems, omitted }
    }
}

impl fmt::Debug for ArgumentValidator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgumentValidator").finish_non_exhaustive()
    }
}

fn wanted(kind: &TypeKind) -> Vec<JsonType> {
    match kind {
        TypeKind::Single(one) => vec![*one],
        TypeKind::Multiple(several) => several.iter().collect(),
    }
}

/// Corrects the value at `path` to the first wanted type that it can be without loss.
fn correct_type(value: &mut Value, path: &str, wanted: &[JsonType]) -> Option<String> {
    let place = value.pointer_mut(path)?;
    if place.is_null() {
        // Models write null for what they leave out. If it was required, the next pass says so.
        let (parent, name) = path.rsplit_once('/')?;
        let name = name.replace("~1", "/").replace("~0", "~");
        let removed = value.pointer_mut(parent)?.as_object_mut()?.shift_remove(&name);
        return removed.map(|_| format!("`{path}`: null was taken as left out"));
    }
    let (kind, corrected) =
        wanted.iter().find_map(|kind| Some((*kind, lossless(place, *kind)?)))?;
    let note = format!(
        "`{path}`: {} was taken as {}",
        quoted(place),
        match kind {
            JsonType::Integer => format!("integer {corrected}"),
            _ => quoted(&corrected),
        }
    );
    *place = corrected;
    Some(note)
}

/// `value` as another type, where both say the same.
fn lossless(value: &Value, wanted: JsonType) -> Option<Value> {
    match (wanted, value) {
        (JsonType::Integer, Value::String(text)) => {
            let number = text
                .parse::<i64>()
                .map(Number::from)
                .or_else(|_| text.parse::<u64>().map(Number::from))
                .ok()?;
            // `007` and `+7` may be something else than the number.
            (number.to_string() == *text).then_some(Value::Number(number))
        }
        (JsonType::Number, Value::String(text)) => {
            if let Some(integer) = lossless(value, JsonType::Integer) {
                return Some(integer);
            }
            let digits = text.bytes().filter(u8::is_ascii_digit).count();
            let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
            if !plain || digits > EXACT_DECIMAL_DIGITS {
                return None;
            }
            serde_json::from_str::<Number>(text).ok().map(Value::Number)
        }
        (JsonType::Boolean, Value::String(text)) => match text.as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        (JsonType::String, Value::Number(number)) => Some(Value::String(number.to_string())),
        (JsonType::Array, Value::String(text)) => Some(
            serde_json::from_str::<Value>(text)
                .ok()
                .filter(Value::is_array)
                .unwrap_or_else(|| Value::Array(vec![value.clone()])),
        ),
        (JsonType::Array, Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            Some(Value::Array(vec![value.clone()]))
        }
        (JsonType::Object, Value::String(text)) => {
            serde_json::from_str::<Value>(text).ok().filter(Value::is_object)
        }
        _ => None,
    }
}

/// How many problems an error describes: one, or one for each superfluous property.
fn count(error: &ValidationError<'_>) -> usize {
    superfluous(error).map_or(1, <[String]>::len)
}

fn superfluous<'e>(error: &'e ValidationError<'_>) -> Option<&'e [String]> {
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => Some(unexpected),
        _ => None,
    }
}

/// What an error says to a model. Lazy: quoting costs what the value is long.
fn describe<'e>(error: &'e ValidationError<'_>) -> Box<dyn Iterator<Item = ArgumentProblem> + 'e> {
    let path = error.instance_path().as_str();
    match superfluous(error) {
        None => Box::new(iter::once_with(move || describe_one(error))),
        Some(names) => Box::new(names.iter().map(move |name| ArgumentProblem {
            path: below(path, name),
            expected: "no property of this name".to_owned(),
            got: quoted(error.instance().get(name).unwrap_or(&Value::Null)),
        })),
    }
}

fn describe_one(error: &ValidationError<'_>) -> ArgumentProblem {
    let path = error.instance_path().as_str();
    let expected = match error.kind() {
        ValidationErrorKind::Type { kind } => type_names(&wanted(kind)),
        ValidationErrorKind::Required { property } => {
            return ArgumentProblem {
                path: below(path, property.as_str().unwrap_or_default()),
                expected: "a value, which is required".to_owned(),
                got: "nothing".to_owned(),
            };
        }
        ValidationErrorKind::Enum { options } => format!("one of {options}"),
        ValidationErrorKind::Constant { expected_value } => expected_value.to_string(),
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let forms: Vec<String> = context.iter().map(|branch| form(path, branch)).collect();
            format!("either {}", forms.join(", or "))
        }
        _ => format!("another value ({})", error.masked()),
    };
    ArgumentProblem {
        path: path.to_owned(),
        expected: shortened(&expected, MAX_EXPECTATION_CHARS),
        got: quoted(error.instance()),
    }
}

/// What one branch of a union at `path` would have wanted.
fn form(path: &str, branch: &[ValidationError<'_>]) -> String {
    let wants: Vec<String> = branch
        .iter()
        .flat_map(|error| describe(error).take(MAX_PROBLEMS))
        .map(|inner| match inner.path.strip_prefix(path).unwrap_or(&inner.path) {
            "" => inner.expected,
            place => format!("at `{place}` {}", inner.expected),
        })
        .collect();
    wants.join(" and ")
}

fn below(path: &str, name: &str) -> String {
    format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn type_names(kinds: &[JsonType]) -> String {
    // What is wanted first, that it may be missing last.
    let (null, wanted): (Vec<JsonType>, Vec<JsonType>) =
        kinds.iter().partition(|kind| **kind == JsonType::Null);
    let names: Vec<String> = wanted.iter().chain(&null).map(ToString::to_string).collect();
    names.join(" or ")
}

/// A value with its type, cut to a recognisable length.
fn quoted(value: &Value) -> String {
    let kind = match value {
        Value::Null => return "null".to_owned(),
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let mut head = Head(Vec::new());
    // Fails when the head is full, which is all that was wanted.
    let whole = serde_json::to_writer(&mut head, value).is_ok();
    let text = String::from_utf8_lossy(&head.0);
    // A character that was cut in two is no character.
    let text = if whole { &*text } else { text.trim_end_matches('\u{fffd}') };
    let text = shortened(text, MAX_QUOTE_CHARS);
    let ellipsis = if whole || text.ends_with('…') { "" } else { "…" };
    format!("{kind} {text}{ellipsis}")
}

/// Takes the beginning of what is written, and refuses the rest: a value may be megabytes.
struct Head(Vec<u8>);

impl Head {
    /// Room for one character more than is quoted, at four bytes each.
    const CAPACITY: usize = (MAX_QUOTE_CHARS + 1) * 4;
}

impl io::Write for Head {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(Self::CAPACITY - self.0.len());
        self.0.extend(bytes.iter().take(taken));
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn shortened(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
    }
}

#[cfg(test)]
#[path = "validate/tests.rs"]
mod tests;
