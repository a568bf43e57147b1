//! A home folder, a project in it, and the program that runs there.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;
use tempfile::TempDir;

/// This text never appears in any output.
pub const KEY: &str = "lk_sekret-0123456789";

/// The project in the bed's configuration.
pub const PROJECT: &str = "prj_11111111111111111111111111111111";

/// Nothing listens on this port.
pub const DOWN: &str = "http://127.0.0.1:1";

pub struct Bed {
    home: TempDir,
    variables: Vec<(String, String)>,
}

/// The exit status and the output of the program.
#[derive(Debug, PartialEq, Eq)]
pub struct Output {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Output {
    #[track_caller]
    pub fn silent(&self) {
        let nothing = Output { code: 0, out: String::new(), err: String::new() };
        assert_eq!(*self, nothing);
    }

    /// Checks the exit status, and that standard error contains this.
    #[track_caller]
    pub fn failed(&self, error: &str) {
        self.failed_after("", error);
    }

    /// Like [`Self::failed`], after it printed this.
    #[track_caller]
    pub fn failed_after(&self, out: &str, error: &str) {
        assert_eq!((self.code, self.out.as_str()), (1, out), "{self:?}");
        assert!(self.err.contains(error), "{:?} is not in {}", error, self.err);
    }

    #[track_caller]
    pub fn printed(&self, out: &str) {
        assert_eq!(*self, Output { code: 0, out: out.to_owned(), err: String::new() });
    }
}

impl Bed {
    /// A home without configuration.
    pub fn bare() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("project")).unwrap();
        Self { home, variables: Vec::new() }
    }

    /// A home that is configured for this server.
    pub fn new(url: &str) -> Self {
        let bed = Self::bare();
        bed.configure(url);
        bed
    }

    /// Writes the user's file.
    pub fn configure(&self, url: &str) {
        self.private(
            ".config/lamplighter/config.toml",
            &format!("url = \"{url}\"\napi_key = \"{KEY}\"\nproject = \"{PROJECT}\"\n"),
        );
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.home.path().canonicalize().unwrap().join(path)
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// A file that only its owner can read.
    pub fn private(&self, path: &str, content: &str) -> PathBuf {
        let path = self.write(path, content);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lamplighter"));
        let path = std::env::var_os("PATH").unwrap();
        command.args(args).env_clear().env("PATH", path).env("HOME", self.path(""));
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.current_dir(self.path("project"));
        command
    }

    pub fn start(&self, args: &[&str], stdin: impl AsRef<[u8]>) -> Child {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The program may have ended without reading.
        drop(child.stdin.take().unwrap().write_all(stdin.as_ref()));
        child
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.give(args, "")
    }

    /// Runs it with this standard input.
    pub fn give(&self, args: &[&str], stdin: impl AsRef<[u8]>) -> Output {
        ended(self.start(args, stdin))
    }

    /// Every file of the spool, by its path below the folder with this server's records.
    pub fn spooled(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        files(&self.path(".local/state/lamplighter/spool"), &mut found);
        found.retain(|path| !path.ends_with(".lock"));
        found.sort();
        found
    }
}

pub fn ended(child: Child) -> Output {
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(!out.contains("sekret") && !err.contains("sekret"), "{out}{err}");
    Output { code: output.status.code().unwrap(), out, err }
}

pub fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => files(&path, found),
            path => found.push(path),
        }
    }
}

/// A payload as an assistant sends it.
pub fn payload(n: usize) -> String {
    format!(
        r#"{{"session_id":"s-1","hook_event_name":"PreToolUse","tool_name":"Task","tool_use_id":"toolu_{n}"}}"#
    )
}

/// The payload of a hook at the start of a session or of an agent.
pub fn start(event: &str, agent_type: Option<&str>) -> String {
    json!({"session_id": "s-1", "cwd": "/x", "hook_event_name": event, "agent_id": "a1b2c3d4", "agent_type": agent_type})
        .to_string()
}
