//! The part of OpenAI's Chat Completions format that agents support.

use domain::agents::Agent;
use domain::chats::conversation::NewMessage;
use domain::ids::{AgentId, RunId};
use domain::models::{ImageInput, Role, Sampling, SamplingParameter, Usage};
use domain::runs::form::{JsonForm, MAX_SCHEMA, MAX_STOP, MAX_STOPS, MIN_TOKENS, ReplyForm};
use domain::text::json_schema::Schema;
use domain::validate::FieldErrors;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shared::flows::turn::completions::Conversation;
use shared::{Error, Result};
use utoipa::ToSchema;

/// How many fields without an effect an answer names.
const MAX_NAMED: usize = 32;

/// A request in OpenAI's format. Parameters of that format that would change the form of the answer and that agents do not have are
/// refused, unless they have their default. Other fields have no effect, and the header `x-lamplighter-ignored` of the answer names them.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({"model": "agt_0192f5a08c3d7e9fa1b2c3d4e5f60718", "messages": [{"role": "user", "content": "What is due?"}]}))]
pub struct CompletionRequest {
    /// The agent's id.
    pub model: String,
    /// The whole conversation, oldest first. The last message is the person's.
    pub messages: Vec<CompletionMessage>,
    /// `true`: server-sent events. Default `false`.
    #[serde(default)]
    pub stream: Option<bool>,
    /// Options of a stream.
    #[serde(default)]
    pub stream_options: Option<StreamOptions>,
    /// 1 to 4 texts. The reply ends before the first of them.
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>, max_items = 4)]
    pub stop: Option<Value>,
    /// The most tokens of the reply, with the model's reasoning, at least 16. If both limits are there, the smaller one holds.
    #[serde(default)]
    #[schema(minimum = 16)]
    pub max_completion_tokens: Option<u32>,
    /// The old name of `max_completion_tokens`.
    #[serde(default)]
    #[schema(minimum = 16)]
    pub max_tokens: Option<u32>,
    /// `{"type": "text"}`, `{"type": "json_object"}`, or `{"type": "json_schema", "json_schema": {"name": "…", "schema": {…}}}`.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub response_format: Option<Value>,
    /// Must be 1 or absent.
    #[serde(default)]
    pub n: Option<u32>,
    /// Must be empty or absent, because an agent has its own tools.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Object>>)]
    pub tools: Option<Vec<Value>>,
    /// 0 to 2. It goes to the model if the model takes it.
    #[serde(default)]
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 2)]
    pub temperature: Value,
    /// 0 to 1. It goes to the model if the model takes it.
    #[serde(default)]
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1)]
    pub top_p: Value,
    /// -2 to 2. It goes to the model if the model takes it.
    #[serde(default)]
    #[schema(value_type = Option<f64>, minimum = -2, maximum = 2)]
    pub presence_penalty: Value,
    /// -2 to 2. It goes to the model if the model takes it.
    #[serde(default)]
    #[schema(value_type = Option<f64>, minimum = -2, maximum = 2)]
    pub frequency_penalty: Value,
    /// A whole number. It goes to the model if the model takes it.
    #[serde(default)]
    #[schema(value_type = Option<i64>)]
    pub seed: Value,
    #[serde(default)]
    #[schema(ignore)]
    logprobs: Value,
    #[serde(default)]
    #[schema(ignore)]
    top_logprobs: Value,
    #[serde(default)]
    #[schema(ignore)]
    tool_choice: Value,
    #[serde(default)]
    #[schema(ignore)]
    functions: Value,
    #[serde(default)]
    #[schema(ignore)]
    function_call: Value,
    #[serde(default)]
    #[schema(ignore)]
    modalities: Value,
    #[serde(default)]
    #[schema(ignore)]
    audio: Value,
    #[serde(default)]
    #[schema(ignore)]
    web_search_options: Value,
    /// Fields that have no effect.
    #[serde(flatten)]
    #[schema(ignore)]
    others: Map<String, Value>,
}

/// Options of a stream.
#[derive(Debug, Deserialize, ToSchema)]
pub struct StreamOptions {
    /// Whether a last chunk reports the usage.
    #[serde(default)]
    pub include_usage: Option<bool>,
}

/// One message of the conversation.
#[derive(Debug, Deserialize, ToSchema)]
pub struct CompletionMessage {
    /// `system`, `developer`, `user` or `assistant`.
    pub role: String,
    /// A text, or a list of parts of type `text` and, in messages of the user, `image_url` with a `data:` URL.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub content: Value,
}

impl CompletionRequest {
    /// The parameters that would change the form of the answer and that agents do not have, with the values that change nothing.
    fn fixed(&self) -> [(&'static str, &Value, Vec<Value>); 8] {
        [
            ("logprobs", &self.logprobs, vec![json!(false)]),
            ("top_logprobs", &self.top_logprobs, vec![json!(0)]),
            ("tool_choice", &self.tool_choice, vec![json!("auto"), json!("none")]),
            ("functions", &self.functions, vec![json!([])]),
            ("function_call", &self.function_call, vec![json!("auto"), json!("none")]),
            ("modalities", &self.modalities, vec![json!(["text"])]),
            ("audio", &self.audio, vec![]),
            ("web_search_options", &self.web_search_options, vec![]),
        ]
    }

    fn sampling(&self, errors: &mut FieldErrors) -> Sampling {
        let read = |parameter: SamplingParameter| {
            let value = match parameter {
                SamplingParameter::Temperature => &self.temperature,
                SamplingParameter::TopP => &self.top_p,
                SamplingParameter::PresencePenalty => &self.presence_penalty,
                SamplingParameter::FrequencyPenalty => &self.frequency_penalty,
                SamplingParameter::Seed => &self.seed,
            };
            match parameter.read(value) {
                Ok(value) => Some((parameter, value?)),
                Err(told) => {
                    errors.add(parameter.name(), told);
                    None
                }
            }
        };
        SamplingParameter::ALL.into_iter().filter_map(read).collect()
    }

    /// The names of the fields that have no effect, apart from sampling. Names that are no words are left out.
    pub fn without_effect(&self) -> Vec<&str> {
        let is_word = |name: &str| {
            name.len() <= 64
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
        };
        let sent = self.others.iter().filter(|(name, value)| !value.is_null() && is_word(name));
        sent.map(|(name, _)| name.as_str()).take(MAX_NAMED).collect()
    }

    /// The form of the reply.
    fn form(&self, errors: &mut FieldErrors) -> ReplyForm {
        for (name, limit) in
            [("max_completion_tokens", self.max_completion_tokens), ("max_tokens", self.max_tokens)]
        {
            if limit.is_some_and(|limit| limit < MIN_TOKENS) {
                errors.add(name, format!("must be at least {MIN_TOKENS}: some models take no smaller limit"));
            }
        }
        ReplyForm {
            stop: errors.nest("stop", read_stop(self.stop.as_ref())).unwrap_or_default(),
            max_tokens: [self.max_completion_tokens, self.max_tokens].into_iter().flatten().min(),
            json: errors
                .nest("response_format", read_format(self.response_format.as_ref()))
                .unwrap_or_default(),
            sampling: self.sampling(errors),
        }
    }

    /// The agent, the conversation, and the form of the reply.
    ///
    /// # Errors
    /// 400 with every invalid field; 404 if `model` is not the id of an agent.
    pub fn read(&self) -> Result<(AgentId, Conversation, ReplyForm), Error> {
        let mut errors = FieldErrors::default();
        let form = self.form(&mut errors);
        for (name, value, defaults) in self.fixed() {
            if !value.is_null() && !defaults.iter().any(|default| same(default, value)) {
                errors.add(name, refused(&defaults));
            }
        }
        if self.n.is_some_and(|n| n != 1) {
            errors.add("n", "must be 1: an agent gives one reply".to_owned());
        }
        if self.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
            errors.add("tools", "must be empty: an agent has its own tools".to_owned());
        }
        let mut conversation = Conversation::default();
        for (at, message) in self.messages.iter().enumerate() {
            let (content, images) = errors
                .nest(&format!("messages[{at}].content"), read_content(&message.content))
                .unwrap_or_default();
            if message.role != "user" && !images.is_empty() {
                errors.add(
                    format!("messages[{at}].content"),
                    "must have no parts of type `image_url`: only messages of the user have images",
                );
            }
            match message.role.as_str() {
                "system" | "developer" => {
                    if !conversation.system.is_empty() {
                        conversation.system.push_str("\n\n");
                    }
                    conversation.system.push_str(&content);
                }
                "user" => conversation.history.push(NewMessage { role: Role::User, content, images }),
                "assistant" => {
                    conversation.history.push(NewMessage { role: Role::Assistant, content, images });
                }
                other => errors.add(
                    format!("messages[{at}].role"),
                    format!("must be `system`, `developer`, `user` or `assistant`, is `{other}`"),
                ),
            }
        }
        match conversation.history.pop() {
            Some(NewMessage { role: Role::User, content, images }) => {
                conversation.message = content;
                conversation.images = images;
            }
            _ => errors.add("messages", "must end with a message of the user".to_owned()),
        }
        errors.into_result(())?;
        let agent = self.model.parse().map_err(|_| Error::NotFound("agent"))?;
        Ok((agent, conversation, form))
    }
}

/// Whether two values are equal. `1.0` is the same number as `1`.
fn same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() < f64::EPSILON,
        _ => a == b,
    }
}

fn refused(defaults: &[Value]) -> String {
    let told = "agents do not have this parameter";
    match defaults {
        [] => format!("must be absent: {told}"),
        _ => {
            let defaults: Vec<String> = defaults.iter().map(Value::to_string).collect();
            format!("must be {} or absent: {told}", defaults.join(" or "))
        }
    }
}

/// The texts that end the reply.
fn read_stop(stop: Option<&Value>) -> Result<Vec<String>, FieldErrors> {
    let told = || format!("must be a text, or a list of 1 to {MAX_STOPS} texts");
    let texts = match stop {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(texts)) if texts.len() <= MAX_STOPS => {
            let texts: Option<Vec<String>> =
                texts.iter().map(|text| text.as_str().map(str::to_owned)).collect();
            texts.ok_or_else(|| FieldErrors::one("", told()))?
        }
        Some(_) => return Err(FieldErrors::one("", told())),
    };
    let is_fit = |text: &String| (1..=MAX_STOP).contains(&text.chars().count());
    if !texts.iter().all(is_fit) {
        return Err(FieldErrors::one("", format!("must have texts of 1 to {MAX_STOP} characters")));
    }
    Ok(texts)
}

/// The JSON that the reply must be.
fn read_format(format: Option<&Value>) -> Result<Option<JsonForm>, FieldErrors> {
    let Some(format) = format.filter(|format| !format.is_null()) else { return Ok(None) };
    match format["type"].as_str() {
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(JsonForm::Object)),
        Some("json_schema") => {
            let schema = &format["json_schema"]["schema"];
            if schema.to_string().len() > MAX_SCHEMA {
                let told = format!("may have at most {MAX_SCHEMA} bytes");
                return Err(FieldErrors::one("json_schema.schema", told));
            }
            let mut errors = FieldErrors::default();
            let schema = errors.nest("json_schema.schema", Schema::new(schema.clone()));
            errors.into_result(schema.map(JsonForm::Schema))
        }
        _ => Err(FieldErrors::one("type", "must be `text`, `json_object` or `json_schema`")),
    }
}

/// The text and the images of a message.
fn read_content(content: &Value) -> Result<(String, Vec<ImageInput>), FieldErrors> {
    let parts = match content {
        Value::Null => return Ok((String::new(), Vec::new())),
        Value::String(text) => return Ok((text.clone(), Vec::new())),
        Value::Array(parts) => parts,
        _ => return Err(FieldErrors::one("", "must be a text, or parts of type `text` or `image_url`")),
    };
    let mut errors = FieldErrors::default();
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for (at, part) in parts.iter().enumerate() {
        match (part["type"].as_str(), part["text"].as_str(), part["image_url"]["url"].as_str()) {
            (Some("text"), Some(text), _) => texts.push(text),
            (Some("image_url"), _, Some(url)) => match ImageInput::from_url(url) {
                Ok(image) => images.push(image),
                Err(told) => errors.add(format!("[{at}].image_url.url"), told),
            },
            _ => errors.add(format!("[{at}]"), "must be a part of type `text` or `image_url`"),
        }
    }
    errors.into_result((texts.join("\n\n"), images))
}

/// A reply in OpenAI's format.
#[derive(Serialize, ToSchema)]
pub struct ChatCompletion {
    /// The id of the run that wrote the reply.
    #[schema(value_type = String)]
    pub id: RunId,
    /// `chat.completion`; in a stream `chat.completion.chunk`.
    pub object: &'static str,
    /// In seconds since 1970.
    pub created: i64,
    /// The agent's id.
    pub model: String,
    /// One choice. Empty in the chunk that reports the usage.
    pub choices: Vec<Choice>,
    /// The usage. In a stream, only the last chunk has it, and only if the request asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<CompletionUsage>,
}

/// The reply. In a stream, a piece of it.
#[derive(Serialize, ToSchema)]
pub struct Choice {
    /// 0.
    pub index: u32,
    /// The whole reply. Absent in a stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<ReplyMessage>,
    /// Only in a stream: the first chunk has the `role`, the others have the next part of `content`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub delta: Option<Value>,
    /// `stop`. `length` if the reply reached its limit, or if the response had to end before the run: then the run continues.
    pub finish_reason: Option<&'static str>,
}

/// A whole reply.
#[derive(Serialize, ToSchema)]
pub struct ReplyMessage {
    /// `assistant`
    pub role: &'static str,
    /// The reply, with each draft and its address. If the reply must be JSON, it is only that.
    pub content: String,
}

/// The tokens of all model calls for this reply.
#[derive(Serialize, ToSchema)]
pub struct CompletionUsage {
    /// All input, cached or not.
    pub prompt_tokens: u64,
    /// All output, including the model's reasoning.
    pub completion_tokens: u64,
    /// Input and output.
    pub total_tokens: u64,
    /// `cached_tokens`: the part of the input that was read from a cache.
    #[schema(value_type = Object)]
    pub prompt_tokens_details: Value,
}

impl From<Usage> for CompletionUsage {
    fn from(usage: Usage) -> Self {
        let prompt_tokens = usage.total_input();
        Self {
            prompt_tokens,
            completion_tokens: usage.output_tokens,
            total_tokens: prompt_tokens + usage.output_tokens,
            prompt_tokens_details: json!({"cached_tokens": usage.cache_read_tokens}),
        }
    }
}

/// The agents, as models of OpenAI's format.
#[derive(Serialize, ToSchema)]
pub struct ModelList {
    /// `list`
    pub object: &'static str,
    /// Newest first.
    pub data: Vec<ModelEntry>,
}

/// An agent, as a model of OpenAI's format.
#[derive(Serialize, ToSchema)]
pub struct ModelEntry {
    /// The agent's id.
    pub id: AgentId,
    /// `model`
    pub object: &'static str,
    /// In seconds since 1970.
    pub created: i64,
    /// `lamplighter`
    pub owned_by: &'static str,
    /// The agent's name.
    pub name: String,
}

impl From<Agent> for ModelEntry {
    fn from(agent: Agent) -> Self {
        Self {
            id: agent.agent_id,
            object: "model",
            created: agent.created_at.as_second(),
            owned_by: "lamplighter",
            name: agent.name,
        }
    }
}
