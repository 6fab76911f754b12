//! Requests to the kernel's network configuration (rtnetlink), each answered before the
//! next is sent. A socket configures the network namespace it was opened in, wherever
//! the process has gone since.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

const HEADER_BYTES: usize = 16;
/// `struct ifinfomsg`: family, type, index, flags, mask of flags.
const LINK_BYTES: usize = 16;

/// A netlink socket.
pub(super) struct Netlink {
    socket: OwnedFd,
}

impl Netlink {
    pub(super) fn open() -> io::Result<Self> {
        let socket = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkRoute,
        )?;
        Ok(Self { socket })
    }

    /// Makes a pair of interfaces: `name` here, `peer_name` in the namespace `peer_place`.
    pub(super) fn add_veth(
        &self,
        name: &str,
        peer_name: &str,
        peer_place: impl AsFd,
    ) -> io::Result<()> {
        let place = peer_place.as_fd().as_raw_fd().to_ne_bytes();
        let mut peer = link(0, 0).to_vec();
        attribute(&mut peer, libc::IFLA_IFNAME, &terminated(peer_name));
        attribute(&mut peer, libc::IFLA_NET_NS_FD, &place);
        let mut data = Vec::new();
        attribute(&mut data, VETH_INFO_PEER, &peer);
        let mut info = Vec::new();
        attribute(&mut info, libc::IFLA_INFO_KIND, b"veth");
        attribute(&mut info, libc::IFLA_INFO_DATA, &data);
        let mut body = link(0, 0).to_vec();
        attribute(&mut body, libc::IFLA_IFNAME, &terminated(name));
        attribute(&mut body, libc::IFLA_LINKINFO, &info);
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        self.request(libc::RTM_NEWLINK, flags, &body).map(drop)
    }

    /// The number of the interface `name`.
    pub(super) fn index_of(&self, name: &str) -> io::Result<u32> {
        let mut body = link(0, 0).to_vec();
        attribute(&mut body, libc::IFLA_IFNAME, &terminated(name));
        let answer = self.request(libc::RTM_GETLINK, 0, &body)?;
        let index = answer.get(4..).and_then(|rest| rest.first_chunk());
        index
            .map(|bytes| u32::from_ne_bytes(*bytes))
            .ok_or_else(|| Errno::EPROTO.into())
    }

    /// Switches an interface on.
    pub(super) fn set_up(&self, index: u32) -> io::Result<()> {
        self.request(libc::RTM_NEWLINK, 0, &link(index, libc::IFF_UP as u32))
            .map(drop)
    }

    /// Gives an interface an address whose network holds just one neighbour.
    pub(super) fn add_address(&self, index: u32, address: Ipv4Addr) -> io::Result<()> {
        let mut body = vec![
            libc::AF_INET as u8,
            POINT_TO_POINT_BITS,
            0,
            libc::RT_SCOPE_UNIVERSE,
        ];
        body.extend(index.to_ne_bytes());
        attribute(&mut body, libc::IFA_LOCAL, &address.octets());
        attribute(&mut body, libc::IFA_ADDRESS, &address.octets());
        self.request(
            libc::RTM_NEWADDR,
            libc::NLM_F_CREATE | libc::NLM_F_EXCL,
            &body,
        )
        .map(drop)
    }

    /// Sends one request and reads one answer: its body, empty for an acknowledgement.
    fn request(&self, kind: u16, flags: i32, body: &[u8]) -> io::Result<Vec<u8>> {
        // A request for data is answered by the data, any other by an acknowledgement.
        let wants = if kind == libc::RTM_GETLINK {
            0
        } else {
            libc::NLM_F_ACK
        };
        let flags = (flags | wants | libc::NLM_F_REQUEST) as u16;
        let mut message = ((HEADER_BYTES + body.len()) as u32).to_ne_bytes().to_vec();
        message.extend(kind.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend([0; 8]);
        message.extend(body);
        send(self.socket.as_raw_fd(), &message, MsgFlags::empty())?;
        let mut answer = vec![0; 32 * 1024];
        let count = recv(self.socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        answer.truncate(count);
        let kind = answer.get(4..).and_then(|rest| rest.first_chunk().copied());
        let body = answer.split_off(HEADER_BYTES.min(count));
        if kind.map(u16::from_ne_bytes) != Some(libc::NLMSG_ERROR as u16) {
            return Ok(body);
        }
        match body.first_chunk().copied().map(i32::from_ne_bytes) {
            Some(0) => Ok(Vec::new()),
            Some(negated) => Err(io::Error::from_raw_os_error(-negated)),
            None => Err(Errno::EPROTO.into()),
        }
    }
}

/// Not in libc: the peer of a veth, as `linux/veth.h` has it.
const VETH_INFO_PEER: u16 = 1;
const POINT_TO_POINT_BITS: u8 = 31;

fn link(index: u32, flags: u32) -> [u8; LINK_BYTES] {
    let mut bytes = [0; LINK_BYTES];
    for (place, value) in bytes.chunks_exact_mut(4).skip(1).zip([index, flags, flags]) {
        place.copy_from_slice(&value.to_ne_bytes());
    }
    bytes
}

/// Appends an attribute: length, kind, value, padding to four bytes.
fn attribute(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend(((4 + value.len()) as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

fn terminated(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.push(0);
    bytes
}
