//! The input that defines an action: all fields, or a proposal with the fields that differ from it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::action::{AskedBudget, Budget};
use super::input::NewAction;
use crate::actions::http_call::HttpCall;
use crate::agents::Agent;
use crate::ids::ProposalId;
use crate::models::{ModelTier, ProviderTool};
use crate::schedule::ScheduleInput;
use crate::text::wording::refusal;
use crate::validate::FieldErrors;
use crate::validate::present;
use crate::watch::Watch;
use crate::work::{ActionDraft, Condition, Priority, TaskConfig, TaskConfigPatch};

/// The definition of an action by a person.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(example = json!({
    "title": "Weekly market report",
    "description": "What changed at three competitors",
    "task_config": {
        "instructions": "Compare this week's prices with last week's.",
        "expected_output": "One page that names every change",
    },
    "schedule": {"cron": "0 9 * * MON", "timezone": "Europe/Berlin"},
}))]
pub struct DefineAction {
    /// A proposal of this agent. Other fields of the input replace the proposed ones.
    pub proposal_id: Option<ProposalId>,
    /// 1 to 200 characters. Required without a proposal, like `task_config`, which an action with `call` has not.
    #[schema(max_length = 200)]
    pub title: Option<String>,
    #[schema(max_length = 2_000)]
    pub description: Option<String>,
    pub priority: Option<Priority>,
    pub task_config: Option<TaskConfigPatch>,
    /// `null` omits a proposed schedule.
    #[serde(deserialize_with = "present")]
    #[schema(value_type = Option<ScheduleInput>)]
    pub schedule: Option<Option<ScheduleInput>>,
    /// Names of tools, such as `generate_actions`. Tools that every run may call need no grant.
    pub grants: Option<Vec<String>>,
    /// How often a run may use each granted tool of its model's provider, 1 to 50. Default: 10.
    pub max_uses: Option<BTreeMap<ProviderTool, u32>>,
    /// Default: the agent's.
    pub model_tier: Option<ModelTier>,
    /// The ceilings of costs.
    pub budget: Option<AskedBudget>,
    /// At most 10. What a program checks of the outputs of a run.
    #[schema(max_items = 10)]
    pub conditions: Option<Vec<Condition>>,
    /// At most 5. What a program looks at before each scheduled run. If none of it has changed since the last run that succeeded, the
    /// run does not take place.
    #[schema(max_items = 5)]
    pub watches: Option<Vec<Watch>>,
    /// The request that a run sends instead of asking a model. Such an action has no `task_config`, `grants`, `conditions` or `watches`.
    pub call: Option<HttpCall>,
}

impl DefineAction {
    /// The complete definition, not yet checked: the requested fields, then the proposed ones, then those of the agent.
    /// `run_micros` is the ceiling of a run if neither the input nor the agent has one.
    ///
    /// # Errors
    /// If the proposed schedule can't be read and the input has no other.
    pub fn complete(
        self,
        proposed: Option<ActionDraft>,
        agent: &Agent,
        run_micros: i64,
    ) -> Result<NewAction, FieldErrors> {
        let draft = proposed.unwrap_or_else(|| ActionDraft {
            title: String::new(),
            description: String::new(),
            priority: Priority::default(),
            task_config: TaskConfig { instructions: String::new(), expected_output: String::new() },
            schedule: None,
            conditions: Vec::new(),
        });
        let schedule = match (self.schedule, draft.schedule) {
            (Some(asked), _) => asked,
            (None, None) => None,
            (None, Some(proposed)) => Some(serde_path_to_error::deserialize(&proposed).map_err(|error| {
                let path = error.path().to_string();
                let path = if path == "." { "schedule".to_owned() } else { format!("schedule.{path}") };
                refusal("schedule", &path, &error.inner().to_string())
            })?),
        };
        let task = self.task_config.unwrap_or_default();
        let run_micros = agent.budget.per_run_micros.unwrap_or(run_micros).min(Budget::MAX_PER_RUN_MICROS);
        Ok(NewAction {
            title: self.title.unwrap_or(draft.title),
            description: self.description.unwrap_or(draft.description),
            priority: self.priority.unwrap_or(draft.priority),
            task_config: TaskConfig {
                instructions: task.instructions.unwrap_or(draft.task_config.instructions),
                expected_output: task.expected_output.unwrap_or(draft.task_config.expected_output),
            },
            schedule,
            grants: self.grants.unwrap_or_default(),
            max_uses: self.max_uses.unwrap_or_default(),
            model_tier: self.model_tier.unwrap_or(agent.model_tier),
            budget: self.budget.unwrap_or_default().or(run_micros),
            conditions: self.conditions.unwrap_or(draft.conditions),
            watches: self.watches.unwrap_or_default(),
            call: self.call,
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::agents::NewAgent;
    use crate::ids::AgentId;

    fn agent(budget: Option<i64>) -> Agent {
        let new = json!({
            "name": "Watch", "goal": "A research agent that watches", "model_tier": "fast",
            "budget": {"per_run_micros": budget},
        });
        let new: NewAgent = serde_json::from_value(new).unwrap();
        new.into_agent(AgentId::from_uuid(uuid::Uuid::nil()), Timestamp::UNIX_EPOCH).unwrap()
    }

    fn draft() -> Value {
        json!({
            "title": "Report", "description": "Prices", "priority": "high",
            "task_config": {"instructions": "Compare", "expected_output": "A page"},
            "schedule": {"every": "1h"},
        })
    }

    #[test]
    fn requested_fields_replace_the_proposed_ones() {
        let proposed = json!({
            "title": "Report", "description": "Prices", "priority": "high",
            "task_config": {"instructions": "Compare", "expected_output": "A page"},
            "schedule": {"every": "1h"}, "grants": [], "model_tier": "fast",
            "budget": {"per_run_micros": 5_000},
        });
        let check = |asked: Value, changes: Value| {
            let asked: DefineAction = serde_json::from_value(asked).unwrap();
            let draft = serde_json::from_value(draft()).unwrap();
            let mut expected = proposed.clone();
            expected.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
            let complete = asked.complete(Some(draft), &agent(Some(5_000)), 70).unwrap();
            assert_eq!(complete, serde_json::from_value(expected).unwrap(), "{changes}");
        };
        check(json!({}), json!({}));
        check(json!({"title": "Other", "priority": "low"}), json!({"title": "Other", "priority": "low"}));
        check(
            json!({"task_config": {"expected_output": "A line"}}),
            json!({"task_config": {"instructions": "Compare", "expected_output": "A line"}}),
        );
        check(json!({"schedule": null}), json!({"schedule": null}));
        check(json!({"schedule": {"every": "2h"}}), json!({"schedule": {"every": "2h"}}));
        let own = json!({
            "grants": ["generate_actions"], "model_tier": "deep", "budget": {"per_run_micros": 7},
        });
        check(own.clone(), own);
        // Each ceiling has its own default.
        check(
            json!({"budget": {"per_month_micros": 9}}),
            json!({"budget": {"per_run_micros": 5_000, "per_month_micros": 9}}),
        );
        check(json!({"budget": {}}), json!({}));
    }

    #[test]
    fn without_a_proposal_all_fields_are_required() {
        let complete = DefineAction::default().complete(None, &agent(None), 70).unwrap();
        assert_eq!(complete.budget, Budget { per_run_micros: 70, per_month_micros: None });
        assert_eq!(
            complete.validate().unwrap_err().to_string(),
            "title: is required (1 to 200 characters); \
             task_config.instructions: is required (1 to 20000 characters); \
             task_config.expected_output: is required (1 to 5000 characters)"
        );
        for (of_agent, run_micros) in [(Some(1_000_000_000), 70), (None, 1_000_000_000)] {
            let rich = DefineAction::default().complete(None, &agent(of_agent), run_micros).unwrap();
            assert_eq!(rich.budget.per_run_micros, Budget::MAX_PER_RUN_MICROS);
        }
    }

    #[test]
    fn an_invalid_proposed_schedule_is_refused_unless_another_is_given() {
        let mut proposed = draft();
        proposed["schedule"] = json!({"weekly": "Monday"});
        let proposed: ActionDraft = serde_json::from_value(proposed).unwrap();
        let refused = DefineAction::default().complete(Some(proposed.clone()), &agent(None), 70).unwrap_err();
        assert!(refused.to_string().contains("schedule.weekly: is not a field here"), "{refused}");
        let asked: DefineAction = serde_json::from_value(json!({"schedule": {"every": "1h"}})).unwrap();
        assert!(asked.complete(Some(proposed), &agent(None), 70).is_ok());
    }
}
