//! [`Directories`]: where the program keeps its files.

use std::path::{Path, PathBuf};

/// Where the program keeps its files: the XDG directories, or all below `CODING_AGENT_HOME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directories {
    /// Configuration and keys.
    pub config: PathBuf,
    /// Sessions.
    pub data: PathBuf,
    /// What can be made again.
    pub cache: PathBuf,
    /// What is kept between runs and is no one's work.
    pub state: PathBuf,
}

impl Directories {
    /// Finds them by environment variables. `None` where nothing says where they are: no home, and
    /// no variable in its place.
    pub fn find(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(home) = set("CODING_AGENT_HOME") {
            return Some(Self {
                config: home.join("config"),
                data: home.join("data"),
                cache: home.join("cache"),
                state: home.join("state"),
            });
        }
        let home = set("HOME");
        let place = |name: &str, default: &str| {
            // The XDG rule: a relative path is as good as none.
            let base = set(name).filter(|path| path.is_absolute());
            let base = base.or_else(|| home.as_ref().map(|home| home.join(default)))?;
            Some(base.join("coding-agent"))
        };
        Some(Self {
            config: place("XDG_CONFIG_HOME", ".config")?,
            data: place("XDG_DATA_HOME", ".local/share")?,
            cache: place("XDG_CACHE_HOME", ".cache")?,
            state: place("XDG_STATE_HOME", ".local/state")?,
        })
    }

    /// The user's configuration file.
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// The file in which `login` keeps keys.
    pub fn key_file(&self) -> PathBuf {
        self.config.join("credentials.toml")
    }

    /// The places that hold the program's own keys and sessions.
    pub fn secret(&self) -> Vec<PathBuf> {
        vec![self.key_file(), self.data.clone()]
    }
}

/// The configuration file of a project, below its root.
pub fn project_config_file(root: &Path) -> PathBuf {
    root.join(".coding-agent").join("config.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_variable_moves_everything() {
        let find = |set: &[(&str, &str)]| {
            let value = |name: &str| {
                set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            Directories::find(value).map(|found| found.config.display().to_string())
        };
        assert_eq!(
            find(&[("CODING_AGENT_HOME", "/x"), ("HOME", "/h")]).as_deref(),
            Some("/x/config")
        );
        assert_eq!(find(&[("HOME", "/h")]).as_deref(), Some("/h/.config/coding-agent"));
        assert_eq!(
            find(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c")]).as_deref(),
            Some("/c/coding-agent")
        );
        assert_eq!(
            find(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "relative")]).as_deref(),
            Some("/h/.config/coding-agent")
        );
        assert_eq!(find(&[]), None);
    }
}
