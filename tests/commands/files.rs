//! Files through the whole adapter.

use beachside_runloop::error::Code;
use bytes::Bytes;
use serde_json::json;

use crate::harness::Guest;

#[tokio::test(flavor = "multi_thread")]
async fn r24_h1_h2_sizes_are_read_back_in_as_few_requests_as_can_be() {
    let guest = Guest::start().await;
    let noise: Vec<u8> = (0..16_777_216_u32)
        .map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    for (size, writes, reads) in [
        (0, vec!["execute"], vec!["execute"]),
        (1, vec!["execute"], vec!["execute"]),
        (65_536, vec!["execute"], vec!["execute"]),
        (
            65_537,
            vec!["upload_file", "execute"],
            vec!["execute", "download_file"],
        ),
        (
            98_305,
            vec!["upload_file", "execute"],
            vec!["execute", "download_file"],
        ),
        (
            16_777_216,
            vec!["upload_file", "execute"],
            vec!["execute", "download_file"],
        ),
    ] {
        let content = Bytes::copy_from_slice(&noise[..size]);
        guest.forget().await;
        guest.write("deep/er/file", content.clone()).await.unwrap();
        assert_eq!(guest.requests().await, writes, "write {size}");
        guest.forget().await;
        assert!(
            guest.read("deep/er/file").await.unwrap() == content,
            "{size}"
        );
        assert_eq!(guest.requests().await, reads, "read {size}");
    }
    guest.assert_clean("beachside").await;
    assert_eq!(
        guest.shell("ls -A deep/er").await,
        "file\n",
        "nothing beside it"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn r24_h7_a_large_file_keeps_an_odd_name() {
    let guest = Guest::start_set(json!({ "create_parents": false })).await;
    let content = Bytes::from(vec![b'x'; 100_000]);
    for name in [
        "~",
        "a b",
        "-rf",
        "$HOME",
        "new\nline",
        "100%",
        "%20",
        "re\"port",
        "é",
        "e\u{301}",
        "日本",
    ] {
        guest.write(name, content.clone()).await.unwrap();
        assert_eq!(guest.read(name).await.unwrap(), content, "{name}");
    }
    assert_eq!(
        guest.shell("ls -A | wc -l").await.trim(),
        "12",
        "a name with a newline is two lines"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn h8_faults_are_typed_and_told_apart_from_a_sandbox_that_is_gone() {
    let guest = Guest::start_set(json!({ "missing_file_status": 400 })).await;
    guest.shell("mkdir dir; mkfifo fifo").await;
    assert_eq!(
        guest
            .read("missing")
            .await
            .unwrap_err()
            .resource()
            .unwrap()
            .kind,
        "file"
    );
    assert_eq!(
        guest.read("dir").await.unwrap_err().reason(),
        Some("is_directory")
    );
    assert_eq!(
        guest.read("fifo").await.unwrap_err().reason(),
        Some("not_regular")
    );
    assert_eq!(
        guest.write("dir", "x").await.unwrap_err().reason(),
        Some("is_directory")
    );
    let call = beachside_runloop::adapter::Call::default();
    guest
        .connection
        .destroy_sandbox(&guest.sandbox_id, &call)
        .await
        .unwrap();
    let error = guest.read("missing").await.unwrap_err();
    assert_eq!(error.code(), Code::NotRunning);
    assert!(guest.write("x", "y").await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn r24_a_write_that_fails_leaves_the_old_content_and_nothing_else() {
    let guest = Guest::start().await;
    guest.write("file", "old").await.unwrap();
    for (path, action) in [
        (
            "/v1/devboxes/*/upload_file",
            json!({ "type": "drop_reply" }),
        ),
        (
            "/v1/devboxes/*/upload_file",
            json!({ "type": "drop_request" }),
        ),
        (
            "/v1/devboxes/*/upload_file",
            json!({ "type": "refuse", "status": 500, "body": "" }),
        ),
        ("/v1/devboxes/*/execute", json!({ "type": "drop_request" })),
    ] {
        let matcher = json!({ "path": path, "count": 1 });
        guest
            .fault(json!({ "match": matcher, "action": action.clone() }))
            .await;
        guest.write("file", vec![b'x'; 100_000]).await.unwrap_err();
        assert_eq!(guest.read("file").await.unwrap(), "old", "{action}");
        guest.assert_clean("beachside").await;
        assert_eq!(guest.shell("ls -A").await, "file\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r24_a_full_disk_is_told_and_the_old_content_stays() {
    let guest = Guest::start_set(json!({ "disk_quota_bytes": 8_000_000 })).await;
    guest.write("file", "old").await.unwrap();
    let error = guest
        .write("file", vec![b'x'; 20_000_000])
        .await
        .unwrap_err();
    assert_eq!(error.outcome().submitted, Some(false), "the upload failed");
    assert_eq!(guest.read("file").await.unwrap(), "old");
    guest
        .shell("head -c 20000000 /dev/zero >fill 2>/dev/null || true")
        .await;
    let error = guest.write("file", vec![b'x'; 60_000]).await.unwrap_err();
    assert_eq!(
        (error.code(), error.reason()),
        (Code::FileError, Some("no_space"))
    );
    guest.shell("rm fill").await;
    assert_eq!(guest.read("file").await.unwrap(), "old");
    assert_eq!(guest.shell("ls -A").await, "file\n");
    guest.assert_clean("beachside").await;
}
