//! The tool that reads the rest of a long result.

use serde::Deserialize;
use serde_json::json;

use super::Effect::Read;
use super::Surface::{AboutAction, Chat, Helper, Run, Theme};
use super::ToolDef;
use super::arguments::Arguments;
use super::schema::object;
use crate::ids::CallId;

/// The loop performs it, for every kind of run. It is offered only to a run that has a result to read on.
pub static READ_RESULT: ToolDef = ToolDef::new(
    "read_result",
    "Reads the next page of a long result. A result that was cut names its call_id and the from_char to begin at.",
    Read,
    &[Chat, AboutAction, Theme, Helper, Run],
    || {
        let properties = json!({
            "call_id": {
                "type": "string", "pattern": "^[1-9][0-9]*\\.(0|[1-9][0-9]*)$",
                "description": "As the result that was cut gave it.",
            },
            "from_char": {
                "type": "integer", "minimum": 0,
                "description": "The character to begin at, counted from 0.",
            },
        });
        object(&properties, &["call_id", "from_char"])
    },
);

/// The arguments of [`READ_RESULT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct ReadResult {
    pub call_id: CallId,
    pub from_char: usize,
}

impl Arguments for ReadResult {}
