//! What a command wrote to one of its outputs: an append-only run of bytes.
//!
//! The first 64 KiB stay in memory; a longer output moves to an unlinked temporary file
//! as a whole, so that memory is bounded and nothing is left behind.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::sync::watch;

use super::lock;

const MAX_BYTES_IN_MEMORY: usize = 64 * 1024;

/// A growing output. Clones read the same bytes.
#[derive(Debug, Clone)]
pub struct Spool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: Mutex<Store>,
    progress: watch::Sender<Progress>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    len: u64,
    settled: bool,
    closed: bool,
}

#[derive(Debug)]
enum Store {
    Memory(Vec<u8>),
    Disk(File),
    /// The temporary file could not be made or written; bytes are missing.
    Lost(io::ErrorKind),
}

impl Spool {
    pub(super) fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                store: Mutex::new(Store::Memory(Vec::new())),
                progress: watch::Sender::new(Progress::default()),
            }),
        }
    }

    /// Bytes written so far.
    pub fn len(&self) -> u64 {
        self.shared.progress.borrow().len
    }

    /// Whether nothing was written so far.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether every writer has closed its end: no more bytes will come.
    pub fn is_closed(&self) -> bool {
        self.shared.progress.borrow().closed
    }

    /// Whether everything is here that was written before the command's end. A child that
    /// outlives it may still write.
    pub fn is_settled(&self) -> bool {
        let progress = self.shared.progress.borrow();
        progress.settled || progress.closed
    }

    /// Waits until [`is_settled`](Self::is_settled).
    pub async fn settled(&self) {
        let mut progress = self.shared.progress.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let _ = progress.wait_for(|now| now.settled || now.closed).await;
    }

    /// Up to `max_bytes` bytes from `offset` on; empty at or past the end. Does not wait.
    ///
    /// # Errors
    ///
    /// When the output outgrew memory and the temporary file failed.
    pub fn read_at(&self, offset: u64, max_bytes: usize) -> io::Result<Bytes> {
        let available = self.len().saturating_sub(offset);
        let count = usize::try_from(available)
            .unwrap_or(usize::MAX)
            .min(max_bytes);
        let store = lock(&self.shared.store);
        match &*store {
            Store::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let range = start..start.saturating_add(count);
                Ok(Bytes::copy_from_slice(bytes.get(range).unwrap_or_default()))
            }
            Store::Disk(file) => {
                // The file is unlinked and just written: this reads the page cache.
                let mut buffer = vec![0; count];
                file.read_exact_at(&mut buffer, offset)?;
                Ok(buffer.into())
            }
            Store::Lost(kind) => Err((*kind).into()),
        }
    }

    /// Waits until there are bytes past `offset` or no more will come.
    pub async fn grown_past(&self, offset: u64) {
        let mut progress = self.shared.progress.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let _ = progress
            .wait_for(|now| now.closed || now.len > offset)
            .await;
    }

    /// Waits until no more bytes will come.
    pub async fn closed(&self) {
        self.grown_past(u64::MAX).await;
    }

    pub(super) fn append(&self, bytes: &[u8]) {
        let end = {
            let mut store = lock(&self.shared.store);
            let start = self.len();
            store.append(start, bytes);
            start + bytes.len() as u64
        };
        self.shared
            .progress
            .send_modify(|progress| progress.len = end);
    }

    pub(super) fn settle(&self) {
        self.shared
            .progress
            .send_modify(|progress| progress.settled = true);
    }

    pub(super) fn close(&self) {
        self.shared
            .progress
            .send_modify(|progress| progress.closed = true);
    }
}

impl Store {
    fn append(&mut self, start: u64, bytes: &[u8]) {
        let result = match self {
            Self::Memory(kept) if kept.len() + bytes.len() <= MAX_BYTES_IN_MEMORY => {
                kept.extend_from_slice(bytes);
                Ok(())
            }
            Self::Memory(kept) => move_to_disk(kept, bytes).map(|file| *self = Self::Disk(file)),
            Self::Disk(file) => file.write_all_at(bytes, start),
            Self::Lost(_) => Ok(()),
        };
        if let Err(error) = result {
            *self = Self::Lost(error.kind());
        }
    }
}

fn move_to_disk(kept: &[u8], bytes: &[u8]) -> io::Result<File> {
    let file = tempfile::tempfile()?;
    file.write_all_at(kept, 0)?;
    file.write_all_at(bytes, kept.len() as u64)?;
    Ok(file)
}
