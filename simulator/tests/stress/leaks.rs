//! Nothing of a simulator is left on the machine when it has ended.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::Client;
use crate::enclosure::Enclosure;
use crate::instance::Instance;
use crate::witness::{self, Traces};

/// Processes that try to outlive their command, each in its own way.
const STAYERS: [&str; 4] = [
    // A child of the shell that is waited for.
    "sleep 1001",
    // A daemon in a session of its own.
    "setsid sleep 1002 </dev/null >/dev/null 2>&1 &",
    // One whose parent is gone and that ignores what can be ignored.
    "(trap '' HUP TERM INT; setsid sleep 1003 </dev/null >/dev/null 2>&1 &)",
    // One that keeps making others.
    "(while :; do sleep 0.05; done) </dev/null >/dev/null 2>&1 &",
];

/// Boxes of every kind with processes of every kind: running, under a policy
/// that denies everything, with a tunnel, suspended, shut down, snapshotted.
async fn fill(url: &str) {
    let client = Client::new(url);
    let policy = client
        .post("/v1/network-policies", json!({ "name": "deny" }))
        .await;
    let blocked = json!({ "launch_parameters": { "network_policy_id": policy["id"] } });
    for request in [json!({}), blocked, json!({ "tunnel": {} })] {
        let devbox = client.devbox(request).await;
        for command in STAYERS {
            client.start(&devbox, command, 0.3).await;
        }
        let body = json!({ "command": "cd /tmp", "shell_name": "lasting" });
        let path = format!("/v1/devboxes/{devbox}/execute_async");
        client.post(&path, body).await;
    }
    let devbox = client.devbox(json!({})).await;
    client.start(&devbox, "echo kept > kept.txt", 5.0).await;
    client
        .post(&format!("/v1/devboxes/{devbox}/snapshot_disk"), json!({}))
        .await;
    client
        .post(&format!("/v1/devboxes/{devbox}/suspend"), json!({}))
        .await;
    let devbox = client.devbox(json!({})).await;
    client
        .post(&format!("/v1/devboxes/{devbox}/shutdown"), json!({}))
        .await;
}

/// Whether this user may make namespaces; says so if not.
fn enclosure() -> Option<Enclosure> {
    let enclosure = Enclosure::new();
    if enclosure.is_none() {
        println!("not shown: this user may not make namespaces");
    }
    enclosure
}

fn nothing_is_left_of_namespaces(end: fn(&mut Instance)) {
    let Some(enclosure) = enclosure() else {
        return;
    };
    let mounts = witness::mounts_of(enclosure.pid());
    let before = witness::namespaces_in_use();
    let temporary = tempfile::tempdir().expect("a directory");
    let mut instance = enclosure.start(temporary.path(), &[]);
    assert!(instance.isolates(), "namespaces were to be had");
    let url = instance.url().to_owned();
    let started = Instant::now();
    enclosure.run(async || fill(&url).await);
    let filled = started.elapsed();
    let traces = Traces::of(&instance, &before);
    // Otherwise the rest shows nothing.
    assert!(traces.now().len() > 12, "{traces:?}");
    assert!(witness::interfaces_of(enclosure.pid()).len() > 1);

    let started = Instant::now();
    end(&mut instance);
    let ended = started.elapsed();
    assert_eq!(traces.left(), Vec::<String>::new());
    println!(
        "filled in {filled:.1?}, ended in {ended:.1?}, all gone after {:.1?}",
        started.elapsed()
    );
    assert_eq!(witness::interfaces_of(enclosure.pid()), ["lo"]);
    assert_eq!(witness::mounts_of(enclosure.pid()), mounts);
    assert_eq!(witness::files_in(temporary.path()), Vec::<String>::new());
}

#[test]
fn an_orderly_end_leaves_no_process_namespace_mount_interface_or_file() {
    nothing_is_left_of_namespaces(|instance| assert!(instance.terminate().success()));
}

#[test]
fn the_end_of_whoever_started_it_ends_it_and_leaves_nothing() {
    nothing_is_left_of_namespaces(|instance| assert!(instance.abandon().success()));
}

#[test]
fn a_killed_simulator_leaves_no_process_namespace_mount_interface_or_file() {
    nothing_is_left_of_namespaces(|instance| {
        instance.murder();
    });
}

/// The kill may meet any step of a boot: each round at another moment.
#[test]
fn a_simulator_killed_while_devboxes_boot_leaves_nothing() {
    let Some(enclosure) = enclosure() else {
        return;
    };
    let mounts = witness::mounts_of(enclosure.pid());
    for round in 0..5_u32 {
        let temporary = tempfile::tempdir().expect("a directory");
        let mut instance = enclosure.start(temporary.path(), &[]);
        // The witness sees the simulator and its helper.
        assert!(witness::neighbours_of(enclosure.pid()).len() > 1);
        let client = Client::new(instance.url());
        enclosure.run(async || {
            let boots = (0..20).map(|_| client.try_create());
            let all = futures::future::join_all(boots);
            let moment = Duration::from_millis(u64::from(round) * 15);
            // Most are still on their way.
            let _answers = tokio::time::timeout(moment, all).await;
            instance.murder();
        });
        assert_eq!(
            witness::until_gone(|| witness::neighbours_of(enclosure.pid())),
            Vec::<String>::new(),
            "round {round}"
        );
        let networks = || {
            let mut names = witness::interfaces_of(enclosure.pid());
            names.retain(|name| name != "lo");
            names
        };
        assert_eq!(witness::until_gone(networks), Vec::<String>::new());
        assert_eq!(witness::mounts_of(enclosure.pid()), mounts);
        assert_eq!(witness::files_in(temporary.path()), Vec::<String>::new());
    }
}

/// A plain simulator with its boxes, their processes and a directory.
fn plain_instance(temporary: &Path) -> (Instance, Traces) {
    let before = witness::namespaces_in_use();
    let instance = Instance::start_in(temporary, &["--plain"]);
    assert!(!instance.isolates());
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(fill(instance.url()));
    let traces = Traces::of(&instance, &before);
    assert!(traces.now().len() > 12, "{traces:?}");
    assert!(!witness::files_in(temporary).is_empty());
    (instance, traces)
}

#[test]
fn an_orderly_end_without_namespaces_leaves_no_process_or_file() {
    let temporary = tempfile::tempdir().expect("a directory");
    let (mut instance, traces) = plain_instance(temporary.path());
    assert!(instance.terminate().success());
    assert_eq!(traces.left(), Vec::<String>::new());
    assert_eq!(witness::files_in(temporary.path()), Vec::<String>::new());
}

#[test]
fn the_next_start_without_namespaces_sweeps_what_a_killed_simulator_left() {
    let temporary = tempfile::tempdir().expect("a directory");
    let (mut instance, traces) = plain_instance(temporary.path());
    // The helpers too, so that nobody cleans up.
    traces.kill_helpers();
    instance.murder();
    assert!(!traces.now().is_empty(), "there is nothing to sweep");
    assert!(!witness::files_in(temporary.path()).is_empty());

    let mut next = Instance::start_in(temporary.path(), &["--plain"]);
    assert_eq!(traces.left(), Vec::<String>::new());
    assert_eq!(witness::files_in(temporary.path()).len(), 1, "its own");
    assert!(next.terminate().success());
    assert_eq!(witness::files_in(temporary.path()), Vec::<String>::new());
}
