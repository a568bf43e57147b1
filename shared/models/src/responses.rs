//! The OpenAI Responses format, in both directions. xAI uses it too, with small differences. Everything except [`Responses`]
//! itself is pure.
//!
//! Nothing is stored at the provider. A reasoning item comes back encrypted and is sent again before the item that it led
//! to, so that the model can continue its thoughts after a tool call.

use std::collections::{BTreeMap, BTreeSet};

use domain::models::error::classify_event;
use domain::models::prices::{self, EmbeddingModel, Thinks};
use domain::models::provider_tools;
use domain::models::{
    Block, ModelError, ModelEvent, ModelId, ModelRequest, Provider, ProviderTool, Role, StopReason,
    ToolChoice, Usage, WebSource,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::breakpoints;
use super::call::{self, Call, Decode, Endpoint, ToolCall};
use super::embeddings::{self, Format};
use super::{Embedding, EventStream, Model};

/// Whose server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    OpenAi,
    /// The system text is a message, because clients of xAI disagree about `instructions`. There is no limit for tools and no
    /// container, and only text, images, calls and their results are sent or kept: see [`Decoder`].
    Xai,
}

/// A server that uses the Responses format.
#[derive(Debug, Clone)]
pub struct Responses {
    endpoint: Endpoint,
    dialect: Dialect,
}

impl Responses {
    /// `endpoint` is the base URL including `/v1`.
    #[must_use]
    pub fn new(endpoint: Endpoint, dialect: Dialect) -> Self {
        Self { endpoint, dialect }
    }
}

impl Model for Responses {
    fn provider(&self) -> Provider {
        Provider::OpenAi
    }

    fn list(&self) -> Option<BoxFuture<'static, Result<(), ModelError>>> {
        Some(self.endpoint.clone().list("/models", Provider::OpenAi).boxed())
    }

    fn embed(&self, model: &'static EmbeddingModel, texts: Vec<String>) -> Option<Embedding> {
        Some(embeddings::embed(self.endpoint.clone(), Format::OpenAi, model, texts).boxed())
    }

    fn stream(&self, model: &ModelId, request: &ModelRequest) -> EventStream {
        let encoded = encode(model, request, self.dialect).map(|body| Call {
            path: "/responses".into(),
            header: None,
            body,
        });
        call::stream(self.endpoint.clone(), Provider::OpenAi, encoded, Decoder::new(model, self.dialect))
    }
}

/// The body of a streaming `POST /responses`.
///
/// # Errors
/// [`ModelError::Unsendable`] if the API would refuse the structure of the conversation.
pub fn encode(model: &ModelId, request: &ModelRequest, dialect: Dialect) -> Result<Value, ModelError> {
    let is_openai = dialect == Dialect::OpenAi;
    let mut input = Vec::new();
    // Cached blocks come first, because the API caches by prefix.
    let system: Vec<&str> = request
        .system
        .iter()
        .map(|block| block.text.as_str())
        .filter(|text| !text.trim().is_empty())
        .collect();
    let has_breakpoints = is_openai && breakpoints::has(model);
    let turns = call::turns(request, Provider::OpenAi)?;
    let marked = if has_breakpoints { breakpoints::turns(request, &turns) } else { Vec::new() };
    if has_breakpoints {
        let parts = breakpoints::parts(request, "input_text", marked.len());
        input.extend((!parts.is_empty()).then(|| json!({"role": "system", "content": parts})));
    } else if !is_openai && !system.is_empty() {
        input.push(json!({"role": "system", "content": system.join("\n\n")}));
    }
    let newest = call::before_newest_words(&turns);
    for (at, (role, blocks)) in turns.iter().enumerate() {
        let blocks = if is_openai { sent(blocks, at < newest) } else { portable(blocks) };
        items(*role, &blocks, &mut input);
        if let Some(item) = input.last_mut().filter(|_| marked.contains(&at)) {
            breakpoints::mark(item, "input_text");
        }
    }
    let mut body = json!({
        "model": model,
        "stream": true,
        "store": false,
        "max_output_tokens": request.max_output_tokens,
        "input": input,
    });
    if let Some(effort) = request.effort.filter(|_| prices::thinks(model) == Some(Thinks::Effort)) {
        body["reasoning"] = json!({"effort": effort, "summary": "auto"});
    }
    if let Some(schema) = request.output_schema.as_ref().filter(|_| prices::takes_schema(model)) {
        body["text"] =
            json!({"format": {"type": "json_schema", "name": "reply", "strict": true, "schema": schema}});
    }
    if is_openai {
        let mut include = vec!["reasoning.encrypted_content"];
        if request.provider_tools.contains(&ProviderTool::WebSearch) {
            include.push("web_search_call.action.sources");
        }
        body["include"] = include.into();
        if has_breakpoints {
            body["prompt_cache_options"] = breakpoints::options(request);
        } else if !system.is_empty() {
            body["instructions"] = system.join("\n\n").into();
        }
        if request.system.iter().any(|block| block.cache.is_some()) {
            body["prompt_cache_key"] = request.prefix_hash(model)[..32].into();
        }
        if !request.provider_tools.is_empty() {
            body["max_tool_calls"] = provider_tools::max_uses(request).into();
        }
    }
    let tools = tools(request, dialect);
    if !tools.is_empty() {
        body["tools"] = tools.into();
        match &request.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::Any => body["tool_choice"] = "required".into(),
            ToolChoice::Tool(name) => body["tool_choice"] = json!({"type": "function", "name": name}),
            ToolChoice::None => body["tool_choice"] = "none".into(),
        }
    }
    Ok(body)
}

/// The provider's tools, then ours.
fn tools(request: &ModelRequest, dialect: Dialect) -> Vec<Value> {
    let of_provider = request.provider_tools.iter().map(|tool| match (tool, dialect) {
        (ProviderTool::WebSearch, _) => json!({"type": "web_search"}),
        (ProviderTool::CodeExecution, Dialect::OpenAi) => {
            json!({"type": "code_interpreter", "container": {"type": "auto"}})
        }
        (ProviderTool::CodeExecution, Dialect::Xai) => json!({"type": "code_interpreter"}),
    });
    let functions = request.tools.iter().map(|tool| {
        let mut function = json!({"type": "function", "name": tool.name, "description": tool.description,
            "parameters": tool.input_schema});
        if dialect == Dialect::OpenAi {
            function["strict"] = false.into();
        }
        function
    });
    of_provider.chain(functions).collect()
}

/// Leaves out the items of another provider with the same format. xAI can't read what OpenAI has encrypted or run.
fn portable<'a>(blocks: &[&'a Block]) -> Vec<&'a Block> {
    blocks.iter().copied().filter(|block| !matches!(block, Block::Native { .. })).collect()
}

/// Leaves out what the API refuses: a thought without a following item, and in a reply that is complete (`is_old`) the provider's runs of
/// code, because their container ends 20 minutes after its last use.
fn sent<'a>(blocks: &[&'a Block], is_old: bool) -> Vec<&'a Block> {
    let is =
        |block: &Block, kind: &str| matches!(block, Block::Native { block, .. } if block["type"] == kind);
    let mut sent: Vec<&Block> = Vec::new();
    let mut led_to_something = false;
    for block in blocks.iter().rev() {
        let keep = if is(block, "reasoning") {
            led_to_something
        } else {
            led_to_something = !(is_old && is(block, "code_interpreter_call"));
            led_to_something
        };
        if keep {
            sent.push(block);
        }
    }
    sent.reverse();
    sent
}

/// Adds the items of one message. Text is an item with a role; calls and results are items without one.
fn items(role: Role, blocks: &[&Block], input: &mut Vec<Value>) {
    for block in blocks {
        input.push(match block {
            Block::Text { text } => json!({"role": role, "content": text}),
            Block::Image(image) => {
                let part = json!({"type": "input_image", "detail": "high", "image_url": image.url()});
                json!({"role": role, "content": [part]})
            }
            Block::ToolUse { id, name, input } => {
                json!({"type": "function_call", "call_id": id, "name": name, "arguments": input.to_string()})
            }
            Block::ToolResult { tool_use_id, content, is_error } => {
                let output = if *is_error { format!("Error: {content}") } else { content.clone() };
                json!({"type": "function_call_output", "call_id": tool_use_id, "output": output})
            }
            Block::Native { block, .. } => block.clone(),
        });
    }
}

/// Converts the stream's data to events.
///
/// xAI's own items are counted, but not kept. A kept item would have [`Provider::OpenAi`], so a fallback would send it to OpenAI,
/// which can't read it. The items of tools would tell xAI little, because it does not return the results of its tools. Its thoughts are
/// not sent again in Chat Completions either.
#[derive(Debug, Clone)]
pub struct Decoder {
    model: ModelId,
    dialect: Dialect,
    begun: bool,
    /// Calls that are not complete yet, by their position in the output.
    calls: BTreeMap<u64, ToolCall>,
    done: Vec<(u64, Block)>,
    called: bool,
    refused: bool,
    /// The uses of tools that the provider ran, and the containers of its code.
    uses: Usage,
    containers: BTreeSet<String>,
    /// Where in the output searches have begun.
    searching: BTreeSet<u64>,
}

impl Decode for Decoder {
    fn data(&mut self, data: &str) -> Result<Vec<ModelEvent>, ModelError> {
        let event: Value = serde_json::from_str(data).map_err(|_| ModelError::Malformed)?;
        let place = || event["output_index"].as_u64().ok_or(ModelError::Malformed);
        let mut events = Vec::new();
        match event["type"].as_str().unwrap_or_default() {
            "response.created" => self.begin(&event["response"], &mut events),
            kind @ ("response.output_text.delta" | "response.refusal.delta") => {
                self.refused |= kind == "response.refusal.delta";
                if let Some(text) = event["delta"].as_str().filter(|text| !text.is_empty()) {
                    events.push(ModelEvent::TextDelta(text.to_owned()));
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                if let Some(text) = event["delta"].as_str().filter(|text| !text.is_empty()) {
                    events.push(ModelEvent::ThinkingDelta(text.to_owned()));
                }
            }
            "response.output_item.added" if event["item"]["type"] == "function_call" => {
                let text = |key: &str| event["item"][key].as_str().unwrap_or_default().to_owned();
                let partial = ToolCall { id: text("call_id"), name: text("name"), json: text("arguments") };
                self.calls.insert(place()?, partial);
            }
            // A reply that is cut off during a search has this event alone.
            "response.output_item.added" if event["item"]["type"] == "web_search_call" => {
                self.searching.insert(place()?);
                events.push(ModelEvent::Usage(self.uses()));
            }
            "response.function_call_arguments.delta" => {
                if let (Some(call), Some(delta)) = (self.calls.get_mut(&place()?), event["delta"].as_str()) {
                    call.json.push_str(delta);
                }
            }
            "response.output_item.done" => {
                let found = found(&event["item"]);
                if !found.is_empty() {
                    events.push(ModelEvent::Found(found));
                }
                self.close(place()?, &event["item"], &mut events);
            }
            "response.completed" | "response.incomplete" => self.finish(&event["response"], &mut events),
            "response.failed" => return Err(classify_event(Provider::OpenAi, &event["response"])),
            "error" => {
                // Some servers nest the error, the API does not.
                let nested = event["error"].is_object();
                let error = if nested { event.clone() } else { json!({"error": event}) };
                return Err(classify_event(Provider::OpenAi, &error));
            }
            // Parts of items that arrive complete at their end, progress, and future event types.
            _ => {}
        }
        Ok(events)
    }

    fn end(&mut self) -> Result<Vec<ModelEvent>, ModelError> {
        Err(ModelError::Truncated)
    }
}

impl Decoder {
    #[must_use]
    pub fn new(model: &ModelId, dialect: Dialect) -> Self {
        Self {
            model: model.clone(),
            dialect,
            begun: false,
            calls: BTreeMap::new(),
            done: Vec::new(),
            called: false,
            refused: false,
            uses: Usage::default(),
            containers: BTreeSet::new(),
            searching: BTreeSet::new(),
        }
    }

    fn begin(&mut self, response: &Value, events: &mut Vec<ModelEvent>) {
        if !std::mem::replace(&mut self.begun, true) {
            let model = response["model"].as_str().map_or_else(|| self.model.clone(), ModelId::new);
            events.push(ModelEvent::Started { model });
        }
    }

    /// Handles a complete item.
    fn close(&mut self, place: u64, item: &Value, events: &mut Vec<ModelEvent>) {
        match item["type"].as_str().unwrap_or_default() {
            "message" => {
                let content = item["content"].as_array().into_iter().flatten();
                let text: String = content
                    .filter_map(|part| part["text"].as_str().or_else(|| part["refusal"].as_str()))
                    .collect();
                if !text.is_empty() {
                    self.done.push((place, Block::Text { text }));
                }
            }
            "function_call" => {
                let partial = self.calls.remove(&place).unwrap_or_default();
                let text = |key: &str, otherwise: String| item[key].as_str().map_or(otherwise, str::to_owned);
                let call = ToolCall {
                    id: text("call_id", partial.id),
                    name: text("name", partial.name),
                    json: text("arguments", partial.json),
                };
                self.call(place, call, item["status"] != "incomplete", events);
            }
            _ => {
                if self.dialect == Dialect::OpenAi {
                    self.keep(place, item);
                }
                let before = self.uses();
                self.searching.remove(&place);
                self.count(item);
                if self.uses() != before {
                    events.push(ModelEvent::Usage(self.uses()));
                }
            }
        }
    }

    /// Keeps an item that only OpenAI understands.
    fn keep(&mut self, place: u64, item: &Value) {
        let mut block = item.clone();
        // The API takes items back without their status, except those of tools that it ran.
        let is_call = block["type"].as_str().is_some_and(|kind| kind.ends_with("_call"));
        if let Some(fields) = block.as_object_mut() {
            if !is_call {
                fields.remove("status");
            }
            self.done.push((place, Block::Native { provider: Provider::OpenAi, block }));
        }
    }

    /// Counts a use of a tool that the provider ran. OpenAI reports them nowhere else. xAI reports them at the end, which a reply
    /// that is cut off does not have.
    fn count(&mut self, item: &Value) {
        let is_xai = self.dialect == Dialect::Xai;
        match item["type"].as_str() {
            // Opening a page that was found costs nothing more at OpenAI. xAI bills it like a search.
            Some("web_search_call")
                if is_xai || matches!(item["action"]["type"].as_str(), None | Some("search")) =>
            {
                self.uses.web_searches += 1;
            }
            // xAI bills each run, OpenAI each container.
            Some("code_interpreter_call") if is_xai => self.uses.code_runs += 1,
            Some("code_interpreter_call") => {
                let container = item["container_id"].as_str().unwrap_or_default();
                self.uses.code_runs += u64::from(self.containers.insert(container.to_owned()));
            }
            _ => {}
        }
    }

    /// The uses so far. A use that has begun counts as a search until its item says what it was.
    fn uses(&self) -> Usage {
        Usage { web_searches: self.uses.web_searches + self.searching.len() as u64, ..self.uses }
    }

    /// The uses that the provider bills. xAI bills those that succeeded and reports their number, in all or for each tool.
    fn billed(&self, usage: &Value) -> (u64, u64) {
        let Usage { web_searches, code_runs, .. } = self.uses;
        if self.dialect == Dialect::OpenAi {
            return (web_searches, code_runs);
        }
        let of = |tool: &str| usage["server_side_tool_usage_details"][tool].as_u64();
        let all = usage["num_server_side_tools_used"].as_u64();
        let code_runs =
            of("code_interpreter_calls").unwrap_or_else(|| code_runs.min(all.unwrap_or(u64::MAX)));
        let rest = all.map(|all| all.saturating_sub(code_runs));
        (of("web_search_calls").or(rest).unwrap_or(web_searches), code_runs)
    }

    fn call(&mut self, place: u64, mut call: ToolCall, whole: bool, events: &mut Vec<ModelEvent>) {
        if call.id.is_empty() {
            call.id = format!("call_{place}");
        }
        self.called = true;
        self.done.extend(call.end(Value::Null, whole, events).map(|block| (place, block)));
    }

    fn finish(&mut self, response: &Value, events: &mut Vec<ModelEvent>) {
        self.begin(response, events);
        // A reply that reached its limit may leave a call open.
        for (place, call) in std::mem::take(&mut self.calls) {
            self.call(place, call, false, events);
        }
        let stop = match response["incomplete_details"]["reason"].as_str() {
            Some("max_output_tokens") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::ContentFilter,
            Some(_) => StopReason::Other,
            None if self.called => StopReason::ToolUse,
            None if self.refused => StopReason::Refusal,
            None => StopReason::EndTurn,
        };
        let (web_searches, code_runs) = self.billed(&response["usage"]);
        let usage = Usage { web_searches, code_runs, ..usage(&response["usage"]) };
        events.push(ModelEvent::Usage(usage));
        let assistant_blocks = call::in_order(&mut self.done);
        events.push(ModelEvent::Finished { stop, assistant_blocks, usage });
    }
}

/// The pages that a search has found, and those that a text cites.
fn found(item: &Value) -> Vec<WebSource> {
    let listed = |list: &Value| {
        let pages = list.as_array().into_iter().flatten();
        pages.filter_map(|page| WebSource::new(&page["url"], &page["title"], page)).collect::<Vec<_>>()
    };
    let mut found = listed(&item["action"]["sources"]);
    for part in item["content"].as_array().into_iter().flatten() {
        found.extend(listed(&part["annotations"]));
    }
    found
}

/// OpenAI counts cached tokens as part of the input; [`Usage`] does not.
fn usage(usage: &Value) -> Usage {
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let input = count(&usage["input_tokens"]);
    let details = &usage["input_tokens_details"];
    let cache_read_tokens = count(&details["cached_tokens"]).min(input);
    let written = count(&details["cache_write_tokens"]).min(input - cache_read_tokens);
    let cache_write_1h_tokens = count(&details["cache_write_tokens_details"]["ttl_12h_tokens"]).min(written);
    Usage {
        input_tokens: input - cache_read_tokens - written,
        cache_read_tokens,
        cache_write_5m_tokens: written - cache_write_1h_tokens,
        cache_write_1h_tokens,
        output_tokens: count(&usage["output_tokens"]),
        reasoning_tokens: count(&usage["output_tokens_details"]["reasoning_tokens"]),
        web_searches: 0,
        code_runs: 0,
        estimated: false,
    }
}

#[cfg(test)]
#[path = "responses_tests.rs"]
mod tests;
