//! Child processes that end together with their own children, and none of which outlives this process.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What must not outlive this process.
#[derive(Debug)]
struct Leftovers {
    /// Groups whose leader has not been waited for, so that their numbers are still theirs.
    groups: BTreeSet<u32>,
    folders: BTreeSet<PathBuf>,
}

static LEFTOVERS: Mutex<Leftovers> =
    Mutex::new(Leftovers { groups: BTreeSet::new(), folders: BTreeSet::new() });

fn leftovers() -> MutexGuard<'static, Leftovers> {
    LEFTOVERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nobody is started while this is held, and whoever hears a worker waits: they do not see how it ended.
#[derive(Debug)]
#[must_use = "hold it until the process ends"]
pub struct Ending {
    _held: MutexGuard<'static, Leftovers>,
}

/// Kills every worker that this process has started, with the workers' own children, and removes the folders of tensors in
/// transit. This is for the handler of an interrupt, which then ends the process.
pub fn end_all() -> Ending {
    let mut leftovers = leftovers();
    leftovers.groups.iter().for_each(|&leader| kill(leader));
    for folder in std::mem::take(&mut leftovers.folders) {
        let _ = std::fs::remove_dir_all(folder);
    }
    Ending { _held: leftovers }
}

/// [`end_all`] removes this folder too, until [`forget_folder`].
pub(crate) fn remember_folder(folder: &Path) {
    leftovers().folders.insert(folder.to_owned());
}

pub(crate) fn forget_folder(folder: &Path) {
    leftovers().folders.remove(folder);
}

/// A child process that leads a process group of its own. Dropping it kills the whole group. (Where the system has no process
/// groups, the child alone.)
#[derive(Debug)]
pub(crate) struct Group {
    leader: Child,
}

impl Group {
    /// Starts a process.
    pub(crate) fn start(command: &mut Command) -> io::Result<Group> {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        // Held over the start: a process is started before `end_all`, and killed by it, or not at all.
        let mut leftovers = leftovers();
        let leader = command.spawn()?;
        leftovers.groups.insert(leader.id());
        Ok(Group { leader })
    }

    /// The number of the process that was started, which is the group's too.
    pub(crate) fn id(&self) -> u32 {
        self.leader.id()
    }

    /// The process that was started, for its pipes.
    pub(crate) fn leader(&mut self) -> &mut Child {
        &mut self.leader
    }

    /// Has the process that was started ended? Others of its group may still run.
    pub(crate) fn has_ended(&mut self) -> bool {
        // It stays unreaped, so that the group's number is not given to another before `end`.
        #[cfg(unix)]
        {
            use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            !matches!(waitid(WaitId::Pid(Pid::from_child(&self.leader)), options), Ok(None))
        }
        #[cfg(not(unix))]
        {
            !matches!(self.leader.try_wait(), Ok(None))
        }
    }

    /// Kills whoever of the group still runs. Returns how the process that was started ended, if it had ended before.
    pub(crate) fn end(&mut self) -> io::Result<ExitStatus> {
        let mut leftovers = leftovers();
        if leftovers.groups.remove(&self.leader.id()) {
            kill(self.leader.id());
            #[cfg(not(unix))]
            let _ = self.leader.kill();
        }
        drop(leftovers);
        self.leader.wait()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

#[cfg(unix)]
fn kill(leader: u32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if let Some(group) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        // Where nobody is left, there is nothing to do.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

#[cfg(not(unix))]
fn kill(_: u32) {}
