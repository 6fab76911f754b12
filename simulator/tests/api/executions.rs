//! Commands: starting, following, ending, what their views show.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::Client;

#[tokio::test]
async fn the_last_lines_are_shown_and_truncation_is_told() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let path = format!("/v1/devboxes/{devbox}/execute");
    let body = |id: &str| json!({ "command": "seq 5; seq 200 >&2", "command_id": id });
    let three = client
        .post(&format!("{path}?last_n=3"), body("a"))
        .await
        .json(200);
    assert_eq!(three["stdout"], "3\n4\n5\n");
    assert_eq!(three["stdout_truncated"], true);
    assert_eq!(three["stderr"], "198\n199\n200\n");
    let default = client.post(&path, body("a")).await.json(200);
    assert_eq!(default["stdout_truncated"], false);
    assert_eq!(default["stderr"].as_str().unwrap().lines().count(), 100);
    assert_eq!(default["stderr_truncated"], true);
    let all = client
        .get(&format!("/v1/devboxes/{devbox}/executions/a?last_n=1000"))
        .await
        .json(200);
    assert_eq!(all["stderr_truncated"], false);
    client
        .get(&format!("/v1/devboxes/{devbox}/executions/a?last_n=x"))
        .await
        .json(400);
}

#[tokio::test]
async fn a_long_line_comes_back_whole_unless_a_cap_is_set() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let command = "head -c 10000000 /dev/zero | tr '\\0' x";
    let whole = client.run(&devbox, command).await;
    assert_eq!(whole["stdout"].as_str().unwrap().len(), 10_000_000);
    assert_eq!(whole["stdout_truncated"], false);
    client
        .post("/_simulator/settings", json!({ "view_max_bytes": 1000 }))
        .await
        .json(200);
    let capped = client.run(&devbox, command).await;
    assert_eq!(capped["stdout"].as_str().unwrap().len(), 1000);
    assert_eq!(capped["stdout_truncated"], true);
}

#[tokio::test]
async fn c5_empty_outputs_are_shown_as_the_switch_says() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    assert_eq!(client.run(&devbox, "true").await["stdout"], "");
    client
        .post("/_simulator/settings", json!({ "empty_output": "omitted" }))
        .await
        .json(200);
    assert!(client.run(&devbox, "true").await.get("stdout").is_none());
    client
        .post("/_simulator/settings", json!({ "empty_output": "null" }))
        .await
        .json(200);
    assert_eq!(
        client.run(&devbox, "true").await.get("stdout"),
        Some(&Value::Null)
    );
}

#[tokio::test]
async fn an_optimistic_wait_ends_with_a_running_view_and_the_command_goes_on() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let path = format!("/v1/devboxes/{devbox}/execute");
    let body =
        json!({ "command": "sleep 0.3; echo done", "command_id": "a", "optimistic_timeout": 0 });
    let begin = Instant::now();
    let view = client.post(&path, body).await.json(200);
    assert!(begin.elapsed() < Duration::from_millis(250));
    assert_eq!(view["status"], "running");
    assert!(view.get("stdout").is_none() && view.get("exit_status").is_none());
    let execution = format!("/v1/devboxes/{devbox}/executions/a");
    assert_eq!(client.completed(&execution).await["stdout"], "done\n");
    client
        .post(
            "/_simulator/settings",
            json!({ "optimistic_zero": "default" }),
        )
        .await
        .json(200);
    let body = json!({ "command": "sleep 0.3", "command_id": "b", "optimistic_timeout": 0 });
    assert_eq!(
        client.post(&path, body).await.json(200)["status"],
        "completed"
    );
    let switch = json!({ "optimistic_expiry": "request_timeout" });
    client.post("/_simulator/settings", switch).await.json(200);
    let body = json!({ "command": "sleep 5", "command_id": "c", "optimistic_timeout": 0.05 });
    client.post(&path, body).await.json(408);
    client
        .get(&format!("/v1/devboxes/{devbox}/executions/c"))
        .await
        .json(200);
}

#[tokio::test]
async fn the_command_id_is_required_and_may_differ_from_the_execution_id() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let path = format!("/v1/devboxes/{devbox}/execute");
    client
        .post(&path, json!({ "command": "true" }))
        .await
        .json(400);
    client
        .post(&path, json!({ "command_id": "a" }))
        .await
        .json(400);
    let stdin = json!({ "command": "cat", "command_id": "a", "attach_stdin": true });
    client.post(&path, stdin).await.json(400);
    let switches = json!({
        "execution_id_is_command_id": false,
        "require_command_id": false,
        "dedupe_command_ids": false,
    });
    client
        .post("/_simulator/settings", switches)
        .await
        .json(200);
    client
        .post(&path, json!({ "command": "true" }))
        .await
        .json(200);
    let body = json!({ "command": "echo x >> n; wc -l < n", "command_id": "a" });
    let first = client.post(&path, body.clone()).await.json(200);
    let second = client.post(&path, body).await.json(200);
    assert_ne!(first["execution_id"], "a");
    assert_ne!(first["execution_id"], second["execution_id"]);
    assert_eq!(second["stdout"], "2\n");
}

#[tokio::test]
async fn repeats_that_race_start_one_command() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let path = format!("/v1/devboxes/{devbox}/execute");
    let repeats = (0..20).map(|_| {
        client.post(
            &path,
            json!({ "command": "echo x >> n; sleep 0.1", "command_id": "a" }),
        )
    });
    for reply in futures::future::join_all(repeats).await {
        reply.json(200);
    }
    assert_eq!(client.run(&devbox, "wc -l < n").await["stdout"], "1\n");
}

#[tokio::test]
async fn a_synchronous_execution_holds_until_the_end() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let body = json!({ "command": "sleep 0.2; echo o; echo e >&2; exit 4" });
    let view = client
        .post(&format!("/v1/devboxes/{devbox}/execute_sync"), body)
        .await
        .json(200);
    assert_eq!(
        view,
        json!({ "devbox_id": devbox, "exit_status": 4, "stdout": "o\n", "stderr": "e\n" })
    );
}

#[tokio::test]
async fn a_background_child_that_holds_the_output_holds_the_completion_unless_switched_off() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let begin = Instant::now();
    client.run(&devbox, "sleep 0.5 & echo started").await;
    assert!(begin.elapsed() >= Duration::from_millis(500));
    let switch = json!({ "completion_waits_for_output": false });
    client.post("/_simulator/settings", switch).await.json(200);
    let begin = Instant::now();
    client.run(&devbox, "sleep 20 & echo started").await;
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_named_shell_keeps_its_directory_and_variables_and_runs_one_at_a_time() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let shell = |command: &str, name: &str| json!({ "command": command, "shell_name": name });
    let first = client
        .spawn(&devbox, shell("cd /tmp; export V=1; sleep 0.3", "a"))
        .await;
    let second = client
        .spawn(&devbox, shell("pwd; echo $V; exit 3", "a"))
        .await;
    assert_eq!(client.get(&second).await.json(200)["status"], "queued");
    let other = client.spawn(&devbox, shell("echo $V; pwd", "b")).await;
    assert_eq!(client.completed(&other).await["stdout"], "\n/home/user\n");
    let view = client.completed(&second).await;
    assert_eq!(view["stdout"], "/tmp\n1\n");
    assert_eq!(view["exit_status"], 3);
    assert_eq!(view["shell_name"], "a");
    assert_eq!(client.completed(&first).await["exit_status"], 0);
    let unnamed = client.run(&devbox, "echo $V").await;
    assert_eq!(unnamed["stdout"], "\n");
    assert!(unnamed.get("shell_name").is_none());
}

#[tokio::test]
async fn commands_run_in_a_login_shell_only_when_switched_on() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    client
        .run(&devbox, "echo export PROFILE=read > ~/.profile")
        .await;
    let command = "shopt -q login_shell; echo $? $PROFILE";
    assert_eq!(client.run(&devbox, command).await["stdout"], "1\n");
    let switch = json!({ "login_shell": true });
    client.post("/_simulator/settings", switch).await.json(200);
    assert_eq!(client.run(&devbox, command).await["stdout"], "0 read\n");
}

#[tokio::test]
async fn a_queued_command_can_be_waited_for_and_killed() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let shell = |command: &str| json!({ "command": command, "shell_name": "a" });
    let first = client.spawn(&devbox, shell("sleep 1000")).await;
    let second = client.spawn(&devbox, shell("touch never")).await;
    let wait = json!({ "statuses": ["queued"] });
    client
        .post(&format!("{second}/wait_for_status"), wait)
        .await
        .json(200);
    client
        .post(&format!("{second}/kill"), json!({}))
        .await
        .json(200);
    // It ends in its queue, behind a command that goes on.
    assert_eq!(client.completed(&second).await["exit_status"], 137);
    let wait = json!({ "statuses": ["running"] });
    client
        .post(&format!("{first}/wait_for_status"), wait)
        .await
        .json(200);
    client
        .post(
            &format!("{first}/kill"),
            json!({ "kill_process_group": true }),
        )
        .await
        .json(200);
    assert_eq!(client.completed(&first).await["exit_status"], 137);
    assert_eq!(client.run(&devbox, "test -e never").await["exit_status"], 1);
}

#[tokio::test]
async fn stdin_is_read_until_its_end_unless_it_kills() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let request = json!({ "command": "cat; echo end", "attach_stdin": true });
    let execution = client.spawn(&devbox, request.clone()).await;
    let send = format!("{execution}/send_std_in");
    let sent = client
        .post(&send, json!({ "text": "hello\n" }))
        .await
        .json(200);
    assert_eq!(sent["success"], true);
    client
        .post(&send, json!({ "signal": "EOF" }))
        .await
        .json(200);
    assert_eq!(client.completed(&execution).await["stdout"], "hello\nend\n");
    let plain = client.spawn(&devbox, json!({ "command": "cat" })).await;
    client
        .post(&format!("{plain}/send_std_in"), json!({ "text": "x" }))
        .await
        .json(400);
    client
        .post(&send, json!({ "signal": "HUP" }))
        .await
        .json(400);
    client
        .post("/_simulator/settings", json!({ "stdin": "kills" }))
        .await
        .json(200);
    let killed = client.spawn(&devbox, request).await;
    client
        .post(&format!("{killed}/send_std_in"), json!({ "text": "x" }))
        .await
        .json(200);
    assert_eq!(client.completed(&killed).await["exit_status"], 137);
}

#[tokio::test]
async fn unknown_boxes_and_executions_are_404_and_bad_waits_are_400() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let body = json!({ "command": "true", "command_id": "a" });
    for verb in ["execute", "execute_async", "execute_sync"] {
        client
            .post(&format!("/v1/devboxes/dbx_none/{verb}"), body.clone())
            .await
            .json(404);
    }
    let none = format!("/v1/devboxes/{devbox}/executions/none");
    client.get(&none).await.json(404);
    client
        .post(&format!("{none}/kill"), json!({}))
        .await
        .json(404);
    client
        .get(&format!("{none}/stream_stdout_updates"))
        .await
        .json(404);
    let wait = json!({ "statuses": ["completed"] });
    client
        .post(&format!("{none}/wait_for_status"), wait)
        .await
        .json(404);
    let execution = client
        .spawn(&devbox, json!({ "command": "sleep 1000" }))
        .await;
    let path = format!("{execution}/wait_for_status");
    client
        .post(&path, json!({ "statuses": ["failed"] }))
        .await
        .json(400);
    let short = json!({ "statuses": ["completed"], "timeout_seconds": 0.1 });
    let expired = client.post(&path, short).await;
    expired.json(408);
    assert_eq!(expired.headers["x-should-retry"], "true");
    client
        .post(
            &path,
            json!({ "statuses": ["completed"], "timeout_seconds": -1 }),
        )
        .await
        .json(400);
}

#[tokio::test]
async fn the_log_tells_commands_and_is_filtered_by_execution_and_shell() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    client.run(&devbox, "exit 2").await;
    let named = client
        .spawn(&devbox, json!({ "command": "true", "shell_name": "s" }))
        .await;
    client.completed(&named).await;
    let path = format!("/v1/devboxes/{devbox}/logs");
    loop {
        let logs = client.get(&format!("{path}?shell_name=s")).await.json(200);
        let lines = logs["logs"].as_array().unwrap();
        if lines.len() == 2 {
            assert_eq!(lines[1]["exit_code"], 0);
            break;
        }
        tokio::task::yield_now().await;
    }
    let id = named.rsplit('/').next().unwrap();
    let logs = client
        .get(&format!("{path}?execution_id={id}"))
        .await
        .json(200);
    assert!(
        logs["logs"]
            .as_array()
            .unwrap()
            .iter()
            .all(|line| line["cmd_id"] == id)
    );
    client
        .post("/_simulator/settings", json!({ "logs_delay_ms": 60_000 }))
        .await
        .json(200);
    assert_eq!(client.get(&path).await.json(200)["logs"], json!([]));
}

#[tokio::test]
async fn r19_a_box_may_have_another_shell_and_only_chosen_programs() {
    let client = Client::start_set(json!({ "shell": "dash", "tools": ["sh", "cat"] }));
    let devbox = client.running_devbox(json!({})).await;
    let view = client
        .run(
            &devbox,
            "printf '%s' \"${BASH_VERSION-none}\"; command -v cat; command -v ls",
        )
        .await;
    let text = view["stdout"].as_str().unwrap();
    assert!(text.starts_with("none") && text.contains("cat"), "{text}");
    assert_eq!(view["exit_status"], 127);
}

#[tokio::test]
async fn a_killed_command_ends_with_the_status_that_is_switched_on() {
    let client = Client::start_set(json!({ "kill_exit_status": -1 }));
    let devbox = client.running_devbox(json!({})).await;
    let killed = client
        .spawn(&devbox, json!({ "command": "sleep 1000" }))
        .await;
    client
        .post(&format!("{killed}/kill"), json!({}))
        .await
        .json(200);
    assert_eq!(client.completed(&killed).await["exit_status"], -1);
    let by_itself = client.run(&devbox, "kill -9 $$").await;
    assert_eq!(by_itself["exit_status"], 137);
}
