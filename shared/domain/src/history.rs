//! The ledger of an action or an agent: who has changed what, and what the change did.
//!
//! Each change is one [`Change`], which is stored in the same transaction as the changed record. Texts are kept whole, so that a
//! change can be reverted. The limits of the fields bound the size of a change: see `the_longest_change_fits_into_an_item`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::actions::{Action, ActionPatch, ActionState};
use crate::agents::{Agent, AgentPatch, AgentStatus};
use crate::ids::{ApiKeyId, ChannelId, ProposalId};

/// A change of an action or an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// The version of the action or agent after the change.
    pub version: u64,
    /// When it was made.
    pub at: Timestamp,
    /// Who made it.
    pub by: ChangedBy,
    /// What was asked for.
    pub command: ChangeCommand,
    /// What people set, field by field. Empty if the command only changed the state.
    #[serde(default)]
    pub changes: Vec<FieldChange>,
    /// What else the change did.
    #[serde(default)]
    pub effects: Vec<Effect>,
}

/// Who made a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ChangedBy {
    /// A person who is signed in, or who uses an installation without authentication.
    Person,
    /// The holder of an API key.
    ApiKey { key_id: ApiKeyId },
    /// A model proposed the change, and a person accepted it. `key_id`: the API key that was used to accept it.
    Proposal {
        proposal_id: ProposalId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_id: Option<ApiKeyId>,
    },
    /// The reader of a message of this channel, by the link in it.
    Channel { channel_id: ChannelId },
    /// An import of an account.
    Import,
    /// The platform itself, such as when it pauses an action after equal failures.
    Platform,
}

impl ChangedBy {
    /// The same person or key, who accepts this proposal.
    #[must_use]
    pub const fn accepting(self, proposal_id: ProposalId) -> Self {
        let key_id = match self {
            Self::ApiKey { key_id } => Some(key_id),
            Self::Person | Self::Proposal { .. } | Self::Channel { .. } | Self::Import | Self::Platform => {
                None
            }
        };
        Self::Proposal { proposal_id, key_id }
    }
}

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeCommand {
    /// The action was defined.
    Define,
    /// The agent was created.
    Create,
    Change,
    Approve,
    Schedule,
    Pause,
    Resume,
    Cancel,
    Dismiss,
    Complete,
    /// The record came with an import of an account.
    Import,
}

/// A field that a change has set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldChange {
    /// Its path, such as `title` or `task_config.instructions`.
    #[schema(example = "task_config.instructions")]
    pub field: String,
    /// The value before. `null` if there was none.
    #[schema(value_type = Value)]
    pub before: Value,
    /// The value after. `null` if there is none.
    #[schema(value_type = Value)]
    pub after: Value,
}

/// What a change did besides setting fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The action was approved.
    Approved,
    /// The approval of the action ended. Nothing runs until a person approves again.
    ApprovalWithdrawn,
    /// Approvals of the agent's actions ended, because an approval binds the text of the agent.
    ApprovalsWithdrawn,
    /// The schedule is in effect: the action has a next due time.
    Scheduled,
    /// The action has no next due time any more.
    Unscheduled,
    Paused,
    /// The action or agent works again after a pause.
    Resumed,
    Archived,
    Completed,
    Dismissed,
    /// The live run was cancelled.
    RunCancelled,
    /// Runs that waited for the live run were cancelled.
    QueuedRunsCancelled,
}

impl Effect {
    /// What a change of an action did.
    #[must_use]
    pub fn of_action(before: &Action, after: &Action) -> Vec<Self> {
        let given = |action: &Action| action.approval.as_ref().map(|approval| approval.approved_at);
        let is_paused = |action: &Action| action.state == ActionState::Paused || action.paused;
        let reached = |state| before.state != state && after.state == state;
        let works = matches!(after.state, ActionState::Scheduled | ActionState::InProgress);
        let effects = [
            (given(after).is_some() && given(after) != given(before), Self::Approved),
            (before.approval.is_some() && after.approval.is_none(), Self::ApprovalWithdrawn),
            (before.next_due.is_none() && after.next_due.is_some(), Self::Scheduled),
            (before.next_due.is_some() && after.next_due.is_none(), Self::Unscheduled),
            (!is_paused(before) && is_paused(after), Self::Paused),
            (is_paused(before) && works && after.approval.is_some(), Self::Resumed),
            (reached(ActionState::Completed), Self::Completed),
            (reached(ActionState::Dismissed), Self::Dismissed),
            (before.live_run.is_some() && after.live_run != before.live_run, Self::RunCancelled),
            (after.queued < before.queued, Self::QueuedRunsCancelled),
        ];
        effects.into_iter().filter(|(is_so, _)| *is_so).map(|(_, effect)| effect).collect()
    }

    /// What a change of an agent did. `withdraws`: whether it has ended approvals of its actions.
    #[must_use]
    pub fn of_agent(before: &Agent, after: &Agent, withdraws: bool) -> Vec<Self> {
        let status = match (before.status, after.status) {
            (was, is) if was == is => None,
            (_, AgentStatus::Active) => Some(Self::Resumed),
            (_, AgentStatus::Paused) => Some(Self::Paused),
            (_, AgentStatus::Archived) => Some(Self::Archived),
        };
        withdraws.then_some(Self::ApprovalsWithdrawn).into_iter().chain(status).collect()
    }
}

/// What people set, with the paths of the fields.
type Fields = Vec<(&'static str, Value)>;

fn of_action(action: &Action) -> Fields {
    vec![
        ("title", json!(action.title)),
        ("description", json!(action.description)),
        ("priority", json!(action.priority)),
        ("task_config.instructions", json!(action.task_config.instructions)),
        ("task_config.expected_output", json!(action.task_config.expected_output)),
        ("schedule", json!(action.schedule)),
        ("grants", json!(action.grants)),
        ("max_uses", json!(action.max_uses)),
        ("model_tier", json!(action.model_tier)),
        ("budget", json!(action.budget)),
        ("conditions", json!(action.conditions)),
        ("watches", json!(action.watches)),
        ("call", json!(action.call)),
    ]
}

fn of_agent(agent: &Agent) -> Fields {
    vec![
        ("name", json!(agent.name)),
        ("goal", json!(agent.goal)),
        ("success_criteria", json!(agent.success_criteria)),
        ("timeline", json!(agent.timeline)),
        ("instructions", json!(agent.instructions)),
        ("status", json!(agent.status)),
        ("model_tier", json!(agent.model_tier)),
        ("budget", json!(agent.budget)),
        ("provider_tools", json!(agent.provider_tools)),
        ("timezone", json!(agent.timezone)),
        ("docs_project_id", json!(agent.docs_project_id)),
        ("theme_project_id", json!(agent.theme_project_id)),
    ]
}

fn differences(before: Fields, after: Fields) -> Vec<FieldChange> {
    let pairs = before.into_iter().zip(after);
    let differing = pairs.filter(|((_, before), (_, after))| before != after);
    differing
        .map(|((field, before), (_, after))| FieldChange { field: field.to_owned(), before, after })
        .collect()
}

/// The fields of a new record: those that have a value.
fn first(after: Fields) -> Vec<FieldChange> {
    let is_blank = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    let set = after.into_iter().filter(|(_, value)| !is_blank(value));
    set.map(|(field, after)| FieldChange { field: field.to_owned(), before: Value::Null, after }).collect()
}

impl FieldChange {
    /// What differs between two states of an action.
    #[must_use]
    pub fn of_action(before: &Action, after: &Action) -> Vec<Self> {
        differences(of_action(before), of_action(after))
    }

    /// What differs between two states of an agent.
    #[must_use]
    pub fn of_agent(before: &Agent, after: &Agent) -> Vec<Self> {
        differences(of_agent(before), of_agent(after))
    }
}

impl Change {
    /// The first change of an action.
    #[must_use]
    pub fn defined(action: &Action, by: ChangedBy) -> Self {
        Self {
            version: action.version,
            at: action.created_at,
            by,
            command: ChangeCommand::Define,
            changes: first(of_action(action)),
            effects: Vec::new(),
        }
    }

    /// The first change of an action that a person has approved in the same moment. `defined`: as it was before the approval.
    #[must_use]
    pub fn defined_as(defined: &Action, approved: &Action, by: ChangedBy) -> Self {
        Self { effects: Effect::of_action(defined, approved), ..Self::defined(defined, by) }
    }

    /// A change of an action, which has this version afterwards.
    #[must_use]
    pub fn of_action(
        (before, after): (&Action, &Action),
        version: u64,
        at: Timestamp,
        by: ChangedBy,
        command: ChangeCommand,
    ) -> Self {
        let changes = FieldChange::of_action(before, after);
        Self { version, at, by, command, changes, effects: Effect::of_action(before, after) }
    }

    /// The platform has paused an action, which has this version afterwards.
    #[must_use]
    pub fn paused_by_platform(version: u64, at: Timestamp) -> Self {
        let (by, command) = (ChangedBy::Platform, ChangeCommand::Pause);
        Self { version, at, by, command, changes: Vec::new(), effects: vec![Effect::Paused] }
    }

    /// The first change of an agent.
    #[must_use]
    pub fn created(agent: &Agent, by: ChangedBy) -> Self {
        Self {
            version: 1,
            at: agent.created_at,
            by,
            command: ChangeCommand::Create,
            changes: first(of_agent(agent)),
            effects: Vec::new(),
        }
    }

    /// Whether there is nothing before it that a revert could restore.
    #[must_use]
    pub fn is_first(&self) -> bool {
        matches!(self.command, ChangeCommand::Define | ChangeCommand::Create)
    }

    /// The patch of an action that sets the fields back. `None` if the change has set no field, or if there was nothing before.
    #[must_use]
    pub fn undo_of_action(&self) -> Option<ActionPatch> {
        serde_json::from_value(self.fields_before()?).ok()
    }

    /// The patch of an agent that sets the fields back. `None` if the change has set no field, or if there was nothing before.
    #[must_use]
    pub fn undo_of_agent(&self) -> Option<AgentPatch> {
        let mut fields = self.fields_before()?;
        // In a patch, the empty text removes the zone.
        if let Some(zone) = fields.get_mut("timezone").filter(|zone| zone.is_null()) {
            *zone = json!("");
        }
        serde_json::from_value(fields).ok()
    }

    fn fields_before(&self) -> Option<Value> {
        if self.changes.is_empty() || self.is_first() {
            return None;
        }
        let mut fields = Map::new();
        for FieldChange { field, before, .. } in &self.changes {
            match field.split_once('.') {
                None => fields.insert(field.clone(), before.clone()),
                Some((outer, inner)) => {
                    let outer = fields.entry(outer).or_insert_with(|| json!({}));
                    outer.as_object_mut()?.insert(inner.to_owned(), before.clone())
                }
            };
        }
        Some(Value::Object(fields))
    }

    /// What was done, in a few words: "changed schedule, task_config.instructions".
    #[must_use]
    pub fn words(&self) -> String {
        let fields: Vec<&str> = self.changes.iter().map(|change| change.field.as_str()).collect();
        let done = match self.command {
            ChangeCommand::Define => "defined",
            ChangeCommand::Create => "created",
            ChangeCommand::Change if fields.is_empty() => "accepted a proposal that changed nothing",
            ChangeCommand::Approve => "approved",
            ChangeCommand::Change | ChangeCommand::Schedule => "changed",
            ChangeCommand::Pause => "paused",
            ChangeCommand::Resume => "resumed",
            ChangeCommand::Cancel => "cancelled",
            ChangeCommand::Dismiss => "dismissed",
            ChangeCommand::Complete => "marked as done",
            ChangeCommand::Import => "imported",
        };
        match self.command {
            ChangeCommand::Change | ChangeCommand::Schedule if !fields.is_empty() => {
                format!("{done} {}", fields.join(", "))
            }
            _ => done.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::samples::{approved, defined};
    use crate::actions::{ApprovalContent, Command, conditions, http_call, transition};
    use crate::agents::{MAX_GOAL, MAX_INSTRUCTIONS, MAX_NAME, NewAgent};
    use crate::ids::AgentId;
    use crate::models::ProviderTool;
    use crate::watch;
    use crate::work::{Condition, TaskConfig};

    /// The largest item that DynamoDB accepts, in bytes.
    const LARGEST_ITEM: usize = 400 * 1024;

    fn noon() -> Timestamp {
        "2026-11-21T12:00:00Z".parse().unwrap()
    }

    fn agent() -> Agent {
        let new =
            NewAgent { name: "Watch".into(), goal: "An agent that watches".into(), ..NewAgent::default() };
        new.into_agent(AgentId::from_uuid(uuid::Uuid::nil()), noon()).unwrap()
    }

    fn changed(before: &Action, patch: &Value) -> (Action, Change) {
        let patch = serde_json::from_value::<ActionPatch>(patch.clone()).unwrap().validate().unwrap();
        let after = transition(before, Command::Patch { patch: &patch }, noon()).unwrap();
        let change = Change {
            version: after.version,
            at: noon(),
            by: ChangedBy::Person,
            command: ChangeCommand::Change,
            changes: FieldChange::of_action(before, &after),
            effects: Effect::of_action(before, &after),
        };
        (after, change)
    }

    #[test]
    fn an_undone_change_gives_back_every_field_of_an_action() {
        let before = approved(&json!({"cron": "0 9 * * 1", "timezone": "Europe/Berlin"}));
        let patch = json!({
            "title": "Other", "description": "More", "priority": "high",
            "task_config": {"instructions": "Else", "expected_output": "Two pages"},
            "schedule": null, "grants": ["web_search"], "model_tier": "deep",
            "budget": {"per_run_micros": 5, "per_month_micros": 50},
            "conditions": [{"kind": "min_words", "words": 5}],
            "watches": [{"kind": "feed", "url": "https://example.com/feed"}],
        });
        let (after, change) = changed(&before, &patch);
        let fields: Vec<&str> = change.changes.iter().map(|change| change.field.as_str()).collect();
        let all = of_action(&before).into_iter().map(|(field, _)| field);
        // An action has a task or a call.
        let all: Vec<&str> = all.filter(|field| *field != "call").collect();
        assert_eq!(fields, all, "every field that people set has changed");
        assert_eq!(change.effects, [Effect::ApprovalWithdrawn, Effect::Unscheduled]);
        let undo = change.undo_of_action().unwrap().validate().unwrap();
        let undone = transition(&after, Command::Patch { patch: &undo }, noon()).unwrap();
        assert_eq!(of_action(&undone), of_action(&before));
        assert_eq!(Change::defined(&before, ChangedBy::Person).undo_of_action(), None);
    }

    #[test]
    fn an_undone_change_gives_back_a_call() {
        let mut before = approved(&json!({"every": "1h"}));
        before.task_config = TaskConfig { instructions: String::new(), expected_output: String::new() };
        before.call = serde_json::from_value(json!({"url": "https://example.com/a", "body": "x"})).unwrap();
        let (after, change) =
            changed(&before, &json!({"call": {"url": "https://example.com/b", "method": "GET"}}));
        let fields: Vec<&str> = change.changes.iter().map(|change| change.field.as_str()).collect();
        assert_eq!(fields, ["call"]);
        assert_eq!(change.effects, [Effect::ApprovalWithdrawn, Effect::Unscheduled]);
        let undo = change.undo_of_action().unwrap().validate().unwrap();
        let undone = transition(&after, Command::Patch { patch: &undo }, noon()).unwrap();
        assert_eq!(undone.call, before.call);
    }

    #[test]
    fn an_undone_change_gives_back_every_field_of_an_agent() {
        let before = agent();
        let patch = json!({
            "name": "Other", "goal": "Else", "success_criteria": "All", "timeline": "2027", "instructions": "Do",
            "status": "paused", "model_tier": "deep", "budget": {"per_run_micros": 5},
            "provider_tools": ["web_search"], "timezone": "Europe/Berlin", "docs_project_id": "default", "theme_project_id": "default",
        });
        let patch: AgentPatch = serde_json::from_value(patch).unwrap();
        let after = before.clone().patched(patch, noon()).unwrap();
        let changes = FieldChange::of_agent(&before, &after);
        assert_eq!(changes.len(), of_agent(&before).len(), "every field that people set has changed");
        let change =
            Change { changes, command: ChangeCommand::Change, ..Change::created(&before, ChangedBy::Person) };
        let undone = after.clone().patched(change.undo_of_agent().unwrap(), noon()).unwrap();
        assert_eq!(undone, before);
        assert_eq!(Effect::of_agent(&before, &after, true), [Effect::ApprovalsWithdrawn, Effect::Paused]);
        assert_eq!(Effect::of_agent(&after, &before, false), [Effect::Resumed]);
    }

    #[test]
    fn the_ledger_has_every_field_that_an_approval_binds() {
        let mut action = defined(&json!({"every": "1h"}));
        // Content leaves out what is empty.
        action.max_uses.insert(ProviderTool::WebSearch, 5);
        action.conditions.push(Condition::NamesToday);
        action.watches.push(crate::watch::Watch::Feed { url: String::new() });
        action.call = serde_json::from_value(json!({"url": ""})).unwrap();
        let content = ApprovalContent::of(&action, &crate::actions::Briefing::default());
        let content = json!(content);
        let known: Vec<&str> = of_action(&action).into_iter().map(|(field, _)| field).collect();
        for field in content.as_object().unwrap().keys() {
            let known = known.iter().any(|known| known.split('.').next() == Some(field));
            assert!(known || matches!(field.as_str(), "agent" | "tools"), "{field}");
        }
    }

    /// Texts have at most four bytes for each character, and a change has each of them twice.
    #[test]
    fn the_longest_change_fits_into_an_item() {
        const FOUR_BYTES: &str = "\u{1f56f}";
        // Names, ids, times, the schedule and all other short fields.
        const REST: usize = 16 * 1024;
        let of_texts = |lengths: &[usize]| 2 * FOUR_BYTES.len() * lengths.iter().sum::<usize>();
        let agent = of_texts(&[MAX_NAME, MAX_GOAL, MAX_GOAL, MAX_GOAL, MAX_INSTRUCTIONS]);
        assert!(agent + REST < LARGEST_ITEM, "{agent}");
        let action =
            of_texts(&[200, 2_000, crate::actions::MAX_INSTRUCTIONS, crate::actions::MAX_EXPECTED_OUTPUT]);
        let watches = 2 * watch::MAX_WATCHES * (watch::MAX_URL + 1_000);
        // Headers have at most ten names and values.
        let call = 2 * (http_call::MAX_URL + http_call::MAX_BODY + http_call::MAX_HEADERS * 1_100);
        let action = action + 2 * conditions::MAX_BYTES + watches + call;
        assert!(action + REST < LARGEST_ITEM, "{action}");
    }

    #[test]
    fn a_change_is_told_in_a_few_words() {
        let before = approved(&json!({"every": "1h"}));
        let (_, change) =
            changed(&before, &json!({"title": "Other", "task_config": {"instructions": "Else"}}));
        assert_eq!(change.words(), "changed title, task_config.instructions");
        let change = Change { command: ChangeCommand::Pause, changes: vec![], ..change };
        assert_eq!(change.words(), "paused");
    }
}
