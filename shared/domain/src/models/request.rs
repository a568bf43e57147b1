//! A request to a model.
//!
//! A request begins with the parts that change least (tools, then system blocks) and ends with the conversation,
//! because providers cache by prefix. [`ModelRequest::prefix_hash`] identifies that prefix. If it changes between two
//! turns, the cache is missed and the call costs more.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::image::Image;
use super::sampling::Sampling;

/// The provider's name for a model. It is sent unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModelId(String);

impl ModelId {
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How capable a model an agent asks for. The configuration maps each tier to a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelTier {
    Fast,
    #[default]
    Standard,
    Deep,
}

impl ModelTier {
    pub const ALL: [Self; 3] = [Self::Fast, Self::Standard, Self::Deep];
}

/// Which wire format to use. OpenAI-compatible servers count as `OpenAi`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    Anthropic,
    OpenAi,
    Google,
    /// The Converse API, whichever model is behind it.
    Bedrock,
}

/// How much a model thinks before it answers. A model that cannot think ignores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    Low,
    Medium,
    High,
}

impl From<ModelTier> for Effort {
    fn from(tier: ModelTier) -> Self {
        match tier {
            ModelTier::Fast => Self::Low,
            ModelTier::Standard => Self::Medium,
            ModelTier::Deep => Self::High,
        }
    }
}

/// A tool that the provider of a model runs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ProviderTool {
    /// The model searches the web.
    WebSearch,
    /// The model runs code in a container without access to the network.
    CodeExecution,
}

impl ProviderTool {
    pub const ALL: [Self; 2] = [Self::WebSearch, Self::CodeExecution];

    /// As in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WebSearch => "web_search",
            Self::CodeExecution => "code_execution",
        }
    }
}

/// What a model is asked. Which model answers is decided for each call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// Stable blocks first. A block with `cache` ends a cached prefix. At most four such marks are sent, including the
    /// one on the last turn. Providers that cache automatically ignore them.
    pub system: Vec<SystemBlock>,
    pub tools: Vec<ToolSpec>,
    /// Tools that the provider runs, each at most once. Models that can't have them don't get them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provider_tools: Vec<ProviderTool>,
    /// How often the model may use each of these tools in this call. 0: [`MAX_USES`](super::provider_tools::MAX_USES).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_uses: u32,
    #[serde(default)]
    pub tool_choice: ToolChoice,
    pub messages: Vec<Message>,
    /// The maximum length of the reply, in tokens. Budgets depend on it.
    pub max_output_tokens: u32,
    /// Also cache the conversation up to its last message, for the next call of a tool loop or the next turn.
    #[serde(default)]
    pub cache_last_turn: bool,
    /// How many of the first messages the next turn sends again without a change. They are cached, too. `None`: there is no next
    /// turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stable_messages: Option<usize>,
    /// How much the model thinks. `None`: as its provider decides.
    #[serde(default)]
    pub effort: Option<Effort>,
    /// The provider may remove old results of tools from a long conversation.
    #[serde(default)]
    pub context_editing: bool,
    /// A JSON Schema of an object that the reply must match. Models that do not support it see only what the text asks for.
    #[serde(default)]
    pub output_schema: Option<Value>,
    /// How the model chooses among the next words. Models that do not take a parameter don't get it.
    #[serde(default, skip_serializing_if = "Sampling::is_empty")]
    pub sampling: Sampling,
}

impl ModelRequest {
    /// Whether the model must call a tool. Providers refuse to combine that with thinking.
    #[must_use]
    pub const fn forces_tool(&self) -> bool {
        matches!(self.tool_choice, ToolChoice::Any | ToolChoice::Tool(_))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemBlock {
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheTtl>,
}

impl SystemBlock {
    /// A block that is the same in every call of an agent.
    pub fn cached(text: impl Into<String>, ttl: CacheTtl) -> Self {
        Self { text: text.into(), cache: Some(ttl) }
    }

    /// A block that changes from call to call.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), cache: None }
    }
}

/// How long to ask a provider to keep a prefix. Longer times must come before shorter ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub enum CacheTtl {
    #[serde(rename = "5m")]
    FiveMinutes,
    #[serde(rename = "1h")]
    OneHour,
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// 1 to 64 of `A-Z a-z 0-9 _ -`.
    pub name: String,
    pub description: String,
    /// JSON Schema of an object.
    pub input_schema: Value,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    #[default]
    Auto,
    /// Some tool must be called.
    Any,
    /// This tool must be called.
    Tool(String),
    None,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub content: Vec<Block>,
}

impl Message {
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, content: vec![Block::Text { text: text.into() }] }
    }

    pub fn assistant(text: impl Into<String>) -> Self {
        Self { role: Role::Assistant, content: vec![Block::Text { text: text.into() }] }
    }

    /// The message's text blocks, joined.
    #[must_use]
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Block::as_text).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
}

/// A part of a message. It is stored with the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    Text {
        text: String,
    },
    /// Only in messages of people.
    Image(Image),
    ToolUse {
        id: String,
        name: String,
        input: Value,
    },
    /// The result of the `ToolUse` with the same id in the previous message.
    ToolResult {
        tool_use_id: String,
        content: String,
        #[serde(default)]
        is_error: bool,
    },
    /// A provider-specific block, for example signed thinking. It is sent back unchanged to that provider and left out
    /// for others.
    Native {
        provider: Provider,
        block: Value,
    },
}

impl Block {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::Image(_) | Self::ToolUse { .. } | Self::ToolResult { .. } | Self::Native { .. } => None,
        }
    }
}

impl ModelRequest {
    /// Identifies the part that should stay the same from turn to turn: the model, the tools, and the system blocks up
    /// to the last cached one. The result is 64 hexadecimal digits of SHA-256.
    #[must_use]
    pub fn prefix_hash(&self, model: &ModelId) -> String {
        let cached = self.system.iter().rposition(|block| block.cache.is_some()).map_or(0, |last| last + 1);
        let prefix = serde_json::to_vec(&(model, &self.tools, &self.provider_tools, &self.system[..cached]))
            .expect("strings and JSON values always serialize");
        crate::hex(&Sha256::digest(prefix))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    pub(crate) fn request() -> ModelRequest {
        ModelRequest {
            system: vec![SystemBlock::cached("rules", CacheTtl::OneHour), SystemBlock::plain("now: noon")],
            tools: vec![ToolSpec {
                name: "query_actions".into(),
                description: "Lists actions.".into(),
                input_schema: json!({"type": "object", "properties": {}}),
            }],
            tool_choice: ToolChoice::Auto,
            messages: vec![
                Message::user("What is due?"),
                Message {
                    role: Role::Assistant,
                    content: vec![
                        Block::Native {
                            provider: Provider::Anthropic,
                            block: json!({"type": "thinking", "thinking": "..", "signature": "Eq"}),
                        },
                        Block::text("Let me look."),
                        Block::ToolUse {
                            id: "toolu_1".into(),
                            name: "query_actions".into(),
                            input: json!({}),
                        },
                    ],
                },
                Message {
                    role: Role::User,
                    content: vec![Block::ToolResult {
                        tool_use_id: "toolu_1".into(),
                        content: "[]".into(),
                        is_error: false,
                    }],
                },
            ],
            max_output_tokens: 1_000,
            cache_last_turn: true,
            ..ModelRequest::default()
        }
    }

    #[test]
    fn a_request_is_stored_and_read_back_whole() {
        let json = serde_json::to_value(request()).unwrap();
        assert_eq!(json["messages"][1]["content"][0]["provider"], "anthropic");
        assert_eq!(json["messages"][2]["content"][0]["type"], "tool_result");
        assert_eq!(serde_json::from_value::<ModelRequest>(json).unwrap(), request());
        for choice in [ToolChoice::Auto, ToolChoice::Any, ToolChoice::None, ToolChoice::Tool("a".into())] {
            let json = serde_json::to_string(&choice).unwrap();
            assert_eq!(serde_json::from_str::<ToolChoice>(&json).unwrap(), choice);
        }
    }

    #[test]
    fn the_prefix_is_what_should_not_change() {
        let model = ModelId::new("claude-sonnet-5-5");
        let base = request().prefix_hash(&model);
        assert_eq!(base.len(), 64);
        let check = |same: bool, what: &str, change: fn(&mut ModelRequest)| {
            let mut changed = request();
            change(&mut changed);
            assert_eq!(changed.prefix_hash(&model) == base, same, "{what}");
        };
        check(true, "the conversation", |r| r.messages.clear());
        check(true, "what follows the last cached block", |r| r.system[1].text = "now: one".into());
        check(true, "the length of the reply", |r| r.max_output_tokens = 1);
        assert_ne!(request().prefix_hash(&ModelId::new("other")), base);
        check(false, "a cached block", |r| r.system[0].text.push('!'));
        check(false, "how long it is cached", |r| r.system[0].cache = Some(CacheTtl::FiveMinutes));
        check(false, "a tool's schema", |r| r.tools[0].input_schema = json!({"type": "object"}));
        check(false, "the order of tools", |r| {
            r.tools.insert(0, ToolSpec { name: "a".into(), ..r.tools[0].clone() });
        });
    }
}
