//! [`KeyFile`]: `credentials.toml`, where `login` keeps keys and commands that print them.
//!
//! ```toml
//! [providers.openai]
//! key = "…"
//!
//! [providers.mine]
//! key_command = "pass show mine"
//! ```
//!
//! Only its owner may read it: one that others can read is refused and not used quietly. What the
//! file says beside keys is kept as it is, comments excepted. It is replaced whole (a temporary file
//! with the final mode, synced, renamed), under a lock, so that two `login`s at once both count. A
//! link is followed, and the file that it leads to is what is replaced.
//!
//! **Invariant:** no error holds anything that stands in the file.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use serde::Deserialize;
use toml::{Spanned, Table, Value};

use crate::keys::key_command::KeyCommand;
use crate::keys::secret::Secret;

/// A file of keys larger than this is not one.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// How long another program may hold the lock. It holds it for one write and two syncs.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// How often a lock that is held is tried.
const LOCK_POLL: Duration = Duration::from_millis(10);

/// The mode of the file: nobody but its owner.
const FILE_MODE: u32 = 0o600;

/// The mode of its directory.
const DIRECTORY_MODE: u32 = 0o700;

/// The bits of a mode that let anybody but the owner in.
const OTHERS: u32 = 0o077;

/// What the names of temporary files begin with, as everywhere in this program.
const TEMPORARY_PREFIX: &str = ".coding-agent-";

/// The table that holds the providers.
const PROVIDERS: &str = "providers";
const KEY: &str = "key";
const KEY_COMMAND: &str = "key_command";

/// What every rewritten file begins with.
const HEADING: &str = "# Written by `coding-agent login` and `logout`; comments are not kept.\n";

/// The file of keys of one user. Read when it is first needed, and once.
#[derive(Debug)]
pub struct KeyFile {
    path: PathBuf,
    read: OnceLock<Result<BTreeMap<String, StoredKey>, KeyFileError>>,
}

/// What the file holds for one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredKey {
    /// The key itself.
    Key(Secret),
    /// A command that prints it.
    Command(KeyCommand),
}

/// What became of a key that was to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// There was another one for this provider.
    pub replaced: bool,
    /// Others could read the file until now.
    pub was_exposed: bool,
}

/// Why the file cannot be used. Never holds anything that stands in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileError {
    /// It is there and cannot be read.
    #[error("cannot read {}: {cause}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: String,
    },
    /// Others can read it.
    #[error("{} can be read by others: its mode is {mode:03o}", .path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It is not the user's.
    #[error("{} belongs to another user", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Its content is not what it should be.
    #[error("{}, line {line}: {problem}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What was expected.
        problem: &'static str,
    },
    /// It cannot be written. What it held before is still there.
    #[error("cannot write {}: {cause}; nothing was changed", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: String,
    },
}

impl KeyFileError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Unreadable { .. } => "mend it, or move it out of the way".to_owned(),
            Self::Exposed { path, .. } => format!(
                "chmod 600 {}; and if anybody else uses this machine, replace the keys in it",
                path.display()
            ),
            Self::Foreign { .. } => "make it yours, or move it out of the way".to_owned(),
            Self::Invalid { .. } => {
                "mend it, or move it out of the way and store the keys again with \
                 `coding-agent login`"
                    .to_owned()
            }
            Self::Unwritable { .. } => {
                "the directory has to be yours, writable, and on a disk that is not full".to_owned()
            }
        }
    }
}

/// The file as it is read.
#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    providers: BTreeMap<String, Spanned<Entry>>,
}

#[derive(Deserialize)]
struct Entry {
    key: Option<String>,
    key_command: Option<String>,
}

/// Whether a file that others can read may be read all the same, since it is about to be mended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exposure {
    Refused,
    Mended,
}

impl KeyFile {
    /// The file at this place; it need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), read: OnceLock::new() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds for this provider.
    ///
    /// # Errors
    /// When the file is there and cannot be used.
    pub fn find(&self, provider: &str) -> Result<Option<&StoredKey>, KeyFileError> {
        match self.read.get_or_init(|| self.load()) {
            Ok(entries) => Ok(entries.get(provider)),
            Err(error) => Err(error.clone()),
        }
    }

    /// Stores a key, in the place of the one that is there, and keeps everything else.
    ///
    /// # Errors
    /// When the file cannot be read or written; then it is as it was.
    pub async fn store(&self, provider: &str, key: &StoredKey) -> Result<Stored, KeyFileError> {
        self.make_directory()?;
        let _lock = self.lock().await?;
        let target = self.target()?;
        let (mut table, was_exposed) = self.read_table(Exposure::Mended)?;
        let mut providers = take_table(&mut table, PROVIDERS);
        let mut entry = take_table(&mut providers, provider);
        let replaced = forget(&mut entry);
        match key {
            StoredKey::Key(key) => entry.insert(KEY.to_owned(), key.reveal().into()),
            StoredKey::Command(command) => {
                entry.insert(KEY_COMMAND.to_owned(), command.reveal().into())
            }
        };
        providers.insert(provider.to_owned(), Value::Table(entry));
        table.insert(PROVIDERS.to_owned(), Value::Table(providers));
        self.replace(&target, &table)?;
        Ok(Stored { replaced, was_exposed })
    }

    /// Removes a provider's key and tells whether there was one.
    ///
    /// # Errors
    /// When the file cannot be read or written; then it is as it was.
    pub async fn remove(&self, provider: &str) -> Result<bool, KeyFileError> {
        if matches!(self.path.symlink_metadata(), Err(error) if is_absent(&error)) {
            return Ok(false);
        }
        let _lock = self.lock().await?;
        let target = self.target()?;
        let (mut table, _) = self.read_table(Exposure::Mended)?;
        let mut providers = take_table(&mut table, PROVIDERS);
        let mut entry = take_table(&mut providers, provider);
        if !forget(&mut entry) {
            return Ok(false);
        }
        if !entry.is_empty() {
            providers.insert(provider.to_owned(), Value::Table(entry));
        }
        if !providers.is_empty() {
            table.insert(PROVIDERS.to_owned(), Value::Table(providers));
        }
        self.replace(&target, &table)?;
        Ok(true)
    }

    fn load(&self) -> Result<BTreeMap<String, StoredKey>, KeyFileError> {
        let Some((text, _)) = self.read_text(Exposure::Refused)? else {
            return Ok(BTreeMap::new());
        };
        let content = self.parse(&text)?;
        let mut keys = BTreeMap::new();
        for (provider, entry) in content.providers {
            let at = entry.span().start;
            let Entry { key, key_command } = entry.into_inner();
            let is_set = |text: &String| !text.trim().is_empty();
            let stored = match (key.filter(is_set), key_command.filter(is_set)) {
                (None, None) => continue,
                (Some(key), None) => Secret::parse(&key).map(StoredKey::Key).map_err(|_| {
                    self.invalid(&text, at, "this `key` holds characters that no key has")
                })?,
                (None, Some(command)) => StoredKey::Command(KeyCommand::new(command)),
                (Some(_), Some(_)) => {
                    return Err(self.invalid(&text, at, "there is a `key` and a `key_command`"));
                }
            };
            keys.insert(provider, stored);
        }
        Ok(keys)
    }

    fn read_table(&self, exposure: Exposure) -> Result<(Table, bool), KeyFileError> {
        let Some((text, was_exposed)) = self.read_text(exposure)? else {
            return Ok((Table::new(), false));
        };
        // What could not be read back is not written over.
        self.parse(&text)?;
        let table = toml::from_str(&text).map_err(|error| self.unparsed(&text, &error))?;
        Ok((table, was_exposed))
    }

    fn parse(&self, text: &str) -> Result<Content, KeyFileError> {
        toml::from_str(text).map_err(|error| self.unparsed(text, &error))
    }

    /// The parser's own words quote the file, so that only the line is taken from them.
    fn unparsed(&self, text: &str, error: &toml::de::Error) -> KeyFileError {
        let at = error.span().map_or(0, |span| span.start);
        let problem = match toml::from_str::<Table>(text) {
            Ok(_) => "expected [providers.NAME] with a text `key` or `key_command`",
            Err(_) => "this is not TOML",
        };
        self.invalid(text, at, problem)
    }

    fn invalid(&self, text: &str, at: usize, problem: &'static str) -> KeyFileError {
        let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        KeyFileError::Invalid { path: self.path.clone(), line, problem }
    }

    /// The text, and whether others could read it; `None` where there is no file.
    fn read_text(&self, exposure: Exposure) -> Result<Option<(String, bool)>, KeyFileError> {
        let unreadable =
            |cause: String| KeyFileError::Unreadable { path: self.path.clone(), cause };
        // A FIFO in its place must not hang the program.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = rustix::fs::open(&self.path, flags, Mode::empty()).map_err(io::Error::from);
        let file = match opened {
            Ok(file) => File::from(file),
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(unreadable(error.to_string())),
        };
        let metadata = file.metadata().map_err(|error| unreadable(error.to_string()))?;
        if !metadata.is_file() {
            return Err(unreadable("it is not a regular file".to_owned()));
        }
        if metadata.len() > MAX_FILE_BYTES {
            return Err(unreadable("it is larger than 1 MiB".to_owned()));
        }
        let own = rustix::process::geteuid();
        // Whoever is root may use anybody's; it is so in containers that mount a home.
        if metadata.uid() != own.as_raw() && !own.is_root() {
            return Err(KeyFileError::Foreign { path: self.path.clone() });
        }
        let mode = metadata.mode() & 0o777;
        let is_exposed = mode & OTHERS != 0;
        if is_exposed && exposure == Exposure::Refused {
            return Err(KeyFileError::Exposed { path: self.path.clone(), mode });
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES)
            .read_to_end(&mut bytes)
            .map_err(|error| unreadable(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let read = String::from_utf8_lossy(error.as_bytes()).into_owned();
            self.invalid(&read, error.utf8_error().valid_up_to(), "this is not UTF-8 text")
        })?;
        Ok(Some((text, is_exposed)))
    }

    /// The directory, which is the program's own, for nobody but its owner.
    fn make_directory(&self) -> Result<(), KeyFileError> {
        let directory = self.directory();
        let unwritable = |error: io::Error| self.unwritable(&error);
        let made = DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory);
        made.map_err(unwritable)?;
        let metadata = fs::metadata(directory).map_err(unwritable)?;
        if metadata.mode() & OTHERS != 0 {
            // One that belongs to somebody else says so when the file is written.
            let _ = fs::set_permissions(directory, Permissions::from_mode(DIRECTORY_MODE));
        }
        Ok(())
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// The file that is replaced: the end of the links, where the name is one.
    fn target(&self) -> Result<PathBuf, KeyFileError> {
        match self.path.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => self.path.canonicalize().map_err(|error| {
                let cause = format!("it is a link that leads nowhere: {error}");
                KeyFileError::Unwritable { path: self.path.clone(), cause }
            }),
            Ok(_) => Ok(self.path.clone()),
            Err(error) if is_absent(&error) => Ok(self.path.clone()),
            Err(error) => Err(self.unwritable(&error)),
        }
    }

    /// The lock that changes are made under. A file of its own: the one with the keys is exchanged.
    async fn lock(&self) -> Result<Option<File>, KeyFileError> {
        let path = self.path.with_extension("lock");
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(FILE_MODE)
            .open(&path)
            .map_err(|error| self.unwritable(&error))?;
        let trying = async {
            loop {
                match file.try_lock() {
                    Ok(()) => return true,
                    Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_POLL).await,
                    // A file system without locks: only two changes at the same moment could meet.
                    Err(TryLockError::Error(_)) => return false,
                }
            }
        };
        match tokio::time::timeout(LOCK_PATIENCE, trying).await {
            Ok(is_locked) => Ok(is_locked.then_some(file)),
            Err(_) => {
                let cause = format!("another program holds {}", path.display());
                Err(KeyFileError::Unwritable { path: self.path.clone(), cause })
            }
        }
    }

    fn replace(&self, target: &Path, table: &Table) -> Result<(), KeyFileError> {
        let directory = target.parent().unwrap_or(Path::new("."));
        let written = toml::to_string(table).map_err(io::Error::other).and_then(|text| {
            let mut temporary = tempfile::Builder::new()
                .prefix(TEMPORARY_PREFIX)
                .permissions(Permissions::from_mode(FILE_MODE))
                .tempfile_in(directory)?;
            temporary.write_all(HEADING.as_bytes())?;
            temporary.write_all(text.as_bytes())?;
            temporary.as_file().sync_all()?;
            temporary.persist(target).map_err(|error| error.error)?;
            Ok(())
        });
        written.map_err(|error| self.unwritable(&error))?;
        // The new file is there in any case; where the directory cannot be synced, it is there after
        // the system's own next sync.
        let _ = File::open(directory).and_then(|directory| directory.sync_all());
        Ok(())
    }

    fn unwritable(&self, error: &io::Error) -> KeyFileError {
        KeyFileError::Unwritable { path: self.path.clone(), cause: error.to_string() }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Takes a table out of another; an empty one where there is none.
fn take_table(table: &mut Table, name: &str) -> Table {
    match table.remove(name) {
        Some(Value::Table(inner)) => inner,
        // The content was found to be made of tables before.
        Some(_) | None => Table::new(),
    }
}

/// Removes a key from a provider's table and tells whether there was one.
fn forget(entry: &mut Table) -> bool {
    let key = entry.remove(KEY);
    let command = entry.remove(KEY_COMMAND);
    key.is_some() || command.is_some()
}

#[cfg(test)]
mod tests;
