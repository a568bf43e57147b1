//! The rules by which the Anthropic API refuses requests; [`check_converse`] has those of Bedrock, and [`check_xai`] those of xAI. The
//! servers that replace them use these rules: the tests' fakes and the demo model. A fake that accepts everything would hide failures that the real API reports.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use domain::models::image::MediaType;
use serde_json::Value;

mod converse;
mod xai;

pub use converse::check_converse;
pub use xai::check_xai;

/// Checks the body of `POST /v1/messages`.
///
/// # Errors
/// The message of the `invalid_request_error`.
pub fn check(body: &Value) -> Result<(), String> {
    const FIELDS: [&str; 11] = [
        "model",
        "max_tokens",
        "stream",
        "system",
        "tools",
        "tool_choice",
        "messages",
        "metadata",
        "thinking",
        "output_config",
        "context_management",
    ];
    let object = body.as_object().ok_or("the body must be a JSON object")?;
    if let Some(unknown) = object.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        return Err(format!("{unknown}: Extra inputs are not permitted"));
    }
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err("model: Field required".into());
    }
    if body["max_tokens"].as_u64().is_none_or(|tokens| tokens == 0) {
        return Err("max_tokens: Field required, at least 1".into());
    }
    check_options(body)?;
    check_tools(body)?;
    check_messages(&body["messages"])?;
    check_cache(body)
}

/// Checks how the model is to think and to answer.
fn check_options(body: &Value) -> Result<(), String> {
    let forced = matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool"));
    match body["thinking"]["type"].as_str() {
        None if body["thinking"].is_null() => {}
        Some("adaptive" | "enabled") if forced => {
            return Err("Thinking may not be enabled when tool_choice forces tool use.".into());
        }
        Some("adaptive" | "disabled") => {}
        _ => return Err("thinking.type: Input should be 'adaptive', 'disabled' or 'enabled'".into()),
    }
    let config = &body["output_config"];
    if let Some(effort) = config.get("effort")
        && !matches!(effort.as_str(), Some("low" | "medium" | "high" | "xhigh" | "max"))
    {
        return Err("output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'".into());
    }
    if let Some(format) = config.get("format")
        && (format["type"] != "json_schema" || format["schema"]["additionalProperties"] != false)
    {
        return Err(
            "output_config.format.schema: 'additionalProperties' must be explicitly set to false".into()
        );
    }
    for edit in items(&body["context_management"]["edits"]) {
        if !matches!(edit["type"].as_str(), Some("clear_tool_uses_20250919" | "clear_thinking_20251015")) {
            return Err("context_management.edits: unknown type".into());
        }
    }
    Ok(())
}

fn check_tools(body: &Value) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for (index, tool) in items(&body["tools"]).iter().enumerate() {
        let name = tool["name"].as_str().unwrap_or_default();
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if !(1..=64).contains(&name.len()) || !name.bytes().all(allowed) {
            return Err(format!("tools.{index}.name: must match ^[a-zA-Z0-9_-]{{1,64}}$"));
        }
        if !names.insert(name) {
            return Err("tools: Tool names must be unique.".into());
        }
        match tool["type"].as_str() {
            None => {}
            Some("web_search_20250305") if name == "web_search" && tool["max_uses"].as_u64() > Some(0) => {
                continue;
            }
            Some("code_execution_20250825") if name == "code_execution" => continue,
            Some(other) => return Err(format!("tools.{index}: there is no tool {other} of this form")),
        }
        if tool["input_schema"]["type"] != "object" {
            return Err(format!("tools.{index}.input_schema.type: must be 'object'"));
        }
    }
    match (&body["tool_choice"], body["tool_choice"]["type"].as_str()) {
        (Value::Null, _) => Ok(()),
        _ if names.is_empty() => Err("tool_choice: may only be specified while providing tools".into()),
        (_, Some("auto" | "any" | "none")) => Ok(()),
        (choice, Some("tool")) if choice["name"].as_str().is_some_and(|name| names.contains(name)) => Ok(()),
        _ => Err("tool_choice: must be auto, any, none or one of the tools".into()),
    }
}

fn check_messages(messages: &Value) -> Result<(), String> {
    if items(messages).is_empty() {
        return Err("messages: at least one message is required".into());
    }
    let mut unanswered: BTreeSet<&str> = BTreeSet::new();
    // Calls that the API itself makes. Their results may come in a later reply, but not after new words.
    let mut pending: BTreeSet<&str> = BTreeSet::new();
    for (index, message) in items(messages).iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        match (index, role) {
            (0, "user") | (1.., "user" | "assistant") => {}
            (0, _) => return Err("messages: first message must use the \"user\" role".into()),
            _ => return Err(format!("messages.{index}.role: must be user or assistant")),
        }
        let blank = |text: &Value| text.as_str().is_none_or(|text| text.trim().is_empty());
        let blocks = match &message["content"] {
            Value::Array(blocks) if !blocks.is_empty() => blocks.as_slice(),
            text @ Value::String(_) if !blank(text) => &[],
            _ => return Err(format!("messages.{index}: all messages must have non-empty content")),
        };
        let mut calls = BTreeSet::new();
        for (place, block) in blocks.iter().enumerate() {
            let at = format!("messages.{index}.content.{place}");
            match block["type"].as_str().unwrap_or_default() {
                "text" if blank(&block["text"]) => {
                    return Err("messages: text content blocks must contain non-whitespace text".into());
                }
                "tool_use" if role == "assistant" => {
                    if !block["input"].is_object() {
                        return Err(format!("{at}.tool_use.input: Input should be a valid dictionary"));
                    }
                    calls.insert(block["id"].as_str().unwrap_or_default());
                }
                "tool_result" if role == "user" => {
                    if !unanswered.remove(block["tool_use_id"].as_str().unwrap_or_default()) {
                        return Err(format!("{at}: unexpected `tool_use_id` found in `tool_result` blocks"));
                    }
                }
                "image" if role == "user" => check_image(&block["source"], &at)?,
                "text" | "document" => {}
                "thinking" | "redacted_thinking" if role == "assistant" => {}
                "server_tool_use" if role == "assistant" => {
                    pending.insert(block["id"].as_str().unwrap_or_default());
                }
                kind if role == "assistant" && kind.ends_with("_tool_result") => {
                    if !pending.remove(block["tool_use_id"].as_str().unwrap_or_default()) {
                        return Err(format!("{at}: unexpected `tool_use_id` found in `{kind}` blocks"));
                    }
                }
                _ => return Err(format!("{at}.type: not allowed for the role {role}")),
            }
        }
        let has_words = blocks.iter().any(|block| block["type"] != "tool_result") || blocks.is_empty();
        if role == "user" && has_words && !pending.is_empty() {
            return Err(format!("messages.{index}: `server_tool_use` ids were found without a result block"));
        }
        if !unanswered.is_empty() {
            return Err(format!(
                "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after"
            ));
        }
        unanswered = calls;
    }
    if unanswered.is_empty() {
        Ok(())
    } else {
        Err("messages: `tool_use` ids were found without `tool_result` blocks immediately after".into())
    }
}

fn check_image(source: &Value, at: &str) -> Result<(), String> {
    let data = BASE64.decode(source["data"].as_str().unwrap_or_default()).unwrap_or_default();
    let Some(kind) = MediaType::of(&data).filter(|_| source["type"] == "base64") else {
        return Err(format!("{at}.image.source.base64: Could not process image"));
    };
    if source["media_type"] != kind.name() {
        return Err(format!(
            "{at}.image.source.base64: The image was specified using the {} media type, but appears to be {}",
            source["media_type"],
            kind.name()
        ));
    }
    Ok(())
}

/// Checks the cache marks in the order of the prefix: tools, system, messages.
fn check_cache(body: &Value) -> Result<(), String> {
    let content = items(&body["messages"]).iter().flat_map(|message| items(&message["content"]));
    let blocks = items(&body["tools"]).iter().chain(items(&body["system"])).chain(content);
    let (mut marks, mut short) = (0, false);
    for block in blocks.filter(|block| !block["cache_control"].is_null()) {
        marks += 1;
        let mark = &block["cache_control"];
        if mark["type"] != "ephemeral"
            || matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
        {
            return Err("cache_control: must be ephemeral, and not on a thinking block".into());
        }
        match mark["ttl"].as_str().unwrap_or("5m") {
            "5m" => short = true,
            "1h" if short => {
                return Err("cache_control: a ttl='1h' block must not come after a ttl='5m' block".into());
            }
            "1h" => {}
            _ => return Err("cache_control.ttl: Input should be '5m' or '1h'".into()),
        }
    }
    if marks > 4 {
        return Err(format!("A maximum of 4 blocks with cache_control may be provided. Found {marks}."));
    }
    Ok(())
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request() -> Value {
        json!({
            "model": "m", "max_tokens": 1,
            "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
            "tools": [{"name": "t", "input_schema": {"type": "object"}}],
            "messages": [
                {"role": "user", "content": "u"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "t", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "r"}]},
            ],
        })
    }

    #[test]
    fn requests_that_the_api_refuses_are_refused() {
        assert_eq!(check(&request()), Ok(()));
        let refused = |pointer: &str, value: Value, words: &str| {
            let mut body = request();
            if let Some(place) = body.pointer_mut(pointer) {
                *place = value;
            } else {
                body[&pointer[1..]] = value;
            }
            let error = check(&body).expect_err(pointer);
            assert!(error.contains(words), "{pointer}: {error}");
        };
        let text = |text: &str| json!({"type": "text", "text": text});
        let marked = |ttl: &str| json!({"type": "text", "text": "s", "cache_control": {"type": "ephemeral", "ttl": ttl}});
        refused("/temperature", json!(1), "Extra inputs");
        refused("/thinking", json!({"type": "always"}), "thinking.type");
        refused("/output_config", json!({"effort": "some"}), "effort");
        refused(
            "/output_config",
            json!({"format": {"type": "json_schema", "schema": {}}}),
            "additionalProperties",
        );
        refused("/context_management", json!({"edits": [{"type": "clear_all"}]}), "context_management");
        refused("/model", json!(""), "model");
        refused("/max_tokens", Value::Null, "max_tokens");
        refused("/max_tokens", json!(0), "max_tokens");
        refused("/tools/0/name", json!("a b"), "name");
        refused("/tools/0/input_schema", json!({}), "input_schema");
        refused("/tools", json!([request()["tools"][0], request()["tools"][0]]), "unique");
        refused("/tool_choice", json!({"type": "tool", "name": "x"}), "tool_choice");
        refused("/tool_choice", json!({"type": "required"}), "tool_choice");
        refused("/messages", json!([]), "at least one");
        refused("/messages/0/role", json!("assistant"), "first message");
        refused("/messages/2/role", json!("system"), "role");
        refused("/messages/0/content", json!(" "), "non-empty");
        refused("/messages/0/content", json!([text(" ")]), "non-whitespace");
        refused("/messages/1/content/0/input", json!([]), "dictionary");
        refused("/messages/2/content/0/tool_use_id", json!("2"), "unexpected");
        refused("/messages/2/content", json!("never mind"), "without `tool_result`");
        refused("/messages/1/role", json!("user"), "not allowed");
        let search = json!({"type": "server_tool_use", "id": "2", "name": "web_search", "input": {}});
        let found = json!({"type": "web_search_tool_result", "tool_use_id": "2", "content": []});
        refused("/messages/0/content", json!([search]), "not allowed");
        refused("/messages/1/content", json!([found]), "unexpected");
        let searched = |reply: Value, next: Value| {
            let said = [("user", json!("u")), ("assistant", reply), ("user", next)];
            said.map(|(role, content)| json!({"role": role, "content": content}))
        };
        let cut_off = json!(searched(json!([search]), json!("u")));
        refused("/messages", cut_off, "`server_tool_use` ids");
        let mut answered = request();
        answered["messages"] = json!(searched(json!([search, found]), json!("u")));
        assert_eq!(check(&answered), Ok(()));
        let image = |kind: &str, data: &str| json!([{"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}]);
        refused("/messages/0/content", image("image/png", "AAAA"), "Could not process image");
        refused("/messages/0/content", image("image/png", "R0lGODlhAQABAA=="), "appears to be image/gif");
        refused("/messages/1/content", image("image/gif", "R0lGODlhAQABAA=="), "not allowed");
        refused("/system", json!([marked("5m"), marked("1h")]), "must not come after");
        refused("/system", json!([marked("2h")]), "ttl");
        refused(
            "/system",
            json!([marked("1h"), marked("1h"), marked("1h"), marked("5m"), marked("5m")]),
            "maximum of 4",
        );
        refused("/system/0/cache_control/type", json!("eternal"), "ephemeral");
        let mut cut = request();
        cut["messages"].as_array_mut().unwrap().pop();
        assert!(check(&cut).is_err());
    }
}
