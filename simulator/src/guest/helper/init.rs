//! The init of one Devbox: starts its programs, reaps its orphans, opens its files.
//!
//! It lives until it is told to end or the simulator closes the socket, and takes every
//! process of the Devbox with it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::frames::{FrameSocket, failed};
use super::keeper::{wait_for_either, watch_signals};
use super::launch::{self, Stdio};
use super::leaders::Leaders;
use super::store::Place;
use super::surroundings::Surroundings;
use super::{listing, open, system};
use crate::guest::protocol::{Answer, InitConfig, InitRequest, SpawnRequest};

struct Init {
    socket: FrameSocket,
    signals: SignalFd,
    surroundings: Surroundings,
    leaders: Leaders,
}

type Reply = (Answer, Vec<OwnedFd>);

/// Turns this process, fresh from fork, into the init of a Devbox.
pub(super) fn run(socket: OwnedFd, place: &Place<'_>, config: &InitConfig) -> Infallible {
    system::close_all_but(socket.as_fd());
    let socket = FrameSocket::new(socket);
    match Surroundings::enter(place, config) {
        // An error of the socket means that the simulator is gone.
        Ok(surroundings) => drop(serve(socket, surroundings)),
        Err(error) => drop(socket.send(0, failed(&error), &[])),
    }
    end_descendants();
    system::exit(0)
}

fn serve(socket: FrameSocket, surroundings: Surroundings) -> io::Result<()> {
    let signals = watch_signals(&[Signal::SIGCHLD, Signal::SIGTERM])?;
    let ready = Answer::Ready {
        gateway_address: surroundings.gateway_address,
        path: surroundings.path.clone(),
    };
    socket.send(0, ready, &[])?;
    let mut init = Init {
        socket,
        signals,
        surroundings,
        leaders: Leaders::default(),
    };
    loop {
        let (requested, signalled) = wait_for_either(&init.socket, &init.signals)?;
        if signalled && init.take_signals()? {
            return Ok(());
        }
        if requested {
            let Some((request, attached)) = init.socket.receive()? else {
                return Ok(());
            };
            init.handle(request.id, request.body, attached)?;
        }
    }
}

/// Kills what is below this process until nothing is. What a killed process leaves
/// becomes this process's child, so every round sees all that is left.
fn end_descendants() {
    loop {
        for pid in listing::descendant_ids() {
            // It may have ended already.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        if waitpid(Pid::from_raw(-1), None) == Err(Errno::ECHILD) {
            return;
        }
    }
}

impl Init {
    /// Reaps what has ended; whether the init shall end as well.
    fn take_signals(&mut self) -> io::Result<bool> {
        let mut shall_end = false;
        while let Some(signal) = self.signals.read_signal()? {
            shall_end |= signal.ssi_signo == Signal::SIGTERM as u32;
        }
        loop {
            let (pid, code) = match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, code),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, 128 + signal as i32),
                Ok(_) | Err(_) => return Ok(shall_end),
            };
            if let Some(exec) = self.leaders.mark_ended(pid) {
                self.socket.send(0, Answer::Exited { exec, code }, &[])?;
            }
        }
    }

    fn handle(
        &mut self,
        id: u64,
        request: InitRequest,
        attached: VecDeque<OwnedFd>,
    ) -> io::Result<()> {
        match self.answer(request, attached) {
            Ok((answer, attached)) => self.socket.send(id, answer, &attached),
            Err(error) => self.socket.send(id, failed(&error), &[]),
        }
    }

    fn answer(&mut self, request: InitRequest, attached: VecDeque<OwnedFd>) -> io::Result<Reply> {
        let signalled = |delivered| (Answer::Signalled { delivered }, Vec::new());
        match request {
            InitRequest::Spawn(spawn) => self.spawn(&spawn, attached),
            InitRequest::SpawnOnTerminal {
                spawn,
                columns,
                rows,
            } => self.spawn_on_terminal(&spawn, columns, rows),
            InitRequest::Signal {
                exec,
                signal,
                group,
            } => self.leaders.signal(exec, signal, group).map(signalled),
            InitRequest::SignalForeground { exec, signal } => {
                self.leaders.signal_foreground(exec, signal).map(signalled)
            }
            InitRequest::Resize {
                exec,
                columns,
                rows,
            } => {
                let master = self.leaders.terminal(exec).ok_or(Errno::ENOTTY)?;
                system::resize_terminal(master, columns, rows)?;
                Ok(done())
            }
            InitRequest::HangUp { exec } => {
                self.leaders.hang_up(exec);
                Ok(done())
            }
            InitRequest::Open { path, user, write } => {
                let file = open::open_file(&path, self.surroundings.switched(&user), write)?;
                Ok((Answer::Done, vec![file]))
            }
            InitRequest::Socket => {
                let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
                let fresh = socket(AddressFamily::Inet, SockType::Stream, flags, None)?;
                Ok((Answer::Done, vec![fresh]))
            }
            InitRequest::MakeFifo { path, user } => {
                let ends = open::make_fifo(&path, self.surroundings.switched(&user))?;
                Ok((Answer::Done, ends.into()))
            }
            InitRequest::Unlink { path } => {
                std::fs::remove_file(path)?;
                Ok(done())
            }
            InitRequest::Processes => Ok((Answer::Processes(listing::descendants()), Vec::new())),
            InitRequest::TemporaryFiles => {
                let paths = listing::files_under(&self.surroundings.temporary_dirs);
                Ok((Answer::Paths(paths), Vec::new()))
            }
        }
    }

    fn spawn(
        &mut self,
        spawn: &SpawnRequest,
        mut attached: VecDeque<OwnedFd>,
    ) -> io::Result<Reply> {
        let stdin = if spawn.null_stdin {
            None
        } else {
            attached.pop_front()
        };
        let (Some(stdout), Some(stderr)) = (attached.pop_front(), attached.pop_front()) else {
            return Err(Errno::EINVAL.into());
        };
        let stdio = Stdio::Pipes {
            stdin,
            stdout,
            stderr,
            status: attached.pop_front(),
        };
        let pid = launch::launch(spawn, stdio, self.surroundings.switched(&spawn.user))?;
        self.leaders.add(spawn.exec, pid, None);
        Ok((Answer::Started { pid: pid.as_raw() }, Vec::new()))
    }

    fn spawn_on_terminal(
        &mut self,
        spawn: &SpawnRequest,
        columns: u16,
        rows: u16,
    ) -> io::Result<Reply> {
        let user = self.surroundings.switched(&spawn.user);
        let (master, slave) = launch::open_terminal(user)?;
        system::resize_terminal(&master, columns, rows)?;
        let shared = master.as_fd().try_clone_to_owned()?;
        let pid = launch::launch(spawn, Stdio::Terminal(slave), user)?;
        self.leaders.add(spawn.exec, pid, Some(master));
        Ok((Answer::Started { pid: pid.as_raw() }, vec![shared]))
    }
}

fn done() -> Reply {
    (Answer::Done, Vec::new())
}
