//! [`ModelLists`]: what providers said of their models when they were last asked, kept in the cache.
//!
//! A list belongs to the address that it came from; one that is damaged, or of another address, is
//! as good as none.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ai::{ModelInfo, ProviderEntry};
use serde::{Deserialize, Serialize};

use crate::directories::Directories;

/// A list larger than this is not one of ours.
const MAX_LIST_BYTES: u64 = 8 << 20;

/// The lists that are kept.
#[derive(Clone, Debug)]
pub struct ModelLists {
    directory: PathBuf,
}

/// One list, as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    endpoint: String,
    models: Vec<ModelInfo>,
}

impl ModelLists {
    /// Those in the program's own cache.
    pub fn new(directories: &Directories) -> Self {
        Self { directory: directories.cache.join("models") }
    }

    /// The list that this provider gave; empty where there is none.
    pub fn read(&self, entry: &ProviderEntry) -> Vec<ModelInfo> {
        let path = self.path(entry);
        let is_list =
            fs::metadata(&path).is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_LIST_BYTES);
        let bytes = if is_list { fs::read(&path).unwrap_or_default() } else { Vec::new() };
        match serde_json::from_slice::<Kept>(&bytes) {
            Ok(kept) if kept.endpoint == entry.shown_endpoint() => kept.models,
            Ok(_) | Err(_) => Vec::new(),
        }
    }

    /// Keeps the list in place of the one before it.
    ///
    /// # Errors
    /// When the file cannot be written; the list before it is then still there.
    pub fn write(&self, entry: &ProviderEntry, models: Vec<ModelInfo>) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let kept = Kept { endpoint: entry.shown_endpoint(), models };
        let file = tempfile::NamedTempFile::new_in(&self.directory)?;
        serde_json::to_writer(io::BufWriter::new(&file), &kept)?;
        file.persist(self.path(entry)).map_err(|error| error.error)?;
        Ok(())
    }

    fn path(&self, entry: &ProviderEntry) -> PathBuf {
        self.directory.join(file_name(&entry.name))
    }
}

/// A provider's name as the name of a file, whatever is in it.
fn file_name(provider: &str) -> String {
    let mut name = String::new();
    for byte in provider.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_".contains(&byte) {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02x}"));
        }
    }
    debug_assert!(Path::new(&name).components().count() <= 1, "{name} stays in its directory");
    name + ".json"
}

#[cfg(test)]
mod tests {
    use ai::Api;

    use super::*;

    #[test]
    fn a_list_comes_back_for_the_address_that_gave_it() {
        let directory = tempfile::tempdir().unwrap();
        let lists = ModelLists { directory: directory.path().join("cache/models") };
        let entry = |base: &str| ProviderEntry::new("../odd name", Api::OpenaiChat, base);
        assert_eq!(lists.read(&entry("http://a")), []);
        let mut info = ModelInfo::new("m");
        info.context_window = Some(8);
        lists.write(&entry("http://a"), vec![info.clone(), ModelInfo::new("n")]).unwrap();
        lists.write(&entry("http://a"), vec![info.clone()]).unwrap();
        assert_eq!(lists.read(&entry("http://a")), [info]);
        assert_eq!(lists.read(&entry("http://b")), []);
        let names: Vec<_> = fs::read_dir(&lists.directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(names, ["%2e%2e%2fodd%20name.json"]);
        fs::write(lists.path(&entry("http://a")), "{\"endpoint\":").unwrap();
        assert_eq!(lists.read(&entry("http://a")), []);
    }
}
