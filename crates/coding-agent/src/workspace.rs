//! [`Workspace`]: the directories that a session works in, and what a path argument means there.
//!
//! Owns the working directory, the workspace roots, and the way from the text that a model writes
//! to the file that will really be opened: abbreviations are expanded and symbolic links followed,
//! so that whoever judges a call judges what it will touch. It knows nothing of permission: a path
//! outside every root resolves like any other and says so.
//!
//! A resolved path is a path and not a handle: between resolving and opening, another process may
//! put a link where a directory was. Directory handles, which close that gap, are the sandbox's.
//!
//! ```
//! use coding_agent::Workspace;
//!
//! let directory = tempfile::tempdir()?;
//! std::fs::write(directory.path().join("notes.md"), "")?;
//! let workspace = Workspace::new(directory.path(), &[])?;
//! let notes = workspace.resolve("./sub/../notes.md")?;
//! assert_eq!(notes.shown, "notes.md");
//! assert_eq!(notes.root.as_deref(), Some(workspace.cwd()));
//! assert_eq!(workspace.resolve("/")?.root, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod argument;
mod follow;

use std::io;
use std::path::{Path, PathBuf};

use agent::ToolError;

pub use self::argument::PathError;
use self::follow::Followed;

/// The directories that a session works in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    cwd: PathBuf,
    roots: Vec<PathBuf>,
    home: Option<PathBuf>,
}

impl Workspace {
    /// A workspace whose relative paths start at `cwd`, with further roots beside it.
    ///
    /// # Errors
    /// When one of them is missing, is no directory, or cannot be looked at.
    pub fn new(cwd: &Path, extra_roots: &[PathBuf]) -> Result<Self, WorkspaceError> {
        let cwd = canonical_directory(cwd)?;
        let mut roots = vec![cwd.clone()];
        for root in extra_roots {
            let root = canonical_directory(root)?;
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
        Ok(Self { cwd, roots, home: std::env::home_dir() })
    }

    /// The same workspace with another directory for `~`; `None` where nobody has one.
    #[must_use]
    pub fn with_home(mut self, home: Option<PathBuf>) -> Self {
        self.home = home;
        self
    }

    /// Where relative paths start and commands run: absolute, without symbolic links.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The workspace's roots, the working directory first: absolute, without symbolic links.
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// What a path argument will really open. `~`, `@path` and `file://` are expanded, relative
    /// paths start at the working directory, links are followed, also dangling ones: to where they
    /// point. What does not exist resolves too, below the real path of what does.
    ///
    /// # Errors
    /// When the text names nothing that could be opened, or a directory on the way cannot be looked
    /// into.
    pub fn resolve(&self, argument: &str) -> Result<ResolvedPath, PathError> {
        let spellings = argument::spellings(argument, &self.cwd, self.home.as_deref())?;
        // A file that is really called `@types` or `notes ` comes before what the text may abbreviate.
        for spelling in &spellings.candidates {
            if spelling.symlink_metadata().is_ok() {
                return Ok(self.resolved(follow::follow(spelling)?));
            }
        }
        Ok(self.resolved(follow::follow(&spellings.otherwise)?))
    }

    fn resolved(&self, followed: Followed) -> ResolvedPath {
        let Followed { path, links } = followed;
        let root = self.roots.iter().filter(|root| path.starts_with(root));
        let root = root.max_by_key(|root| root.components().count()).cloned();
        let shown = match path.strip_prefix(&self.cwd) {
            Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
            Ok(inside) => inside.to_string_lossy().into_owned(),
            Err(_) => path.to_string_lossy().into_owned(),
        };
        ResolvedPath { path, links, root, shown }
    }
}

/// What a path argument will really open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedPath {
    /// Absolute, without symbolic links. May not exist.
    pub path: PathBuf,
    /// The symbolic links on the way there, each where it really is. A place that is judged by its
    /// name is judged by these too: `.env` stays what it is when it is a link to another file.
    pub links: Vec<PathBuf>,
    /// The innermost workspace root that it lies under; `None` outside the workspace.
    pub root: Option<PathBuf>,
    /// As a person would write it: relative to the working directory when inside it.
    pub shown: String,
}

/// A directory that cannot be a workspace's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// Nothing is there.
    #[error("{} does not exist", .path.display())]
    Missing {
        /// What was asked for.
        path: PathBuf,
    },
    /// Something else is there.
    #[error("{} is not a directory", .path.display())]
    NotADirectory {
        /// What was asked for.
        path: PathBuf,
    },
    /// It cannot be looked at.
    #[error("{} cannot be used as a workspace: {source}", .path.display())]
    Unreadable {
        /// What was asked for.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl WorkspaceError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "create it, or give --cwd or --add-dir a directory that exists",
            Self::NotADirectory { .. } => "give --cwd or --add-dir the directory that holds it",
            Self::Unreadable { .. } => "check the permissions of the directories above it",
        }
    }
}

impl From<PathError> for ToolError {
    fn from(error: PathError) -> Self {
        Self::failed(error.to_string())
    }
}

fn canonical_directory(path: &Path) -> Result<PathBuf, WorkspaceError> {
    let canonical = path.canonicalize().map_err(|source| {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => WorkspaceError::Missing { path },
            _ => WorkspaceError::Unreadable { path, source },
        }
    })?;
    match canonical.is_dir() {
        true => Ok(canonical),
        false => Err(WorkspaceError::NotADirectory { path: path.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Fixture {
        _directory: tempfile::TempDir,
        base: PathBuf,
        workspace: Workspace,
    }

    /// `work` with a few links in it, `extra` (a root), `outside`, and a home.
    fn fixture() -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        for name in ["work/src", "work/@types", "extra", "outside", "home"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        for name in ["work/a.txt", "work/src/b.rs", "work/space ", "outside/c.txt"] {
            std::fs::write(base.join(name), "x").unwrap();
        }
        symlink("../outside", base.join("work/out")).unwrap();
        symlink("a.txt", base.join("work/link")).unwrap();
        symlink("../outside/none.txt", base.join("work/dangling")).unwrap();
        symlink("loop2", base.join("work/loop1")).unwrap();
        symlink("loop1", base.join("work/loop2")).unwrap();
        let workspace = Workspace::new(&base.join("work"), &[base.join("extra")]).unwrap();
        let workspace = workspace.with_home(Some(base.join("home")));
        Fixture { _directory: directory, base, workspace }
    }

    /// SPEC F8
    #[test]
    fn an_argument_resolves_to_what_will_be_opened() {
        let fixture = fixture();
        let base = fixture.base.display().to_string();
        let work = Some("work");
        // argument, what it opens, the root, how it is shown; paths under the fixture.
        let cases: [(&str, &str, Option<&str>, &str); 21] = [
            ("a.txt", "work/a.txt", work, "a.txt"),
            ("./src/../a.txt", "work/a.txt", work, "a.txt"),
            ("src//b.rs", "work/src/b.rs", work, "src/b.rs"),
            (".", "work", work, "."),
            ("new/deep/file.rs", "work/new/deep/file.rs", work, "new/deep/file.rs"),
            ("new/../a.txt", "work/a.txt", work, "a.txt"),
            ("@src/b.rs", "work/src/b.rs", work, "src/b.rs"),
            ("@src/new.rs", "work/src/new.rs", work, "src/new.rs"),
            ("@types", "work/@types", work, "@types"),
            ("space ", "work/space ", work, "space "),
            (" a.txt ", "work/a.txt", work, "a.txt"),
            ("link", "work/a.txt", work, "a.txt"),
            ("out/c.txt", "outside/c.txt", None, "BASE/outside/c.txt"),
            ("out/../a.txt", "a.txt", None, "BASE/a.txt"),
            ("out/new.txt", "outside/new.txt", None, "BASE/outside/new.txt"),
            ("dangling", "outside/none.txt", None, "BASE/outside/none.txt"),
            ("../extra/x", "extra/x", Some("extra"), "BASE/extra/x"),
            ("~/notes", "home/notes", None, "BASE/home/notes"),
            ("~", "home", None, "BASE/home"),
            ("file://BASE/work/%61.txt", "work/a.txt", work, "a.txt"),
            ("file://localhostBASE/outside/c.txt", "outside/c.txt", None, "BASE/outside/c.txt"),
        ];
        for (argument, path, root, shown) in cases {
            let resolved = fixture.workspace.resolve(&argument.replace("BASE", &base));
            let expected = ResolvedPath {
                path: fixture.base.join(path),
                links: resolved.as_ref().map(|path| path.links.clone()).unwrap_or_default(),
                root: root.map(|root| fixture.base.join(root)),
                shown: shown.replace("BASE", &base),
            };
            assert_eq!(resolved, Ok(expected), "{argument}");
        }
    }

    /// SPEC P7
    #[test]
    fn the_links_on_the_way_are_told() {
        let fixture = fixture();
        symlink("link", fixture.base.join("work/src/again")).unwrap();
        symlink("../link", fixture.base.join("work/src/link")).unwrap();
        let cases: [(&str, &[&str]); 4] = [
            ("a.txt", &[]),
            ("link", &["work/link"]),
            ("src/again", &["work/src/again", "work/src/link", "work/link"]),
            ("out/c.txt", &["work/out"]),
        ];
        for (argument, links) in cases {
            let expected: Vec<PathBuf> = links.iter().map(|link| fixture.base.join(link)).collect();
            assert_eq!(fixture.workspace.resolve(argument).unwrap().links, expected, "{argument}");
        }
    }

    /// SPEC F8
    #[test]
    fn what_cannot_be_opened_is_said_in_words() {
        let fixture = fixture();
        let base = fixture.base.display().to_string();
        let cases = [
            ("", "the path is empty"),
            ("  ", "the path is empty"),
            ("a\0b", "the path holds a NUL character"),
            ("loop1", "BASE/work/loop1 is a symbolic link that leads back to itself"),
            ("a.txt/x", "BASE/work/a.txt is a file, not a directory"),
            (
                "file://server/x",
                "file://server/x is on another machine: only local files can be opened",
            ),
            (
                "file:///a%zz",
                "file:///a%zz is not a file address: % is not followed by two hex digits",
            ),
        ];
        for (argument, message) in cases {
            let error = fixture.workspace.resolve(argument).unwrap_err();
            assert_eq!(error.to_string(), message.replace("BASE", &base), "{argument:?}");
        }
        let homeless = fixture.workspace.with_home(None);
        let error = homeless.resolve("~/x").unwrap_err();
        assert_eq!(error.to_string(), "~ means nothing here: no home directory is known");
    }

    #[test]
    fn a_workspace_needs_directories() {
        let fixture = fixture();
        let missing = fixture.base.join("none");
        let error = Workspace::new(&missing, &[]).unwrap_err();
        assert_eq!(error.to_string(), format!("{} does not exist", missing.display()));
        let file = fixture.base.join("work/a.txt");
        let error = Workspace::new(&fixture.base, std::slice::from_ref(&file)).unwrap_err();
        assert_eq!(error.to_string(), format!("{} is not a directory", file.display()));
    }

    #[test]
    fn the_innermost_root_is_named() {
        let fixture = fixture();
        let inner = fixture.base.join("work/src");
        let workspace = Workspace::new(&fixture.base, std::slice::from_ref(&inner)).unwrap();
        assert_eq!(workspace.resolve("work/src/b.rs").unwrap().root, Some(inner));
    }
}
