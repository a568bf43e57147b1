use domain::models::{CacheTtl, Effort, Message, SystemBlock};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::sample::{self, message, result, tool_use};

fn model() -> ModelId {
    ModelId::new("gpt-6.1-sol")
}

fn request() -> ModelRequest {
    let calls = vec![
        Block::Native { provider: Provider::Anthropic, block: json!({"type": "thinking"}) },
        Block::text("Let me look."),
        tool_use("1", "query_actions", json!({"state": "due"})),
        tool_use("2", "query_actions", json!({})),
    ];
    let results = vec![result("1", "[]", false), result("2", "no", true), Block::text("Well?")];
    let messages =
        vec![Message::user("What is due?"), message(Role::Assistant, calls), message(Role::User, results)];
    sample::request(("query_actions", "Lists actions."), messages)
}

#[test]
fn a_request_is_encoded_in_the_apis_format() {
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "query_actions", "arguments": arguments}});
    let tools = json!([{"type": "function", "function":
        {"name": "query_actions", "description": "Lists actions.", "parameters": {"type": "object"}}}]);
    let mut messages = json!([
        {"role": "system", "content": "rules\n\nnow: noon"},
        {"role": "user", "content": "What is due?"},
        {"role": "assistant", "content": "Let me look.", "tool_calls": [call("1", "{\"state\":\"due\"}"), call("2", "{}")]},
        {"role": "tool", "tool_call_id": "1", "content": "[]"},
        {"role": "tool", "tool_call_id": "2", "content": "Error: no"},
        {"role": "user", "content": "Well?"},
    ]);
    let plain = messages.clone();
    messages[0]["content"] = json!([
        {"type": "text", "text": "rules\n\n", "prompt_cache_breakpoint": {"mode": "explicit"}},
        {"type": "text", "text": "now: noon"},
    ]);
    assert_eq!(
        encode(&model(), &request(), Dialect::OPENAI).unwrap(),
        json!({
            "model": "gpt-6.1-sol", "stream": true, "stream_options": {"include_usage": true},
            "max_completion_tokens": 1_000, "prompt_cache_key": request().prefix_hash(&model())[..32],
            "prompt_cache_options": {"mode": "implicit"}, "tools": tools, "messages": messages,
        })
    );
    // Strict servers refuse unknown fields.
    assert_eq!(
        encode(&model(), &request(), Dialect { stream_usage: false, ..Dialect::COMPATIBLE }).unwrap(),
        json!({"model": "gpt-6.1-sol", "stream": true, "max_tokens": 1_000, "tools": tools, "messages": plain})
    );
}

#[test]
fn models_that_charge_for_cache_writes_get_breakpoints() {
    let model = ModelId::new("gpt-6-sol");
    let mut request = request();
    request.system.insert(1, SystemBlock::plain(" "));
    let mark = json!({"mode": "explicit"});
    let expected = json!([
        {"type": "text", "text": "rules\n\n", "prompt_cache_breakpoint": mark},
        {"type": "text", "text": "now: noon"},
    ]);
    let body = encode(&model, &request, Dialect::OPENAI).unwrap();
    assert_eq!(body["messages"][0], json!({"role": "system", "content": expected}));
    assert_eq!(
        (&body["instructions"], &body["prompt_cache_options"]),
        (&Value::Null, &json!({"mode": "implicit"}))
    );
    // With caching switched off, nothing is written that costs more.
    for block in &mut request.system {
        block.cache = None;
    }
    request.cache_last_turn = false;
    let body = encode(&model, &request, Dialect::OPENAI).unwrap();
    assert_eq!(body["prompt_cache_options"], mark);
    assert!(!body.to_string().contains("prompt_cache_breakpoint") && body.get("prompt_cache_key").is_none());
    // No request writes more than three.
    request.system = (0..6).map(|n| SystemBlock::cached(n.to_string(), CacheTtl::OneHour)).collect();
    let body = encode(&model, &request, Dialect::OPENAI).unwrap();
    assert_eq!(body.to_string().matches("prompt_cache_breakpoint").count(), 3);
    assert_eq!(body["messages"][0]["content"][5]["prompt_cache_breakpoint"], mark); // Other servers don't know these fields.
    let body = encode(&model, &request, Dialect::COMPATIBLE).unwrap();
    assert!(!body.to_string().contains("prompt_cache"));
}

/// Breakpoints in the conversation: at the newest words of a person that the next turn sends again, and at those before.
#[test]
fn what_the_next_turn_sends_again_has_breakpoints() {
    let model = ModelId::new("gpt-6-sol");
    let said = ["one", "two", "three", "four"];
    let mut messages: Vec<Message> =
        said.iter().flat_map(|said| [Message::user(*said), Message::assistant("done")]).collect();
    messages.push(Message::user("five"));
    let request = ModelRequest { stable_messages: Some(8), messages, ..sample::request(("a", "b"), vec![]) };
    let body = encode(&model, &request, Dialect::OPENAI).unwrap();
    let marked: Vec<&str> = body["messages"].as_array().unwrap()[1..]
        .iter()
        .filter_map(|message| message["content"].as_array())
        .map(|parts| parts[0]["text"].as_str().unwrap())
        .collect();
    assert_eq!(marked, ["three", "four"]);
    assert_eq!(body.to_string().matches("prompt_cache_breakpoint").count(), 3);
    let body = encode(&model, &request, Dialect::COMPATIBLE).unwrap();
    assert!(!body.to_string().contains("prompt_cache"));
}

#[test]
fn tools_are_explained_to_models_without_tools() {
    let body = encode(&model(), &request(), Dialect { native_tools: false, ..Dialect::COMPATIBLE }).unwrap();
    assert_eq!(body["tools"], Value::Null);
    let system = body["messages"][0]["content"].as_str().unwrap();
    assert!(system.starts_with("rules\n\n") && system.ends_with("\n\nnow: noon"), "{system}");
    assert!(system.contains("\nUSE_TOOL: query_actions\n"), "{system}");
    let calls = "Let me look.\n\nUSE_TOOL: query_actions\n{\"state\":\"due\"}\n\nUSE_TOOL: query_actions\n{}";
    let rest = json!([
        {"role": "user", "content": "What is due?"},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": "Result of the tool:\n[]\n\nThe tool failed:\nno\n\nWell?"},
    ]);
    assert_eq!(body["messages"].as_array().unwrap()[1..], *rest.as_array().unwrap());
}

#[test]
fn the_choice_of_a_tool_needs_tools() {
    let check = |choice: ToolChoice, expected: Value| {
        let body =
            encode(&model(), &ModelRequest { tool_choice: choice.clone(), ..request() }, Dialect::OPENAI)
                .unwrap();
        assert_eq!(body["tool_choice"], expected);
        let without = ModelRequest { tool_choice: choice, tools: vec![], ..request() };
        assert_eq!(encode(&model(), &without, Dialect::OPENAI).unwrap()["tool_choice"], Value::Null);
    };
    check(ToolChoice::Auto, Value::Null);
    check(ToolChoice::Any, json!("required"));
    check(ToolChoice::None, json!("none"));
    check(ToolChoice::Tool("a".into()), json!({"type": "function", "function": {"name": "a"}}));
}

fn decode(lines: &[Value]) -> Result<Vec<ModelEvent>, ModelError> {
    let mut decoder = Decoder::new(&model(), &request());
    let mut events = Vec::new();
    for line in lines {
        let data = line.as_str().map_or_else(|| line.to_string(), str::to_owned);
        events.extend(decoder.data(&data)?);
    }
    if !matches!(events.last(), Some(ModelEvent::Finished { .. })) {
        events.extend(decoder.end()?);
    }
    Ok(events)
}

fn chunk(delta: Value, finish: Option<&str>) -> Value {
    json!({"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn counts() -> Value {
    json!({"model": "m", "choices": [], "usage": {"prompt_tokens": 7060, "completion_tokens": 55,
        "prompt_tokens_details": {"cached_tokens": 5000, "cache_write_tokens": 2048},
        "completion_tokens_details": {"reasoning_tokens": 10}}})
}

const COUNTED: Usage = Usage {
    input_tokens: 12,
    cache_read_tokens: 5000,
    cache_write_5m_tokens: 2048,
    cache_write_1h_tokens: 0,
    output_tokens: 55,
    reasoning_tokens: 10,
    web_searches: 0,
    code_runs: 0,
    estimated: false,
};

fn call(index: Value, id: &str, name: &str, arguments: Value) -> Value {
    let mut call = json!({"index": index, "type": "function", "function": {"arguments": arguments}});
    if !id.is_empty() {
        call["id"] = id.into();
    }
    if !name.is_empty() {
        call["function"]["name"] = name.into();
    }
    chunk(json!({"tool_calls": [call]}), None)
}

/// Checks the events between the start and the usage, the stop reason, and the blocks.
#[track_caller]
fn check(lines: &[Value], middle: &[ModelEvent], stop: StopReason, blocks: &[Block]) {
    let started = ModelEvent::Started { model: ModelId::new("m") };
    let finished = ModelEvent::Finished { stop, assistant_blocks: blocks.to_vec(), usage: COUNTED };
    let expected = [&[started], middle, &[ModelEvent::Usage(COUNTED), finished]].concat();
    let with_done = [lines, &[counts(), json!("[DONE]")]].concat();
    assert_eq!(decode(&with_done), Ok(expected.clone()));
    // Without the last line, as some servers send it.
    assert_eq!(decode(&with_done[..with_done.len() - 1]), Ok(expected));
}

fn tool(id: &str, input: Value) -> (ModelEvent, Block) {
    let name = "get_weather".to_owned();
    (
        ModelEvent::ToolUse { id: id.into(), name: name.clone(), input: input.clone() },
        Block::ToolUse { id: id.into(), name, input },
    )
}

#[test]
fn text_and_thoughts_are_read() {
    let thinks = || ModelEvent::ThinkingDelta("Hm.".into());
    let said = |text: &str| ModelEvent::TextDelta(text.into());
    check(
        &[
            chunk(json!({"role": "assistant", "content": ""}), None),
            chunk(json!({"reasoning_content": "Hm."}), None),
            chunk(json!({"reasoning": "Hm."}), None),
            chunk(json!({"content": "Let me"}), None),
            chunk(json!({"content": " check."}), None),
            chunk(json!({}), Some("stop")),
        ],
        &[thinks(), thinks(), said("Let me"), said(" check.")],
        StopReason::EndTurn,
        &[Block::text("Let me check.")],
    );
    check(
        &[chunk(json!({"content": null, "refusal": "No."}), None), chunk(json!({}), Some("stop"))],
        &[said("No.")],
        StopReason::Refusal,
        &[Block::text("No.")],
    );
    for (reason, stop) in [
        ("stop", StopReason::EndTurn),
        ("length", StopReason::MaxTokens),
        ("content_filter", StopReason::ContentFilter),
        ("reason_of_tomorrow", StopReason::Other),
    ] {
        check(&[chunk(json!({}), Some(reason))], &[], stop, &[]);
    }
}

#[test]
fn calls_are_read_in_every_form() {
    let (paris, paris_block) = tool("1", json!({"city": "Paris"}));
    let (empty, empty_block) = tool("2", json!({}));
    let one = |lines: &[Value], reason: &str| {
        let lines = [lines, &[chunk(json!({}), Some(reason))]].concat();
        check(&lines, std::slice::from_ref(&paris), StopReason::ToolUse, std::slice::from_ref(&paris_block));
    };
    let name = "get_weather";
    // In pieces.
    one(
        &[
            call(json!(0), "1", name, json!("")),
            call(json!(0), "", "", json!("{\"city\":")),
            call(json!(0), "", "", json!("\"Paris\"}")),
        ],
        "tool_calls",
    );
    // The id and the name are repeated in every piece.
    one(
        &[call(json!(0), "1", name, json!("{\"city\":")), call(json!(0), "1", name, json!("\"Paris\"}"))],
        "tool_calls",
    );
    // In one piece, and the server reports `stop`.
    one(&[call(json!(0), "1", name, json!("{\"city\":\"Paris\"}"))], "stop");
    // Without an index, and with an object instead of a string.
    one(&[call(Value::Null, "1", name, json!({"city": "Paris"}))], "function_call");
    let both = [paris.clone(), empty.clone()];
    let blocks = [paris_block.clone(), empty_block.clone()];
    // Interleaved.
    check(
        &[
            call(json!(0), "1", name, json!("{\"city\"")),
            call(json!(1), "2", name, json!("")),
            call(json!(0), "", "", json!(":\"Paris\"}")),
            chunk(json!({}), Some("tool_calls")),
        ],
        &both,
        StopReason::ToolUse,
        &blocks,
    );
    // Identified only by their ids.
    check(
        &[
            call(Value::Null, "1", name, json!("{\"city\":\"Paris\"}")),
            call(Value::Null, "2", name, json!("{}")),
            chunk(json!({}), Some("tool_calls")),
        ],
        &both,
        StopReason::ToolUse,
        &blocks,
    );
    // Without an id.
    let (unnamed, unnamed_block) = tool("call_0", json!({}));
    check(
        &[call(json!(0), "", name, Value::Null), chunk(json!({}), Some("stop"))],
        &[unnamed],
        StopReason::ToolUse,
        &[unnamed_block],
    );
    // Cut off.
    let cut = ModelEvent::InvalidToolInput {
        id: "1".into(),
        name: name.into(),
        raw: "{\"ci".into(),
        reason: "the arguments are cut off".into(),
    };
    let lines = [call(json!(0), "1", name, json!("{\"ci")), chunk(json!({}), Some("length"))];
    check(&lines, &[cut], StopReason::MaxTokens, &[]);
}

#[test]
fn usage_may_come_early_late_or_never() {
    let last = |lines: &[Value]| match decode(lines).unwrap().pop() {
        Some(ModelEvent::Finished { usage, .. }) => usage,
        other => panic!("{other:?}"),
    };
    // In the last chunk that has a choice.
    let mut end = chunk(json!({}), Some("stop"));
    end["usage"] = counts()["usage"].clone();
    assert_eq!(last(&[end]), COUNTED);
    // From a server that reports no details.
    let plain = json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}});
    let usage = Usage { input_tokens: 9, output_tokens: 2, ..Usage::default() };
    assert_eq!(last(&[chunk(json!({}), Some("stop")), plain]), usage);
    // From a server that reports no usage: a budget must still be kept.
    let usage = last(&[chunk(json!({"content": "0123456789"}), Some("stop"))]);
    assert_eq!(usage.output_tokens, estimate::tokens(&model(), 10));
    assert_eq!(usage.input_tokens, estimate::request_tokens(&model(), &request()));
    assert!(usage.estimated && !COUNTED.estimated);
}

#[test]
fn broken_replies_give_specific_errors() {
    let check = |lines: &[Value], expected: ModelError| assert_eq!(decode(lines), Err(expected), "{lines:?}");
    check(&[], ModelError::Truncated);
    check(&[chunk(json!({"content": "a"}), None)], ModelError::Truncated);
    check(
        &[chunk(json!({"content": "a"}), None), json!({"error": {"message": "m", "code": 502}})],
        ModelError::Server { status: 502, retry_after: None },
    );
    check(
        &[json!({"error": "Incorrect API key provided: k**"})],
        ModelError::Server { status: 500, retry_after: None },
    );
    check(&[json!("<html>")], ModelError::Malformed);
    let calls = |count| (0..count).map(|index| call(json!(index), "", "", json!(""))).collect::<Vec<_>>();
    check(&calls(MAX_CALLS + 1), ModelError::Malformed);
    check(&calls(MAX_CALLS), ModelError::Truncated);
    // An end without a reason is an end.
    let events = decode(&[chunk(json!({"content": "a"}), None), json!("[DONE]")]).unwrap();
    assert!(matches!(events.last(), Some(ModelEvent::Finished { stop: StopReason::EndTurn, .. })));
}

proptest! {
    #[test]
    fn no_stream_panics(
        indices in prop::collection::vec(prop::sample::select(vec![json!(0), json!(1), json!(null), json!("x")]), 0..8),
        value in prop::sample::select(vec![json!(null), json!(""), json!("{"), json!({}), json!([1]), json!(3)]),
        finish in prop::option::of("stop|length|x"),
    ) {
        let mut lines: Vec<Value> = indices.into_iter().map(|i| call(i, "", "", value.clone())).collect();
        lines.push(chunk(value.clone(), finish.as_deref()));
        lines.push(json!({"choices": value, "usage": value}));
        let _ = decode(&lines);
    }
}

#[test]
fn schemas_are_requested_from_models_that_have_them() {
    let schema = json!({"type": "object", "additionalProperties": false});
    let asks = ModelRequest { effort: Some(Effort::High), output_schema: Some(schema.clone()), ..request() };
    let body = encode(&ModelId::new("grok-4.3"), &asks, Dialect::XAI).unwrap();
    assert_eq!(body["response_format"]["json_schema"]["schema"], schema);
    // Servers of this format differ in what they accept, so nothing is said about thinking.
    assert_eq!(body["reasoning_effort"], Value::Null);
    let body = encode(&ModelId::new("llama"), &asks, Dialect::COMPATIBLE).unwrap();
    assert_eq!(body["response_format"], Value::Null);
}
