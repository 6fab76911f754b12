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
    devboxes: BTreeMap<String, Devbox>,
    /// The host's ends of networks; the kernel removes one some time after its Devbox.
    outside_names: Vec<String>,
}

/// A Devbox from the making of its disk until it is forgotten.
#[derive(Default)]
struct Devbox {
    /// The process that is its init, while it runs.
    init: Option<Pid>,
    /// What to do when the init has ended; not empty while it is being ended.
    at_end: Vec<AtEnd>,
    /// Requests that came while it was being ended.
    deferred: Vec<Request>,
}

struct Request {
    id: u64,
    body: KeeperRequest,
    attached: VecDeque<OwnedFd>,
}

struct AtEnd {
    request: u64,
    disk: Disk,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Disk {
    Keep,
    /// Keep it, but the Devbox of this machine is no more.
    Release,
    Remove,
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
        devboxes: BTreeMap::new(),
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
                let (id, body) = (request.id, request.body);
                self.handle(Request { id, body, attached })?;
            }
        }
    }

    fn handle(&mut self, mut request: Request) -> io::Result<()> {
        if let Some(devbox) = self.being_ended(&request.body) {
            devbox.deferred.push(request);
            return Ok(());
        }
        let done = |()| (Answer::Done, Vec::new());
        let id = request.id;
        let result = match request.body {
            KeeperRequest::CreateDisk { box_id, max_bytes } => self
                .create_disk(box_id, max_bytes)
                .map(|(disk, is_new)| (Answer::Disk { is_new }, vec![disk])),
            KeeperRequest::Start { box_id, init } => match request.attached.pop_front() {
                Some(socket) => self.start(&box_id, &init, socket).map(done),
                None => Err(Errno::EINVAL.into()),
            },
            KeeperRequest::Stop { box_id } => return self.end(id, &box_id, Disk::Keep),
            KeeperRequest::Release { box_id } => return self.end(id, &box_id, Disk::Release),
            KeeperRequest::RemoveDisk { box_id } => return self.end(id, &box_id, Disk::Remove),
            KeeperRequest::OpenLayer { layer_id, create } => {
                let dir = self.store.open_layer(&layer_id, create);
                dir.map(|dir| (Answer::Done, vec![dir]))
            }
            KeeperRequest::RemoveLayer { layer_id } => self.store.remove_layer(&layer_id).map(done),
        };
        match result {
            Ok((answer, attached)) => self.socket.send(id, answer, &attached),
            Err(error) => self.socket.send(id, failed(&error), &[]),
        }
    }

    /// The Devbox that `request` would make or start, if one of that name is just ending.
    fn being_ended(&mut self, request: &KeeperRequest) -> Option<&mut Devbox> {
        let (KeeperRequest::CreateDisk { box_id, .. } | KeeperRequest::Start { box_id, .. }) =
            request
        else {
            return None;
        };
        self.devboxes
            .get_mut(box_id)
            .filter(|devbox| !devbox.at_end.is_empty())
    }

    fn create_disk(
        &mut self,
        box_id: String,
        max_bytes: Option<u64>,
    ) -> io::Result<(OwnedFd, bool)> {
        if self.devboxes.contains_key(&box_id) {
            return Err(Errno::EEXIST.into());
        }
        let made = self.store.create_disk(&box_id, max_bytes)?;
        self.devboxes.insert(box_id, Devbox::default());
        Ok(made)
    }

    fn start(&mut self, box_id: &str, config: &InitConfig, socket: OwnedFd) -> io::Result<()> {
        let devbox = self.devboxes.get_mut(box_id).ok_or(Errno::ENOENT)?;
        if devbox.init.is_some() {
            return Err(Errno::EEXIST.into());
        }
        let place = self.store.place(box_id);
        let begin = || -> Infallible { init::run(socket, &place, config) };
        devbox.init = Some(self.store.fork_init(begin)?);
        if config.network == Network::Open && place.host.is_some() {
            self.outside_names.push(place.outside_name);
        }
        Ok(())
    }

    /// Ends a Devbox; answers when its init is gone and its disk is dealt with.
    fn end(&mut self, request: u64, box_id: &str, disk: Disk) -> io::Result<()> {
        let at_end = AtEnd { request, disk };
        match self.devboxes.get_mut(box_id) {
            Some(Devbox {
                init: Some(init),
                at_end: waiting,
                ..
            }) => {
                waiting.push(at_end);
                self.store.end_init(*init);
                Ok(())
            }
            _ => self.finish(box_id, &at_end),
        }
    }

    fn finish(&mut self, box_id: &str, at_end: &AtEnd) -> io::Result<()> {
        if at_end.disk != Disk::Keep {
            self.devboxes.remove(box_id);
        }
        let dealt_with = match at_end.disk {
            Disk::Remove => self.store.remove_disk(box_id),
            Disk::Keep | Disk::Release => Ok(()),
        };
        let answer = dealt_with.map_or_else(|error| failed(&error), |()| Answer::Done);
        self.socket.send(at_end.request, answer, &[])
    }

    fn reap(&mut self) -> io::Result<()> {
        while let Some(pid) = reap_one() {
            network::forget_gone(&mut self.outside_names);
            let is_it = |devbox: &Devbox| devbox.init == Some(pid);
            let found = self.devboxes.iter_mut().find(|(_, devbox)| is_it(devbox));
            let Some((box_id, devbox)) = found else {
                continue;
            };
            let box_id = box_id.clone();
            let ended = std::mem::take(devbox);
            for at_end in ended.at_end {
                self.finish(&box_id, &at_end)?;
            }
            for request in ended.deferred {
                self.handle(request)?;
            }
        }
        Ok(())
    }

    fn end_all(&mut self) {
        let inits: Vec<Pid> = self
            .devboxes
            .values()
            .filter_map(|devbox| devbox.init)
            .collect();
        for init in &inits {
            self.store.end_init(*init);
        }
        for init in inits {
            // Fails only when it was reaped before.
            let _ = waitpid(init, None);
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
