//! The Anthropic Messages format, in both directions. Everything except [`Anthropic`] itself is pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use domain::models::error::classify_event;
use domain::models::prices::{self, Thinks};
use domain::models::provider_tools;
use domain::models::{
    Block, Effort, ModelError, ModelEvent, ModelId, ModelRequest, Provider, ProviderTool, Role, StopReason,
    ToolChoice, Usage, WebSource,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::cache::{self, CachePoint};
use super::call::{self, Call, Decode, Endpoint, ToolCall};
use super::{EventStream, Model};

/// The beta that edits contexts.
const CONTEXT_EDITING: &str = "context-management-2025-06-27";

/// A server that uses the Messages format.
#[derive(Debug, Clone)]
pub struct Anthropic {
    endpoint: Endpoint,
}

impl Anthropic {
    /// `endpoint` is the base URL without `/v1`.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }
}

impl Model for Anthropic {
    fn provider(&self) -> Provider {
        Provider::Anthropic
    }

    fn list(&self) -> Option<BoxFuture<'static, Result<(), ModelError>>> {
        Some(self.endpoint.clone().list("/v1/models", Provider::Anthropic).boxed())
    }

    fn stream(&self, model: &ModelId, request: &ModelRequest) -> EventStream {
        let beta = edits_context(request).then_some(("anthropic-beta", CONTEXT_EDITING));
        let encoded =
            encode(model, request).map(|body| Call { path: "/v1/messages".into(), header: beta, body });
        call::stream(self.endpoint.clone(), Provider::Anthropic, encoded, Decoder::default())
    }
}

/// The body of a streaming `POST /v1/messages`.
///
/// # Errors
/// [`ModelError::Unsendable`] if the API would refuse the structure of the conversation.
pub fn encode(model: &ModelId, request: &ModelRequest) -> Result<Value, ModelError> {
    let mut turns = call::turns(request, Provider::Anthropic)?;
    drop_unanswered(&mut turns);
    let mut messages: Vec<Value> = turns
        .iter()
        .map(|(role, blocks)| json!({"role": role, "content": blocks.iter().map(|b| block(b)).collect::<Vec<_>>()}))
        .collect();
    let mut system: Vec<Value> = request
        .system
        .iter()
        .filter(|block| !block.text.trim().is_empty())
        .map(|block| json!({"type": "text", "text": block.text}))
        .collect();
    let of_provider = request.provider_tools.iter().map(|tool| match tool {
        // Later versions run code to filter what they find, and not every model has them.
        ProviderTool::WebSearch => {
            json!({"type": "web_search_20250305", "name": "web_search", "max_uses": provider_tools::max_uses(request)})
        }
        ProviderTool::CodeExecution => json!({"type": "code_execution_20250825", "name": "code_execution"}),
    });
    // The last tool may carry a mark.
    let mut tools: Vec<Value> = of_provider
        .chain(request.tools.iter().map(|tool| {
            json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema})
        }))
        .collect();
    for (place, ttl) in cache::marks(request, &turns, Provider::Anthropic) {
        let block = match place {
            CachePoint::Tools => tools.last_mut(),
            CachePoint::System(index) => system.get_mut(index),
            CachePoint::Turn(index) => messages.get_mut(index).and_then(last_markable),
            CachePoint::LastTurn => messages.last_mut().and_then(last_markable),
        };
        if let Some(block) = block {
            block["cache_control"] = json!({"type": "ephemeral", "ttl": ttl});
        }
    }

    let mut body = json!({
        "model": model,
        "max_tokens": request.max_output_tokens,
        "stream": true,
        "messages": messages,
    });
    if !system.is_empty() {
        body["system"] = system.into();
    }
    if !tools.is_empty() {
        body["tools"] = tools.into();
        match &request.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::Any => body["tool_choice"] = json!({"type": "any"}),
            ToolChoice::Tool(name) => body["tool_choice"] = json!({"type": "tool", "name": name}),
            ToolChoice::None => body["tool_choice"] = json!({"type": "none"}),
        }
    }
    add_options(model, request, &mut body);
    Ok(body)
}

/// Removes the provider's calls of its own tools that got no result, because their reply was cut off. The API refuses them, except
/// after the newest words of a person: there it continues the reply.
fn drop_unanswered(turns: &mut [(Role, Vec<&Block>)]) {
    let blocks = turns.iter().flat_map(|(_, blocks)| blocks.iter());
    let answered: BTreeSet<&str> = blocks
        .filter_map(|block| match block {
            Block::Native { block, .. } => block["tool_use_id"].as_str(),
            _ => None,
        })
        .collect();
    let newest = call::before_newest_words(turns);
    for (_, blocks) in &mut turns[..newest] {
        blocks.retain(|block| match block {
            Block::Native { block, .. } if block["type"] == "server_tool_use" => {
                block["id"].as_str().is_some_and(|id| answered.contains(id))
            }
            _ => true,
        });
    }
    // The API refuses a message without content.
    for (_, blocks) in &mut turns[..newest] {
        if blocks.is_empty() {
            blocks.push(cut_off());
        }
    }
}

/// Stands for a reply of which nothing is left.
fn cut_off() -> &'static Block {
    static CUT_OFF: LazyLock<Block> = LazyLock::new(|| Block::text("(This reply was cut off.)"));
    &CUT_OFF
}

/// When the provider removes old results of tools: not before a conversation is long, and then many at once, because each removal
/// ends the cached prefix. The newest results stay.
const CLEAR_AT_TOKENS: u32 = 100_000;
const CLEAR_AT_LEAST_TOKENS: u32 = 25_000;
const KEEP_RESULTS: u32 = 5;

/// Adds what a request asks for besides its messages and tools.
fn add_options(model: &ModelId, request: &ModelRequest, body: &mut Value) {
    if let Some(effort) = thinking(model, request) {
        body["thinking"] = json!({"type": "adaptive", "display": "summarized"});
        body["output_config"]["effort"] = json!(effort);
    }
    if let Some(schema) = request.output_schema.as_ref().filter(|_| prices::takes_schema(model)) {
        body["output_config"]["format"] = json!({"type": "json_schema", "schema": schema});
    }
    if edits_context(request) {
        let tokens = |value: u32| json!({"type": "input_tokens", "value": value});
        body["context_management"] = json!({"edits": [{
            "type": "clear_tool_uses_20250919", "trigger": tokens(CLEAR_AT_TOKENS),
            "clear_at_least": tokens(CLEAR_AT_LEAST_TOKENS),
            "keep": {"type": "tool_uses", "value": KEEP_RESULTS},
        }]});
    }
}

/// The effort with which the model thinks. The API refuses to combine thinking with a forced call of a tool.
pub(super) fn thinking(model: &ModelId, request: &ModelRequest) -> Option<Effort> {
    let adaptive = prices::thinks(model) == Some(Thinks::Adaptive);
    request.effort.filter(|_| adaptive && !request.forces_tool())
}

/// A conversation without tools has no results that could be removed.
fn edits_context(request: &ModelRequest) -> bool {
    request.context_editing && !request.tools.is_empty()
}

/// The last block of a message that may carry a mark. Thinking blocks may not.
fn last_markable(message: &mut Value) -> Option<&mut Value> {
    let blocks = message.get_mut("content")?.as_array_mut()?;
    blocks.iter_mut().rev().find(|block| {
        matches!(
            block.get("type").and_then(Value::as_str),
            Some("text" | "image" | "tool_use" | "tool_result")
        )
    })
}

fn block(block: &Block) -> Value {
    match block {
        Block::Text { text } => json!({"type": "text", "text": text}),
        Block::Image(image) => {
            let source = json!({"type": "base64", "media_type": image.media_type, "data": image.base64()});
            json!({"type": "image", "source": source})
        }
        Block::ToolUse { id, name, input } => {
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        }
        Block::ToolResult { tool_use_id, content, is_error } => {
            json!({"type": "tool_result", "tool_use_id": tool_use_id, "content": content, "is_error": is_error})
        }
        Block::Native { block, .. } => block.clone(),
    }
}

/// Converts the stream's data to events.
#[derive(Debug, Clone, Default)]
pub struct Decoder {
    /// By index, in the order of the reply.
    blocks: BTreeMap<u64, Partial>,
    done: Vec<(u64, Block)>,
    usage: Usage,
    stop: Option<StopReason>,
}

#[derive(Debug, Clone)]
enum Partial {
    Text(String),
    /// A call, and the input with which it began.
    Tool(ToolCall, Value),
    /// A provider-specific block, with the JSON of its input if it has one.
    Native {
        block: Value,
        json: String,
    },
}

impl Decode for Decoder {
    fn data(&mut self, data: &str) -> Result<Vec<ModelEvent>, ModelError> {
        let event: Value = serde_json::from_str(data).map_err(|_| ModelError::Malformed)?;
        let index = || event["index"].as_u64().ok_or(ModelError::Malformed);
        let mut events = Vec::new();
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                let model = event["message"]["model"].as_str().unwrap_or_default();
                events.push(ModelEvent::Started { model: ModelId::new(model) });
                self.count(&event["message"]["usage"], &mut events);
            }
            "content_block_start" => self.begin(index()?, &event["content_block"], &mut events),
            "content_block_delta" => self.grow(index()?, &event["delta"], &mut events),
            "content_block_stop" => {
                let index = index()?;
                if let Some(partial) = self.blocks.remove(&index) {
                    self.close(index, partial, true, &mut events);
                }
            }
            "message_delta" => {
                if let Some(reason) = event["delta"]["stop_reason"].as_str() {
                    self.stop = Some(stop_reason(reason));
                }
                self.count(&event["usage"], &mut events);
            }
            "message_stop" => {
                // A reply that reached its limit may leave a block open.
                for (index, partial) in std::mem::take(&mut self.blocks) {
                    self.close(index, partial, false, &mut events);
                }
                events.push(ModelEvent::Finished {
                    stop: self.stop.unwrap_or(StopReason::Other),
                    assistant_blocks: call::in_order(&mut self.done),
                    usage: self.usage,
                });
            }
            "error" => return Err(classify_event(Provider::Anthropic, &event)),
            // Pings, and future event types.
            _ => {}
        }
        Ok(events)
    }

    fn end(&mut self) -> Result<Vec<ModelEvent>, ModelError> {
        Err(ModelError::Truncated)
    }
}

impl Decoder {
    fn begin(&mut self, index: u64, block: &Value, events: &mut Vec<ModelEvent>) {
        let text = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
        let partial = match block["type"].as_str().unwrap_or_default() {
            "text" => {
                if !text("text").is_empty() {
                    events.push(ModelEvent::TextDelta(text("text")));
                }
                Partial::Text(text("text"))
            }
            "tool_use" => {
                let call = ToolCall { id: text("id"), name: text("name"), json: String::new() };
                Partial::Tool(call, block["input"].clone())
            }
            _ => {
                self.uses(block, events);
                Partial::Native { block: block.clone(), json: String::new() }
            }
        };
        self.blocks.insert(index, partial);
    }

    /// Counts a use of a tool that the provider runs. The API reports searches at the end, and containers never.
    fn uses(&mut self, block: &Value, events: &mut Vec<ModelEvent>) {
        if block["type"] == "web_search_tool_result" {
            // An error is an object.
            let found = block["content"].as_array().into_iter().flatten();
            let found = found.filter_map(|page| WebSource::new(&page["url"], &page["title"], page));
            events.push(ModelEvent::Found(found.collect()));
        }
        if block["type"] != "server_tool_use" {
            return;
        }
        match block["name"].as_str() {
            Some("web_search") => self.usage.web_searches += 1,
            // All code of a reply runs in one container.
            Some("code_execution" | "bash_code_execution" | "text_editor_code_execution") => {
                self.usage.code_runs = 1;
            }
            _ => return,
        }
        events.push(ModelEvent::Usage(self.usage));
    }

    fn grow(&mut self, index: u64, delta: &Value, events: &mut Vec<ModelEvent>) {
        let text = |key: &str| delta[key].as_str().unwrap_or_default();
        match (self.blocks.get_mut(&index), delta["type"].as_str().unwrap_or_default()) {
            (Some(Partial::Text(so_far)), "text_delta") => {
                so_far.push_str(text("text"));
                events.push(ModelEvent::TextDelta(text("text").to_owned()));
            }
            (
                Some(Partial::Tool(ToolCall { json, .. }, _) | Partial::Native { json, .. }),
                "input_json_delta",
            ) => {
                json.push_str(text("partial_json"));
            }
            (Some(Partial::Native { block, .. }), "thinking_delta") => {
                append(block, "thinking", text("thinking"));
                if !text("thinking").is_empty() {
                    events.push(ModelEvent::ThinkingDelta(text("thinking").to_owned()));
                }
            }
            (Some(Partial::Native { block, .. }), "signature_delta") => {
                append(block, "signature", text("signature"));
            }
            // Citations, and future delta types.
            _ => {}
        }
    }

    /// `whole`: the provider reported the end of the block.
    fn close(&mut self, index: u64, partial: Partial, whole: bool, events: &mut Vec<ModelEvent>) {
        let block = match partial {
            Partial::Text(text) if text.is_empty() => return,
            Partial::Text(text) => Block::Text { text },
            Partial::Tool(call, start) => match call.end(start, whole, events) {
                Some(block) => block,
                None => return,
            },
            // The API refuses thinking without a signature when it is sent back.
            Partial::Native { block, .. } if block["type"] == "thinking" && block["signature"] == "" => {
                return;
            }
            Partial::Native { .. } if !whole => return,
            Partial::Native { mut block, json } => {
                if let Ok(input) = serde_json::from_str::<Value>(&json) {
                    block["input"] = input;
                }
                Block::Native { provider: Provider::Anthropic, block }
            }
        };
        self.done.push((index, block));
    }

    /// Updates the counts that are present. They are cumulative: each value replaces the previous one.
    fn count(&mut self, usage: &Value, events: &mut Vec<ModelEvent>) {
        let before = self.usage;
        let set = |field: &mut u64, value: &Value| {
            if let Some(count) = value.as_u64() {
                *field = count;
            }
        };
        let counted = &mut self.usage;
        set(&mut counted.input_tokens, &usage["input_tokens"]);
        set(&mut counted.cache_read_tokens, &usage["cache_read_input_tokens"]);
        set(&mut counted.output_tokens, &usage["output_tokens"]);
        set(&mut counted.reasoning_tokens, &usage["output_tokens_details"]["thinking_tokens"]);
        set(&mut counted.web_searches, &usage["server_tool_use"]["web_search_requests"]);
        set(&mut counted.cache_write_5m_tokens, &usage["cache_creation"]["ephemeral_5m_input_tokens"]);
        set(&mut counted.cache_write_1h_tokens, &usage["cache_creation"]["ephemeral_1h_input_tokens"]);
        if let Some(written) = usage["cache_creation_input_tokens"].as_u64() {
            // If there is no breakdown by time to live, all writes that are not one-hour writes are five-minute writes.
            counted.cache_write_5m_tokens = written.saturating_sub(counted.cache_write_1h_tokens);
        }
        if *counted != before {
            events.push(ModelEvent::Usage(*counted));
        }
    }
}

fn append(block: &mut Value, key: &str, more: &str) {
    match &mut block[key] {
        Value::String(so_far) => so_far.push_str(more),
        other => *other = more.into(),
    }
}

fn stop_reason(text: &str) -> StopReason {
    match text {
        "end_turn" => StopReason::EndTurn,
        "max_tokens" => StopReason::MaxTokens,
        "tool_use" => StopReason::ToolUse,
        "stop_sequence" => StopReason::StopSequence,
        "refusal" => StopReason::Refusal,
        "model_context_window_exceeded" => StopReason::ContextWindow,
        "pause_turn" => StopReason::Pause,
        _ => StopReason::Other,
    }
}

#[cfg(test)]
#[path = "anthropic_tests.rs"]
mod tests;
