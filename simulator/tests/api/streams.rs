//! Output streams: offsets, replay, idle ends.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Client, events, text};

async fn completed(client: &Client, command: &str) -> String {
    let devbox = client.running_devbox(json!({})).await;
    let execution = client.spawn(&devbox, json!({ "command": command })).await;
    client.completed(&execution).await;
    execution
}

#[tokio::test]
async fn a_stream_replays_after_the_end_from_any_offset_and_keeps_the_outputs_apart() {
    let client = Client::start();
    let execution = completed(&client, "seq 10000; echo err >&2").await;
    let stdout = format!("{execution}/stream_stdout_updates");
    let whole: String = (1..=10_000).map(|n| format!("{n}\n")).collect();
    for _ in 0..2 {
        let (body, is_clean) = client.stream(&format!("{stdout}?offset=0")).await;
        assert!(is_clean);
        assert_eq!(text(&body), whole);
    }
    let (body, _) = client.stream(&stdout).await;
    let offsets: Vec<_> = events(&body)
        .iter()
        .map(|event| event["offset"].as_u64().unwrap())
        .collect();
    for offset in offsets {
        let (rest, _) = client.stream(&format!("{stdout}?offset={offset}")).await;
        assert_eq!(text(&rest), whole[usize::try_from(offset).unwrap()..]);
    }
    let (stderr, _) = client
        .stream(&format!("{execution}/stream_stderr_updates"))
        .await;
    assert_eq!(text(&stderr), "err\n");
    client.get(&format!("{stdout}?offset=x")).await.json(400);
}

#[tokio::test]
async fn chunks_arrive_while_the_command_runs() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let command = "for i in 1 2 3; do echo $i; read go < fifo; done";
    client.run(&devbox, "mkfifo fifo").await;
    let execution = client.spawn(&devbox, json!({ "command": command })).await;
    let request = client
        .request(
            reqwest::Method::GET,
            &format!("{execution}/stream_stdout_updates"),
        )
        .header("accept", "text/event-stream");
    let mut response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    for line in ["1\n", "2\n", "3\n"] {
        let chunk = response.chunk().await.unwrap().unwrap();
        assert_eq!(text(std::str::from_utf8(&chunk).unwrap()), line);
        client.run(&devbox, "echo go > fifo").await;
    }
    assert!(response.chunk().await.unwrap().is_none());
}

#[tokio::test]
async fn offsets_are_starts_or_ends_and_count_text_or_raw_bytes() {
    let client = Client::start();
    let execution = completed(&client, "printf '\\377\\377'; printf é; printf END").await;
    let path = format!("{execution}/stream_stdout_updates");
    let whole = "\u{fffd}\u{fffd}éEND";
    for (switches, first) in [
        (
            json!({ "stream_offset": "end", "stream_unit": "decoded" }),
            11,
        ),
        (json!({ "stream_offset": "start" }), 0),
        (json!({ "stream_unit": "raw" }), 0),
        (json!({ "stream_offset": "end" }), 7),
    ] {
        client
            .post("/_simulator/settings", switches.clone())
            .await
            .json(200);
        let (body, _) = client.stream(&path).await;
        assert_eq!(text(&body), whole);
        assert_eq!(events(&body)[0]["offset"], first, "{switches}");
    }
    let (raw, _) = client.stream(&format!("{path}?offset=2")).await;
    assert_eq!(text(&raw), "éEND");
    client
        .post("/_simulator/settings", json!({ "stream_unit": "decoded" }))
        .await
        .json(200);
    let (decoded, _) = client.stream(&format!("{path}?offset=6")).await;
    assert_eq!(text(&decoded), "éEND");
    let (inside, _) = client.stream(&format!("{path}?offset=7")).await;
    assert_eq!(
        text(&inside),
        "éEND",
        "an offset inside a character begins with it"
    );
}

#[tokio::test]
async fn a_character_is_never_split_between_events() {
    let client = Client::start_set(json!({ "stream_chunk_bytes": 4 }));
    let execution = completed(&client, "for i in 1 2 3 4 5 6 7; do printf 'a€😀'; done").await;
    let (body, _) = client
        .stream(&format!("{execution}/stream_stdout_updates"))
        .await;
    assert!(events(&body).len() > 7);
    assert_eq!(text(&body), "a€😀".repeat(7));
}

#[tokio::test]
async fn a_stream_without_news_ends_with_a_408_event() {
    let client = Client::start_set(json!({ "stream_idle_seconds": 0.3 }));
    let devbox = client.running_devbox(json!({})).await;
    let execution = client
        .spawn(&devbox, json!({ "command": "echo a; sleep 1000" }))
        .await;
    let begin = Instant::now();
    let (body, is_clean) = client
        .stream(&format!("{execution}/stream_stdout_updates"))
        .await;
    assert!(is_clean && begin.elapsed() >= Duration::from_millis(300));
    assert!(
        body.contains("event: error\ndata: {\"code\":\"408\""),
        "{body}"
    );
    assert_eq!(text(&body), "a\n");
}

#[tokio::test]
async fn a_killed_command_whose_child_still_writes_ends_its_stream() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let command = "(while :; do echo x; sleep 0.05; done) & wait";
    let execution = client.spawn(&devbox, json!({ "command": command })).await;
    client
        .post(&format!("{execution}/kill"), json!({}))
        .await
        .json(200);
    client.completed(&execution).await;
    let (_, is_clean) = client
        .stream(&format!("{execution}/stream_stdout_updates"))
        .await;
    assert!(is_clean);
}

#[tokio::test]
async fn the_log_is_followed_to_the_end_of_the_box() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    client.run(&devbox, "true").await;
    let tail = tokio::spawn({
        let (client, path) = (client.clone(), format!("/v1/devboxes/{devbox}/logs/tail"));
        async move { client.stream(&path).await }
    });
    client.run(&devbox, "exit 3").await;
    let path = format!("/v1/devboxes/{devbox}/logs");
    while client.get(&path).await.json(200)["logs"]
        .as_array()
        .unwrap()
        .len()
        < 4
    {
        tokio::task::yield_now().await;
    }
    client
        .post(&format!("/v1/devboxes/{devbox}/shutdown"), json!({}))
        .await
        .json(200);
    let (body, is_clean) = tail.await.unwrap();
    assert!(is_clean);
    let lines = events(&body);
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[3]["exit_code"], 3);
    assert_eq!(lines[3]["level"], "error");
}
