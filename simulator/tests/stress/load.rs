//! Many Devboxes with many commands at once: every exit code is the right one.

use std::time::Instant;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::json;

use crate::client::Client;
use crate::instance::Instance;

const DEVBOXES: u32 = 20;
const MOST_DEVBOXES: u32 = 200;
const COMMANDS_EACH: u32 = 5;

/// `TEST_SCALE` as a whole number, 1 unless set.
fn scale() -> u32 {
    std::env::var("TEST_SCALE")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1)
}

/// A connection for each command at once, on this side alone.
fn raise_open_files_limit() {
    let (_soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("the limit can be raised");
}

/// Each exit code and each output names its Devbox and command, so that no
/// result can stand for another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_devboxes_with_five_commands_each_at_once_give_every_exit_code_right() {
    raise_open_files_limit();
    let devboxes = (DEVBOXES * scale()).min(MOST_DEVBOXES);
    let temporary = tempfile::tempdir().expect("a directory");
    let mut instance = Instance::start_in(temporary.path(), &[]);
    let client = Client::new(instance.url());

    let started = Instant::now();
    let boots = (0..devboxes).map(|number| {
        let client = client.clone();
        tokio::spawn(async move {
            let request = json!({ "environment_variables": { "NUMBER": number.to_string() } });
            (number, client.devbox(request).await)
        })
    });
    let boxes = futures::future::try_join_all(boots).await.expect("all run");
    let booted = started.elapsed();

    let started = Instant::now();
    let commands = boxes.iter().flat_map(|(number, devbox)| {
        (0..COMMANDS_EACH).map(|command| {
            let (client, devbox, number) = (client.clone(), devbox.clone(), *number);
            tokio::spawn(async move {
                let code = (number * COMMANDS_EACH + command) % 251;
                let text =
                    format!("echo $NUMBER/{command}; echo {command} >&2; sleep 0.5; exit {code}");
                let view = client.execute(&devbox, &text).await;
                assert_eq!(view["exit_status"], code, "{view}");
                assert_eq!(view["stdout"], format!("{number}/{command}\n"), "{view}");
                assert_eq!(view["stderr"], format!("{command}\n"), "{view}");
            })
        })
    });
    let checked = futures::future::try_join_all(commands)
        .await
        .expect("every result is right")
        .len();
    let ran = started.elapsed();

    let started = Instant::now();
    assert!(instance.terminate().success());
    println!(
        "{devboxes} Devboxes up in {booted:.1?}, {checked} commands in {ran:.1?}, ended in {:.1?}",
        started.elapsed()
    );
    assert_eq!(checked, (devboxes * COMMANDS_EACH) as usize);
}
