//! The keeper: starts and ends inits, owns where disks and layers lie.
//!
//! It lives until the simulator closes its end of the socket, by will or by death, then
//! ends every init and removes what it made.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, dup2_stdin, setsid};

use super::frames::{FrameSocket, failed};
use super::store::Store;
use super::system;
use super::{init, network};
use crate::guest::protocol::{Answer, Hello, InitConfig, KeeperRequest, Setup};
use crate::guest::spec::Network;

struct Keeper {
    socket: FrameSocket,
    children: SignalFd,
    store: Store,
    inits: BTreeMap<String, Init>,
    /// The host's ends of networks; the kernel removes one some time after its Devbox.
    outside_names: Vec<String>,
}

/// A running init, and what to do when it has ended.
struct Init {
    pid: Pid,
    at_end: Vec<AtEnd>,
}

struct AtEnd {
    request: u64,
    remove_disk: bool,
}

/// Turns this process, fresh from exec, into a keeper.
pub(super) fn run() -> ! {
    // Every failure before the greeting means that there is nobody to tell.
    let _ = serve();
    system::exit(0)
}

fn serve() -> io::Result<()> {
    let mut socket = take_socket()?;
    // A session of its own: a terminal's Ctrl-C is the simulator's to act on.
    let _ = setsid();
    system::reset_signals();
    system::reset_limits();
    let Some((setup, _)) = socket.receive::<Setup>()? else {
        return Ok(());
    };
    let store = match Store::open(&setup.body) {
        Ok(store) => store,
        Err(error) => return socket.send(setup.id, failed(&error), &[]),
    };
    let hello = Hello {
        plain_reason: store.plain_reason().map(str::to_owned),
        disks_dir: store.disks_dir().to_owned(),
        boxes_dir: store.boxes_dir().to_owned(),
    };
    socket.send(setup.id, Answer::Hello(hello), &[])?;
    let children = watch_signals(&[Signal::SIGCHLD])?;
    let mut keeper = Keeper {
        socket,
        children,
        store,
        inits: BTreeMap::new(),
        outside_names: Vec::new(),
    };
    // An error of the socket is its end.
    let _ = keeper.serve();
    keeper.end_all();
    keeper.store.close();
    Ok(())
}

/// The socket is standard input; /dev/null takes its place.
fn take_socket() -> io::Result<FrameSocket> {
    let socket = fcntl(io::stdin(), FcntlArg::F_DUPFD_CLOEXEC(3))?;
    let socket = system::adopt(socket);
    system::close_all_but(socket.as_fd());
    dup2_stdin(std::fs::File::open("/dev/null")?)?;
    Ok(FrameSocket::new(socket))
}

/// Blocks `signals` and makes them readable.
pub(super) fn watch_signals(signals: &[Signal]) -> io::Result<SignalFd> {
    let set: SigSet = signals.iter().copied().collect();
    set.thread_block()?;
    Ok(SignalFd::with_flags(
        &set,
        SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK,
    )?)
}

/// Waits until one of two descriptors is readable; says which are.
pub(super) fn wait_for_either(one: impl AsFd, other: impl AsFd) -> io::Result<(bool, bool)> {
    let mut watched = [one.as_fd(), other.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
    match poll(&mut watched, PollTimeout::NONE) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(watched
        .each_ref()
        .map(|fd| fd.any().unwrap_or(false))
        .into())
}

impl Keeper {
    fn serve(&mut self) -> io::Result<()> {
        loop {
            let (requested, ended) = wait_for_either(&self.socket, &self.children)?;
            if ended {
                while let Ok(Some(_)) = self.children.read_signal() {}
                self.reap()?;
            }
            if requested {
                let Some((request, attached)) = self.socket.receive()? else {
                    return Ok(());
                };
                self.handle(request.id, request.body, attached)?;
            }
        }
    }

    fn handle(
        &mut self,
        id: u64,
        request: KeeperRequest,
        mut attached: VecDeque<OwnedFd>,
    ) -> io::Result<()> {
        let done = |()| (Answer::Done, Vec::new());
        let result = match request {
            KeeperRequest::CreateDisk { box_id, max_bytes } => self
                .store
                .create_disk(&box_id, max_bytes)
                .map(|(disk, is_new)| (Answer::Disk { is_new }, vec![disk])),
            KeeperRequest::Start { box_id, init } => match attached.pop_front() {
                Some(socket) => self.start(box_id, init, socket).map(done),
                None => Err(Errno::EINVAL.into()),
            },
            KeeperRequest::Stop { box_id } => return self.stop(id, &box_id, false),
            KeeperRequest::RemoveDisk { box_id } => return self.stop(id, &box_id, true),
            KeeperRequest::OpenLayer { layer_id, create } => self
                .store
                .open_layer(&layer_id, create)
                .map(|dir| (Answer::Done, vec![dir])),
            KeeperRequest::RemoveLayer { layer_id } => self.store.remove_layer(&layer_id).map(done),
        };
        match result {
            Ok((answer, attached)) => self.socket.send(id, answer, &attached),
            Err(error) => self.socket.send(id, failed(&error), &[]),
        }
    }

    fn start(&mut self, box_id: String, config: InitConfig, socket: OwnedFd) -> io::Result<()> {
        if self.inits.contains_key(&box_id) {
            return Err(Errno::EEXIST.into());
        }
        let place = self.store.place(&box_id);
        let begin = || -> Infallible { init::run(socket, &place, &config) };
        let pid = self.store.fork_init(begin)?;
        if config.network == Network::Open && place.host.is_some() {
            self.outside_names.push(place.outside_name);
        }
        self.inits.insert(
            box_id,
            Init {
                pid,
                at_end: Vec::new(),
            },
        );
        Ok(())
    }

    /// Answers when the init is gone and, if asked, its disk.
    fn stop(&mut self, request: u64, box_id: &str, remove_disk: bool) -> io::Result<()> {
        let at_end = AtEnd {
            request,
            remove_disk,
        };
        match self.inits.get_mut(box_id) {
            Some(init) => {
                init.at_end.push(at_end);
                self.store.end_init(init.pid);
                Ok(())
            }
            None => self.finish(box_id, &at_end),
        }
    }

    fn finish(&mut self, box_id: &str, at_end: &AtEnd) -> io::Result<()> {
        let removed = if at_end.remove_disk {
            self.store.remove_disk(box_id)
        } else {
            Ok(())
        };
        let answer = removed.map_or_else(|error| failed(&error), |()| Answer::Done);
        self.socket.send(at_end.request, answer, &[])
    }

    fn reap(&mut self) -> io::Result<()> {
        while let Some(pid) = reap_one() {
            let ended = self.inits.iter().find(|(_, init)| init.pid == pid);
            let Some(box_id) = ended.map(|(box_id, _)| box_id.clone()) else {
                continue;
            };
            let init = self.inits.remove(&box_id);
            network::forget_gone(&mut self.outside_names);
            for at_end in init.map(|init| init.at_end).unwrap_or_default() {
                self.finish(&box_id, &at_end)?;
            }
        }
        Ok(())
    }

    fn end_all(&mut self) {
        for init in self.inits.values() {
            self.store.end_init(init.pid);
        }
        for init in std::mem::take(&mut self.inits).into_values() {
            // Fails only when it was reaped before.
            let _ = waitpid(init.pid, None);
        }
        network::wait_until_gone(&self.outside_names);
    }
}

/// A child that has ended, if there is one.
fn reap_one() -> Option<Pid> {
    match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
        Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, _, _)) => Some(pid),
        _ => None,
    }
}
