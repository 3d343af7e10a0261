//! The environment of a command: nothing that waits for a person, and no credentials.

use std::env::split_paths;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use rustix::fs::{Access, access};

/// What is set, so that no program opens an editor or a pager, asks for a password, or draws.
const SET: [(&str, &str); 16] = [
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("EDITOR", "true"),
    ("GIT_ASKPASS", "true"),
    ("GIT_EDITOR", "true"),
    ("GIT_PAGER", "cat"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GH_PROMPT_DISABLED", "1"),
    ("LESS", "-FRX"),
    ("MANPAGER", "cat"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("SSH_ASKPASS", "false"),
    ("SYSTEMD_PAGER", "cat"),
    ("TERM", "dumb"),
    ("VISUAL", "true"),
];

/// What is taken away: scripts that a shell would run first, terminals, and where we come from.
const REMOVED: [&str; 8] = [
    "BASH_ENV",
    "COLORTERM",
    "ENV",
    "FORCE_COLOR",
    "CLICOLOR_FORCE",
    "OLDPWD",
    "PROMPT_COMMAND",
    "PWD",
];

/// A variable with one of these among the words of its name holds a credential.
const SECRET_WORDS: [&str; 14] = [
    "APIKEY",
    "CREDENTIAL",
    "CREDENTIALS",
    "PASS",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "PAT",
    "PGPASSWORD",
    "PWD",
    "SECRET",
    "SECRETS",
    "TOKEN",
    "JWT",
];

/// A variable whose name has a `KEY` after one of these holds a credential.
const KEYS: [&str; 11] = [
    "ACCESS",
    "ACCOUNT",
    "API",
    "AUTH",
    "DEPLOY",
    "ENCRYPTION",
    "MASTER",
    "PRIVATE",
    "SERVICE",
    "SIGNING",
    "STORAGE",
];

/// The variables that a command gets, of those that this process has. `secret` are names that hold
/// credentials without looking like it.
pub(super) fn scrubbed(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    secret: &[String],
) -> Vec<(OsString, OsString)> {
    variables
        .into_iter()
        .filter(|(name, _)| {
            !is_credential(name)
                && !secret.iter().any(|secret| name == secret.as_str())
                && !REMOVED.iter().chain(SET.iter().map(|(name, _)| name)).any(|ours| name == ours)
        })
        .chain(SET.iter().map(|(name, value)| ((*name).into(), (*value).into())))
        .collect()
}

/// The program that `name` means under this environment's `PATH`; `name` itself where it means
/// none. Found here and not in the child: std can then start it without forking this process, whose
/// pages it would have to copy. A directory that is relative to wherever a command runs is no place
/// for the shell that runs it.
pub(super) fn on_path(environment: &[(OsString, OsString)], name: &str) -> PathBuf {
    let path = environment.iter().find(|(variable, _)| variable == "PATH").map(|(_, path)| path);
    path.into_iter()
        .flat_map(|path| split_paths(path))
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|file| file.is_file() && access(file, Access::EXEC_OK).is_ok())
        .unwrap_or_else(|| PathBuf::from(name))
}

/// Whether a variable's name looks like that of a credential.
fn is_credential(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    let words: Vec<&str> = name.split(['_', '-', '.']).collect();
    words.iter().any(|word| SECRET_WORDS.contains(word))
        || words.windows(2).any(|pair| match pair {
            [before, key] => matches!(*key, "KEY" | "KEYS") && KEYS.contains(before),
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC B1
    #[test]
    fn credentials_are_told_by_their_names() {
        let credentials = [
            "ANTHROPIC_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_ACCESS_KEY_ID",
            "AWS_SESSION_TOKEN",
            "GITHUB_TOKEN",
            "GITHUB_PAT",
            "github_token",
            "NPM_TOKEN",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "DB_PASSWORD",
            "DB_PASS",
            "MYSQL_PWD",
            "PGPASSWORD",
            "TOKEN",
            "CLIENT_SECRET_V2",
            "SSH_PRIVATE_KEY",
            "npm_config__auth_token",
        ];
        for name in credentials {
            assert!(is_credential(OsStr::new(name)), "{name}");
        }
        let others = [
            "PATH",
            "HOME",
            "LANG",
            "GIT_ASKPASS",
            "TOKENIZERS_PARALLELISM",
            "KEYBOARD",
            "MONKEY",
            "KEY",
            "CARGO_HOME",
            "SSH_AUTH_SOCK",
            "COMPASS",
            "MAX_TOKENS",
            "PATTERN",
            "XDG_DATA_HOME",
        ];
        for name in others {
            assert!(!is_credential(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn a_shell_is_an_executable_file_of_an_absolute_directory() {
        use std::os::unix::fs::PermissionsExt;

        let base = tempfile::tempdir().unwrap();
        for (directory, mode) in [("plain", 0o600), ("good", 0o700), ("later", 0o700)] {
            let file = base.path().join(directory).join("bash");
            std::fs::create_dir(base.path().join(directory)).unwrap();
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        }
        std::fs::create_dir_all(base.path().join("folder/bash")).unwrap();
        let cases = [
            ("BASE/none:BASE/plain:BASE/folder:BASE/good:BASE/later", "BASE/good/bash"),
            (":.:good", "bash"),
            ("", "bash"),
        ];
        let base = base.path().to_str().unwrap();
        for (path, found) in cases {
            let environment = [("PATH".into(), path.replace("BASE", base).into())];
            assert_eq!(on_path(&environment, "bash"), PathBuf::from(found.replace("BASE", base)));
        }
        assert_eq!(on_path(&[], "sh"), PathBuf::from("sh"));
    }

    /// SPEC B1
    #[test]
    fn the_rest_is_kept_and_ours_is_set() {
        let pair = |(name, value): (&str, &str)| (OsString::from(name), OsString::from(value));
        let given = [
            ("PATH", "/bin"),
            ("PAGER", "less"),
            ("MY_TOKEN", "x"),
            ("BASH_ENV", "x"),
            ("A", "1"),
            ("MINE", "x"),
        ];
        let expected: Vec<_> =
            [("PATH", "/bin"), ("A", "1")].into_iter().chain(SET).map(pair).collect();
        assert_eq!(scrubbed(given.map(pair), &["MINE".to_owned()]), expected);
    }
}
