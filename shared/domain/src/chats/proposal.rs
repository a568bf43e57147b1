//! A deliverable that waits on the server until a person accepts it, so that every device sees it.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::assets::AssetType;
use crate::ids::{ActionId, AgentId, ChatId, ProposalId, RunId};
use crate::work::{ActionChange, ActionCommand, ActionDraft};

/// How long a proposal is kept.
pub const LIFETIME: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The largest content that is stored within the record, in bytes. Larger contents are in S3.
pub const MAX_INLINE_BYTES: usize = 64 * 1024;

/// The most earlier drafts that a draft names.
pub const MAX_REPLACED: usize = 50;

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
    /// The earlier drafts of the same thing, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<ProposalId>,
    /// The newer draft of the same thing. This one waits no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<ProposalId>,
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
    /// A command for an existing action.
    Command {
        action_id: ActionId,
        /// The action's title.
        title: String,
        command: ActionCommand,
    },
}

impl Proposal {
    /// Whether a person can still accept it.
    #[must_use]
    pub fn waits(&self, now: Timestamp) -> bool {
        self.superseded_by.is_none() && self.expires_at > now
    }

    /// Whether a later turn of the same conversation proposes the same thing again: an asset or an action under the same title, a
    /// change that sets all fields that this one sets, or another command for the same action.
    #[must_use]
    pub fn is_refined_by(&self, newer: &Self) -> bool {
        let is_later_turn = self.run_id != newer.run_id && newer.run_id.is_some();
        let is_here = self.agent_id == newer.agent_id && self.chat_id == newer.chat_id;
        let is_same = match (&self.body, &newer.body) {
            (ProposalBody::Asset { title: old, .. }, ProposalBody::Asset { title: new, .. }) => {
                self.chat_id.is_some() && same_title(old, new)
            }
            (ProposalBody::Action(old), ProposalBody::Action(new)) => {
                self.chat_id.is_some() && same_title(&old.title, &new.title)
            }
            (
                ProposalBody::Change { action_id: old_of, change: old, .. },
                ProposalBody::Change { action_id: new_of, change: new, .. },
            ) => old_of == new_of && new.sets_all_of(old),
            (
                ProposalBody::Command { action_id: old_of, .. },
                ProposalBody::Command { action_id: new_of, .. },
            ) => old_of == new_of,
            _ => false,
        };
        is_later_turn && is_here && is_same
    }

    /// Becomes the newer draft of the same thing. It names at most [`MAX_REPLACED`] earlier ones, the newest.
    pub fn refines(&mut self, older: &Self) {
        self.replaces.extend(older.replaces.iter().copied().chain([older.proposal_id]));
        let excess = self.replaces.len().saturating_sub(MAX_REPLACED);
        self.replaces.drain(..excess);
    }
}

fn same_title(one: &str, other: &str) -> bool {
    let words = |title: &str| title.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    words(one) == words(other)
}

impl ProposalBody {
    #[must_use]
    pub fn title(&self) -> &str {
        match self {
            Self::Asset { title, .. } | Self::Change { title, .. } | Self::Command { title, .. } => title,
            Self::Action(draft) => &draft.title,
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn draft(id: u128, chat: Option<u128>, run: u128, body: ProposalBody) -> Proposal {
        Proposal {
            proposal_id: ProposalId::from_uuid(Uuid::from_u128(id)),
            agent_id: AgentId::from_uuid(Uuid::from_u128(1)),
            chat_id: chat.map(|chat| ChatId::from_uuid(Uuid::from_u128(chat))),
            run_id: Some(RunId::from_uuid(Uuid::from_u128(run))),
            created_at: Timestamp::UNIX_EPOCH,
            expires_at: Timestamp::UNIX_EPOCH + LIFETIME,
            replaces: Vec::new(),
            superseded_by: None,
            body,
        }
    }

    fn asset(title: &str) -> ProposalBody {
        let (description, content) = (String::new(), Some("a".to_owned()));
        ProposalBody::Asset {
            title: title.into(),
            description,
            asset_type: AssetType::default(),
            bytes: 1,
            content,
        }
    }

    fn change(action: u128, change: serde_json::Value) -> ProposalBody {
        let action_id = ActionId::from_uuid(Uuid::from_u128(action));
        ProposalBody::Change {
            action_id,
            title: "t".into(),
            change: Box::new(serde_json::from_value(change).unwrap()),
        }
    }

    fn command(action: u128, command: ActionCommand) -> ProposalBody {
        let action_id = ActionId::from_uuid(Uuid::from_u128(action));
        ProposalBody::Command { action_id, title: "t".into(), command }
    }

    #[test]
    fn a_newer_command_replaces_an_older_one_of_the_same_action() {
        use ActionCommand::{Pause, Resume, RunNow};
        let of = |chat, run, body| draft(1, chat, run, body);
        let check = |old: Proposal, new: Proposal, expected: bool| {
            assert_eq!(old.is_refined_by(&new), expected, "{old:?} {new:?}");
        };
        check(of(Some(1), 1, command(1, Pause)), of(Some(1), 2, command(1, Pause)), true);
        check(of(Some(1), 1, command(1, Pause)), of(Some(1), 2, command(1, Resume)), true);
        check(of(None, 1, command(1, Pause)), of(None, 2, command(1, RunNow)), true);
        check(of(Some(1), 1, command(1, Pause)), of(Some(1), 2, command(2, Pause)), false);
        check(of(Some(1), 1, command(1, Pause)), of(Some(2), 2, command(1, Resume)), false);
        check(of(Some(1), 1, command(1, Pause)), of(Some(1), 1, command(1, Resume)), false);
        let change = change(1, serde_json::json!({"priority": "low"}));
        check(of(Some(1), 1, change.clone()), of(Some(1), 2, command(1, Pause)), false);
        check(of(Some(1), 1, command(1, Pause)), of(Some(1), 2, change), false);
    }

    #[test]
    fn a_command_is_stored_with_its_kind() {
        let stored = serde_json::to_value(command(1, ActionCommand::RunNow)).unwrap();
        let id = ActionId::from_uuid(Uuid::from_u128(1));
        let expected =
            serde_json::json!({"kind": "command", "action_id": id, "title": "t", "command": "run_now"});
        assert_eq!(stored, expected);
        for each in ActionCommand::ALL {
            assert_eq!(serde_json::to_value(each).unwrap(), each.as_str());
        }
    }

    #[test]
    fn a_draft_of_the_same_thing_refines_the_earlier_one() {
        use serde_json::json;
        let of = |chat, run, body| draft(1, chat, run, body);
        let check = |old: Proposal, new: Proposal, expected: bool| {
            assert_eq!(old.is_refined_by(&new), expected, "{old:?} {new:?}");
        };
        check(of(Some(1), 1, asset("Oil")), of(Some(1), 2, asset(" oil ")), true);
        check(of(Some(1), 1, asset("Oil  prices")), of(Some(1), 2, asset("Oil prices")), true);
        check(of(Some(1), 1, asset("Oil")), of(Some(1), 2, asset("Gas")), false);
        check(of(Some(1), 1, asset("Oil")), of(Some(2), 2, asset("Oil")), false);
        // Two of one turn are two things, and so are those of runs without a conversation.
        check(of(Some(1), 1, asset("Oil")), of(Some(1), 1, asset("Oil")), false);
        check(of(None, 1, asset("Oil")), of(None, 2, asset("Oil")), false);
        let (priority, both) = (json!({"priority": "low"}), json!({"priority": "high", "title": "x"}));
        check(of(None, 1, change(1, priority.clone())), of(None, 2, change(1, both.clone())), true);
        check(of(None, 1, change(1, both.clone())), of(None, 2, change(1, priority.clone())), false);
        check(of(None, 1, change(1, priority.clone())), of(None, 2, change(2, both)), false);
        check(of(Some(1), 1, asset("t")), of(Some(1), 2, change(1, priority)), false);
    }

    #[test]
    fn a_draft_names_its_history() {
        let mut older = draft(1, Some(1), 1, asset("Oil"));
        for id in 2..=100 {
            let mut newer = draft(id, Some(1), id, asset("Oil"));
            newer.refines(&older);
            older = newer;
        }
        assert_eq!(older.replaces.len(), MAX_REPLACED);
        assert_eq!(older.replaces.last(), Some(&ProposalId::from_uuid(Uuid::from_u128(99))));
    }
}
