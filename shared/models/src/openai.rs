//! The OpenAI Chat Completions format. Ollama, vLLM, OpenRouter and many others use it too, each with small
//! differences. Everything except [`OpenAi`] itself is pure.

use domain::chats::signals;
use domain::models::error::classify_event;
use domain::models::prices::EmbeddingModel;
use domain::models::{
    Block, ModelError, ModelEvent, ModelId, ModelRequest, Provider, Role, SamplingParameter, StopReason,
    SystemBlock, ToolChoice, Usage, estimate, prices,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};

use super::breakpoints;
use super::call::{self, Call, Decode, Endpoint, ToolCall};
use super::embeddings::{self, Format};
use super::{Embedding, EventStream, Model};

/// The model id that selects the first model that the server lists.
pub use domain::accounts::servers::FIRST_MODEL;

/// What a server of this family supports. Strict servers refuse unknown fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// Send the newer `max_completion_tokens` instead of `max_tokens`.
    pub max_completion_tokens: bool,
    /// Send `stream_options`. Without it the server reports no usage.
    pub stream_usage: bool,
    /// Send `prompt_cache_key`: calls with the same prefix reach the same cache. Also send breakpoints to models that have them.
    pub cache_key: bool,
    /// `false` for models without tool calls: the tools are then explained in the system text, and calls come back as
    /// signals in the text.
    pub native_tools: bool,
}

impl Dialect {
    pub const OPENAI: Self =
        Self { max_completion_tokens: true, stream_usage: true, cache_key: true, native_tools: true };
    /// xAI takes the newer name of the limit, and caches by prefix without a key.
    pub const XAI: Self =
        Self { max_completion_tokens: true, stream_usage: true, cache_key: false, native_tools: true };
    pub const COMPATIBLE: Self =
        Self { max_completion_tokens: false, stream_usage: true, cache_key: false, native_tools: true };

    /// The models of OpenAI and xAI that reason refuse these parameters.
    const fn samples(self) -> &'static [SamplingParameter] {
        if self.max_completion_tokens { &[] } else { &SamplingParameter::ALL }
    }
}

/// A server that uses the Chat Completions format.
#[derive(Debug, Clone)]
pub struct OpenAi {
    endpoint: Endpoint,
    dialect: Dialect,
}

impl OpenAi {
    /// `endpoint` is the base URL including `/v1`.
    #[must_use]
    pub fn new(endpoint: Endpoint, dialect: Dialect) -> Self {
        Self { endpoint, dialect }
    }

    fn call(&self, model: &ModelId, request: &ModelRequest) -> EventStream {
        let encoded = encode(model, request, self.dialect).map(|body| Call {
            path: "/chat/completions".into(),
            header: None,
            body,
        });
        call::stream(self.endpoint.clone(), Provider::OpenAi, encoded, Decoder::new(model, request))
    }
}

impl Model for OpenAi {
    fn provider(&self) -> Provider {
        Provider::OpenAi
    }

    fn list(&self) -> Option<BoxFuture<'static, Result<(), ModelError>>> {
        Some(self.endpoint.clone().list("/models", Provider::OpenAi).boxed())
    }

    fn embed(&self, model: &'static EmbeddingModel, texts: Vec<String>) -> Option<Embedding> {
        Some(embeddings::embed(self.endpoint.clone(), Format::OpenAi, model, texts).boxed())
    }

    fn samples(&self) -> &'static [SamplingParameter] {
        self.dialect.samples()
    }

    fn stream(&self, model: &ModelId, request: &ModelRequest) -> EventStream {
        if model.as_str() != FIRST_MODEL {
            return self.call(model, request);
        }
        let (this, request) = (self.clone(), request.clone());
        let found = async move {
            let model = ModelId::new(this.endpoint.first_model().await?);
            Ok(this.call(&model, &request))
        };
        stream::once(found).try_flatten().boxed()
    }
}

/// The body of a streaming `POST /chat/completions`.
///
/// # Errors
/// [`ModelError::Unsendable`] if the API would refuse the structure of the conversation.
pub fn encode(model: &ModelId, request: &ModelRequest, dialect: Dialect) -> Result<Value, ModelError> {
    let mut messages: Vec<Value> = Vec::new();
    let has_breakpoints = dialect.cache_key && breakpoints::has(model);
    let turns = call::turns(request, Provider::OpenAi)?;
    let marked = if has_breakpoints { breakpoints::turns(request, &turns) } else { Vec::new() };
    if has_breakpoints {
        let parts = breakpoints::parts(request, "text", marked.len());
        messages.extend((!parts.is_empty()).then(|| json!({"role": "system", "content": parts})));
    } else if let Some(system) = system(request, dialect) {
        messages.push(json!({"role": "system", "content": system}));
    }
    for (at, (role, blocks)) in turns.into_iter().enumerate() {
        match (role, dialect.native_tools) {
            (Role::User, true) => user(&blocks, &mut messages),
            (Role::Assistant, true) => messages.extend(assistant(&blocks)),
            (_, false) => messages.extend(in_words(role, &blocks)),
        }
        if let Some(message) = messages.last_mut().filter(|_| marked.contains(&at)) {
            breakpoints::mark(message, "text");
        }
    }
    let limit = if dialect.max_completion_tokens { "max_completion_tokens" } else { "max_tokens" };
    let mut body = json!({"model": model, "stream": true, "messages": messages});
    body[limit] = request.max_output_tokens.into();
    if dialect.stream_usage {
        body["stream_options"] = json!({"include_usage": true});
    }
    if let Some(schema) = request.output_schema.as_ref().filter(|_| prices::takes_schema(model)) {
        let format = json!({"name": "reply", "strict": true, "schema": schema});
        body["response_format"] = json!({"type": "json_schema", "json_schema": format});
    }
    for (parameter, value) in
        request.sampling.iter().filter(|(parameter, _)| dialect.samples().contains(parameter))
    {
        body[parameter.name()] = value.clone().into();
    }
    if has_breakpoints {
        body["prompt_cache_options"] = breakpoints::options(request);
    }
    if dialect.cache_key && request.system.iter().any(|block| block.cache.is_some()) {
        body["prompt_cache_key"] = request.prefix_hash(model)[..32].into();
    }
    if dialect.native_tools && !request.tools.is_empty() {
        body["tools"] = request
            .tools
            .iter()
            .map(|tool| {
                let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.input_schema});
                json!({"type": "function", "function": function})
            })
            .collect();
        match &request.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::Any => body["tool_choice"] = "required".into(),
            ToolChoice::Tool(name) => {
                body["tool_choice"] = json!({"type": "function", "function": {"name": name}});
            }
            ToolChoice::None => body["tool_choice"] = "none".into(),
        }
    }
    Ok(body)
}

/// The system blocks as one text, unchanged and with cached blocks first, because servers cache by prefix
/// automatically.
fn system(request: &ModelRequest, dialect: Dialect) -> Option<String> {
    let explained = (!dialect.native_tools && request.tool_choice != ToolChoice::None)
        .then(|| signals::explain(&request.tools))
        .filter(|text| !text.is_empty())
        .map(SystemBlock::plain);
    let stable = request.system.iter().rposition(|block| block.cache.is_some()).map_or(0, |last| last + 1);
    let (stable, changing) = request.system.split_at(stable);
    let texts: Vec<&str> = stable
        .iter()
        .chain(&explained)
        .chain(changing)
        .map(|block| block.text.as_str())
        .filter(|text| !text.trim().is_empty())
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

fn user(blocks: &[&Block], messages: &mut Vec<Value>) {
    for block in blocks {
        if let Block::ToolResult { tool_use_id, content, is_error } = block {
            let content = if *is_error { format!("Error: {content}") } else { content.clone() };
            messages.push(json!({"role": "tool", "tool_call_id": tool_use_id, "content": content}));
        }
    }
    let text = text(blocks);
    let images = images(blocks);
    if !text.is_empty() || !images.is_empty() {
        messages.push(json!({"role": "user", "content": with_images(text, images)}));
    }
}

fn images(blocks: &[&Block]) -> Vec<Value> {
    let image = |block: &&Block| match block {
        Block::Image(image) => {
            Some(json!({"type": "image_url", "image_url": {"url": image.url(), "detail": "high"}}))
        }
        _ => None,
    };
    blocks.iter().filter_map(image).collect()
}

/// The content of a message. It is a plain text if it can be, because some servers accept nothing else.
fn with_images(text: String, mut parts: Vec<Value>) -> Value {
    if parts.is_empty() {
        return text.into();
    }
    if !text.is_empty() {
        parts.push(json!({"type": "text", "text": text}));
    }
    parts.into()
}

fn assistant(blocks: &[&Block]) -> Option<Value> {
    let calls: Vec<Value> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::ToolUse { id, name, input } => Some(json!({
                "id": id, "type": "function", "function": {"name": name, "arguments": input.to_string()},
            })),
            _ => None,
        })
        .collect();
    let text = text(blocks);
    let content = if text.is_empty() { Value::Null } else { text.into() };
    match (calls.is_empty(), content.is_null()) {
        (true, true) => None,
        (true, false) => Some(json!({"role": "assistant", "content": content})),
        (false, _) => Some(json!({"role": "assistant", "content": content, "tool_calls": calls})),
    }
}

fn text(blocks: &[&Block]) -> String {
    blocks.iter().filter_map(|block| block.as_text()).collect::<Vec<_>>().join("\n\n")
}

/// A message for a model without tool calls: calls and results as text.
fn in_words(role: Role, blocks: &[&Block]) -> Option<Value> {
    let texts: Vec<String> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } => Some(text.clone()),
            Block::ToolUse { name, input, .. } => Some(format!("USE_TOOL: {name}\n{input}")),
            Block::ToolResult { content, is_error: false, .. } => {
                Some(format!("Result of the tool:\n{content}"))
            }
            Block::ToolResult { content, is_error: true, .. } => Some(format!("The tool failed:\n{content}")),
            Block::Image(_) | Block::Native { .. } => None,
        })
        .collect();
    let images = images(blocks);
    (!texts.is_empty() || !images.is_empty())
        .then(|| json!({"role": role, "content": with_images(texts.join("\n\n"), images)}))
}

/// The most calls in one reply. A reply with more is malformed.
const MAX_CALLS: usize = 256;

/// Converts the stream's data to events.
#[derive(Debug, Clone)]
pub struct Decoder {
    model: ModelId,
    /// The estimated input, for servers that report no usage.
    likely_input: u64,
    begun: bool,
    text: String,
    calls: Vec<PartialCall>,
    blocks: Vec<Block>,
    stop: Option<StopReason>,
    usage: Option<Usage>,
    bytes: usize,
}

#[derive(Debug, Clone, Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Decode for Decoder {
    fn data(&mut self, data: &str) -> Result<Vec<ModelEvent>, ModelError> {
        let mut events = Vec::new();
        if data.trim() == "[DONE]" {
            self.finish(&mut events);
            return Ok(events);
        }
        let chunk: Value = serde_json::from_str(data).map_err(|_| ModelError::Malformed)?;
        if !chunk["error"].is_null() {
            return Err(classify_event(Provider::OpenAi, &chunk));
        }
        if !self.begun {
            self.begun = true;
            let model = chunk["model"].as_str().map_or_else(|| self.model.clone(), ModelId::new);
            events.push(ModelEvent::Started { model });
        }
        let choice = &chunk["choices"][0];
        // The names that different servers use for it.
        let thought =
            ["reasoning_content", "reasoning"].iter().find_map(|key| choice["delta"][*key].as_str());
        if let Some(thought) = thought.filter(|thought| !thought.is_empty()) {
            self.bytes += thought.len();
            events.push(ModelEvent::ThinkingDelta(thought.to_owned()));
        }
        for key in ["content", "refusal"] {
            if let Some(text) = choice["delta"][key].as_str().filter(|text| !text.is_empty()) {
                self.text.push_str(text);
                self.bytes += text.len();
                events.push(ModelEvent::TextDelta(text.to_owned()));
                if key == "refusal" {
                    self.stop = Some(StopReason::Refusal);
                }
            }
        }
        for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            self.grow(call)?;
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.close(reason, &mut events);
        }
        if let Some(usage) = usage(&chunk["usage"]) {
            self.usage = Some(usage);
            events.push(ModelEvent::Usage(usage));
        }
        Ok(events)
    }

    /// Some servers omit the last line.
    fn end(&mut self) -> Result<Vec<ModelEvent>, ModelError> {
        if self.stop.is_none() {
            return Err(ModelError::Truncated);
        }
        let mut events = Vec::new();
        self.finish(&mut events);
        Ok(events)
    }
}

impl Decoder {
    #[must_use]
    pub fn new(model: &ModelId, request: &ModelRequest) -> Self {
        Self {
            model: model.clone(),
            likely_input: estimate::request_tokens(model, request),
            begun: false,
            text: String::new(),
            calls: Vec::new(),
            blocks: Vec::new(),
            stop: None,
            usage: None,
            bytes: 0,
        }
    }

    fn grow(&mut self, delta: &Value) -> Result<(), ModelError> {
        let index = delta["index"].as_u64();
        let id = delta["id"].as_str().unwrap_or_default();
        // Calls are identified by their index, or by their id if a server omits the index.
        let same = |call: &PartialCall| match index {
            Some(_) => call.index == index,
            None => id.is_empty() || call.id == id,
        };
        let position = match self.calls.iter().rposition(same) {
            Some(position) => position,
            // Each piece is compared with all calls.
            None if self.calls.len() == MAX_CALLS => return Err(ModelError::Malformed),
            None => {
                self.calls.push(PartialCall { index, ..PartialCall::default() });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[position];
        // Some servers repeat the id and the name in every piece.
        for (field, text) in
            [(&mut call.id, id), (&mut call.name, delta["function"]["name"].as_str().unwrap_or_default())]
        {
            if !text.is_empty() {
                text.clone_into(field);
            }
        }
        let arguments = match &delta["function"]["arguments"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            // The format does not allow this, but some servers do it.
            whole => whole.to_string(),
        };
        self.bytes += arguments.len();
        call.arguments.push_str(&arguments);
        Ok(())
    }

    /// Handles the end of the reply. Its usage may still follow.
    fn close(&mut self, reason: &str, events: &mut Vec<ModelEvent>) {
        let called = !self.calls.is_empty();
        let stop = match reason {
            // Some servers report `stop` after a tool call.
            "stop" | "tool_calls" | "function_call" if called => StopReason::ToolUse,
            "stop" => StopReason::EndTurn,
            "length" => StopReason::MaxTokens,
            "content_filter" => StopReason::ContentFilter,
            _ => StopReason::Other,
        };
        self.stop.get_or_insert(stop);
        if !self.text.is_empty() {
            self.blocks.push(Block::Text { text: std::mem::take(&mut self.text) });
        }
        for (index, call) in std::mem::take(&mut self.calls).into_iter().enumerate() {
            let id = if call.id.is_empty() { format!("call_{index}") } else { call.id };
            let call = ToolCall { id, name: call.name, json: call.arguments };
            self.blocks.extend(call.end(Value::Null, stop != StopReason::MaxTokens, events));
        }
    }

    fn finish(&mut self, events: &mut Vec<ModelEvent>) {
        if self.stop.is_none() {
            self.close("stop", events);
        }
        let usage = self.usage.unwrap_or_else(|| Usage {
            input_tokens: self.likely_input,
            output_tokens: estimate::tokens(&self.model, self.bytes),
            estimated: true,
            ..Usage::default()
        });
        events.push(ModelEvent::Finished {
            stop: self.stop.unwrap_or(StopReason::Other),
            assistant_blocks: std::mem::take(&mut self.blocks),
            usage,
        });
    }
}

/// OpenAI counts cached tokens as part of the input; [`Usage`] does not.
fn usage(usage: &Value) -> Option<Usage> {
    let prompt = usage["prompt_tokens"].as_u64()?;
    let count = |group: &str, key: &str| usage[group][key].as_u64().unwrap_or(0);
    let cache_read_tokens = count("prompt_tokens_details", "cached_tokens").min(prompt);
    let cache_write_5m_tokens =
        count("prompt_tokens_details", "cache_write_tokens").min(prompt - cache_read_tokens);
    Some(Usage {
        input_tokens: prompt - cache_read_tokens - cache_write_5m_tokens,
        cache_read_tokens,
        cache_write_5m_tokens,
        cache_write_1h_tokens: 0,
        output_tokens: usage["completion_tokens"].as_u64().unwrap_or(0),
        reasoning_tokens: count("completion_tokens_details", "reasoning_tokens"),
        web_searches: 0,
        code_runs: 0,
        estimated: false,
    })
}

#[cfg(test)]
#[path = "openai_tests.rs"]
mod tests;
