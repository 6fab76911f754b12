//! Event streams that are spoiled on the wire or in what they say.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Client, text};

/// A completed execution and a client whose simulator spoils its streams.
async fn spoiled(command: &str, sse: Value, count: Option<u64>) -> (Client, String) {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let execution = client.spawn(&devbox, json!({ "command": command })).await;
    client.completed(&execution).await;
    let mut action = sse;
    action["type"] = json!("sse");
    client
        .fault(json!({
            "match": { "path": "/v1/devboxes/*/executions/*/stream_stdout_updates", "count": count },
            "action": action,
        }))
        .await;
    (client, format!("{execution}/stream_stdout_updates"))
}

#[tokio::test]
async fn the_wire_form_is_what_the_rule_says() {
    for (sse, expected) in [
        (
            json!({ "newline": "crlf" }),
            "data: {\"offset\":2,\"output\":\"a\\n\"}\r\n\r\n",
        ),
        (
            json!({ "newline": "cr" }),
            "data: {\"offset\":2,\"output\":\"a\\n\"}\r\r",
        ),
        (
            json!({ "bom": true }),
            "\u{feff}data: {\"offset\":2,\"output\":\"a\\n\"}\n\n",
        ),
        (
            json!({ "comment": " ping" }),
            ": ping\ndata: {\"offset\":2,\"output\":\"a\\n\"}\n\n",
        ),
        (
            json!({ "data": "no_space" }),
            "data:{\"offset\":2,\"output\":\"a\\n\"}\n\n",
        ),
        (
            json!({ "data": "many_lines", "chunk_bytes": 1 }),
            "data: {\ndata:   \"offset\": 2,\ndata:   \"output\": \"a\\n\"\ndata: }\n\n",
        ),
        (
            json!({ "bad_end": "no_blank_line" }),
            "data: {\"offset\":2,\"output\":\"a\\n\"}\n",
        ),
        (
            json!({ "bad_end": "no_newline" }),
            "data: {\"offset\":2,\"output\":\"a\\n\"}",
        ),
        (
            json!({ "error": { "code": 408, "message": "idle" } }),
            "event: error\ndata: {\"code\":408,\"message\":\"idle\"}\n\n",
        ),
    ] {
        let (client, path) = spoiled("echo a", sse.clone(), None).await;
        let (body, is_clean) = client.stream(&path).await;
        assert_eq!(body, expected, "{sse}");
        assert!(is_clean, "{sse}");
    }
}

#[tokio::test]
async fn d1_a_stream_is_cut_so_many_times_and_then_whole() {
    let command = "seq 30000";
    let whole: String = (1..=30_000).map(|n| format!("{n}\n")).collect();
    let (client, path) = spoiled(command, json!({ "cut_at_byte": 20_000 }), Some(5)).await;
    let (mut seen, mut cuts) = (String::new(), 0);
    loop {
        let (body, is_clean) = client
            .stream(&format!("{path}?offset={}", seen.len()))
            .await;
        // Only whole events count.
        let end = body.rfind("\n\n").map_or(0, |end| end + 2);
        seen.push_str(&text(&body[..end]));
        if is_clean {
            break;
        }
        assert_eq!(body.len(), 20_000);
        cuts += 1;
    }
    assert_eq!(cuts, 5);
    assert!(seen == whole);
}

#[tokio::test]
async fn a_clean_cut_looks_like_the_end() {
    let sse = json!({ "cut_at_byte": 7, "cut_clean": true });
    let (client, path) = spoiled("echo a", sse, None).await;
    assert_eq!(client.stream(&path).await, ("data: {".to_owned(), true));
}

#[tokio::test]
async fn d11_a_replay_may_overlap_or_reach_back_only_so_far() {
    let (client, path) = spoiled("printf 0123456789", json!({ "overlap_bytes": 3 }), None).await;
    let (body, _) = client.stream(&format!("{path}?offset=5")).await;
    assert_eq!(text(&body), "23456789");
    let (client, path) = spoiled("printf 0123456789", json!({ "window_bytes": 4 }), None).await;
    let (body, _) = client.stream(&format!("{path}?offset=0")).await;
    assert_eq!(text(&body), "6789");
}

#[tokio::test]
async fn c1_the_tail_may_come_after_the_completion() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    client.run(&devbox, "mkfifo fifo").await;
    let execution = client
        .spawn(
            &devbox,
            json!({ "command": "printf early; read go < fifo; printf late" }),
        )
        .await;
    client
        .fault(json!({
            "match": { "path": "/v1/devboxes/*/executions/*/stream_stdout_updates" },
            "action": { "type": "sse", "late_tail": { "bytes": 4, "milliseconds": 400 } },
        }))
        .await;
    let stream = tokio::spawn({
        let (client, path) = (client.clone(), format!("{execution}/stream_stdout_updates"));
        async move { client.stream(&path).await }
    });
    client.run(&devbox, "echo go > fifo").await;
    client.completed(&execution).await;
    let completed = Instant::now();
    let (body, is_clean) = stream.await.unwrap();
    assert!(completed.elapsed() >= Duration::from_millis(300));
    assert!(is_clean);
    assert_eq!(text(&body), "earlylate");
}
