//! Where commands run: plain processes with a directory of their own.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::watch;

/// A box's own directory and environment.
#[derive(Debug)]
pub(crate) struct Guest {
    root: PathBuf,
    environment: BTreeMap<String, String>,
    groups: Mutex<Vec<Pid>>,
}

/// Output that grows until it is closed.
#[derive(Debug)]
pub(crate) struct Spool {
    bytes: Mutex<Vec<u8>>,
}

impl Spool {
    pub(crate) fn to_vec(&self) -> Vec<u8> {
        self.bytes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// A started command.
#[derive(Debug)]
pub(crate) struct Process {
    pid: Pid,
    pub(crate) stdout: Arc<Spool>,
    pub(crate) stderr: Arc<Spool>,
    exit: watch::Receiver<Option<i32>>,
}

impl Guest {
    pub(crate) async fn boot(id: &str, environment: BTreeMap<String, String>) -> io::Result<Self> {
        let root = std::env::temp_dir().join(format!("runloop-simulator-{id}"));
        tokio::fs::create_dir_all(root.join("home")).await?;
        Ok(Self {
            root,
            environment,
            groups: Mutex::default(),
        })
    }

    pub(crate) fn spawn(&self, command: &str) -> io::Result<Process> {
        let home = self.root.join("home");
        let mut child = Command::new("bash")
            .args(["--noprofile", "--norc", "-c", command])
            .env_clear()
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            )
            .env("HOME", &home)
            .env("USER", "user")
            .env("LANG", "C.UTF-8")
            .envs(&self.environment)
            .current_dir(&home)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let pid = Pid::from_raw(
            child
                .id()
                .and_then(|pid| i32::try_from(pid).ok())
                .unwrap_or(0),
        );
        self.groups
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(pid);
        let (stdout, stdout_end) = collect(child.stdout.take());
        let (stderr, stderr_end) = collect(child.stderr.take());
        let (exited, exit) = watch::channel(None);
        tokio::spawn(async move {
            let status = child.wait().await;
            let code = status.map_or(-1, |status| {
                use std::os::unix::process::ExitStatusExt;
                status
                    .code()
                    .or(status.signal().map(|signal| 128 + signal))
                    .unwrap_or(-1)
            });
            // A killed command is over although its children hold its pipes.
            if code != 137 {
                let _both = tokio::join!(stdout_end, stderr_end);
            }
            exited.send_replace(Some(code));
        });
        Ok(Process {
            pid,
            stdout,
            stderr,
            exit,
        })
    }

    pub(crate) async fn destroy(&self) {
        let groups =
            std::mem::take(&mut *self.groups.lock().unwrap_or_else(PoisonError::into_inner));
        for group in groups {
            killpg(group, Signal::SIGKILL).unwrap_or_default();
        }
        tokio::fs::remove_dir_all(&self.root)
            .await
            .unwrap_or_default();
    }
}

impl Process {
    pub(crate) async fn exited(&self) -> i32 {
        let mut exit = self.exit.clone();
        let code = exit.wait_for(Option::is_some).await;
        code.ok().and_then(|code| *code).unwrap_or(-1)
    }

    pub(crate) fn kill(&self, whole_group: bool) {
        let sent = if whole_group {
            killpg(self.pid, Signal::SIGKILL)
        } else {
            kill(self.pid, Signal::SIGKILL)
        };
        sent.unwrap_or_default();
    }
}

fn collect(
    pipe: Option<impl AsyncRead + Unpin + Send + 'static>,
) -> (Arc<Spool>, tokio::task::JoinHandle<()>) {
    let spool = Arc::new(Spool {
        bytes: Mutex::default(),
    });
    let filled = Arc::clone(&spool);
    let end = tokio::spawn(async move {
        let Some(mut pipe) = pipe else { return };
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
            let mut bytes = filled.bytes.lock().unwrap_or_else(PoisonError::into_inner);
            bytes.extend_from_slice(buffer.get(..count).unwrap_or_default());
        }
    });
    (spool, end)
}
