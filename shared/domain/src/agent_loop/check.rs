//! The verdict on a run's output.

use serde::Deserialize;
use serde_json::{Value, json};

/// What a check answers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Verdict {
    score: u8,
    pub meets: bool,
    #[serde(default)]
    pub missing: Vec<String>,
}

impl Verdict {
    /// The JSON Schema of a verdict.
    #[must_use]
    pub fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "score": {"type": "integer"},
                "meets": {"type": "boolean"},
                "missing": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["score", "meets", "missing"],
            "additionalProperties": false,
        })
    }

    /// Reads the first JSON object of an answer; models like to put words around it.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let start = text.find('{')?;
        serde_json::Deserializer::from_str(&text[start..]).into_iter().next()?.ok()
    }

    /// 0 to 100.
    #[must_use]
    pub fn score(&self) -> u8 {
        self.score.min(100)
    }

    #[must_use]
    pub fn missing_text(&self) -> String {
        if self.missing.is_empty() { "the check named no reason".to_owned() } else { self.missing.join("; ") }
    }
}
