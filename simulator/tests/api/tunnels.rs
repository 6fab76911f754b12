//! Real servers inside boxes, reached through their tunnels.

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Client, Reply, send};

/// Answers every request with its box's host name, the path and the headers
/// that a tunnel must not pass on, and echoes what follows an upgrade.
const SERVER: &str = r#"
const server = require("http").createServer((request, response) => {
  const body = [];
  request.on("data", (part) => body.push(part)).on("end", () => response.end(JSON.stringify({
    box: require("os").hostname(), method: request.method, url: request.url,
    body: Buffer.concat(body).toString(), host: request.headers.host,
    token: request.headers["x-runloop-tunnel-authorization"] ?? null,
    authorization: request.headers.authorization ?? null,
  })));
});
server.on("upgrade", (request, socket, head) => {
  socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n");
  socket.write(head);
  socket.pipe(socket);
});
server.listen(Number(process.argv[1]), "0.0.0.0", () => console.log("listening"));
"#;

struct Served {
    id: String,
    port: u16,
    host: String,
    token: Option<String>,
}

impl Client {
    /// A box with a tunnel and a server behind it. In plain isolation boxes
    /// share the machine's ports, so each test names its own.
    async fn serve(&self, port: u16, tunnel: Value) -> Served {
        let id = self.running_devbox(json!({ "tunnel": tunnel })).await;
        let view = self.get(&format!("/v1/devboxes/{id}")).await.json(200);
        let key = view["tunnel"]["tunnel_key"].as_str().expect("a key");
        let served = Served {
            host: format!("{port}-{key}.tunnel.localhost"),
            token: view["tunnel"]["auth_token"].as_str().map(str::to_owned),
            id,
            port,
        };
        self.start_server(&served).await;
        served
    }

    async fn start_server(&self, served: &Served) {
        let script = format!(
            "cat > /tmp/server.cjs <<'END'\n{SERVER}\nEND\n\
             mkfifo /tmp/up.$$; setsid node -e \"$(cat /tmp/server.cjs)\" {} </dev/null >/tmp/up.$$ 2>/tmp/err & \
             read line </tmp/up.$$; echo $line",
            served.port
        );
        let started = self.run(&served.id, &script).await;
        assert_eq!(started["stdout"], "listening\n", "{started}");
    }

    async fn through(&self, host: &str, headers: &[(&str, &str)]) -> Reply {
        let anonymous = self.with_key("");
        let mut request = anonymous
            .request(Method::POST, "/a/b?c=d")
            .header("host", host)
            .body("words");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        send(request).await
    }
}

/// A port that nobody listens on at the moment of the call.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

#[tokio::test]
async fn r11_a_server_in_a_box_answers_through_its_tunnel_and_never_sees_the_token() {
    let client = Client::start();
    let port = free_port();
    let open = client.serve(port, json!({ "auth_mode": "open" })).await;
    let got = client.through(&open.host, &[]).await.json(200);
    assert_eq!(got["method"], "POST");
    assert_eq!(got["url"], "/a/b?c=d");
    assert_eq!(got["body"], "words");
    assert_eq!(got["host"], json!(open.host));

    let other = if client.simulator.isolation() == "namespaces" {
        port
    } else {
        free_port()
    };
    let closed = client
        .serve(other, json!({ "auth_mode": "authenticated" }))
        .await;
    let bearer = format!("Bearer {}", closed.token.as_deref().expect("a token"));
    client.through(&closed.host, &[]).await.json(401);
    let wrong = [("x-runloop-tunnel-authorization", "Bearer nonsense")];
    client.through(&closed.host, &wrong).await.json(401);
    let own = [("x-runloop-tunnel-authorization", bearer.as_str())];
    let got = client.through(&closed.host, &own).await.json(200);
    assert_eq!(got["token"], Value::Null);
    let older = [("authorization", bearer.as_str())];
    let got = client.through(&closed.host, &older).await.json(200);
    assert_eq!(got["authorization"], Value::Null);
    assert_eq!(
        client
            .get("/_simulator/journal")
            .await
            .text()
            .matches("/a/b")
            .count(),
        0
    );
}

#[tokio::test]
async fn two_boxes_serve_the_same_port() {
    let client = Client::start();
    if client.simulator.isolation() != "namespaces" {
        eprintln!("skipped: without namespaces boxes share the machine's ports");
        return;
    }
    let one = client.serve(3000, json!({})).await;
    let two = client.serve(3000, json!({})).await;
    let box_of =
        async |served: &Served| client.through(&served.host, &[]).await.json(200)["box"].clone();
    assert_ne!(box_of(&one).await, box_of(&two).await);
}

#[tokio::test]
async fn a_tunnel_says_why_it_cannot_carry_a_request() {
    let client = Client::start();
    client
        .through("80-unknown.tunnel.localhost", &[])
        .await
        .json(404);
    let id = client.running_devbox(json!({ "tunnel": {} })).await;
    let view = client.get(&format!("/v1/devboxes/{id}")).await.json(200);
    let key = view["tunnel"]["tunnel_key"].as_str().expect("a key");
    let host = format!("{}-{key}.tunnel.localhost", free_port());
    client.through(&host, &[]).await.json(502);
    client
        .post(&format!("/v1/devboxes/{id}/suspend"), json!({}))
        .await
        .json(200);
    client.wait(&id, &["suspended"]).await;
    client.through(&host, &[]).await.json(503);
}

#[tokio::test]
async fn a_request_wakes_a_suspended_box_whose_tunnel_says_so() {
    let client = Client::start();
    let port = free_port();
    let id = client
        .running_devbox(json!({ "tunnel": { "wake_on_http": true } }))
        .await;
    let view = client.get(&format!("/v1/devboxes/{id}")).await.json(200);
    let key = view["tunnel"]["tunnel_key"].as_str().expect("a key");
    let host = format!("{port}-{key}.tunnel.localhost");
    client
        .post(&format!("/v1/devboxes/{id}/suspend"), json!({}))
        .await
        .json(200);
    client.wait(&id, &["suspended"]).await;
    // Its processes died with the suspend: it is awake, and nobody listens.
    client.through(&host, &[]).await.json(502);
    client.wait(&id, &["running"]).await;
    let served = Served {
        id,
        port,
        host,
        token: None,
    };
    client.start_server(&served).await;
    client.through(&served.host, &[]).await.json(200);
}

#[tokio::test]
async fn an_upgraded_connection_carries_bytes_both_ways() {
    let client = Client::start();
    let served = client.serve(free_port(), json!({})).await;
    let address = client
        .simulator
        .url()
        .trim_start_matches("http://")
        .to_owned();
    let mut socket = TcpStream::connect(address).await.expect("a connection");
    let head = format!(
        "GET / HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
        served.host
    );
    socket.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(socket.read_u8().await.expect("a header"));
    }
    assert!(
        answer.starts_with(b"HTTP/1.1 101"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
    let words: Vec<u8> = (0..=255).collect();
    socket.write_all(&words).await.expect("sent");
    let mut back = vec![0; words.len()];
    socket.read_exact(&mut back).await.expect("echoed");
    assert_eq!(back, words);
}

#[tokio::test]
async fn tunnels_pass_requests_over_tls_with_http_2() {
    let client = Client::start_with(runloop_simulator::Options {
        tls: Some(runloop_simulator::TlsOptions::default()),
        ..Default::default()
    });
    let served = client
        .serve(free_port(), json!({ "auth_mode": "open" }))
        .await;
    let url = client.simulator.url().replace("127.0.0.1", &served.host);
    let address = client.simulator.url().trim_start_matches("https://");
    let http = crate::support::http(&client.simulator)
        .resolve(&served.host, address.parse().unwrap())
        .build()
        .unwrap();
    let answer = http.post(format!("{url}/a?b=c")).body("words").send().await;
    let answer = answer.unwrap();
    assert_eq!(answer.version(), reqwest::Version::HTTP_2);
    let seen: Value = answer.json().await.unwrap();
    assert_eq!(
        (&seen["url"], &seen["body"]),
        (&json!("/a?b=c"), &json!("words"))
    );
    assert!(
        seen["host"].as_str().unwrap().starts_with(&served.host),
        "{seen}"
    );
}
