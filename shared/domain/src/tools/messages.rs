//! The tool that reads older messages of the conversation in which it is called.

use serde::Deserialize;
use serde_json::json;

use super::Effect::Read;
use super::Surface::{AboutAction, Chat, Setup, Theme};
use super::ToolDef;
use super::arguments::{Arguments, checked_limit};
use super::schema::{limit, object, text};
use crate::ids::MessageId;
use crate::validate::FieldErrors;

pub static READ_MESSAGES: ToolDef = ToolDef::new(
    "read_messages",
    "Reads older messages of this conversation: those that a summary has replaced, or all if there is no summary. It begins with the \
     newest of them. With query, it finds the messages that contain a text. A result that is not complete names next_before or \
     next_after for the next call. A long message comes in parts: next_byte says where the next part begins.",
    Read,
    &[Setup, Chat, AboutAction, Theme],
    || {
        let id = |description: &str| json!({"type": "string", "pattern": "^msg_[0-9a-f]{32}$", "description": description});
        let properties = json!({
            "query": text("Only messages that contain this, in any case.", 200),
            "before": id("Only messages before this one."),
            "after": id("Only messages after this one, oldest first."),
            "limit": limit(),
            "message_id": id("Reads only this message."),
            "from_byte": {
                "type": "integer", "minimum": 0, "description": "With message_id: where to begin; 0 if not given.",
            },
        });
        object(&properties, &[])
    },
);

/// The arguments of [`READ_MESSAGES`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ReadMessages {
    /// A part of the text, not blank.
    #[serde(default)]
    pub query: Option<String>,
    #[serde(default)]
    pub before: Option<MessageId>,
    #[serde(default)]
    pub after: Option<MessageId>,
    /// 1 to [`super::MAX_LIMIT`].
    #[serde(default)]
    pub limit: Option<usize>,
    #[serde(default)]
    pub message_id: Option<MessageId>,
    /// The first byte of the wanted part of the message.
    #[serde(default)]
    pub from_byte: Option<usize>,
}

impl Arguments for ReadMessages {
    fn check(&mut self, errors: &mut FieldErrors) {
        self.query = self.query.take().map(|query| query.trim().to_owned()).filter(|query| !query.is_empty());
        if let Some(query) = &self.query {
            errors.length("query", query, 1, 200);
        }
        checked_limit(errors, self.limit);
    }
}
