//! What the command line asks for, as a value.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;

use crate::project::{NoProjectId, ProjectId};

/// How many entries `log --read` gives unless it is told.
const DEFAULT_LINES: u32 = 50;

/// The most entries that `log --read` gives.
const MAX_LINES: u32 = 1000;

/// Everything that can be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Help,
    Version,
    Hook(Hook),
    Read(Read),
    /// Sends what waits in the spool; in the background without a word, and with patience.
    Flush {
        background: bool,
    },
    Show(Document),
    Edit {
        document: Document,
        /// Begins with this text instead of the document's.
        from: Option<PathBuf>,
    },
    Export {
        dir: PathBuf,
        /// Replaces files that hold other lines than the server's.
        force: bool,
    },
    Init {
        dir: PathBuf,
    },
}

/// `log --assistant` and `log --user`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    pub event: HookEvent,
    pub session: Option<String>,
}

/// What a payload is taken for that does not name its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookEvent {
    PreToolUse,
    PostToolUse,
}

/// `log --read`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub agent_id: String,
    /// 1 to 1000.
    pub lines: u32,
    /// The latest that has the agent, where there is none.
    pub session: Option<String>,
    pub format: Format,
    pub include_metadata: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    Text,
}

impl Format {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Text => "text",
        }
    }
}

/// Which context document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// The configured one, where there is none.
    pub project: Option<ProjectId>,
    /// The project's default one, where there is none.
    pub workflow: Option<String>,
}

/// Why a command line asks for nothing that can be done.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    #[error("exactly one mode required: --assistant, --user, or --read")]
    Mode,
    #[error("--agent-id required when using --read")]
    NoAgentId,
    #[error("invalid agent-id format")]
    AgentId,
    #[error("--lines must be between 1 and {MAX_LINES}")]
    Lines,
    #[error("--format must be json or text")]
    Format,
    #[error("there is no command `{0}`; `lamplighter --help` lists them")]
    UnknownCommand(String),
    #[error("`context` needs one of show, edit, export, init")]
    NoContextCommand,
    #[error("`context {0}` needs a folder")]
    NoFolder(&'static str),
    #[error("{0}")]
    Project(#[from] NoProjectId),
    #[error("{0}")]
    Syntax(#[from] lexopt::Error),
}

/// Reads the arguments behind the program's name.
///
/// # Errors
/// The first thing that is wrong with them.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, UsageError> {
    let mut parser = lexopt::Parser::from_args(args);
    match parser.next()? {
        None | Some(Short('h') | Long("help")) => Ok(Command::Help),
        Some(Short('V') | Long("version")) => Ok(Command::Version),
        Some(Value(name)) => match name.to_str() {
            Some("help") => Ok(Command::Help),
            Some("log") => log(&mut parser),
            Some("context") => context(&mut parser),
            _ => Err(UsageError::UnknownCommand(name.to_string_lossy().into_owned())),
        },
        Some(other) => Err(other.unexpected().into()),
    }
}

fn log(parser: &mut lexopt::Parser) -> Result<Command, UsageError> {
    let (mut assistant, mut user, mut read, mut flush) = (false, false, false, false);
    let (mut agent_id, mut lines, mut format) = (String::new(), None::<String>, None::<String>);
    let (mut session, mut include_metadata, mut background) = (None, false, false);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('a') | Long("assistant") => assistant = true,
            Short('u') | Long("user") => user = true,
            Short('r') | Long("read") => read = true,
            Long("flush") => flush = true,
            Long("background") => background = true,
            Long("agent-id") => agent_id = parser.value()?.string()?,
            Long("lines") => lines = Some(parser.value()?.string()?),
            Long("format") => format = Some(parser.value()?.string()?),
            Long("session") => session = Some(parser.value()?.string()?).filter(|id| !id.is_empty()),
            Long("include-metadata") => include_metadata = true,
            Short('h') | Long("help") => return Ok(Command::Help),
            other => return Err(other.unexpected().into()),
        }
    }
    match (assistant, user, read, flush) {
        (true, false, false, false) => Ok(Command::Hook(Hook { event: HookEvent::PreToolUse, session })),
        (false, true, false, false) => Ok(Command::Hook(Hook { event: HookEvent::PostToolUse, session })),
        (false, false, false, true) => Ok(Command::Flush { background }),
        (false, false, true, false) if agent_id.is_empty() => Err(UsageError::NoAgentId),
        (false, false, true, false) if !is_agent_id(&agent_id) => Err(UsageError::AgentId),
        (false, false, true, false) => Ok(Command::Read(Read {
            agent_id,
            lines: read_lines(lines.as_deref())?,
            session,
            format: read_format(format.as_deref())?,
            include_metadata,
        })),
        _ => Err(UsageError::Mode),
    }
}

fn read_lines(text: Option<&str>) -> Result<u32, UsageError> {
    let lines = text.map_or(Ok(DEFAULT_LINES), str::parse).map_err(|_| UsageError::Lines)?;
    if (1..=MAX_LINES).contains(&lines) { Ok(lines) } else { Err(UsageError::Lines) }
}

fn read_format(text: Option<&str>) -> Result<Format, UsageError> {
    match text {
        None | Some("json") => Ok(Format::Json),
        Some("text") => Ok(Format::Text),
        Some(_) => Err(UsageError::Format),
    }
}

/// Whether the text has the form of an agent id: 2 to 64 letters, digits, `-` and `_`, beginning and ending with a
/// letter or digit. The platform's own rule, said again: its crate would triple what this program is built from.
#[must_use]
pub fn is_agent_id(text: &str) -> bool {
    let bytes = text.as_bytes();
    (2..=64).contains(&bytes.len())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        && bytes[0].is_ascii_alphanumeric()
        && bytes[bytes.len() - 1].is_ascii_alphanumeric()
}

fn context(parser: &mut lexopt::Parser) -> Result<Command, UsageError> {
    let name = match parser.next()? {
        Some(Value(name)) => name.string()?,
        Some(Short('h') | Long("help")) => return Ok(Command::Help),
        Some(other) => return Err(other.unexpected().into()),
        None => return Err(UsageError::NoContextCommand),
    };
    match name.as_str() {
        "show" => document(parser, false).map(|(document, _)| Command::Show(document)),
        "edit" => document(parser, true).map(|(document, from)| Command::Edit { document, from }),
        "export" => folder(parser, "export", true).map(|(dir, force)| Command::Export { dir, force }),
        "init" => folder(parser, "init", false).map(|(dir, _)| Command::Init { dir }),
        _ => Err(UsageError::UnknownCommand(format!("context {name}"))),
    }
}

fn document(parser: &mut lexopt::Parser, edits: bool) -> Result<(Document, Option<PathBuf>), UsageError> {
    let (mut document, mut from) = (Document::default(), None);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("project") => document.project = Some(parser.value()?.string()?.parse()?),
            Long("workflow") => document.workflow = Some(parser.value()?.string()?),
            Long("from") if edits => from = Some(PathBuf::from(parser.value()?)),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok((document, from))
}

fn folder(
    parser: &mut lexopt::Parser,
    command: &'static str,
    forcible: bool,
) -> Result<(PathBuf, bool), UsageError> {
    let (mut dir, mut force) = (None, false);
    while let Some(arg) = parser.next()? {
        match arg {
            Value(value) if dir.is_none() => dir = Some(PathBuf::from(value)),
            Long("force") if forcible => force = true,
            other => return Err(other.unexpected().into()),
        }
    }
    dir.map(|dir| (dir, force)).ok_or(UsageError::NoFolder(command))
}
