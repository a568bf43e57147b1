//! The input that creates or changes an action: as it arrives, checked, applied.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::action::{Action, AskedBudget, Budget};
use super::conditions;
use crate::actions::http_call::HttpCall;
use crate::ceilings;
use crate::ids::{ActionId, AgentId, ProposalId};
use crate::models::{ModelTier, ProviderTool};
use crate::schedule::{Schedule, ScheduleInput};
use crate::tools;
use crate::validate::{FieldErrors, present};
use crate::watch::{self, Watch};
use crate::work::{ActionState, Condition, Priority, TaskConfig, TaskConfigPatch};

/// The longest instructions, in characters.
pub const MAX_INSTRUCTIONS: usize = 20_000;

/// The longest expected output, in characters.
pub const MAX_EXPECTED_OUTPUT: usize = 5_000;

/// A new action, not yet checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NewAction {
    /// 1 to 200 characters.
    #[schema(max_length = 200, example = "Weekly market report")]
    pub title: String,
    /// At most 2,000 characters.
    #[serde(default)]
    #[schema(max_length = 2_000)]
    pub description: String,
    #[serde(default)]
    pub priority: Priority,
    pub task_config: TaskConfig,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleInput>,
    /// Names of tools, such as `generate_actions` or `web_search`. Tools that every run may call need no grant.
    #[serde(default)]
    pub grants: Vec<String>,
    /// How often a run may use each granted tool of its model's provider, 1 to 50. Default: 10.
    #[serde(default)]
    pub max_uses: BTreeMap<ProviderTool, u32>,
    #[serde(default)]
    pub model_tier: ModelTier,
    pub budget: Budget,
    /// At most 10. What a program checks of the outputs of a run.
    #[serde(default)]
    #[schema(max_items = 10)]
    pub conditions: Vec<Condition>,
    /// At most 5. What a program looks at before each scheduled run. If none of it has changed since the last run that succeeded, the
    /// run does not take place.
    #[serde(default)]
    #[schema(max_items = 5)]
    pub watches: Vec<Watch>,
    /// The request that a run sends instead of asking a model. Such an action has no `task_config`, `grants`, `conditions` or `watches`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<HttpCall>,
}

/// A checked [`NewAction`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidAction {
    new: NewAction,
    schedule: Option<Schedule>,
}

impl NewAction {
    /// # Errors
    /// Every invalid field with its limit.
    pub fn validate(mut self) -> Result<ValidAction, FieldErrors> {
        let mut errors = FieldErrors::default();
        check_title(&mut errors, &self.title);
        check_description(&mut errors, &self.description);
        let is_empty = [self.grants.is_empty(), self.conditions.is_empty(), self.watches.is_empty()];
        check_work(&mut errors, &self.task_config, self.call.as_ref(), is_empty);
        let schedule = self.schedule.take().and_then(|input| errors.nest("schedule", input.validate()));
        check_grants(&mut errors, &mut self.grants);
        check_uses(&mut errors, &self.max_uses, Some(&self.grants));
        fill_uses(&self.grants, &mut self.max_uses);
        check_budget(&mut errors, self.budget);
        conditions::check(&mut errors, &self.conditions);
        watch::check(&mut errors, &self.watches);
        errors.into_result(ValidAction { new: self, schedule })
    }
}

impl ValidAction {
    /// The action, not yet approved.
    #[must_use]
    pub fn define(self, id: ActionId, agent_id: AgentId, now: Timestamp) -> Action {
        let NewAction {
            title,
            description,
            priority,
            task_config,
            schedule: _,
            grants,
            max_uses,
            model_tier,
            budget,
            conditions,
            watches,
            call,
        } = self.new;
        Action {
            id,
            agent_id,
            title,
            description,
            priority,
            task_config,
            schedule: self.schedule,
            grants,
            max_uses,
            model_tier,
            budget,
            conditions,
            watches,
            call,
            state: ActionState::Defined,
            approval: None,
            anchor: None,
            next_due: None,
            last_due: None,
            held: None,
            preflight: None,
            preflighted: None,
            failures: None,
            same_outputs: 0,
            paused_because: None,
            paused_at: None,
            found_at: None,
            found_until: None,
            live_run: None,
            queued: 0,
            paused: false,
            version: 1,
            created_at: now,
            updated_at: now,
        }
    }
}

impl Action {
    /// Checks what people and models choose, with the limits of the input. A stored schedule was checked when it was read.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        check_title(&mut errors, &self.title);
        check_description(&mut errors, &self.description);
        let is_empty = [self.grants.is_empty(), self.conditions.is_empty(), self.watches.is_empty()];
        check_work(&mut errors, &self.task_config, self.call.as_ref(), is_empty);
        check_grants(&mut errors, &mut self.grants.clone());
        check_uses(&mut errors, &self.max_uses, Some(&self.grants));
        check_budget(&mut errors, self.budget);
        conditions::check(&mut errors, &self.conditions);
        watch::check(&mut errors, &self.watches);
        errors.into_result(())
    }
}

/// A change of an action. Fields that are left out do not change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ActionPatch {
    /// A proposed change of this action, which is accepted with this call. Other fields of the input replace the proposed
    /// ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposal_id: Option<ProposalId>,
    #[schema(max_length = 200)]
    pub title: Option<String>,
    #[schema(max_length = 2_000)]
    pub description: Option<String>,
    pub priority: Option<Priority>,
    pub task_config: Option<TaskConfigPatch>,
    /// `null` removes the schedule.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ScheduleInput>)]
    pub schedule: Option<Option<ScheduleInput>>,
    pub grants: Option<Vec<String>>,
    /// How often a run may use each granted tool of its model's provider, 1 to 50. Replaces all of them.
    pub max_uses: Option<BTreeMap<ProviderTool, u32>>,
    pub model_tier: Option<ModelTier>,
    pub budget: Option<AskedBudget>,
    /// At most 10. Replaces all conditions.
    #[schema(max_items = 10)]
    pub conditions: Option<Vec<Condition>>,
    /// At most 5. Replaces all of them.
    #[schema(max_items = 5)]
    pub watches: Option<Vec<Watch>>,
    /// Of an action with `call`: replaces all of the request. An action with a task can't become one with `call`, and not the other way
    /// round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<HttpCall>,
}

/// A checked [`ActionPatch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidPatch {
    patch: ActionPatch,
    schedule: Option<Option<Schedule>>,
}

impl ActionPatch {
    /// # Errors
    /// Every invalid field with its limit.
    pub fn validate(mut self) -> Result<ValidPatch, FieldErrors> {
        let mut errors = FieldErrors::default();
        self.title.iter().for_each(|title| check_title(&mut errors, title));
        self.description.iter().for_each(|description| check_description(&mut errors, description));
        let task = self.task_config.as_ref();
        task.and_then(|task| task.instructions.as_ref())
            .into_iter()
            .for_each(|text| check_instructions(&mut errors, text));
        task.and_then(|task| task.expected_output.as_ref())
            .into_iter()
            .for_each(|text| check_expected_output(&mut errors, text));
        let schedule = match self.schedule.take() {
            Some(Some(input)) => errors.nest("schedule", input.validate()).map(Some),
            Some(None) => Some(None),
            None => None,
        };
        self.grants.iter_mut().for_each(|grants| check_grants(&mut errors, grants));
        self.max_uses.iter().for_each(|uses| check_uses(&mut errors, uses, self.grants.as_ref()));
        self.budget.iter().for_each(|asked| check_budget(&mut errors, asked.or(Budget::MAX_PER_RUN_MICROS)));
        self.conditions.iter().for_each(|list| conditions::check(&mut errors, list));
        self.watches.iter().for_each(|list| watch::check(&mut errors, list));
        if let Some(call) = &self.call {
            errors.nest("call", call.check());
        }
        errors.into_result(ValidPatch { patch: self, schedule })
    }
}

impl ValidPatch {
    /// Refuses what has no meaning for this action: a task for an action that calls, or a call for an action with a task.
    ///
    /// # Errors
    /// Every such field.
    pub fn fits(&self, action: &Action) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        let patch = &self.patch;
        if action.call.is_none() {
            if patch.call.is_some() {
                errors
                    .add("call", "an action with a task can't become one with `call`: define another action");
            }
            return errors.into_result(());
        }
        let task = patch.task_config.as_ref();
        let is_blank = |text: Option<&String>| text.is_none_or(String::is_empty);
        if !is_blank(task.and_then(|task| task.instructions.as_ref())) {
            errors.add("task_config.instructions", NO_MEANING);
        }
        if !is_blank(task.and_then(|task| task.expected_output.as_ref())) {
            errors.add("task_config.expected_output", NO_MEANING);
        }
        let is_empty = [
            patch.grants.as_ref().is_none_or(Vec::is_empty),
            patch.conditions.as_ref().is_none_or(Vec::is_empty),
            patch.watches.as_ref().is_none_or(Vec::is_empty),
        ];
        check_only_call(&mut errors, is_empty);
        errors.into_result(())
    }

    /// Whether it changes the action.
    #[must_use]
    pub fn changes(&self, action: &Action) -> bool {
        let mut next = action.clone();
        self.apply(&mut next);
        next != *action
    }

    /// Applies the changes. Returns whether one of them ends the approval.
    pub(super) fn apply(&self, action: &mut Action) -> bool {
        let ActionPatch {
            title,
            description,
            priority,
            task_config,
            grants,
            max_uses,
            model_tier,
            budget,
            conditions,
            watches,
            call,
            schedule: _,
            proposal_id: _,
        } = self.patch.clone();
        let before = action.clone();
        set(&mut action.title, title);
        set(&mut action.description, description);
        set(&mut action.priority, priority);
        let task = task_config.unwrap_or_default();
        set(&mut action.task_config.instructions, task.instructions);
        set(&mut action.task_config.expected_output, task.expected_output);
        set(&mut action.schedule, self.schedule.clone());
        set(&mut action.grants, grants);
        set(&mut action.max_uses, max_uses);
        fill_uses(&action.grants, &mut action.max_uses);
        set(&mut action.model_tier, model_tier);
        let run_micros = action.budget.per_run_micros;
        set(&mut action.budget, budget.map(|asked| asked.or(run_micros)));
        set(&mut action.conditions, conditions);
        set(&mut action.watches, watches);
        if action.call.is_some() && call.is_some() {
            action.call = call;
        }
        before.title != action.title
            || before.description != action.description
            || before.task_config != action.task_config
            || before.schedule != action.schedule
            || before.grants != action.grants
            || before.max_uses != action.max_uses
            || before.model_tier != action.model_tier
            || before.budget != action.budget
            || before.conditions != action.conditions
            || before.watches != action.watches
            || before.call != action.call
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn check_title(errors: &mut FieldErrors, title: &str) {
    errors.length("title", title, 1, 200);
}

fn check_description(errors: &mut FieldErrors, description: &str) {
    errors.length("description", description, 0, 2_000);
}

const NO_MEANING: &str = "has no meaning with `call`: no model is asked";

/// Either a task for a model or a call.
fn check_work(errors: &mut FieldErrors, task: &TaskConfig, call: Option<&HttpCall>, is_empty: [bool; 3]) {
    let Some(call) = call else {
        check_instructions(errors, &task.instructions);
        check_expected_output(errors, &task.expected_output);
        return;
    };
    let texts = [
        ("task_config.instructions", &task.instructions),
        ("task_config.expected_output", &task.expected_output),
    ];
    for (field, _) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        errors.add(field, NO_MEANING);
    }
    errors.nest("call", call.check());
    check_only_call(errors, is_empty);
}

/// Refuses lists that only a run with a model uses. `is_empty`: whether each is empty.
fn check_only_call(errors: &mut FieldErrors, is_empty: [bool; 3]) {
    let fields = ["grants", "conditions", "watches"].into_iter().zip(is_empty);
    fields.filter(|(_, is_empty)| !*is_empty).for_each(|(field, _)| errors.add(field, NO_MEANING));
}

fn check_instructions(errors: &mut FieldErrors, text: &str) {
    errors.length("task_config.instructions", text, 1, MAX_INSTRUCTIONS);
}

fn check_expected_output(errors: &mut FieldErrors, text: &str) {
    errors.length("task_config.expected_output", text, 1, MAX_EXPECTED_OUTPUT);
}

/// How often a run may use a granted tool of its model's provider, if nobody has said it.
const USES: u32 = 10;

/// The most that anybody may say.
pub const MOST_USES: u32 = 50;

fn check_uses(errors: &mut FieldErrors, uses: &BTreeMap<ProviderTool, u32>, grants: Option<&Vec<String>>) {
    for (tool, most) in uses {
        let field = format!("max_uses.{}", tool.name());
        if !(1..=MOST_USES).contains(most) {
            errors.add(field, format!("must be 1 to {MOST_USES}, is {most}"));
        } else if grants.is_some_and(|grants| !grants.iter().any(|grant| grant == tool.name())) {
            errors.add(field, format!("{} is not among the grants", tool.name()));
        }
    }
}

/// Leaves the uses of granted tools, and adds those that nobody has said.
fn fill_uses(grants: &[String], uses: &mut BTreeMap<ProviderTool, u32>) {
    let is_granted = |tool: &ProviderTool| grants.iter().any(|grant| grant == tool.name());
    uses.retain(|tool, _| is_granted(tool));
    for tool in ProviderTool::ALL.into_iter().filter(is_granted) {
        uses.entry(tool).or_insert(USES);
    }
}

/// The names that grants may contain: tools of the platform, then those of the providers.
fn grantable() -> impl Iterator<Item = &'static str> {
    tools::grantable().chain(ProviderTool::ALL.map(ProviderTool::name))
}

/// Sorts and deduplicates, so that the same grants always give the same approval.
fn check_grants(errors: &mut FieldErrors, grants: &mut Vec<String>) {
    grants.sort();
    grants.dedup();
    if let Some(unknown) = grants.iter().find(|name| !grantable().any(|known| known == name.as_str())) {
        let name: String = unknown.chars().take(80).collect();
        let known = grantable().collect::<Vec<_>>().join(", ");
        errors.add("grants", format!("must be names of {known}, has {name:?}"));
    }
}

fn check_budget(errors: &mut FieldErrors, budget: Budget) {
    if !(1..=Budget::MAX_PER_RUN_MICROS).contains(&budget.per_run_micros) {
        errors.add(
            "budget.per_run_micros",
            format!("must be 1 to 100000000 micro-dollars, is {}", budget.per_run_micros),
        );
    }
    ceilings::check(errors, "budget.per_month_micros", budget.per_month_micros, ceilings::MAX_MICROS);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn new(change: &serde_json::Value) -> Result<ValidAction, FieldErrors> {
        let mut body = json!({
            "title": "Report", "task_config": {"instructions": "Do it", "expected_output": "A page"},
            "budget": {"per_run_micros": 1_000_000},
        });
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        serde_json::from_value::<NewAction>(body).unwrap().validate()
    }

    #[test]
    fn refusals_name_every_field_and_its_limit() {
        let long = |n: usize| "é".repeat(n);
        let cases = [
            (json!({"title": long(200), "description": long(2_000)}), ""),
            (json!({"title": " "}), "title: must not be blank (1 to 200 characters)"),
            (json!({"title": long(201)}), "title: must be 1 to 200 characters, is 201"),
            (json!({"description": long(2_001)}), "description: must be at most 2000 characters, is 2001"),
            (
                json!({"task_config": {"instructions": "", "expected_output": long(5_001)}}),
                "task_config.instructions: is required (1 to 20000 characters); \
                 task_config.expected_output: must be 1 to 5000 characters, is 5001",
            ),
            (json!({"schedule": {"every": "1s"}}), "schedule.every: must be 1m to 366d, is 1s"),
            (json!({"schedule": {}}), "schedule: must have exactly one of `at`, `every` and `cron`"),
            (
                json!({"grants": ["save_output", "send_email"]}),
                "grants: must be names of query_actions, query_assets, read_asset, generate_asset, \
                 generate_actions, save_output, ask_person, note, nothing_new, query_practice, edit_theme, apply_theme_changes, web_search, code_execution, has \"send_email\"",
            ),
            (
                json!({"budget": {"per_run_micros": 0}}),
                "budget.per_run_micros: must be 1 to 100000000 micro-dollars, is 0",
            ),
        ];
        for (change, message) in cases {
            let said = new(&change).map_or_else(|errors| errors.to_string(), |_| String::new());
            assert_eq!(said, message, "{change}");
            // A patch is checked by the same rules.
            let patch: ActionPatch = serde_json::from_value(change.clone()).unwrap();
            let said = patch.validate().map_or_else(|errors| errors.to_string(), |_| String::new());
            assert_eq!(said, message, "{change}");
        }
    }

    #[test]
    fn an_action_has_a_task_or_a_call() {
        let call = json!({"url": "https://example.com/hook", "body": {"a": 1}});
        let of = |change: serde_json::Value| {
            let none = json!({"call": call, "task_config": {"instructions": "", "expected_output": ""}});
            let mut all = none.as_object().unwrap().clone();
            all.extend(change.as_object().unwrap().clone());
            new(&json!(all))
        };
        let said = |change| of(change).map_or_else(|errors| errors.to_string(), |_| String::new());
        assert_eq!(said(json!({})), "");
        let only = "has no meaning with `call`: no model is asked";
        assert_eq!(
            said(json!({"task_config": {"instructions": "Do it", "expected_output": ""}})),
            format!("task_config.instructions: {only}")
        );
        assert_eq!(
            said(json!({
                "grants": ["generate_actions"], "conditions": [{"kind": "names_today"}],
                "watches": [{"kind": "feed", "url": "https://a.com"}],
            })),
            format!("grants: {only}; conditions: {only}; watches: {only}")
        );
        assert_eq!(said(json!({"call": {"url": ""}})), "call.url: is required");

        let id = |n| uuid::Uuid::from_u128(n);
        let define = |action: ValidAction| {
            action.define(ActionId::from_uuid(id(1)), AgentId::from_uuid(id(2)), Timestamp::UNIX_EPOCH)
        };
        let (calls, works) = (define(of(json!({})).unwrap()), define(new(&json!({})).unwrap()));
        assert_eq!((calls.check(), works.check()), (Ok(()), Ok(())));
        let fits = |action: &Action, patch: serde_json::Value| {
            let patch: ActionPatch = serde_json::from_value(patch).unwrap();
            let patch = patch.validate().unwrap();
            let fits = patch.fits(action).map_or_else(|errors| errors.to_string(), |()| String::new());
            let mut next = action.clone();
            (fits, patch.apply(&mut next))
        };
        let other = json!({"url": "https://example.com/other"});
        assert_eq!(fits(&calls, json!({"call": other})), (String::new(), true));
        assert_eq!(fits(&calls, json!({"call": call, "grants": []})), (String::new(), false));
        assert_eq!(
            fits(&calls, json!({"task_config": {"instructions": "Do it"}})).0,
            format!("task_config.instructions: {only}")
        );
        assert_eq!(fits(&calls, json!({"grants": ["generate_actions"]})).0, format!("grants: {only}"));
        let (refused, changed) = fits(&works, json!({"call": call}));
        assert!(refused.starts_with("call: an action with a task can't become"), "{refused}");
        assert!(!changed);
    }

    #[test]
    fn a_patch_distinguishes_null_from_absent() {
        let parse = |value| serde_json::from_value::<ActionPatch>(value);
        assert_eq!(parse(json!({})).unwrap().schedule, None);
        assert_eq!(parse(json!({"schedule": null})).unwrap().schedule, Some(None));
        assert!(matches!(parse(json!({"schedule": {"every": "1h"}})).unwrap().schedule, Some(Some(_))));
        assert!(parse(json!({"state": "completed"})).is_err());
    }
}
