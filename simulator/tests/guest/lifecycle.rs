//! Boot, suspend, resume, destroy, and a state directory.

use runloop_simulator::guest::{
    BoxSpec, GuestError, IsolationChoice, Machine, MachineOptions, Spawn,
};

use crate::in_both;
use crate::support::{boot, print, run, shows};

in_both!(
    a_suspend_ends_every_process_and_keeps_the_disk,
    i4_files_of_every_cycle_are_kept,
    repeating_a_verb_does_nothing,
    a_destroyed_devbox_is_gone_and_its_name_is_free,
    a_dropped_devbox_ends,
    a_stopped_machine_answers_that_nothing_runs,
    an_impossible_id_is_refused,
    a_name_has_one_devbox_at_a_time,
);

async fn a_suspend_ends_every_process_and_keeps_the_disk(machine: Machine) {
    let guest = boot(&machine).await;
    let script =
        "setsid sleep 1000 & nohup sleep 1000 >/dev/null & echo kept > kept; echo up; wait";
    let process = guest.spawn(Spawn::new(script)).await.unwrap();
    shows(process.stdout(), "up").await;
    guest.suspend().await.unwrap();
    assert_eq!(process.finished().await, 137);
    assert!(matches!(
        guest.spawn(Spawn::new("true")).await,
        Err(GuestError::NotRunning)
    ));
    assert!(matches!(
        guest.processes().await,
        Err(GuestError::NotRunning)
    ));
    guest.resume().await.unwrap();
    assert_eq!(guest.processes().await.unwrap(), []);
    assert_eq!(print(&guest, "cat kept").await, "kept\n");
}

async fn i4_files_of_every_cycle_are_kept(machine: Machine) {
    let guest = boot(&machine).await;
    for cycle in 0..3 {
        print(&guest, &format!("echo {cycle} > file{cycle}")).await;
        guest
            .write_file(&format!("~/api{cycle}"), "x".into())
            .await
            .unwrap();
        guest.suspend().await.unwrap();
        guest.resume().await.unwrap();
    }
    assert_eq!(
        print(&guest, "ls; cat file*").await,
        "api0\napi1\napi2\nfile0\nfile1\nfile2\n0\n1\n2\n"
    );
}

async fn repeating_a_verb_does_nothing(machine: Machine) {
    let guest = boot(&machine).await;
    print(&guest, "echo kept > kept").await;
    guest.resume().await.unwrap();
    assert_eq!(print(&guest, "cat kept").await, "kept\n");
    guest.suspend().await.unwrap();
    guest.suspend().await.unwrap();
    guest.resume().await.unwrap();
    guest.destroy().await.unwrap();
    guest.destroy().await.unwrap();
    assert!(matches!(
        guest.snapshot().await,
        Err(GuestError::NotRunning)
    ));
}

async fn a_destroyed_devbox_is_gone_and_its_name_is_free(machine: Machine) {
    let guest = boot(&machine).await;
    print(&guest, "echo old > file").await;
    let running = guest.spawn(Spawn::new("sleep 1000")).await.unwrap();
    guest.destroy().await.unwrap();
    assert_eq!(running.finished().await, 137);
    let again = boot(&machine).await;
    assert_eq!(run(&again, "cat file").await.code, 1);
}

async fn a_dropped_devbox_ends(machine: Machine) {
    let guest = boot(&machine).await;
    let running = guest.spawn(Spawn::new("sleep 1000")).await.unwrap();
    drop(guest);
    assert_eq!(running.finished().await, 137);
}

async fn a_stopped_machine_answers_that_nothing_runs(machine: Machine) {
    let guest = boot(&machine).await;
    let running = guest.spawn(Spawn::new("sleep 1000")).await.unwrap();
    let layer = guest.snapshot().await.unwrap();
    machine.stop().await;
    assert_eq!(running.finished().await, 137);
    assert!(guest.spawn(Spawn::new("true")).await.is_err());
    assert!(guest.suspend().await.is_err());
    assert!(layer.delete().await.is_err());
    assert!(machine.boot(BoxSpec::new("other"), None).await.is_err());
    machine.stop().await;
}

async fn an_impossible_id_is_refused(machine: Machine) {
    for id in ["", "..", "a/b", "a b", &"x".repeat(65)] {
        let refused = machine.boot(BoxSpec::new(id), None).await;
        assert!(
            matches!(refused, Err(GuestError::InvalidInput(_))),
            "{id:?}"
        );
    }
    machine
        .boot(BoxSpec::new("x".repeat(64)), None)
        .await
        .unwrap();
}

async fn a_name_has_one_devbox_at_a_time(machine: Machine) {
    let first = boot(&machine).await;
    assert!(machine.boot(BoxSpec::new("box"), None).await.is_err());
    assert_eq!(print(&first, "echo alive").await, "alive\n");
    first.suspend().await.unwrap();
    assert!(machine.boot(BoxSpec::new("box"), None).await.is_err());
    first.destroy().await.unwrap();
    let second = boot(&machine).await;
    // The handle of what is gone does not reach what has its name now.
    first.destroy().await.unwrap();
    assert!(first.suspend().await.is_err());
    assert!(first.resume().await.is_err());
    drop(first);
    assert_eq!(print(&second, "echo alive").await, "alive\n");
    drop(second);
    assert_eq!(print(&boot(&machine).await, "echo alive").await, "alive\n");
}

async fn a_state_directory_keeps_disks_and_layers(isolation: IsolationChoice) {
    let state = tempfile::tempdir().unwrap();
    let options = || MachineOptions {
        isolation,
        state_dir: Some(state.path().join("made")),
    };
    let machine = Machine::start(options()).await.unwrap();
    let guest = boot(&machine).await;
    print(&guest, "echo kept > kept").await;
    let layer_id = guest.snapshot().await.unwrap().id().to_owned();
    print(&guest, "echo later > later").await;
    let error = Machine::start(options()).await.unwrap_err();
    assert!(error.to_string().contains("another simulator"), "{error}");
    machine.stop().await;
    drop((guest, machine));

    let machine = Machine::start(options()).await.unwrap();
    let guest = boot(&machine).await;
    assert_eq!(print(&guest, "cat kept later").await, "kept\nlater\n");
    let layer = machine.open_layer(&layer_id).await.unwrap();
    assert!(layer.size_bytes() > 0);
    let copy = machine
        .boot(BoxSpec::new("copy"), Some(&layer))
        .await
        .unwrap();
    assert_eq!(print(&copy, "cat kept; ls").await, "kept\nkept\n");
    layer.delete().await.unwrap();
    guest.destroy().await.unwrap();
    assert!(machine.open_layer(&layer_id).await.is_err());
    copy.destroy().await.unwrap();
    machine.stop().await;
    let left = |dir: &str| {
        std::fs::read_dir(state.path().join("made").join(dir))
            .unwrap()
            .count()
    };
    assert_eq!((left("disks"), left("layers")), (0, 0));
}

#[tokio::test]
async fn a_state_directory_keeps_plain_disks_and_layers() {
    a_state_directory_keeps_disks_and_layers(IsolationChoice::Plain).await;
}

#[tokio::test]
async fn a_state_directory_keeps_the_disks_and_layers_of_namespaces() {
    a_state_directory_keeps_disks_and_layers(IsolationChoice::Auto).await;
}
