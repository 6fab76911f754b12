//! Nothing is left behind, however it ends.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use runloop_simulator::guest::{
    BoxSpec, Isolation, IsolationChoice, Machine, MachineOptions, Network, Spawn,
};

use crate::in_both;
use crate::support::{eventually, part, play, run, shows, skip};

in_both!(a_stop_leaves_nothing, a_drop_leaves_nothing);

/// What a machine could leave: processes that hold `mark` among their arguments, its
/// keeper and inits, its directory and its interfaces.
struct Traces {
    mark: String,
    helpers: Vec<i32>,
    directory: Option<PathBuf>,
    interfaces: Vec<String>,
}

impl Traces {
    fn left(&self) -> Vec<String> {
        let mut left = Vec::new();
        for pid in pids() {
            let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let arguments = String::from_utf8_lossy(&arguments).into_owned();
            if arguments.contains(&self.mark)
                || self.helpers.contains(&pid) && !arguments.is_empty()
            {
                left.push(format!("process {pid}"));
            }
        }
        left.extend(
            self.directory
                .iter()
                .filter(|dir| dir.exists())
                .map(|dir| format!("{dir:?}")),
        );
        left.extend(
            interfaces()
                .into_iter()
                .filter(|name| self.interfaces.contains(name)),
        );
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        left.extend(
            mounts
                .lines()
                .filter(|line| line.contains("devbox"))
                .map(str::to_owned),
        );
        left
    }

    async fn are_gone(&self) {
        eventually("nothing is left", async || self.left().is_empty()).await;
    }
}

fn pids() -> Vec<i32> {
    let names = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name());
    names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect()
}

fn parent(pid: i32) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("PPid:\t"))?
        .parse()
        .ok()
}

/// The helper processes below `ancestor`.
fn helpers_of(ancestor: i32) -> Vec<i32> {
    let mut found = vec![ancestor];
    let mut next = 0;
    while let Some(&above) = found.get(next) {
        found.extend(pids().into_iter().filter(|&pid| parent(pid) == Some(above)));
        next += 1;
    }
    let is_helper = |pid: &i32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        name.starts_with("runloop-simulator-guest-helper")
    };
    found.into_iter().filter(is_helper).collect()
}

fn interfaces() -> Vec<String> {
    let names = std::fs::read_dir("/sys/class/net").unwrap().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("rl-")).collect()
}

/// Boots Devboxes that are busy in every way; what could be left of them.
async fn be_busy(machine: &Machine) -> (Vec<runloop_simulator::guest::Guest>, Traces) {
    let mark = format!("98765.{}", uuid::Uuid::new_v4().simple());
    let others = interfaces();
    let mut guests = Vec::new();
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
        guest
            .shell("s")
            .spawn("echo busy; sleep 1000")
            .unwrap()
            .started()
            .await;
        guest.snapshot().await.unwrap();
        guests.push(guest);
    }
    let own = i32::try_from(std::process::id()).unwrap();
    let home = run(&guests[0], "echo $HOME").await.stdout;
    let base = home
        .trim()
        .split_once("/disks/")
        .map(|(base, _)| PathBuf::from(base));
    let interfaces = interfaces()
        .into_iter()
        .filter(|name| !others.contains(name))
        .collect();
    let traces = Traces {
        mark,
        helpers: helpers_of(own),
        directory: base,
        interfaces,
    };
    let isolated = *machine.isolation() == Isolation::Namespaces;
    assert!(traces.helpers.len() >= 3, "{:?}", traces.helpers);
    assert_eq!(traces.directory.is_none(), isolated);
    (guests, traces)
}

async fn a_stop_leaves_nothing(machine: Machine) {
    let (guests, traces) = be_busy(&machine).await;
    assert!(traces.left().len() >= 6, "{:?}", traces.left());
    machine.stop().await;
    assert_eq!(traces.left(), [""; 0]);
    drop(guests);
}

async fn a_drop_leaves_nothing(machine: Machine) {
    let (guests, traces) = be_busy(&machine).await;
    drop(machine);
    assert!(traces.left().len() >= 6, "{:?}", traces.left());
    drop(guests);
    // Its shells end in the background, and the last of them ends the machine.
    traces.are_gone().await;
}

/// Plays the simulator that is killed: tells what it could leave, then waits.
#[expect(clippy::print_stdout, reason = "the parent reads it")]
async fn wait_to_be_killed(isolation: IsolationChoice) {
    let machine = Machine::start(MachineOptions {
        isolation,
        ..Default::default()
    })
    .await
    .unwrap();
    let (_guests, traces) = be_busy(&machine).await;
    let list = |pids: &[i32]| {
        pids.iter()
            .map(i32::to_string)
            .collect::<Vec<_>>()
            .join(",")
    };
    let directory = traces.directory.unwrap_or_default();
    println!(
        "\ntraces {} {} {} {}",
        traces.mark,
        list(&traces.helpers),
        traces.interfaces.join(","),
        directory.display()
    );
    std::future::pending::<()>().await;
}

/// Starts a simulator in a process of its own; that process and what it could leave.
fn start_victim(kind: &str, test: &str) -> (std::process::Child, Traces) {
    let mut command = play(kind, test, "exec");
    let mut victim = command
        .process_group(0)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let line = lines
        .into_iter()
        .find(|line| line.starts_with("traces "))
        .expect("it starts");
    let fields: Vec<_> = line.split(' ').collect();
    let split = |text: &str| {
        text.split(',')
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let traces = Traces {
        mark: fields[1].to_owned(),
        helpers: split(fields[2])
            .iter()
            .map(|pid| pid.parse().unwrap())
            .collect(),
        interfaces: split(fields[3]),
        directory: (!fields[4].is_empty()).then(|| PathBuf::from(fields[4])),
    };
    (victim, traces)
}

async fn kill_simulator(kind: &str, test: &str) {
    let (mut victim, traces) = start_victim(kind, test);
    assert!(traces.left().len() >= 6, "{:?}", traces.left());
    victim.kill().unwrap();
    victim.wait().unwrap();
    traces.are_gone().await;
}

#[tokio::test]
async fn a_killed_plain_simulator_leaves_nothing() {
    if part().is_some() {
        return wait_to_be_killed(IsolationChoice::Plain).await;
    }
    kill_simulator(
        "plain",
        "leftovers::a_killed_plain_simulator_leaves_nothing",
    )
    .await;
}

#[tokio::test]
async fn a_killed_simulator_with_namespaces_leaves_nothing() {
    if part().is_some() {
        return wait_to_be_killed(IsolationChoice::Auto).await;
    }
    if !has_namespaces().await {
        return;
    }
    kill_simulator(
        "auto",
        "leftovers::a_killed_simulator_with_namespaces_leaves_nothing",
    )
    .await;
}

/// The simulator, its keeper and its inits, all at once.
fn kill_everything(victim: &mut std::process::Child, traces: &Traces) {
    for &pid in &traces.helpers {
        kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    }
    for &pid in &traces.helpers {
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    }
    victim.kill().unwrap();
    victim.wait().unwrap();
}

#[tokio::test]
async fn namespaces_leave_nothing_even_when_the_helpers_are_killed_too() {
    if part().is_some() {
        return wait_to_be_killed(IsolationChoice::Auto).await;
    }
    if !has_namespaces().await {
        return;
    }
    let test = "leftovers::namespaces_leave_nothing_even_when_the_helpers_are_killed_too";
    let (mut victim, traces) = start_victim("auto", test);
    kill_everything(&mut victim, &traces);
    traces.are_gone().await;
}

#[tokio::test]
async fn the_next_start_sweeps_what_killed_plain_helpers_left() {
    if part().is_some() {
        return wait_to_be_killed(IsolationChoice::Plain).await;
    }
    let test = "leftovers::the_next_start_sweeps_what_killed_plain_helpers_left";
    let (mut victim, traces) = start_victim("plain", test);
    kill_everything(&mut victim, &traces);
    let options = MachineOptions {
        isolation: IsolationChoice::Plain,
        ..Default::default()
    };
    let living = Machine::start(options.clone()).await.unwrap();
    let guest = living.boot(BoxSpec::new("box"), None).await.unwrap();
    traces.are_gone().await;
    Machine::start(options).await.unwrap();
    assert_eq!(run(&guest, "cd && echo alive").await.stdout, "alive\n");
}

async fn has_namespaces() -> bool {
    let machine = Machine::start(MachineOptions::default()).await.unwrap();
    match machine.isolation() {
        Isolation::Namespaces => true,
        Isolation::Plain { reason } => {
            skip(&format!("no namespaces here: {reason}"));
            false
        }
    }
}
