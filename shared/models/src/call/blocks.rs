//! The blocks of an answer.

use domain::models::{Block, ModelEvent};
use serde_json::{Map, Value};

/// The blocks in the order of their places, which are left empty.
pub(crate) fn in_order(done: &mut Vec<(u64, Block)>) -> Vec<Block> {
    done.sort_by_key(|(place, _)| *place);
    std::mem::take(done).into_iter().map(|(_, block)| block).collect()
}

/// A call of a tool that is being received.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolCall {
    pub id: String,
    pub name: String,
    /// The pieces of the input so far.
    pub json: String,
}

impl ToolCall {
    /// Reports the call. Returns its block, if the input is valid. `start` is the input of a call without pieces. `whole`: the
    /// provider reported the end of the call.
    pub(crate) fn end(self, start: Value, whole: bool, events: &mut Vec<ModelEvent>) -> Option<Block> {
        let Self { id, name, json } = self;
        match tool_input(&json, start, whole) {
            Ok(input) => {
                events.push(ModelEvent::ToolUse { id: id.clone(), name: name.clone(), input: input.clone() });
                Some(Block::ToolUse { id, name, input })
            }
            Err(reason) => {
                events.push(ModelEvent::InvalidToolInput { id, name, raw: json, reason });
                None
            }
        }
    }
}

/// Parses the input of a tool call from its joined pieces. `start` is used if there were none. The error is a reason.
fn tool_input(json: &str, start: Value, whole: bool) -> Result<Value, String> {
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
