//! Parts of the JSON Schemas of tools.

use serde_json::{Value, json};

use super::MAX_LIMIT;

pub(super) fn object(properties: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

pub(super) fn text(description: &str, max: usize) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": max, "description": description})
}

pub(super) fn choice(choices: &[&str], description: &str) -> Value {
    json!({"type": "string", "enum": choices, "description": description})
}

pub(super) fn asset_type(description: &str) -> Value {
    choice(&["document", "code", "prompt", "email"], description)
}

/// The length of a list in the agent loop.
pub(super) fn limit() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "description": "How many; 20 if not given."})
}
