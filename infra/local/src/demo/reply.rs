//! What the demo model answers.

use serde_json::Value;

use super::ask::Ask;

pub const DEMO: &str = "I am Lamplighter's demo model: I follow plain rules and cost nothing. ";

/// An answer: a text, and optionally one tool call after it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DemoReply {
    pub text: String,
    pub call: Option<(String, Value)>,
}

pub fn text(text: impl Into<String>) -> DemoReply {
    DemoReply { text: text.into(), call: None }
}

/// The first message of a conversation introduces the demo.
pub fn introduced(ask: &Ask, mut answer: DemoReply) -> DemoReply {
    if ask.spoken == 0 && !answer.text.contains("demo model") {
        answer.text.insert_str(0, DEMO);
    }
    answer
}

/// The first characters of a text.
pub fn shortened(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
