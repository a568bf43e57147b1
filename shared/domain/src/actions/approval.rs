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
    Sha256::digest(canonical(&content)).iter().map(|byte| format!("{byte:02x}")).collect()
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
