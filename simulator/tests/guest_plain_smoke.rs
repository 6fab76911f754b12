//! The first steps of a Devbox without namespaces.

use runloop_simulator::guest::{BoxSpec, IsolationChoice, Machine, MachineOptions, Spawn};

#[tokio::test]
async fn a_command_ends_with_its_code_and_its_outputs_apart() {
    let options = MachineOptions {
        isolation: IsolationChoice::Plain,
        ..Default::default()
    };
    let machine = Machine::start(options).await.unwrap();
    let guest = machine.boot(BoxSpec::new("a"), None).await.unwrap();
    let process = guest
        .spawn(Spawn::new("echo out; echo err >&2; exit 3"))
        .await
        .unwrap();
    assert_eq!(process.finished().await, 3);
    assert_eq!(process.stdout().read_at(0, 100).unwrap(), "out\n");
    assert_eq!(process.stderr().read_at(0, 100).unwrap(), "err\n");
    machine.stop().await;
}
