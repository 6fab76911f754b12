//! Many Devboxes at once.

use futures::future::{join_all, try_join_all};
use runloop_simulator::guest::{BoxSpec, Machine, Network, Spawn, Stdin};

use crate::in_both;

in_both!(two_hundred_devboxes_with_five_executions_each_answer_right);

const DEVBOXES: i32 = 200;
const EXECUTIONS: i32 = 5;

async fn two_hundred_devboxes_with_five_executions_each_answer_right(machine: Machine) {
    let boot = |number| {
        let mut spec = BoxSpec::new(format!("box{number}"));
        if number % 2 == 1 {
            spec.network = Network::LoopbackOnly;
        }
        machine.boot(spec, None)
    };
    let guests = try_join_all((0..DEVBOXES).map(boot)).await.unwrap();
    // All are held until all run.
    let started = guests.iter().zip(0..).flat_map(|(guest, devbox)| {
        (0..EXECUTIONS).map(move |execution| {
            let code = (devbox * EXECUTIONS + execution) % 256;
            let script = format!(
                "echo out {devbox} {execution}; read; echo err {devbox} {execution} >&2; exit {code}"
            );
            let spawn = Spawn { stdin: Stdin::Pipe, ..Spawn::new(script) };
            async move { (code, devbox, execution, guest.spawn(spawn).await.unwrap()) }
        })
    });
    let processes = join_all(started).await;
    for (.., process) in &processes {
        process.close_stdin().await;
    }
    for (code, devbox, execution, process) in processes {
        assert_eq!(process.finished().await, code);
        let line = |word| format!("{word} {devbox} {execution}\n");
        assert_eq!(crate::support::text(process.stdout()), line("out"));
        assert_eq!(crate::support::text(process.stderr()), line("err"));
    }
    try_join_all(guests.iter().map(|guest| guest.destroy()))
        .await
        .unwrap();
    machine.stop().await;
}
