//! A named shell: one long-lived shell process whose directory and variables persist.
//!
//! The shell reads its script from a pipe, one line a command:
//! `eval '<command>' </dev/null >OUT 2>ERR 3>&-`, then a line that writes the exit code
//! to descriptor 3. OUT and ERR are named pipes of that command alone, so that outputs
//! never mix. `eval` at the top level (not a function, not a loop) keeps `declare`,
//! `break` and `return` as they are in a script, and a syntax error inside it ends only
//! the command. When the shell itself ends (`exit`, `set -e`, `exec`, a kill) the command
//! ends with its code, and the next one gets a fresh shell; whether the real service
//! does so is unknown.

use std::sync::{Arc, Weak};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, watch};

use super::devbox::GuestShared;
use super::error::GuestError;
use super::process::{KILLED, Process, ProcessState, Target};
use super::protocol::InitRequest;
use super::running::{Running, receiving_pipe};
use super::spec::User;

/// A handle to a named shell. Clones queue to the same one.
#[derive(Debug, Clone)]
pub struct Shell {
    queue: mpsc::UnboundedSender<Job>,
}

#[derive(Debug)]
struct Job {
    script: String,
    process: Process,
}

/// The shell process and the ends of its pipes.
struct Live {
    running: Arc<Running>,
    exec: u64,
    script: pipe::Sender,
    status: BufReader<pipe::Receiver>,
    exit_code: watch::Receiver<Option<i32>>,
}

impl Shell {
    pub(super) fn new(guest: Weak<GuestShared>) -> Self {
        let (queue, jobs) = mpsc::unbounded_channel();
        tokio::spawn(run_jobs(guest, jobs));
        Self { queue }
    }

    /// Queues a script behind those that were given before. It runs when their codes are
    /// known, even if what they left behind still holds their outputs.
    ///
    /// # Errors
    ///
    /// [`GuestError::InvalidInput`] for a script with a NUL; [`GuestError::NotRunning`].
    pub fn spawn(&self, script: impl Into<String>) -> Result<Process, GuestError> {
        let script = script.into();
        if script.contains('\0') {
            return Err(GuestError::InvalidInput(
                "a script cannot hold a NUL".into(),
            ));
        }
        let process = Process::new(ProcessState::Queued);
        let job = Job {
            script,
            process: process.clone(),
        };
        self.queue.send(job).map_err(|_| GuestError::NotRunning)?;
        Ok(process)
    }
}

async fn run_jobs(guest: Weak<GuestShared>, mut jobs: mpsc::UnboundedReceiver<Job>) {
    let mut live: Option<Live> = None;
    let mut number = 0_u64;
    while let Some(job) = jobs.recv().await {
        number += 1;
        let is_queued = job.process.state() == ProcessState::Queued;
        let Some(shared) = guest.upgrade().filter(|_| is_queued) else {
            job.process.finish_unstarted(KILLED);
            continue;
        };
        if live
            .as_ref()
            .is_none_or(|live| live.exit_code.borrow().is_some())
        {
            live = start(&shared).await.ok();
        }
        let ran = match &mut live {
            Some(live) => {
                let prefix = format!("{}/{}-{number}", shared.runtime_dir(), live.exec);
                let user = shared.spec.user.clone();
                // A command must not keep its Devbox from ending.
                drop(shared);
                run(live, user, &prefix, &job).await
            }
            None => Err(GuestError::NotRunning),
        };
        if ran.is_err() {
            job.process.finish_unstarted(KILLED);
            live = None;
        }
    }
}

async fn start(guest: &GuestShared) -> Result<Live, GuestError> {
    let failed = |error| GuestError::system("making a pipe", error);
    let running = guest.running()?;
    let (script_reader, script) = std::io::pipe().map_err(failed)?;
    let (status, status_writer) = receiving_pipe().map_err(failed)?;
    let null = || {
        std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/null")
            .map_err(failed)
    };
    let mut request = guest.shell_request(&running, vec!["-s".into()]);
    request.null_stdin = false;
    request.status_pipe = true;
    let exec = request.exec;
    let (exited, exit_code) = watch::channel(None);
    running.on_exit(exec, move |code| _ = exited.send(Some(code)));
    let descriptors = vec![
        script_reader.into(),
        null()?.into(),
        null()?.into(),
        status_writer,
    ];
    let request = InitRequest::Spawn(request);
    if let Err(error) = running.call("starting a shell", request, descriptors).await {
        running.forget_exit(exec);
        return Err(error);
    }
    let script = pipe::Sender::from_owned_fd(script.into()).map_err(failed)?;
    Ok(Live {
        running,
        exec,
        script,
        status: BufReader::new(status),
        exit_code,
    })
}

async fn run(live: &mut Live, user: User, prefix: &str, job: &Job) -> Result<(), GuestError> {
    let stdout_path = format!("{prefix}.out");
    let stderr_path = format!("{prefix}.err");
    // The second descriptor of each keeps the pipe from ending before the shell opens it.
    let (stdout, _stdout_open) = make_fifo(live, &user, &stdout_path).await?;
    let (stderr, _stderr_open) = make_fifo(live, &user, &stderr_path).await?;
    let target = Target {
        running: Arc::downgrade(&live.running),
        exec: live.exec,
    };
    job.process.aim(Some(target));
    if job.process.begin() {
        tokio::spawn(job.process.clone().follow(stdout, stderr));
        let code = live.evaluate(&job.script, &stdout_path, &stderr_path).await;
        // The shell belongs to the next command now.
        job.process.aim(None);
        job.process.mark_exited(code);
    }
    live.running.post(InitRequest::Unlink { path: stdout_path });
    live.running.post(InitRequest::Unlink { path: stderr_path });
    Ok(())
}

impl Live {
    /// Has the shell run a script; its exit code, or the shell's if that has ended.
    async fn evaluate(&mut self, script: &str, stdout: &str, stderr: &str) -> i32 {
        let line = format!(
            "eval {} </dev/null >{} 2>{} 3>&-\nprintf '%s\\n' \"$?\" >&3\n",
            quote(script),
            quote(stdout),
            quote(stderr),
        );
        let mut status = String::new();
        let answered = async {
            // A shell that ends while it is being written to is seen by its exit.
            let _ = self.script.write_all(line.as_bytes()).await;
            self.status.read_line(&mut status).await
        };
        let mut ended = self.exit_code.clone();
        let answer = tokio::select! {
            read = answered => read.ok().and_then(|_| status.trim().parse().ok()),
            code = exit_code(&mut ended) => Some(code),
        };
        match answer {
            Some(code) => code,
            // The shell has closed its end: it is about to be reaped.
            None => exit_code(&mut ended).await,
        }
    }
}

async fn exit_code(exited: &mut watch::Receiver<Option<i32>>) -> i32 {
    let code = exited
        .wait_for(Option::is_some)
        .await
        .ok()
        .and_then(|code| *code);
    code.unwrap_or(KILLED)
}

async fn make_fifo(
    live: &Live,
    user: &User,
    path: &str,
) -> Result<(pipe::Receiver, std::os::fd::OwnedFd), GuestError> {
    let request = InitRequest::MakeFifo {
        path: path.into(),
        user: user.clone(),
    };
    let (_, descriptors) = live
        .running
        .call("making a named pipe", request, Vec::new())
        .await?;
    let mut descriptors = descriptors.into_iter();
    let (Some(reader), Some(open)) = (descriptors.next(), descriptors.next()) else {
        return Err(GuestError::NotRunning);
    };
    let reader = pipe::Receiver::from_owned_fd(reader)
        .map_err(|error| GuestError::system("making a named pipe", error))?;
    Ok((reader, open))
}

/// One word of a shell, whatever is in it.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
