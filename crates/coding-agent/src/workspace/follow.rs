//! Following a path to where it leads, through every link, as far as it exists and beyond.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::argument::PathError;

/// How many links one path may go through: what Linux itself allows, so that nothing resolves here
/// that could not be opened.
const MAX_LINKS: usize = 40;

enum Step {
    Root,
    Up,
    Into(OsString),
}

/// Where a path leads, and how.
pub(super) struct Followed {
    /// Without links; may not exist.
    pub(super) path: PathBuf,
    /// Where the links are that were followed, in order; the directories above them without links.
    pub(super) links: Vec<PathBuf>,
}

/// Follows an absolute `path` to where it leads. Where it leaves what exists, the rest is taken as
/// written: `..` there takes back the name before it.
pub(super) fn follow(path: &Path) -> Result<Followed, PathError> {
    let mut ahead: VecDeque<Step> = steps(path).collect();
    let mut reached = PathBuf::from("/");
    let mut links = Vec::new();
    while let Some(step) = ahead.pop_front() {
        match step {
            Step::Root => reached = PathBuf::from("/"),
            Step::Up => {
                reached.pop();
            }
            Step::Into(name) => {
                reached.push(name);
                let metadata = match reached.symlink_metadata() {
                    Ok(metadata) => metadata,
                    Err(error) => match error.kind() {
                        io::ErrorKind::NotFound => continue,
                        _ => return Err(unreadable(reached, &error)),
                    },
                };
                if metadata.is_symlink() {
                    links.push(reached.clone());
                    if links.len() > MAX_LINKS {
                        return Err(PathError::LinkLoop { path: path.to_owned() });
                    }
                    let target =
                        reached.read_link().map_err(|error| unreadable(reached.clone(), &error))?;
                    reached.pop();
                    for step in steps(&target).collect::<Vec<_>>().into_iter().rev() {
                        ahead.push_front(step);
                    }
                } else if !metadata.is_dir() && !ahead.is_empty() {
                    return Err(PathError::NotADirectory { path: reached });
                }
            }
        }
    }
    Ok(Followed { path: reached, links })
}

fn unreadable(path: PathBuf, error: &io::Error) -> PathError {
    PathError::Unreadable { path, message: error.to_string() }
}

fn steps(path: &Path) -> impl Iterator<Item = Step> {
    path.components().filter_map(|component| match component {
        Component::RootDir => Some(Step::Root),
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => Some(Step::Into(name.to_owned())),
        // A prefix exists on Windows only, which has no process groups either.
        Component::CurDir | Component::Prefix(_) => None,
    })
}
