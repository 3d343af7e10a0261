//! Loading: from files, variables and options to one configuration.

use std::path::{Path, PathBuf};
use std::{fs, io};

use ai::BuiltinProvider;

use crate::config::{Config, ConfigLayer};
use crate::directories::{Directories, project_config_file};
use crate::keys::cover_keys;

/// Variables with our prefix that are no settings: they say where things are.
const OTHER_VARIABLES: &[&str] =
    &["CODING_AGENT_HOME", "CODING_AGENT_SHARED", "CODING_AGENT_BIN", "CODING_AGENT_LOG"];

/// A file of settings larger than this is not one.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// How many parts a dotted key may have. No setting has more than five; each part is a table in a
/// table, and thousands of them would exhaust the stack.
const MAX_KEY_PARTS: usize = 16;

/// Where configuration comes from, weakest first.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The user's file; it need not exist.
    pub user_file: Option<PathBuf>,
    /// The project's file; it need not exist.
    pub project_file: Option<PathBuf>,
    /// All environment variables; those of other programs are passed over.
    pub variables: Vec<(String, String)>,
    /// `KEY=VALUE`, as given to `--config`.
    pub assignments: Vec<String>,
    /// What options of their own set.
    pub options: ConfigLayer,
}

/// What the sources come to.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    /// The settings.
    pub config: Config,
    /// The files that were read.
    pub files: Vec<PathBuf>,
    /// What was passed over, in sentences.
    pub notes: Vec<String>,
}

/// A source that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file is there and cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What it says is no configuration. The message has line and column where there are any.
    #[error("{place} is not a valid configuration: {message}")]
    Invalid {
        /// The file, variable or option.
        place: String,
        /// What is wrong.
        message: String,
    },
}

impl Sources {
    /// The usual sources for a session in `root`.
    pub fn usual(directories: Option<&Directories>, root: &Path) -> Self {
        Self {
            user_file: directories.map(Directories::config_file),
            project_file: Some(project_config_file(root)),
            // A name or value that is no text is none of ours.
            variables: std::env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .collect(),
            ..Self::default()
        }
    }

    /// Reads everything.
    ///
    /// # Errors
    /// When a source that is there cannot be read or is wrong: settings are never half applied.
    pub fn load(self) -> Result<LoadedConfig, ConfigError> {
        let mut files = Vec::new();
        let mut notes = Vec::new();
        let mut layers = Vec::new();
        if let Some(path) = self.user_file
            && let Some(layer) = read_file(&path)?
        {
            layers.push(layer);
            files.push(path);
        }
        if let Some(path) = self.project_file
            && let Some(layer) = read_file(&path)?
        {
            let mut ignored = Vec::new();
            let below = Config::from_layers(layers.iter().cloned()).to_layer();
            layers.push(layer.untrusted(&below, &mut ignored));
            for key in ignored {
                let why = match key {
                    "model" => "but a project may only name a model of the provider you chose",
                    "providers" => "which no project may",
                    _ => "which a project may only tighten",
                };
                notes.push(format!("{} sets `{key}`, {why}; it is ignored", path.display()));
            }
            files.push(path);
        }
        layers.push(
            self.variables.iter().try_fold(ConfigLayer::default(), |below, variable| {
                Ok(below.under(from_variable(variable, &mut notes)?))
            })?,
        );
        for assignment in &self.assignments {
            layers.push(from_assignment(assignment)?);
        }
        check(&self.options, "the command line")?;
        layers.push(self.options);
        Ok(LoadedConfig { config: Config::from_layers(layers), files, notes })
    }
}

fn read_file(path: &Path) -> Result<Option<ConfigLayer>, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    // A FIFO or a device in its place must not hang the program.
    if !metadata.is_file() {
        return Err(unreadable(io::Error::other("it is not a regular file")));
    }
    if metadata.len() > MAX_CONFIG_BYTES {
        return Err(unreadable(io::Error::other("it is larger than 1 MiB")));
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    let place = path.display().to_string();
    let layer: ConfigLayer = toml::from_str(&text).map_err(|error| ConfigError::Invalid {
        place: place.clone(),
        message: described(&text, &error),
    })?;
    check(&layer, &place)?;
    Ok(Some(layer))
}

/// What is wrong with a file. The parser quotes the line, which is welcome anywhere but among
/// providers: people write keys there, and this message is where a mistake would show them.
fn described(text: &str, error: &toml::de::Error) -> String {
    let whole = error.to_string();
    let at = error.span().map_or(text.len(), |span| span.start.min(text.len()));
    let line_begin = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = text[line_begin..].lines().next().unwrap_or_default();
    // A line that begins with a list inside a list is no header.
    let is_header = |line: &&str| {
        let name = line.trim_start_matches(['[', ' ', '\t']);
        line.starts_with('[')
            && (name.contains("providers") || name.starts_with(|c: char| c.is_ascii_alphabetic()))
    };
    let mut headers = text[..at].lines().map(str::trim_start).filter(is_header);
    let among_providers = headers.next_back().is_some_and(|header| header.contains("providers"));
    if !among_providers && !line.contains("providers") && cover_keys(&whole) == whole {
        return whole;
    }
    let number = 1 + text[..at].matches('\n').count();
    let column = 1 + text[line_begin..at].chars().count();
    let message = without_values(error.message());
    format!("TOML parse error at line {number}, column {column}\n{message}")
}

/// A message without the value that it quotes: `invalid type: string "…", expected u32`.
fn without_values(message: &str) -> String {
    let covered = match (message.find("string \""), message.rfind("\", expected")) {
        (Some(begin), Some(end)) if begin < end => {
            format!("{}string \"…{}", &message[..begin], &message[end..])
        }
        _ => message.to_owned(),
    };
    cover_keys(&covered)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn check(layer: &ConfigLayer, place: &str) -> Result<(), ConfigError> {
    layer.check().map_err(|message| ConfigError::Invalid { place: place.to_owned(), message })
}

/// `CODING_AGENT_RETRY__MAX_ATTEMPTS=3` is `retry.max_attempts = 3`.
fn from_variable(
    (name, value): &(String, String),
    notes: &mut Vec<String>,
) -> Result<ConfigLayer, ConfigError> {
    let Some(key) = name.strip_prefix("CODING_AGENT_") else { return Ok(ConfigLayer::default()) };
    // A blank variable is as good as none, as everywhere where variables are read.
    if OTHER_VARIABLES.contains(&name.as_str()) || value.trim().is_empty() {
        return Ok(ConfigLayer::default());
    }
    let key = with_hyphens(key.to_ascii_lowercase().replace("__", "."));
    if !is_setting(&key) {
        notes.push(format!("the variable {name} is no setting of this program; it is ignored"));
        return Ok(ConfigLayer::default());
    }
    from_key_value(&key, value, &format!("the variable {name}"))
}

/// A key that names a built-in provider with a hyphen, which no variable can have, by its own name.
fn with_hyphens(key: String) -> String {
    let mut parts: Vec<&str> = key.split('.').collect();
    let hyphenated = match parts.as_slice() {
        ["providers", name, ..] if BuiltinProvider::find(name).is_none() => name.replace('_', "-"),
        _ => return key,
    };
    if let (Some(_), Some(name)) = (BuiltinProvider::find(&hyphenated), parts.get_mut(1)) {
        *name = &hyphenated;
    }
    parts.join(".")
}

fn from_assignment(assignment: &str) -> Result<ConfigLayer, ConfigError> {
    // Among providers a value may be a secret, which is not said again.
    let place = match assignment.split_once('=') {
        Some((key, _)) if key.contains("providers") => format!("--config {key}=…"),
        Some(_) | None => format!("--config {}", cover_keys(assignment)),
    };
    match assignment.split_once('=') {
        Some((key, value)) => from_key_value(key.trim(), value.trim(), &place),
        None => Err(ConfigError::Invalid { place, message: "expected KEY=VALUE".to_owned() }),
    }
}

/// Whether the first part of a dotted key is one of ours.
fn is_setting(key: &str) -> bool {
    let first = key.split('.').next().unwrap_or_default();
    ["model", "permission_mode", "thinking", "timeouts", "cancel", "retry", "limits", "providers"]
        .contains(&first)
}

/// The value is TOML where it can be read as such and a plain string otherwise, so that nobody has to
/// quote twice.
fn from_key_value(key: &str, value: &str, place: &str) -> Result<ConfigLayer, ConfigError> {
    let invalid = |message: String| ConfigError::Invalid { place: place.to_owned(), message };
    if key.split('.').any(str::is_empty) {
        return Err(invalid(format!("`{key}` is no key")));
    }
    if key.split('.').count() > MAX_KEY_PARTS {
        return Err(invalid(format!("a key has at most {MAX_KEY_PARTS} parts")));
    }
    let parsed = toml::from_str::<toml::Table>(&format!("value = {value}"))
        .ok()
        .filter(|table| table.len() == 1)
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| toml::Value::String(value.to_owned()));
    let read = |value: toml::Value| {
        let table = key.rsplit('.').fold(value, |inner, part| {
            toml::Value::Table(toml::Table::from_iter([(part.to_owned(), inner)]))
        });
        table.try_into::<ConfigLayer>().map_err(|error| {
            let message = error.to_string();
            let message = message.trim();
            if key.contains("providers") { without_values(message) } else { message.to_owned() }
        })
    };
    // `model = 5` read as a number would be refused where the string was meant.
    let layer = read(parsed.clone()).or_else(|error| match parsed {
        toml::Value::String(_) => Err(error),
        _ => read(toml::Value::String(value.to_owned())).map_err(|_| error),
    });
    let layer = layer.map_err(invalid)?;
    check(&layer, place)?;
    Ok(layer)
}

#[cfg(test)]
mod tests {
    use crate::permission::PermissionMode;

    use super::*;

    fn variables(set: &[(&str, &str)]) -> Sources {
        let variables =
            set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Sources { variables, ..Sources::default() }
    }

    #[test]
    fn stronger_sources_win() {
        let directory = tempfile::tempdir().unwrap();
        let user_file = directory.path().join("user.toml");
        fs::write(
            &user_file,
            "model = 'a/user'\n[retry]\nmax_attempts = 2\nmax_elapsed_ms = 7\n[limits]\nmax_turns = 3",
        )
        .unwrap();
        let mut sources = variables(&[
            ("CODING_AGENT_MODEL", "b/variable"),
            ("CODING_AGENT_RETRY__MAX_ATTEMPTS", "4"),
            ("CODING_AGENT_PERMISSION_MODE", ""),
            ("PATH", "/bin"),
        ]);
        sources.user_file = Some(user_file);
        sources.assignments = vec!["retry.max_attempts=6".to_owned()];
        sources.options.permission_mode = Some(PermissionMode::ReadOnly);
        let config = sources.load().unwrap().config;
        assert_eq!(config.model, "b/variable");
        assert_eq!(config.retry_attempts, 6);
        assert_eq!(config.retry_elapsed.as_millis(), 7);
        assert_eq!(config.max_turns, 3);
        assert_eq!(config.permission_mode, PermissionMode::ReadOnly);
    }

    #[test]
    fn mistakes_are_reported_where_they_stand() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.toml");
        let load = |text: &str| {
            fs::write(&file, text).unwrap();
            let sources = Sources { user_file: Some(file.clone()), ..Sources::default() };
            sources.load().unwrap_err().to_string()
        };
        for (text, parts) in [
            ("model = 'a'\nmodell = 'b'", &["line 2, column 1", "unknown field `modell`"][..]),
            ("a = [1,", &["line 1"]),
            ("[limits]\nmax_turns = 'x'", &["line 2, column 13", "invalid type"]),
            ("[limits]\nmax_turns = 0", &["limits.max_turns must be at least 1"]),
        ] {
            let error = load(text);
            assert!(error.contains("config.toml"), "{error}");
            for part in parts {
                assert!(error.contains(part), "{part}: {error}");
            }
        }
        let error = variables(&[("CODING_AGENT_LIMITS__MAX_TURNS", "many")]).load().unwrap_err();
        assert!(error.to_string().starts_with("the variable CODING_AGENT_LIMITS__MAX_TURNS"));
        for assignment in ["model", "=x", "nothing=1", "a..b=1"] {
            let sources =
                Sources { assignments: vec![assignment.to_owned()], ..Sources::default() };
            let error = sources.load().unwrap_err().to_string();
            assert!(error.starts_with(&format!("--config {assignment}")), "{error}");
        }
    }

    /// SPEC M20: a key that somebody wrote in the wrong place.
    #[test]
    fn a_key_in_the_wrong_place_is_not_said_again() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.toml");
        for secret in ["sk-recognisable-0123456789abcdef", "hunter2"] {
            for (text, place) in [
                ("[providers.mine]\nkey = 'SECRET'\n", "line 2, column 1\nunknown field `key`"),
                ("[providers.mine]\nmodels = 'SECRET'\n", "line 2, column 10\ninvalid type"),
                ("[providers.mine]\nbase_url = SECRET\n", "line 2, column 12\n"),
                (
                    "[providers.mine]\nmodels = [\n ['x']\n]\nkey = 'SECRET'\n",
                    "line 5, column 1\nunknown field `key`",
                ),
                ("[providers]\nmine = 'SECRET'\n", "line 2, column 8\ninvalid type"),
                ("providers.mine.headers = 'SECRET'\n", "line 1, column 26\ninvalid type"),
                ("providers = 'SECRET'\n", "line 1, column 13\ninvalid type"),
            ] {
                fs::write(&file, text.replace("SECRET", secret)).unwrap();
                let sources = Sources { user_file: Some(file.clone()), ..Sources::default() };
                let error = sources.load().unwrap_err().to_string();
                assert!(error.contains(&format!("TOML parse error at {place}")), "{error}");
                assert!(!error.contains(secret), "{error}");
            }
            for key in
                ["providers.mine.key", "providers.mine.models", "providers.mine", "providers"]
            {
                let assignments = vec![format!("{key}={secret}")];
                let sources = Sources { assignments, ..Sources::default() };
                let error = sources.load().unwrap_err().to_string();
                assert!(error.starts_with(&format!("--config {key}=… is not a valid")), "{error}");
                assert!(!error.contains(secret), "{error}");
                let name = format!("CODING_AGENT_{}", key.to_uppercase().replace('.', "__"));
                let error = variables(&[(&name, secret)]).load().unwrap_err().to_string();
                assert!(!error.contains(secret), "{error}");
            }
        }
        // Elsewhere only what looks like one.
        fs::write(&file, "api_key = 'sk-recognisable-0123456789abcdef'\n").unwrap();
        let sources = Sources { user_file: Some(file.clone()), ..Sources::default() };
        let error = sources.load().unwrap_err().to_string();
        assert!(error.contains("unknown field `api_key`") && !error.contains("sk-"), "{error}");
    }

    /// SPEC M20, P8
    #[test]
    fn a_project_names_no_key_no_command_and_no_header() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.toml");
        for setting in [
            "key_env = 'HOME'",
            "key_command = 'touch /tmp/x'",
            "base_url = 'http://evil.example'",
            "headers = { x = 'y' }",
            "auth = 'bearer'",
            "api = 'openai-responses'",
        ] {
            fs::write(&file, format!("[providers.anthropic]\n{setting}\n")).unwrap();
            let sources = Sources { project_file: Some(file.clone()), ..Sources::default() };
            let loaded = sources.load().unwrap();
            assert_eq!(loaded.config.providers.len(), 0, "{setting}");
            let [note] = loaded.notes.as_slice() else { panic!("{:?}", loaded.notes) };
            assert!(note.contains("sets `providers`"), "{note}");
        }
    }

    #[test]
    fn one_place_for_a_key_at_a_time() {
        let layers = [
            "providers.mine.key_env = 'MINE'\nproviders.mine.headers = { a = '1', b = '2' }",
            "providers.mine.key_command = 'pass mine'\nproviders.mine.headers = { b = '3' }",
        ];
        let config = Config::from_layers(layers.map(|layer| toml::from_str(layer).unwrap()));
        let mine = &config.providers["mine"];
        assert_eq!((&mine.key_env, mine.key_command.as_deref()), (&None, Some("pass mine")));
        let headers: Vec<_> =
            mine.headers.iter().map(|(name, value)| format!("{name}{value}")).collect();
        assert_eq!(headers, ["a1", "b3"]);
        for wrong in ["key_env = 'A'\nkey_command = 'b'", "key_env = ' '", "key_command = ''"] {
            let layer: ConfigLayer = toml::from_str(&format!("[providers.mine]\n{wrong}")).unwrap();
            let error = check(&layer, "here").unwrap_err().to_string();
            assert!(error.contains("providers.mine"), "{error}");
        }
    }

    /// SPEC M20
    #[test]
    fn a_key_in_the_place_of_a_variables_name_is_refused_and_not_shown() {
        for key in ["sk-abcdef0123456789abcd", "gsk_aB3dEf6hIj9kLmNoPq", "0a1b2c3d4e5f60718293"] {
            let layer = format!("[providers.mine]\nkey_env = '{key}'");
            let error = check(&toml::from_str(&layer).unwrap(), "here").unwrap_err().to_string();
            assert!(error.contains("providers.mine.key_env"), "{error}");
            assert!(!error.contains(key), "{error}");
        }
        for name in ["MINE_API_KEY", "my_team_2_openai_key", "K", "_x", "AZURE_KEY_FOR_GPT5_2"] {
            let layer = format!("[providers.mine]\nkey_env = '{name}'");
            check(&toml::from_str(&layer).unwrap(), "here").unwrap();
        }
    }

    /// SPEC M20
    #[test]
    fn what_may_be_a_secret_is_named_and_not_shown() {
        let layer: ConfigLayer = toml::from_str(
            "[providers.mine]\nbase_url = 'http://ada:hunter2@h/?k=hunter2'\n\
             key_command = 'echo hunter2'\nheaders = { x-team = 'hunter2' }",
        )
        .unwrap();
        assert!(!format!("{layer:?}").contains("hunter2"), "{layer:?}");
        let shown = toml::to_string(&layer.providers["mine"].shown()).unwrap();
        assert_eq!(
            shown,
            "base_url = \"http://h/?…\"\nkey_command = \"(not shown)\"\n\n[headers]\n\
             x-team = \"(not shown)\"\n"
        );
    }

    #[test]
    fn a_key_of_endless_depth_is_refused() {
        let place = "x".to_owned();
        let key = format!("model{}", ".a".repeat(100_000));
        let error = from_key_value(&key, "1", &place).unwrap_err();
        assert_eq!(error.to_string(), "x is not a valid configuration: a key has at most 16 parts");
    }

    /// SPEC P8
    #[test]
    fn an_untrusted_project_can_only_tighten() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.toml");
        let load = |text: &str| {
            fs::write(&file, text).unwrap();
            let sources = Sources { project_file: Some(file.clone()), ..Sources::default() };
            sources.load().unwrap()
        };
        let loaded = load(
            "permission_mode = 'bypass'\n[providers.anthropic]\nbase_url = 'http://evil.example'",
        );
        assert_eq!(loaded.config.permission_mode, PermissionMode::Ask);
        assert_eq!(loaded.config.providers.len(), 0);
        assert_eq!(loaded.notes.len(), 2);
        for (model, expected) in [
            ("anthropic/other", "anthropic/other"),
            ("openai/other", crate::config::DEFAULT_MODEL),
            ("scripted/./evil.json", crate::config::DEFAULT_MODEL),
        ] {
            assert_eq!(load(&format!("model = '{model}'")).config.model, expected);
        }
        let loaded = load("permission_mode = 'read-only'");
        assert_eq!(loaded.config.permission_mode, PermissionMode::ReadOnly);
        assert_eq!(loaded.notes, [] as [String; 0]);
        let loaded = load("[limits]\nmax_turns = 7\n[retry]\nmax_attempts = 1000");
        assert_eq!((loaded.config.max_turns, loaded.config.retry_attempts), (7, 5));
        let [note] = loaded.notes.as_slice() else { panic!("{:?}", loaded.notes) };
        assert!(note.ends_with(
            "sets `retry.max_attempts`, which a project may only tighten; it is ignored"
        ));
    }

    /// SPEC P8: what the user has set is what a project may not exceed, not the defaults.
    #[test]
    fn a_project_stays_within_the_users_limits() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            Some(path)
        };
        let sources = Sources {
            user_file: file("user.toml", "[limits]\nmax_turns = 20\n[timeouts]\ntool_ms = 900000"),
            project_file: file("project.toml", "limits.max_turns = 30\ntimeouts.tool_ms = 600000"),
            ..Sources::default()
        };
        let config = sources.load().unwrap().config;
        assert_eq!((config.max_turns, config.tool_timeout.as_secs()), (20, 600));
    }

    #[test]
    fn a_setting_need_not_be_quoted_twice() {
        for (assignment, model) in [
            ("model=a/b", "a/b"),
            ("model='a/b'", "a/b"),
            ("model=5", "5"),
            ("model=a b # c", "a b # c"),
        ] {
            let sources =
                Sources { assignments: vec![assignment.to_owned()], ..Sources::default() };
            assert_eq!(sources.load().unwrap().config.model, model);
        }
    }

    #[test]
    fn what_is_shown_can_be_read_again() {
        let config = Config::from_layers([]);
        let text = toml::to_string(&config.to_layer()).unwrap();
        let layer: ConfigLayer = toml::from_str(&text).unwrap();
        assert_eq!(Config::from_layers([layer]), config);
    }
}
