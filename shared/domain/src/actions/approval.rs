//! What an approval is bound to.

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Action;

/// A tool that an action may call, as far as an approval binds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolSpecForHash {
    pub name: String,
    /// The JSON Schema of its input.
    pub schema: Value,
}

/// The hash of all that a person approves: task, schedule, grants, the granted tools with their schemas (in any order),
/// model tier and budget. 64 lower-case hexadecimal digits of SHA-256 over canonical JSON.
#[must_use]
pub fn approval_hash(action: &Action, tools: &[ToolSpecForHash]) -> String {
    let mut tools: Vec<&ToolSpecForHash> = tools.iter().collect();
    tools.sort_by_cached_key(|tool| (tool.name.clone(), canonical(&tool.schema)));
    let content = json!({
        "format": "lamplighter-approval-1",
        "task_config": action.task_config,
        "schedule": action.schedule,
        "grants": action.grants,
        "tools": tools,
        "model_tier": action.model_tier,
        "budget": action.budget,
    });
    crate::hex(&Sha256::digest(canonical(&content)))
}

impl Action {
    /// Whether what would run, with its tools as they are now, is what was approved. If not it has drifted, and must not run.
    #[must_use]
    pub fn is_approved(&self, tools: &[ToolSpecForHash]) -> bool {
        self.approval.as_ref().is_some_and(|approval| approval.hash == approval_hash(self, tools))
    }
}

/// JSON without blanks and with sorted keys, whatever order the map keeps: one text for one value.
fn canonical(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            let fields: Vec<String> = fields
                .into_iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::samples::{approved, defined, tools};
    use super::*;

    #[test]
    fn the_hash_is_the_same_for_ever() {
        let cases = [
            (Value::Null, "ef230b7a000f6ec5fb471589e86521621442b141770860073005dbe068183cb2"),
            (
                json!({"cron": "0 9 * * MON-FRI", "timezone": "Europe/Berlin"}),
                "53cd670dfff69a8bce1709ec05461449e7fdd95a0b10e67d6a778b561a18797c",
            ),
        ];
        for (schedule, expected) in cases {
            assert_eq!(approval_hash(&defined(&schedule), &tools()), expected, "{schedule}");
        }
    }

    #[test]
    fn an_action_is_approved_with_the_tools_that_were_approved() {
        assert!(!defined(&Value::Null).is_approved(&tools()));
        assert!(approved(&Value::Null).is_approved(&tools()));
        assert!(!approved(&Value::Null).is_approved(&[]));
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

    proptest! {
        #[test]
        fn canonical_json_is_json_and_tells_values_apart(a in any_json(), b in any_json()) {
            prop_assert_eq!(serde_json::from_str::<Value>(&canonical(&a)).unwrap(), a.clone());
            prop_assert_eq!(canonical(&a) == canonical(&b), a == b);
        }

        #[test]
        fn any_change_of_what_is_bound_changes_the_hash_and_nothing_else_does(
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
            let hash = approval_hash(&action, &tools);

            let mut unbound = action.clone();
            unbound.title = other.clone();
            unbound.description = other.clone();
            unbound.version += 1;
            let [first, second] = tools.clone();
            prop_assert_eq!(approval_hash(&unbound, &[second.clone(), first.clone()]), hash.clone());

            let changes: [fn(&mut Action, &str); 7] = [
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
                prop_assert_ne!(approval_hash(&changed, &tools), hash.clone(), "change {}", n);
            }
            let renamed = ToolSpecForHash { name: format!("{text}{other}"), ..first.clone() };
            let reshaped = ToolSpecForHash { schema: other_schema, ..first.clone() };
            let others = [vec![], vec![first.clone()], vec![renamed, second.clone()], vec![reshaped, second.clone()], vec![first.clone(), second, first]];
            for tools in others {
                prop_assert_ne!(approval_hash(&action, &tools), hash.clone());
            }
        }
    }
}
