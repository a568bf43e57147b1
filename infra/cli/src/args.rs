//! Parses the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;

use crate::project::{NoProjectId, ProjectId};

/// The default number of entries of `log --read`.
const DEFAULT_LINES: u32 = 50;

/// The maximum number of entries of `log --read`.
const MAX_LINES: u32 = 1000;

/// The longest lifetime of a key, in days.
const MAX_DAYS: u32 = 365;

/// A parsed command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Help,
    Version,
    Hook(Hook),
    Read(Read),
    /// Sends the payloads in the spool. In the background, it prints nothing and retries for longer.
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
        /// Replaces files that differ from the server's logs.
        force: bool,
    },
    Init {
        dir: PathBuf,
    },
    /// Prints what was done before, for a hook.
    Recall,
    Status,
    /// Stops everything that runs for the person's account.
    Stop,
    Start {
        /// What to do with the due times that came meanwhile, in the words of the server.
        missed: Option<&'static str>,
    },
    Trust(Trust),
    Keys(Keys),
}

/// `keys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    List,
    Create {
        name: String,
        /// As they are on the command line, separated. If absent, the server gives all scopes.
        scopes: Option<Vec<String>>,
        days: Option<u32>,
    },
    Revoke {
        key_id: String,
    },
}

/// `trust`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Trusts the project of this folder. If absent, of the current folder.
    Add(Option<PathBuf>),
    Revoke(Option<PathBuf>),
    List,
}

/// `log --assistant` and `log --user`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    pub event: HookEvent,
    pub session: Option<String>,
}

/// The event of a payload that does not name one.
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
    /// If absent, the latest session that has the agent.
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

/// The context document of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// If absent, the configured project.
    pub project: Option<ProjectId>,
    /// If absent, the default workflow.
    pub workflow: Option<String>,
}

/// The suggestion for a mistyped name.
#[derive(Debug)]
pub struct Suggestion(Option<&'static str>);

impl std::fmt::Display for Suggestion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |meant| write!(f, ", did you mean `{meant}`?"))
    }
}

/// Why a command line is invalid.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    #[error("exactly one mode required: --assistant, --user, or --read (or --recall, or --flush)")]
    Mode,
    #[error("--agent-id required when using --read")]
    NoAgentId,
    #[error("invalid agent-id format")]
    AgentId,
    #[error("--lines must be between 1 and {MAX_LINES}")]
    Lines,
    #[error("--format must be json or text")]
    Format,
    #[error("there is no command `{0}`{1}; `lamplighter --help` lists them")]
    UnknownCommand(String, Suggestion),
    #[error("invalid option '{0}'{1}; `lamplighter --help` lists them")]
    UnknownFlag(String, Suggestion),
    #[error("unexpected argument {0:?}")]
    Argument(String),
    #[error("`context` needs one of show, edit, export, init")]
    NoContextCommand,
    #[error("`keys` needs one of list, create, revoke")]
    NoKeysCommand,
    #[error("`keys create` needs a name for the key")]
    NoKeyName,
    #[error("`keys revoke` needs the id of a key; `lamplighter keys list` shows it")]
    NoKeyId,
    #[error("`{0}` is not the id of a key; it must be `key_` followed by 32 lower-case hexadecimal digits")]
    KeyId(String),
    #[error("--scopes must be read, write or admin, or several of them with commas, is `{0}`")]
    Scopes(String),
    #[error("--days must be between 1 and {MAX_DAYS}, is `{0}`")]
    Days(String),
    #[error("--missed must be run-newest, skip or each-schedule, is `{0}`")]
    Missed(String),
    #[error("`context {0}` needs a folder")]
    NoFolder(&'static str),
    #[error("{0}")]
    Project(#[from] NoProjectId),
    #[error("{0}")]
    Syntax(#[from] lexopt::Error),
}

/// Why parsing ends early.
enum Stop {
    Help,
    Version,
    Wrong(UsageError),
}

impl<E: Into<UsageError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Wrong(error.into())
    }
}

const COMMANDS: [&str; 8] = ["log", "context", "keys", "status", "stop", "start", "trust", "help"];
const KEYS_COMMANDS: [&str; 3] = ["list", "create", "revoke"];
const CONTEXT_COMMANDS: [&str; 4] = ["show", "edit", "export", "init"];
const LOG_FLAGS: [&str; 10] = [
    "--assistant",
    "--user",
    "--read",
    "--recall",
    "--flush",
    "--agent-id",
    "--lines",
    "--format",
    "--session",
    "--include-metadata",
];

/// Parses the arguments after the program's name.
///
/// # Errors
/// The first error in them.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, UsageError> {
    match command(&mut lexopt::Parser::from_args(args)) {
        Ok(command) => Ok(command),
        Err(Stop::Help) => Ok(Command::Help),
        Err(Stop::Version) => Ok(Command::Version),
        Err(Stop::Wrong(error)) => Err(error),
    }
}

fn command(parser: &mut lexopt::Parser) -> Result<Command, Stop> {
    match parser.next()? {
        None => Err(Stop::Help),
        Some(Value(name)) => match name.to_str() {
            Some("help") => Err(Stop::Help),
            Some("log") => log(parser),
            Some("context") => context(parser),
            Some("status") => match parser.next()? {
                None => Ok(Command::Status),
                Some(other) => Err(stop(&other, &[])),
            },
            Some("stop") => match parser.next()? {
                None => Ok(Command::Stop),
                Some(other) => Err(stop(&other, &[])),
            },
            Some("start") => start(parser),
            Some("keys") => keys(parser),
            Some("trust") => trust(parser),
            _ => Err(unknown_command("", &name.to_string_lossy(), &COMMANDS).into()),
        },
        Some(other) => Err(stop(&other, &[])),
    }
}

/// The meaning of an argument that the command itself does not know.
fn stop(arg: &lexopt::Arg<'_>, known: &[&'static str]) -> Stop {
    let flag = match arg {
        Short('h') | Long("help") => return Stop::Help,
        Short('V') | Long("version") => return Stop::Version,
        Short(letter) => format!("-{letter}"),
        Long(name) => format!("--{name}"),
        Value(value) => return UsageError::Argument(value.to_string_lossy().into_owned()).into(),
    };
    let meant = nearest(&flag, known.iter().copied().chain(["--help", "--version"]));
    UsageError::UnknownFlag(flag, Suggestion(meant)).into()
}

fn unknown_command(group: &str, name: &str, known: &[&'static str]) -> UsageError {
    let meant = nearest(name, known.iter().copied());
    UsageError::UnknownCommand(format!("{group}{name}"), Suggestion(meant))
}

/// The known name that is most similar to a mistyped one, if any is similar.
fn nearest(typed: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let length = typed.chars().count();
    let (distance, name) = known.map(|name| (distance(typed, name), name)).min()?;
    // A swap of two characters counts as two changes.
    let most = match length.min(name.len()) {
        0..4 => 1,
        shorter => (shorter / 3).max(2),
    };
    (distance <= most).then_some(name)
}

/// How many characters must be added, removed or replaced to turn one text into the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    // No flag is this long.
    for (i, a) in one.chars().take(100).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()] + one.chars().count().saturating_sub(100)
}

fn log(parser: &mut lexopt::Parser) -> Result<Command, Stop> {
    let (mut assistant, mut user, mut read, mut flush, mut recall) = (false, false, false, false, false);
    let (mut agent_id, mut lines, mut format) = (String::new(), None::<String>, None::<String>);
    let (mut session, mut include_metadata, mut background) = (None, false, false);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('a') | Long("assistant") => assistant = true,
            Short('u') | Long("user") => user = true,
            Short('r') | Long("read") => read = true,
            Long("recall") => recall = true,
            Long("flush") => flush = true,
            Long("background") => background = true,
            Long("agent-id") => agent_id = parser.value()?.string()?,
            Long("lines") => lines = Some(parser.value()?.string()?),
            Long("format") => format = Some(parser.value()?.string()?),
            Long("session") => session = Some(parser.value()?.string()?).filter(|id| !id.is_empty()),
            Long("include-metadata") => include_metadata = true,
            other => return Err(stop(&other, &LOG_FLAGS)),
        }
    }
    let modes = [assistant, user, read, flush, recall];
    if modes.iter().filter(|mode| **mode).count() != 1 {
        return Err(UsageError::Mode.into());
    }
    if assistant {
        return Ok(Command::Hook(Hook { event: HookEvent::PreToolUse, session }));
    }
    if user {
        return Ok(Command::Hook(Hook { event: HookEvent::PostToolUse, session }));
    }
    if flush {
        return Ok(Command::Flush { background });
    }
    if recall {
        return Ok(Command::Recall);
    }
    if agent_id.is_empty() {
        return Err(UsageError::NoAgentId.into());
    }
    if !is_agent_id(&agent_id) {
        return Err(UsageError::AgentId.into());
    }
    let (lines, format) = (read_lines(lines.as_deref())?, read_format(format.as_deref())?);
    Ok(Command::Read(Read { agent_id, lines, session, format, include_metadata }))
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
/// letter or digit. The platform has the same rule. It is repeated here because a dependency on the platform's crate would triple
/// the size of the build.
#[must_use]
pub fn is_agent_id(text: &str) -> bool {
    let bytes = text.as_bytes();
    (2..=64).contains(&bytes.len())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        && bytes[0].is_ascii_alphanumeric()
        && bytes[bytes.len() - 1].is_ascii_alphanumeric()
}

fn context(parser: &mut lexopt::Parser) -> Result<Command, Stop> {
    let name = match parser.next()? {
        Some(Value(name)) => name.string()?,
        Some(other) => return Err(stop(&other, &[])),
        None => return Err(UsageError::NoContextCommand.into()),
    };
    match name.as_str() {
        "show" => document(parser, false).map(|(document, _)| Command::Show(document)),
        "edit" => document(parser, true).map(|(document, from)| Command::Edit { document, from }),
        "export" => folder(parser, "export", true).map(|(dir, force)| Command::Export { dir, force }),
        "init" => folder(parser, "init", false).map(|(dir, _)| Command::Init { dir }),
        _ => Err(unknown_command("context ", &name, &CONTEXT_COMMANDS).into()),
    }
}

fn document(parser: &mut lexopt::Parser, edits: bool) -> Result<(Document, Option<PathBuf>), Stop> {
    let (mut document, mut from) = (Document::default(), None);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("project") => document.project = Some(parser.value()?.string()?.parse()?),
            Long("workflow") => document.workflow = Some(parser.value()?.string()?),
            Long("from") if edits => from = Some(PathBuf::from(parser.value()?)),
            other if edits => return Err(stop(&other, &["--project", "--workflow", "--from"])),
            other => return Err(stop(&other, &["--project", "--workflow"])),
        }
    }
    Ok((document, from))
}

fn keys(parser: &mut lexopt::Parser) -> Result<Command, Stop> {
    let name = match parser.next()? {
        Some(Value(name)) => name.string()?,
        Some(other) => return Err(stop(&other, &[])),
        None => return Err(UsageError::NoKeysCommand.into()),
    };
    let mut value = None;
    let (mut scopes, mut days) = (None, None);
    let creates = match name.as_str() {
        "create" => true,
        "list" | "revoke" => false,
        _ => return Err(unknown_command("keys ", &name, &KEYS_COMMANDS).into()),
    };
    while let Some(arg) = parser.next()? {
        match arg {
            Value(given) if value.is_none() && name != "list" => value = Some(given.string()?),
            Long("scopes") if creates => scopes = Some(key_scopes(&parser.value()?.string()?)?),
            Long("days") if creates => days = Some(key_days(&parser.value()?.string()?)?),
            other => return Err(stop(&other, if creates { &["--scopes", "--days"] } else { &[] })),
        }
    }
    Ok(Command::Keys(match name.as_str() {
        "create" => {
            let name = value.filter(|name| !name.trim().is_empty()).ok_or(UsageError::NoKeyName)?;
            Keys::Create { name, scopes, days }
        }
        "revoke" => Keys::Revoke { key_id: key_id(value.ok_or(UsageError::NoKeyId)?)? },
        _ => Keys::List,
    }))
}

fn key_scopes(list: &str) -> Result<Vec<String>, UsageError> {
    let scopes: Vec<String> = list.split(',').map(|scope| scope.trim().to_owned()).collect();
    let known = scopes.iter().all(|scope| matches!(scope.as_str(), "read" | "write" | "admin"));
    if known { Ok(scopes) } else { Err(UsageError::Scopes(list.to_owned())) }
}

fn key_days(text: &str) -> Result<u32, UsageError> {
    text.parse()
        .ok()
        .filter(|days| (1..=MAX_DAYS).contains(days))
        .ok_or_else(|| UsageError::Days(text.to_owned()))
}

/// The id is checked here, because a key itself must not become a part of an address or of an error.
fn key_id(text: String) -> Result<String, UsageError> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let digits =
        text.strip_prefix("key_").filter(|digits| digits.len() == 32 && digits.bytes().all(is_digit));
    if digits.is_some() {
        return Ok(text);
    }
    let shown = if text.starts_with("llk_") { "llk_…".to_owned() } else { text };
    Err(UsageError::KeyId(shown))
}

fn start(parser: &mut lexopt::Parser) -> Result<Command, Stop> {
    let mut missed = None;
    while let Some(arg) = parser.next()? {
        match arg {
            Long("missed") => {
                let answer = parser.value()?.string()?;
                missed = Some(match answer.as_str() {
                    "run-newest" => "run_newest",
                    "skip" => "skip",
                    "each-schedule" => "each_schedule",
                    _ => return Err(UsageError::Missed(answer).into()),
                });
            }
            other => return Err(stop(&other, &["--missed"])),
        }
    }
    Ok(Command::Start { missed })
}

fn trust(parser: &mut lexopt::Parser) -> Result<Command, Stop> {
    let (mut dir, mut revoke, mut list) = (None, false, false);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("revoke") if !list => revoke = true,
            Long("list") if !revoke && dir.is_none() => list = true,
            Value(value) if dir.is_none() && !list => dir = Some(PathBuf::from(value)),
            other => return Err(stop(&other, &["--revoke", "--list"])),
        }
    }
    Ok(Command::Trust(match (list, revoke) {
        (true, _) => Trust::List,
        (false, true) => Trust::Revoke(dir),
        (false, false) => Trust::Add(dir),
    }))
}

fn folder(
    parser: &mut lexopt::Parser,
    command: &'static str,
    forcible: bool,
) -> Result<(PathBuf, bool), Stop> {
    let (mut dir, mut force) = (None, false);
    while let Some(arg) = parser.next()? {
        match arg {
            Value(value) if dir.is_none() => dir = Some(PathBuf::from(value)),
            Long("force") if forcible => force = true,
            other => return Err(stop(&other, if forcible { &["--force"] } else { &[] })),
        }
    }
    Ok(dir.map(|dir| (dir, force)).ok_or(UsageError::NoFolder(command))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_gets_a_suggestion() {
        for (typed, meant) in [
            ("--assitant", Some("--assistant")),
            ("--agentid", Some("--agent-id")),
            ("--line", Some("--lines")),
            ("--metadata", None),
            ("--bogus", None),
            ("--halp", Some("--help")),
            ("-x", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, LOG_FLAGS.into_iter().chain(["--help"])), meant, "{typed}");
        }
        assert_eq!(nearest("logs", COMMANDS.into_iter()), Some("log"));
        assert_eq!(nearest("sho", CONTEXT_COMMANDS.into_iter()), Some("show"));
        assert_eq!((distance("", "abc"), distance("abc", ""), distance("kitten", "sitting")), (3, 3, 3));
    }
}
