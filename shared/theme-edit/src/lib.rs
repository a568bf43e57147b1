//! Edits the files of a shop's theme so that nothing outside an edit changes.
//!
//! Everything here is a pure function or a plain type. A [`Draft`] is a theme with the changes of one run over it. A run reads through it
//! ([`Draft::open`], [`Draft::read`]), edits ([`Draft::apply`] with a [`Call`], [`Draft::apply_all`] with several), and takes edits back
//! ([`Draft::undo`]). Each edit passes guards; a refused one is an [`EditError`] that says what to do, and changes nothing.
//!
//! - [`Call`]: the edits, in the form of the tools' arguments
//! - [`Outcome`]: what an edit did, and the versions that the next calls give
//! - [`Linter`]: which problems an edit added, and whether Shopify would refuse the file
//! - [`Entry`], [`StoredDraft`]: the journal, and a draft as it is stored
//! - [`Changes`]: what a draft changes, as a diff for `git apply`, with a hash
//! - [`Draft::compare`], [`Draft::rebase`]: the theme changed meanwhile
//! - [`outline()`], [`nodes()`]: the named parts of a file, with their lines
//!
//! `tests/edits` has the rules as folders: files, a call, and the files or the refusal that follow.

mod call;
mod changes;
pub mod diff;
mod differs;
mod draft;
mod error;
mod guards;
mod journal;
mod kind;
mod lint;
mod locate;
mod node;
mod outline;
mod text;
mod tree;
mod version;

pub use call::{Call, LineEdit, Replacement};
pub use changes::{Changes, Compared, FileChange, State, merge};
pub use draft::{CallOutcome, Draft, FileOutcome, Outcome, REQUIRED, Undo};
pub use error::{EditError, Mention};
pub use guards::MAX_TEXT;
pub use journal::{Change, Entry, LoadError, StoredDraft, replayed};
pub use kind::NodeKind;
pub use lint::{Lint, Linter, Problem, Shown};
pub use locate::{Fit, Nearest};
pub use node::{Node, NodeRef, nodes};
pub use outline::{
    LINE_CHARACTERS, OUTLINE_NODES, Opened, Outline, WHOLE_CHARACTERS, WINDOW_CHARACTERS, Window, outline,
};
pub use tree::{Bytes, File, Tree};
pub use version::{NotAVersion, Version};
