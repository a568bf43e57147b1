//! The `lamplighter` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    lamplighter_cli::run(std::env::args_os().skip(1))
}
