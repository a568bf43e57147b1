//! The `lamplighter` command. For people: it talks to agents, approves actions, and shows what runs and what waits. For the hooks of
//! coding assistants: it sends their payloads to the platform, reads agents' logs, and shows and edits context documents.
//!
//! The exit code is 0 on success and 1 on failure. It is never 2, because for a coding assistant's hook that means that the tool
//! must not run.

use std::ffi::OsString;
use std::io;
use std::panic;
use std::process::ExitCode;

pub mod args;
mod config;
mod context;
mod delivery;
mod docs;
mod keys;
mod log;
mod output;
mod project;
mod server;
mod shell;
mod spool;
mod status;
mod switch;
mod trust;
mod trusted;
mod url;

pub use context::edit::BEGINNING;
pub use docs::files::is_name as is_document_name;
pub use docs::marks::without_marks;
pub use spool::MAX_PAYLOAD;

use args::{Command, UsageError};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    Message(String),
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error(transparent)]
    Config(#[from] config::ConfigError),
    /// An error of a file, with its name, or of the terminal.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Runs the command with the arguments after the program's name.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match args::parse(args).map_err(Failure::from).and_then(perform) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            use io::Write;
            // A message may have several lines, and each may quote a path or a server.
            for (at, line) in failure.to_string().lines().enumerate() {
                let name = if at == 0 { "lamplighter: " } else { "" };
                drop(writeln!(io::stderr(), "{name}{}", output::escaped(line)));
            }
            ExitCode::FAILURE
        }
    }
}

fn perform(command: Command) -> Result<(), Failure> {
    match command {
        Command::Print(text) => Ok(output::print(text)?),
        Command::Completions(shell) => completions(shell),
        Command::Person(person) => shell::run(person),
        Command::Docs(args) => docs::run(&args),
        Command::Hook(hook) => {
            // Not even a bug in this program may disturb an assistant.
            panic::set_hook(Box::new(|_| {}));
            drop(panic::catch_unwind(|| log::hook::run(hook)));
            Ok(())
        }
        Command::Recall => {
            panic::set_hook(Box::new(|_| {}));
            drop(panic::catch_unwind(log::recall::run));
            Ok(())
        }
        Command::Status => status::run(),
        Command::Stop { json } => switch::stop(json),
        Command::Start { missed, json } => switch::start(missed, json),
        Command::Keys(keys) => keys::run(&keys),
        Command::Trust(trust) => trust::run(&trust),
        Command::Flush { background: true } => log::flush::background(),
        Command::Flush { background: false } => log::flush::run(),
        Command::Read(read) => log::read::run(&read),
        Command::Show(document) => context::show::run(&document),
        Command::Edit { document, from } => context::edit::run(&document, from.as_deref()),
        Command::Export { dir, force } => context::export::run(&dir, force),
        Command::Init { dir } => context::init::run(&dir),
    }
}

/// Prints the completions for a shell. They are made in memory, because `clap` panics if it can't write.
fn completions(shell: args::Shell) -> Result<(), Failure> {
    let mut made = Vec::new();
    let shell = match shell {
        args::Shell::Bash => clap_complete::Shell::Bash,
        args::Shell::Zsh => clap_complete::Shell::Zsh,
        args::Shell::Fish => clap_complete::Shell::Fish,
    };
    clap_complete::generate(shell, &mut args::description(), "lamplighter", &mut made);
    Ok(output::print(made)?)
}
