//! The webhook of a push to GitHub: the check of its signature, and its commits.
//!
//! The signature is checked over the bytes of the body, before anything else reads them.

use jiff::Timestamp;
use serde::Deserialize;

use super::commit::{Commit, CommitId, MAX_AUTHOR, MAX_FILES, MAX_MESSAGE, MAX_PATH};
use crate::secrets::signature::hmac_sha256;

/// The header of the signature.
pub const SIGNATURE: &str = "x-hub-signature-256";

/// The header with the kind of the event.
pub const EVENT: &str = "x-github-event";

/// The longest name of a branch, in bytes.
pub const MAX_BRANCH: usize = 200;

/// Whether a signature is that of a body: `sha256=` and the HMAC-SHA-256 with the secret, in hexadecimal digits. The time that it takes
/// does not depend on how much of it is right.
#[must_use]
pub fn is_signed(secret: &str, body: &[u8], signature: &str) -> bool {
    let expected = hmac_sha256(secret.as_bytes(), &[body]);
    let expected: String = expected.iter().map(|byte| format!("{byte:02x}")).collect();
    let Some(given) = signature.strip_prefix("sha256=").filter(|given| given.len() == expected.len()) else {
        return false;
    };
    given.bytes().zip(expected.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// What a push brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Push {
    /// Commits of the branch that the documents describe, oldest first.
    Commits(Vec<Commit>),
    /// It is a push to another branch or of a tag, or the branch was deleted. With what it was.
    Other(String),
}

/// The body is not that of a push.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not the body of a push of GitHub: {0}")]
pub struct NotAPush(String);

#[derive(Deserialize)]
struct Body {
    #[serde(rename = "ref")]
    reference: String,
    #[serde(default)]
    deleted: bool,
    repository: Repository,
    #[serde(default)]
    commits: Vec<Pushed>,
}

#[derive(Deserialize)]
struct Repository {
    default_branch: String,
}

#[derive(Deserialize)]
struct Pushed {
    id: CommitId,
    message: String,
    timestamp: Timestamp,
    #[serde(default)]
    author: Option<Author>,
    #[serde(default)]
    added: Vec<String>,
    #[serde(default)]
    modified: Vec<String>,
    #[serde(default)]
    removed: Vec<String>,
}

#[derive(Deserialize)]
struct Author {
    #[serde(default)]
    name: String,
}

/// Reads a push. `branch`: the branch that the documents describe; without it, the default branch of the repository.
///
/// # Errors
/// [`NotAPush`].
pub fn read(body: &[u8], branch: Option<&str>) -> Result<Push, NotAPush> {
    let body: Body = serde_json::from_slice(body).map_err(|error| NotAPush(error.to_string()))?;
    let branch = branch.unwrap_or(&body.repository.default_branch);
    if body.deleted || body.reference.strip_prefix("refs/heads/") != Some(branch) {
        return Ok(Push::Other(body.reference));
    }
    Ok(Push::Commits(body.commits.into_iter().filter_map(commit).collect()))
}

/// A commit, cut to its limits. None without a message, which GitHub allows and which tells nothing.
fn commit(pushed: Pushed) -> Option<Commit> {
    let Pushed { id, message, timestamp, author, added, modified, removed } = pushed;
    let message = message.trim();
    let message = message[..message.floor_char_boundary(MAX_MESSAGE)].trim_end();
    if message.is_empty() {
        return None;
    }
    let author: Option<String> = author.map(|author| author.name.trim().chars().take(MAX_AUTHOR).collect());
    let all = added.len() + modified.len() + removed.len();
    let fits = |path: &String| (1..=MAX_PATH).contains(&path.len());
    let files: Vec<String> =
        added.into_iter().chain(modified).chain(removed).filter(fits).take(MAX_FILES).collect();
    Some(Commit {
        id,
        at: timestamp,
        author: author.filter(|author| !author.is_empty()),
        message: message.to_owned(),
        more_files: u32::try_from(all - files.len()).unwrap_or(u32::MAX),
        files,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The example of GitHub's documentation, "Validating webhook deliveries".
    #[test]
    fn the_signature_is_that_of_the_documentation() {
        let (secret, body) = ("It's a Secret to Everybody", b"Hello, World!".as_slice());
        let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert!(is_signed(secret, body, signature));
        for (secret, body, signature) in [
            ("It's a secret to everybody", body, signature),
            (secret, b"Hello, World?", signature),
            (secret, body, "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"),
            (secret, body, "sha1=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"),
            (secret, body, "sha256="),
            (secret, body, ""),
        ] {
            assert!(!is_signed(secret, body, signature), "{signature}");
        }
    }

    #[test]
    fn a_push_is_read_with_what_is_needed_of_it() {
        let id = "6dcb09b5b57875f334f61aebed695e2e4193db5e";
        let body = |reference: &str, deleted: bool, message: &str, files: usize| {
            let files: Vec<String> = (0..files).map(|n| format!("src/{n}.rs")).collect();
            json!({
                "ref": reference, "deleted": deleted, "forced": true, "repository": {"default_branch": "main", "id": 7},
                "commits": [{
                    "id": id, "distinct": true, "message": message, "timestamp": "2026-11-24T09:30:00+01:00",
                    "author": {"name": "Ada", "email": "ada@example.com", "username": "ada"},
                    "added": files, "removed": ["old.rs"], "modified": [],
                }],
            })
            .to_string()
        };
        let read = |body: &str, branch| read(body.as_bytes(), branch);
        let Ok(Push::Commits(commits)) =
            read(&body("refs/heads/main", false, "Two doors\n\nMore.\n", 1), None)
        else {
            panic!("it is a push")
        };
        assert_eq!(
            commits,
            [Commit {
                id: id.parse().unwrap(),
                at: "2026-11-24T08:30:00Z".parse().unwrap(),
                author: Some("Ada".to_owned()),
                message: "Two doors\n\nMore.".to_owned(),
                files: vec!["src/0.rs".to_owned(), "old.rs".to_owned()],
                more_files: 0,
            }]
        );
        let Ok(Push::Commits(commits)) =
            read(&body("refs/heads/dev", false, &"é".repeat(9_000), 70), Some("dev"))
        else {
            panic!("it is a push")
        };
        assert_eq!((commits[0].check(), commits[0].more_files), (Ok(()), 21));
        assert_eq!(read(&body("refs/heads/main", false, " \n", 0), None), Ok(Push::Commits(Vec::new())));
        for (reference, deleted, branch) in [
            ("refs/heads/dev", false, None),
            ("refs/tags/main", false, None),
            ("refs/heads/main", true, None),
            ("refs/heads/main", false, Some("dev")),
        ] {
            assert_eq!(
                read(&body(reference, deleted, "x", 0), branch),
                Ok(Push::Other(reference.to_owned()))
            );
        }
        for wrong in ["", "{}", "[]", r#"{"ref": "refs/heads/main"}"#] {
            assert!(read(wrong, None).is_err(), "{wrong}");
        }
    }
}
