//! The programs that an init was asked to start, and signals to them.

use std::collections::BTreeMap;
use std::io;

use nix::errno::Errno;
use nix::pty::PtyMaster;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, tcgetpgrp};

/// Ended leaders that are kept before those whose groups are gone are forgotten.
const MAX_ENDED: usize = 256;

/// Every program that runs, and those that have ended but may have left their process
/// group behind.
#[derive(Default)]
pub(super) struct Leaders {
    by_exec: BTreeMap<u64, Leader>,
    ended: usize,
}

struct Leader {
    pid: Pid,
    has_ended: bool,
    terminal: Option<PtyMaster>,
}

impl Leaders {
    pub(super) fn add(&mut self, exec: u64, pid: Pid, terminal: Option<PtyMaster>) {
        if self.ended > MAX_ENDED {
            let is_alive = |leader: &Leader| !leader.has_ended || killpg(leader.pid, None).is_ok();
            self.by_exec.retain(|_, leader| is_alive(leader));
            self.ended = self
                .by_exec
                .values()
                .filter(|leader| leader.has_ended)
                .count();
        }
        self.by_exec.insert(
            exec,
            Leader {
                pid,
                has_ended: false,
                terminal,
            },
        );
    }

    /// Notes that `pid` was reaped; what it was started as.
    pub(super) fn mark_ended(&mut self, pid: Pid) -> Option<u64> {
        let is_it = |leader: &Leader| leader.pid == pid && !leader.has_ended;
        let (exec, leader) = self.by_exec.iter_mut().find(|(_, leader)| is_it(leader))?;
        leader.has_ended = true;
        leader.terminal = None;
        self.ended += 1;
        Some(*exec)
    }

    pub(super) fn terminal(&self, exec: u64) -> Option<&PtyMaster> {
        self.by_exec.get(&exec)?.terminal.as_ref()
    }

    /// Signals a leader or its group; whether there was one. A leader that was reaped is
    /// never signalled, nor a group whose number now belongs to a later leader.
    pub(super) fn signal(&self, exec: u64, signal: i32, group: bool) -> io::Result<bool> {
        let signal = Signal::try_from(signal)?;
        let Some(leader) = self.by_exec.get(&exec) else {
            return Ok(false);
        };
        let (pid, has_ended) = (leader.pid, leader.has_ended);
        let is_reused = || {
            self.by_exec
                .values()
                .any(|one| one.pid == pid && !one.has_ended)
        };
        match (group, has_ended) {
            (false, true) => Ok(false),
            (true, true) if is_reused() => Ok(false),
            // Fresh from its fork a leader has no group yet: it is all there is.
            (true, false) => match killpg(pid, signal) {
                Err(Errno::ESRCH) => delivered(kill(pid, signal)),
                sent => delivered(sent),
            },
            (true, true) => delivered(killpg(pid, signal)),
            (false, false) => delivered(kill(pid, signal)),
        }
    }

    /// Closes this process's end of a terminal.
    pub(super) fn hang_up(&mut self, exec: u64) {
        if let Some(leader) = self.by_exec.get_mut(&exec) {
            leader.terminal = None;
        }
    }

    /// Signals the group in the foreground of a terminal; whether there was one.
    pub(super) fn signal_foreground(&self, exec: u64, signal: i32) -> io::Result<bool> {
        let signal = Signal::try_from(signal)?;
        let Some(terminal) = self.terminal(exec) else {
            return Ok(false);
        };
        match tcgetpgrp(terminal) {
            Ok(group) if group.as_raw() > 0 => delivered(killpg(group, signal)),
            Ok(_) | Err(_) => Ok(false),
        }
    }
}

fn delivered(result: nix::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(Errno::ESRCH) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
