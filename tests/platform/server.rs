//! The program that people start, started by a test.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// The server on this folder; the caller's environment must not choose a model or a port.
pub fn command(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_server"));
    command.env_clear().env("LAMPLIGHTER_DATA", data).env("LAMPLIGHTER_PORT", "0");
    command
}

/// A server that answers; killed when it is dropped.
pub struct Server {
    child: Child,
    pub url: String,
    /// It writes to this until it ends.
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let url = line.trim_end().strip_prefix("Lamplighter runs at ").unwrap_or_else(|| {
            drop(child.kill());
            panic!("the server did not start: {line:?}")
        });
        Self { url: url.to_owned(), child, _stdout: stdout }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn port(&self) -> &str {
        self.url.rsplit(':').next().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGKILL: it gets no chance to put anything in order.
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
