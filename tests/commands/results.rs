//! What commands give, and in how many requests.

use bytes::Bytes;
use serde_json::json;

use crate::harness::Guest;

#[tokio::test(flavor = "multi_thread")]
async fn r18_requests_of_each_kind_of_command() {
    let guest = Guest::start().await;
    for (script, input, expected) in [
        ("true", None, vec!["execute"]),
        ("head -c 10240 /dev/zero", None, vec!["execute"]),
        ("head -c 32768 /dev/zero", None, vec!["execute"]),
        (
            "head -c 32769 /dev/zero",
            None,
            vec!["execute", "download_file", "execute"],
        ),
        (
            "head -c 1048576 /dev/zero",
            None,
            vec!["execute", "download_file", "execute"],
        ),
        (
            "head -c 40000 /dev/zero; head -c 40000 /dev/zero >&2",
            None,
            vec!["execute", "download_file", "download_file", "execute"],
        ),
        (
            "cat >/dev/null",
            Some(1_048_576),
            vec!["upload_file", "execute"],
        ),
    ] {
        let mut request = guest.text(script);
        request.stdin = input.map(|size| Bytes::from(vec![b'x'; size]));
        guest.forget().await;
        let record = guest.exec(&request).await;
        assert_eq!(record.exit_code, 0);
        assert_eq!(guest.requests().await, expected, "{script}");
        guest.assert_clean("beachside").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r15_c2_sizes_around_every_boundary_are_exact_on_both_streams() {
    let guest = Guest::start().await;
    for size in [
        0, 1, 32_767, 32_768, 32_769, 1_048_575, 1_048_576, 1_048_577, 5_000_000,
    ] {
        let script = format!(
            "head -c {size} /dev/zero | tr '\\0' o; head -c {size} /dev/zero | tr '\\0' e >&2"
        );
        let record = guest.exec(&guest.text(&script)).await;
        let kept = size.min(1_048_576);
        assert_eq!(
            (record.stdout.len(), record.stderr.len()),
            (kept, kept),
            "{size}"
        );
        assert!(record.stdout.iter().all(|byte| *byte == b'o'));
        assert!(record.stderr.iter().all(|byte| *byte == b'e'));
        assert_eq!(
            (record.stdout_bytes, record.stderr_bytes),
            (size as u64, size as u64)
        );
        assert_eq!(record.stdout_truncated, size > kept);
    }
    guest.assert_clean("beachside").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r16_g3_all_byte_values_go_in_and_come_out() {
    let guest = Guest::start().await;
    let all: Vec<u8> = (0..=255).cycle().take(256_000).collect();
    for input in [all, b"a\n\n".to_vec(), vec![0xff], Vec::new()] {
        let mut request = guest.text("tee /dev/fd/2");
        request.stdin = Some(input.clone().into());
        let record = guest.exec(&request).await;
        assert!(
            record.stdout == input && record.stderr == input,
            "{} bytes",
            input.len()
        );
    }
    guest.assert_clean("beachside").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c7_commands_side_by_side_do_not_mix() {
    let guest = Guest::start().await;
    let tasks = (0..20_u8).map(|number| {
        let guest = guest.clone();
        tokio::spawn(async move {
            let script = format!(
                "i=0; while [ $i -lt 1000 ]; do echo out-{number}; echo err-{number} >&2; i=$((i+1)); done; exit {number}"
            );
            let record = guest.exec(&guest.text(&script)).await;
            assert_eq!(record.exit_code, number);
            assert_eq!(record.stdout, format!("out-{number}\n").repeat(1000));
            assert_eq!(record.stderr, format!("err-{number}\n").repeat(1000));
        })
    });
    for task in futures::future::join_all(tasks).await {
        task.unwrap();
    }
    guest.assert_clean("beachside").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r19_every_shell_of_the_service_and_only_the_named_tools_will_do() {
    for shell in ["bash", "dash", "busybox"] {
        let tools = ["sh", "mktemp", "base64", "head", "wc", "tr", "env", "rm"];
        let guest = Guest::start_set(json!({ "shell": shell, "tools": tools })).await;
        let mut request = guest.text("head -c 40000 /dev/zero; echo $((6*7)) >&2; exit 3");
        request.stdin = Some(Bytes::from_static(b"input"));
        let record = guest.exec(&request).await;
        assert_eq!(
            (record.exit_code, record.stdout.len()),
            (3, 40_000),
            "{shell}"
        );
        assert_eq!(record.stderr, "42\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r19_a_missing_tool_is_one_clear_error() {
    let tools = ["sh", "mktemp", "head", "wc", "tr", "env", "rm"];
    let guest = Guest::start_set(json!({ "tools": tools })).await;
    let error = guest.fail(&guest.text("true")).await;
    assert!(error.message().contains("no base64 on its PATH"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn f4_background_children_neither_hold_a_result_back_nor_enter_it() {
    let guest = Guest::start_set(json!({ "completion_waits_for_output": true })).await;
    for script in [
        "sleep 7 & echo done",
        "setsid sleep 7 & echo done",
        "(while :; do echo chatter; sleep 0.1; done) & echo done; sleep 0.05",
    ] {
        let began = std::time::Instant::now();
        let record = guest.exec(&guest.text(script)).await;
        assert!(began.elapsed().as_secs() < 2, "{script}");
        assert!(record.stdout.starts_with(b"done\n") || record.stdout.starts_with(b"chatter\n"));
        assert_eq!(record.stdout_bytes, record.stdout.len() as u64);
    }
    assert_eq!(guest.shell("echo next").await, "next\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn f2_a_command_past_the_optimistic_wait_is_followed_to_its_end() {
    let guest = Guest::start_set(
        json!({ "optimistic_max_seconds": 0.2, "execution_hold_max_seconds": 0.3 }),
    )
    .await;
    let record = guest
        .exec(&guest.text("sleep 1.5; echo slept; exit 4"))
        .await;
    assert_eq!((record.exit_code, &record.stdout[..]), (4, &b"slept\n"[..]));
    let requests = guest.requests().await;
    assert_eq!(requests[0], "execute");
    assert!(requests.len() > 2 && requests[1..].iter().all(|each| each == "wait_for_status"));
    guest.assert_clean("beachside").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn e3_a_missing_directory_is_named_and_nothing_runs() {
    let guest = Guest::start().await;
    let mut request = guest.text("true; touch marker");
    request.cwd = Some("/nope".into());
    request.stdin = Some(Bytes::from_static(b"x"));
    let error = guest.fail(&request).await;
    let resource = error.resource().unwrap();
    assert_eq!(
        (resource.kind, resource.id.as_str()),
        ("working directory", "/nope")
    );
    assert_eq!(
        guest
            .shell("ls marker /marker /tmp/marker 2>/dev/null || true")
            .await,
        ""
    );
    guest.assert_clean("beachside").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn e7_long_commands_travel_as_files() {
    let guest = Guest::start().await;
    let long = "x".repeat(131_071);
    let record = guest
        .exec(&guest.argv(&["/usr/bin/printf", "%s", &long]))
        .await;
    assert_eq!(record.stdout.len(), 131_071);
    let words: Vec<String> = (0..3_000).map(|number| format!("{number:0>100}")).collect();
    let mut all = vec!["/usr/bin/printf", "%s"];
    all.extend(words.iter().map(String::as_str));
    guest.forget().await;
    assert_eq!(guest.exec(&guest.argv(&all)).await.stdout, words.concat());
    assert_eq!(
        guest.requests().await,
        ["upload_file", "execute", "download_file", "execute"]
    );
    guest.assert_clean("beachside").await;
}
