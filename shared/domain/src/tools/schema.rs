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

/// An argument that may be left out or null.
pub(super) fn optional(mut schema: Value) -> Value {
    schema["type"] = json!([schema["type"], "null"]);
    if let Some(choices) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        choices.push(Value::Null);
    }
    schema
}

/// A text without a limit of its own, such as an id: what it refers to is checked when it is looked up.
pub(super) fn string(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

/// A text that may be empty.
pub(super) fn up_to(description: &str, max: usize) -> Value {
    json!({"type": "string", "maxLength": max, "description": description})
}

pub(super) fn integer(description: &str, min: u64, max: Option<u64>) -> Value {
    let mut schema = json!({"type": "integer", "minimum": min, "description": description});
    if let Some(max) = max {
        schema["maximum"] = json!(max);
    }
    schema
}

/// A text whose name says what it is, such as `agent_id`.
pub(super) fn named() -> Value {
    json!({"type": "string"})
}

/// The project that a call of an MCP client is about.
pub(super) fn project() -> Value {
    optional(string("Default: as the address."))
}

/// The workflow that a call of an MCP client is about.
pub(super) fn workflow() -> Value {
    optional(string("Default: as the address."))
}

/// The arguments of an MCP tool that returns a page of a list: these properties, `limit` and `cursor`.
pub(super) fn listing(mut properties: Value, required: &[&str]) -> Value {
    properties["limit"] = optional(integer("Default 50.", 1, Some(200)));
    properties["cursor"] = optional(string("The last next_cursor."));
    object(&properties, required)
}
