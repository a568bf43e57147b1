//! What a model answers, piece by piece.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::request::{Block, ModelId};
use super::usage::Usage;

/// One piece of a reply. A stream is `Started`, any number of the others, and exactly one `Finished`; or it ends early with
/// an error.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// The provider has begun. `model` is the one that answers, as it names itself.
    Started {
        model: ModelId,
    },
    TextDelta(String),
    /// A whole tool call. No arguments at all are an empty object.
    ToolUse {
        id: String,
        name: String,
        input: Value,
    },
    /// A tool call whose arguments are not a JSON object, usually because the reply was cut off. It is not among the
    /// assistant's blocks: no result may be sent back for it.
    InvalidToolInput {
        id: String,
        name: String,
        raw: String,
        reason: String,
    },
    /// What has been used so far in this call: replaces what was said before, never adds to it.
    Usage(Usage),
    Finished {
        stop: StopReason,
        assistant_blocks: Vec<Block>,
        usage: Usage,
    },
}

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    /// The reply reached `max_output_tokens` and is cut off.
    MaxTokens,
    /// The model waits for the results of its tool calls.
    ToolUse,
    StopSequence,
    /// The model declined.
    Refusal,
    /// The conversation and the reply fill the model's context.
    ContextWindow,
    /// The provider cut the reply off.
    ContentFilter,
    /// The provider paused a long turn; sending the reply back goes on with it.
    Pause,
    /// A reason that is not known here.
    Other,
}

impl StopReason {
    pub const ALL: [Self; 9] = [
        Self::EndTurn,
        Self::MaxTokens,
        Self::ToolUse,
        Self::StopSequence,
        Self::Refusal,
        Self::ContextWindow,
        Self::ContentFilter,
        Self::Pause,
        Self::Other,
    ];

    /// Whether the reply is all that the model meant to say.
    #[must_use]
    pub const fn is_complete(self) -> bool {
        matches!(self, Self::EndTurn | Self::ToolUse | Self::StopSequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_reasons_round_trip() {
        let texts: Vec<String> = StopReason::ALL.iter().map(|s| serde_json::to_string(s).unwrap()).collect();
        assert_eq!(
            texts.join(" "),
            r#""end_turn" "max_tokens" "tool_use" "stop_sequence" "refusal" "context_window" "content_filter" "pause" "other""#
        );
        for (text, stop) in texts.iter().zip(StopReason::ALL) {
            assert_eq!(serde_json::from_str::<StopReason>(text).unwrap(), stop);
        }
    }
}
