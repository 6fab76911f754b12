//! Bytes and descriptors over a Unix stream socket: one system call each.
//! Both halves of the room use it; neither retries nor frames here.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::cmsg_space;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};

use super::protocol::MAX_DESCRIPTORS;

/// Sends what fits of `bytes`; `descriptors` go with the first byte.
/// A peer that is gone is an error, not a signal.
pub(super) fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[OwnedFd],
) -> io::Result<usize> {
    let raw: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let control = if raw.is_empty() {
        &rights[..0]
    } else {
        &rights[..]
    };
    let parts = [IoSlice::new(bytes)];
    Ok(sendmsg::<()>(
        socket.as_raw_fd(),
        &parts,
        control,
        MsgFlags::MSG_NOSIGNAL,
        None,
    )?)
}

/// Receives up to `buffer.len()` bytes (0: the peer has closed) and appends to
/// `descriptors` what came with them, closed on exec.
pub(super) fn receive(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    descriptors: &mut impl Extend<OwnedFd>,
) -> io::Result<usize> {
    let mut control = cmsg_space!([RawFd; MAX_DESCRIPTORS]);
    let mut parts = [IoSliceMut::new(buffer)];
    let message = recvmsg::<()>(
        socket.as_raw_fd(),
        &mut parts,
        Some(&mut control),
        MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    for entry in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(raw) = entry {
            descriptors.extend(raw.into_iter().map(adopt));
        }
    }
    Ok(message.bytes)
}

#[expect(unsafe_code, reason = "a received descriptor comes as a bare number")]
fn adopt(raw: RawFd) -> OwnedFd {
    // SAFETY: the kernel has just made this descriptor for us; nobody else owns it.
    unsafe { OwnedFd::from_raw_fd(raw) }
}
