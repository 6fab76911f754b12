//! Contents in and out of a box.

use reqwest::Method;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

use crate::support::{Client, Reply, send};

async fn write(client: &Client, devbox: &str, path: &str, contents: &str) -> Value {
    let body = json!({ "file_path": path, "contents": contents });
    client
        .post(&format!("/v1/devboxes/{devbox}/write_file_contents"), body)
        .await
        .json(200)
}

async fn read(client: &Client, devbox: &str, path: &str) -> Reply {
    let body = json!({ "file_path": path });
    client
        .post(&format!("/v1/devboxes/{devbox}/read_file_contents"), body)
        .await
}

async fn download(client: &Client, devbox: &str, path: &str) -> Reply {
    client
        .post(
            &format!("/v1/devboxes/{devbox}/download_file"),
            json!({ "path": path }),
        )
        .await
}

async fn upload(client: &Client, devbox: &str, path: &str, content: Vec<u8>) -> Reply {
    let file = Part::bytes(content)
        .file_name("f")
        .mime_str("application/octet-stream")
        .unwrap();
    let form = Form::new().text("path", path.to_owned()).part("file", file);
    let url = format!("/v1/devboxes/{devbox}/upload_file");
    send(client.request(Method::POST, &url).multipart(form)).await
}

#[tokio::test]
async fn text_is_written_and_read_back_exactly() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    for (written, seen_as) in [
        ("/tmp/test.txt", "/tmp/test.txt"),
        ("relative.txt", "/home/user/relative.txt"),
        ("~/tilde.txt", "/home/user/tilde.txt"),
    ] {
        let result = write(&client, &devbox, written, "é\r\n\u{feff}x").await;
        assert_eq!(result["exit_status"], 0);
        assert_eq!(result["devbox_id"], devbox.as_str());
        let content = read(&client, &devbox, written).await;
        assert_eq!(content.status, 200);
        assert_eq!(content.text(), "é\r\n\u{feff}x");
        assert!(
            content.headers["content-type"]
                .to_str()
                .unwrap()
                .starts_with("text/plain")
        );
        let listed = client.run(&devbox, &format!("stat -c %U {seen_as}")).await;
        assert_eq!(listed["exit_status"], 0);
    }
}

#[tokio::test]
async fn h1_h2_h3_bytes_of_any_size_go_up_and_come_down_unchanged() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    for size in [0, 1, 98_305, 1 << 20, 16 << 20] {
        let content: Vec<u8> = (0..size)
            .map(|n: usize| (n % 251) as u8 ^ (n >> 8) as u8)
            .collect();
        assert_eq!(
            upload(&client, &devbox, "~/f", content.clone())
                .await
                .json(200),
            json!({})
        );
        let down = download(&client, &devbox, "/home/user/f").await;
        assert_eq!(down.status, 200);
        assert_eq!(down.headers["content-type"], "application/octet-stream");
        assert_eq!(down.headers["content-disposition"], "attachment");
        assert!(down.body == content, "{size} bytes");
    }
}

#[tokio::test]
async fn h7_odd_names_are_kept() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    for name in [
        "a b",
        "-rf",
        "re\"port",
        "r'x",
        "back\\",
        "new\nline",
        "100%",
        "%20",
        "日本",
        "*",
        " ",
    ] {
        let path = format!("/tmp/{name}");
        upload(&client, &devbox, &path, b"content".to_vec())
            .await
            .json(200);
        assert_eq!(
            download(&client, &devbox, &path).await.body,
            b"content",
            "{name:?}"
        );
    }
    let long = "x".repeat(256);
    upload(&client, &devbox, &long, b"".to_vec())
        .await
        .json(400);
}

#[tokio::test]
async fn h8_what_cannot_be_read_or_written_is_told_apart() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    client
        .run(
            &devbox,
            "mkfifo /tmp/fifo; touch /tmp/secret; chmod 0 /tmp/secret",
        )
        .await;
    let missing = read(&client, &devbox, "/tmp/none").await.json(404);
    assert!(
        missing["message"]
            .as_str()
            .unwrap()
            .contains("no such file"),
        "{missing}"
    );
    download(&client, &devbox, "/tmp/none").await.json(404);
    let directory = read(&client, &devbox, "/tmp").await.json(400);
    assert!(
        directory["message"]
            .as_str()
            .unwrap()
            .contains("is a directory"),
        "{directory}"
    );
    read(&client, &devbox, "/tmp/fifo").await.json(400);
    read(&client, &devbox, "/tmp/secret").await.json(403);
    read(&client, &devbox, "").await.json(400);
    upload(&client, &devbox, "/tmp", b"x".to_vec())
        .await
        .json(400);
    upload(&client, &devbox, "/tmp/no/parent", b"x".to_vec())
        .await
        .json(404);
    let failed = write(&client, &devbox, "/tmp/no/parent", "x").await;
    assert_ne!(failed["exit_status"], 0);
    assert!(
        failed["stderr"].as_str().unwrap().contains("no such file"),
        "{failed}"
    );
    let path = format!("/v1/devboxes/{devbox}/read_file_contents");
    client.post(&path, json!({ "path": "x" })).await.json(400);
    let path = format!("/v1/devboxes/{devbox}/download_file");
    client
        .post(&path, json!({ "file_path": "x" }))
        .await
        .json(400);
    client
        .post(
            "/v1/devboxes/dbx_none/download_file",
            json!({ "path": "x" }),
        )
        .await
        .json(404);
}

#[tokio::test]
async fn statuses_and_parents_are_switches() {
    let client = Client::start_set(json!({
        "create_parents": true,
        "missing_file_status": 400,
        "directory_status": 422,
        "write_failure": "status",
        "not_running_status": 409,
    }));
    let devbox = client.running_devbox(json!({})).await;
    write(&client, &devbox, "~/a/b c/d", "x").await;
    upload(&client, &devbox, "e/f", b"y".to_vec())
        .await
        .json(200);
    assert_eq!(
        client.run(&devbox, "cat 'a/b c/d' e/f").await["stdout"],
        "xy"
    );
    read(&client, &devbox, "none").await.json(400);
    let body = json!({ "file_path": "/tmp", "contents": "x" });
    client
        .post(&format!("/v1/devboxes/{devbox}/write_file_contents"), body)
        .await
        .json(422);
    client
        .post(&format!("/v1/devboxes/{devbox}/shutdown"), json!({}))
        .await
        .json(200);
    read(&client, &devbox, "none").await.json(409);
}

#[tokio::test]
async fn invalid_text_is_read_with_replacement_characters() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    client.run(&devbox, "printf 'a\\377b' > f").await;
    assert_eq!(read(&client, &devbox, "f").await.text(), "a\u{fffd}b");
}

#[tokio::test]
async fn an_upload_without_its_fields_in_order_is_400() {
    let client = Client::start();
    let devbox = client.running_devbox(json!({})).await;
    let url = format!("/v1/devboxes/{devbox}/upload_file");
    let file = || Part::bytes(b"x".to_vec()).file_name("f");
    for form in [
        Form::new().text("path", "p"),
        Form::new().part("file", file()),
        Form::new().part("file", file()).text("path", "p"),
    ] {
        send(client.request(Method::POST, &url).multipart(form))
            .await
            .json(400);
    }
    client.post(&url, json!({ "path": "p" })).await.json(400);
}

#[tokio::test]
async fn a_full_disk_refuses_what_does_not_fit() {
    let client = Client::start_set(json!({ "disk_quota_bytes": 1 << 20 }));
    let devbox = client.running_devbox(json!({})).await;
    upload(&client, &devbox, "small", vec![0; 1000])
        .await
        .json(200);
    let refused = upload(&client, &devbox, "large", vec![0; 4 << 20])
        .await
        .json(507);
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("no space left"),
        "{refused}"
    );
}
