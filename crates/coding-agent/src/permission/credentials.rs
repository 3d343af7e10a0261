//! [`Credentials`]: the places that no call may read or write, in any mode (SPEC P7).

use std::path::{Path, PathBuf};

/// Directories and files below the home directory that hold keys, tokens and passwords.
const IN_HOME: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker/config.json",
    ".config/gh",
    ".config/gcloud",
    ".config/hub",
    ".config/op",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".config/git/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".password-store",
    ".local/share/keyrings",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    "Library/Keychains",
    "Library/Application Support/Google/Chrome",
    "Library/Application Support/Firefox",
];

/// Endings that make a `.env` file an example without secrets.
const EXAMPLE_ENDINGS: &[&str] = &["example", "sample", "template", "dist"];

/// The list, made absolute for one user.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    places: Vec<PathBuf>,
}

impl Credentials {
    /// The list for a user with this home, and for the program's own directories: its keys and
    /// sessions are nobody else's business either.
    pub fn new(home: Option<&Path>, own: &[PathBuf]) -> Self {
        let home = home.map(real);
        let in_home =
            home.iter().flat_map(|home| IN_HOME.iter().map(|place| real(&home.join(place))));
        Self { places: in_home.chain(own.iter().map(|place| real(place))).collect() }
    }

    /// Whether a resolved path is one of them or lies below one.
    pub fn contain(&self, path: &Path) -> bool {
        is_env_file(path)
            || is_environment(path)
            || self.places.iter().any(|place| is_at_or_below(path, place))
    }
}

/// A place that is itself a link is compared by where it leads, as the judged paths are.
fn real(place: &Path) -> PathBuf {
    place.canonicalize().unwrap_or_else(|_| place.to_owned())
}

/// As [`Path::starts_with`], without regard to case: on some file systems `.SSH` is `.ssh`.
fn is_at_or_below(path: &Path, place: &Path) -> bool {
    let mut components = path.components();
    place.components().all(|expected| {
        components
            .next()
            .is_some_and(|found| found.as_os_str().eq_ignore_ascii_case(expected.as_os_str()))
    })
}

/// The environment of a process, `/proc/…/environ`: ours holds the keys of the models.
fn is_environment(path: &Path) -> bool {
    path.starts_with("/proc") && path.ends_with("environ")
}

/// `.env` and its variants, wherever they are, but not the examples that projects commit.
fn is_env_file(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    match name.to_ascii_lowercase().strip_prefix(".env") {
        Some("") => true,
        Some(rest) => rest
            .strip_prefix('.')
            .is_some_and(|ending| !EXAMPLE_ENDINGS.iter().any(|example| ending.ends_with(example))),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC P7
    #[test]
    fn credentials_are_known_by_place_and_name() {
        let list = Credentials::new(Some(Path::new("/home/ada")), &["/data/agent".into()]);
        let cases = [
            ("/home/ada/.ssh/id_rsa", true),
            ("/home/ada/.ssh", true),
            ("/home/ada/.sshrc", false),
            ("/home/ada/.config/gh/hosts.yml", true),
            ("/home/ada/.config/other", false),
            ("/home/bob/.ssh/id_rsa", false),
            ("/data/agent/credentials.toml", true),
            ("/work/.env", true),
            ("/work/.env.production", true),
            ("/work/.env.example", false),
            ("/work/.ENV", true),
            ("/home/ada/.SSH/id_rsa", true),
            ("/proc/1/environ", true),
            ("/proc/1/task/2/environ", true),
            ("/work/environ", false),
            ("/work/.envrc", false),
            ("/work/environment", false),
        ];
        for (path, expected) in cases {
            assert_eq!(list.contain(Path::new(path)), expected, "{path}");
        }
    }
}
