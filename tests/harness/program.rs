//! The server as a program of its own, for programs that measure it or kill it.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The server beside the running example, of the same profile.
///
/// # Errors
/// When it has not been built.
pub fn beside() -> Result<PathBuf, Box<dyn Error>> {
    let here = std::env::current_exe()?;
    let program = here.parent().and_then(Path::parent).ok_or("no folder")?.join("server");
    if !program.is_file() {
        return Err(format!("{} is missing: build it first", program.display()).into());
    }
    Ok(program)
}

/// A server on a folder of its own; killed when it is dropped.
pub struct Server {
    child: Child,
    pub url: String,
    /// It writes to this until it ends.
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    /// # Errors
    /// When it does not start.
    pub fn start(program: &Path, data: &Path, port: &str) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(program);
        command.env_clear().env("LAMPLIGHTER_DATA", data).env("LAMPLIGHTER_PORT", port);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut stdout = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        let url = line.trim_end().strip_prefix("Lamplighter runs at ").ok_or("the server did not start")?;
        Ok(Self { url: url.to_owned(), child, _stdout: stdout })
    }

    #[must_use]
    pub fn port(&self) -> String {
        self.url.rsplit(':').next().unwrap_or_default().to_owned()
    }

    /// What Linux says of its memory, in KiB.
    ///
    /// # Errors
    /// When Linux does not say it.
    pub fn resident(&self) -> Result<i64, Box<dyn Error>> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGKILL: it gets no chance to put anything in order.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
