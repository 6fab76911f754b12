//! What a Devbox is asked to be. Plain data; nothing here acts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A Devbox to boot.
#[derive(Debug, Clone)]
pub struct BoxSpec {
    /// Names the disk: 1 to 64 of `[A-Za-z0-9_-]`, unique on the machine.
    pub id: String,
    /// The host name that commands see (with namespaces).
    pub hostname: String,
    /// Variables of every command, over the defaults (HOME, USER, LOGNAME, SHELL, PATH).
    pub env: BTreeMap<String, String>,
    /// What the Devbox reaches.
    pub network: Network,
    /// Which shell and programs it has.
    pub image: Image,
    /// Who its commands run as.
    pub user: User,
    /// The most that the disk holds. With namespaces and without a state directory it
    /// holds for everything, otherwise only for the file operations of [`super::Guest`].
    /// `None` for no limit of its own.
    pub max_disk_bytes: Option<u64>,
}

impl BoxSpec {
    /// A Devbox with an open network, bash, every program of the host and the user `user`.
    pub fn new(id: impl Into<String>) -> Self {
        let id = id.into();
        Self {
            hostname: id.clone(),
            id,
            env: BTreeMap::new(),
            network: Network::Open,
            image: Image::default(),
            user: User::default(),
            max_disk_bytes: None,
        }
    }
}

/// What a Devbox reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// Loopback and, over a veth pair, listeners on the simulator's host. Nothing is
    /// forwarded further: a Devbox never reaches the internet through the simulator.
    Open,
    /// Loopback only.
    LoopbackOnly,
}

/// Which shell and programs a Devbox has.
#[derive(Debug, Clone, Default)]
pub struct Image {
    /// What runs commands.
    pub shell: GuestShell,
    /// The only programs on PATH, by name; `None` for the host's usual directories.
    /// Absolute paths still lead to every other program of the host.
    pub tools: Option<Vec<String>>,
}

/// What runs commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GuestShell {
    /// `/bin/bash`, as on the real service.
    #[default]
    Bash,
    /// `/bin/dash`.
    Dash,
    /// `/bin/busybox sh`; named tools are busybox applets where it has them.
    BusyBox,
}

impl GuestShell {
    pub(super) const fn program(self) -> &'static str {
        match self {
            Self::Bash => "/bin/bash",
            Self::Dash => "/bin/dash",
            Self::BusyBox => "/bin/busybox",
        }
    }

    /// What the shell finds in `argv[0]`: busybox picks its applet by it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Dash => "dash",
            Self::BusyBox => "sh",
        }
    }
}

/// Who commands run as. Without namespaces it is only told to them by USER and LOGNAME.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The account's name.
    pub name: String,
    /// Its number, also that of its group.
    pub uid: u32,
    /// Its home: where commands start and relative paths lead.
    pub home: String,
}

impl Default for User {
    /// `user` (1000) in `/home/user`. The name and the home are inferred from the real
    /// service's documentation; the number is unknown.
    fn default() -> Self {
        Self {
            name: "user".into(),
            uid: 1000,
            home: "/home/user".into(),
        }
    }
}

impl User {
    /// `root` in `/root`.
    pub fn root() -> Self {
        Self {
            name: "root".into(),
            uid: 0,
            home: "/root".into(),
        }
    }
}
