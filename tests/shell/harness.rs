//! Guests to try scripts on: a real shell, a `PATH` of exactly the tools that an image must have,
//! and a home directory, with `/tmp` shared as it would be.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};

use beachside_runloop::shell::{
    Captured, CleanUp, Command, Content, ExecResult, Nonce, Partial, Program, Refusal, Wrapped,
    clean_up, read_clean_up, read_out, read_partial, read_result, wrap,
};
use tempfile::TempDir;

/// The tools that an image must have for commands.
pub(crate) const TOOLS: [&str; 8] = ["sh", "mktemp", "base64", "head", "wc", "tr", "env", "rm"];

/// What files need beside them.
pub(crate) const FILE_TOOLS: [&str; 6] = ["chmod", "chown", "mkdir", "mv", "readlink", "stat"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shell {
    Dash,
    Bash,
    Busybox,
}

pub(crate) const SHELLS: [Shell; 3] = [Shell::Dash, Shell::Bash, Shell::Busybox];

impl Shell {
    fn program(self) -> &'static str {
        match self {
            Self::Dash => "dash",
            Self::Bash => "bash",
            Self::Busybox => "busybox",
        }
    }
}

/// A place to run scripts. `/tmp` is the machine's own: what a call leaves is told by its nonce.
pub(crate) struct Guest {
    pub(crate) shell: Shell,
    root: TempDir,
    /// Variables of the service's shell, beside `PATH` and `HOME`.
    pub(crate) environment: BTreeMap<String, String>,
    /// How the service's shell is started, behind its name.
    pub(crate) flags: Vec<&'static str>,
}

/// A finished call with both streams fetched.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: u8,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) result: ExecResult,
    /// What the service's shell printed.
    pub(crate) text: String,
    pub(crate) nonce: Nonce,
}

impl Finished {
    pub(crate) fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub(crate) fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

pub(crate) fn nonce() -> Nonce {
    Nonce::from_random(*uuid::Uuid::new_v4().as_bytes())
}

pub(crate) fn argv(words: &[&str]) -> Command {
    Command::new(Program::Arguments(
        words.iter().map(|word| (*word).to_owned()).collect(),
    ))
}

pub(crate) fn text(text: &str) -> Command {
    Command::new(Program::ShellText(text.to_owned()))
}

/// Everything of this call in `/tmp`.
pub(crate) fn litter(nonce: &Nonce) -> Vec<PathBuf> {
    fs::read_dir("/tmp")
        .expect("/tmp can be listed")
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().contains(nonce.as_str()))
        .collect()
}

impl Guest {
    /// A guest whose `PATH` holds exactly [`TOOLS`], each shell with the tools of its own family.
    pub(crate) fn new(shell: Shell) -> Self {
        let root = TempDir::new().expect("a directory for the guest");
        let bin = root.path().join("bin");
        fs::create_dir(&bin).unwrap();
        fs::create_dir(root.path().join("home")).unwrap();
        let guest = Self {
            shell,
            root,
            environment: BTreeMap::new(),
            flags: Vec::new(),
        };
        for tool in TOOLS {
            guest.install(tool);
        }
        guest
    }

    /// Puts the tool of the shell's own family on `PATH`.
    pub(crate) fn install(&self, tool: &str) {
        let source = match (self.shell, tool) {
            (Shell::Busybox, _) => find("busybox"),
            (_, "sh") => find(self.shell.program()),
            _ => find(tool),
        };
        symlink(source, self.bin().join(tool)).unwrap();
    }

    /// Lets another user reach the guest's tools and home.
    pub(crate) fn open_way(&self) {
        for path in [self.root.path().to_owned(), self.home(), self.bin()] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    /// What the script prints when it runs as an unprivileged user: one of its own for root, who
    /// may everything, and the user of the tests otherwise.
    pub(crate) fn run_unprivileged(&self, script: &str) -> String {
        self.open_way();
        let mut process = self.process(script);
        process.current_dir("/");
        if is_root() {
            process.uid(NOBODY).gid(NOBODY);
        }
        String::from_utf8(process.output().unwrap().stdout).unwrap()
    }

    /// Every guest there is.
    pub(crate) fn each() -> impl Iterator<Item = Self> {
        SHELLS.into_iter().map(Self::new)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub(crate) fn bin(&self) -> PathBuf {
        self.root.path().join("bin")
    }

    /// The service's shell, about to run `script`.
    pub(crate) fn process(&self, script: &str) -> Process {
        let mut process = Process::new(find(self.shell.program()));
        if self.shell == Shell::Busybox {
            process.arg("ash");
        }
        process
            .args(&self.flags)
            .arg("-c")
            .arg(script)
            .env_clear()
            .env("PATH", self.bin())
            .env("HOME", self.home())
            .envs(&self.environment)
            .current_dir(self.home())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        process
    }

    /// Starts a wrapped script in its own process group, as the service does.
    pub(crate) fn start(&self, wrapped: &Wrapped) -> Child {
        if let Some(upload) = &wrapped.upload {
            fs::write(&upload.path, &upload.content).unwrap();
        }
        self.process(&wrapped.command)
            .spawn()
            .expect("the service's shell starts")
    }

    /// What a wrapped script prints to standard output.
    pub(crate) fn run(&self, wrapped: &Wrapped) -> String {
        let output = self.start(wrapped).wait_with_output().unwrap();
        String::from_utf8(output.stdout).expect("the service passes text on")
    }

    /// Runs `command` and fetches what it left, the way the adapter does.
    pub(crate) fn try_exec(&self, command: &Command) -> Result<Finished, Refusal> {
        let nonce = nonce();
        let text = self.run(&wrap(command, &nonce).expect("a command that can be carried"));
        let result = read_result(&text, &nonce)
            .unwrap_or_else(|error| panic!("{:?}: {error} in {text:?}", self.shell))?;
        let stdout = fetch(&result.stdout);
        let stderr = fetch(&result.stderr);
        if result.left_directory.is_some() {
            assert_eq!(self.clean_up(&nonce), CleanUp::Clean, "{:?}", self.shell);
        }
        assert_eq!(litter(&nonce), Vec::<PathBuf>::new(), "{:?}", self.shell);
        Ok(Finished {
            code: result.exit_code,
            stdout,
            stderr,
            result,
            text,
            nonce,
        })
    }

    pub(crate) fn exec(&self, command: &Command) -> Finished {
        self.try_exec(command)
            .unwrap_or_else(|refusal| panic!("{:?} refused: {refusal:?}", self.shell))
    }

    /// Runs `command` with `stdin` uploaded first.
    pub(crate) fn exec_with_stdin(&self, command: &Command, stdin: &[u8]) -> Finished {
        let nonce = nonce();
        let mut command = command.clone();
        command.stdin_bytes = Some(stdin.len() as u64);
        fs::File::create(nonce.stdin_path())
            .unwrap()
            .write_all(stdin)
            .unwrap();
        let text = self.run(&wrap(&command, &nonce).unwrap());
        let result = read_result(&text, &nonce).unwrap().unwrap();
        let finished = Finished {
            code: result.exit_code,
            stdout: fetch(&result.stdout),
            stderr: fetch(&result.stderr),
            result,
            text,
            nonce,
        };
        if finished.result.left_directory.is_some() {
            assert_eq!(self.clean_up(&finished.nonce), CleanUp::Clean);
        }
        assert_eq!(litter(&finished.nonce), Vec::<PathBuf>::new());
        finished
    }

    pub(crate) fn clean_up(&self, nonce: &Nonce) -> CleanUp {
        read_clean_up(&self.run(&clean_up(nonce)), nonce).unwrap()
    }

    pub(crate) fn read_out(&self, nonce: &Nonce, max_bytes: u64) -> Partial {
        read_partial(&self.run(&read_out(nonce, max_bytes)), nonce).unwrap()
    }
}

/// The unprivileged user of tests that run as root.
pub(crate) const NOBODY: u32 = 65_534;

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// What the service's download would give.
pub(crate) fn fetch(captured: &Captured) -> Vec<u8> {
    match &captured.content {
        Content::Inline(bytes) => bytes.clone(),
        Content::File { path, bytes } => {
            let content = fs::read(path).expect("the file that the record names");
            assert_eq!(
                content.len() as u64,
                *bytes,
                "the file is as long as the record says"
            );
            content
        }
    }
}

/// The machine's own `program`.
pub(crate) fn find(program: &str) -> PathBuf {
    ["/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin"]
        .iter()
        .map(|directory| Path::new(directory).join(program))
        .find(|path| path.exists())
        .unwrap_or_else(|| panic!("install {program}: these tests run dash, bash and busybox ash"))
}
