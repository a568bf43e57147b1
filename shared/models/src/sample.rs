//! Requests and replies for the tests of the codecs.

use domain::models::{
    Block, CacheTtl, Message, ModelError, ModelEvent, ModelRequest, Role, SystemBlock, ToolSpec,
};
use serde_json::{Value, json};

use super::call::Decode;

/// A request with two rules and one tool, whose name and description are given.
pub fn request(tool: (&str, &str), messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        system: vec![SystemBlock::cached("rules", CacheTtl::OneHour), SystemBlock::plain("now: noon")],
        tools: vec![spec(tool.0, tool.1)],
        messages,
        max_output_tokens: 1_000,
        cache_last_turn: true,
        ..ModelRequest::default()
    }
}

/// A request with nothing special.
pub fn hello() -> ModelRequest {
    ModelRequest { messages: vec![Message::user("Hello")], max_output_tokens: 100, ..ModelRequest::default() }
}

pub const WEATHER: (&str, &str) = ("get_weather", "Says the weather.");

pub fn spec(name: &str, description: &str) -> ToolSpec {
    let input_schema = json!({"type": "object"});
    ToolSpec { name: name.into(), description: description.into(), input_schema }
}

pub fn message(role: Role, content: Vec<Block>) -> Message {
    Message { role, content }
}

pub fn tool_use(id: &str, name: &str, input: Value) -> Block {
    Block::ToolUse { id: id.into(), name: name.into(), input }
}

pub fn result(id: &str, content: &str, is_error: bool) -> Block {
    Block::ToolResult { tool_use_id: id.into(), content: content.into(), is_error }
}

/// A piece of text that a model wrote.
pub fn said(text: &str) -> ModelEvent {
    ModelEvent::TextDelta(text.into())
}

/// The events of an answer that may go on.
pub fn events(decoder: &mut impl Decode, data: &[Value]) -> Result<Vec<ModelEvent>, ModelError> {
    let mut events = Vec::new();
    for data in data {
        events.extend(decoder.data(&data.to_string())?);
    }
    Ok(events)
}

/// The events of an answer that ends here.
pub fn whole(mut decoder: impl Decode, data: &[Value]) -> Result<Vec<ModelEvent>, ModelError> {
    let mut events = events(&mut decoder, data)?;
    if !matches!(events.last(), Some(ModelEvent::Finished { .. })) {
        events.extend(decoder.end()?);
    }
    Ok(events)
}
