use domain::models::{Effort, Message, Role};
use futures::StreamExt;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::aws::tests::frame;
use crate::fake::{Fake, FakeResponse, Piece, refuse};
use crate::sample::{self, WEATHER, message, result, said, tool_use};
use crate::strict;

fn model() -> ModelId {
    ModelId::new("eu.anthropic.claude-sonnet-5-5")
}

fn thought() -> Block {
    let block = json!({"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "Eq"}}});
    Block::Native { provider: Provider::Bedrock, block }
}

fn request() -> ModelRequest {
    let calls = vec![
        thought(),
        Block::Native { provider: Provider::Anthropic, block: json!({"type": "thinking"}) },
        Block::text("Let me look."),
        tool_use("tu_1", "get_weather", json!({"city": "Paris"})),
        tool_use("tu_2", "get_weather", json!({})),
    ];
    let results = vec![Block::text("Well?"), result("tu_1", "22C", false), result("tu_2", " ", true)];
    let messages =
        vec![Message::user("And in Paris?"), message(Role::Assistant, calls), message(Role::User, results)];
    sample::request(WEATHER, messages)
}

#[test]
fn a_request_is_encoded_in_the_apis_format() {
    let hour = json!({"cachePoint": {"type": "default", "ttl": "1h"}});
    let expected = json!({
        "system": [{"text": "rules"}, hour, {"text": "now: noon"}],
        "messages": [
            {"role": "user", "content": [{"text": "And in Paris?"}]},
            {"role": "assistant", "content": [
                {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "Eq"}}},
                {"text": "Let me look."},
                {"toolUse": {"toolUseId": "tu_1", "name": "get_weather", "input": {"city": "Paris"}}},
                {"toolUse": {"toolUseId": "tu_2", "name": "get_weather", "input": {}}},
            ]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "tu_1", "status": "success", "content": [{"text": "22C"}]}},
                {"toolResult": {"toolUseId": "tu_2", "status": "error", "content": [{"text": "(no output)"}]}},
                {"text": "Well?"},
                {"cachePoint": {"type": "default"}},
            ]},
        ],
        "toolConfig": {"tools": [
            {"toolSpec": {"name": "get_weather", "description": "Says the weather.", "inputSchema": {"json": {"type": "object"}}}},
            hour,
        ]},
        "inferenceConfig": {"maxTokens": 1_000},
    });
    let body = encode(&model(), &request()).unwrap();
    assert_eq!(body, expected);
    assert_eq!(strict::check_converse(&body), Ok(()));
}

#[test]
fn what_the_next_turn_sends_again_ends_at_a_cache_point() {
    let messages = vec![Message::user("one"), Message::assistant("done"), Message::user("two")];
    let request = ModelRequest { stable_messages: Some(2), messages, ..request() };
    let body = encode(&model(), &request).unwrap();
    assert_eq!(strict::check_converse(&body), Ok(()));
    let points: Vec<bool> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| !message["content"][1]["cachePoint"].is_null())
        .collect();
    assert_eq!(points, [false, true, true]);
}

#[test]
fn a_cache_is_asked_for_only_if_the_model_sells_one() {
    let points = |model: &str| {
        encode(&ModelId::new(model), &request()).unwrap().to_string().matches("cachePoint").count()
    };
    assert_eq!(points("global.anthropic.claude-opus-5-5"), 3);
    assert_eq!(points("amazon.nova-pro-v1:0"), 0);
    assert_eq!(points("arn:aws:bedrock:eu-west-1:1:application-inference-profile/x"), 0);
}

#[test]
fn the_choice_of_a_tool_needs_tools() {
    for (choice, expected) in [
        (ToolChoice::Auto, Value::Null),
        (ToolChoice::Any, json!({"any": {}})),
        (ToolChoice::Tool("get_weather".into()), json!({"tool": {"name": "get_weather"}})),
    ] {
        let body = encode(&model(), &ModelRequest { tool_choice: choice, ..request() }).unwrap();
        assert_eq!(body["toolConfig"]["toolChoice"], expected);
        assert_eq!(strict::check_converse(&body), Ok(()));
    }
    // The API refuses calls in the conversation without tools, and cannot forbid calls.
    let without = ModelRequest { tools: Vec::new(), ..request() };
    for request in [ModelRequest { tool_choice: ToolChoice::None, ..request() }, without] {
        let body = encode(&model(), &request).unwrap();
        assert_eq!(body["toolConfig"], Value::Null);
        let texts = body["messages"].to_string();
        assert!(texts.contains("Called the tool get_weather") && texts.contains("22C"), "{texts}");
        assert_eq!(strict::check_converse(&body), Ok(()));
    }
}

#[test]
fn the_models_id_is_sent_unchanged_and_never_changes_the_path() {
    for (id, expected) in [
        ("global.anthropic.claude-opus-5-5", Some("global.anthropic.claude-opus-5-5")),
        ("amazon.nova-pro-v1:0", Some("amazon.nova-pro-v1%3A0")),
        ("arn:aws:bedrock:eu-west-1:1:p/x", Some("arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ap%2Fx")),
        ("openai/o3-mini-high", Some("openai%2Fo3-mini-high")),
        ("../../x?y#z", Some("..%2F..%2Fx%3Fy%23z")),
        ("%2e%2e", Some("%252e%252e")),
        ("", None),
        (".", None),
        ("..", None),
    ] {
        let expected = expected.map(|id| format!("/model/{id}/converse-stream")).ok_or(ModelError::NotFound);
        let path = path(&ModelId::new(id));
        assert_eq!(path, expected, "{id}");
        if let Ok(path) = path {
            let url = reqwest::Url::parse(&format!("https://h{path}")).unwrap();
            assert_eq!(url.path(), path, "the address is sent as it was signed");
        }
    }
}

fn decode(frames: &[Value]) -> Result<Vec<ModelEvent>, ModelError> {
    sample::events(&mut Decoder::new(&model()), frames)
}

fn start() -> Value {
    json!({"messageStart": {"role": "assistant"}})
}

fn text(index: u64, text: &str) -> Value {
    json!({"contentBlockDelta": {"contentBlockIndex": index, "delta": {"text": text}}})
}

fn call(index: u64, id: &str) -> Value {
    let start = json!({"toolUse": {"toolUseId": id, "name": "get_weather"}});
    json!({"contentBlockStart": {"contentBlockIndex": index, "start": start}})
}

fn input(index: u64, json: &str) -> Value {
    json!({"contentBlockDelta": {"contentBlockIndex": index, "delta": {"toolUse": {"input": json}}}})
}

fn thinking(index: u64, delta: Value) -> Value {
    json!({"contentBlockDelta": {"contentBlockIndex": index, "delta": {"reasoningContent": delta}}})
}

fn stopped(index: u64) -> Value {
    json!({"contentBlockStop": {"contentBlockIndex": index}})
}

fn end(reason: &str) -> [Value; 2] {
    let usage = json!({"inputTokens": 12, "outputTokens": 55, "totalTokens": 7_115, "cacheReadInputTokens": 5_000,
        "cacheWriteInputTokens": 2_048,
        "cacheDetails": [{"ttl": "1h", "inputTokens": 1_500}, {"ttl": "5m", "inputTokens": 548}]});
    [
        json!({"messageStop": {"stopReason": reason}}),
        json!({"metadata": {"usage": usage, "metrics": {"latencyMs": 812}}}),
    ]
}

const COUNTED: Usage = Usage {
    input_tokens: 12,
    cache_read_tokens: 5_000,
    cache_write_5m_tokens: 548,
    cache_write_1h_tokens: 1_500,
    output_tokens: 55,
    reasoning_tokens: 0,
    web_searches: 0,
    code_runs: 0,
    estimated: false,
};

/// Checks the events between the start and the usage, the stop reason, and the blocks.
#[track_caller]
fn check(frames: &[Value], reason: &str, middle: &[ModelEvent], stop: StopReason, blocks: &[Block]) {
    let frames = [&[start()], frames, &end(reason)].concat();
    let finished = ModelEvent::Finished { stop, assistant_blocks: blocks.to_vec(), usage: COUNTED };
    let started = ModelEvent::Started { model: model() };
    let expected = [&[started], middle, &[ModelEvent::Usage(COUNTED), finished]].concat();
    assert_eq!(decode(&frames), Ok(expected));
}

fn used(id: &str, input: Value) -> (ModelEvent, Block) {
    let (id, name) = (id.to_owned(), "get_weather".to_owned());
    (
        ModelEvent::ToolUse { id: id.clone(), name: name.clone(), input: input.clone() },
        Block::ToolUse { id, name, input },
    )
}

#[test]
fn text_and_thoughts_are_read() {
    let thinks = |text: &str| ModelEvent::ThinkingDelta(text.into());
    let redacted = json!({"reasoningContent": {"redactedContent": "3q2+7w=="}});
    check(
        &[
            thinking(0, json!({"text": "H"})),
            thinking(0, json!({"text": "m."})),
            thinking(0, json!({"signature": "Eq"})),
            stopped(0),
            thinking(1, json!({"redactedContent": "3q0="})),
            thinking(1, json!({"redactedContent": "vu8="})),
            stopped(1),
            text(2, "Let me"),
            text(2, " look."),
            stopped(2),
            // Without a signature it can't be sent back.
            thinking(3, json!({"text": "Hm."})),
            stopped(3),
        ],
        "end_turn",
        &[thinks("H"), thinks("m."), said("Let me"), said(" look."), thinks("Hm.")],
        StopReason::EndTurn,
        &[
            thought(),
            Block::Native { provider: Provider::Bedrock, block: redacted },
            Block::text("Let me look."),
        ],
    );
    for (reason, stop) in [
        ("max_tokens", StopReason::MaxTokens),
        ("stop_sequence", StopReason::StopSequence),
        ("guardrail_intervened", StopReason::ContentFilter),
        ("content_filtered", StopReason::ContentFilter),
        ("model_context_window_exceeded", StopReason::ContextWindow),
        ("reason_of_tomorrow", StopReason::Other),
    ] {
        check(&[], reason, &[], stop, &[]);
    }
}

#[test]
fn calls_may_be_interleaved_empty_or_cut_off() {
    let (one, first) = used("a", json!({"city": "Paris"}));
    let (two, second) = used("b", json!({}));
    check(
        &[
            call(0, "a"),
            input(0, "{\"city\":\"Pa"),
            call(1, "b"),
            input(1, ""),
            input(0, "ris\"}"),
            stopped(1),
            stopped(0),
        ],
        "tool_use",
        &[two, one],
        StopReason::ToolUse,
        &[first, second],
    );
    let invalid = |raw: &str, reason: &str| ModelEvent::InvalidToolInput {
        id: "a".into(),
        name: "get_weather".into(),
        raw: raw.into(),
        reason: reason.into(),
    };
    let cut = invalid("{\"city\":\"Pa", "the arguments are cut off");
    check(&[call(0, "a"), input(0, "{\"city\":\"Pa")], "max_tokens", &[cut], StopReason::MaxTokens, &[]);
    let empty = invalid("", "the call is cut off");
    check(&[call(0, "a")], "max_tokens", &[empty], StopReason::MaxTokens, &[]);
}

#[test]
fn unknown_events_are_skipped() {
    let start = |start: Value| json!({"contentBlockStart": {"contentBlockIndex": 7, "start": start}});
    check(
        &[
            json!({"of_tomorrow": null}),
            start(json!({"image": {"format": "png"}})),
            stopped(7),
            start(json!({"toolUse": {"toolUseId": "s", "name": "web", "type": "server_tool_use"}})),
            input(7, "{}"),
            stopped(7),
            stopped(9),
            json!({"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"citation": {"title": "t"}}}}),
            json!({"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"of_tomorrow": 1}}}),
            text(0, "Hi"),
            stopped(0),
        ],
        "end_turn",
        &[said("Hi")],
        StopReason::EndTurn,
        &[Block::text("Hi")],
    );
}

#[test]
fn an_invalid_reply_is_an_error() {
    let error = |kind: &str| json!({"error": {"type": kind, "message": "m"}});
    for (frames, expected) in [
        (vec![start(), error("throttlingException")], ModelError::RateLimited { retry_after: None }),
        (vec![error("modelStreamErrorException")], ModelError::Server { status: 424, retry_after: None }),
        (vec![json!({"messageStop": {"stopReason": "malformed_tool_use"}})], ModelError::Malformed),
        (vec![json!({"contentBlockDelta": {"delta": {"text": "no index"}}})], ModelError::Malformed),
        (vec![thinking(0, json!({"redactedContent": "no base64!"}))], ModelError::Malformed),
        (vec![json!([])], ModelError::Malformed),
    ] {
        assert_eq!(decode(&frames), Err(expected), "{frames:?}");
    }
}

fn event(value: &Value) -> Vec<u8> {
    let (kind, payload) = value.as_object().unwrap().iter().next().unwrap();
    let kind: &'static str = kind.clone().leak();
    frame(&[(":event-type", kind), (":message-type", "event")], &payload.to_string())
}

async fn called(fake: &Fake) -> Vec<Result<ModelEvent, ModelError>> {
    Bedrock::new(fake.bedrock()).stream(&ModelId::new("amazon.nova-pro-v1:0"), &request()).collect().await
}

#[tokio::test]
async fn a_call_goes_over_http() {
    let answer: Vec<u8> = [&[start(), text(0, "Grüße"), stopped(0)][..], &end("end_turn")]
        .concat()
        .iter()
        .flat_map(event)
        .collect();
    let pieces = answer.chunks(5).map(|chunk| Piece::Bytes(chunk.to_vec())).collect();
    let throttled = refuse(429, &[("x-amzn-errortype", "ThrottlingException:")], r#"{"message":"m"}"#);
    let fake = Fake::start([throttled, FakeResponse::Stream(pieces)]).await;
    let events: Vec<ModelEvent> = called(&fake).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(events[1], said("Grüße"));
    assert!(matches!(events.last(), Some(ModelEvent::Finished { usage: COUNTED, .. })), "{events:?}");
    let requests = fake.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1].1, encode(&ModelId::new("amazon.nova-pro-v1:0"), &request()).unwrap());
    let signed = requests[1].0["authorization"].to_str().unwrap();
    assert!(signed.contains("/eu-west-1/bedrock/aws4_request"), "{signed}");
}

#[tokio::test]
async fn a_reply_that_breaks_off_is_not_a_reply() {
    let whole = [&[start(), text(0, "Hi"), stopped(0)][..], &end("end_turn")].concat();
    for frames in [&whole[..2], &whole[..3], &whole[..4]] {
        let bytes: Vec<u8> = frames.iter().flat_map(event).collect();
        let fake = Fake::start([FakeResponse::Stream(vec![Piece::Bytes(bytes)])]).await;
        let events = called(&fake).await;
        assert_eq!(events.last(), Some(&Err(ModelError::Truncated)), "{}", frames.len());
    }
    let gone = refuse(403, &[("x-amzn-errortype", "AccessDeniedException")], r#"{"message":"m"}"#);
    assert_eq!(called(&Fake::start([gone]).await).await, [Err(ModelError::Permission)]);
}

proptest! {
    /// Whatever comes, nothing panics.
    #[test]
    fn no_answer_panics(text in "\\PC{0,20}", number: i64, pick in 0usize..6, kind in 0usize..6) {
        let values = [json!(text), json!(number), json!(null), json!([text]), json!({"toolUse": number}), json!({text: {}})];
        let value = &values[pick];
        let kinds = ["contentBlockStart", "contentBlockDelta", "messageStop", "metadata", "error", "messageStart"];
        let mut decoder = Decoder::new(&model());
        for event in [value.clone(), json!({"contentBlockIndex": number, "start": value, "delta": value, "usage": value})] {
            let _ = decoder.data(&json!({kinds[kind]: event}).to_string());
        }
        let _ = decoder.end();
    }
}

#[test]
fn thinking_is_requested_from_models_that_have_it() {
    let asks = ModelRequest { effort: Some(Effort::High), ..request() };
    let body = encode(&ModelId::new("eu.anthropic.claude-sonnet-5-5"), &asks).unwrap();
    assert_eq!(strict::check_converse(&body), Ok(()));
    assert_eq!(body["additionalModelRequestFields"]["thinking"]["type"], "adaptive");
    assert_eq!(body["outputConfig"], json!({"effort": "high"}));
    let body = encode(&ModelId::new("amazon.nova-pro-v1:0"), &asks).unwrap();
    assert_eq!((&body["additionalModelRequestFields"], &body["outputConfig"]), (&Value::Null, &Value::Null));
}
