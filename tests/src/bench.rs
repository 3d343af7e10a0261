//! [`Bench`]: surroundings for one test: a home, a workspace and a place for temporary files.
//!
//! Owns the directories and the check that a program which ran in them left nothing behind. Knows
//! nothing of what the program does.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tempfile::TempDir;

/// How long a process that was killed may take until the kernel has taken it down. What is alive
/// then was not killed.
const GONE_WITHIN: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// What the temporary files of the tools begin with, in whatever directory they are.
const TEMPORARY_PREFIX: &str = ".coding-agent-";

/// Surroundings for one test. They vanish with it.
#[derive(Debug)]
pub struct Bench {
    _directory: TempDir,
    root: PathBuf,
}

impl Default for Bench {
    fn default() -> Self {
        Self::new()
    }
}

impl Bench {
    /// Empty surroundings.
    ///
    /// # Panics
    /// When they cannot be made.
    pub fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("suite-").tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for name in ["agent/config", "user", "work", "tmp"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        Self { _directory: directory, root }
    }

    /// Where everything is; appears in the environment of every process that belongs here.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `CODING_AGENT_HOME`.
    pub fn agent_home(&self) -> PathBuf {
        self.root.join("agent")
    }

    /// `HOME`.
    pub fn user_home(&self) -> PathBuf {
        self.root.join("user")
    }

    /// The working directory.
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// `TMPDIR`.
    pub fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// Writes the user's `config.toml`.
    pub fn configure(&self, toml: &str) {
        fs::write(self.agent_home().join("config/config.toml"), toml).unwrap();
    }

    /// Writes a file, with the directories above it. A relative path is in the workspace.
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// A file's text. A relative path is in the workspace.
    pub fn read(&self, path: impl AsRef<Path>) -> String {
        fs::read_to_string(self.work().join(path)).unwrap()
    }

    /// The names in a directory, sorted. A relative path is in the workspace.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.work().join(path)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Checks that no process of the program lives and that no temporary file is left but those that
    /// begin with `kept`.
    ///
    /// # Panics
    /// When something is left.
    pub fn check_nothing_left(&self, kept: Option<&str>) {
        assert_eq!(self.alive_after(&GONE_WITHIN), Vec::<String>::new(), "processes are left");
        let mut left = self.names(self.temporary());
        left.retain(|name| kept.is_none_or(|kept| !name.starts_with(kept)));
        assert_eq!(left, Vec::<String>::new(), "temporary files are left");
        let half_written: Vec<PathBuf> = files(&self.root)
            .into_iter()
            .filter(|path| {
                path.file_name()
                    .is_some_and(|name| name.to_string_lossy().starts_with(TEMPORARY_PREFIX))
            })
            .collect();
        assert_eq!(half_written, Vec::<PathBuf>::new(), "half-written files are left");
    }

    /// The processes that belong here and do not end within this time.
    fn alive_after(&self, time: &Timespec) -> Vec<String> {
        let alive = |process: &Pid| !is_gone(*process, time);
        self.processes().into_iter().filter(alive).map(shown).collect()
    }

    /// The processes whose environment names this place, whatever group, session or parent they
    /// have by now.
    pub fn processes(&self) -> Vec<Pid> {
        let mark = self.root.as_os_str().as_encoded_bytes();
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let number = entry.file_name().to_str()?.parse().ok()?;
                // A process of somebody else, or one that has just ended, is none of ours.
                let environment = fs::read(entry.path().join("environ")).ok()?;
                let is_ours = environment.windows(mark.len()).any(|window| window == mark);
                is_ours.then(|| Pid::from_raw(number)).flatten()
            })
            .collect()
    }
}

/// Waits for the end of a process, without taking its status from its parent.
fn is_gone(process: Pid, time: &Timespec) -> bool {
    let Ok(handle) = pidfd_open(process, PidfdFlags::empty()) else { return true };
    let mut fds = [PollFd::new(&handle, PollFlags::IN)];
    loop {
        match poll(&mut fds, Some(time)) {
            Ok(ready) => return ready > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("cannot wait for {process:?}: {}", io::Error::from(error)),
        }
    }
}

fn shown(process: Pid) -> String {
    let number = process.as_raw_nonzero();
    let command = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
    format!("{number}: {}", String::from_utf8_lossy(&command).replace('\0', " "))
}

/// All files below a directory, not following links.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        // A test may have made one that cannot be read.
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries.filter_map(Result::ok) {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(entry.path()),
                Ok(_) | Err(_) => found.push(entry.path()),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::process::{Command, Stdio};

    use super::*;

    /// SPEC I10: what the suites rely on to see that nothing is left.
    #[test]
    fn a_process_that_is_left_is_seen() {
        let bench = Bench::new();
        bench.check_nothing_left(None);
        // In a session of its own, and its parent gone, as a daemon would be. It stops instead of
        // turning into a sleep: in the middle of that its environment cannot be read.
        let mut shell = Command::new("sh")
            .args(["-c", "setsid sh -c 'echo up; kill -STOP $$' & exit"])
            .env("TMPDIR", bench.temporary())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut up = [0; 3];
        io::Read::read_exact(&mut shell.stdout.take().unwrap(), &mut up).unwrap();
        shell.wait().unwrap();
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        assert_eq!(bench.alive_after(&at_once).len(), 1);
        for process in bench.processes() {
            rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
        }
        bench.check_nothing_left(None);
    }

    #[test]
    fn a_file_that_is_left_is_seen() {
        for (name, is_seen) in [
            ("tmp/anything", true),
            ("tmp/kept-1", false),
            ("work/sub/.coding-agent-x1y2", true),
            ("work/sub/ordinary", false),
        ] {
            let bench = Bench::new();
            bench.write(bench.root().join(name), "");
            let checked = catch_unwind(|| bench.check_nothing_left(Some("kept-")));
            assert_eq!(checked.is_err(), is_seen, "{name}");
        }
    }
}
