//! A commit, as a hook, a push or a person reports it.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::validate::FieldErrors;

/// The longest message of a commit, in bytes.
pub const MAX_MESSAGE: usize = 4_000;

/// The longest name of an author, in characters.
pub const MAX_AUTHOR: usize = 100;

/// How many files of a commit are named.
pub const MAX_FILES: usize = 50;

/// The longest path of a file, in bytes.
pub const MAX_PATH: usize = 300;

/// The whole hash of a commit: 40 digits, or 64 in a repository with SHA-256.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommitId(String);

/// The text is not the hash of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be the whole hash of a commit: 40 or 64 hexadecimal digits in lower case")]
pub struct InvalidCommitId;

impl CommitId {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first seven digits, as people write it.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.0[..7]
    }
}

impl FromStr for CommitId {
    type Err = InvalidCommitId;

    fn from_str(text: &str) -> Result<Self, InvalidCommitId> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_valid = matches!(text.len(), 40 | 64) && text.bytes().all(is_digit);
        // Git writes zeros for a commit that does not exist.
        let exists = text.bytes().any(|byte| byte != b'0');
        if is_valid && exists { Ok(Self(text.to_owned())) } else { Err(InvalidCommitId) }
    }
}

impl TryFrom<String> for CommitId {
    type Error = InvalidCommitId;

    fn try_from(text: String) -> Result<Self, InvalidCommitId> {
        text.parse()
    }
}

impl From<CommitId> for String {
    fn from(id: CommitId) -> Self {
        id.0
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A change of a repository. All its texts come from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DocsCommit)]
pub struct Commit {
    /// Its whole hash, 40 or 64 hexadecimal digits in lower case.
    #[schema(value_type = String, example = "6dcb09b5b57875f334f61aebed695e2e4193db5e")]
    pub id: CommitId,
    /// When its author made it. A rebase keeps this time.
    pub at: Timestamp,
    /// 1 to 100 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 100, example = "Ada")]
    pub author: Option<String>,
    /// The whole message, 1 to 4,000 bytes.
    #[schema(max_length = 4_000, example = "Sessions end after an hour")]
    pub message: String,
    /// The files that it changes, at most 50 paths of at most 300 bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 50, example = json!(["src/session.rs"]))]
    pub files: Vec<String>,
    /// How many more files it changes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_files: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Commit {
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        errors.time("at", self.at);
        if let Some(author) = &self.author {
            errors.length("author", author, 1, MAX_AUTHOR);
        }
        if self.message.trim().is_empty() {
            errors.add("message", "is required");
        } else if self.message.len() > MAX_MESSAGE {
            errors.add("message", format!("must be at most {MAX_MESSAGE} bytes, is {}", self.message.len()));
        }
        if self.files.len() > MAX_FILES {
            let told = format!(
                "must have at most {MAX_FILES} paths, has {}: say in `more_files` how many were left out",
                self.files.len()
            );
            errors.add("files", told);
        }
        for (n, path) in self.files.iter().enumerate().take(MAX_FILES) {
            if path.is_empty() || path.len() > MAX_PATH {
                errors
                    .add(format!("files[{n}]"), format!("must be 1 to {MAX_PATH} bytes, is {}", path.len()));
            }
        }
        errors.into_result(())
    }

    /// What stays the same if the commit is rebased: its author, its time and its message.
    pub(super) fn change(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in
            [self.at.to_string().as_str(), self.author.as_deref().unwrap_or(""), self.message.trim_end()]
        {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }

    /// Adds the files of another commit.
    pub(super) fn also_changes(&mut self, other: &Self) {
        self.more_files = self.more_files.max(other.more_files);
        for file in &other.files {
            if self.files.contains(file) {
                continue;
            }
            if self.files.len() < MAX_FILES {
                self.files.push(file.clone());
            } else {
                self.more_files = self.more_files.saturating_add(1);
            }
        }
    }

    /// About how much the commit takes in the table and in a prompt, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let files: usize = self.files.iter().map(|path| path.len() + 4).sum();
        self.message.len() + files + self.author.as_ref().map_or(0, String::len) + 150
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A commit of this second, whose hash and message name a number.
    pub fn commit(n: u32) -> Commit {
        Commit {
            id: format!("{:040x}", n + 1).parse().unwrap(),
            at: Timestamp::from_second(1_795_251_600 + i64::from(n)).unwrap(),
            author: Some("Ada".to_owned()),
            message: format!("Change {n}"),
            files: vec![format!("src/part_{n}.rs")],
            more_files: 0,
        }
    }

    #[test]
    fn an_id_is_a_whole_hash() {
        for good in ["6dcb09b5b57875f334f61aebed695e2e4193db5e", &"a".repeat(64)] {
            assert_eq!(good.parse::<CommitId>().unwrap().as_str(), good);
        }
        for bad in ["", "6dcb09b", &"0".repeat(40), &"A".repeat(40), &"g".repeat(40), &"a".repeat(41)] {
            assert_eq!(bad.parse::<CommitId>(), Err(InvalidCommitId), "{bad}");
        }
        assert_eq!(commit(0xabc).id.short(), "0000000");
    }

    #[test]
    fn refusals_name_the_field_and_its_limit() {
        let said = |change: Value| {
            let mut json = json!(commit(1));
            json.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            let commit: Commit = serde_json::from_value(json).unwrap();
            commit.check().map_or_else(|errors| errors.to_string(), |()| String::new())
        };
        for (change, expected) in [
            (json!({}), ""),
            (json!({"author": null, "files": [], "message": "a".repeat(4_000)}), ""),
            (json!({"message": " \n"}), "message: is required"),
            (json!({"message": "a".repeat(4_001)}), "message: must be at most 4000 bytes, is 4001"),
            (json!({"author": " "}), "author: must not be blank (1 to 100 characters)"),
            (json!({"author": "a".repeat(101)}), "author: must be 1 to 100 characters, is 101"),
            (json!({"at": "9999-01-01T00:00:00Z"}), "at: must be between the years 1970 and 9000"),
            (json!({"files": ["a", ""]}), "files[1]: must be 1 to 300 bytes, is 0"),
            (
                json!({"files": vec!["a"; 51]}),
                "files: must have at most 50 paths, has 51: say in `more_files` how many were left out",
            ),
        ] {
            assert_eq!(said(change.clone()), expected, "{change}");
        }
        let mut unknown = json!(commit(1));
        unknown["diff"] = json!("x");
        assert!(serde_json::from_value::<Commit>(unknown).is_err());
    }

    #[test]
    fn a_rebase_keeps_the_change_and_an_amended_message_does_not() {
        let one = commit(1);
        let rebased = Commit { id: commit(2).id, files: Vec::new(), ..one.clone() };
        assert_eq!(one.change(), rebased.change());
        let others = [
            Commit { message: "Another".to_owned(), ..one.clone() },
            Commit { author: None, ..one.clone() },
            Commit { at: commit(2).at, ..one.clone() },
            // Texts do not run into each other.
            Commit { author: Some("AdaC".to_owned()), message: "hange 1".to_owned(), ..one.clone() },
        ];
        for other in others {
            assert_ne!(one.change(), other.change(), "{other:?}");
        }
    }
}
