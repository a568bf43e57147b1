//! The calls of tools in an answer.

use serde_json::{Map, Value};

/// Parses the input of a tool call from its joined pieces. `start` is used if there were none. The error is a reason.
pub(crate) fn tool_input(json: &str, start: Value, whole: bool) -> Result<Value, String> {
    if json.trim().is_empty() {
        return match start {
            _ if !whole => Err("the call is cut off".into()),
            Value::Object(_) => Ok(start),
            _ => Ok(Value::Object(Map::new())),
        };
    }
    match serde_json::from_str(json) {
        Ok(Value::Object(input)) => Ok(Value::Object(input)),
        Ok(_) => Err("the arguments are not a JSON object".into()),
        Err(error) if error.is_eof() => Err("the arguments are cut off".into()),
        Err(error) => {
            Err(format!("the arguments are not JSON: line {}, column {}", error.line(), error.column()))
        }
    }
}
