//! Many boxes with many commands at once.

use futures::future::join_all;
use serde_json::json;

use crate::support::Client;

const BOXES: usize = 200;
const COMMANDS: usize = 5;

/// All boxes boot at once, then all commands run at once, each on both outputs
/// and with its own exit code.
#[tokio::test]
async fn two_hundred_boxes_run_five_commands_each_and_every_exit_code_is_right() {
    let client = Client::start();
    let boxes = join_all((0..BOXES).map(|_| client.running_devbox(json!({})))).await;
    let commands = boxes.iter().enumerate().flat_map(|(number, devbox)| {
        let client = &client;
        (0..COMMANDS).map(move |command| async move {
            let code = (number * COMMANDS + command) % 256;
            let token = format!("{number}-{command}");
            let script = format!("echo out-{token}; echo err-{token} >&2; sleep 0.2; exit {code}");
            let body = json!({ "command": script, "command_id": token });
            let path = format!("/v1/devboxes/{devbox}/execute");
            let view = client.post(&path, body).await.json(200);
            let view = if view["status"] == "completed" {
                view
            } else {
                client
                    .completed(&format!("/v1/devboxes/{devbox}/executions/{token}"))
                    .await
            };
            assert_eq!(view["exit_status"], code, "{token}");
            assert_eq!(view["stdout"], format!("out-{token}\n"));
            assert_eq!(view["stderr"], format!("err-{token}\n"));
        })
    });
    join_all(commands).await;
}
