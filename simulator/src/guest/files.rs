//! Files of a Devbox, opened by its init as its user, so that paths and links lead
//! where they lead for commands. Without namespaces that is the host's tree; a path
//! under the nominal home (`/home/user`) leads to the Devbox's own home then.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use tokio::task::spawn_blocking;

use super::devbox::{Guest, GuestShared};
use super::error::FileError;
use super::layer;
use super::protocol::InitRequest;

/// Bytes that one read asks for.
const READ_BYTES: usize = 256 * 1024;

/// A file that is being read.
#[derive(Debug)]
pub struct FileReader {
    file: Arc<std::fs::File>,
    len: u64,
    position: u64,
}

/// A file that is being written. What was written stays if it is dropped half-way.
#[derive(Debug)]
pub struct FileWriter {
    file: Arc<std::fs::File>,
    position: u64,
    /// How far the file may grow where the disk itself has no limit.
    allowance: Option<u64>,
}

impl Guest {
    /// The whole content of a file of at most `max_bytes`.
    ///
    /// Relative paths and `~/` lead to the home directory. The path resolves as it does
    /// for a command of the Devbox's user.
    ///
    /// # Errors
    ///
    /// See [`FileError`].
    pub async fn read_file(&self, path: &str, max_bytes: u64) -> Result<Bytes, FileError> {
        let mut reader = self.open_file(path).await?;
        let too_large = |actual_bytes| FileError::TooLarge {
            actual_bytes,
            max_bytes,
        };
        if reader.len > max_bytes {
            return Err(too_large(reader.len));
        }
        let mut content = Vec::with_capacity(usize::try_from(reader.len).unwrap_or(0));
        while let Some(bytes) = reader.next().await? {
            content.extend_from_slice(&bytes);
            // Some files, as those of /proc, hold more than they say.
            if content.len() as u64 > max_bytes {
                return Err(too_large(content.len() as u64));
            }
        }
        Ok(content.into())
    }

    /// Opens a regular file to read it piece by piece.
    ///
    /// # Errors
    ///
    /// See [`FileError`].
    pub async fn open_file(&self, path: &str) -> Result<FileReader, FileError> {
        let file = self.open(path, false).await?;
        let len = file.metadata()?.len();
        Ok(FileReader {
            file: Arc::new(file),
            len,
            position: 0,
        })
    }

    /// Replaces the content of a file, or makes it (mode 0644). Parents are not made;
    /// whether the real service makes them is unknown.
    ///
    /// # Errors
    ///
    /// See [`FileError`]; after [`FileError::NoSpace`] the file holds what fitted.
    pub async fn write_file(&self, path: &str, content: Bytes) -> Result<(), FileError> {
        self.create_file(path).await?.write(content).await
    }

    /// Empties a file, or makes it, to write it piece by piece.
    ///
    /// # Errors
    ///
    /// See [`FileError`].
    pub async fn create_file(&self, path: &str) -> Result<FileWriter, FileError> {
        let file = self.open(path, true).await?;
        let allowance = self.shared.allowance().await?;
        Ok(FileWriter {
            file: Arc::new(file),
            position: 0,
            allowance,
        })
    }

    async fn open(&self, path: &str, write: bool) -> Result<std::fs::File, FileError> {
        if path.is_empty() || path.contains('\0') {
            return Err(FileError::InvalidPath);
        }
        let request = InitRequest::Open {
            path: self.shared.resolve(path),
            user: self.shared.spec.user.clone(),
            write,
        };
        let file = self
            .running()?
            .call_for_descriptor("opening", request)
            .await?;
        Ok(file.into())
    }
}

impl GuestShared {
    /// The absolute path, as the init names it.
    fn resolve(&self, path: &str) -> String {
        let home = self.home();
        let relative = match path {
            "~" => "",
            _ => path.strip_prefix("~/").unwrap_or(path),
        };
        if !relative.starts_with('/') {
            return format!("{home}/{relative}");
        }
        if self.machine.is_plain()
            && let Ok(below) = Path::new(relative).strip_prefix(&self.spec.user.home)
        {
            return format!("{home}/{}", below.display());
        }
        relative.to_owned()
    }

    /// What may still be written where only this room watches the limit.
    async fn allowance(&self) -> Result<Option<u64>, FileError> {
        let Some(max_bytes) = self.spec.max_disk_bytes else {
            return Ok(None);
        };
        if !self.machine.is_plain() && !self.machine.keeps_state {
            return Ok(None);
        }
        let used = layer::size_of(self.disk()?).await?;
        Ok(Some(max_bytes.saturating_sub(used)))
    }
}

impl FileReader {
    /// The file's size in bytes when it was opened.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the file held nothing when it was opened.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The next piece, at most 256 KiB; `None` at the end.
    ///
    /// # Errors
    ///
    /// See [`FileError`].
    pub async fn next(&mut self) -> Result<Option<Bytes>, FileError> {
        let (file, position) = (Arc::clone(&self.file), self.position);
        let read = move || {
            let mut buffer = vec![0; READ_BYTES];
            let count = file.read_at(&mut buffer, position)?;
            buffer.truncate(count);
            Ok::<_, io::Error>(buffer)
        };
        let piece = spawn_blocking(read).await.map_err(io::Error::from)??;
        self.position += piece.len() as u64;
        Ok((!piece.is_empty()).then(|| piece.into()))
    }
}

impl FileWriter {
    /// Writes all of `bytes` behind what was written before.
    ///
    /// # Errors
    ///
    /// See [`FileError`].
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), FileError> {
        let end = self.position + bytes.len() as u64;
        if self.allowance.is_some_and(|allowance| end > allowance) {
            return Err(FileError::NoSpace);
        }
        let (file, position) = (Arc::clone(&self.file), self.position);
        let write = move || file.write_all_at(&bytes, position);
        spawn_blocking(write).await.map_err(io::Error::from)??;
        self.position = end;
        Ok(())
    }
}
