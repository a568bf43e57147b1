//! The Gemini API's format, in both directions. Everything except [`Google`] itself is pure.
//!
//! A part of a reply may carry a `thoughtSignature`, which the API wants back with the same part. It is kept as a native
//! block of its own, directly before the block that it belongs to.

use domain::models::error::classify_event;
use domain::models::prices::{self, EmbeddingModel, Thinks};
use domain::models::{
    Block, ModelError, ModelEvent, ModelId, ModelRequest, Provider, ProviderTool, Role, SamplingParameter,
    StopReason, ToolChoice, Usage, WebSource, estimate,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::call::{self, Call, Decode, Endpoint};
use super::embeddings::{self, Format};
use super::{Embedding, EventStream, Model};

/// What every Gemini model takes. Some of them refuse penalties.
const SAMPLES: [SamplingParameter; 2] = [SamplingParameter::Temperature, SamplingParameter::TopP];

const SIGNATURE: &str = "thoughtSignature";

/// Google's Gemini models.
#[derive(Debug, Clone)]
pub struct Google {
    endpoint: Endpoint,
}

impl Google {
    /// `endpoint` is the base URL without `/v1beta`.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }
}

impl Model for Google {
    fn provider(&self) -> Provider {
        Provider::Google
    }

    fn list(&self) -> Option<BoxFuture<'static, Result<(), ModelError>>> {
        Some(self.endpoint.clone().list("/v1beta/models", Provider::Google).boxed())
    }

    fn embed(&self, model: &'static EmbeddingModel, texts: Vec<String>) -> Option<Embedding> {
        Some(embeddings::embed(self.endpoint.clone(), Format::Google, model, texts).boxed())
    }

    fn samples(&self) -> &'static [SamplingParameter] {
        &SAMPLES
    }

    fn stream(&self, model: &ModelId, request: &ModelRequest) -> EventStream {
        let call = path(model)
            .and_then(|path| Ok(Call { path: path.into(), header: None, body: encode(model, request)? }));
        call::stream(self.endpoint.clone(), Provider::Google, call, Decoder::new(model, request))
    }
}

/// The path of a call. Unlike with other providers, the model's name is a part of it, unchanged.
///
/// # Errors
/// [`ModelError::NotFound`] if the name would change the path's meaning.
fn path(model: &ModelId) -> Result<String, ModelError> {
    let id = model.as_str();
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'/' | b':' | b'@');
    if id.is_empty()
        || !id.bytes().all(plain)
        || id.split('/').any(|part| part.is_empty() || part == ".." || part == ".")
    {
        return Err(ModelError::NotFound);
    }
    // Tuned models have a collection of their own in their names.
    let collection = if id.contains('/') { "" } else { "models/" };
    Ok(format!("/v1beta/{collection}{id}:streamGenerateContent?alt=sse"))
}

/// The body of a `streamGenerateContent` call. The API caches by prefix automatically.
///
/// # Errors
/// [`ModelError::Unsendable`] if the API would refuse the structure of the conversation.
pub fn encode(model: &ModelId, request: &ModelRequest) -> Result<Value, ModelError> {
    let turns = call::turns(request, Provider::Google)?;
    // A result names its function, and not only the call.
    let mut names: Map<String, Value> = Map::new();
    let mut contents = Vec::with_capacity(turns.len());
    for (role, blocks) in &turns {
        let role = match role {
            Role::User => "user",
            Role::Assistant => "model",
        };
        contents.push(json!({"role": role, "parts": parts(blocks, &mut names)}));
    }
    let mut body = json!({
        "contents": contents,
        "generationConfig": {"maxOutputTokens": request.max_output_tokens},
    });
    for (parameter, name) in SAMPLES.into_iter().zip(["temperature", "topP"]) {
        if let Some(value) = request.sampling.get(&parameter) {
            body["generationConfig"][name] = value.clone().into();
        }
    }
    if let Some(effort) = request.effort.filter(|_| prices::thinks(model) == Some(Thinks::Level)) {
        body["generationConfig"]["thinkingConfig"] =
            json!({"thinkingLevel": effort, "includeThoughts": true});
    }
    // The models before those that think by levels refuse a schema beside tools.
    let takes_both = request.tools.is_empty() || prices::thinks(model) == Some(Thinks::Level);
    if let Some(schema) = request.output_schema.as_ref().filter(|_| takes_both && prices::takes_schema(model))
    {
        body["generationConfig"]["responseMimeType"] = "application/json".into();
        body["generationConfig"]["responseJsonSchema"] = schema.clone();
    }
    let system: Vec<Value> = request
        .system
        .iter()
        .filter(|block| !block.text.trim().is_empty())
        .map(|block| json!({"text": block.text}))
        .collect();
    if !system.is_empty() {
        body["systemInstruction"] = json!({"parts": system});
    }
    let mut tools = Map::new();
    for tool in &request.provider_tools {
        let name = match tool {
            ProviderTool::WebSearch => "googleSearch",
            ProviderTool::CodeExecution => "codeExecution",
        };
        tools.insert(name.to_owned(), json!({}));
    }
    if !request.tools.is_empty() {
        let declarations: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.input_schema})
            })
            .collect();
        // Without it the API refuses its own tools beside functions.
        if !tools.is_empty() {
            body["toolConfig"]["includeServerSideToolInvocations"] = true.into();
        }
        tools.insert("functionDeclarations".to_owned(), declarations.into());
        let config = match &request.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::Any => Some(json!({"mode": "ANY"})),
            ToolChoice::Tool(name) => Some(json!({"mode": "ANY", "allowedFunctionNames": [name]})),
            ToolChoice::None => Some(json!({"mode": "NONE"})),
        };
        if let Some(config) = config {
            body["toolConfig"]["functionCallingConfig"] = config;
        }
    }
    if !tools.is_empty() {
        body["tools"] = json!([tools]);
    }
    Ok(body)
}

/// The parts of one message. `names` gives each call's function.
fn parts(blocks: &[&Block], names: &mut Map<String, Value>) -> Vec<Value> {
    let mut parts = Vec::with_capacity(blocks.len());
    let mut signature: Option<Value> = None;
    let signed = |mut part: Value, signature: &mut Option<Value>| {
        if let Some(signature) = signature.take() {
            part[SIGNATURE] = signature;
        }
        part
    };
    for block in blocks {
        let part = match block {
            Block::Text { text } => json!({"text": text}),
            Block::Image(image) => {
                json!({"inlineData": {"mimeType": image.media_type, "data": image.base64()}})
            }
            Block::ToolUse { id, name, input } => {
                names.insert(id.clone(), name.as_str().into());
                json!({"functionCall": {"id": id, "name": name, "args": input}})
            }
            Block::ToolResult { tool_use_id, content, is_error } => {
                let key = if *is_error { "error" } else { "result" };
                let name = names.get(tool_use_id).cloned().unwrap_or_default();
                json!({"functionResponse": {"id": tool_use_id, "name": name, "response": {key: content}}})
            }
            Block::Native { block, .. } => match alone(block) {
                Some(next) => {
                    // A signature whose part had no text.
                    if signature.is_some() {
                        parts.push(signed(json!({"text": ""}), &mut signature));
                    }
                    signature = Some(next.clone());
                    continue;
                }
                None => block.clone(),
            },
        };
        parts.push(signed(part, &mut signature));
    }
    if signature.is_some() {
        parts.push(signed(json!({"text": ""}), &mut signature));
    }
    parts
}

/// The signature of a block that is nothing else.
fn alone(block: &Value) -> Option<&Value> {
    block.as_object().filter(|fields| fields.len() == 1)?.get(SIGNATURE)
}

/// Converts the stream's data to events. Each piece has the form of a whole answer; its counts replace those before. There
/// is no event for the end.
#[derive(Debug, Clone)]
pub struct Decoder {
    model: ModelId,
    /// The estimated input, if the API reports no usage.
    likely_input: u64,
    begun: bool,
    text: String,
    blocks: Vec<Block>,
    calls: usize,
    stop: Option<StopReason>,
    usage: Option<Usage>,
    web_searches: u64,
    bytes: usize,
}

impl Decode for Decoder {
    fn data(&mut self, data: &str) -> Result<Vec<ModelEvent>, ModelError> {
        let chunk: Value = serde_json::from_str(data).map_err(|_| ModelError::Malformed)?;
        if !chunk["error"].is_null() || !chunk[0]["error"].is_null() {
            return Err(classify_event(Provider::Google, &chunk));
        }
        let mut events = Vec::new();
        if !self.begun {
            self.begun = true;
            let model = chunk["modelVersion"].as_str().map_or_else(|| self.model.clone(), ModelId::new);
            events.push(ModelEvent::Started { model });
        }
        // The API reports the searches, but not in the usage. Each is paid for.
        let searches =
            chunk["candidates"][0]["groundingMetadata"]["webSearchQueries"].as_array().map_or(0, Vec::len);
        self.web_searches = self.web_searches.max(searches as u64);
        let found = chunk["candidates"][0]["groundingMetadata"]["groundingChunks"].as_array();
        let found = found.into_iter().flatten().map(|chunk| &chunk["web"]);
        let found: Vec<_> =
            found.filter_map(|page| WebSource::new(&page["uri"], &page["title"], page)).collect();
        if !found.is_empty() {
            events.push(ModelEvent::Found(found));
        }
        let counted = usage(&chunk["usageMetadata"]).or(self.usage.filter(|_| searches > 0));
        let counted = counted.map(|usage| Usage { web_searches: self.web_searches, ..usage });
        if let Some(usage) = counted.filter(|usage| self.usage != Some(*usage)) {
            self.usage = Some(usage);
            events.push(ModelEvent::Usage(usage));
        }
        if chunk["promptFeedback"]["blockReason"].is_string() {
            return Err(ModelError::Refused);
        }
        let candidate = &chunk["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            self.part(part, &mut events);
        }
        match candidate["finishReason"].as_str() {
            None => {}
            // The model wrote an invalid call. Its text is not in the answer.
            Some("MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL") => return Err(ModelError::Malformed),
            Some(reason) => self.stop = Some(self.stop_reason(reason)),
        }
        Ok(events)
    }

    fn end(&mut self) -> Result<Vec<ModelEvent>, ModelError> {
        let stop = self.stop.ok_or(ModelError::Truncated)?;
        self.close_text();
        let usage = self.usage.unwrap_or_else(|| Usage {
            input_tokens: self.likely_input,
            output_tokens: estimate::tokens(&self.model, self.bytes),
            web_searches: self.web_searches,
            estimated: true,
            ..Usage::default()
        });
        let assistant_blocks = std::mem::take(&mut self.blocks);
        Ok(vec![ModelEvent::Finished { stop, assistant_blocks, usage }])
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
            blocks: Vec::new(),
            calls: 0,
            stop: None,
            usage: None,
            web_searches: 0,
            bytes: 0,
        }
    }

    fn part(&mut self, part: &Value, events: &mut Vec<ModelEvent>) {
        // Summaries of thoughts are not sent back; their signature comes with the part after them.
        if part["thought"].as_bool() == Some(true) {
            if let Some(text) = part["text"].as_str().filter(|text| !text.is_empty()) {
                self.bytes += text.len();
                events.push(ModelEvent::ThinkingDelta(text.to_owned()));
            }
            return;
        }
        let signature = part.get(SIGNATURE);
        if signature.is_some() || part.get("text").is_none() {
            self.close_text();
        }
        if let Some(signature) = signature {
            let block = json!({SIGNATURE: signature});
            self.blocks.push(Block::Native { provider: Provider::Google, block });
        }
        if let Some(text) = part["text"].as_str() {
            if !text.is_empty() {
                self.text.push_str(text);
                self.bytes += text.len();
                events.push(ModelEvent::TextDelta(text.to_owned()));
            }
            // What follows does not belong to this signature.
            if signature.is_some() {
                self.close_text();
            }
        } else if let Some(call) = part.get("functionCall") {
            self.call(call, events);
        } else if let Some(mut block) = part.as_object().cloned() {
            // Code that the provider ran, and future kinds.
            block.remove(SIGNATURE);
            if !block.is_empty() {
                self.blocks.push(Block::Native { provider: Provider::Google, block: block.into() });
            }
        }
    }

    /// A call arrives whole.
    fn call(&mut self, call: &Value, events: &mut Vec<ModelEvent>) {
        let id = call["id"].as_str().map_or_else(|| format!("call_{}", self.calls), str::to_owned);
        let name = call["name"].as_str().unwrap_or_default().to_owned();
        self.calls += 1;
        self.bytes += name.len() + call["args"].to_string().len();
        match &call["args"] {
            Value::Null => self.called(id, name, json!({}), events),
            Value::Object(_) => self.called(id, name, call["args"].clone(), events),
            other => {
                let reason = "the arguments are not a JSON object".to_owned();
                events.push(ModelEvent::InvalidToolInput { id, name, raw: other.to_string(), reason });
            }
        }
    }

    fn called(&mut self, id: String, name: String, input: Value, events: &mut Vec<ModelEvent>) {
        events.push(ModelEvent::ToolUse { id: id.clone(), name: name.clone(), input: input.clone() });
        self.blocks.push(Block::ToolUse { id, name, input });
    }

    fn close_text(&mut self) {
        if !self.text.is_empty() {
            self.blocks.push(Block::Text { text: std::mem::take(&mut self.text) });
        }
    }

    fn stop_reason(&self, reason: &str) -> StopReason {
        match reason {
            // The API has no separate reason for calls.
            "STOP" if self.calls > 0 => StopReason::ToolUse,
            "STOP" => StopReason::EndTurn,
            "MAX_TOKENS" => StopReason::MaxTokens,
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" => {
                StopReason::ContentFilter
            }
            _ => StopReason::Other,
        }
    }
}

/// Google includes cached tokens in the prompt tokens, and counts thoughts separately from the candidates. [`Usage`] counts cached
/// tokens separately, and includes thoughts in the output.
fn usage(usage: &Value) -> Option<Usage> {
    let prompt = usage["promptTokenCount"].as_u64()?;
    let count = |key: &str| usage[key].as_u64().unwrap_or(0);
    let cache_read_tokens = count("cachedContentTokenCount").min(prompt);
    let reasoning_tokens = count("thoughtsTokenCount");
    Some(Usage {
        input_tokens: prompt - cache_read_tokens + count("toolUsePromptTokenCount"),
        cache_read_tokens,
        output_tokens: count("candidatesTokenCount") + reasoning_tokens,
        reasoning_tokens,
        ..Usage::default()
    })
}

#[cfg(test)]
#[path = "google_tests.rs"]
mod tests;
