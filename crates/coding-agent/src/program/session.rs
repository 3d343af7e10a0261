//! [`Session`]: what a command works with: configuration, workspace, permission, tools, model.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::{Model, Nobody, Tools};
use ai::{
    Api, ApiKey, ErrorKind, HttpClient, HttpProvider, Provider, ProviderEntry, RetryPolicy,
    SpendMeter, ThinkingPlan, shown_address,
};
use coding_agent::config::{Config, ConfigError, ConfigLayer, LoadedConfig, Sources};
use coding_agent::keys::{KeyFile, KeyOrigin, LateKeyProvider};
use coding_agent::{
    BashSettings, Credentials, Directories, ExtensionLayer, FoundProvider, LimitLayer, ModelError,
    ModelLists, ModelName, Permission, Policy, Processes, SCRIPTED_PROVIDER, Stack, Workspace,
    builtin_tools, key_variables, known_models, provider_entry,
};
use scripted_model::ScriptedModel;

use crate::program::cli::SessionArguments;
use crate::program::failure::Failure;
use crate::program::render::printable;

/// What a command works with. The session's commands end with it.
pub(crate) struct Session {
    pub(crate) config: Config,
    pub(crate) loaded_files: Vec<PathBuf>,
    pub(crate) notes: Vec<String>,
    pub(crate) directories: Option<Directories>,
    /// Where `login` keeps keys; read when one of them is needed.
    pub(crate) key_file: Option<KeyFile>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) permission: Permission,
    pub(crate) processes: Processes,
    pub(crate) tools: Tools,
}

/// A model to ask, and the server behind it where that is our own.
pub(crate) struct ChosenModel {
    pub(crate) model: Model,
    /// Hears of every request.
    pub(crate) spend: SpendMeter,
    /// What to look at when it cannot be asked.
    pub(crate) asked: Asked,
    /// Lives as long as the model is asked.
    _scripted: Option<ScriptedModel>,
}

/// Who is asked for what, for whoever has to find out why that fails.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    provider: String,
    model: String,
    endpoint: String,
    key: KeyOrigin,
}

impl Asked {
    /// What to look at after a failure of this kind; nothing where its message says all.
    pub(crate) fn hint(&self, kind: ErrorKind) -> Option<String> {
        let Self { provider, model, endpoint, key } = self;
        match kind {
            ErrorKind::Auth => Some(match key {
                KeyOrigin::Variable(_) | KeyOrigin::ConfiguredCommand(_) => {
                    format!("{provider} has its {key}")
                }
                KeyOrigin::Stored | KeyOrigin::StoredCommand(_) => {
                    format!("{provider} has its {key}; `coding-agent login {provider}` replaces it")
                }
                KeyOrigin::NotNeeded => {
                    format!("{provider} has no key; `coding-agent login {provider}` stores one")
                }
            }),
            ErrorKind::NotFound => Some(format!(
                "{endpoint} was asked for `{model}`; `coding-agent models {provider} --refresh` asks \
                 which models there are"
            )),
            ErrorKind::MalformedStream => Some(format!(
                "{endpoint} was asked; check `api` and `base_url` of the provider `{provider}`"
            )),
            _ => None,
        }
    }
}

impl Session {
    /// Reads the configuration and makes the tools. Nothing outside the process is changed.
    pub(crate) fn open(arguments: &SessionArguments) -> Result<Self, Failure> {
        let workspace = open_workspace(arguments)?;
        let directories = Directories::find(variable);
        let loaded = load_config(arguments, directories.as_ref(), workspace.cwd())?;
        Self::with_config(workspace, directories, loaded)
    }

    /// A session that nothing of the user's configures: the same on every machine.
    pub(crate) fn unconfigured(cwd: &Path, options: ConfigLayer) -> Result<Self, Failure> {
        let workspace =
            Workspace::new(cwd, &[]).map_err(|error| Failure::failed(&error).hint(error.hint()))?;
        let sources = Sources { options, ..Sources::default() };
        let loaded = sources.load().map_err(Failure::failed)?;
        Self::with_config(workspace, Directories::find(variable), loaded)
    }

    fn with_config(
        workspace: Workspace,
        directories: Option<Directories>,
        loaded: LoadedConfig,
    ) -> Result<Self, Failure> {
        let LoadedConfig { config, files, notes } = loaded;
        let own = directories.as_ref().map(Directories::secret).unwrap_or_default();
        let policy = Policy {
            mode: config.permission_mode,
            credentials: Credentials::new(std::env::home_dir().as_deref(), &own),
        };
        let workspace = Arc::new(workspace);
        let permission = Permission::new(Arc::clone(&workspace), policy, Arc::new(Nobody));
        let stack = Stack {
            extensions: ExtensionLayer::default(),
            permission: permission.clone(),
            limit: LimitLayer::default(),
        };
        let processes = Processes::default();
        let mut settings = BashSettings::default();
        settings.timeout = config.tool_timeout;
        settings.kill_grace = config.kill_grace;
        settings.secret_variables = key_variables(&config);
        let tools = builtin_tools(&stack, &workspace, settings, &processes)
            .map_err(|error| Failure::failed(format!("{error}; this is a defect")))?;
        let key_file = directories.as_ref().map(|found| KeyFile::new(found.key_file()));
        Ok(Self {
            config,
            loaded_files: files,
            notes,
            directories,
            key_file,
            workspace,
            permission,
            processes,
            tools,
        })
    }

    /// Tells what of the configuration was passed over.
    pub(crate) fn report_notes(&self) {
        for note in &self.notes {
            eprintln!("note: {note}");
        }
    }

    /// Refuses the mode that this version cannot keep, before anything is done in it.
    pub(crate) fn check_mode(&self) -> Result<(), Failure> {
        if self.config.permission_mode != coding_agent::PermissionMode::Auto {
            return Ok(());
        }
        Err(Failure::usage(
            "permission mode auto needs the sandbox, which this version does not have",
        )
        .hint("use ask, accept-edits or bypass"))
    }

    /// A provider's entry, and where its key comes from. No key command is run.
    pub(crate) fn provider(&self, name: &str) -> Result<FoundProvider, ModelError> {
        provider_entry(name, &self.config, self.key_file.as_ref(), variable)
    }

    /// The model that the configuration names, ready to be asked.
    pub(crate) async fn model(&self) -> Result<ChosenModel, Failure> {
        let usage = |error: &ModelError| Failure::usage(error).hint(error.hint());
        let name = ModelName::parse(&self.config.model).map_err(|error| usage(&error))?;
        let (mut entry, key, scripted) = if name.provider == SCRIPTED_PROVIDER {
            let (entry, scripted) = start_scripted(&name.model, self.workspace.cwd()).await?;
            (entry, KeyOrigin::NotNeeded, Some(scripted))
        } else {
            let found = self.provider(&name.provider).map_err(|error| usage(&error))?;
            (found.entry, found.key, None)
        };
        let listed = self.directories.as_ref().map(|directories| {
            let lists = ModelLists::new(directories);
            lists.read(&entry)
        });
        if let Some(listed) = listed.filter(|listed| !listed.is_empty()) {
            entry.models = known_models(&name.provider, &self.config, listed).into();
        }
        let entry = entry.for_model(&name.model);
        let plan = self.config.thinking.map(|level| ThinkingPlan::new(level, &entry, &name.model));
        if let Some(note) = plan.and_then(|plan| plan.note) {
            eprintln!("note: {}", printable(&note));
        }
        let spend = SpendMeter::new(Arc::clone(&entry.models));
        let mut policy = RetryPolicy::default();
        policy.max_attempts = self.config.retry_attempts;
        policy.max_elapsed = self.config.retry_elapsed;
        let client = HttpClient::new(self.config.timeouts);
        let asked = Asked {
            provider: name.provider.clone(),
            model: name.model.clone(),
            endpoint: shown_address(&entry.endpoint_for(&name.model)),
            key,
        };
        let provider: Arc<dyn Provider> = match asked.key.command().cloned() {
            Some(command) => Arc::new(LateKeyProvider::new(entry, client, command)),
            None => Arc::new(HttpProvider::new(entry, client)),
        };
        let model = Model::new(provider, name.model.clone())
            .layer(&spend)
            .layer(&ai::RetryLayer::new(policy));
        Ok(ChosenModel { model, spend, asked, _scripted: scripted })
    }
}

/// However a command of the program ends, the session's commands end with it: also those whose calls
/// were abandoned and are still at work when the runtime goes.
impl Drop for Session {
    fn drop(&mut self) {
        self.processes.kill_all();
    }
}

/// An environment variable that is text.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn open_workspace(arguments: &SessionArguments) -> Result<Workspace, Failure> {
    let cwd = match &arguments.cwd {
        Some(cwd) => cwd.clone(),
        None => std::env::current_dir().map_err(|error| {
            Failure::usage(format!("the working directory cannot be used: {error}"))
                .hint("change to a directory that exists, or name one with --cwd")
        })?,
    };
    Workspace::new(&cwd, &arguments.add_dir)
        .map_err(|error| Failure::usage(&error).hint(error.hint()))
}

fn load_config(
    arguments: &SessionArguments,
    directories: Option<&Directories>,
    root: &Path,
) -> Result<LoadedConfig, Failure> {
    let mut sources = Sources::usual(directories, root);
    sources.assignments.clone_from(&arguments.config);
    sources.options.model.clone_from(&arguments.model);
    sources.options.permission_mode = arguments.permission_mode;
    sources.options.thinking = arguments.thinking;
    sources.load().map_err(|error| {
        let hint = match &error {
            ConfigError::Unreadable { .. } => "mend it, or move it out of the way",
            _ => "`coding-agent config schema` has all keys and their types",
        };
        Failure::usage(error).hint(hint)
    })
}

async fn start_scripted(
    script: &str,
    base: &Path,
) -> Result<(ProviderEntry, ScriptedModel), Failure> {
    let script = scripted_model::load(script, base).map_err(|error| {
        Failure::usage(error).hint(
            "scripted/hello and scripted/fix-loop are built in; scripted/./FILE reads a file in the \
             form that docs/scripted-model.md describes",
        )
    })?;
    let server = ScriptedModel::start(script).await.map_err(|error| {
        Failure::failed(format!("the scripted model cannot listen on loopback: {error}"))
    })?;
    let api = Api::AnthropicMessages;
    let mut entry = ProviderEntry::new(SCRIPTED_PROVIDER, api, server.base_url(api));
    entry.api_key = Some(ApiKey::new("scripted"));
    Ok((entry, server))
}
