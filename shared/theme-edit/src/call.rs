//! The edits that a caller can ask for, in the form of the tools' arguments.

use serde::{Deserialize, Serialize};
use theme::text::LineRange;
use utoipa::ToSchema;

use crate::node::NodeRef;

/// One edit. As JSON, its field `tool` is the name of the tool, and the other fields are the tool's arguments.
///
/// `version` is the version of the file that the caller read. It may be left out if the file has not changed since the run's own last reading or
/// edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "tool", rename_all = "snake_case", deny_unknown_fields)]
#[schema(as = ThemeEdit)]
pub enum Call {
    /// Replaces, deletes or inserts lines. All line numbers are those of the version read.
    EditLines {
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        /// The changes of lines, in any order. They must not overlap.
        #[schema(value_type = Vec<RawLineEdit>)]
        edits: Vec<LineEdit>,
        /// The lines that shall go, if the file gets less than half as long.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        allow_shrink: Vec<LineRange>,
    },
    /// Replaces texts. Each old text must have one place, or as many as `expected_matches` says.
    SearchReplace {
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        /// The replacements, in any order. They must not overlap.
        replacements: Vec<Replacement>,
        /// The lines that shall go, if the file gets less than half as long.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        allow_shrink: Vec<LineRange>,
    },
    /// Replaces the whole text of a file that exists. Lines that stay keep their line ends, and the file keeps its byte order mark and
    /// its way of ending.
    WriteFile {
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        content: String,
        /// The lines that shall go, if the file gets less than half as long.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        allow_shrink: Vec<LineRange>,
    },
    /// Replaces one named part of a file, as the outline of a long file names it.
    EditNode {
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        /// The part.
        node: NodeRef,
        /// The whole new part.
        content: String,
        /// The lines that shall go, if the file gets less than half as long.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        allow_shrink: Vec<LineRange>,
    },
    /// Makes a file that does not exist.
    CreateFile { path: String, content: String },
    /// Deletes a file. A required file, or one that others name, only with `force`.
    DeleteFile {
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        /// Delete it although other files name it, or a theme needs it.
        #[serde(default)]
        force: bool,
    },
    /// Gives a file another path, which must be free.
    RenameFile {
        path: String,
        /// The new path.
        to: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        /// Whether the files that name it get the new name.
        #[serde(default)]
        update_references: bool,
    },
    /// Takes back an edit, all edits of a file, or all edits of this run. Exactly one of the fields is given.
    UndoEdit {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        /// The number of one edit.
        edit: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// All edits.
        #[serde(default)]
        all: bool,
    },
}

/// A text, and what takes its place.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ThemeReplacement)]
pub struct Replacement {
    /// The text in the file. Without the line numbers of a listing.
    pub old: String,
    /// The new text. Empty to delete the old one.
    pub new: String,
    /// How often the old text stands in the file. All places are changed. It can be left out if the same replacement is given once for
    /// each place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_matches: Option<usize>,
}

/// A change of lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawLineEdit", into = "RawLineEdit")]
pub enum LineEdit {
    /// Puts `content` in the place of the lines `start` to `end`. Empty content deletes them.
    Replace {
        start: u32,
        end: u32,
        content: String,
        /// The text that the lines have. If it is given, it is compared first.
        old: Option<String>,
    },
    /// Puts `content` behind line `after`; 0 is the beginning of the file.
    Insert { after: u32, content: String },
}

/// A change of lines: `start` and `end` to replace lines, or `after` to insert lines.
#[derive(Serialize, Deserialize, Default, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ThemeLineEdit)]
struct RawLineEdit {
    /// The first line to replace, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start: Option<u32>,
    /// The last line to replace. Default: `start`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<u32>,
    /// Insert behind this line; 0 is the beginning of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<u32>,
    /// The new lines. Empty content deletes lines.
    content: String,
    /// The text that the lines have. If it is given, it is compared first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    old: Option<String>,
}

impl TryFrom<RawLineEdit> for LineEdit {
    type Error = &'static str;

    fn try_from(raw: RawLineEdit) -> Result<Self, Self::Error> {
        match raw {
            RawLineEdit { start: Some(start), end, after: None, content, old } => {
                Ok(Self::Replace { start, end: end.unwrap_or(start), content, old })
            }
            RawLineEdit { start: None, end: None, after: Some(after), content, old: None } => {
                Ok(Self::Insert { after, content })
            }
            _ => Err("an edit of lines has `start` and `end` to replace lines, or `after` to insert lines"),
        }
    }
}

impl From<LineEdit> for RawLineEdit {
    fn from(edit: LineEdit) -> Self {
        match edit {
            LineEdit::Replace { start, end, content, old } => {
                Self { start: Some(start), end: Some(end), content, old, ..Self::default() }
            }
            LineEdit::Insert { after, content } => Self { after: Some(after), content, ..Self::default() },
        }
    }
}

impl Call {
    /// The name of the tool.
    #[must_use]
    pub fn tool(&self) -> &'static str {
        match self {
            Self::EditLines { .. } => "edit_lines",
            Self::SearchReplace { .. } => "search_replace",
            Self::WriteFile { .. } => "write_file",
            Self::EditNode { .. } => "edit_node",
            Self::CreateFile { .. } => "create_file",
            Self::DeleteFile { .. } => "delete_file",
            Self::RenameFile { .. } => "rename_file",
            Self::UndoEdit { .. } => "undo_edit",
        }
    }

    /// The file that the call names.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::EditLines { path, .. }
            | Self::SearchReplace { path, .. }
            | Self::WriteFile { path, .. }
            | Self::EditNode { path, .. }
            | Self::CreateFile { path, .. }
            | Self::DeleteFile { path, .. }
            | Self::RenameFile { path, .. } => Some(path),
            Self::UndoEdit { path, .. } => path.as_deref(),
        }
    }
}
