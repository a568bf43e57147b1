//! The `lamplighter` command: it sends the payloads of an assistant's hooks to the platform, reads agents' logs, and shows and
//! edits context documents.
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
mod keys;
mod log;
mod output;
mod project;
mod server;
mod spool;
mod status;
mod switch;
mod trust;
mod trusted;
mod url;

pub use context::edit::BEGINNING;
pub use spool::MAX_PAYLOAD;

use args::{Command, UsageError};

const HELP: &str = "\
lamplighter: agent logs and context documents from a shell

  lamplighter log --assistant | -a          take a PreToolUse payload from the standard input
  lamplighter log --user | -u               take a PostToolUse or SubagentStop payload
      --session ID                          the session, instead of the payload's
  lamplighter log --read | -r               print the last entries of an agent, oldest first
      --agent-id ID                         whose (required)
      --lines N                             how many: 1 to 1000 [50]
      --session ID                          of this session only [the latest, and those before it]
      --format json|text                    [json]
      --include-metadata                    with where it comes from and how much there is
  lamplighter log --recall                  take a SessionStart or SubagentStart payload and print what was done before,
                                            as the assistant's hook expects it
  lamplighter log --flush                   send what hooks could not send

  lamplighter context show                  print the context document
  lamplighter context edit                  change it in $VISUAL or $EDITOR
      --project ID, --workflow NAME         which document [the configured project, the default one]
      --from FILE                           edit: begin with this text
  lamplighter context export DIR            write all agent logs into a folder
      --force                               also over files that hold other lines
  lamplighter context init DIR              teach the agent templates in a folder to read their log

  lamplighter keys list                     show the API keys: id, scopes, last use
  lamplighter keys create NAME              make an API key and print it, once
      --scopes read,write,admin             what it may do [all]
      --days N                              how long it is valid: 1 to 365 [until it is revoked]
  lamplighter keys revoke KEY_ID            end an API key

  lamplighter status                        show the server, what waits, and what was dropped or rejected and why
  lamplighter stop                          stop everything that runs for your account: runs, turns, schedules
  lamplighter start                         start it again, and show what was due meanwhile
      --missed ANSWER                       what becomes of that: run-newest, skip or each-schedule

  lamplighter trust [DIR]                   use the server and the key that lamplighter.toml of this folder names
      --revoke                              no longer
      --list                                show the trusted folders

  -h, --help                                print this, for every command
  -V, --version                             print the version

Settings: LAMPLIGHTER_URL, LAMPLIGHTER_API_KEY, LAMPLIGHTER_PROJECT, or url, api_key (api_key_file), project
in lamplighter.toml or ~/.config/lamplighter/config.toml.
";

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
        Command::Help => Ok(output::print(HELP)?),
        Command::Version => Ok(output::print(concat!("lamplighter ", env!("CARGO_PKG_VERSION"), "\n"))?),
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
        Command::Stop => switch::stop(),
        Command::Start { missed } => switch::start(missed),
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
