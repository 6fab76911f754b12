//! The asynchronous end of a socket to a keeper or an init: calls with answers, events.
//!
//! Requests are queued without limit (their senders wait for answers, so the queue is
//! as long as the number of callers) and sent in order, so that a `drop` can post one.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde::Serialize;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::descriptors;
use super::error::GuestError;
use super::lock;
use super::protocol::{Answer, Envelope, HEADER_BYTES};

type Reply = (Answer, Vec<OwnedFd>);

/// One end of a socket to a helper process. Dropping it closes the socket, which tells
/// the helper to end.
pub(super) struct Channel {
    next_id: AtomicU64,
    outbox: mpsc::UnboundedSender<Frame>,
    pending: Arc<Pending>,
    socket: Arc<UnixStream>,
    tasks: [JoinHandle<()>; 2],
}

struct Frame {
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

#[derive(Default)]
struct Pending {
    /// `None` once the peer is gone: nobody may wait any more.
    waiting: Mutex<Option<HashMap<u64, oneshot::Sender<Reply>>>>,
}

impl Pending {
    fn register(&self, id: u64) -> Option<oneshot::Receiver<Reply>> {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        waiting.as_mut()?.insert(id, sender);
        Some(receiver)
    }

    fn settle(&self, id: u64, reply: Reply) {
        let mut waiting = lock(&self.waiting);
        if let Some(sender) = waiting.as_mut().and_then(|map| map.remove(&id)) {
            // The caller may have given up; what it asked for is closed with the reply.
            let _ = sender.send(reply);
        }
    }

    fn close(&self) {
        lock(&self.waiting).take();
    }
}

impl Channel {
    /// Takes over `socket`. `on_event` sees each event in order and then, once, `None`
    /// when the peer has closed.
    pub(super) fn open(
        socket: StdUnixStream,
        on_event: impl FnMut(Option<Answer>) + Send + 'static,
    ) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let socket = Arc::new(UnixStream::from_std(socket)?);
        let pending = Arc::new(Pending {
            waiting: Mutex::new(Some(HashMap::new())),
        });
        let (outbox, queue) = mpsc::unbounded_channel();
        let writer = tokio::spawn(write_frames(Arc::clone(&socket), queue));
        let reader = tokio::spawn(read_frames(
            Arc::clone(&socket),
            Arc::clone(&pending),
            on_event,
        ));
        let tasks = [reader, writer];
        Ok(Self {
            next_id: AtomicU64::new(1),
            outbox,
            pending,
            socket,
            tasks,
        })
    }

    /// Sends a request and waits for its answer; a `Failed` answer is the error `what`.
    pub(super) async fn call<T: Serialize>(
        &self,
        what: &str,
        body: T,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Reply, GuestError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let receiver = self.pending.register(id).ok_or(GuestError::NotRunning)?;
        self.send(id, body, descriptors)?;
        match receiver.await {
            Ok((Answer::Failed { errno, message }, _)) => {
                let source = match errno {
                    0 => io::Error::other(message.clone()),
                    errno => io::Error::from_raw_os_error(errno),
                };
                let what = if message.is_empty() {
                    what.into()
                } else {
                    format!("{what}: {message}")
                };
                Err(GuestError::system(what, source))
            }
            Ok(reply) => Ok(reply),
            Err(_) => Err(GuestError::NotRunning),
        }
    }

    /// Sends a request whose answer nobody waits for. Works without a runtime.
    pub(super) fn post<T: Serialize>(&self, body: T) {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        // A peer that is gone has nothing left to do.
        let _ = self.send(id, body, Vec::new());
    }

    /// Closes the socket now, so that the helper ends. The tasks would let go of it only
    /// when the runtime next gets to them, which may be after the caller has blocked on
    /// the helper's end.
    pub(super) fn close(&self) {
        let socket = self.socket.as_fd().as_raw_fd();
        // An error means that the peer was faster.
        let _ = nix::sys::socket::shutdown(socket, nix::sys::socket::Shutdown::Both);
    }

    fn send<T: Serialize>(
        &self,
        id: u64,
        body: T,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(), GuestError> {
        let bytes = encode(&Envelope { id, body }, descriptors.len())
            .map_err(|error| GuestError::system("encoding a request", error))?;
        self.outbox
            .send(Frame { bytes, descriptors })
            .map_err(|_| GuestError::NotRunning)
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.close();
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// A frame's bytes.
pub(super) fn encode(envelope: &impl Serialize, descriptors: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; HEADER_BYTES];
    serde_json::to_writer(&mut bytes, envelope)?;
    let body_bytes = u32::try_from(bytes.len() - HEADER_BYTES)
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let descriptors = u32::try_from(descriptors).unwrap_or(u32::MAX);
    let header = u64::from(body_bytes) | (u64::from(descriptors) << 32);
    if let Some(place) = bytes.first_chunk_mut::<HEADER_BYTES>() {
        *place = header.to_le_bytes();
    }
    Ok(bytes)
}

/// What a header says: bytes of the body, number of descriptors.
pub(super) fn decode_header(header: [u8; HEADER_BYTES]) -> (usize, usize) {
    let header = u64::from_le_bytes(header);
    (
        (header & u64::from(u32::MAX)) as usize,
        (header >> 32) as usize,
    )
}

async fn write_frames(socket: Arc<UnixStream>, mut queue: mpsc::UnboundedReceiver<Frame>) {
    while let Some(frame) = queue.recv().await {
        let mut rest = frame.bytes.as_slice();
        let mut descriptors = frame.descriptors;
        while !rest.is_empty() {
            let sent = socket
                .async_io(Interest::WRITABLE, || {
                    descriptors::send(socket.as_fd(), rest, &descriptors)
                })
                .await;
            let Ok(sent) = sent else { return };
            descriptors.clear();
            rest = rest.get(sent..).unwrap_or_default();
        }
    }
}

async fn read_frames(
    socket: Arc<UnixStream>,
    pending: Arc<Pending>,
    mut on_event: impl FnMut(Option<Answer>),
) {
    let mut bytes = Vec::new();
    let mut descriptors = VecDeque::new();
    let mut chunk = vec![0; 16 * 1024];
    loop {
        let received = socket
            .async_io(Interest::READABLE, || {
                descriptors::receive(socket.as_fd(), &mut chunk, &mut descriptors)
            })
            .await;
        let count = received.unwrap_or(0);
        if count == 0 {
            break;
        }
        bytes.extend_from_slice(chunk.get(..count).unwrap_or_default());
        while let Some((envelope, attached)) = take_frame(&mut bytes, &mut descriptors) {
            match envelope.id {
                0 => on_event(Some(envelope.body)),
                id => pending.settle(id, (envelope.body, attached)),
            }
        }
    }
    pending.close();
    on_event(None);
}

fn take_frame(
    bytes: &mut Vec<u8>,
    descriptors: &mut VecDeque<OwnedFd>,
) -> Option<(Envelope<Answer>, Vec<OwnedFd>)> {
    let (body_bytes, attached) = decode_header(*bytes.first_chunk::<HEADER_BYTES>()?);
    let end = HEADER_BYTES + body_bytes;
    let envelope = serde_json::from_slice(bytes.get(HEADER_BYTES..end)?).ok()?;
    bytes.drain(..end);
    let attached = descriptors
        .drain(..attached.min(descriptors.len()))
        .collect();
    Some((envelope, attached))
}
