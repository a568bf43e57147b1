//! What a model answers, as a stream of events.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::request::{Block, ModelId};
use super::sources::WebSource;
use super::usage::Usage;

/// One event of a reply. A stream is `Started`, any number of other events, and exactly one `Finished`; or it ends
/// early with an error.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// The provider has begun to answer. `model` is the name that the answering model reports.
    Started {
        model: ModelId,
    },
    TextDelta(String),
    /// A piece of what the model thinks, or of its provider's summary of that. It is no part of the reply.
    ThinkingDelta(String),
    /// A complete tool call. Missing arguments are an empty object.
    ToolUse {
        id: String,
        name: String,
        input: Value,
    },
    /// A tool call whose arguments are not a JSON object, usually because the reply was cut off. It is not one of the
    /// assistant's blocks, and no result may be sent back for it.
    InvalidToolInput {
        id: String,
        name: String,
        raw: String,
        reason: String,
    },
    /// A try of this call was lost before any of its reply arrived. It may have been billed, and it is repeated. The usage
    /// is what the provider had reported until then.
    TryLost(Usage),
    /// Pages that the provider's search of the web has found.
    Found(Vec<WebSource>),
    /// The usage of this call so far. It replaces the previous value and is never added to it.
    Usage(Usage),
    Finished {
        stop: StopReason,
        assistant_blocks: Vec<Block>,
        usage: Usage,
    },
}

/// Why a reply ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    #[default]
    EndTurn,
    /// The reply reached `max_output_tokens` and is cut off.
    MaxTokens,
    /// The model waits for the results of its tool calls.
    ToolUse,
    StopSequence,
    /// The model refused.
    Refusal,
    /// The conversation and the reply fill the model's context.
    ContextWindow,
    /// The provider cut the reply off.
    ContentFilter,
    /// The provider paused a long turn. Sending the reply back continues it.
    Pause,
    /// An unknown reason.
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

    /// Whether the reply is complete, as the model intended it.
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
