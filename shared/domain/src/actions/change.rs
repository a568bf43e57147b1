//! How a change that a model proposes is checked and applied.

use super::action::Action;
use super::input::ActionPatch;
use crate::validate::FieldErrors;
use crate::work::{ActionChange, TaskConfigPatch};

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

    use super::super::samples::defined;
    use super::*;

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
