//! The rules by which xAI's Responses API refuses requests, as its documentation and the types of public clients describe them. They allow
//! less than the documentation where clients disagree, for example about `instructions`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::items;

/// Checks the body of `POST /v1/responses`.
///
/// # Errors
/// The message of the 400.
pub fn check_xai(body: &Value) -> Result<(), String> {
    const FIELDS: [&str; 8] =
        ["model", "stream", "store", "max_output_tokens", "input", "tools", "tool_choice", "text"];
    only(body, &FIELDS, "")?;
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err("model: missing field".into());
    }
    if body["max_output_tokens"].as_u64().is_none_or(|tokens| tokens == 0) {
        return Err("max_output_tokens: must be at least 1".into());
    }
    for (at, tool) in items(&body["tools"]).iter().enumerate() {
        let at = format!("tools.{at}");
        match tool["type"].as_str() {
            Some("web_search" | "code_interpreter") => only(tool, &["type"], &at)?,
            Some("function") => only(tool, &["type", "name", "description", "parameters"], &at)?,
            _ => return Err(format!("{at}.type: unknown variant")),
        }
    }
    check_input(items(&body["input"]))
}

/// Checks that an object has no other fields.
fn only(object: &Value, fields: &[&str], at: &str) -> Result<(), String> {
    let object = object.as_object().ok_or_else(|| format!("{at}: must be an object"))?;
    match object.keys().find(|key| !fields.contains(&key.as_str())) {
        Some(unknown) => Err(format!("{at}: Argument not supported: {unknown}")),
        None => Ok(()),
    }
}

fn check_input(input: &[Value]) -> Result<(), String> {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for (at, item) in input.iter().enumerate() {
        let at = format!("input.{at}");
        let id = item["call_id"].as_str().unwrap_or_default();
        match (item["type"].as_str(), item["role"].as_str()) {
            (None, Some("system")) if at == "input.0" => only(item, &["role", "content"], &at)?,
            (None, Some("user" | "assistant")) => only(item, &["role", "content"], &at)?,
            (Some("function_call"), None) => {
                only(item, &["type", "call_id", "name", "arguments"], &at)?;
                open.insert(id);
            }
            (Some("function_call_output"), None) if open.remove(id) => {
                only(item, &["type", "call_id", "output"], &at)?;
            }
            _ => return Err(format!("{at}: not allowed here")),
        }
    }
    if input.is_empty() {
        return Err("input: must not be empty".into());
    }
    match open.first() {
        Some(open) => Err(format!("input: the function call {open} has no output")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_that_xai_may_refuse_are_refused() {
        let request = json!({
            "model": "m", "max_output_tokens": 1, "tools": [{"type": "web_search"}, {"type": "function", "name": "t", "parameters": {}}],
            "input": [
                {"role": "system", "content": "s"},
                {"role": "user", "content": "u"},
                {"type": "function_call", "call_id": "1", "name": "t", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "1", "output": "r"},
            ],
        });
        assert_eq!(check_xai(&request), Ok(()));
        for (place, value, words) in [
            ("/instructions", json!("s"), "instructions"),
            ("/max_tool_calls", json!(5), "max_tool_calls"),
            ("/model", json!(""), "model"),
            ("/max_output_tokens", json!(0), "at least 1"),
            ("/tools/0/type", json!("web_search_preview"), "unknown variant"),
            ("/tools/0", json!({"type": "code_interpreter", "container": {"type": "auto"}}), "container"),
            ("/tools/1/strict", json!(false), "strict"),
            ("/input", json!([]), "empty"),
            ("/input/1/role", json!("system"), "not allowed"),
            ("/input/2", json!({"type": "web_search_call", "id": "ws_1"}), "not allowed"),
            ("/input/2/call_id", json!("2"), "not allowed"),
            ("/input/3", json!({"role": "user", "content": "u"}), "has no output"),
        ] {
            let mut body = request.clone();
            let (parent, field) = place.rsplit_once('/').unwrap();
            let parent = body.pointer_mut(parent).unwrap();
            match field.parse::<usize>() {
                Ok(at) => parent[at] = value,
                Err(_) => parent[field] = value,
            }
            let error = check_xai(&body).expect_err(place);
            assert!(error.contains(words), "{place}: {error}");
        }
    }
}
