//! A server that says exactly what a test tells it to, byte by byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(super) struct Arrived {
    /// `METHOD path HTTP/1.1`.
    pub(super) line: String,
    /// Header lines in lower case, in their order.
    pub(super) headers: Vec<String>,
    pub(super) body: Vec<u8>,
}

impl Arrived {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let prefix = format!("{name}:");
        self.headers
            .iter()
            .find_map(|line| line.strip_prefix(&prefix))
            .map(str::trim)
    }
}

/// One connection of the client.
pub(super) struct Connection {
    reader: BufReader<TcpStream>,
    arrived: Arc<Mutex<Vec<Arrived>>>,
}

impl Connection {
    /// The next request, or `None` once the client has closed.
    pub(super) fn request(&mut self) -> Option<Arrived> {
        let line = self.line()?;
        let mut headers = Vec::new();
        loop {
            let header = self.line()?;
            if header.is_empty() {
                break;
            }
            let (name, value) = header.split_once(':').unwrap();
            headers.push(format!("{}:{value}", name.to_ascii_lowercase()));
        }
        let mut arrived = Arrived {
            line,
            headers,
            body: Vec::new(),
        };
        let length = arrived
            .header("content-length")
            .map_or(0, |text| text.parse().unwrap());
        arrived.body = vec![0; length];
        self.reader.read_exact(&mut arrived.body).ok()?;
        self.arrived.lock().unwrap().push(arrived.clone());
        Some(arrived)
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
        }
    }

    /// Writes these bytes as they are.
    pub(super) fn write(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.reader.get_mut().write_all(bytes.as_ref());
    }

    /// A whole answer with a length.
    pub(super) fn answer(&mut self, status: &str, headers: &str, body: &str) {
        let length = body.len();
        self.write(format!(
            "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}"
        ));
    }

    /// Waits until the client closes.
    pub(super) fn hang(&mut self) {
        let _ = self.reader.read_to_end(&mut Vec::new());
    }
}

/// The server. Stops listening when it is dropped.
pub(super) struct Raw {
    address: SocketAddr,
    arrived: Arc<Mutex<Vec<Arrived>>>,
    connections: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

impl Raw {
    /// Calls `serve` in a thread of its own for each connection.
    pub(super) fn start(serve: impl Fn(&mut Connection) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let raw = Self {
            address: listener.local_addr().unwrap(),
            arrived: Arc::default(),
            connections: Arc::default(),
            is_over: Arc::default(),
        };
        let (arrived, connections) = (raw.arrived.clone(), raw.connections.clone());
        let (is_over, serve) = (raw.is_over.clone(), Arc::new(serve));
        thread::spawn(move || {
            for stream in listener.incoming() {
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                connections.fetch_add(1, Ordering::SeqCst);
                let reader = BufReader::new(stream.unwrap());
                let mut connection = Connection {
                    reader,
                    arrived: arrived.clone(),
                };
                let serve = serve.clone();
                thread::spawn(move || serve(&mut connection));
            }
        });
        raw
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn arrived(&self) -> Vec<Arrived> {
        self.arrived.lock().unwrap().clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}
