//! An agent: what a person set up by talking, and what it has delivered since.

mod needs;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ceilings;
use crate::ids::{AgentId, ProjectId};
use crate::models::{ModelTier, ProviderTool};
use crate::schedule::timezone_named;
use crate::text::names;
use crate::validate::{FieldErrors, present};
use crate::work::ActionDraft;

pub use needs::Need;

/// The longest name, in characters.
pub const MAX_NAME: usize = 200;
/// The longest goal, success criteria or timeline, in characters.
pub const MAX_GOAL: usize = 2_000;
/// The longest instructions, in characters.
pub const MAX_INSTRUCTIONS: usize = 20_000;

/// An agent as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    pub agent_id: AgentId,
    pub name: String,
    pub goal: String,
    pub success_criteria: String,
    pub timeline: String,
    pub instructions: String,
    pub status: AgentStatus,
    pub model_tier: ModelTier,
    pub budget: AgentBudget,
    /// Tools that the provider of its model runs in chats.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub provider_tools: BTreeSet<ProviderTool>,
    /// The zone in which it reads and names times: an IANA name. Absent: the zone of the account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "Europe/Berlin")]
    pub timezone: Option<String>,
    /// The project whose living documents it knows and keeps up to date. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docs_project_id: Option<ProjectId>,
    /// The project whose theme it reads and edits. Its edits are change sets, which a person applies. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme_project_id: Option<ProjectId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Whether an agent works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    #[default]
    Active,
    /// It answers in chats, but its actions do not fire.
    Paused,
    /// It is kept for reading. It takes no turns, and its actions do not fire.
    Archived,
}

/// The budget limits of an agent's runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentBudget {
    /// The most that one run or turn may cost, in micro-dollars. Default: the installation's limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000_000_000_i64, example = 250_000)]
    pub per_run_micros: Option<i64>,
    /// The most that its turns and runs may cost in a month (UTC), in micro-dollars. Default: no ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000_000_000_i64, example = 5_000_000)]
    pub per_month_micros: Option<i64>,
}

/// The statistics of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct AgentMetrics {
    pub assets: i64,
    /// How many runs of its actions have succeeded, scheduled ones and those that were started by hand, each once; and how many
    /// actions a person has completed.
    pub actions_completed: i64,
    /// How many runs of its actions have ended without an output, because there was nothing to report.
    #[serde(skip_serializing_if = "is_zero")]
    #[schema(required = false)]
    pub runs_nothing_new: i64,
    /// How many runs of its actions have failed, and how many actions failed because their time passed without a run.
    pub actions_failed: i64,
    /// The cost of its turns and runs, in micro-dollars.
    pub cost_micros: i64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// The fields of a new agent.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(example = json!({
    "name": "Market watch",
    "goal": "A research agent that reports every Monday on three competitors",
    "success_criteria": "A one-page report that names every price change",
    "timeline": "Ongoing",
    "instructions": "Write briefly. Name your sources."
}))]
pub struct NewAgent {
    /// 1 to 200 characters.
    #[serde(default)]
    #[schema(required = true, min_length = 1, max_length = 200)]
    pub name: String,
    /// 1 to 2,000 characters. Best in the form "A (type) agent that (does what)".
    #[serde(default)]
    #[schema(required = true, min_length = 1, max_length = 2_000)]
    pub goal: String,
    /// How to recognise that the goal is reached, up to 2,000 characters.
    #[serde(default)]
    #[schema(max_length = 2_000)]
    pub success_criteria: String,
    /// A date, a range or "Ongoing" (the default).
    #[serde(default)]
    #[schema(max_length = 2_000)]
    pub timeline: String,
    /// How the agent should work, up to 20,000 characters.
    #[serde(default)]
    #[schema(max_length = 20_000)]
    pub instructions: String,
    #[serde(default)]
    pub model_tier: ModelTier,
    #[serde(default)]
    pub budget: AgentBudget,
    /// Tools that the provider of its model runs in chats, such as a search of the web. Default: none. They cost extra, and what
    /// they find comes from strangers.
    #[serde(default)]
    pub provider_tools: BTreeSet<ProviderTool>,
    /// The zone in which it reads and names times: an IANA name. Default: the zone of the account.
    #[serde(default)]
    #[schema(example = "Europe/Berlin")]
    pub timezone: Option<String>,
    /// The project whose living documents it knows and keeps up to date. Default: none.
    #[serde(default)]
    pub docs_project_id: Option<ProjectId>,
    /// The project whose theme it reads and edits. Its edits are change sets, which a person applies. Default: none.
    #[serde(default)]
    pub theme_project_id: Option<ProjectId>,
}

/// A change of an agent. Omitted fields keep their values.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct AgentPatch {
    /// 1 to 200 characters.
    #[schema(min_length = 1, max_length = 200)]
    pub name: Option<String>,
    /// 1 to 2,000 characters.
    #[schema(min_length = 1, max_length = 2_000)]
    pub goal: Option<String>,
    /// Up to 2,000 characters.
    #[schema(max_length = 2_000)]
    pub success_criteria: Option<String>,
    /// A date, a range or "Ongoing", up to 2,000 characters.
    #[schema(max_length = 2_000)]
    pub timeline: Option<String>,
    /// Up to 20,000 characters.
    #[schema(max_length = 20_000)]
    pub instructions: Option<String>,
    pub status: Option<AgentStatus>,
    pub model_tier: Option<ModelTier>,
    pub budget: Option<AgentBudget>,
    /// Tools that the provider of its model runs in chats.
    pub provider_tools: Option<BTreeSet<ProviderTool>>,
    /// An IANA name. An empty text: the zone of the account.
    #[schema(example = "Europe/Berlin")]
    pub timezone: Option<String>,
    /// The project whose living documents it knows and keeps up to date. `null`: none.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<ProjectId>)]
    pub docs_project_id: Option<Option<ProjectId>>,
    /// The project whose theme it reads and edits. `null`: none.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<ProjectId>)]
    pub theme_project_id: Option<Option<ProjectId>>,
}

impl AgentPatch {
    /// Whether it has a field that approvals of the agent's actions bind.
    #[must_use]
    pub const fn has_approved_fields(&self) -> bool {
        // Each field is named, so that somebody decides about a new one.
        let Self {
            name,
            goal,
            success_criteria,
            timeline,
            instructions,
            timezone,
            docs_project_id,
            theme_project_id,
            status: _,
            model_tier: _,
            budget: _,
            provider_tools: _,
        } = self;
        name.is_some()
            || goal.is_some()
            || success_criteria.is_some()
            || timeline.is_some()
            || instructions.is_some()
            || timezone.is_some()
            || docs_project_id.is_some()
            || theme_project_id.is_some()
    }
}

impl NewAgent {
    /// # Errors
    /// Every invalid field with its limit.
    pub fn into_agent(self, agent_id: AgentId, now: Timestamp) -> Result<Agent, FieldErrors> {
        let timeline = self.timeline.trim();
        let timeline = match timeline {
            "" => "Ongoing",
            text if text.eq_ignore_ascii_case("ongoing") => "Ongoing",
            text => text,
        };
        let agent = Agent {
            agent_id,
            name: names::canonical(&self.name),
            goal: self.goal.trim().to_owned(),
            success_criteria: self.success_criteria.trim().to_owned(),
            timeline: timeline.to_owned(),
            instructions: self.instructions,
            status: AgentStatus::Active,
            model_tier: self.model_tier,
            budget: self.budget,
            provider_tools: self.provider_tools,
            timezone: self.timezone.filter(|name| !name.trim().is_empty()),
            docs_project_id: self.docs_project_id,
            theme_project_id: self.theme_project_id,
            created_at: now,
            updated_at: now,
        };
        agent.validated()
    }
}

impl Agent {
    /// The agent with `patch` applied.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn patched(self, patch: AgentPatch, now: Timestamp) -> Result<Self, FieldErrors> {
        let trimmed = |new: Option<String>, old: String| new.map_or(old, |text| text.trim().to_owned());
        Self {
            name: patch.name.map_or(self.name, |name| names::canonical(&name)),
            goal: trimmed(patch.goal, self.goal),
            success_criteria: trimmed(patch.success_criteria, self.success_criteria),
            timeline: trimmed(patch.timeline, self.timeline),
            instructions: patch.instructions.unwrap_or(self.instructions),
            status: patch.status.unwrap_or(self.status),
            model_tier: patch.model_tier.unwrap_or(self.model_tier),
            budget: patch.budget.unwrap_or(self.budget),
            provider_tools: patch.provider_tools.unwrap_or(self.provider_tools),
            timezone: patch.timezone.or(self.timezone).filter(|name| !name.trim().is_empty()),
            docs_project_id: patch.docs_project_id.unwrap_or(self.docs_project_id),
            theme_project_id: patch.theme_project_id.unwrap_or(self.theme_project_id),
            updated_at: now,
            ..self
        }
        .validated()
    }

    fn validated(mut self) -> Result<Self, FieldErrors> {
        self.check()?;
        // As the time zone database spells it.
        self.timezone = self.timezone.and_then(|name| timezone_named(&name).ok());
        Ok(self)
    }

    /// Checks the limits of every agent, wherever it comes from.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        names::check(&mut errors, &self.name, MAX_NAME);
        errors.length("goal", &self.goal, 1, MAX_GOAL);
        errors.length("success_criteria", &self.success_criteria, 0, MAX_GOAL);
        errors.length("timeline", &self.timeline, 1, MAX_GOAL);
        errors.length("instructions", &self.instructions, 0, MAX_INSTRUCTIONS);
        let AgentBudget { per_run_micros, per_month_micros } = self.budget;
        ceilings::check(&mut errors, "budget.per_run_micros", per_run_micros, ceilings::MAX_MICROS);
        ceilings::check(&mut errors, "budget.per_month_micros", per_month_micros, ceilings::MAX_MICROS);
        if let Some(Err(message)) = self.timezone.as_deref().map(timezone_named) {
            errors.add("timezone", message);
        }
        errors.into_result(())
    }
}

/// The result of the setup conversation: the fields of a new agent, as the model wrote them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentDraft {
    pub name: String,
    pub goal: String,
    pub success_criteria: String,
    pub timeline: String,
    pub instructions: String,
    /// What it does at a time that the person has named. Left out if the person has named none. `POST /setup/preview` says what it would
    /// be, and `POST /setup` creates both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_action: Option<Box<ActionDraft>>,
    /// What the work needs that nobody has connected. Left out if it needs nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(name: &str, goal: &str) -> NewAgent {
        NewAgent { name: name.into(), goal: goal.into(), ..NewAgent::default() }
    }

    fn id() -> AgentId {
        AgentId::from_uuid(uuid::Uuid::nil())
    }

    #[test]
    fn a_new_agent_is_active_and_ongoing() {
        let agent =
            new(" Watch ", "A research agent that watches").into_agent(id(), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(
            (agent.name.as_str(), agent.timeline.as_str(), agent.status),
            ("Watch", "Ongoing", AgentStatus::Active)
        );
    }

    #[test]
    fn every_broken_limit_is_named_at_once() {
        let mut input = new("  ", &"g".repeat(MAX_GOAL + 1));
        input.budget.per_run_micros = Some(0);
        let FieldErrors(errors) = input.into_agent(id(), Timestamp::UNIX_EPOCH).unwrap_err();
        let lines: Vec<String> = errors.iter().map(|e| format!("{}: {}", e.field, e.message)).collect();
        assert_eq!(
            lines,
            [
                "name: is required (1 to 200 characters)",
                "goal: must be 1 to 2000 characters, is 2001",
                "budget.per_run_micros: must be 1 to 1000000000, is 0",
            ]
        );
    }

    #[test]
    fn a_patch_changes_what_it_names() {
        let agent = new("a", "b").into_agent(id(), Timestamp::UNIX_EPOCH).unwrap();
        let now = Timestamp::from_second(5).unwrap();
        let patch = AgentPatch { status: Some(AgentStatus::Paused), ..AgentPatch::default() };
        let patched = agent.clone().patched(patch, now).unwrap();
        assert_eq!(patched, Agent { status: AgentStatus::Paused, updated_at: now, ..agent.clone() });
        assert!(
            agent.patched(AgentPatch { name: Some(String::new()), ..AgentPatch::default() }, now).is_err()
        );
    }
}
