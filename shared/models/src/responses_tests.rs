use domain::models::{CacheTtl, Effort, Message, SystemBlock};
use proptest::prelude::*;
use serde_json::json;

use super::super::fake::{Fake, FakeResponse, Piece, refuse, whole};
use super::*;
use crate::sample::{self, WEATHER, message, result, said, tool_use};

fn reasoning(id: &str) -> Value {
    json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "gAAA"})
}

fn native(block: Value) -> Block {
    Block::Native { provider: Provider::OpenAi, block }
}

fn model() -> ModelId {
    ModelId::new("gpt-6.1-sol")
}

fn encode(model: &ModelId, request: &ModelRequest) -> Result<Value, ModelError> {
    super::encode(model, request, Dialect::OpenAi)
}

fn request() -> ModelRequest {
    let calls = vec![
        Block::Native { provider: Provider::Google, block: json!({"thoughtSignature": "s"}) },
        native(reasoning("rs_1")),
        Block::text("Let me look."),
        tool_use("call_1", "get_weather", json!({"city": "Paris"})),
        tool_use("call_2", "get_weather", json!({})),
    ];
    let results =
        vec![result("call_1", "22C", false), result("call_2", "no city", true), Block::text("Well?")];
    let messages =
        vec![Message::user("And in Paris?"), message(Role::Assistant, calls), message(Role::User, results)];
    sample::request(WEATHER, messages)
}

#[test]
fn a_request_is_encoded_in_the_apis_format() {
    let expected = json!({
        "model": "gpt-6.1-sol", "stream": true, "store": false, "max_output_tokens": 1_000,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_options": {"mode": "implicit"},
        "prompt_cache_key": request().prefix_hash(&model())[..32],
        "tools": [{"type": "function", "name": "get_weather", "description": "Says the weather.",
            "parameters": {"type": "object"}, "strict": false}],
        "input": [
            {"role": "system", "content": [
                {"type": "input_text", "text": "rules\n\n", "prompt_cache_breakpoint": {"mode": "explicit"}},
                {"type": "input_text", "text": "now: noon"},
            ]},
            {"role": "user", "content": "And in Paris?"},
            reasoning("rs_1"),
            {"role": "assistant", "content": "Let me look."},
            {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": "{\"city\":\"Paris\"}"},
            {"type": "function_call", "call_id": "call_2", "name": "get_weather", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "22C"},
            {"type": "function_call_output", "call_id": "call_2", "output": "Error: no city"},
            {"role": "user", "content": "Well?"},
        ],
    });
    assert_eq!(encode(&model(), &request()), Ok(expected));
    let body = encode(&ModelId::new("gpt-5"), &request()).unwrap();
    assert_eq!(
        (&body["instructions"], &body["input"][0]["role"]),
        (&json!("rules\n\nnow: noon"), &json!("user"))
    );
    assert!(body.get("prompt_cache_options").is_none());
}

#[test]
fn models_that_charge_for_cache_writes_get_breakpoints() {
    let model = ModelId::new("gpt-6-sol");
    let mut request = request();
    request.system.insert(1, SystemBlock::plain(" "));
    let mark = json!({"mode": "explicit"});
    let expected = json!([
        {"type": "input_text", "text": "rules\n\n", "prompt_cache_breakpoint": mark},
        {"type": "input_text", "text": "now: noon"},
    ]);
    let body = encode(&model, &request).unwrap();
    assert_eq!(body["input"][0], json!({"role": "system", "content": expected}));
    assert_eq!(
        (&body["instructions"], &body["prompt_cache_options"]),
        (&Value::Null, &json!({"mode": "implicit"}))
    );
    // With caching switched off, nothing is written that costs more.
    for block in &mut request.system {
        block.cache = None;
    }
    request.cache_last_turn = false;
    let body = encode(&model, &request).unwrap();
    assert_eq!(body["prompt_cache_options"], mark);
    assert!(!body.to_string().contains("prompt_cache_breakpoint") && body.get("prompt_cache_key").is_none());
    // No request writes more than three.
    request.system = (0..6).map(|n| SystemBlock::cached(n.to_string(), CacheTtl::OneHour)).collect();
    let body = encode(&model, &request).unwrap();
    assert_eq!(body.to_string().matches("prompt_cache_breakpoint").count(), 3);
    assert_eq!(body["input"][0]["content"][5]["prompt_cache_breakpoint"], mark);
}

#[test]
fn what_the_next_turn_sends_again_has_breakpoints() {
    let model = ModelId::new("gpt-6-sol");
    let messages = vec![
        Message::user("one"),
        Message { role: Role::Assistant, content: vec![tool_use("a", "look", json!({}))] },
        Message { role: Role::User, content: vec![result("a", "r", false)] },
        Message::assistant("done"),
        Message::user("two"),
    ];
    let request = ModelRequest { stable_messages: Some(4), messages, ..request() };
    let body = encode(&model, &request).unwrap();
    let marked: Vec<&Value> = body["input"].as_array().unwrap()[1..]
        .iter()
        .filter_map(|item| item["content"].as_array())
        .map(|parts| &parts[0])
        .collect();
    assert_eq!(
        marked,
        [&json!({"type": "input_text", "text": "one", "prompt_cache_breakpoint": {"mode": "explicit"}})]
    );
}

#[test]
fn a_thought_that_led_to_nothing_is_not_sent() {
    let messages = vec![
        Message::user("a"),
        Message { role: Role::Assistant, content: vec![Block::text("b"), native(reasoning("rs_1"))] },
        Message::user("c"),
    ];
    let body = encode(&model(), &ModelRequest { messages, ..request() }).unwrap();
    assert_eq!(body["input"].as_array().unwrap().len(), 4, "{body}");
}

#[test]
fn the_choice_of_a_tool_needs_tools() {
    for (choice, expected) in [
        (ToolChoice::Auto, Value::Null),
        (ToolChoice::Any, json!("required")),
        (ToolChoice::None, json!("none")),
        (ToolChoice::Tool("a".into()), json!({"type": "function", "name": "a"})),
    ] {
        let body = encode(&model(), &ModelRequest { tool_choice: choice.clone(), ..request() }).unwrap();
        assert_eq!(body["tool_choice"], expected);
        let body =
            encode(&model(), &ModelRequest { tool_choice: choice, tools: Vec::new(), ..request() }).unwrap();
        assert_eq!(body["tool_choice"], Value::Null);
    }
}

fn decode(lines: &[Value]) -> Result<Vec<ModelEvent>, ModelError> {
    let mut decoder = Decoder::new(&model(), Dialect::OpenAi);
    let mut events = Vec::new();
    for line in lines {
        events.extend(decoder.data(&line.to_string())?);
        if matches!(events.last(), Some(ModelEvent::Finished { .. })) {
            return Ok(events);
        }
    }
    events.extend(decoder.end()?);
    Ok(events)
}

fn created() -> Value {
    json!({"type": "response.created", "sequence_number": 0, "response": {"id": "resp_1", "model": "m", "status": "in_progress"}})
}

fn ended(kind: &str, incomplete: Value) -> Value {
    json!({"type": format!("response.{kind}"), "response": {"model": "m", "incomplete_details": incomplete, "usage": {
        "input_tokens": 7_060, "output_tokens": 55,
        "input_tokens_details": {"cached_tokens": 5_000, "cache_write_tokens": 2_048,
            "cache_write_tokens_details": {"ttl_30m_tokens": 548, "ttl_12h_tokens": 1_500}},
        "output_tokens_details": {"reasoning_tokens": 10}, "total_tokens": 7_115}}})
}

const COUNTED: Usage = Usage {
    input_tokens: 12,
    cache_read_tokens: 5_000,
    cache_write_5m_tokens: 548,
    cache_write_1h_tokens: 1_500,
    output_tokens: 55,
    reasoning_tokens: 10,
    web_searches: 0,
    code_runs: 0,
    estimated: false,
};

fn text_item(place: u64, pieces: &[&str]) -> Vec<Value> {
    let whole = pieces.concat();
    let mut events = vec![
        json!({"type": "response.output_item.added", "output_index": place, "item": {"type": "message", "content": []}}),
        json!({"type": "response.content_part.added", "output_index": place, "part": {"type": "output_text", "text": ""}}),
    ];
    events.extend(
        pieces
            .iter()
            .map(|text| json!({"type": "response.output_text.delta", "output_index": place, "delta": text})),
    );
    events.extend([
        json!({"type": "response.output_text.done", "output_index": place, "text": whole}),
        json!({"type": "response.output_item.done", "output_index": place, "item":
            {"type": "message", "status": "completed", "content": [{"type": "output_text", "text": whole}]}}),
    ]);
    events
}

fn call_added(place: u64, id: &str) -> Value {
    json!({"type": "response.output_item.added", "output_index": place,
        "item": {"type": "function_call", "id": "fc", "call_id": id, "name": "get_weather", "arguments": ""}})
}

fn call_grows(place: u64, delta: &str) -> Value {
    json!({"type": "response.function_call_arguments.delta", "output_index": place, "item_id": "fc", "delta": delta})
}

fn call_done(place: u64, id: &str, arguments: &str, status: &str) -> Value {
    json!({"type": "response.output_item.done", "output_index": place, "item": {"type": "function_call", "id": "fc",
        "call_id": id, "name": "get_weather", "arguments": arguments, "status": status}})
}

/// Checks the events between the start and the usage, the stop reason, and the blocks.
#[track_caller]
fn check(lines: &[Value], end: Value, middle: &[ModelEvent], stop: StopReason, blocks: &[Block]) {
    let lines = [&[created()], lines, &[end]].concat();
    let started = ModelEvent::Started { model: ModelId::new("m") };
    let finished = ModelEvent::Finished { stop, assistant_blocks: blocks.to_vec(), usage: COUNTED };
    let expected = [&[started], middle, &[ModelEvent::Usage(COUNTED), finished]].concat();
    assert_eq!(decode(&lines), Ok(expected));
}

fn used(id: &str, input: Value) -> (ModelEvent, Block) {
    let name = "get_weather".to_owned();
    (
        ModelEvent::ToolUse { id: id.into(), name: name.clone(), input: input.clone() },
        Block::ToolUse { id: id.into(), name, input },
    )
}

#[test]
fn text_and_thoughts_are_read() {
    let mut thought = reasoning("rs_1");
    thought["status"] = "completed".into();
    let mut lines = vec![
        json!({"type": "response.in_progress", "response": {}}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Hm."}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": thought}),
        json!({"type": "event.of.tomorrow"}),
    ];
    lines.extend(text_item(1, &["Let me", "", " check."]));
    check(
        &lines,
        ended("completed", Value::Null),
        &[ModelEvent::ThinkingDelta("Hm.".into()), said("Let me"), said(" check.")],
        StopReason::EndTurn,
        &[native(reasoning("rs_1")), Block::text("Let me check.")],
    );
    for (reason, stop) in [
        ("max_output_tokens", StopReason::MaxTokens),
        ("content_filter", StopReason::ContentFilter),
        ("reason_of_tomorrow", StopReason::Other),
    ] {
        check(&[], ended("incomplete", json!({"reason": reason})), &[], stop, &[]);
    }
    let refusal = [
        json!({"type": "response.refusal.delta", "output_index": 0, "delta": "No."}),
        json!({"type": "response.output_item.done", "output_index": 0, "item":
            {"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}}),
    ];
    check(
        &refusal,
        ended("completed", Value::Null),
        &[said("No.")],
        StopReason::Refusal,
        &[Block::text("No.")],
    );
}

#[test]
fn calls_may_be_interleaved_empty_or_cut_off() {
    let (paris, paris_block) = used("call_1", json!({"city": "Paris"}));
    let (empty, empty_block) = used("call_2", json!({}));
    check(
        &[
            call_added(0, "call_1"),
            call_added(1, "call_2"),
            call_grows(0, "{\"city\":"),
            call_grows(1, ""),
            call_grows(0, "\"Paris\"}"),
            call_done(1, "call_2", "", "completed"),
            call_done(0, "call_1", "{\"city\":\"Paris\"}", "completed"),
        ],
        ended("completed", Value::Null),
        &[empty, paris],
        StopReason::ToolUse,
        &[paris_block, empty_block],
    );
    let invalid = |raw: &str, reason: &str| ModelEvent::InvalidToolInput {
        id: "call_1".into(),
        name: "get_weather".into(),
        raw: raw.into(),
        reason: reason.into(),
    };
    let limit = json!({"reason": "max_output_tokens"});
    check(
        &[call_added(0, "call_1"), call_grows(0, "{\"ci")],
        ended("incomplete", limit.clone()),
        &[invalid("{\"ci", "the arguments are cut off")],
        StopReason::MaxTokens,
        &[],
    );
    check(
        &[call_added(0, "call_1"), call_done(0, "call_1", "", "incomplete")],
        ended("incomplete", limit),
        &[invalid("", "the call is cut off")],
        StopReason::MaxTokens,
        &[],
    );
    check(
        &[call_done(0, "call_1", "[1]", "completed")],
        ended("completed", Value::Null),
        &[invalid("[1]", "the arguments are not a JSON object")],
        StopReason::ToolUse,
        &[],
    );
}

#[test]
fn an_invalid_reply_is_an_error() {
    let failed = |code: &str| json!({"type": "response.failed", "response": {"error": {"code": code, "message": "m"}}});
    let error = |code: &str| json!({"type": "error", "code": code, "message": "m", "param": null, "sequence_number": 3});
    let limited = ModelError::RateLimited { retry_after: None };
    let broken = ModelError::Server { status: 500, retry_after: None };
    for (line, expected) in [
        (failed("rate_limit_exceeded"), limited.clone()),
        (failed("server_error"), broken.clone()),
        (failed("insufficient_quota"), ModelError::Quota),
        (failed("context_length_exceeded"), ModelError::ContextTooLarge),
        (failed("invalid_prompt"), ModelError::InvalidRequest { code: Some("invalid_prompt".into()) }),
        (error("rate_limit_exceeded"), limited.clone()),
        (error("server_error"), broken),
        (json!({"type": "error", "error": {"code": "rate_limit_exceeded", "message": "m"}}), limited),
        (json!({"type": "response.output_item.done", "item": {"type": "message"}}), ModelError::Malformed),
        (json!({"type": "response.in_progress"}), ModelError::Truncated),
    ] {
        assert_eq!(decode(&[created(), line.clone()]), Err(expected), "{line}");
    }
}

#[tokio::test]
async fn a_call_goes_over_http() {
    let mut lines = vec![created()];
    lines.extend(text_item(0, &["Grüße"]));
    lines.push(ended("completed", Value::Null));
    let text: String = lines
        .iter()
        .map(|line| format!("event: {}\ndata: {line}\n\n", line["type"].as_str().unwrap()))
        .collect();
    let fake = Fake::start([
        refuse(500, &[], "<html>"),
        FakeResponse::Stream(vec![Piece::Bytes(text.into_bytes())]),
        whole("data: {\"type\":\"response.created\",\"response\":{\"model\":\"m\"}}\n\n"),
        whole(""),
        whole(""),
    ])
    .await;
    use futures::StreamExt;
    let client = Responses::new(fake.openai(), Dialect::OpenAi);
    let events: Vec<_> = client.stream(&model(), &request()).map(Result::unwrap).collect().await;
    assert_eq!(events[1], said("Grüße"));
    assert!(
        matches!(events.last(), Some(ModelEvent::Finished { usage, .. }) if *usage == COUNTED),
        "{events:?}"
    );
    let events: Vec<_> = client.stream(&model(), &request()).collect().await;
    assert_eq!(events.last(), Some(&Err(ModelError::Truncated)));
    assert!(fake.requests().iter().all(|(_, body)| *body == encode(&model(), &request()).unwrap()));
}

proptest! {
    /// Whatever comes, nothing panics.
    #[test]
    fn no_answer_panics(text in "\\PC{0,20}", number: u64, pick in 0usize..5, kind in 0usize..8) {
        let value = [json!(text), json!(number), json!(null), json!([text]), json!({"type": text})][pick].clone();
        let kind = ["response.created", "response.output_text.delta", "response.output_item.added",
            "response.function_call_arguments.delta", "response.output_item.done", "response.completed",
            "response.failed", "error"][kind];
        for item in [value.clone(), json!({"type": "function_call", "arguments": value}), json!({"type": "message", "content": value})] {
            let mut decoder = Decoder::new(&model(), Dialect::OpenAi);
            let event = json!({"type": kind, "output_index": 0, "item": item, "delta": value, "response": value, "error": value});
            let _ = decoder.data(&event.to_string());
            let _ = decoder.data(&json!({"type": "response.completed", "response": value}).to_string());
        }
    }
}

#[test]
fn effort_and_schemas_are_requested_from_models_that_have_them() {
    let schema = json!({"type": "object", "additionalProperties": false});
    let asks =
        ModelRequest { effort: Some(Effort::Medium), output_schema: Some(schema.clone()), ..request() };
    let body = encode(&ModelId::new("gpt-6.1-sol"), &asks).unwrap();
    assert_eq!(body["reasoning"], json!({"effort": "medium", "summary": "auto"}));
    assert_eq!(body["text"]["format"]["schema"], schema);
    let body = encode(&ModelId::new("gpt-5-chat"), &asks).unwrap();
    assert_eq!(body["reasoning"], Value::Null);
    let body = encode(&ModelId::new("unknown"), &asks).unwrap();
    assert_eq!((&body["reasoning"], &body["text"]), (&Value::Null, &Value::Null));
}

#[test]
fn the_provider_searches_and_runs_code() {
    let asked = ModelRequest { provider_tools: ProviderTool::ALL.to_vec(), ..request() };
    let body = encode(&model(), &asked).unwrap();
    assert_eq!(body["tools"][0], json!({"type": "web_search"}));
    assert_eq!(body["tools"][1], json!({"type": "code_interpreter", "container": {"type": "auto"}}));
    assert_eq!((&body["tools"][2]["name"], &body["max_tool_calls"]), (&json!("get_weather"), &json!(5)));

    let search = |id: &str, kind: &str| json!({"type": "web_search_call", "id": id, "status": "completed", "action": {"type": kind, "query": "oil"}});
    let code = |id: &str, container: &str| json!({"type": "code_interpreter_call", "id": id, "status": "completed", "code": "1", "container_id": container, "outputs": []});
    let items = [
        search("ws_1", "search"),
        search("ws_2", "open_page"),
        code("ci_1", "c1"),
        code("ci_2", "c1"),
        code("ci_3", "c2"),
    ];
    let mut lines = vec![created()];
    for (place, item) in items.iter().enumerate() {
        for kind in ["added", "done"] {
            lines.push(
                json!({"type": format!("response.output_item.{kind}"), "output_index": place, "item": item}),
            );
        }
    }
    lines.extend(text_item(5, &["Oil."]));
    lines.push(ended("completed", Value::Null));
    let events = decode(&lines).unwrap();
    let uses: Vec<(u64, u64)> = events
        .iter()
        .filter_map(|event| match event {
            ModelEvent::Usage(usage) => Some((usage.web_searches, usage.code_runs)),
            _ => None,
        })
        .collect();
    // They count from their beginning, because a reply may be cut off. The second was no search, and the last is the whole reply's.
    assert_eq!(uses, [(1, 0), (2, 0), (1, 0), (1, 1), (1, 2), (1, 2)]);
    let Some(ModelEvent::Finished { stop, assistant_blocks, usage }) = events.last() else {
        panic!("{events:#?}")
    };
    assert_eq!(*stop, StopReason::EndTurn);
    assert_eq!(*usage, Usage { web_searches: 1, code_runs: 2, ..COUNTED });
    // The API takes its calls back with their status.
    let thought = |id: &str| native(json!({"type": "reasoning", "id": id, "encrypted_content": "gAAA"}));
    let mut content = assistant_blocks.clone();
    content.insert(2, thought("rs_code"));
    content.insert(1, thought("rs_page"));
    content.push(Block::ToolUse { id: "call_1".into(), name: "get_weather".into(), input: json!({}) });
    let reply = Message { role: Role::Assistant, content };
    let result = Block::ToolResult { tool_use_id: "call_1".into(), content: "Sun".into(), is_error: false };
    let result = Message { role: Role::User, content: vec![result] };
    let sent = |more: Option<Message>| {
        let messages =
            [Message::user("Look"), reply.clone(), result.clone()].into_iter().chain(more).collect();
        let body = encode(&model(), &ModelRequest { messages, ..asked.clone() }).unwrap();
        let sent = body["input"].as_array().unwrap().iter();
        sent.filter_map(|item| item["id"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(sent(None), ["ws_1", "rs_page", "ws_2", "rs_code", "ci_1", "ci_2", "ci_3"]);
    // Later, the container may be gone. The thought that led to it goes with it.
    assert_eq!(sent(Some(Message::user("And?"))), ["ws_1", "rs_page", "ws_2"]);
}
