//! The program that people start, started by a test.

use std::path::Path;
use std::process::Command;

pub use tests::program::Server;

/// The server on this folder.
pub fn command(data: &Path) -> Command {
    tests::program::command(Path::new(env!("CARGO_BIN_EXE_server")), data)
}
