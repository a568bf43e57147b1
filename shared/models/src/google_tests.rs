use domain::models::{Effort, Message, SystemBlock};
use proptest::prelude::*;
use serde_json::json;

use super::super::fake::{Fake, FakeResponse, Piece, refuse, whole};
use super::*;
use crate::sample::{self, WEATHER, message, result, said, tool_use};

fn native(block: Value) -> Block {
    Block::Native { provider: Provider::Google, block }
}

fn signature(text: &str) -> Block {
    native(json!({"thoughtSignature": text}))
}

fn model() -> ModelId {
    ModelId::new("gemini-3.8-flash")
}

fn request() -> ModelRequest {
    let calls = vec![
        Block::Native { provider: Provider::Anthropic, block: json!({"type": "thinking"}) },
        Block::text("Let me look."),
        signature("s1"),
        tool_use("fc_1", "get_weather", json!({"city": "Paris"})),
        tool_use("fc_2", "get_weather", json!({})),
        native(json!({"executableCode": {"code": "1"}})),
        signature("s2"),
    ];
    let results = vec![Block::text("Well?"), result("fc_1", "22C", false), result("fc_2", "no city", true)];
    let messages =
        vec![Message::user("And in Paris?"), message(Role::Assistant, calls), message(Role::User, results)];
    let mut request = sample::request(WEATHER, messages);
    request.system.insert(1, SystemBlock::plain(" "));
    request
}

#[test]
fn a_request_is_encoded_in_the_apis_format() {
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "rules"}, {"text": "now: noon"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "And in Paris?"}]},
            {"role": "model", "parts": [
                {"text": "Let me look."},
                {"functionCall": {"id": "fc_1", "name": "get_weather", "args": {"city": "Paris"}}, "thoughtSignature": "s1"},
                {"functionCall": {"id": "fc_2", "name": "get_weather", "args": {}}},
                {"executableCode": {"code": "1"}},
                {"text": "", "thoughtSignature": "s2"},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "fc_1", "name": "get_weather", "response": {"result": "22C"}}},
                {"functionResponse": {"id": "fc_2", "name": "get_weather", "response": {"error": "no city"}}},
                {"text": "Well?"},
            ]},
        ],
        "tools": [{"functionDeclarations": [
            {"name": "get_weather", "description": "Says the weather.", "parametersJsonSchema": {"type": "object"}},
        ]}],
        "generationConfig": {"maxOutputTokens": 1_000},
    });
    assert_eq!(encode(&model(), &request()), Ok(expected));
}

#[test]
fn the_choice_of_a_tool_needs_tools() {
    for (choice, expected) in [
        (ToolChoice::Auto, Value::Null),
        (ToolChoice::Any, json!({"mode": "ANY"})),
        (ToolChoice::Tool("a".into()), json!({"mode": "ANY", "allowedFunctionNames": ["a"]})),
        (ToolChoice::None, json!({"mode": "NONE"})),
    ] {
        let body = encode(&model(), &ModelRequest { tool_choice: choice.clone(), ..request() }).unwrap();
        assert_eq!(body["toolConfig"]["functionCallingConfig"], expected);
        let body =
            encode(&model(), &ModelRequest { tool_choice: choice, tools: Vec::new(), ..request() }).unwrap();
        assert_eq!(body["toolConfig"], Value::Null);
    }
}

#[test]
fn the_models_name_is_sent_unchanged_and_never_changes_the_path() {
    let check = |id: &str, expected: Option<&str>| {
        let expected = expected.map(str::to_owned).ok_or(ModelError::NotFound);
        assert_eq!(path(&ModelId::new(id)), expected, "{id}");
    };
    check("gemini-3.8-flash", Some("/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"));
    check("tunedModels/a@1", Some("/v1beta/tunedModels/a@1:streamGenerateContent?alt=sse"));
    for id in ["", "a?b", "a#b", "a b", "../v1/files", "a/../b", "/a", "a/", "é", "a%2Fb"] {
        check(id, None);
    }
}

fn decode(chunks: &[Value]) -> Result<Vec<ModelEvent>, ModelError> {
    let mut decoder = Decoder::new(&model(), &request());
    let mut events = sample::events(&mut decoder, chunks)?;
    events.extend(decoder.end()?);
    Ok(events)
}

fn chunk(parts: Value, finish: Option<&str>) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if let Some(finish) = finish {
        candidate["finishReason"] = finish.into();
    }
    json!({"candidates": [candidate], "modelVersion": "m", "responseId": "r1"})
}

const COUNTED: Usage = Usage {
    input_tokens: 2_060,
    cache_read_tokens: 5_000,
    cache_write_5m_tokens: 0,
    cache_write_1h_tokens: 0,
    output_tokens: 55,
    reasoning_tokens: 10,
    web_searches: 0,
    code_runs: 0,
    estimated: false,
};

fn counts() -> Value {
    json!({"promptTokenCount": 7_060, "cachedContentTokenCount": 5_000, "candidatesTokenCount": 45,
        "thoughtsTokenCount": 10, "toolUsePromptTokenCount": 0, "totalTokenCount": 7_115})
}

/// Checks the events between the start and the usage, the stop reason, and the blocks.
#[track_caller]
fn check(chunks: &[Value], middle: &[ModelEvent], stop: StopReason, blocks: &[Block]) {
    let mut chunks = chunks.to_vec();
    chunks.push(json!({"candidates": [], "modelVersion": "m", "usageMetadata": counts()}));
    let started = ModelEvent::Started { model: ModelId::new("m") };
    let finished = ModelEvent::Finished { stop, assistant_blocks: blocks.to_vec(), usage: COUNTED };
    let expected = [&[started], middle, &[ModelEvent::Usage(COUNTED), finished]].concat();
    assert_eq!(decode(&chunks), Ok(expected));
}

#[test]
fn text_and_thoughts_are_read() {
    let thinks = ModelEvent::ThinkingDelta("Hm.".into());
    check(
        &[
            chunk(json!([{"text": "Hm.", "thought": true}]), None),
            chunk(json!([{"text": "Let me"}]), None),
            chunk(json!([{"text": " check."}]), None),
            chunk(json!([{"text": "", "thoughtSignature": "s1"}]), Some("STOP")),
        ],
        &[thinks, said("Let me"), said(" check.")],
        StopReason::EndTurn,
        &[Block::text("Let me check."), signature("s1")],
    );
    for (reason, stop) in [
        ("MAX_TOKENS", StopReason::MaxTokens),
        ("SAFETY", StopReason::ContentFilter),
        ("RECITATION", StopReason::ContentFilter),
        ("REASON_OF_TOMORROW", StopReason::Other),
    ] {
        check(&[chunk(json!([]), Some(reason))], &[], stop, &[]);
    }
}

#[test]
fn calls_keep_their_signatures() {
    let used =
        |id: &str, input: Value| ModelEvent::ToolUse { id: id.into(), name: "get_weather".into(), input };
    let block = |id: &str, input: Value| Block::ToolUse { id: id.into(), name: "get_weather".into(), input };
    let paris = json!({"city": "Paris"});
    let chunks = [
        chunk(json!([{"text": "Two."}]), None),
        chunk(
            json!([{"functionCall": {"id": "fc_1", "name": "get_weather", "args": paris}, "thoughtSignature": "s1"},
                {"functionCall": {"name": "get_weather"}}]),
            None,
        ),
        chunk(
            json!([{"executableCode": {"code": "1"}}, {"functionCall": {"name": "x", "args": [1]}}]),
            Some("STOP"),
        ),
    ];
    let invalid = ModelEvent::InvalidToolInput {
        id: "call_2".into(),
        name: "x".into(),
        raw: "[1]".into(),
        reason: "the arguments are not a JSON object".into(),
    };
    check(
        &chunks,
        &[said("Two."), used("fc_1", paris.clone()), used("call_1", json!({})), invalid],
        StopReason::ToolUse,
        &[
            Block::text("Two."),
            signature("s1"),
            block("fc_1", paris),
            block("call_1", json!({})),
            native(json!({"executableCode": {"code": "1"}})),
        ],
    );
}

/// What the API sent goes back as it came, up to the order of keys.
#[test]
fn a_reply_is_sent_back_as_it_came() {
    let parts = json!([
        {"text": "A", "thoughtSignature": "s0"},
        {"functionCall": {"id": "1", "name": "get_weather", "args": {}}, "thoughtSignature": "s1"},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK"}, "thoughtSignature": "s2"},
        {"text": "B"},
        {"text": "", "thoughtSignature": "s3"},
    ]);
    let events = decode(&[chunk(parts.clone(), Some("STOP"))]).unwrap();
    let Some(ModelEvent::Finished { assistant_blocks, .. }) = events.last() else { panic!("{events:?}") };
    let messages = vec![
        Message::user("Go"),
        Message { role: Role::Assistant, content: assistant_blocks.clone() },
        Message {
            role: Role::User,
            content: vec![Block::ToolResult {
                tool_use_id: "1".into(),
                content: "x".into(),
                is_error: false,
            }],
        },
    ];
    let body = encode(&model(), &ModelRequest { messages, ..request() }).unwrap();
    assert_eq!(body["contents"][1]["parts"], parts);
}

#[test]
fn an_invalid_reply_is_an_error() {
    let error =
        json!({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}});
    let overloaded = ModelError::Overloaded { retry_after: None };
    let text = chunk(json!([{"text": "a"}]), None);
    for (chunks, expected) in [
        (vec![error.clone()], overloaded.clone()),
        (vec![text.clone(), json!([error])], overloaded),
        (vec![json!({"promptFeedback": {"blockReason": "SAFETY"}})], ModelError::Refused),
        (vec![chunk(json!([]), Some("MALFORMED_FUNCTION_CALL"))], ModelError::Malformed),
        (vec![text], ModelError::Truncated),
        (vec![], ModelError::Truncated),
    ] {
        assert_eq!(decode(&chunks), Err(expected), "{chunks:?}");
    }
    assert_eq!(Decoder::new(&model(), &request()).data("<html>"), Err(ModelError::Malformed));
}

#[test]
fn usage_is_estimated_if_none_is_reported() {
    let events = decode(&[chunk(json!([{"text": "a".repeat(300)}]), Some("STOP"))]).unwrap();
    let Some(ModelEvent::Finished { usage, .. }) = events.last() else { panic!("{events:?}") };
    assert!(usage.estimated && usage.input_tokens > 0 && usage.output_tokens >= 100, "{usage:?}");
}

fn sse(chunks: &[Value]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect()
}

async fn called(fake: &Fake) -> Vec<Result<ModelEvent, ModelError>> {
    use futures::StreamExt;
    Google::new(fake.google()).stream(&model(), &request()).collect().await
}

#[tokio::test]
async fn a_call_goes_over_http() {
    let text = sse(&[chunk(json!([{"text": "Grüße"}]), None), {
        let mut last = chunk(json!([]), Some("STOP"));
        last["usageMetadata"] = counts();
        last
    }]);
    // A character is cut by a packet's end.
    let cut = text.find('ü').unwrap() + 1;
    let pieces =
        vec![Piece::Bytes(text.as_bytes()[..cut].to_vec()), Piece::Bytes(text.as_bytes()[cut..].to_vec())];
    let wait = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "m", "details": [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.001s"}]}});
    let fake =
        Fake::start([refuse(429, &[], &json!([wait]).to_string()), FakeResponse::Stream(pieces)]).await;
    let events: Vec<ModelEvent> = called(&fake).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(events[1], said("Grüße"));
    assert!(
        matches!(events.last(), Some(ModelEvent::Finished { usage, .. }) if *usage == COUNTED),
        "{events:?}"
    );
    let requests = fake.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1].1, encode(&model(), &request()).unwrap());
}

#[tokio::test]
async fn a_reply_that_breaks_off_is_not_a_reply() {
    let fake = Fake::start([whole(&sse(&[chunk(json!([{"text": "a"}]), None)]))]).await;
    assert_eq!(called(&fake).await.last(), Some(&Err(ModelError::Truncated)));
    let used_up = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "m", "details": [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure",
         "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "33s"}]}});
    let fake = Fake::start([refuse(429, &[], &used_up.to_string())]).await;
    assert_eq!(called(&fake).await, [Err(ModelError::Quota)]);
}

proptest! {
    /// Whatever comes, nothing panics, and a stream that is read to its end has one `Finished` at most.
    #[test]
    fn no_answer_panics(text in "\\PC{0,20}", number: i64, pick in 0usize..6) {
        let values = [json!(text), json!(number), json!(null), json!([text]), json!({"text": number}), json!({text: {}})];
        let value = &values[pick];
        for chunk in [value.clone(), chunk(value.clone(), None), chunk(json!([value, {"functionCall": value}]), Some("STOP"))] {
            let mut decoder = Decoder::new(&model(), &request());
            if decoder.data(&chunk.to_string()).is_ok() {
                let _ = decoder.end();
            }
        }
    }
}

#[test]
fn levels_and_schemas_are_requested_from_models_that_have_them() {
    let schema = json!({"type": "object"});
    let asks = ModelRequest { effort: Some(Effort::Low), output_schema: Some(schema.clone()), ..request() };
    let config = encode(&ModelId::new("gemini-3.8-flash"), &asks).unwrap()["generationConfig"].clone();
    assert_eq!(config["thinkingConfig"], json!({"thinkingLevel": "low", "includeThoughts": true}));
    assert_eq!(
        (&config["responseMimeType"], &config["responseJsonSchema"]),
        (&json!("application/json"), &schema)
    );
    // Models before the third generation have budgets of tokens instead of levels.
    let config = encode(&ModelId::new("gemini-2.5-pro"), &asks).unwrap()["generationConfig"].clone();
    assert_eq!(config["thinkingConfig"], Value::Null);
}

#[test]
fn the_provider_searches_and_runs_code() {
    let asked = ModelRequest { provider_tools: ProviderTool::ALL.to_vec(), ..request() };
    let body = encode(&model(), &asked).unwrap();
    let tools = &body["tools"][0];
    assert_eq!((&tools["googleSearch"], &tools["codeExecution"]), (&json!({}), &json!({})));
    assert_eq!(tools["functionDeclarations"].as_array().unwrap().len(), asked.tools.len());
    assert_eq!(body["toolConfig"]["includeServerSideToolInvocations"], true);
    let alone = encode(&model(), &ModelRequest { tools: Vec::new(), ..asked.clone() }).unwrap();
    assert_eq!((&alone["tools"][0]["googleSearch"], &alone["toolConfig"]), (&json!({}), &Value::Null));
    assert_eq!(encode(&model(), &request()).unwrap()["toolConfig"], Value::Null);

    let call = json!({"toolCall": {"id": "1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["oil", "lamp oil"]}}});
    let answer = json!({"toolResponse": {"id": "1", "toolType": "GOOGLE_SEARCH_WEB", "response": {}}});
    let code = json!({"executableCode": {"language": "PYTHON", "code": "1"}});
    let mut grounded = chunk(json!([{"text": "Oil."}]), Some("STOP"));
    grounded["candidates"][0]["groundingMetadata"] = json!({"webSearchQueries": ["oil", "lamp oil"]});
    let mut counted = json!({"candidates": [], "modelVersion": "m", "usageMetadata": counts()});
    let mut signed = call.clone();
    signed["thoughtSignature"] = "s1".into();
    // The usage comes before or after the searches.
    for chunks in [
        vec![chunk(json!([signed, answer, code]), None), grounded.clone(), counted.clone()],
        vec![chunk(json!([signed, answer, code]), None), counted.take(), grounded],
    ] {
        let chunks: Vec<Value> = chunks
            .into_iter()
            .map(|chunk| {
                if chunk.is_null() { json!({"modelVersion": "m", "usageMetadata": counts()}) } else { chunk }
            })
            .collect();
        let events = decode(&chunks).unwrap();
        let Some(ModelEvent::Finished { assistant_blocks, usage, .. }) = events.last() else {
            panic!("{events:#?}")
        };
        assert_eq!(*usage, Usage { web_searches: 2, ..COUNTED });
        let expected = [
            signature("s1"),
            native(call.clone()),
            native(answer.clone()),
            native(code.clone()),
            Block::text("Oil."),
        ];
        assert_eq!(assistant_blocks, &expected);
        let reply = Message { role: Role::Assistant, content: assistant_blocks.clone() };
        let again = ModelRequest {
            messages: vec![Message::user("Look"), reply, Message::user("And?")],
            ..asked.clone()
        };
        let sent = &encode(&model(), &again).unwrap()["contents"][1]["parts"];
        assert_eq!(sent, &json!([signed, answer, code, {"text": "Oil."}]));
    }
}
