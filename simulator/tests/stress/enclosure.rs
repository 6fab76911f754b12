//! A mount and a network namespace of the test's own, in which a simulator is
//! the only one: what is left in them is left by it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sched::{CloneFlags, setns};
use nix::unistd::Pid;

use crate::instance::Instance;

/// A process that holds the two namespaces; they end with it.
pub(crate) struct Enclosure(Child);

impl Enclosure {
    /// `None` where this user may not make namespaces.
    pub(crate) fn new() -> Option<Self> {
        let script = "ip link set lo up && echo ready && exec cat";
        let mut holder = Command::new("unshare")
            .args(["--mount", "--net", "--propagation", "private", "sh", "-c"])
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut line = String::new();
        let stdout = holder.stdout.take()?;
        BufReader::new(stdout).read_line(&mut line).ok()?;
        (line == "ready\n").then_some(Self(holder))
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.0.id()).expect("a process id"))
    }

    /// Starts a simulator inside.
    pub(crate) fn start(&self, temporary: &Path, arguments: &[&str]) -> Instance {
        let mut command = Command::new("nsenter");
        command.arg(format!("--target={}", self.pid())).args([
            "--mount",
            "--net",
            "--",
            Instance::binary(),
        ]);
        Instance::start_by(command, temporary, arguments)
    }

    /// Runs `work` to its end on a thread whose sockets are inside.
    pub(crate) fn run<R: Send>(&self, work: impl AsyncFnOnce() -> R + Send) -> R {
        let network = File::open(format!("/proc/{}/ns/net", self.pid())).expect("it runs");
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                setns(network, CloneFlags::CLONE_NEWNET).expect("the namespace can be entered");
                tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .expect("a runtime")
                    .block_on(work())
            });
            match inside.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

impl Drop for Enclosure {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        self.0.kill().unwrap_or_default();
        let _status = self.0.wait();
    }
}
