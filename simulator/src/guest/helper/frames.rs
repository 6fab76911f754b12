//! The blocking end of a socket to the simulator. An error of it means that the
//! simulator is gone.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use serde::de::DeserializeOwned;

use crate::guest::channel::{decode_header, encode};
use crate::guest::descriptors;
use crate::guest::protocol::{Answer, Envelope, HEADER_BYTES};

/// A socket that carries frames.
pub(super) struct FrameSocket {
    stream: UnixStream,
}

impl FrameSocket {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self {
            stream: socket.into(),
        }
    }

    /// Waits for a request; `None` when the simulator has closed its end.
    pub(super) fn receive<T: DeserializeOwned>(
        &mut self,
    ) -> io::Result<Option<(Envelope<T>, VecDeque<OwnedFd>)>> {
        let mut attached = VecDeque::new();
        let mut header = [0; HEADER_BYTES];
        let first = descriptors::receive(self.stream.as_fd(), &mut header, &mut attached)?;
        if first == 0 {
            return Ok(None);
        }
        if let Some(rest) = header.get_mut(first..) {
            self.stream.read_exact(rest)?;
        }
        let (body_bytes, _) = decode_header(header);
        let mut body = vec![0; body_bytes];
        self.stream.read_exact(&mut body)?;
        Ok(Some((serde_json::from_slice(&body)?, attached)))
    }

    /// Sends an answer (or, with id 0, an event).
    pub(super) fn send(&self, id: u64, body: Answer, attached: &[OwnedFd]) -> io::Result<()> {
        let bytes = encode(&Envelope { id, body }, attached.len())?;
        let mut rest = bytes.as_slice();
        let mut attached = attached;
        while !rest.is_empty() {
            let sent = descriptors::send(self.stream.as_fd(), rest, attached)?;
            attached = &[];
            rest = rest.get(sent..).unwrap_or_default();
        }
        Ok(())
    }
}

impl AsFd for FrameSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// An error as an answer.
pub(super) fn failed(error: &io::Error) -> Answer {
    match error.raw_os_error() {
        Some(errno) => Answer::Failed {
            errno,
            message: String::new(),
        },
        None => Answer::Failed {
            errno: 0,
            message: error.to_string(),
        },
    }
}
