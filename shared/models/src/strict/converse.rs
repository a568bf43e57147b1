//! The rules by which Bedrock's Converse API refuses requests.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use domain::models::image::MediaType;
use serde_json::Value;

use super::items;

/// Checks the body of `POST /model/{id}/converse` and `…/converse-stream`.
///
/// # Errors
/// The message of the `ValidationException`.
pub fn check_converse(body: &Value) -> Result<(), String> {
    const FIELDS: [&str; 6] = [
        "messages",
        "system",
        "toolConfig",
        "inferenceConfig",
        "outputConfig",
        "additionalModelRequestFields",
    ];
    let object = body.as_object().ok_or("the body must be a JSON object")?;
    if let Some(unknown) = object.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        return Err(format!("extraneous key [{unknown}] is not permitted"));
    }
    if body["inferenceConfig"]["maxTokens"].as_u64() == Some(0) {
        return Err("inferenceConfig.maxTokens: must be at least 1".into());
    }
    let names = check_tools(&body["toolConfig"])?;
    for (at, block) in items(&body["system"]).iter().enumerate() {
        one_of(block, &["text", "cachePoint"], &format!("system.{at}"))?;
    }
    check_messages(&body["messages"], !names.is_empty())?;
    check_points(body)
}

/// Checks that a block has one of these fields and no other. Returns its name.
fn one_of<'a>(block: &Value, allowed: &[&'a str], at: &str) -> Result<&'a str, String> {
    let fields = block.as_object().filter(|fields| fields.len() == 1);
    let name = fields.and_then(|fields| allowed.iter().find(|name| fields.contains_key(**name)));
    let name = *name.ok_or_else(|| format!("{at}: must have exactly one of {}", allowed.join(", ")))?;
    if name == "text" && block["text"].as_str().is_none_or(|text| text.trim().is_empty()) {
        return Err(format!("The text field in the ContentBlock object at {at} is blank."));
    }
    Ok(name)
}

fn check_tools(config: &Value) -> Result<BTreeSet<&str>, String> {
    let mut names = BTreeSet::new();
    if config.is_null() {
        return Ok(names);
    }
    for (index, tool) in items(&config["tools"]).iter().enumerate() {
        let at = format!("toolConfig.tools.{index}");
        if one_of(tool, &["toolSpec", "cachePoint"], &at)? == "cachePoint" {
            continue;
        }
        let name = tool["toolSpec"]["name"].as_str().unwrap_or_default();
        if !is_name(name) || !names.insert(name) {
            return Err(format!("{at}.toolSpec.name: must be unique and match [a-zA-Z0-9_-]{{1,64}}"));
        }
        if tool["toolSpec"]["inputSchema"]["json"]["type"] != "object" {
            return Err(format!("{at}.toolSpec.inputSchema.json.type: must be object"));
        }
    }
    if names.is_empty() {
        return Err("toolConfig.tools: must have at least one tool".into());
    }
    let choice = &config["toolChoice"];
    let chosen = choice["tool"]["name"].as_str();
    if !choice.is_null()
        && (one_of(choice, &["auto", "any", "tool"], "toolConfig.toolChoice")? == "tool")
        && !chosen.is_some_and(|name| names.contains(name))
    {
        return Err("toolConfig.toolChoice.tool.name: must be one of the tools".into());
    }
    Ok(names)
}

fn check_image(image: &Value, at: &str) -> Result<(), String> {
    let data = BASE64.decode(image["source"]["bytes"].as_str().unwrap_or_default()).unwrap_or_default();
    match MediaType::of(&data) {
        Some(kind) if image["format"] == kind.format() => Ok(()),
        _ => Err(format!("{at}.image: the provided image does not match the specified format")),
    }
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

fn check_messages(messages: &Value, has_tools: bool) -> Result<(), String> {
    let mut unanswered: BTreeSet<&str> = BTreeSet::new();
    let mut before = "assistant";
    for (index, message) in items(messages).iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if !matches!((before, role), ("assistant", "user") | ("user", "assistant")) {
            return Err("A conversation must alternate between user and assistant roles, and start with a user message.".into());
        }
        before = role;
        let blocks = items(&message["content"]);
        if blocks.is_empty() {
            return Err(format!("messages.{index}.content: must not be empty"));
        }
        let mut calls = BTreeSet::new();
        for (place, block) in blocks.iter().enumerate() {
            let at = format!("messages.{index}.content.{place}");
            let allowed: &[&str] = match role {
                "user" => &["text", "image", "toolResult", "cachePoint"],
                _ => &["text", "toolUse", "reasoningContent", "cachePoint"],
            };
            match one_of(block, allowed, &at)? {
                kind @ ("toolUse" | "toolResult") => {
                    let id = block[kind]["toolUseId"].as_str().unwrap_or_default();
                    if !has_tools {
                        return Err("The toolConfig field must be defined when using toolUse and toolResult content blocks.".into());
                    }
                    if !is_name(id) {
                        return Err(format!("{at}.{kind}.toolUseId: must match [a-zA-Z0-9_-]{{1,64}}"));
                    }
                    if kind == "toolResult" && !unanswered.remove(id) {
                        return Err(format!("{at}: there is no toolUse with this id in the message before"));
                    }
                    if kind == "toolUse" {
                        if !block[kind]["input"].is_object() {
                            return Err(format!("{at}.toolUse.input: must be an object"));
                        }
                        calls.insert(id);
                    }
                    for (result, part) in items(&block[kind]["content"]).iter().enumerate() {
                        one_of(
                            part,
                            &["text", "json", "image"],
                            &format!("{at}.toolResult.content.{result}"),
                        )?;
                    }
                }
                "image" => check_image(&block["image"], &at)?,
                "reasoningContent" => {
                    let thought = &block["reasoningContent"];
                    let kind = one_of(thought, &["reasoningText", "redactedContent"], &at)?;
                    if kind == "reasoningText"
                        && thought[kind]["signature"].as_str().is_none_or(str::is_empty)
                    {
                        return Err(format!("{at}: the signature is missing"));
                    }
                }
                _ => {}
            }
        }
        if !unanswered.is_empty() {
            return Err(format!(
                "messages.{index}: Expected toolResult blocks for all toolUse blocks before"
            ));
        }
        unanswered = calls;
    }
    if before != "user" {
        return Err("The conversation must end with a user message.".into());
    }
    Ok(())
}

/// Checks the cache points in the order of the prefix: tools, system, messages.
fn check_points(body: &Value) -> Result<(), String> {
    let content = items(&body["messages"]).iter().flat_map(|message| items(&message["content"]));
    let blocks = items(&body["toolConfig"]["tools"]).iter().chain(items(&body["system"])).chain(content);
    let (mut points, mut short) = (0, false);
    for point in blocks.filter_map(|block| block.get("cachePoint")) {
        points += 1;
        if point["type"] != "default" {
            return Err("cachePoint.type: must be default".into());
        }
        match point["ttl"].as_str().unwrap_or("5m") {
            "5m" => short = true,
            "1h" if !short => {}
            "1h" => return Err("cachePoint: a ttl of 1h must not come after a ttl of 5m".into()),
            _ => return Err("cachePoint.ttl: must be 5m or 1h".into()),
        }
    }
    if points > 4 {
        return Err(format!("at most 4 cache points are allowed, found {points}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request() -> Value {
        json!({
            "system": [{"text": "s"}, {"cachePoint": {"type": "default", "ttl": "1h"}}],
            "toolConfig": {"tools": [{"toolSpec": {"name": "t", "inputSchema": {"json": {"type": "object"}}}}]},
            "messages": [
                {"role": "user", "content": [{"text": "u"}]},
                {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "t", "input": {}}}]},
                {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": [{"text": "r"}]}}]},
            ],
        })
    }

    #[test]
    fn requests_that_the_api_refuses_are_refused() {
        assert_eq!(check_converse(&request()), Ok(()));
        let refused = |pointer: &str, value: Value, words: &str| {
            let mut body = request();
            match body.pointer_mut(pointer) {
                Some(place) => *place = value,
                None => body[&pointer[1..]] = value,
            }
            let error = check_converse(&body).expect_err(pointer);
            assert!(error.contains(words), "{pointer}: {error}");
        };
        let point = |ttl: &str| json!({"cachePoint": {"type": "default", "ttl": ttl}});
        refused("/max_tokens", json!(1), "not permitted");
        refused("/inferenceConfig", json!({"maxTokens": 0}), "at least 1");
        refused("/system/0", json!({"text": " "}), "blank");
        refused("/system/0", json!({"text": "s", "cachePoint": {"type": "default"}}), "exactly one");
        refused("/system", json!([point("5m"), point("1h")]), "must not come after");
        refused("/system", json!([point("2h")]), "ttl");
        refused("/system", json!(vec![point("5m"); 5]), "at most 4");
        refused("/toolConfig", Value::Null, "toolConfig field must be defined");
        refused("/toolConfig/tools", json!([]), "at least one");
        refused("/toolConfig/tools/0/toolSpec/name", json!("a b"), "name");
        refused("/toolConfig/tools/0/toolSpec/inputSchema", json!({}), "object");
        for choice in [json!({"none": {}}), json!({"tool": {"name": "x"}})] {
            let mut chosen = request();
            chosen["toolConfig"]["toolChoice"] = choice;
            assert!(check_converse(&chosen).is_err(), "{chosen}");
        }
        refused("/messages/0/role", json!("assistant"), "alternate");
        refused("/messages/0/content", json!([]), "empty");
        refused("/messages/0/content", json!([{"text": ""}]), "blank");
        refused("/messages/1/content/0/toolUse/input", json!([]), "object");
        refused("/messages/2/content/0/toolResult/toolUseId", json!("2"), "no toolUse");
        refused("/messages/2/content", json!([{"text": "never mind"}]), "Expected toolResult");
        let unsigned = json!([{"reasoningContent": {"reasoningText": {"text": "t"}}}]);
        refused("/messages/1/content", unsigned, "signature");
        let mut cut = request();
        cut["messages"].as_array_mut().unwrap().pop();
        assert!(check_converse(&cut).is_err());
    }
}
