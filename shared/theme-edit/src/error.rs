//! Why an edit was refused. Each message says what to do.

use std::fmt;

use serde::{Deserialize, Serialize};
use theme::text::LineRange;
use utoipa::ToSchema;

use crate::kind::NodeKind;
use crate::locate::Nearest;

/// Why an edit was refused. Nothing was changed.
///
/// The fields are for programs; [`Display`](fmt::Display) is for people and models, and says what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "refused", rename_all = "snake_case")]
pub enum EditError {
    /// The draft has no file at this path.
    NoSuchFile { path: String, near: Vec<String> },
    /// A file is there already, and creating or renaming never overwrites.
    FileExists { path: String },
    /// A theme can't have a file at this path.
    BadPath { path: String, reason: String },
    /// The files' bytes are not in memory. The program loads them ([`crate::Draft::load`]) and repeats the call.
    NotLoaded { paths: Vec<String> },
    /// The file is not text.
    NotText { path: String },
    /// The text is longer than an edit may make a file.
    TooLarge { path: String, bytes: usize, limit: usize },
    /// This run has not read the file, and the call names no version.
    NotRead { path: String, version: String, lines: u32 },
    /// The file changed since this run read it.
    Changed {
        path: String,
        /// The version that the call or the run knows.
        seen: String,
        /// The version that the file has.
        version: String,
        /// The lines that changed. Empty if the version read is no longer known.
        lines: Vec<LineRange>,
    },
    /// The old text is not in the file. `index` counts the replacements of the call from 1.
    NotFound { path: String, index: usize, nearest: Option<Nearest> },
    /// The old text has another number of places than expected, or they overlap.
    Ambiguous { path: String, index: usize, expected: usize, found: usize, lines: Vec<LineRange> },
    /// The old text is empty, so it has no place.
    EmptySearch { index: usize },
    /// The lines are not lines of the file.
    NoSuchLines { path: String, start: u32, end: u32, total: u32 },
    /// The lines do not have the text that the call says. `elsewhere` is where that text stands.
    OtherText { path: String, lines: LineRange, nearest: Option<Nearest>, elsewhere: Vec<LineRange> },
    /// Two edits of one call change the same bytes.
    Overlap { path: String, first: LineRange, second: LineRange },
    /// One batch changes a file in two ways that depend on their order.
    MixedBatch { path: String },
    /// The file would be empty, or lose more than half.
    Shrinks { path: String, bytes_before: usize, bytes_after: usize, removed: Vec<LineRange> },
    /// The edit would leave a mark of a tool, or a placeholder for code, in the file.
    Artefact { path: String, line: u32, text: String, what: String },
    /// The file has no such node.
    NoSuchNode { path: String, kind: NodeKind, name: String, near: Vec<(String, u32)> },
    /// Several nodes have the name.
    AmbiguousNode { path: String, kind: NodeKind, name: String, lines: Vec<LineRange> },
    /// It is not certain where the node ends.
    UncertainNode { path: String, kind: NodeKind, name: String, reason: String },
    /// The new text is not one node of that kind.
    BadNode { kind: NodeKind, reason: String },
    /// A theme does not work without the file.
    Required { path: String },
    /// Other files name the file.
    Referenced { path: String, by: Vec<Mention> },
    /// The references can't be updated to that path.
    OtherFolder { path: String, to: String },
    /// The draft has no such edit.
    NoSuchEdit { edit: u64 },
    /// The edit was undone already.
    AlreadyUndone { edit: u64 },
    /// This run edited the file again after that edit.
    LaterEdit { path: String, edit: u64, later: u64 },
    /// Somebody else wrote the file after that edit.
    LaterWrite { path: String, by: String },
    /// There is no edit of this run to undo.
    NothingToUndo,
    /// The call says nothing that can be done.
    BadCall { reason: String },
    /// The bases differ in lines that this draft changed, too.
    Conflicts { paths: Vec<String> },
    /// One call of a batch was refused, so none was done. `index` counts from 1.
    InBatch { index: usize, of: usize, error: Box<EditError> },
}

/// A place where a file is named.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[schema(as = FileMention)]
pub struct Mention {
    /// The file that names the other one.
    pub path: String,
    /// The lines.
    pub lines: LineRange,
}

impl std::error::Error for EditError {}

/// "line 3", "lines 3–5", "line 3, lines 7–9 and line 12".
pub(crate) fn in_words(lines: &[LineRange]) -> String {
    let one = |range: &LineRange| match range {
        LineRange { start, end } if start == end => format!("line {start}"),
        LineRange { start, end } => format!("lines {start}–{end}"),
    };
    list(lines.iter().map(one))
}

/// "a, b and c".
fn list(parts: impl Iterator<Item = String>) -> String {
    joined(parts, "and")
}

/// "a, b or c", with any word before the last part.
fn joined(parts: impl Iterator<Item = String>, word: &str) -> String {
    let parts: Vec<String> = parts.collect();
    match &parts[..] {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} {word} {last}", all.join(", ")),
    }
}

/// At most this many names stand in a message.
const MOST_NAMED: usize = 8;

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchFile { path, near } if near.is_empty() => {
                write!(f, "{path} does not exist: list the files, or make it with create_file")
            }
            Self::NoSuchFile { path, near } => {
                write!(f, "{path} does not exist: did you mean {}?", joined(near.iter().cloned(), "or"))
            }
            Self::FileExists { path } => {
                write!(f, "{path} exists, and nothing was overwritten: edit it, or take another path")
            }
            Self::BadPath { path, reason } => write!(f, "{path:?} is no path of a theme's file: {reason}"),
            Self::NotLoaded { paths } => {
                write!(
                    f,
                    "the content of {} is not loaded: load it and repeat the call",
                    list(paths.iter().cloned())
                )
            }
            Self::NotText { path } => {
                write!(f, "{path} is not a text file, so it can only be created, renamed or deleted")
            }
            Self::TooLarge { path, bytes, limit } => {
                write!(
                    f,
                    "{path} would have {bytes} bytes, and {limit} are the most: split it into several files"
                )
            }
            Self::NotRead { path, version, lines: 0 } => {
                write!(
                    f,
                    "{path} was not read yet: read it first, and give its version, which is \"{version}\""
                )
            }
            Self::NotRead { path, version, lines } => write!(
                f,
                "{path} was not read yet: read it first (lines 1–{lines}), or give version \"{version}\" if you know its text"
            ),
            Self::Changed { path, seen, version, lines } => {
                write!(
                    f,
                    "{path} changed since you read it: you know version {seen}, and it has version {version}. "
                )?;
                match &lines[..] {
                    [] => write!(f, "Read it again"),
                    lines => write!(f, "Read {} again", in_words(lines)),
                }
            }
            Self::NotFound { path, index, nearest: None } => {
                write!(
                    f,
                    "replacement {index}: the old text is not in {path}, nor anything like it: read the file again"
                )
            }
            Self::NotFound { path, index, nearest: Some(near) } => write!(
                f,
                "replacement {index}: the old text is not in {path}. The nearest text is {}; line {} is `{}`, where the old text has `{}`: \
                 copy the old text from there",
                in_words(&[near.lines]),
                near.line,
                near.found,
                near.wanted
            ),
            Self::Ambiguous { path, index, expected, found, lines } => {
                let verb = if lines.len() == 1 { "has" } else { "have" };
                let more =
                    if *found > lines.len() { format!(", {found} places in all") } else { String::new() };
                write!(
                    f,
                    "replacement {index}: {} of {path} {verb} this text{more}, and {expected} ",
                    in_words(lines)
                )?;
                write!(
                    f,
                    "{} expected: add lines around it, or give expected_matches: {found}",
                    if *expected == 1 { "was" } else { "were" }
                )
            }
            Self::EmptySearch { index } => {
                write!(
                    f,
                    "replacement {index}: the old text is empty: give the text to replace, or insert lines with edit_lines"
                )
            }
            Self::NoSuchLines { path, start, end, total } => {
                write!(
                    f,
                    "{path} has lines 1–{total}, and not {start}–{end}: read it and take its line numbers"
                )
            }
            Self::OtherText { path, lines, nearest, elsewhere } => {
                write!(f, "{} of {path} do not have the text of `old`", in_words(&[*lines]))?;
                if let Some(near) = nearest {
                    write!(f, ": line {} is `{}`, and `old` has `{}`", near.line, near.found, near.wanted)?;
                }
                match &elsewhere[..] {
                    [] => write!(f, ". Read the lines again"),
                    lines => write!(f, ". It stands at {}", in_words(lines)),
                }
            }
            Self::Overlap { path, first, second } => write!(
                f,
                "two edits of {path} change the same place ({} and {}): join them into one edit",
                in_words(&[*first]),
                in_words(&[*second])
            ),
            Self::MixedBatch { path } => write!(
                f,
                "the batch changes {path} in two ways that depend on their order: make two batches, and nothing of this one was done"
            ),
            Self::Shrinks { path, bytes_before, bytes_after, removed } => {
                let what = if *bytes_after == 0 { "be empty" } else { "lose more than half" };
                write!(
                    f,
                    "{path} would {what} ({bytes_before} bytes before, {bytes_after} after). If {} shall go, give them in allow_shrink; \
                     else give the whole text",
                    in_words(removed)
                )
            }
            Self::Artefact { path, line, text, what } => {
                write!(
                    f,
                    "{what} (line {line} of {path} would be `{text}`): write the code that belongs there"
                )
            }
            Self::NoSuchNode { path, kind, name, near } if near.is_empty() => {
                write!(f, "{path} has no {kind} `{name}`: look at its outline, or use edit_lines")
            }
            Self::NoSuchNode { path, kind, name, near } => {
                let near = near.iter().take(MOST_NAMED).map(|(name, line)| format!("`{name}` (line {line})"));
                write!(f, "{path} has no {kind} `{name}`; it has {}", list(near))
            }
            Self::AmbiguousNode { path, kind, name, lines } => {
                write!(
                    f,
                    "{path} has the {kind} `{name}` at {}: give the line of the one you mean",
                    in_words(lines)
                )
            }
            Self::UncertainNode { path, kind, name, reason } => {
                write!(
                    f,
                    "it is not certain where the {kind} `{name}` of {path} ends: {reason}. Use edit_lines"
                )
            }
            Self::BadNode { kind, reason } => write!(f, "the new text is not one {kind}: {reason}"),
            Self::Required { path } => {
                write!(
                    f,
                    "a theme does not work without {path}, so it was not deleted; force: true deletes it all the same"
                )
            }
            Self::Referenced { path, by } => {
                let places =
                    by.iter().take(MOST_NAMED).map(|by| format!("{} ({})", by.path, in_words(&[by.lines])));
                write!(f, "{path} is used by {}: change that first, or give force: true", list(places))
            }
            Self::OtherFolder { path, to } => write!(
                f,
                "references can't be updated from {path} to {to}, because these are other kinds of files: rename within the folder, \
                 or give update_references: false"
            ),
            Self::NoSuchEdit { edit } => {
                write!(f, "there is no edit {edit}: the answer to each edit says its number")
            }
            Self::AlreadyUndone { edit } => write!(f, "edit {edit} was undone already"),
            Self::LaterEdit { path, edit, later } => {
                write!(
                    f,
                    "edit {later} changed {path} after edit {edit}: undo edit {later} first, or undo the whole file"
                )
            }
            Self::LaterWrite { path, by } => {
                write!(
                    f,
                    "{by} wrote {path} after this edit, and undoing it would lose that: read the file and edit it instead"
                )
            }
            Self::NothingToUndo => f.write_str("this run has no edit to undo there"),
            Self::BadCall { reason } => f.write_str(reason),
            Self::Conflicts { paths } => write!(
                f,
                "others changed the same lines of {}: compare the texts and decide file by file",
                list(paths.iter().cloned())
            ),
            Self::InBatch { index, of, error } => {
                write!(f, "call {index} of {of} was refused, so none was done: {error}")
            }
        }
    }
}
