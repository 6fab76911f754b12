//! Nothing is left behind, however it ends.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use runloop_simulator::guest::{BoxSpec, Isolation, IsolationChoice, Machine, MachineOptions};

use crate::in_both;
use crate::support::{part, play, run, skip};
use crate::traces::{Busy, Traces, answers_that_nothing_runs, be_busy};

in_both!(
    a_stop_leaves_nothing,
    a_drop_leaves_nothing,
    a_destroyed_devbox_leaves_nothing,
    a_machine_whose_keeper_is_killed_ends_its_devboxes,
);

async fn a_stop_leaves_nothing(machine: Machine) {
    let Busy { guests, traces, .. } = be_busy(&machine).await;
    assert!(traces.left().len() >= 9, "{:?}", traces.left());
    machine.stop().await;
    assert_eq!(traces.left(), [""; 0]);
    drop(guests);
}

async fn a_drop_leaves_nothing(machine: Machine) {
    let Busy { guests, traces, .. } = be_busy(&machine).await;
    drop(machine);
    assert!(traces.left().len() >= 9, "{:?}", traces.left());
    drop(guests);
    // Its shells end in the background, and the last of them ends the machine.
    traces.are_gone().await;
}

async fn a_destroyed_devbox_leaves_nothing(machine: Machine) {
    let Busy {
        guests, mut traces, ..
    } = be_busy(&machine).await;
    for guest in &guests {
        guest.destroy().await.unwrap();
    }
    // The keeper and its directory live as long as the machine.
    traces.helpers.remove(0);
    let directory = traces.directory.take();
    traces.are_gone().await;
    for dir in ["disks", "boxes", "layers"] {
        let entries = directory
            .iter()
            .flat_map(|base| std::fs::read_dir(base.join(dir)).unwrap());
        assert_eq!(entries.count(), 0, "{dir}");
    }
}

async fn a_machine_whose_keeper_is_killed_ends_its_devboxes(machine: Machine) {
    let Busy {
        guests,
        processes,
        mut traces,
    } = be_busy(&machine).await;
    kill(Pid::from_raw(traces.helpers[0]), Signal::SIGKILL).unwrap();
    for process in processes {
        assert_eq!(process.finished().await, 137);
    }
    for guest in &guests {
        assert!(answers_that_nothing_runs(guest).await);
        assert!(guest.resume().await.is_err());
    }
    assert!(machine.boot(BoxSpec::new("c"), None).await.is_err());
    drop((guests, machine));
    // Without a keeper the next start removes the directory.
    traces.directory = None;
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
    let Busy {
        guests: _guests,
        traces,
        ..
    } = be_busy(&machine).await;
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
    assert!(traces.left().len() >= 9, "{:?}", traces.left());
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
