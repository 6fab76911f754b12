//! Terminals through a PTY tunnel, with a plain WebSocket client.

use futures::{SinkExt, StreamExt};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::support::{Client, Reply, send};

/// A box's terminals as a client reaches them.
struct Terminals {
    client: Client,
    devbox: String,
    host: String,
    token: String,
}

type Socket = WebSocketStream<TcpStream>;

impl Terminals {
    async fn start(settings: Value) -> Self {
        let client = Client::start_set(settings);
        let devbox = client.running_devbox(json!({})).await;
        let path = format!("/v1/devboxes/{devbox}/create_pty_tunnel");
        let tunnel = client.post(&path, Value::Null).await.json(200);
        let key = tunnel["tunnel_key"].as_str().expect("a key");
        Self {
            host: format!("13-{key}.tunnel.localhost"),
            token: tunnel["auth_token"].as_str().expect("a token").to_owned(),
            client,
            devbox,
        }
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let anonymous = self.client.with_key("");
        let request = anonymous.request(method, path).header("host", &self.host);
        request.bearer_auth(&self.token)
    }

    async fn get(&self, path: &str) -> Reply {
        send(self.request(Method::GET, path)).await
    }

    async fn control(&self, session: &str, action: Value) -> Reply {
        let path = format!("/pty/{session}/control");
        send(self.request(Method::POST, &path).json(&action)).await
    }

    async fn attach(&self, connect_url: &str) -> Result<Socket, Error> {
        let address = self.client.simulator.url();
        let address = address.strip_prefix("http://").expect("plain HTTP");
        let stream = TcpStream::connect(address).await.expect("a connection");
        let mut request = format!("ws://{}{connect_url}", self.host).into_client_request()?;
        let token = self.token.parse().expect("a header");
        request
            .headers_mut()
            .insert("sec-websocket-protocol", token);
        client_async(request, stream)
            .await
            .map(|(socket, _)| socket)
    }

    /// Makes or finds a session and attaches to it.
    async fn open(&self, session: &str) -> Socket {
        let view = self.get(&format!("/pty/{session}")).await.json(200);
        let path = view["connect_url"].as_str().expect("a path");
        self.attach(path).await.expect("an attachment")
    }
}

async fn type_in(socket: &mut Socket, text: &str) {
    let bytes = text.as_bytes().to_vec();
    let sent = socket.send(Message::binary(bytes)).await;
    sent.expect("the session is there");
}

/// Everything that is shown until `wanted` was.
async fn shown(socket: &mut Socket, wanted: &str) -> String {
    let mut seen = String::new();
    while !seen.contains(wanted) {
        match socket.next().await.expect("more output").expect("a frame") {
            Message::Binary(bytes) => seen.push_str(&String::from_utf8_lossy(&bytes)),
            Message::Close(frame) => panic!("closed with {frame:?} after {seen:?}"),
            _ => {}
        }
    }
    seen
}

/// The code and the reason of the close that follows.
async fn closed(socket: &mut Socket) -> (u16, String) {
    loop {
        if let Message::Close(frame) = socket.next().await.expect("a close").expect("a frame") {
            let frame = frame.expect("a code");
            return (frame.code.into(), frame.reason.to_string());
        }
    }
}

fn refused(result: Result<Socket, Error>) -> u16 {
    match result {
        Err(Error::Http(response)) => response.status().as_u16(),
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_terminal_is_a_shell_that_tells_its_end_by_4000() {
    let terminals = Terminals::start(json!({})).await;
    let view = terminals.get("/pty/main?cols=101&rows=31").await.json(200);
    let path = view["connect_url"].as_str().expect("a path").to_owned();
    assert!(path.starts_with("/pty/main/attach?token="), "{path}");
    let mut rest = view.clone();
    rest.as_object_mut()
        .expect("an object")
        .remove("connect_url");
    let expected = json!({
        "session_name": "main", "status": "active", "protocol_version": "1",
        "created": true, "attached": false, "cols": 101, "rows": 31, "idle_ttl_seconds": 300,
    });
    assert_eq!(rest, expected);

    let mut socket = terminals.attach(&path).await.expect("an attachment");
    type_in(&mut socket, "echo \"size $(stty size) $TERM\"; cd /usr\n").await;
    shown(&mut socket, "size 31 101 xterm-256color").await;
    let text = Message::text("echo in $PWD; exit 7\n");
    socket.send(text).await.expect("the session is there");
    shown(&mut socket, "in /usr").await;
    assert_eq!(closed(&mut socket).await, (4000, "exit status 7".into()));

    // Whoever is late is told so; the name gives a fresh shell.
    let mut late = terminals.attach(&path).await.expect("an attachment");
    assert_eq!(closed(&mut late).await.0, 4000);
    for action in [
        json!({ "action": "resize", "cols": 80, "rows": 24 }),
        json!({ "action": "signal", "signal": "SIGINT" }),
    ] {
        terminals.control("main", action).await.json(400);
    }
    let again = terminals.get("/pty/main").await.json(200);
    assert_eq!(again["created"], true);
    assert_eq!([&again["cols"], &again["rows"]], [80, 24]);
}

#[tokio::test]
async fn a_session_has_one_client_and_outlives_it() {
    let terminals = Terminals::start(json!({ "pty_backlog_bytes": 65536 })).await;
    let mut first = terminals.open("main").await;
    type_in(&mut first, "cd /usr; KEPT=yes; echo r\"\"eady\n").await;
    shown(&mut first, "ready").await;

    // The bootstrap succeeds, the upgrade does not.
    let second = terminals.get("/pty/main").await.json(200);
    assert_eq!(second["created"], false);
    assert_eq!(second["attached"], true);
    let path = second["connect_url"].as_str().expect("a path");
    assert_eq!(refused(terminals.attach(path).await), 409);
    let mut other = terminals.open("other").await;
    type_in(&mut other, "echo \"other $KEPT$PWD\"\n").await;
    shown(&mut other, "other /").await;

    let wait = "until [ -e ~/go ]; do sleep 0.02; done; echo la\"\"te; touch ~/done\n";
    type_in(&mut first, wait).await;
    drop(first);
    while terminals.get("/pty/main").await.json(200)["attached"] == true {
        tokio::task::yield_now().await;
    }
    let go = "touch go; until [ -e done ]; do sleep 0.02; done";
    terminals.client.run(&terminals.devbox, go).await;
    let mut again = terminals.attach(path).await.expect("an attachment");
    type_in(&mut again, "echo \"$KEPT at $PWD\"\n").await;
    let seen = shown(&mut again, "yes at /usr").await;
    assert!(seen.contains("late"), "the backlog is not there: {seen:?}");
}

#[tokio::test]
async fn a_terminal_is_resized_signalled_and_closed() {
    let terminals = Terminals::start(json!({})).await;
    let mut socket = terminals.open("main").await;
    type_in(&mut socket, "sh -c 'echo r\"\"eady; exec sleep 1000'\n").await;
    shown(&mut socket, "ready").await;
    let resize = json!({ "action": "resize", "cols": 1000, "rows": 1 });
    let done = terminals.control("main", resize).await.json(200);
    assert_eq!(done, json!({ "session_name": "main", "status": "active" }));
    let interrupt = json!({ "action": "signal", "signal": "SIGINT" });
    terminals.control("main", interrupt).await.json(200);
    type_in(&mut socket, "echo \"code $? size $(stty size)\"\n").await;
    shown(&mut socket, "code 130 size 1 1000").await;

    for wrong in [
        json!({ "action": "resize", "cols": 0, "rows": 24 }),
        json!({ "action": "resize", "cols": 80, "rows": 1001 }),
        json!({ "action": "resize", "cols": 80 }),
        json!({ "action": "signal", "signal": "SIGNONSENSE" }),
        json!({ "action": "signal" }),
        json!({ "action": "explode" }),
        json!({}),
    ] {
        terminals.control("main", wrong).await.json(400);
    }
    terminals
        .control("unknown", json!({ "action": "close" }))
        .await
        .json(404);

    type_in(&mut socket, "sleep 1000\n").await;
    let done = terminals
        .control("main", json!({ "action": "close" }))
        .await
        .json(200);
    assert_eq!(done["status"], "closed");
    assert_eq!(closed(&mut socket).await.0, 4000);
    terminals
        .control("main", json!({ "action": "close" }))
        .await
        .json(404);
    let left = "for i in $(seq 100); do pgrep -x sleep || exit 0; sleep 0.1; done; exit 1";
    assert_eq!(
        terminals.client.run(&terminals.devbox, left).await["exit_status"],
        0
    );
    let fresh = terminals.get("/pty/main").await.json(200);
    assert_eq!(fresh["created"], true);
}

#[tokio::test]
async fn a_terminal_wants_its_token_a_legal_name_and_its_own_host() {
    let terminals = Terminals::start(json!({})).await;
    let anonymous = terminals.client.with_key("");
    let bare = || {
        anonymous
            .request(Method::GET, "/pty/main")
            .header("host", &terminals.host)
    };
    send(bare()).await.json(401);
    send(bare().bearer_auth("nonsense")).await.json(401);
    let own = format!("Bearer {}", terminals.token);
    let view = send(bare().header("x-runloop-tunnel-authorization", own))
        .await
        .json(200);
    assert_eq!(
        refused(terminals.attach("/pty/main/attach?token=wrong").await),
        401
    );
    assert_eq!(
        refused(terminals.attach("/pty/none/attach?token=wrong").await),
        404
    );
    let path = view["connect_url"].as_str().expect("a path");
    let stranger = Terminals {
        token: "wrong".into(),
        ..terminals
    };
    assert_eq!(refused(stranger.attach(path).await), 401);

    let terminals = Terminals::start(json!({})).await;
    for name in ["a.b", "a%20b", &"x".repeat(257)] {
        terminals.get(&format!("/pty/{name}")).await.json(400);
    }
    let long = "x".repeat(256);
    terminals.get(&format!("/pty/{long}")).await.json(200);
    // A size of which a part is missing or wrong does not count.
    for query in [
        "cols=100",
        "cols=100&rows=0",
        "cols=x&rows=24",
        "cols=1001&rows=1",
    ] {
        let view = terminals.get(&format!("/pty/a?{query}")).await.json(200);
        assert_eq!([&view["cols"], &view["rows"]], [80, 24], "{query}");
    }
    terminals.get("/elsewhere").await.json(404);
    // The API's own host does not know whose terminal is meant.
    terminals.client.get("/pty/main").await.json(404);
    let box_path = format!("/v1/devboxes/{}", terminals.devbox);
    let shown = terminals.client.get(&box_path).await.json(200);
    assert!(shown.get("tunnel").is_none_or(Value::is_null), "{shown}");
}

#[tokio::test]
async fn a_suspend_ends_the_sessions_and_an_unattended_one_ends_by_itself() {
    let terminals = Terminals::start(json!({ "pty_idle_ttl_seconds": 60 })).await;
    let client = &terminals.client;
    let mut socket = terminals.open("main").await;
    terminals.get("/pty/idle").await.json(200);
    let clock = json!({ "advance_seconds": 61 });
    client.post("/_simulator/clock", clock).await.json(200);
    assert_eq!(terminals.get("/pty/idle").await.json(200)["created"], true);
    assert_eq!(terminals.get("/pty/main").await.json(200)["created"], false);

    let path = format!("/v1/devboxes/{}", terminals.devbox);
    client
        .post(&format!("{path}/suspend"), json!({}))
        .await
        .json(200);
    assert_eq!(closed(&mut socket).await.0, 4000);
    client.wait(&terminals.devbox, &["suspended"]).await;
    terminals.get("/pty/main").await.json(503);
    let tunnel = format!("{path}/create_pty_tunnel");
    client.post(&tunnel, Value::Null).await.json(400);
    client
        .post(&format!("{path}/resume"), json!({}))
        .await
        .json(200);
    client.wait(&terminals.devbox, &["running"]).await;
    assert_eq!(terminals.get("/pty/main").await.json(200)["created"], true);
}
