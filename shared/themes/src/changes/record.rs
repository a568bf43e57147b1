//! A change set as it is stored, and as clients see it.

use domain::ids::{AgentId, ApiKeyId, ChangeSetId, RunId};
use domain::validate::FieldErrors;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use shared::request::caller::Actor;
use utoipa::ToSchema;
use uuid::Uuid;

/// How long a change set is kept after it was changed last.
pub const KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Longest title, in characters.
pub const MAX_TITLE: usize = 200;

/// Whether a change set was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeSetState {
    /// It can be edited and applied. Only those who know it see its edits.
    Open,
    /// Its edits are in the theme.
    Applied,
}

/// Who made a change set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MadeBy {
    /// A person who is signed in, or who uses an installation without authentication.
    Person,
    /// The holder of an API key.
    ApiKey { key_id: ApiKeyId },
    /// An agent, in a run. Without an id, it is the theme agent.
    Run {
        run_id: RunId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent_id: Option<AgentId>,
    },
}

impl From<Actor> for MadeBy {
    fn from(actor: Actor) -> Self {
        match actor {
            Actor::ApiKey(key_id) => Self::ApiKey { key_id },
            Actor::Person | Actor::Channel(_) => Self::Person,
        }
    }
}

/// What a change set does to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    Created,
    Edited,
    Deleted,
    Renamed,
}

/// A file that a change set changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangeSetFile {
    #[schema(example = "sections/header.liquid")]
    pub path: String,
    pub change: FileChangeKind,
    /// The path before, if the file was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// How many lines the change adds.
    pub added: usize,
    /// How many lines the change removes.
    pub removed: usize,
    /// The changed lines, as they are after the change: the first and the last of each part. At most 10 parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<[u32; 2]>,
}

/// What an agent or an assistant means to do, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChangeSetPlan)]
pub struct Plan {
    /// Markdown, up to 8,000 characters.
    pub text: String,
    /// It counts the changes of the plan.
    pub version: u64,
}

/// A change set: edits of a theme that nobody else sees until they are applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangeSet {
    pub change_set_id: ChangeSetId,
    pub title: String,
    /// What was asked for, in a person's words. Later lookups know which files were changed for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The plan of whoever makes the edits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    pub state: ChangeSetState,
    /// Who made it.
    pub by: MadeBy,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// It counts the changes of the change set.
    pub version: u64,
    /// The number of the last edit. Each edit has a number of its own, for `undo_edit`.
    pub edits: u64,
    /// The files that differ from the theme, by path. At most 90.
    pub files: Vec<ChangeSetFile>,
    /// A SHA-256 of the edits, in hexadecimal. Whoever applies the change set names it, so that they apply what they have seen.
    pub hash: String,
    /// When it was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_at: Option<Timestamp>,
    /// The applied change set that this one takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverts: Option<ChangeSetId>,
}

/// A change set in the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stored {
    #[serde(flatten)]
    pub set: ChangeSet,
    /// The object with the edits. `None`: there are none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Uuid>,
    /// Whether it was begun by an edit that is applied at once. Other edits are a draft, which is applied only if somebody says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_once: bool,
}

impl Stored {
    /// When the table deletes it.
    pub fn expires_at(&self) -> Timestamp {
        self.set.updated_at.checked_add(KEPT).unwrap_or(Timestamp::MAX)
    }

    pub fn is_open(&self) -> bool {
        self.set.state == ChangeSetState::Open
    }
}

/// The title of a change set as it is stored.
///
/// # Errors
/// It is too long.
pub(super) fn titled(title: Option<&str>) -> Result<String, FieldErrors> {
    let title = domain::text::names::canonical(title.unwrap_or_default());
    let length = title.chars().count();
    if length > MAX_TITLE {
        let told = format!("must have at most {MAX_TITLE} characters, has {length}");
        return Err(FieldErrors::one("title", told));
    }
    Ok(if title.is_empty() { "Changes".to_owned() } else { title })
}
