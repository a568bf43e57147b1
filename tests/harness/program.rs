//! The server as a separate process, for programs that measure or kill it.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The server binary next to the running program, built with the same profile.
///
/// # Errors
/// If it has not been built.
pub fn beside() -> Result<PathBuf, Box<dyn Error>> {
    let here = std::env::current_exe()?;
    let program = here.parent().ok_or("no folder")?.join("server");
    if !program.is_file() {
        return Err(format!("{} is missing: build it first", program.display()).into());
    }
    Ok(program)
}

/// A command for this server with this data folder. The environment is cleared, so the caller's variables do not choose
/// a model or a port.
#[must_use]
pub fn command(program: &Path, data: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("LAMPLIGHTER_DATA", data).env("LAMPLIGHTER_PORT", "0");
    command
}

/// A running server. It is killed when dropped.
pub struct Server {
    child: Child,
    pub url: String,
    /// The server writes to this until it ends.
    stdout: BufReader<ChildStdout>,
}

impl Server {
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program can be run");
        let mut stdout = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("its output can be read");
        let url = line.trim_end().strip_prefix("Lamplighter runs at ").unwrap_or_else(|| {
            drop(child.kill());
            panic!("the server did not start: {line:?}")
        });
        Self { url: url.to_owned(), child, stdout }
    }

    /// The lines after the first that the server prints when it has started.
    ///
    /// # Panics
    /// If the server ends before it has printed them.
    pub fn banner(&mut self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        // The last line of the banner is the last command that a person can try.
        while !lines.last().is_some_and(|line| line.contains("curl") && line.contains("/agents")) {
            let mut line = String::new();
            let read = self.stdout.read_line(&mut line).expect("its output can be read");
            assert!(read > 0, "the server has ended after {lines:?}");
            lines.push(line.trim_end().to_owned());
        }
        lines
    }

    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// # Panics
    /// Never: an address has a port.
    #[must_use]
    pub fn port(&self) -> &str {
        self.url.rsplit(':').next().expect("a text has a last part")
    }

    /// Its resident memory as Linux reports it, in KiB.
    ///
    /// # Errors
    /// If Linux does not report it.
    pub fn resident(&self) -> Result<i64, Box<dyn Error>> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGKILL: the server cannot clean up.
        self.child.kill().expect("it runs until it is killed");
        self.child.wait().expect("it ends when it is killed");
    }
}
