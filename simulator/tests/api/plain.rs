//! Boxes that are plain processes, where a box's own files outlive its processes.

use runloop_simulator::Options;
use runloop_simulator::guest::IsolationChoice;
use serde_json::json;

use crate::support::Client;

#[tokio::test]
async fn a_named_shell_works_after_a_suspend_that_cut_its_command() {
    let client = Client::start_with(Options {
        isolation: IsolationChoice::Plain,
        ..Options::default()
    });
    let devbox = client.running_devbox(json!({})).await;
    let path = format!("/v1/devboxes/{devbox}");
    let body = json!({ "command": "sleep 1000", "shell_name": "s", "command_id": "cut", "optimistic_timeout": 0.3 });
    let cut = client.post(&format!("{path}/execute"), body).await;
    assert_eq!(cut.json(200)["status"], "running");
    for (verb, wanted) in [("suspend", "suspended"), ("resume", "running")] {
        client
            .post(&format!("{path}/{verb}"), json!({}))
            .await
            .json(200);
        client.wait(&devbox, &[wanted]).await;
    }
    let body = json!({ "command": "echo fresh", "shell_name": "s", "command_id": "next" });
    let next = client
        .post(&format!("{path}/execute"), body)
        .await
        .json(200);
    assert_eq!(next["stdout"], "fresh\n", "{next}");
    assert_eq!(next["exit_status"], 0);
}
