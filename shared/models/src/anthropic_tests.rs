use domain::models::{CacheTtl, Message, Role, SystemBlock, ToolSpec};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::sample::{self, said};
use crate::{responses, strict};

fn model() -> ModelId {
    ModelId::new("claude-sonnet-5-5")
}

fn request() -> ModelRequest {
    let request = sample::request(("query_actions", "Does it."), vec![Message::user("What is due?")]);
    ModelRequest { tools: vec![tool("query_actions"), tool("read_asset")], ..request }
}

fn tool(name: &str) -> ToolSpec {
    sample::spec(name, "Does it.")
}

fn tool_use(id: &str) -> Block {
    Block::ToolUse { id: id.into(), name: "query_actions".into(), input: json!({}) }
}

fn tool_result(id: &str) -> Block {
    Block::ToolResult { tool_use_id: id.into(), content: "[]".into(), is_error: false }
}

#[test]
fn a_request_is_encoded_in_the_apis_format() {
    let thinking = json!({"type": "thinking", "thinking": "..", "signature": "Eq"});
    let native = |provider| Block::Native { provider, block: thinking.clone() };
    let conversation = vec![
        Message::user("What is due?"),
        Message::user("  "),
        Message {
            role: Role::Assistant,
            content: vec![
                native(Provider::Anthropic),
                native(Provider::OpenAi),
                Block::text(" \n"),
                tool_use("a"),
                tool_use("b"),
            ],
        },
        Message::user("Hurry."),
        Message { role: Role::User, content: vec![tool_result("b"), tool_result("a")] },
    ];
    let body = encode(&model(), &ModelRequest { messages: conversation, ..request() }).unwrap();
    assert_eq!(strict::check(&body), Ok(()));
    let (hour, minutes) =
        (json!({"type": "ephemeral", "ttl": "1h"}), json!({"type": "ephemeral", "ttl": "5m"}));
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "query_actions", "input": {}});
    let result =
        |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "[]", "is_error": false});
    assert_eq!(
        body,
        json!({
            "model": "claude-sonnet-5-5",
            "max_tokens": 1_000,
            "stream": true,
            "system": [
                {"type": "text", "text": "rules", "cache_control": hour},
                {"type": "text", "text": "now: noon"},
            ],
            "tools": [
                {"name": "query_actions", "description": "Does it.", "input_schema": {"type": "object"}},
                {"name": "read_asset", "description": "Does it.", "input_schema": {"type": "object"}, "cache_control": hour},
            ],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "What is due?"}]},
                {"role": "assistant", "content": [thinking, call("a"), call("b")]},
                {"role": "user", "content": [
                    result("b"), result("a"), {"type": "text", "text": "Hurry.", "cache_control": minutes},
                ]},
            ],
        })
    );
}

#[test]
fn the_choice_of_a_tool_needs_tools() {
    let check = |choice: ToolChoice, expected: Value| {
        let body = encode(&model(), &ModelRequest { tool_choice: choice.clone(), ..request() }).unwrap();
        assert_eq!(body["tool_choice"], expected);
        let body =
            encode(&model(), &ModelRequest { tool_choice: choice, tools: vec![], ..request() }).unwrap();
        assert_eq!((&body["tool_choice"], &body["tools"]), (&Value::Null, &Value::Null));
    };
    check(ToolChoice::Auto, Value::Null);
    check(ToolChoice::Any, json!({"type": "any"}));
    check(ToolChoice::None, json!({"type": "none"}));
    check(ToolChoice::Tool("read_asset".into()), json!({"type": "tool", "name": "read_asset"}));
}

/// The cache marks with their positions and times to live.
fn marks(body: &Value) -> Vec<String> {
    let mut marks = Vec::new();
    let mut note = |place: &str, blocks: &Value| {
        for (index, block) in blocks.as_array().into_iter().flatten().enumerate() {
            if let Some(ttl) = block["cache_control"]["ttl"].as_str() {
                marks.push(format!("{place}{index} {ttl}"));
            }
        }
    };
    note("tool", &body["tools"]);
    note("system", &body["system"]);
    for (index, message) in body["messages"].as_array().into_iter().flatten().enumerate() {
        note(&format!("message{index}."), &message["content"]);
    }
    marks
}

#[test]
fn marks_are_few_and_in_order() {
    use CacheTtl::{FiveMinutes, OneHour};
    let check = |system: &[Option<CacheTtl>], cache_last_turn: bool, expected: &[&str]| {
        let system = system.iter().map(|cache| SystemBlock { text: "s".into(), cache: *cache }).collect();
        let body = encode(&model(), &ModelRequest { system, cache_last_turn, ..request() }).unwrap();
        assert_eq!(marks(&body), expected);
        assert_eq!(strict::check(&body), Ok(()));
    };
    let (hour, minutes) = (Some(OneHour), Some(FiveMinutes));
    check(&[], false, &[]);
    check(&[None], false, &[]);
    check(&[None], true, &["message0.0 5m"]);
    check(&[minutes, None], false, &["tool1 5m", "system0 5m"]);
    check(&[hour, minutes], true, &["tool1 1h", "system0 1h", "system1 5m", "message0.0 5m"]);
    check(&[hour, hour, minutes], true, &["system0 1h", "system1 1h", "system2 5m", "message0.0 5m"]);
    check(&[hour; 6], true, &["system3 1h", "system4 1h", "system5 1h", "message0.0 5m"]);
    check(&[minutes, hour], false, &["tool1 5m", "system0 5m", "system1 5m"]);
}

#[test]
fn invalid_conversations_are_not_sent() {
    use domain::models::error::Unsendable::{
        FirstMessageNotUser, NoMessages, NoOutput, UnansweredToolUse, UnmatchedToolResult, WrongRole,
    };
    let check = |messages: Vec<Message>, max_output_tokens: u32, expected| {
        let request = ModelRequest { messages, max_output_tokens, ..request() };
        assert_eq!(encode(&model(), &request), Err(ModelError::Unsendable(expected)));
    };
    let calls = || Message { role: Role::Assistant, content: vec![tool_use("a")] };
    let results = |id: &str| Message { role: Role::User, content: vec![tool_result(id)] };
    let user = || Message::user("u");
    check(vec![], 1, NoMessages);
    check(vec![Message::user(" ")], 1, NoMessages);
    check(vec![Message::assistant("a"), user()], 1, FirstMessageNotUser);
    check(vec![user()], 0, NoOutput);
    check(vec![user(), calls()], 1, UnansweredToolUse);
    check(vec![user(), calls(), user()], 1, UnansweredToolUse);
    check(vec![user(), calls(), results("b")], 1, UnmatchedToolResult);
    check(vec![user(), calls(), results("a"), Message::assistant("x"), results("a")], 1, UnmatchedToolResult);
    check(vec![results("a")], 1, UnmatchedToolResult);
    check(vec![Message { role: Role::User, ..calls() }], 1, WrongRole);
    check(vec![user(), Message { role: Role::Assistant, ..results("a") }], 1, WrongRole);
}

fn message() -> impl Strategy<Value = Message> {
    let block = prop_oneof![
        4 => prop::sample::select(vec!["", " ", "text"]).prop_map(Block::text),
        1 => prop::sample::select(vec!["a", "b"]).prop_map(tool_use),
        1 => prop::sample::select(vec!["a", "b"]).prop_map(tool_result),
        1 => Just(Block::Native { provider: Provider::OpenAi, block: json!({}) }),
    ];
    (any::<bool>(), prop::collection::vec(block, 0..4)).prop_map(|(user, content)| Message {
        role: if user { Role::User } else { Role::Assistant },
        content,
    })
}

proptest! {
    /// Either `encode` reports that the conversation cannot be sent, or the strict server accepts it.
    #[test]
    fn no_conversation_reaches_the_wire_malformed(
        messages in prop::collection::vec(message(), 0..7),
        system in prop::collection::vec(prop::option::of(any::<bool>()), 0..6),
        cache_last_turn: bool,
    ) {
        let ttl = |hour| if hour { CacheTtl::OneHour } else { CacheTtl::FiveMinutes };
        let system =
            system.into_iter().map(|cache| SystemBlock { text: "s".into(), cache: cache.map(ttl) }).collect();
        if let Ok(body) = encode(&model(), &ModelRequest { messages, system, cache_last_turn, ..request() }) {
            prop_assert_eq!(strict::check(&body), Ok(()));
        }
    }
}

fn decode(frames: &[Value]) -> Result<Vec<ModelEvent>, ModelError> {
    sample::whole(Decoder::default(), frames)
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"model": "claude-x", "content": [], "usage": {"input_tokens": 12,
        "cache_creation_input_tokens": 2048, "cache_read_input_tokens": 5000, "output_tokens": 1,
        "cache_creation": {"ephemeral_5m_input_tokens": 548, "ephemeral_1h_input_tokens": 1500}}}})
}

fn open(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn text(index: u64, text: &str) -> Value {
    delta(index, json!({"type": "text_delta", "text": text}))
}

fn input(index: u64, json: &str) -> Value {
    delta(index, json!({"type": "input_json_delta", "partial_json": json}))
}

fn close(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn end(reason: &str) -> [Value; 2] {
    let usage = json!({"output_tokens": 55, "output_tokens_details": {"thinking_tokens": 10}});
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}),
        json!({"type": "message_stop"}),
    ]
}

const BEFORE: Usage = Usage {
    input_tokens: 12,
    cache_read_tokens: 5000,
    cache_write_5m_tokens: 548,
    cache_write_1h_tokens: 1500,
    output_tokens: 1,
    reasoning_tokens: 0,
    web_searches: 0,
    code_runs: 0,
    estimated: false,
};
const AFTER: Usage = Usage { output_tokens: 55, reasoning_tokens: 10, ..BEFORE };

fn begun() -> [ModelEvent; 2] {
    [ModelEvent::Started { model: ModelId::new("claude-x") }, ModelEvent::Usage(BEFORE)]
}

fn finished(stop: StopReason, assistant_blocks: Vec<Block>) -> [ModelEvent; 2] {
    [ModelEvent::Usage(AFTER), ModelEvent::Finished { stop, assistant_blocks, usage: AFTER }]
}

#[track_caller]
fn check(middle: &[Value], reason: &str, expected: &[ModelEvent], stop: StopReason, blocks: &[Block]) {
    let frames = [&[start()], middle, &end(reason)].concat();
    let expected = [&begun(), expected, &finished(stop, blocks.to_vec())].concat();
    assert_eq!(decode(&frames), Ok(expected));
}

fn called(id: &str, input: Value) -> (ModelEvent, Block) {
    let name = "get_weather".to_owned();
    (
        ModelEvent::ToolUse { id: id.into(), name: name.clone(), input: input.clone() },
        Block::ToolUse { id: id.into(), name, input },
    )
}

fn call_block(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "get_weather", "input": {}})
}

#[test]
fn text_and_calls_are_read() {
    let (event, block) = called("toolu_1", json!({"city": "Paris"}));
    check(
        &[
            open(0, json!({"type": "text", "text": ""})),
            json!({"type": "ping"}),
            text(0, "Let me"),
            text(0, " check."),
            close(0),
            open(1, call_block("toolu_1")),
            input(1, ""),
            input(1, "{\"city\":\"Par"),
            input(1, "is\"}"),
            close(1),
        ],
        "tool_use",
        &[said("Let me"), said(" check."), event],
        StopReason::ToolUse,
        &[Block::text("Let me check."), block],
    );
}

#[test]
fn interleaved_calls_are_told_apart_and_may_have_no_arguments() {
    let ((first, first_block), (second, second_block)) =
        (called("1", json!({})), called("2", json!({"a": 1})));
    check(
        &[
            open(0, call_block("1")),
            open(1, call_block("2")),
            input(1, "{\"a\""),
            input(1, ":1}"),
            close(1),
            input(0, ""),
            close(0),
        ],
        "tool_use",
        &[second, first],
        StopReason::ToolUse,
        // In the order of the reply, not in the order of completion.
        &[first_block, second_block],
    );
}

#[test]
fn unknown_events_are_skipped() {
    check(
        &[
            json!({"type": "message_of_tomorrow", "index": 0}),
            open(0, json!({"type": "text", "text": "A"})),
            delta(0, json!({"type": "citations_delta", "citation": {"url": "x"}})),
            delta(0, json!({"type": "delta_of_tomorrow", "text": "no"})),
            text(7, "a block that was never opened"),
            close(7),
            close(0),
            open(1, json!({"type": "block_of_tomorrow", "x": 1})),
            delta(1, json!({"type": "delta_of_tomorrow"})),
            close(1),
        ],
        "reason_of_tomorrow",
        &[said("A")],
        StopReason::Other,
        &[
            Block::text("A"),
            Block::Native {
                provider: Provider::Anthropic,
                block: json!({"type": "block_of_tomorrow", "x": 1}),
            },
        ],
    );
}

#[test]
fn the_providers_own_blocks_are_kept_as_they_are() {
    let thinks = |text: &str| ModelEvent::ThinkingDelta(text.into());
    let native = |block: Value| Block::Native { provider: Provider::Anthropic, block };
    let redacted = json!({"type": "redacted_thinking", "data": "xyz"});
    check(
        &[
            open(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
            delta(0, json!({"type": "thinking_delta", "thinking": "Hm"})),
            delta(0, json!({"type": "thinking_delta", "thinking": "m."})),
            delta(0, json!({"type": "signature_delta", "signature": "EqoB"})),
            close(0),
            open(1, redacted.clone()),
            close(1),
            open(2, json!({"type": "server_tool_use", "id": "s", "name": "web_fetch", "input": {}})),
            input(2, "{\"query\":"),
            input(2, "\"rust\"}"),
            close(2),
            open(3, json!({"type": "thinking", "thinking": "", "signature": ""})),
            close(3),
        ],
        "pause_turn",
        &[thinks("Hm"), thinks("m.")],
        StopReason::Pause,
        &[
            native(json!({"type": "thinking", "thinking": "Hmm.", "signature": "EqoB"})),
            native(redacted),
            native(
                json!({"type": "server_tool_use", "id": "s", "name": "web_fetch", "input": {"query": "rust"}}),
            ),
        ],
    );
}

#[test]
fn a_truncated_call_is_invalid() {
    let invalid = |raw: &str, reason: &str| ModelEvent::InvalidToolInput {
        id: "1".into(),
        name: "get_weather".into(),
        raw: raw.into(),
        reason: reason.into(),
    };
    let cut = |json: &str, closed: bool, expected: ModelEvent, blocks: &[Block]| {
        let mut frames = vec![start(), open(0, call_block("1")), input(0, json)];
        frames.extend(closed.then(|| close(0)));
        frames.extend(end("max_tokens"));
        let [usage, finish] = finished(StopReason::MaxTokens, blocks.to_vec());
        // A block that was left open is closed at the end of the message, after the message's usage.
        let rest = if closed { [expected, usage, finish] } else { [usage, expected, finish] };
        assert_eq!(decode(&frames), Ok([&begun()[..], &rest].concat()), "{json} {closed}");
    };
    cut("{\"city\":\"Pa", true, invalid("{\"city\":\"Pa", "the arguments are cut off"), &[]);
    cut("{\"city\":\"Pa", false, invalid("{\"city\":\"Pa", "the arguments are cut off"), &[]);
    cut("", false, invalid("", "the call is cut off"), &[]);
    cut("[1]", true, invalid("[1]", "the arguments are not a JSON object"), &[]);
    cut("{a}", true, invalid("{a}", "the arguments are not JSON: line 1, column 2"), &[]);
    let (whole, block) = called("1", json!({"a": 1}));
    cut("{\"a\":1}", false, whole, &[block]);
}

#[test]
fn every_reason_to_stop_is_known() {
    for (reason, stop) in [
        ("end_turn", StopReason::EndTurn),
        ("max_tokens", StopReason::MaxTokens),
        ("stop_sequence", StopReason::StopSequence),
        ("tool_use", StopReason::ToolUse),
        ("pause_turn", StopReason::Pause),
        ("refusal", StopReason::Refusal),
        ("model_context_window_exceeded", StopReason::ContextWindow),
    ] {
        check(&[], reason, &[], stop, &[]);
    }
}

#[test]
fn each_usage_report_replaces_the_previous_one() {
    let check = |first: Value, last: Value, expected: Usage| {
        let frames = [
            json!({"type": "message_start", "message": {"model": "m", "usage": first}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": last}),
            json!({"type": "message_stop"}),
        ];
        let events = decode(&frames).unwrap();
        let Some(ModelEvent::Finished { usage, .. }) = events.last() else { panic!("{events:?}") };
        assert_eq!(*usage, expected);
    };
    let counted = Usage { input_tokens: 7, output_tokens: 5, ..Usage::default() };
    check(json!(null), json!({"input_tokens": 7, "output_tokens": 5}), counted);
    check(json!({"input_tokens": 7, "output_tokens": 1}), json!({"output_tokens": 5}), counted);
    check(
        json!({"input_tokens": 7, "output_tokens": 1}),
        json!({"input_tokens": 7, "output_tokens": 5, "cache_read_input_tokens": null}),
        counted,
    );
    // Without a breakdown, all writes count as five-minute writes.
    let written = Usage { cache_write_5m_tokens: 30, ..counted };
    check(
        json!({"input_tokens": 7, "cache_creation_input_tokens": 30}),
        json!({"output_tokens": 5}),
        written,
    );
    // A repeated total does not remove the breakdown.
    let split = Usage { cache_write_5m_tokens: 10, cache_write_1h_tokens: 20, ..counted };
    check(
        json!({"input_tokens": 7, "cache_creation_input_tokens": 30,
            "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20}}),
        json!({"output_tokens": 5, "cache_creation_input_tokens": 30}),
        split,
    );
}

#[test]
fn broken_replies_give_specific_errors() {
    let check = |frames: &[Value], expected: ModelError| {
        assert_eq!(decode(frames), Err(expected), "{frames:?}");
    };
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    check(&[], ModelError::Truncated);
    check(&[start(), open(0, json!({"type": "text"})), text(0, "a"), close(0)], ModelError::Truncated);
    check(&[start(), end("end_turn")[0].clone()], ModelError::Truncated);
    check(&[start(), overloaded], ModelError::Overloaded { retry_after: None });
    check(&[json!({"type": "content_block_stop"})], ModelError::Malformed);
    assert_eq!(Decoder::default().data("<html>"), Err(ModelError::Malformed));
}

proptest! {
    #[test]
    fn no_stream_panics(frames in prop::collection::vec(strange(), 0..12)) {
        let _ = decode(&frames);
    }
}

fn strange() -> impl Strategy<Value = Value> {
    let scalar = || {
        prop_oneof![
            Just(json!(null)),
            Just(json!(0)),
            Just(json!("text")),
            Just(json!([{}])),
            Just(json!({}))
        ]
    };
    let kinds = vec![
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    (prop::sample::select(kinds), scalar(), scalar(), scalar()).prop_map(|(kind, index, part, inner)| {
        let kinds = ["text", "tool_use", "thinking", "text_delta", "input_json_delta", "thinking_delta"];
        let part = if part.is_object() {
            let kind = kinds[inner.to_string().len() % kinds.len()];
            json!({"type": kind, "text": inner, "thinking": inner, "partial_json": inner, "usage": inner})
        } else {
            part
        };
        json!({"type": kind, "index": index, "content_block": part, "delta": part, "message": part, "usage": part})
    })
}

#[test]
fn thinking_schemas_and_context_editing_are_requested_from_models_that_have_them() {
    let asks = ModelRequest {
        effort: Some(Effort::High),
        context_editing: true,
        output_schema: Some(json!({"type": "object", "additionalProperties": false})),
        ..request()
    };
    let body = encode(&ModelId::new("claude-opus-5-5"), &asks).unwrap();
    assert_eq!(strict::check(&body), Ok(()));
    assert_eq!(body["thinking"], json!({"type": "adaptive", "display": "summarized"}));
    assert_eq!(body["output_config"]["effort"], "high");
    assert_eq!(body["output_config"]["format"]["schema"]["additionalProperties"], false);
    assert_eq!(body["context_management"]["edits"][0]["keep"], json!({"type": "tool_uses", "value": 5}));
    // A model of an earlier generation cannot be told how much to think, and an unknown model is told nothing.
    let body = encode(&ModelId::new("claude-haiku-4-5"), &asks).unwrap();
    assert_eq!((&body["thinking"], &body["output_config"]["effort"]), (&Value::Null, &Value::Null));
    let body = encode(&ModelId::new("claude-x"), &asks).unwrap();
    assert_eq!((&body["thinking"], &body["output_config"]), (&Value::Null, &Value::Null));
    // A forced call does not go together with thinking.
    let forced = ModelRequest { tool_choice: ToolChoice::Any, ..asks.clone() };
    let body = encode(&ModelId::new("claude-opus-5-5"), &forced).unwrap();
    assert_eq!((strict::check(&body), &body["thinking"]), (Ok(()), &Value::Null));
    let without = ModelRequest { tools: Vec::new(), ..asks };
    let body = encode(&ModelId::new("claude-opus-5-5"), &without).unwrap();
    assert_eq!(body["context_management"], Value::Null);
}

#[test]
fn the_provider_searches_and_runs_code() {
    let asked = ModelRequest { provider_tools: ProviderTool::ALL.to_vec(), ..request() };
    let body = encode(&ModelId::new("claude-sonnet-5-5"), &asked).unwrap();
    assert_eq!(super::super::strict::check(&body), Ok(()));
    let tools = body["tools"].as_array().unwrap();
    assert_eq!(tools[0], json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 5}));
    assert_eq!(tools[1], json!({"type": "code_execution_20250825", "name": "code_execution"}));
    assert_eq!(tools.len(), 2 + asked.tools.len());

    let search = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "oil"}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
        "content": [{"type": "web_search_result", "url": "https://example.com", "title": "Oil", "encrypted_content": "Eq"}]});
    let code = json!({"type": "server_tool_use", "id": "srvtoolu_2", "name": "bash_code_execution", "input": {"command": "ls"}});
    let empty = |block: &Value| {
        let mut block = block.clone();
        block["input"] = json!({});
        block
    };
    let frames = [
        start(),
        open(0, empty(&search)),
        input(0, "{\"query\": \"oil\"}"),
        close(0),
        open(1, found.clone()),
        close(1),
        open(2, empty(&code)),
        input(2, "{\"command\": \"ls\"}"),
        close(2),
        open(3, json!({"type": "text", "text": ""})),
        delta(3, json!({"type": "citations_delta", "citation": {"type": "web_search_result_location"}})),
        text(3, "Oil."),
        close(3),
        json!({"type": "message_delta", "delta": {"stop_reason": "pause_turn"},
            "usage": {"output_tokens": 55, "server_tool_use": {"web_search_requests": 3}}}),
        json!({"type": "message_stop"}),
    ];
    let events = decode(&frames).unwrap();
    // A reply that is cut off after this has searched at least once.
    let searched = Usage { web_searches: 1, ..BEFORE };
    assert!(events.contains(&ModelEvent::Usage(searched)), "{events:#?}");
    assert!(
        !events.iter().any(|event| matches!(event, ModelEvent::ToolUse { .. })),
        "they are no calls of ours"
    );
    let Some(ModelEvent::Finished { stop, assistant_blocks, usage }) = events.last() else {
        panic!("{events:#?}")
    };
    assert_eq!((*stop, usage.web_searches, usage.code_runs), (StopReason::Pause, 3, 1));
    let native = |block: &Value| Block::Native { provider: Provider::Anthropic, block: block.clone() };
    let blocks = [native(&search), native(&found), native(&code), Block::text("Oil.")];
    assert_eq!(assistant_blocks, &blocks);
    // The provider continues what it gets back as it came. Others get only the text.
    let reply = Message { role: Role::Assistant, content: blocks.to_vec() };
    let again = ModelRequest { messages: vec![Message::user("Look"), reply], ..asked };
    let body = encode(&ModelId::new("claude-sonnet-5-5"), &again).unwrap();
    let sent = body["messages"][1]["content"].as_array().unwrap();
    assert_eq!((&sent[..3], &sent[3]["text"]), (&[search, found, code][..], &json!("Oil.")));
    let other = responses::encode(&ModelId::new("gpt-6-sol"), &again, responses::Dialect::OpenAi)
        .unwrap()
        .to_string();
    assert!(!other.contains("srvtoolu") && other.contains("Oil."), "{other}");
}

#[test]
fn a_search_without_a_result_is_sent_back_only_to_be_continued() {
    let native = |block: Value| Block::Native { provider: Provider::Anthropic, block };
    let search =
        |id: &str| native(json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}}));
    let found =
        |id: &str| native(json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []}));
    let reply = |content: Vec<Block>| Message { role: Role::Assistant, content };
    let messages = vec![
        Message::user("a"),
        reply(vec![search("cut"), search("1"), found("1")]),
        Message::user("b"),
        reply(vec![search("gone")]),
        Message::user("c"),
        // The result comes in the next reply, after the result of a function.
        reply(vec![search("2"), tool_use("t")]),
        Message { role: Role::User, content: vec![tool_result("t")] },
        reply(vec![found("2"), search("3")]),
    ];
    let ids = |messages: &[Message]| -> Vec<Vec<String>> {
        let asked = ModelRequest { messages: messages.to_vec(), ..request() };
        let body = encode(&model(), &asked).unwrap();
        assert_eq!(strict::check(&body), Ok(()), "{body:#}");
        let id =
            |block: &Value| block["id"].as_str().or(block["text"].as_str()).unwrap_or("result").to_owned();
        let messages = body["messages"].as_array().unwrap().iter();
        messages
            .filter(|message| message["role"] == "assistant")
            .map(|message| message["content"].as_array().unwrap().iter().map(id).collect())
            .collect()
    };
    let cut_off = vec!["(This reply was cut off.)"];
    assert_eq!(ids(&messages), [vec!["1", "result"], cut_off.clone(), vec!["2", "t"], vec!["result", "3"]]);
    // The person writes after a reply that was cut off.
    assert_eq!(ids(&messages[..5]), [vec!["1", "result"], cut_off]);
}
