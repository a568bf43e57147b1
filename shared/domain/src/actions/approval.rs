//! The content that an approval is bound to: everything that the model is told, and everything that its run may do and spend.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::action::{Action, Budget};
use crate::actions::http_call::HttpCall;
use crate::agents::Agent;
use crate::ids::ProjectId;
use crate::models::{ModelTier, ProviderTool};
use crate::schedule::Schedule;
use crate::text::canonical::canonical;
use crate::tools::{self, ToolDef, ToolSpecForHash};
use crate::watch::Watch;
use crate::work::{ActionState, Condition, TaskConfig};

/// What a run is told about its agent, in the system prompt, and whose documents it is told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentBrief {
    pub name: String,
    pub goal: String,
    pub success_criteria: String,
    pub timeline: String,
    pub instructions: String,
    // Left out if there is none, so that the hashes of earlier approvals stay the same.
    /// The project whose living documents a run is told and may bring up to date. Left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docs_project_id: Option<ProjectId>,
    /// The project whose theme a run reads, and may edit under a grant. Left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme_project_id: Option<ProjectId>,
}

impl AgentBrief {
    /// The tools that its projects give it, besides those of every agent.
    pub fn tools(&self) -> impl Iterator<Item = &'static ToolDef> + use<> {
        tools::of_projects(self.docs_project_id.is_some(), self.theme_project_id.is_some())
    }
}

impl From<&Agent> for AgentBrief {
    fn from(agent: &Agent) -> Self {
        Self {
            name: agent.name.clone(),
            goal: agent.goal.clone(),
            success_criteria: agent.success_criteria.clone(),
            timeline: agent.timeline.clone(),
            instructions: agent.instructions.clone(),
            docs_project_id: agent.docs_project_id,
            theme_project_id: agent.theme_project_id,
        }
    }
}

/// What an approval binds in addition to the action: the current state of its agent and of the tools that its runs have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Briefing {
    pub agent: AgentBrief,
    pub tools: Vec<ToolSpecForHash>,
    /// The agent's own time zone.
    pub timezone: Option<String>,
}

impl Briefing {
    #[must_use]
    pub fn of(action: &Action, agent: &Agent) -> Self {
        let brief = AgentBrief::from(agent);
        Self {
            tools: tools::approved(&action.grants, brief.tools()),
            agent: brief,
            timezone: agent.timezone.clone(),
        }
    }
}

// `prompts::of_run` makes what a run is told of this value.
/// Everything that an approval binds. Nothing else of an action or its agent enters the prompt of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalContent {
    pub title: String,
    pub description: String,
    pub task_config: TaskConfig,
    pub schedule: Option<Schedule>,
    /// The names of the tools that it may call without asking a person, sorted.
    pub grants: Vec<String>,
    /// How often a run may use each tool of its model's provider.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub max_uses: BTreeMap<ProviderTool, u32>,
    /// These tools with the schemas of their input at that time.
    pub tools: Vec<ToolSpecForHash>,
    pub model_tier: ModelTier,
    pub budget: Budget,
    pub agent: AgentBrief,
    // What follows is left out if there is none, so that the hashes of earlier approvals stay the same.
    /// The time zone of the agent, if the action has no schedule. With a schedule, its zone counts. Left out if the agent has none: then
    /// the zone of the account counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "Europe/Berlin")]
    pub timezone: Option<String>,
    /// What a program checks of the outputs. Left out if there are no conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// What a program looks at before each scheduled run. Left out if nothing is watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watches: Vec<Watch>,
    /// The request that a run sends instead of asking a model. Left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<HttpCall>,
}

/// An approval with the approved content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalRecord {
    pub hash: String,
    pub approved_at: Timestamp,
    pub content: ApprovalContent,
}

/// A field that an approval binds and that has changed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Difference {
    /// Its path, such as `task_config.instructions` or `agent.goal`.
    #[schema(example = "agent.goal")]
    pub field: String,
    /// The approved value.
    #[schema(value_type = Value)]
    pub approved: Value,
    /// The current value.
    #[schema(value_type = Value)]
    pub current: Value,
}

impl ApprovalContent {
    #[must_use]
    pub fn of(action: &Action, briefing: &Briefing) -> Self {
        let mut tools = briefing.tools.clone();
        tools.sort_by_cached_key(|tool| (tool.name.clone(), canonical(&tool.schema)));
        Self {
            title: action.title.clone(),
            description: action.description.clone(),
            task_config: action.task_config.clone(),
            schedule: action.schedule.clone(),
            grants: action.grants.clone(),
            max_uses: action.max_uses.clone(),
            tools,
            model_tier: action.model_tier,
            budget: action.budget,
            agent: briefing.agent.clone(),
            timezone: briefing.timezone.clone().filter(|_| action.schedule.is_none()),
            conditions: action.conditions.clone(),
            watches: action.watches.clone(),
            call: action.call.clone(),
        }
    }

    /// What an approval of the action binds now.
    #[must_use]
    pub fn now(action: &Action, agent: &Agent) -> Self {
        Self::of(action, &Briefing::of(action, agent))
    }

    /// 64 lower-case hexadecimal digits of SHA-256 over canonical JSON.
    #[must_use]
    pub fn hash(&self) -> String {
        let content = json!({"format": "lamplighter-approval-2", "content": self});
        crate::hex(&Sha256::digest(canonical(&content)))
    }

    /// The fields that differ from `approved`.
    #[must_use]
    pub fn differences(&self, approved: &Self) -> Vec<Difference> {
        let with_all_fields = |content: &Self| {
            let mut fields = json!(content);
            fields["conditions"] = json!(content.conditions);
            fields["watches"] = json!(content.watches);
            fields["call"] = json!(content.call);
            fields["timezone"] = json!(content.timezone);
            fields["agent"]["docs_project_id"] = json!(content.agent.docs_project_id);
            fields["agent"]["theme_project_id"] = json!(content.agent.theme_project_id);
            fields
        };
        let (approved, current) = (with_all_fields(approved), with_all_fields(self));
        let mut differences = Vec::new();
        for (field, now) in current.as_object().into_iter().flatten() {
            let was = &approved[field];
            match now {
                Value::Object(parts) if matches!(field.as_str(), "task_config" | "agent" | "budget") => {
                    for (part, now) in parts {
                        differ(&mut differences, format!("{field}.{part}"), &was[part], now);
                    }
                }
                _ => differ(&mut differences, field.clone(), was, now),
            }
        }
        differences
    }
}

fn differ(differences: &mut Vec<Difference>, field: String, approved: &Value, current: &Value) {
    if approved != current {
        differences.push(Difference { field, approved: approved.clone(), current: current.clone() });
    }
}

/// The hash of everything that a person approves. The order of the tools does not matter.
#[must_use]
pub fn approval_hash(action: &Action, briefing: &Briefing) -> String {
    ApprovalContent::of(action, briefing).hash()
}

impl Action {
    /// Whether the action, its agent and its tools are still what was approved. If not, the action must not run.
    #[must_use]
    pub fn is_approved(&self, briefing: &Briefing) -> bool {
        self.is_approved_as(&ApprovalContent::of(self, briefing))
    }

    /// Whether nothing can run before somebody approves it. `current`: its [`approval_hash`].
    #[must_use]
    pub fn needs_approval(&self, current: &str) -> bool {
        use ActionState::{
            Completed, Defined, Dismissed, Failed, InProgress, NeedsApproval, Paused, Scheduled,
        };
        match self.state {
            Completed | Failed | Dismissed => false,
            Defined | InProgress | NeedsApproval | Paused | Scheduled => {
                self.approval.as_ref().is_none_or(|approval| approval.hash != current)
            }
        }
    }

    /// Like [`Action::is_approved`], for the stored agent.
    #[must_use]
    pub fn is_approved_with(&self, agent: &Agent) -> bool {
        self.is_approved(&Briefing::of(self, agent))
    }

    /// Whether this content was approved. Every run checks this of the content that it is told, before it begins.
    #[must_use]
    pub fn is_approved_as(&self, content: &ApprovalContent) -> bool {
        self.approval.as_ref().is_some_and(|approval| approval.hash == content.hash())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::samples::{approved, briefing, defined};
    use super::*;

    #[test]
    fn the_hash_never_changes() {
        let cases = [
            (Value::Null, "8b87331bad201e7a0f8dba96a7267986bff96c568e555ca67ce1e74e6f2cd2e5"),
            (
                json!({"cron": "0 9 * * MON-FRI", "timezone": "Europe/Berlin"}),
                "9167086c669c2fdcdf9d72457f672d0acb873ab2c8e72a1f582736d2ea7a0a31",
            ),
        ];
        for (schedule, expected) in cases {
            assert_eq!(approval_hash(&defined(&schedule), &briefing()), expected, "{schedule}");
        }
    }

    #[test]
    fn an_action_is_approved_with_the_agent_and_tools_that_were_approved() {
        assert!(!defined(&Value::Null).is_approved(&briefing()));
        assert!(approved(&Value::Null).is_approved(&briefing()));
        let without_tools = Briefing { tools: Vec::new(), ..briefing() };
        assert!(!approved(&Value::Null).is_approved(&without_tools));
        assert!(!approved(&Value::Null).is_approved(&Briefing::default()));
    }

    #[test]
    fn differences_name_the_fields() {
        let action = defined(&json!({"every": "1h"}));
        let approved = ApprovalContent::of(&action, &briefing());
        assert_eq!(approved.differences(&approved), []);
        let mut changed = action.clone();
        changed.task_config.instructions = "Else".into();
        changed.schedule = None;
        changed.budget.per_run_micros = 7;
        let mut told = briefing();
        told.agent.goal = "Another".into();
        let current = ApprovalContent::of(&changed, &told);
        let differences = current.differences(&approved);
        let fields: Vec<&str> = differences.iter().map(|difference| difference.field.as_str()).collect();
        assert_eq!(fields, ["agent.goal", "budget.per_run_micros", "schedule", "task_config.instructions"]);
        let goal = &differences[0];
        assert_eq!((&goal.approved, &goal.current), (&json!(briefing().agent.goal), &json!("Another")));
        // What is stored can be compared later.
        let stored: ApprovalContent = serde_json::from_value(json!(approved)).unwrap();
        assert_eq!((stored.hash(), &stored), (approved.hash(), &approved));
    }

    #[test]
    fn canonical_json_sorts_keys_and_keeps_values_apart() {
        let cases = [
            (
                r#"{"b":1,"a":{"d":[2,{"y":null,"x":true}],"c":"\"é\n"}}"#,
                r#"{"a":{"c":"\"é\n","d":[2,{"x":true,"y":null}]},"b":1}"#,
            ),
            (r#"[ 1, 1.0, "1", [] , {} ]"#, r#"[1,1.0,"1",[],{}]"#),
        ];
        for (text, expected) in cases {
            assert_eq!(canonical(&serde_json::from_str(text).unwrap()), expected);
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((".{0,4}", inner), 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    #[test]
    fn a_condition_that_was_added_or_removed_is_a_difference() {
        let without = ApprovalContent::of(&defined(&Value::Null), &briefing());
        let mut with = without.clone();
        with.conditions = vec![Condition::MinWords { words: 2 }];
        assert_eq!(without.differences(&without), []);
        let (none, one) = (json!([]), json!([{"kind": "min_words", "words": 2}]));
        for (current, approved, values) in
            [(&with, &without, (&none, &one)), (&without, &with, (&one, &none))]
        {
            let [difference] = current.differences(approved).try_into().unwrap();
            assert_eq!(difference.field, "conditions");
            assert_eq!((&difference.approved, &difference.current), values);
            assert_ne!(current.hash(), approved.hash());
        }
    }

    proptest! {
        #[test]
        fn canonical_json_is_json_and_tells_values_apart(a in any_json(), b in any_json()) {
            prop_assert_eq!(serde_json::from_str::<Value>(&canonical(&a)).unwrap(), a.clone());
            prop_assert_eq!(canonical(&a) == canonical(&b), a == b);
        }

        #[test]
        fn only_changes_of_bound_fields_change_the_hash(
            text in "[a-z]{1,12}",
            other in "[a-z]{1,12}",
            schema in any_json(),
            other_schema in any_json(),
        ) {
            prop_assume!(text != other && schema != other_schema);
            let mut action = defined(&json!({"every": "1h"}));
            action.task_config.instructions = text.clone();
            action.task_config.expected_output = text.clone();
            action.grants = vec![text.clone()];
            let tools = [
                ToolSpecForHash { name: text.clone(), schema: schema.clone() },
                ToolSpecForHash { name: other.clone(), schema: schema.clone() },
            ];
            let hash_with = |action: &Action, tools: &[ToolSpecForHash]| {
                approval_hash(action, &Briefing { tools: tools.to_vec(), ..briefing() })
            };
            let hash = hash_with(&action, &tools);

            let mut unbound = action.clone();
            unbound.priority = super::super::Priority::High;
            unbound.version += 1;
            let [first, second] = tools.clone();
            prop_assert_eq!(hash_with(&unbound, &[second.clone(), first.clone()]), hash.clone());

            let changes: [fn(&mut Action, &str); 9] = [
                |action, text| action.title = text.into(),
                |action, text| action.description = text.into(),
                |action, text| action.task_config.instructions = text.into(),
                |action, text| action.task_config.expected_output = text.into(),
                |action, text| action.grants = vec![text.into()],
                |action, text| action.grants.push(text.into()),
                |action, _| action.schedule = None,
                |action, _| action.model_tier = crate::models::ModelTier::Deep,
                |action, _| action.budget.per_run_micros += 1,
            ];
            for (n, change) in changes.iter().enumerate() {
                let mut changed = action.clone();
                change(&mut changed, &other);
                prop_assert_ne!(hash_with(&changed, &tools), hash.clone(), "change {}", n);
            }
            let renamed = ToolSpecForHash { name: format!("{text}{other}"), ..first.clone() };
            let reshaped = ToolSpecForHash { schema: other_schema, ..first.clone() };
            let others = [vec![], vec![first.clone()], vec![renamed, second.clone()], vec![reshaped, second.clone()], vec![first.clone(), second, first]];
            for tools in others {
                prop_assert_ne!(hash_with(&action, &tools), hash.clone());
            }
        }
    }
}
