//! What a simulator has on the machine while it runs, and what of it is left.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::instance::Instance;

/// How long the kernel may take to remove what nobody holds any more.
const SETTLING: Duration = Duration::from_secs(5);

/// A process, told apart from a later one of the same id by its start.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    id: i32,
    started: String,
    command: String,
}

/// The processes and namespaces of one simulator.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    processes: BTreeSet<Process>,
    /// Such as `net:[4026532281]`, without those that were there before.
    namespaces: BTreeSet<String>,
}

impl Traces {
    /// Of the simulator and everything that descends from it; `before` are the
    /// namespaces of the machine before it was started.
    pub(crate) fn of(instance: &Instance, before: &BTreeSet<String>) -> Self {
        let mut traces = Self::default();
        let everyone: Vec<_> = process_ids()
            .filter_map(|id| Some((id, stat(id)?)))
            .collect();
        let mut family = BTreeSet::from([instance.pid().as_raw()]);
        loop {
            let size = family.len();
            family.extend(
                everyone
                    .iter()
                    .filter(|(_, (parent, _))| family.contains(parent))
                    .map(|(id, _)| *id)
                    .collect::<Vec<_>>(),
            );
            if family.len() == size {
                break;
            }
        }
        for (id, (_, started)) in everyone.iter().filter(|(id, _)| family.contains(id)) {
            traces.processes.insert(Process {
                id: *id,
                started: started.clone(),
                command: command_of(*id),
            });
            traces.namespaces.extend(&namespaces_of(*id) - before);
        }
        traces
    }

    /// Waits until nothing is left; what is, if something stays.
    pub(crate) fn left(&self) -> Vec<String> {
        until_gone(|| self.now())
    }

    /// Kills the processes that the simulator works through, but no command.
    pub(crate) fn kill_helpers(&self) {
        let helpers = self
            .processes
            .iter()
            .filter(|process| process.command.starts_with("runloop-simulator"));
        // Stopped first: the others clean up when the keeper is gone before them.
        for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
            for helper in helpers.clone() {
                // Fails only when it has ended already.
                kill(Pid::from_raw(helper.id), signal).unwrap_or_default();
            }
        }
    }

    /// What of them is there at this moment.
    pub(crate) fn now(&self) -> Vec<String> {
        let processes = self.processes.iter().filter(|process| {
            stat(process.id).is_some_and(|(_, started)| started == process.started)
        });
        let held = namespaces_in_use();
        processes
            .map(|process| format!("{process:?}"))
            .chain(self.namespaces.intersection(&held).cloned())
            .collect()
    }
}

/// The namespaces of all processes of the machine.
pub(crate) fn namespaces_in_use() -> BTreeSet<String> {
    process_ids().flat_map(namespaces_of).collect()
}

/// Everything in a directory.
pub(crate) fn files_in(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .flatten()
        .map(|entry| entry.path().display().to_string())
        .collect()
}

/// The mounts that a process sees.
pub(crate) fn mounts_of(process: Pid) -> Vec<String> {
    lines_of(&format!("/proc/{process}/mountinfo"))
}

/// The network interfaces that a process sees.
pub(crate) fn interfaces_of(process: Pid) -> Vec<String> {
    lines_of(&format!("/proc/{process}/net/dev"))
        .iter()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name.trim().to_owned())
        .collect()
}

/// The other processes in the network namespace of one.
pub(crate) fn neighbours_of(process: Pid) -> Vec<String> {
    let network = |id: i32| {
        fs::metadata(format!("/proc/{id}/ns/net"))
            .ok()
            .map(|found| found.ino())
    };
    let theirs = network(process.as_raw()).expect("the process runs");
    process_ids()
        .filter(|id| *id != process.as_raw() && stat(*id).is_some())
        .filter(|id| network(*id) == Some(theirs))
        .map(|id| format!("{id} {}", command_of(id)))
        .collect()
}

/// Waits until there is nothing that `look` sees; what there is, if it stays.
pub(crate) fn until_gone(look: impl Fn() -> Vec<String>) -> Vec<String> {
    let deadline = Instant::now() + SETTLING;
    loop {
        let left = look();
        if left.is_empty() || Instant::now() > deadline {
            return left;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn lines_of(path: &str) -> Vec<String> {
    let text = fs::read_to_string(path).expect("the process runs");
    text.lines().map(str::to_owned).collect()
}

fn process_ids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").expect("/proc is mounted");
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The parent's id and the time of start. A process that has ended but was not
/// waited for by a parent that is not ours is no trace of the simulator.
fn stat(id: i32) -> Option<(i32, String)> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name before it may hold anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let (state, parent, started) = (fields.first()?, fields.get(1)?, fields.get(19)?);
    if *state == "Z" {
        return None;
    }
    Some((parent.parse().ok()?, (*started).to_owned()))
}

fn command_of(id: i32) -> String {
    let bytes = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

fn namespaces_of(id: i32) -> BTreeSet<String> {
    ["mnt", "net", "pid", "uts", "ipc"]
        .iter()
        .filter_map(|kind| {
            let inode = fs::metadata(format!("/proc/{id}/ns/{kind}")).ok()?.ino();
            Some(format!("{kind}:[{inode}]"))
        })
        .collect()
}
