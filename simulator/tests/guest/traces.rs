//! What a machine could leave behind, as the host sees it.

use std::path::PathBuf;

use nix::ifaddrs::getifaddrs;
use runloop_simulator::guest::{
    BoxSpec, Guest, GuestError, Isolation, Machine, Network, Process, Spawn,
};

use crate::support::{eventually, run, shows};

/// Traces of a machine: processes that hold `mark` among their arguments, its helpers,
/// its directory and its network interfaces.
pub(crate) struct Traces {
    pub(crate) mark: String,
    /// The keeper, then the inits.
    pub(crate) helpers: Vec<i32>,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) interfaces: Vec<String>,
}

/// Devboxes that are busy in every way.
pub(crate) struct Busy {
    pub(crate) guests: Vec<Guest>,
    pub(crate) processes: Vec<Process>,
    pub(crate) traces: Traces,
}

impl Traces {
    /// What of them is there now.
    pub(crate) fn left(&self) -> Vec<String> {
        let helpers = self.helpers.iter().filter(|&&pid| is_helper(pid));
        let processes = marked(&self.mark).into_iter().chain(helpers.copied());
        let mut left: Vec<_> = processes.map(|pid| format!("process {pid}")).collect();
        let directories = self.directory.iter().filter(|dir| dir.exists());
        left.extend(directories.map(|dir| dir.display().to_string()));
        let interfaces = self.interfaces.iter();
        left.extend(interfaces.filter(|name| has_interface(name)).cloned());
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let own = mounts
            .lines()
            .filter(|line| line.contains(" - overlay devbox "));
        left.extend(own.map(str::to_owned));
        left
    }

    pub(crate) async fn are_gone(&self) {
        eventually("nothing is left", async || self.left().is_empty()).await;
    }
}

/// Boots two Devboxes that hold on to everything there is.
pub(crate) async fn be_busy(machine: &Machine) -> Busy {
    let mark = format!("98765.{}", uuid::Uuid::new_v4().simple());
    let (mut guests, mut processes) = (Vec::new(), Vec::new());
    for (id, network) in [("a", Network::Open), ("b", Network::LoopbackOnly)] {
        let mut spec = BoxSpec::new(id);
        spec.network = network;
        let guest = machine.boot(spec, None).await.unwrap();
        // perl keeps the mark among its arguments and ignores what asks it to end.
        let stay = format!("perl -e '$SIG{{$_}} = \"IGNORE\" for keys %SIG; sleep 1000' {mark}");
        let script =
            format!("{stay} & setsid {stay} & (setsid {stay} &); echo x > file; echo up; wait");
        let process = guest.spawn(Spawn::new(script)).await.unwrap();
        shows(process.stdout(), "up").await;
        let queued = guest.shell("s").spawn("echo busy; sleep 1000").unwrap();
        queued.started().await;
        guest.snapshot().await.unwrap();
        processes.extend([process, queued]);
        guests.push(guest);
    }
    eventually("all are there", async || marked(&mark).len() >= 6).await;
    let home = run(&guests[0], "echo $HOME").await.stdout;
    let base = home.trim().split_once("/disks/");
    let traces = Traces {
        helpers: helpers_above(&marked(&mark)),
        directory: base.map(|(base, _)| PathBuf::from(base)),
        interfaces: interfaces_of(&guests[0]),
        mark,
    };
    let isolated = *machine.isolation() == Isolation::Namespaces;
    assert_eq!(traces.helpers.len(), 3, "a keeper and two inits");
    assert_eq!(traces.directory.is_none(), isolated);
    assert_eq!(traces.interfaces.len(), usize::from(isolated));
    Busy {
        guests,
        processes,
        traces,
    }
}

/// Whether the machine knows that it has ended.
pub(crate) async fn answers_that_nothing_runs(guest: &Guest) -> bool {
    matches!(
        guest.spawn(Spawn::new("true")).await,
        Err(GuestError::NotRunning)
    )
}

fn interfaces_of(guest: &Guest) -> Vec<String> {
    let Some(gateway) = guest.gateway_address() else {
        return Vec::new();
    };
    let is_gateway = |address: &nix::ifaddrs::InterfaceAddress| {
        let address = address
            .address
            .as_ref()
            .and_then(|address| address.as_sockaddr_in());
        address.is_some_and(|address| address.ip() == gateway)
    };
    let addresses = getifaddrs().unwrap().filter(is_gateway);
    addresses.map(|address| address.interface_name).collect()
}

fn has_interface(name: &str) -> bool {
    nix::net::if_::if_nametoindex(name).is_ok()
}

fn marked(mark: &str) -> Vec<i32> {
    let names = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse().ok());
    pids.filter(|&pid| {
        let arguments = arguments(pid);
        // Not the shell that was told to start them.
        arguments.starts_with("perl\0") && arguments.contains(mark)
    })
    .collect()
}

/// The helpers among the ancestors of `pids`, the uppermost first.
fn helpers_above(pids: &[i32]) -> Vec<i32> {
    let mut helpers = Vec::new();
    for &pid in pids {
        let above = std::iter::successors(parent(pid), |&pid| parent(pid));
        helpers.extend(above.filter(|&pid| is_helper(pid)));
    }
    helpers.sort_unstable();
    helpers.dedup();
    helpers
}

fn is_helper(pid: i32) -> bool {
    arguments(pid).starts_with("runloop-simulator-guest-helper")
}

fn arguments(pid: i32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn parent(pid: i32) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let parent = status
        .lines()
        .find_map(|line| line.strip_prefix("PPid:\t"))?;
    parent.parse().ok().filter(|&parent| parent > 0)
}
