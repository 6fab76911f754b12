//! The network of a Devbox, made by its init from inside its network namespace.
//!
//! An open network is a pair of interfaces with a network of two addresses in
//! 198.18.0.0/15, the block for benchmarks that no real network uses. There is no default
//! route: what is not the host answers "unreachable" at once.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use nix::net::if_::if_nametoindex;

use super::netlink::Netlink;
use crate::guest::spec::Network;

/// What the Devbox's end is called.
const INSIDE_NAME: &str = "eth0";
/// The names of the host's ends begin so.
pub(super) const OUTSIDE_PREFIX: &str = "rl-";
const LOOPBACK_INDEX: u32 = 1;
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
/// Pairs of addresses in the block.
const PAIRS: u32 = 1 << 16;

/// The kernel needs some 20 ms for a batch of networks.
const REMOVAL_POLL: Duration = Duration::from_millis(5);
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Switches on what `network` allows; the host's address if there is one. `host` was
/// opened before this process left the host's network.
pub(super) fn set_up(
    network: Network,
    host: &Netlink,
    outside_name: &str,
) -> io::Result<Option<Ipv4Addr>> {
    let inside = Netlink::open()?;
    inside.set_up(LOOPBACK_INDEX)?;
    if network == Network::LoopbackOnly {
        return Ok(None);
    }
    host.add_veth(outside_name, INSIDE_NAME, File::open("/proc/self/ns/net")?)?;
    let outside_index = host.index_of(outside_name)?;
    // The host gives every interface another number, whichever simulator makes it, and
    // does not give it again before it has to: no two pairs meet.
    let first = FIRST_ADDRESS.to_bits() + 2 * (outside_index % PAIRS);
    let gateway = Ipv4Addr::from_bits(first);
    host.add_address(outside_index, gateway)?;
    host.set_up(outside_index)?;
    let inside_index = inside.index_of(INSIDE_NAME)?;
    inside.add_address(inside_index, Ipv4Addr::from_bits(first + 1))?;
    inside.set_up(inside_index)?;
    Ok(Some(gateway))
}

/// A name for the host's end that no other has.
pub(super) fn fresh_outside_name() -> String {
    let random = uuid::Uuid::new_v4().simple().to_string();
    // The kernel takes 15 bytes.
    format!("{OUTSIDE_PREFIX}{}", random.get(..12).unwrap_or_default())
}

/// Drops the names of which no interface is left.
pub(super) fn forget_gone(outside_names: &mut Vec<String>) {
    outside_names.retain(|name| if_nametoindex(name.as_str()).is_ok());
}

/// Waits until no interface of these names is left: the kernel removes them with the
/// network of their Devbox, but later than its last process.
pub(super) fn wait_until_gone(outside_names: &[String]) {
    let deadline = Instant::now() + REMOVAL_TIMEOUT;
    let mut left = outside_names.to_vec();
    forget_gone(&mut left);
    while !left.is_empty() && Instant::now() < deadline {
        std::thread::sleep(REMOVAL_POLL);
        forget_gone(&mut left);
    }
}
