//! Living documents: texts that describe a project, and keep up with its commits.
//!
//! - [`Commit`] and [`Changelog`]: what has changed since the documents were last written. Each commit is in exactly one synchronisation
//! - [`github`]: commits that a push to GitHub reports
//! - [`frontmatter`]: how far a document is behind, as its reader sees it at the top of the text
//! - [`parts`]: long documents in parts, so that a model rewrites only what has changed
//! - [`prompt`]: what a model is asked
//! - [`sections`]: how a model gives back several texts in one answer
//! - [`checks`]: what a new text must keep before it replaces the old one
//! - [`sync`]: a synchronisation, from the request to its end
//! - [`told`]: what an agent is told of the documents
//!
//! All functions are pure.

pub mod changelog;
pub mod checks;
pub mod commit;
pub mod frontmatter;
pub mod github;
pub mod parts;
pub mod prompt;
pub mod sections;
pub mod sync;
pub mod told;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use changelog::Changelog;
pub use commit::{Commit, CommitId};

/// The longest name of a document, in bytes.
pub const MAX_NAME: usize = 100;

/// The longest text of a document, in bytes, without the marks of its frontmatter.
pub const MAX_TEXT: usize = 200 * 1024;

/// These stand in the same place of a path as the name of a document.
const RESERVED: [&str; 3] = ["commits", "hook", "sync"];

/// How many documents a project may have.
pub const MAX_DOCUMENTS: usize = 20;

/// What one synchronisation may cost, in micro-dollars.
pub const MAX_SYNC_MICROS: i64 = 2_000_000;

/// The name of a document: that of a file, such as `ARCHITECTURE.md`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DocName(String);

/// The text is not the name of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be 1 to {MAX_NAME} letters, digits, hyphens, underscores and dots, must begin with a letter or a digit, and must not be `commits`, \
     `hook` or `sync`"
)]
pub struct InvalidDocName;

impl DocName {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name without its last ending: `ARCHITECTURE`.
    #[must_use]
    pub fn stem(&self) -> &str {
        self.0.rsplit_once('.').map_or(&self.0, |(stem, _)| stem)
    }
}

impl FromStr for DocName {
    type Err = InvalidDocName;

    fn from_str(text: &str) -> Result<Self, InvalidDocName> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_valid = (1..=MAX_NAME).contains(&text.len())
            && !RESERVED.contains(&text)
            && text.bytes().all(is_plain)
            && text.starts_with(|first: char| first.is_ascii_alphanumeric());
        if is_valid { Ok(Self(text.to_owned())) } else { Err(InvalidDocName) }
    }
}

impl TryFrom<String> for DocName {
    type Error = InvalidDocName;

    fn try_from(text: String) -> Result<Self, InvalidDocName> {
        text.parse()
    }
}

impl From<DocName> for String {
    fn from(name: DocName) -> Self {
        name.0
    }
}

impl fmt::Display for DocName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A document: its name and its text, without the marks of its frontmatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doc<'a> {
    pub name: &'a DocName,
    pub text: &'a str,
}

/// How far the documents of a project are behind its commits, and what an agent is told to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = DocsStaleness)]
pub enum Staleness {
    /// No commit waits.
    Fresh,
    /// One or two commits: worth a word.
    Slightly,
    /// Three or more: the agent proposes a synchronisation.
    Stale,
}

impl Staleness {
    #[must_use]
    pub const fn of(commits_since_sync: usize) -> Self {
        match commits_since_sync {
            0 => Self::Fresh,
            1 | 2 => Self::Slightly,
            _ => Self::Stale,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_a_file_in_no_folder() {
        for good in ["ARCHITECTURE.md", "a", "0.md", "notes-2_b.txt", &"a".repeat(100)] {
            assert_eq!(good.parse::<DocName>().unwrap().as_str(), good);
        }
        for bad in
            ["", ".md", "-a", "_a", "a/b.md", "../a", "a b", "Ä.md", "a\n", "a%2Fb", "sync", &"a".repeat(101)]
        {
            assert_eq!(bad.parse::<DocName>(), Err(InvalidDocName), "{bad}");
            assert!(serde_json::from_value::<DocName>(bad.into()).is_err(), "{bad}");
        }
        for (name, stem) in [("ARCHITECTURE.md", "ARCHITECTURE"), ("a.b.md", "a.b"), ("README", "README")] {
            assert_eq!(name.parse::<DocName>().unwrap().stem(), stem);
        }
    }

    #[test]
    fn three_commits_are_too_many() {
        let of = [0, 1, 2, 3, 500].map(Staleness::of);
        use Staleness::{Fresh, Slightly, Stale};
        assert_eq!(of, [Fresh, Slightly, Slightly, Stale, Stale]);
    }
}
