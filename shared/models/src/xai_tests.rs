use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use domain::models::image::MediaType;
use domain::models::{
    Block, Image, Message, ModelError, ModelEvent, ProviderTool, Role, SystemBlock, Usage, prices,
};
use futures::StreamExt;
use serde_json::{Value, json};

use super::super::fake::{Fake, whole};
use super::super::strict;
use super::*;
use crate::sample::{self, WEATHER};

fn model() -> ModelId {
    ModelId::new("grok-4.6")
}

fn request() -> ModelRequest {
    let request = sample::request(WEATHER, vec![Message::user("What does oil cost?")]);
    ModelRequest { provider_tools: ProviderTool::ALL.to_vec(), cache_last_turn: false, ..request }
}

fn encode(request: &ModelRequest) -> Value {
    let body = responses::encode(&model(), request, responses::Dialect::Xai).unwrap();
    assert_eq!(strict::check_xai(&body), Ok(()), "{body:#}");
    body
}

fn item(place: u64, item: &Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": place, "item": item})
}

fn search(kind: &str) -> Value {
    json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": kind, "query": "oil"}})
}

fn code() -> Value {
    json!({"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "name": "code_execution", "arguments": "{}"})
}

/// A reply with three uses in its items. `usage` is what its end reports.
fn reply(usage: &Value) -> Vec<Value> {
    let thought = json!({"type": "reasoning", "id": "rs_1", "status": "completed", "encrypted_content": "x"});
    let call =
        json!({"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": "{}"});
    let text = json!({"type": "message", "content": [{"type": "output_text", "text": "3 euros."}]});
    vec![
        json!({"type": "response.created", "response": {"model": "grok-4.6"}}),
        item(0, &thought),
        json!({"type": "response.output_item.added", "output_index": 1, "item": search("search")}),
        item(1, &search("search")),
        item(2, &search("open_page")),
        item(3, &code()),
        item(4, &text),
        item(5, &call),
        json!({"type": "response.completed", "response": {"usage": usage}}),
    ]
}

fn decode(lines: &[Value]) -> Vec<ModelEvent> {
    sample::events(&mut responses::Decoder::new(&model(), responses::Dialect::Xai), lines).unwrap()
}

/// The blocks and the usage of a reply.
fn end(lines: &[Value]) -> (Vec<Block>, Usage) {
    match decode(lines).pop() {
        Some(ModelEvent::Finished { assistant_blocks, usage, .. }) => (assistant_blocks, usage),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_has_only_what_xai_documents() {
    let expected = json!({
        "model": "grok-4.6", "stream": true, "store": false, "max_output_tokens": 1_000,
        "tools": [
            {"type": "web_search"},
            {"type": "code_interpreter"},
            {"type": "function", "name": "get_weather", "description": "Says the weather.",
                "parameters": {"type": "object"}},
        ],
        "input": [
            {"role": "system", "content": "rules\n\nnow: noon"},
            {"role": "user", "content": "What does oil cost?"},
        ],
    });
    assert_eq!(encode(&request()), expected);
    let system = vec![SystemBlock::plain(" ")];
    assert_eq!(encode(&ModelRequest { system, ..request() })["input"][0]["role"], "user");
    let data = Some(BASE64.encode(b"\x89PNG\r\n\x1a\n").into());
    let image =
        Image { media_type: MediaType::Png, bytes: 8, width: 1, height: 1, object: String::new(), data };
    let messages = vec![Message { role: Role::User, content: vec![Block::Image(image)] }];
    let body = encode(&ModelRequest { messages, ..request() });
    assert_eq!(body["input"][1]["content"][0]["type"], "input_image", "{body:#}");
}

#[test]
fn nothing_of_openai_is_sent_to_xai_and_nothing_of_xai_is_kept() {
    let (blocks, _) = end(&reply(&Value::Null));
    let call = |id: &str| Block::ToolUse { id: id.into(), name: "get_weather".into(), input: json!({}) };
    assert_eq!(blocks, [Block::text("3 euros."), call("call_1")]);
    let of_openai = |block| Block::Native { provider: Provider::OpenAi, block };
    let content = vec![
        of_openai(json!({"type": "reasoning", "id": "rs_2", "encrypted_content": "gAAA"})),
        of_openai(search("search")),
        Block::text("Let me look."),
        call("call_2"),
    ];
    let result = Block::ToolResult { tool_use_id: "call_2".into(), content: "Sun".into(), is_error: false };
    let messages = vec![
        Message::user("Look"),
        Message { role: Role::Assistant, content },
        Message { role: Role::User, content: vec![result] },
    ];
    let expected = json!([
        {"role": "system", "content": "rules\n\nnow: noon"},
        {"role": "user", "content": "Look"},
        {"role": "assistant", "content": "Let me look."},
        {"type": "function_call", "call_id": "call_2", "name": "get_weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_2", "output": "Sun"},
    ]);
    assert_eq!(encode(&ModelRequest { messages, ..request() })["input"], expected);
}

#[test]
fn the_reported_uses_count_and_otherwise_the_items() {
    let details = |searches: u64, runs: u64| json!({"web_search_calls": searches, "code_interpreter_calls": runs, "x_search_calls": 0});
    for (usage, searches, runs) in [
        // Of three uses, one has failed.
        (json!({"num_server_side_tools_used": 2, "server_side_tool_usage_details": details(1, 1)}), 1, 1),
        (json!({"server_side_tool_usage_details": details(7, 0)}), 7, 0),
        // Without details, the number is right, and both tools have the same price.
        (json!({"num_server_side_tools_used": 3}), 2, 1),
        (json!({"num_server_side_tools_used": 4}), 3, 1),
        (json!({"num_server_side_tools_used": 0}), 0, 0),
        (json!({"server_side_tool_usage_details": {"web_search_calls": "2"}}), 2, 1),
        // Each opened page counts.
        (Value::Null, 2, 1),
    ] {
        let (_, counted) = end(&reply(&usage));
        assert_eq!((counted.web_searches, counted.code_runs), (searches, runs), "{usage}");
    }
    // A reply that is cut off has reported its uses so far.
    let mut lines = reply(&Value::Null);
    lines.truncate(6);
    let uses: Vec<(u64, u64)> = decode(&lines)
        .iter()
        .filter_map(|event| match event {
            ModelEvent::Usage(usage) => Some((usage.web_searches, usage.code_runs)),
            _ => None,
        })
        .collect();
    assert_eq!(uses, [(1, 0), (2, 0), (2, 1)]);
}

#[test]
fn the_cost_is_the_one_that_xai_reports() {
    // The usage of a call of `grok-4.6` with one search in the tests of a public client. A tick is 100 pico-dollars.
    let usage = json!({
        "input_tokens": 5_467, "input_tokens_details": {"cached_tokens": 1_152}, "output_tokens": 593,
        "output_tokens_details": {"reasoning_tokens": 575}, "total_tokens": 6_060, "num_server_side_tools_used": 1,
        "cost_in_usd_ticks": 177_640_000, "server_side_tool_usage_details": {"web_search_calls": 1, "code_interpreter_calls": 0},
    });
    let (_, counted) = end(&reply(&usage));
    let price = prices::price(&model()).unwrap();
    assert_eq!(price.cost_micros(&counted) * 10_000, usage["cost_in_usd_ticks"].as_i64().unwrap());
}

#[tokio::test]
async fn only_requests_with_its_tools_use_the_responses_format() {
    let text = |events: &[Value]| events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>();
    let said =
        json!({"model": "grok-4.6", "choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]});
    let fake =
        Fake::start([whole(&text(&reply(&Value::Null))), whole(&(text(&[said]) + "data: [DONE]\n\n"))]).await;
    let client = Xai::new(fake.openai());
    let plain = ModelRequest { provider_tools: Vec::new(), ..request() };
    for request in [request(), plain.clone()] {
        let events: Vec<Result<ModelEvent, ModelError>> = client.stream(&model(), &request).collect().await;
        assert!(matches!(events.last(), Some(Ok(ModelEvent::Finished { .. }))), "{events:?}");
    }
    let paths = fake.paths();
    assert!(paths[0].ends_with("/responses") && paths[1].ends_with("/chat/completions"), "{paths:?}");
    let chat = openai::encode(&model(), &plain, openai::Dialect::XAI).unwrap();
    let bodies: Vec<Value> = fake.requests().into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies, [encode(&request()), chat]);
}
