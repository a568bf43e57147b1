//! The Converse format of Amazon Bedrock, in both directions. Everything except [`Bedrock`] itself is pure.
//!
//! The format is the same for every model that Bedrock hosts, but not every model supports every part of it. A model's cache
//! is only asked for if its price says that it sells cache writes.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use domain::models::error::classify_event;
use domain::models::prices::{EmbeddingModel, ModelPrice};
use domain::models::{
    Block, CacheTtl, ModelError, ModelEvent, ModelId, ModelRequest, Provider, StopReason, ToolChoice, Usage,
    prices,
};
use futures::FutureExt;
use serde_json::{Value, json};

use super::anthropic;
use super::cache::{self, CachePoint};
use super::call::{self, Call, Decode, Endpoint, Framing, ToolCall};
use super::embeddings::{self, Format};
use super::{Embedding, EventStream, Model};

/// What a tool result without text says. The API refuses blank text.
const NO_TEXT: &str = "(no output)";

/// The models of Amazon Bedrock in one region.
#[derive(Debug, Clone)]
pub struct Bedrock {
    endpoint: Endpoint,
}

impl Bedrock {
    /// `endpoint` is made by [`Endpoint::bedrock`].
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }
}

impl Model for Bedrock {
    fn provider(&self) -> Provider {
        Provider::Bedrock
    }

    fn embed(&self, model: &'static EmbeddingModel, texts: Vec<String>) -> Option<Embedding> {
        Some(embeddings::embed(self.endpoint.clone(), Format::Titan, model, texts).boxed())
    }

    fn stream(&self, model: &ModelId, request: &ModelRequest) -> EventStream {
        let call = path(model)
            .and_then(|path| Ok(Call { path: path.into(), header: None, body: encode(model, request)? }));
        call::stream(self.endpoint.clone(), Provider::Bedrock, call, Decoder::new(model))
    }
}

/// The path of a call. The model's id, which may be an ARN, is a percent-encoded segment of it.
///
/// # Errors
/// [`ModelError::NotFound`] if the id would change the path's meaning.
fn path(model: &ModelId) -> Result<String, ModelError> {
    if matches!(model.as_str(), "" | "." | "..") {
        return Err(ModelError::NotFound);
    }
    let mut path = String::from("/model/");
    for byte in model.as_str().bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => path.push(byte.into()),
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path.push_str("/converse-stream");
    Ok(path)
}

/// The body of a `ConverseStream` call.
///
/// # Errors
/// [`ModelError::Unsendable`] if the API would refuse the structure of the conversation.
pub fn encode(model: &ModelId, request: &ModelRequest) -> Result<Value, ModelError> {
    let turns = call::turns(request, Provider::Bedrock)?;
    // The API has no way to forbid calls, and refuses calls in the conversation if no tool is declared. Then earlier calls
    // are sent as text.
    let has_tools = !request.tools.is_empty() && request.tool_choice != ToolChoice::None;
    let encoded = |block: &&Block| if has_tools { content(block) } else { in_words(block) };
    let mut messages: Vec<Value> = turns
        .iter()
        .map(
            |(role, blocks)| json!({"role": role, "content": blocks.iter().map(encoded).collect::<Vec<_>>()}),
        )
        .collect();
    let mut system: Vec<Value> = request
        .system
        .iter()
        .filter(|block| !block.text.trim().is_empty())
        .map(|block| json!({"text": block.text}))
        .collect();
    let mut tools: Vec<Value> = Vec::new();
    if has_tools {
        tools.extend(request.tools.iter().map(|tool| {
            json!({"toolSpec": {"name": tool.name, "description": tool.description, "inputSchema": {"json": tool.input_schema}}})
        }));
    }
    // From the last mark to the first one, so that a new block moves no place that is still needed.
    let price = prices::price(model).filter(|price| price.sells_cache_writes());
    let marks = cache::marks(request, &turns, Provider::Bedrock);
    for (place, ttl) in marks.into_iter().rev().filter(|_| price.is_some()) {
        let long = ttl == CacheTtl::OneHour && price.is_some_and(ModelPrice::sells_long_cache_writes);
        let point = if long { json!({"type": "default", "ttl": ttl}) } else { json!({"type": "default"}) };
        let point = json!({"cachePoint": point});
        match place {
            CachePoint::Tools if tools.is_empty() => {}
            CachePoint::Tools => tools.push(point),
            CachePoint::System(index) => system.insert(index + 1, point),
            CachePoint::Turn(_) | CachePoint::LastTurn => {
                let message = match place {
                    CachePoint::Turn(index) => messages.get_mut(index),
                    _ => messages.last_mut(),
                };
                if let Some(blocks) = message.and_then(|message| message["content"].as_array_mut()) {
                    blocks.push(point);
                }
            }
        }
    }
    let mut body = json!({
        "messages": messages,
        "inferenceConfig": {"maxTokens": request.max_output_tokens},
    });
    if let Some(effort) = anthropic::thinking(model, request) {
        // A field of the model's own format, which Bedrock passes on.
        let thinking = json!({"type": "adaptive", "display": "summarized"});
        body["additionalModelRequestFields"] = json!({ "thinking": thinking });
        body["outputConfig"] = json!({ "effort": effort });
    }
    if !system.is_empty() {
        body["system"] = system.into();
    }
    if !tools.is_empty() {
        body["toolConfig"] = json!({"tools": tools});
        match &request.tool_choice {
            ToolChoice::Auto | ToolChoice::None => {}
            ToolChoice::Any => body["toolConfig"]["toolChoice"] = json!({"any": {}}),
            ToolChoice::Tool(name) => body["toolConfig"]["toolChoice"] = json!({"tool": {"name": name}}),
        }
    }
    Ok(body)
}

fn content(block: &Block) -> Value {
    match block {
        Block::Text { text } => json!({"text": text}),
        Block::Image(image) => {
            json!({"image": {"format": image.media_type.format(), "source": {"bytes": image.base64()}}})
        }
        Block::ToolUse { id, name, input } => {
            json!({"toolUse": {"toolUseId": id, "name": name, "input": input}})
        }
        Block::ToolResult { tool_use_id, content, is_error } => {
            let text = if content.trim().is_empty() { NO_TEXT } else { content };
            let status = if *is_error { "error" } else { "success" };
            json!({"toolResult": {"toolUseId": tool_use_id, "status": status, "content": [{"text": text}]}})
        }
        Block::Native { block, .. } => block.clone(),
    }
}

/// A block for a call without tools.
fn in_words(block: &Block) -> Value {
    match block {
        Block::ToolUse { name, input, .. } => json!({"text": format!("Called the tool {name}: {input}")}),
        Block::ToolResult { content, is_error: false, .. } => {
            json!({"text": format!("Result of the tool:\n{content}")})
        }
        Block::ToolResult { content, is_error: true, .. } => {
            json!({"text": format!("The tool failed:\n{content}")})
        }
        Block::Text { .. } | Block::Image(_) | Block::Native { .. } => content(block),
    }
}

/// Converts the stream's data to events.
#[derive(Debug, Clone)]
pub struct Decoder {
    model: ModelId,
    begun: bool,
    /// By index, in the order of the reply.
    blocks: BTreeMap<u64, Partial>,
    done: Vec<(u64, Block)>,
    stop: Option<StopReason>,
    usage: Option<Usage>,
}

#[derive(Debug, Clone)]
enum Partial {
    Text(String),
    Tool(ToolCall),
    /// Signed thinking, or thinking that only the provider can read.
    Reasoning {
        text: String,
        signature: String,
        redacted: Vec<u8>,
    },
    /// A tool that the provider runs itself, and kinds of the future. It is not kept.
    Skipped,
}

impl Decode for Decoder {
    const FRAMING: Framing = Framing::EventStream;

    fn data(&mut self, data: &str) -> Result<Vec<ModelEvent>, ModelError> {
        let frame: Value = serde_json::from_str(data).map_err(|_| ModelError::Malformed)?;
        let (kind, event) =
            frame.as_object().and_then(|frame| frame.iter().next()).ok_or(ModelError::Malformed)?;
        let index = || event["contentBlockIndex"].as_u64().ok_or(ModelError::Malformed);
        let mut events = Vec::new();
        match kind.as_str() {
            "messageStart" => self.begin(&mut events),
            "contentBlockStart" => {
                let call = &event["start"]["toolUse"];
                let text = |key: &str| call[key].as_str().unwrap_or_default().to_owned();
                let partial = if call["type"] == "server_tool_use" || !call.is_object() {
                    Partial::Skipped
                } else {
                    let (id, name) = (text("toolUseId"), text("name"));
                    Partial::Tool(ToolCall { id, name, json: String::new() })
                };
                self.blocks.insert(index()?, partial);
            }
            "contentBlockDelta" => self.grow(index()?, &event["delta"], &mut events)?,
            "contentBlockStop" => {
                let index = index()?;
                if let Some(partial) = self.blocks.remove(&index) {
                    self.close(index, partial, true, &mut events);
                }
            }
            "messageStop" => {
                self.begin(&mut events);
                self.stop = Some(stop_reason(event["stopReason"].as_str().unwrap_or_default())?);
                // A reply that reached its limit may leave a block open.
                for (index, partial) in std::mem::take(&mut self.blocks) {
                    self.close(index, partial, false, &mut events);
                }
            }
            "metadata" => {
                let usage = usage(&event["usage"]);
                self.usage = Some(usage);
                events.push(ModelEvent::Usage(usage));
            }
            "error" => return Err(classify_event(Provider::Bedrock, &frame)),
            // Future event types.
            _ => {}
        }
        if let (Some(stop), Some(usage)) = (self.stop, self.usage) {
            let assistant_blocks = call::in_order(&mut self.done);
            events.push(ModelEvent::Finished { stop, assistant_blocks, usage });
        }
        Ok(events)
    }

    fn end(&mut self) -> Result<Vec<ModelEvent>, ModelError> {
        Err(ModelError::Truncated)
    }
}

impl Decoder {
    #[must_use]
    pub fn new(model: &ModelId) -> Self {
        Self {
            model: model.clone(),
            begun: false,
            blocks: BTreeMap::new(),
            done: Vec::new(),
            stop: None,
            usage: None,
        }
    }

    /// The format does not name the model that answers.
    fn begin(&mut self, events: &mut Vec<ModelEvent>) {
        if !std::mem::replace(&mut self.begun, true) {
            events.push(ModelEvent::Started { model: self.model.clone() });
        }
    }

    fn grow(&mut self, index: u64, delta: &Value, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        // Blocks of text and of thinking begin with their first piece.
        if let Some(text) = delta["text"].as_str() {
            let partial = self.blocks.entry(index).or_insert_with(|| Partial::Text(String::new()));
            if let Partial::Text(so_far) = partial {
                so_far.push_str(text);
                if !text.is_empty() {
                    events.push(ModelEvent::TextDelta(text.to_owned()));
                }
            }
        } else if let Some(input) = delta["toolUse"]["input"].as_str() {
            if let Some(Partial::Tool(call)) = self.blocks.get_mut(&index) {
                call.json.push_str(input);
            }
        } else if let Some(thought) = delta["reasoningContent"].as_object() {
            let partial = self.blocks.entry(index).or_insert_with(|| Partial::Reasoning {
                text: String::new(),
                signature: String::new(),
                redacted: Vec::new(),
            });
            let piece = |key: &str| thought.get(key).and_then(Value::as_str).unwrap_or_default();
            if !piece("text").is_empty() {
                events.push(ModelEvent::ThinkingDelta(piece("text").to_owned()));
            }
            if let Partial::Reasoning { text, signature, redacted } = partial {
                text.push_str(piece("text"));
                signature.push_str(piece("signature"));
                redacted.extend(BASE64.decode(piece("redactedContent")).map_err(|_| ModelError::Malformed)?);
            }
        }
        // Otherwise: citations, and kinds of the future.
        Ok(())
    }

    /// `whole`: the provider reported the end of the block.
    fn close(&mut self, index: u64, partial: Partial, whole: bool, events: &mut Vec<ModelEvent>) {
        let native = |reasoning: Value| Block::Native {
            provider: Provider::Bedrock,
            block: json!({ "reasoningContent": reasoning }),
        };
        let block = match partial {
            Partial::Text(text) if text.is_empty() => return,
            Partial::Text(text) => Block::Text { text },
            Partial::Tool(call) => match call.end(Value::Null, whole, events) {
                Some(block) => block,
                None => return,
            },
            Partial::Reasoning { redacted, .. } if whole && !redacted.is_empty() => {
                native(json!({"redactedContent": BASE64.encode(redacted)}))
            }
            // The API refuses thinking without a signature when it is sent back.
            Partial::Reasoning { text, signature, .. } if whole && !signature.is_empty() => {
                native(json!({"reasoningText": {"text": text, "signature": signature}}))
            }
            Partial::Reasoning { .. } | Partial::Skipped => return,
        };
        self.done.push((index, block));
    }
}

fn stop_reason(text: &str) -> Result<StopReason, ModelError> {
    Ok(match text {
        "end_turn" => StopReason::EndTurn,
        "max_tokens" => StopReason::MaxTokens,
        "tool_use" => StopReason::ToolUse,
        "stop_sequence" => StopReason::StopSequence,
        "refusal" => StopReason::Refusal,
        "model_context_window_exceeded" => StopReason::ContextWindow,
        "guardrail_intervened" | "content_filtered" => StopReason::ContentFilter,
        // The model wrote an invalid call. Its text is not in the answer.
        "malformed_model_output" | "malformed_tool_use" => return Err(ModelError::Malformed),
        _ => StopReason::Other,
    })
}

/// The input does not include cached tokens. If there is no breakdown by time to live, all writes are five-minute writes.
fn usage(usage: &Value) -> Usage {
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let written = count(&usage["cacheWriteInputTokens"]);
    let details = usage["cacheDetails"].as_array().into_iter().flatten();
    let long: u64 =
        details.filter(|detail| detail["ttl"] == "1h").map(|detail| count(&detail["inputTokens"])).sum();
    Usage {
        input_tokens: count(&usage["inputTokens"]),
        cache_read_tokens: count(&usage["cacheReadInputTokens"]),
        cache_write_5m_tokens: written.saturating_sub(long),
        cache_write_1h_tokens: long,
        output_tokens: count(&usage["outputTokens"]),
        ..Usage::default()
    }
}

#[cfg(test)]
#[path = "bedrock_tests.rs"]
mod tests;
