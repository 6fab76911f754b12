//! What a Devbox reaches and how it is reached.

use runloop_simulator::guest::{BoxSpec, Guest, GuestError, Machine, Network, Process, Spawn};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{print, run, shows};
use crate::{in_both, in_namespaces};

in_both!(
    a_listener_inside_is_reached,
    nobody_listening_is_a_refused_connection
);

/// Answers every connection with `word`. Perl is part of every Debian.
async fn serve(guest: &Guest, address: &str, word: &str) -> Process {
    let script = format!(
        "exec perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Listen => 5, ReuseAddr => 1, \
         LocalAddr => \"{address}\") or die $!; $| = 1; print $s->sockport, \"\\n\"; \
         while ($c = $s->accept) {{ print $c \"{word} \" . <$c>; close $c }}'"
    );
    let process = guest.spawn(Spawn::new(script)).await.unwrap();
    shows(process.stdout(), "\n").await;
    process
}

fn port(server: &Process) -> u16 {
    crate::support::text(server.stdout())
        .trim()
        .parse()
        .unwrap()
}

async fn ask(guest: &Guest, port: u16) -> String {
    let mut stream = guest.connect(port).await.unwrap();
    stream.write_all(b"hello\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn named(id: &str, network: Network) -> BoxSpec {
    let mut spec = BoxSpec::new(id);
    spec.network = network;
    spec
}

async fn a_listener_inside_is_reached(machine: Machine) {
    for network in [Network::Open, Network::LoopbackOnly] {
        let guest = machine.boot(named("box", network), None).await.unwrap();
        for address in ["127.0.0.1:0", "0.0.0.0:0"] {
            let server = serve(&guest, address, "from").await;
            assert_eq!(ask(&guest, port(&server)).await, "from hello\n");
        }
        guest.destroy().await.unwrap();
    }
}

async fn nobody_listening_is_a_refused_connection(machine: Machine) {
    let guest = machine
        .boot(named("box", Network::LoopbackOnly), None)
        .await
        .unwrap();
    let server = serve(&guest, "127.0.0.1:0", "x").await;
    let port = port(&server);
    guest.suspend().await.unwrap();
    assert!(matches!(
        guest.connect(port).await,
        Err(GuestError::NotRunning)
    ));
    guest.resume().await.unwrap();
    let Err(GuestError::System { source, .. }) = guest.connect(port).await else {
        panic!()
    };
    assert_eq!(source.kind(), std::io::ErrorKind::ConnectionRefused);
}

mod isolated {
    use super::*;

    in_namespaces!(
        two_devboxes_serve_the_same_port,
        an_open_devbox_reaches_a_listener_of_the_host_and_nothing_further,
        a_blocked_devbox_reaches_nothing,
        a_resumed_devbox_has_its_network_again,
    );

    async fn two_devboxes_serve_the_same_port(machine: Machine) {
        let one = machine
            .boot(named("one", Network::Open), None)
            .await
            .unwrap();
        let two = machine
            .boot(named("two", Network::LoopbackOnly), None)
            .await
            .unwrap();
        serve(&one, "0.0.0.0:3000", "one").await;
        serve(&two, "0.0.0.0:3000", "two").await;
        assert_eq!(ask(&one, 3000).await, "one hello\n");
        assert_eq!(ask(&two, 3000).await, "two hello\n");
    }

    /// A command that says whether a TCP connection could be made.
    fn dial(address: impl std::fmt::Display, port: u16) -> String {
        format!("timeout 5 bash -c ': > /dev/tcp/{address}/{port}' 2>/dev/null; echo $?")
    }

    async fn an_open_devbox_reaches_a_listener_of_the_host_and_nothing_further(machine: Machine) {
        let guest = machine
            .boot(named("box", Network::Open), None)
            .await
            .unwrap();
        let gateway = guest.gateway_address().unwrap();
        let listener = TcpListener::bind((gateway, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(print(&guest, &dial(gateway, port)).await, "0\n");
        let (_, peer) = listener.accept().await.unwrap();
        assert_ne!(peer.ip(), gateway);
        let outcome = run(&guest, "timeout 5 bash -c ': > /dev/tcp/192.0.2.1/80'").await;
        assert!(
            outcome.stderr.contains("Network is unreachable"),
            "{outcome:?}"
        );
        assert_ne!(
            run(&guest, "timeout 5 getent hosts example.com").await.code,
            124
        );
    }

    async fn a_blocked_devbox_reaches_nothing(machine: Machine) {
        let open = machine
            .boot(named("open", Network::Open), None)
            .await
            .unwrap();
        let gateway = open.gateway_address().unwrap();
        let listener = TcpListener::bind(("0.0.0.0", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(print(&open, &dial(gateway, port)).await, "0\n");
        let blocked = machine
            .boot(named("blocked", Network::LoopbackOnly), None)
            .await
            .unwrap();
        assert_eq!(blocked.gateway_address(), None);
        for address in [gateway.to_string(), "127.0.0.1".into(), "192.0.2.1".into()] {
            assert_eq!(print(&blocked, &dial(address, port)).await, "1\n");
        }
        let up = "for i in /sys/class/net/*; do [ $(( $(cat $i/flags) & 1 )) = 1 ] && echo ${i##*/}; done";
        assert_eq!(run(&blocked, up).await.stdout, "lo\n");
        let server = serve(&blocked, "127.0.0.1:0", "x").await;
        assert_eq!(
            print(&blocked, &dial("127.0.0.1", super::port(&server))).await,
            "0\n"
        );
    }

    async fn a_resumed_devbox_has_its_network_again(machine: Machine) {
        let guest = machine
            .boot(named("box", Network::Open), None)
            .await
            .unwrap();
        guest.suspend().await.unwrap();
        assert_eq!(guest.gateway_address(), None);
        guest.resume().await.unwrap();
        let gateway = guest.gateway_address().unwrap();
        let listener = TcpListener::bind((gateway, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(print(&guest, &dial(gateway, port)).await, "0\n");
    }
}
