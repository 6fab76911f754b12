//! The binary as a child process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// How long an orderly end may take.
const END_LIMIT: Duration = Duration::from_secs(30);

/// A running binary; killed when dropped.
pub(crate) struct Instance {
    child: Child,
    /// Its end ends the simulator.
    stdin: Option<ChildStdin>,
    announced: Value,
}

impl Instance {
    /// Starts one with a directory for its temporary files and further arguments.
    pub(crate) fn start_in(temporary: &Path, arguments: &[&str]) -> Self {
        Self::start_by(Command::new(Self::binary()), temporary, arguments)
    }

    /// The binary that cargo built for these tests.
    pub(crate) fn binary() -> &'static str {
        env!("CARGO_BIN_EXE_runloop-simulator")
    }

    /// Starts one through `command`, which must run the binary in the end.
    pub(crate) fn start_by(mut command: Command, temporary: &Path, arguments: &[&str]) -> Self {
        let mut child = command
            .args(["--port", "0"])
            .args(arguments)
            .env("TMPDIR", temporary)
            .env("RUNLOOP_SIMULATOR_LOG", "warn")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("a line of text");
        let announced = serde_json::from_str(&line).expect("a line of JSON");
        Self {
            stdin: child.stdin.take(),
            child,
            announced,
        }
    }

    pub(crate) fn url(&self) -> &str {
        self.announced["url"].as_str().expect("its address")
    }

    /// Whether each Devbox has namespaces of its own.
    pub(crate) fn isolates(&self) -> bool {
        self.announced["isolation"] == "namespaces"
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"))
    }

    /// Asks it to end and waits until it has.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        self.end_by(Signal::SIGTERM)
    }

    /// Ends it without any chance to clean up.
    pub(crate) fn murder(&mut self) -> ExitStatus {
        self.end_by(Signal::SIGKILL)
    }

    /// Lets go of it, as the end of the process that started it would.
    pub(crate) fn abandon(&mut self) -> ExitStatus {
        drop(self.stdin.take());
        self.wait()
    }

    fn end_by(&mut self, signal: Signal) -> ExitStatus {
        kill(self.pid(), signal).expect("it runs");
        self.wait()
    }

    fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + END_LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status;
            }
            assert!(Instant::now() < deadline, "it has not ended in time");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        self.child.kill().unwrap_or_default();
        let _status = self.child.wait();
    }
}
