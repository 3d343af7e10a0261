//! [`Processes`]: every process group that Bash started and that may still have members.
//!
//! Nothing that a tool started outlives the program: whoever owns the session calls
//! [`Processes::kill_all`] before it ends, and dropping the last handle does the same.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{
    Pid, Signal, kill_process_group, test_kill_process, test_kill_process_group,
};
use tokio::task::AbortHandle;

/// The process groups of one session. Cheap to clone; all clones are the same list.
///
/// ```
/// use coding_agent::{Bash, BashSettings, Processes};
///
/// let processes = Processes::default();
/// let bash = Bash::new("/tmp", BashSettings::default(), processes.clone());
/// // … calls of `bash` …
/// assert_eq!(processes.count(), 0);
/// processes.kill_all();
/// ```
#[derive(Clone, Debug, Default)]
pub struct Processes(Arc<Groups>);

#[derive(Debug, Default)]
struct Groups(Mutex<Vec<Group>>);

#[derive(Debug)]
struct Group {
    id: Pid,
    leader: Leader,
    /// Who reads what the group still prints, so that it does not die of it.
    reader: Option<AbortHandle>,
}

/// What has become of the process that the group is named after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leader {
    /// Its number cannot be anybody else's.
    Ours,
    /// Its end was taken note of. The number still names our group as long as that has members, but
    /// may be given to another process after that.
    Gone,
}

impl Processes {
    /// How many groups still have members.
    pub fn count(&self) -> usize {
        let mut groups = self.0.lock();
        groups.retain(Group::has_members);
        groups.len()
    }

    /// Kills every group at once.
    pub fn kill_all(&self) {
        self.0.kill_all();
    }

    /// Puts a group on the list, from the moment that its leader was started.
    pub(super) fn add(&self, id: Pid) -> Running {
        let mut groups = self.0.lock();
        groups.retain(Group::has_members);
        groups.push(Group { id, leader: Leader::Ours, reader: None });
        Running { processes: self.clone(), id, on_drop: OnDrop::Kill }
    }
}

impl Groups {
    /// A panic elsewhere leaves the list as good as it was.
    fn lock(&self) -> MutexGuard<'_, Vec<Group>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kill_all(&self) {
        for group in self.lock().drain(..) {
            group.signal(Signal::KILL);
            if let Some(reader) = group.reader {
                reader.abort();
            }
        }
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.kill_all();
    }
}

impl Group {
    fn has_members(&self) -> bool {
        self.is_ours() && test_kill_process_group(self.id).is_ok() && !only_dead_ones(self.id)
    }

    fn signal(&self, signal: Signal) {
        if self.is_ours() {
            // A group that is gone needs no signal.
            let _ = kill_process_group(self.id, signal);
        }
    }

    /// A leader that is gone leaves its number to the group's other members; as long as there are
    /// any, no new process gets it. So a process of that number means that the group is no more.
    fn is_ours(&self) -> bool {
        match self.leader {
            Leader::Ours => true,
            Leader::Gone => test_kill_process(self.id).is_err(),
        }
    }
}

/// Whether every member of a group is dead and only not yet taken note of by whoever inherited it:
/// the first process of a container often never does. Where the system does not tell, they live.
fn only_dead_ones(group: Pid) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    let mut any = false;
    for process in processes.flatten() {
        let Ok(stat) = std::fs::read_to_string(process.path().join("stat")) else { continue };
        // `pid (name) state parent group …`, where the name may hold anything (proc(5)).
        let Some((_, after_name)) = stat.rsplit_once(") ") else { continue };
        let mut fields = after_name.split(' ');
        let (state, in_group) = (fields.next(), fields.nth(1));
        if in_group.and_then(|id| id.parse().ok()).and_then(Pid::from_raw) == Some(group) {
            any = true;
            if !matches!(state, Some("Z" | "X")) {
                return false;
            }
        }
    }
    any
}

/// A group whose command is being waited for. Dropped, it is killed.
#[derive(Debug)]
pub(super) struct Running {
    processes: Processes,
    id: Pid,
    on_drop: OnDrop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnDrop {
    Kill,
    Leave,
}

impl Running {
    /// The group's number.
    pub(super) fn id(&self) -> Pid {
        self.id
    }

    /// The leader's end was taken note of.
    pub(super) fn leader_is_gone(&self) {
        self.with(|group| group.leader = Leader::Gone);
    }

    pub(super) fn has_members(&self) -> bool {
        self.with(|group| group.has_members()).unwrap_or(false)
    }

    /// Asks every member to end, also those that are stopped.
    pub(super) fn terminate(&self) {
        self.with(|group| {
            group.signal(Signal::TERM);
            group.signal(Signal::CONT);
        });
    }

    pub(super) fn kill(&self) {
        self.with(|group| group.signal(Signal::KILL));
    }

    /// Lets the members go on, on the list; `reader` ends with them.
    pub(super) fn leave(mut self, reader: Option<AbortHandle>) {
        self.with(|group| group.reader = reader);
        self.on_drop = OnDrop::Leave;
    }

    fn with<T>(&self, act: impl FnOnce(&mut Group) -> T) -> Option<T> {
        let mut groups = self.processes.0.lock();
        groups.iter_mut().find(|group| group.id == self.id).map(act)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        match self.on_drop {
            OnDrop::Leave => {}
            OnDrop::Kill => {
                self.kill();
                self.processes.0.lock().retain(|group| group.id != self.id);
            }
        }
    }
}
