//! The file of keys: what is kept, what is refused, and who may read it.

use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

const SECRET: &str = "sk-recognisable-0123456789abcdef";

fn key(text: &str) -> StoredKey {
    StoredKey::Key(Secret::parse(text).unwrap())
}

/// A directory, and a file in it with this content, which only its owner may read.
fn file(content: &str) -> (TempDir, KeyFile) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config/credentials.toml");
    fs::create_dir(directory.path().join("config")).unwrap();
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    (directory, KeyFile::new(path))
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o7777
}

fn table(path: &Path) -> Table {
    toml::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn found(keys: &KeyFile, provider: &str) -> Option<StoredKey> {
    KeyFile::new(keys.path()).find(provider).unwrap().cloned()
}

/// SPEC M20
#[tokio::test]
async fn what_is_stored_is_found_by_its_owner_alone() {
    let directory = tempfile::tempdir().unwrap();
    let keys = KeyFile::new(directory.path().join("new/config/credentials.toml"));
    assert_eq!(keys.remove("openai").await, Ok(false));
    assert!(!directory.path().join("new").exists(), "nothing is made for nothing");
    let stored = keys.store("openai", &key(SECRET)).await;
    assert_eq!(stored, Ok(Stored { replaced: false, was_exposed: false }));
    let command = StoredKey::Command(KeyCommand::new("pass show mine"));
    keys.store("mine", &command).await.unwrap();
    assert_eq!(found(&keys, "openai"), Some(key(SECRET)));
    assert_eq!(found(&keys, "mine"), Some(command));
    assert_eq!(found(&keys, "other"), None);
    for made in ["new", "new/config"] {
        assert_eq!(mode(&directory.path().join(made)), 0o700, "{made}");
    }
    assert_eq!(mode(keys.path()), 0o600);
    assert_eq!(mode(&keys.path().with_extension("lock")), 0o600);
    assert!(!format!("{keys:?}").contains(SECRET));
    assert_eq!(keys.remove("openai").await, Ok(true));
    assert_eq!(keys.remove("openai").await, Ok(false));
    assert_eq!(found(&keys, "openai"), None);
    keys.remove("mine").await.unwrap();
    assert_eq!(fs::read_to_string(keys.path()).unwrap(), HEADING);
}

#[tokio::test]
async fn everything_else_in_the_file_is_kept() {
    let (_directory, keys) = file(
        "version = 2\n[providers.openai]\nkey = 'sk-old'\nnote = 'work'\n\
         [providers.mine]\nkey_command = 'pass show mine'\n[other]\nthing = [1, 2]\n",
    );
    let stored = keys.store("openai", &StoredKey::Command(KeyCommand::new("echo x"))).await;
    assert!(stored.unwrap().replaced);
    let expected = "version = 2\n[providers.openai]\nkey_command = 'echo x'\nnote = 'work'\n\
                    [providers.mine]\nkey_command = 'pass show mine'\n[other]\nthing = [1, 2]\n";
    assert_eq!(table(keys.path()), toml::from_str(expected).unwrap());
    keys.remove("openai").await.unwrap();
    keys.remove("mine").await.unwrap();
    let expected = "version = 2\nproviders.openai.note = 'work'\nother.thing = [1, 2]\n";
    assert_eq!(table(keys.path()), toml::from_str(expected).unwrap());
}

#[tokio::test]
async fn nobodys_change_is_lost() {
    let (_directory, keys) = file("");
    let path = keys.path().to_owned();
    let names: Vec<String> = (0..12).map(|number| format!("provider-{number}")).collect();
    let storing = names.iter().map(|name| {
        // Each with a handle of its own, as programs have.
        let (keys, name) = (KeyFile::new(&path), name.clone());
        tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            runtime.unwrap().block_on(async { keys.store(&name, &key(SECRET)).await.unwrap() })
        })
    });
    let storing: Vec<_> = storing.collect();
    for stored in storing {
        stored.await.unwrap();
    }
    for name in &names {
        assert_eq!(found(&keys, name), Some(key(SECRET)), "{name}");
    }
}

/// SPEC M20
#[test]
fn a_wrong_file_is_said_by_its_line_and_not_by_its_content() {
    for (content, line, problem) in [
        (format!("[providers.openai]\nkey = {SECRET}"), 2, "this is not TOML"),
        (format!("\n\n{SECRET}\n"), 3, "this is not TOML"),
        (
            format!("[providers]\nopenai = '{SECRET}'"),
            2,
            "expected [providers.NAME] with a text `key` or `key_command`",
        ),
        (
            format!("providers = '{SECRET}'"),
            1,
            "expected [providers.NAME] with a text `key` or `key_command`",
        ),
        (
            format!("[providers.openai]\nkey = ['{SECRET}']"),
            2,
            "expected [providers.NAME] with a text `key` or `key_command`",
        ),
        (
            format!("\n[providers.openai]\nkey = '{SECRET} x'"),
            2,
            "this `key` holds characters that no key has",
        ),
        (
            format!("[providers.openai]\nkey = '{SECRET}'\nkey_command = 'x'"),
            1,
            "there is a `key` and a `key_command`",
        ),
    ] {
        let (_directory, keys) = file(&content);
        let error = keys.find("openai").unwrap_err();
        let path = keys.path().to_owned();
        assert_eq!(error, KeyFileError::Invalid { path: path.clone(), line, problem }, "{content}");
        let said = format!("{error} {error:?} {}", error.hint());
        assert!(said.contains(&format!("credentials.toml, line {line}: ")), "{said}");
        assert!(!said.contains(SECRET), "{said}");
    }
    let (_directory, keys) = file("");
    fs::write(keys.path(), b"a = 1\nb = '\xff'\n").unwrap();
    let problem = "this is not UTF-8 text";
    let path = keys.path().to_owned();
    assert_eq!(keys.find("x"), Err(KeyFileError::Invalid { path, line: 2, problem }));
}

#[tokio::test]
async fn a_wrong_file_is_not_written_over() {
    let (directory, keys) = file("[providers.openai]\nkey = oops");
    let before = fs::read(keys.path()).unwrap();
    for error in [
        keys.store("mine", &key(SECRET)).await.unwrap_err(),
        keys.remove("openai").await.unwrap_err(),
    ] {
        assert!(matches!(error, KeyFileError::Invalid { line: 2, .. }), "{error}");
    }
    assert_eq!(fs::read(keys.path()).unwrap(), before);
    let names = fs::read_dir(directory.path().join("config")).unwrap().count();
    assert_eq!(names, 2, "the file and its lock");
}

/// SPEC M20
#[tokio::test]
async fn a_file_that_others_can_read_is_refused_and_mended() {
    for exposed in [0o644, 0o640, 0o604, 0o610] {
        let (_directory, keys) = file(&format!("[providers.openai]\nkey = '{SECRET}'\n"));
        fs::set_permissions(keys.path(), Permissions::from_mode(exposed)).unwrap();
        let error = keys.find("openai").unwrap_err();
        let path = keys.path().to_owned();
        assert_eq!(error, KeyFileError::Exposed { path, mode: exposed });
        assert!(error.hint().starts_with("chmod 600 /"), "{}", error.hint());
        let stored = keys.store("mine", &key(SECRET)).await.unwrap();
        assert_eq!(stored, Stored { replaced: false, was_exposed: true });
        assert_eq!(mode(keys.path()), 0o600);
        assert_eq!(found(&keys, "openai"), Some(key(SECRET)));
    }
}

#[tokio::test]
async fn a_link_is_followed_and_stays_one() {
    let (directory, keys) = file("");
    let target = directory.path().join("dotfiles/keys.toml");
    fs::create_dir(directory.path().join("dotfiles")).unwrap();
    fs::rename(keys.path(), &target).unwrap();
    symlink("../dotfiles/keys.toml", keys.path()).unwrap();
    keys.store("openai", &key(SECRET)).await.unwrap();
    assert!(keys.path().symlink_metadata().unwrap().is_symlink());
    assert_eq!((found(&keys, "openai"), mode(&target)), (Some(key(SECRET)), 0o600));
    fs::remove_file(&target).unwrap();
    for error in [
        keys.store("openai", &key(SECRET)).await.unwrap_err().to_string(),
        keys.remove("openai").await.unwrap_err().to_string(),
    ] {
        assert!(error.contains("it is a link that leads nowhere"), "{error}");
    }
}

#[tokio::test]
async fn what_cannot_be_a_file_of_keys_is_refused() {
    let (_directory, keys) = file("");
    fs::remove_file(keys.path()).unwrap();
    fs::create_dir(keys.path()).unwrap();
    let error = keys.find("openai").unwrap_err().to_string();
    assert!(error.ends_with("credentials.toml: it is not a regular file"), "{error}");
    let error = keys.store("openai", &key(SECRET)).await.unwrap_err().to_string();
    assert!(error.ends_with("credentials.toml: it is not a regular file"), "{error}");
    let (directory, _) = file("");
    fs::write(directory.path().join("file"), "").unwrap();
    let keys = KeyFile::new(directory.path().join("file/credentials.toml"));
    assert_eq!(keys.find("openai"), Ok(None));
    let error = keys.store("openai", &key(SECRET)).await.unwrap_err();
    assert!(matches!(error, KeyFileError::Unwritable { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_never_given_back_is_said() {
    let (_directory, keys) = file("");
    let held = keys.lock().await.unwrap();
    let error = keys.store("openai", &key(SECRET)).await.unwrap_err().to_string();
    assert!(error.contains("credentials.lock; nothing was changed"), "{error}");
    drop(held);
    keys.store("openai", &key(SECRET)).await.unwrap();
}
