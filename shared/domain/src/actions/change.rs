//! How a change that a model proposes is checked, applied, and approved when a person accepts it.

use jiff::Timestamp;

use super::action::Action;
use super::approval::{Briefing, approval_hash};
use super::input::{ActionPatch, ValidPatch};
use super::state::{Command, Refused, transition};
use crate::agents::Agent;
use crate::validate::FieldErrors;
use crate::work::{ActionChange, ActionState, TaskConfigPatch};

impl ActionChange {
    /// Checks that it is a valid change of `action`.
    ///
    /// # Errors
    /// Every invalid field with its limit, or that the change would change nothing.
    pub fn check(&self, action: &Action) -> Result<(), FieldErrors> {
        let patch = ActionPatch::default().over(self.clone()).validate()?;
        patch.fits(action)?;
        if patch.changes(action) { Ok(()) } else { Err(FieldErrors::one("change", "must change something")) }
    }
}

/// A proposed change that a person accepts and approves with one decision.
#[derive(Debug, Clone, Copy)]
pub struct AcceptedChange<'a> {
    /// The change as it was proposed and shown.
    pub shown: &'a ValidPatch,
    /// The same with what the person has set with the decision.
    pub given: &'a ValidPatch,
    /// The approval hash of the action after `shown`, as the person has got it.
    pub hash: &'a str,
    pub agent: &'a Agent,
}

impl AcceptedChange<'_> {
    /// What an approval of the action would bind after `change`. `None` if the action is not approved as it is: then nobody has
    /// approved what the change leaves as it is.
    #[must_use]
    pub fn hash(action: &Action, change: &ValidPatch, agent: &Agent, now: Timestamp) -> Option<String> {
        if !action.is_approved_with(agent) || change.fits(action).is_err() {
            return None;
        }
        let changed = transition(action, Command::Patch { patch: change }, now).ok()?;
        Some(approval_hash(&changed, &Briefing::of(&changed, agent)))
    }

    /// The action after the change, approved again. A paused action stays paused.
    ///
    /// # Errors
    /// [`Refused`] if the action is not approved, if it would become something else than what was shown, or if its new schedule has no
    /// due time.
    pub fn apply(self, action: &Action, now: Timestamp) -> Result<Action, Refused> {
        let Self { shown, given, hash, agent } = self;
        let after = |change| transition(action, Command::Patch { patch: change }, now);
        let briefing = |action: &Action| Briefing::of(action, agent);
        let state = action.state;
        if action.approval.is_none() {
            return Err(Refused::NotApproved { state });
        }
        let as_shown = after(shown)?;
        let current = approval_hash(&as_shown, &briefing(&as_shown));
        if current != hash || !action.is_approved_with(agent) {
            return Err(Refused::ApprovalMismatch { state, given: hash.to_owned(), current });
        }
        let changed = after(given)?;
        // Nothing was changed that an approval binds.
        if changed.approval.is_some() {
            return Ok(changed);
        }
        let briefing = briefing(&changed);
        let hash = approval_hash(&changed, &briefing);
        let mut next = transition(&changed, Command::Approve { hash: &hash, briefing: &briefing }, now)?;
        let was_paused = state == ActionState::Paused || action.paused;
        if was_paused && next.state == ActionState::Scheduled {
            next = transition(&next, Command::Pause, now)?;
            (next.paused_at, next.paused_because) = (action.paused_at, action.paused_because.clone());
        }
        next.version = action.version.saturating_add(1);
        Ok(next)
    }
}

impl ActionPatch {
    /// The complete patch: the requested fields, and for the others the proposed ones.
    #[must_use]
    pub fn over(self, proposed: ActionChange) -> Self {
        let task_config = match (self.task_config, proposed.task_config) {
            (Some(asked), Some(proposed)) => Some(TaskConfigPatch {
                instructions: asked.instructions.or(proposed.instructions),
                expected_output: asked.expected_output.or(proposed.expected_output),
            }),
            (asked, proposed) => asked.or(proposed),
        };
        Self {
            title: self.title.or(proposed.title),
            description: self.description.or(proposed.description),
            priority: self.priority.or(proposed.priority),
            task_config,
            schedule: self.schedule.or(proposed.schedule.map(Some)),
            conditions: self.conditions.or(proposed.conditions),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::super::samples::{defined, noon};
    use super::*;
    use crate::agents::NewAgent;
    use crate::ids::AgentId;

    fn agent() -> Agent {
        let new = NewAgent { name: "Watch".into(), goal: "Watches prices".into(), ..NewAgent::default() };
        new.into_agent(AgentId::from_uuid(Uuid::from_u128(1)), noon()).unwrap()
    }

    /// Due every day at nine.
    fn approved() -> Action {
        let action = defined(&json!({"cron": "0 9 * * *"}));
        let briefing = Briefing::of(&action, &agent());
        let hash = approval_hash(&action, &briefing);
        transition(&action, Command::Approve { hash: &hash, briefing: &briefing }, noon()).unwrap()
    }

    fn patch(json: Value) -> ValidPatch {
        ActionPatch::default().over(change(json)).validate().unwrap()
    }

    /// What becomes of the action if the person accepts what was shown of `before`.
    fn accepted(before: &Action, action: &Action, (shown, given): (Value, Value)) -> Result<Action, Refused> {
        let (shown, given, agent) = (patch(shown), patch(given), agent());
        let hash = AcceptedChange::hash(before, &shown, &agent, noon()).unwrap();
        AcceptedChange { shown: &shown, given: &given, hash: &hash, agent: &agent }.apply(action, noon())
    }

    #[test]
    fn an_accepted_change_stays_approved() {
        let action = approved();
        let at_eight = || json!({"schedule": {"cron": "0 8 * * *"}});
        let after = accepted(&action, &action, (at_eight(), at_eight())).unwrap();
        assert_eq!(after.state, ActionState::Scheduled);
        assert_eq!(after.next_due.unwrap().to_string(), "2026-11-22T08:00:00Z");
        assert!(after.is_approved_with(&agent()));
        assert_eq!(after.version, action.version + 1);
        // A title that the person gives with the decision is approved with it.
        let mut titled = at_eight();
        titled["title"] = json!("At eight");
        let after = accepted(&action, &action, (at_eight(), titled)).unwrap();
        assert_eq!((after.title.as_str(), after.is_approved_with(&agent())), ("At eight", true));
        // What an approval does not bind leaves the approval as it is.
        let low = || json!({"priority": "low"});
        let after = accepted(&action, &action, (low(), low())).unwrap();
        assert_eq!((after.approval, after.next_due), (action.approval.clone(), action.next_due));
        // A paused action stays paused.
        let paused = transition(&action, Command::Pause, noon()).unwrap();
        let after = accepted(&paused, &paused, (at_eight(), at_eight())).unwrap();
        assert_eq!((after.state, after.paused_at), (ActionState::Paused, paused.paused_at));
        let resumed = transition(&after, Command::Resume, noon()).unwrap();
        assert_eq!(resumed.next_due.unwrap().to_string(), "2026-11-22T08:00:00Z");
    }

    #[test]
    fn nothing_is_approved_that_was_not_shown() {
        let action = approved();
        let at_eight = || json!({"schedule": {"cron": "0 8 * * *"}});
        let shown = patch(at_eight());
        // The action was changed, and approved again, since the change was shown.
        let other = json!({"title": "Other"});
        let changed = accepted(&action, &action, (other.clone(), other)).unwrap();
        let refused = accepted(&action, &changed, (at_eight(), at_eight())).unwrap_err();
        assert_eq!(refused.code(), "approval_mismatch");
        // Its approval was withdrawn.
        let cancelled = transition(&action, Command::Cancel, noon()).unwrap();
        let refused = accepted(&action, &cancelled, (at_eight(), at_eight())).unwrap_err();
        assert_eq!(refused.code(), "not_approved");
        // Without an approval, and with that of another agent, there is no hash to show.
        let hash = |action: &Action, agent: &Agent| AcceptedChange::hash(action, &shown, agent, noon());
        assert!(hash(&action, &agent()).is_some());
        assert_eq!(hash(&defined(&json!({"cron": "0 9 * * *"})), &agent()), None);
        assert_eq!(hash(&action, &Agent { goal: "Sells lamps".into(), ..agent() }), None);
        // The agent was edited since.
        let (hash, edited) =
            (hash(&action, &agent()).unwrap(), Agent { goal: "Sells lamps".into(), ..agent() });
        let accepted = AcceptedChange { shown: &shown, given: &shown, hash: &hash, agent: &edited };
        assert_eq!(accepted.apply(&action, noon()).unwrap_err().code(), "approval_mismatch");
        // A time that has passed is not approved.
        let passed = || json!({"schedule": {"at": "2026-11-20T08:00:00Z"}});
        let refused = super::tests::accepted(&action, &action, (passed(), passed())).unwrap_err();
        assert_eq!(refused.code(), "schedule_in_the_past");
    }

    fn change(json: Value) -> ActionChange {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_change_is_checked_against_the_action() {
        let action = defined(&json!({"every": "1h"}));
        let check = |json: Value, expected: Result<(), &str>| {
            let checked = change(json.clone()).check(&action).map_err(|errors| errors.to_string());
            assert_eq!(checked.as_ref().copied().map_err(String::as_str), expected, "{json}");
        };
        check(json!({"title": "Another"}), Ok(()));
        check(json!({"task_config": {"instructions": "Do it better"}}), Ok(()));
        check(json!({"schedule": {"every": "2h"}}), Ok(()));
        check(json!({"conditions": [{"kind": "names_today"}]}), Ok(()));
        check(
            json!({"conditions": [{"kind": "min_words", "words": 0}]}),
            Err("conditions[0].words: must be 1 to 50000, is 0"),
        );
        check(json!({"conditions": []}), Err("change: must change something"));
        check(json!({}), Err("change: must change something"));
        check(json!({"title": action.title}), Err("change: must change something"));
        check(json!({"schedule": {"every": "1h"}}), Err("change: must change something"));
        check(json!({"schedule": {"every": "1s"}}), Err("schedule.every: must be 1m to 366d, is 1s"));
        check(
            json!({"task_config": {"instructions": ""}}),
            Err("task_config.instructions: is required (1 to 20000 characters)"),
        );
    }

    #[test]
    fn a_change_cannot_widen_what_a_run_may_do() {
        for field in ["grants", "budget", "model_tier", "approval", "state"] {
            let refused = serde_json::from_value::<ActionChange>(json!({field: null})).unwrap_err();
            assert!(refused.to_string().contains("unknown field"), "{field}: {refused}");
        }
    }

    #[test]
    fn a_persons_fields_replace_the_proposed_ones() {
        let proposed = change(json!({
            "title": "Proposed", "priority": "low", "schedule": {"every": "2h"},
            "task_config": {"instructions": "Proposed", "expected_output": "Proposed"},
        }));
        let asked: ActionPatch = serde_json::from_value(json!({
            "title": "Asked", "schedule": null, "task_config": {"instructions": "Asked"}, "grants": [],
        }))
        .unwrap();
        let expected: ActionPatch = serde_json::from_value(json!({
            "title": "Asked", "priority": "low", "schedule": null, "grants": [],
            "task_config": {"instructions": "Asked", "expected_output": "Proposed"},
        }))
        .unwrap();
        assert_eq!(asked.over(proposed.clone()), expected);
        let json = serde_json::to_value(&proposed).unwrap();
        assert_eq!(change(json), proposed);
    }
}
