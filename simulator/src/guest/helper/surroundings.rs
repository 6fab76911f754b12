//! What surrounds the programs of a Devbox: made by its init before anything runs.

use std::fs::{self, DirBuilder};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::{DirBuilderExt, chown, symlink};
use std::path::{Path, PathBuf};

use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::setgroups;

use super::devbox_root::{self, RUNTIME_DIR};
use super::host::Host;
use super::netlink::Netlink;
use super::store::Place;
use super::{network, system};
use crate::guest::protocol::InitConfig;
use crate::guest::spec::User;

/// Where programs are looked for when the image has all of the host's.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What an init knows of its Devbox.
pub(super) struct Surroundings {
    /// The value of PATH.
    pub(super) path: String,
    /// Directories for temporary files.
    pub(super) temporary_dirs: Vec<PathBuf>,
    /// Where the simulator's end of the network is.
    pub(super) gateway_address: Option<Ipv4Addr>,
    switches_user: bool,
}

impl Surroundings {
    pub(super) fn enter(place: &Place<'_>, config: &InitConfig) -> io::Result<Self> {
        match place.host {
            Some(host) => Self::enter_isolated(host, place, config),
            None => Self::enter_plain(place, config),
        }
    }

    fn enter_isolated(host: &Host, place: &Place<'_>, config: &InitConfig) -> io::Result<Self> {
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        let outside = Netlink::open()?;
        devbox_root::separate()?;
        let gateway_address = network::set_up(config.network, &outside, &place.outside_name)?;
        devbox_root::enter(host, &place.disk_dir, config)?;
        system::drop_host_capabilities();
        setgroups(&[])?;
        let shells = Path::new(RUNTIME_DIR).join("shells");
        DirBuilder::new().mode(0o700).create(&shells)?;
        chown(&shells, Some(config.user.uid), Some(config.user.uid))?;
        Ok(Self {
            path: link_tools(&Path::new(RUNTIME_DIR).join("bin"), config)?,
            temporary_dirs: vec![PathBuf::from("/tmp"), shells],
            gateway_address,
            switches_user: true,
        })
    }

    /// Makes the directories of a Devbox that shares everything else with the host.
    fn enter_plain(place: &Place<'_>, config: &InitConfig) -> io::Result<Self> {
        prctl::set_pdeathsig(Signal::SIGTERM)?;
        // Orphans of the Devbox become children of this process, not of the host's init.
        prctl::set_child_subreaper(true)?;
        let upper = place.disk_dir.join("upper");
        let home = upper.join(config.user.home.trim_start_matches('/'));
        let (temporary, shells) = (upper.join("tmp"), place.box_dir.join("shells"));
        // Pipes of shells that a suspend cut off; the next ones may get the same names.
        let _ = fs::remove_dir_all(&shells);
        for dir in [&home, &temporary, &shells] {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        Ok(Self {
            path: link_tools(&place.box_dir.join("bin"), config)?,
            temporary_dirs: vec![temporary, shells],
            gateway_address: None,
            switches_user: false,
        })
    }

    /// The user that a process has to become; `None` to stay what it is.
    pub(super) fn switched<'a>(&self, user: &'a User) -> Option<&'a User> {
        self.switches_user.then_some(user)
    }
}

/// Fills the directory of tools if the image has chosen ones; the value of PATH.
fn link_tools(dir: &Path, config: &InitConfig) -> io::Result<String> {
    let Some(tools) = &config.tools else {
        return Ok(PATH.to_owned());
    };
    // A resumed Devbox may have another choice.
    let _ = fs::remove_dir_all(dir);
    DirBuilder::new().recursive(true).mode(0o755).create(dir)?;
    let applets = applets_of(&config.shell_program);
    for tool in tools {
        let program = program_of(tool, config, &applets)
            .ok_or_else(|| io::Error::other(format!("the host has no program {tool:?}")))?;
        symlink(program, dir.join(tool))?;
    }
    Ok(dir.to_string_lossy().into_owned())
}

fn program_of(tool: &str, config: &InitConfig, applets: &[String]) -> Option<PathBuf> {
    if tool.is_empty() || tool.contains('/') {
        return None;
    }
    if tool == "sh" || applets.iter().any(|applet| applet == tool) {
        return Some(PathBuf::from(&config.shell_program));
    }
    PATH.split(':')
        .map(|dir| Path::new(dir).join(tool))
        .find(|path| path.is_file())
}

/// The programs that are one with the image's shell.
fn applets_of(shell_program: &str) -> Vec<String> {
    if !shell_program.ends_with("/busybox") {
        return Vec::new();
    }
    let listed = std::process::Command::new(shell_program)
        .arg("--list")
        .output();
    // Without busybox no command of this image will run, and each says so.
    let listed = listed.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&listed)
        .lines()
        .map(str::to_owned)
        .collect()
}
