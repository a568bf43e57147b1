//! A deliverable that waits on the server until a person accepts it, so that every device sees it.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::assets::AssetType;
use crate::ids::{ActionId, AgentId, ChatId, ProposalId, RunId};
use crate::work::{ActionChange, ActionDraft};

/// How long a proposal is kept.
pub const LIFETIME: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The largest content that is stored within the record, in bytes. Larger contents are in S3.
pub const MAX_INLINE_BYTES: usize = 64 * 1024;

/// A proposal as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    pub proposal_id: ProposalId,
    pub agent_id: AgentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatId>,
    /// The run whose reply proposed it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    #[serde(flatten)]
    pub body: ProposalBody,
}

/// What is proposed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProposalBody {
    Asset {
        title: String,
        description: String,
        asset_type: AssetType,
        bytes: u64,
        /// `None` if it is larger than [`MAX_INLINE_BYTES`] and therefore in S3.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<String>,
    },
    Action(ActionDraft),
    /// A change of an existing action.
    Change {
        action_id: ActionId,
        /// The action's title after the change.
        title: String,
        change: Box<ActionChange>,
    },
}

impl ProposalBody {
    #[must_use]
    pub fn title(&self) -> &str {
        match self {
            Self::Asset { title, .. } | Self::Change { title, .. } => title,
            Self::Action(draft) => &draft.title,
        }
    }
}
