//! The hard cases of reading a model's answer, for every wire format. Each format says the same things in its own way, so
//! the expected events are the same for all of them. What is special about one format is tested beside its codec.

use std::time::Duration;

use domain::models::error::TimeoutPhase;
use domain::models::{Block, ModelError, ModelEvent, ModelId, StopReason, Usage};
use futures::StreamExt;
use serde_json::{Value, json};

use super::anthropic::Anthropic;
use super::aws::tests::frame;
use super::bedrock::Bedrock;
use super::fake::{Fake, FakeResponse, Piece, limits, refuse};
use super::google::Google;
use super::openai::{Dialect, OpenAi};
use super::responses::{self, Responses};
use super::sample::hello;
use super::{Model, ModelLimits, Retry};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wire {
    Anthropic,
    Chat,
    Responses,
    Google,
    Bedrock,
}

use Wire::{Anthropic as A, Bedrock as B, Chat as C, Google as G, Responses as R};

const WIRES: [Wire; 5] = [A, C, R, G, B];
/// The formats that use server-sent events.
const SSE: [Wire; 4] = [A, C, R, G];

/// A part of an answer.
#[derive(Debug, Clone, Copy)]
enum Part {
    Start,
    Text(&'static str),
    /// Two calls at once, their pieces interleaved if the format has pieces. The second one has no arguments.
    Calls,
    /// Events, blocks and deltas that do not exist yet.
    Unknown,
    /// Citations, and a tool that the provider runs itself.
    Extras,
    /// The provider reports in its answer that it is overloaded.
    Overloaded,
    End,
    EndOfCalls,
}

const USED: Usage = Usage {
    input_tokens: 4,
    cache_read_tokens: 5,
    cache_write_5m_tokens: 0,
    cache_write_1h_tokens: 0,
    output_tokens: 2,
    reasoning_tokens: 0,
    web_searches: 0,
    code_runs: 0,
    estimated: false,
};

impl Wire {
    fn client(self, fake: &Fake, limits: ModelLimits) -> Box<dyn Model> {
        match self {
            A => Box::new(Anthropic::new(fake.anthropic().with_limits(limits))),
            C => Box::new(OpenAi::new(fake.openai().with_limits(limits), Dialect::OPENAI)),
            R => Box::new(Responses::new(fake.openai().with_limits(limits), responses::Dialect::OpenAi)),
            G => Box::new(Google::new(fake.google().with_limits(limits))),
            B => Box::new(Bedrock::new(fake.bedrock().with_limits(limits))),
        }
    }

    /// The events of a part, as JSON.
    fn events(self, part: Part) -> Vec<Value> {
        match self {
            A => anthropic(part),
            C => chat(part),
            R => responses(part),
            G => google(part),
            B => bedrock(part),
        }
    }

    fn bytes(self, parts: &[Part]) -> Vec<u8> {
        let events = parts.iter().flat_map(|part| self.events(*part));
        let mut bytes: Vec<u8> = events.flat_map(|event| self.framed(&event)).collect();
        if self == C && matches!(parts.last(), Some(Part::End | Part::EndOfCalls)) {
            bytes.extend(b"data: [DONE]\n\n");
        }
        bytes
    }

    fn framed(self, event: &Value) -> Vec<u8> {
        match (self, event["type"].as_str()) {
            (B, _) => {
                let (kind, payload) = event.as_object().unwrap().iter().next().unwrap();
                let kind: &'static str = kind.clone().leak();
                let headers = if kind.ends_with("Exception") {
                    [(":exception-type", kind), (":message-type", "exception")]
                } else {
                    [(":event-type", kind), (":message-type", "event")]
                };
                frame(&headers, &payload.to_string())
            }
            (_, Some(kind)) => format!("event: {kind}\ndata: {event}\n\n").into_bytes(),
            (_, None) => format!("data: {event}\n\n").into_bytes(),
        }
    }

    /// The body of a 429.
    fn limited(self) -> Value {
        match self {
            A => json!({"type": "error", "error": {"type": "rate_limit_error", "message": "m"}}),
            C | R => json!({"error": {"type": "requests", "code": "rate_limit_exceeded", "message": "m"}}),
            G => json!([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "m"}}]),
            B => json!({"message": "Too many requests"}),
        }
    }
}

fn anthropic(part: Part) -> Vec<Value> {
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta =
        |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    let input =
        |index: u64, json: &str| delta(index, json!({"type": "input_json_delta", "partial_json": json}));
    let tool = |id: &str| json!({"type": "tool_use", "id": id, "name": "get_weather", "input": {}});
    let end = |reason: &str| {
        // All counts are here, and none in the first event.
        let usage = json!({"input_tokens": 4, "cache_read_input_tokens": 5, "output_tokens": 2});
        vec![
            json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}),
            json!({"type": "message_stop"}),
        ]
    };
    match part {
        Part::Start => {
            vec![json!({"type": "message_start", "message": {"model": "m"}}), json!({"type": "ping"})]
        }
        Part::Text(text) => vec![
            start(0, json!({"type": "text", "text": ""})),
            delta(0, json!({"type": "text_delta", "text": text})),
            stop(0),
        ],
        Part::Calls => vec![
            start(1, tool("a")),
            start(2, tool("b")),
            input(1, "{\"city\":\"Pa"),
            input(2, ""),
            input(1, "ris\"}"),
            stop(2),
            stop(1),
        ],
        Part::Unknown => vec![
            json!({"type": "of_tomorrow", "index": 7}),
            start(7, json!({"type": "of_tomorrow"})),
            delta(7, json!({"type": "of_tomorrow_delta", "x": 1})),
            delta(99, json!({"type": "text_delta", "text": "nowhere"})),
        ],
        Part::Extras => vec![
            delta(0, json!({"type": "citations_delta", "citation": {"cited_text": "c"}})),
            start(8, json!({"type": "server_tool_use", "id": "s", "name": "tool_of_tomorrow", "input": {}})),
            input(8, "{\"query\":"),
            input(8, "\"q\"}"),
        ],
        Part::Overloaded => {
            vec![json!({"type": "error", "error": {"type": "overloaded_error", "message": "m"}})]
        }
        Part::End => end("end_turn"),
        Part::EndOfCalls => end("tool_use"),
    }
}

fn chat(part: Part) -> Vec<Value> {
    let chunk = |delta: Value, finish: Option<&str>| json!({"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    let call = |index: u64, piece: Value| {
        let mut call = json!({"index": index, "type": "function"});
        call.as_object_mut().unwrap().extend(piece.as_object().unwrap().clone());
        chunk(json!({"tool_calls": [call]}), None)
    };
    let begun = |id: &str| json!({"id": id, "function": {"name": "get_weather", "arguments": ""}});
    let more = |arguments: &str| json!({"function": {"arguments": arguments}});
    let end = |reason: &str| {
        let usage = json!({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 5}});
        vec![chunk(json!({}), Some(reason)), json!({"id": "c", "choices": [], "usage": usage})]
    };
    match part {
        Part::Start => vec![chunk(json!({"role": "assistant", "content": ""}), None)],
        Part::Text(text) => vec![chunk(json!({"content": text}), None)],
        Part::Calls => vec![
            call(0, begun("a")),
            call(1, begun("b")),
            call(0, more("{\"city\":\"Pa")),
            call(1, more("")),
            call(0, more("ris\"}")),
        ],
        Part::Unknown => vec![
            json!({"id": "c", "of_tomorrow": {}}),
            chunk(json!({"of_tomorrow": {"x": 1}}), None),
            json!({"id": "c", "choices": []}),
        ],
        Part::Extras => vec![chunk(json!({"annotations": [{"type": "url_citation"}]}), None)],
        Part::Overloaded => vec![json!({"error": {"code": 503, "message": "m"}})],
        Part::End => end("stop"),
        Part::EndOfCalls => end("tool_calls"),
    }
}

fn responses(part: Part) -> Vec<Value> {
    let event = |kind: &str, index: u64, more: Value| {
        let mut event = json!({"type": format!("response.{kind}"), "output_index": index});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let call = |id: &str, arguments: &str| json!({"item": {"type": "function_call", "call_id": id, "name": "get_weather", "arguments": arguments}});
    let more = |index: u64, text: &str| event("function_call_arguments.delta", index, json!({"delta": text}));
    let usage = json!({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 5}, "output_tokens": 2});
    match part {
        Part::Start => vec![json!({"type": "response.created", "response": {"model": "m"}})],
        Part::Text(text) => {
            let message = json!({"type": "message", "content": [{"type": "output_text", "text": text}]});
            vec![
                event("output_item.added", 0, json!({"item": {"type": "message"}})),
                event("output_text.delta", 0, json!({"delta": text})),
                event("output_item.done", 0, json!({"item": message})),
            ]
        }
        Part::Calls => vec![
            event("output_item.added", 1, call("a", "")),
            event("output_item.added", 2, call("b", "")),
            more(1, "{\"city\":\"Pa"),
            more(2, ""),
            more(1, "ris\"}"),
            event("output_item.done", 2, call("b", "")),
            event("output_item.done", 1, call("a", "{\"city\":\"Paris\"}")),
        ],
        Part::Unknown => vec![
            event("of_tomorrow", 7, json!({})),
            event("output_item.added", 7, json!({"item": {"type": "of_tomorrow"}})),
            event("of_tomorrow.delta", 7, json!({"delta": "x"})),
            more(99, "nowhere"),
        ],
        Part::Extras => vec![
            event("output_text.annotation.added", 0, json!({"annotation": {"type": "url_citation"}})),
            event("output_item.added", 8, json!({"item": {"type": "web_search_call"}})),
            event("web_search_call.searching", 8, json!({})),
        ],
        Part::Overloaded => {
            vec![
                json!({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "m"}}}),
            ]
        }
        Part::End | Part::EndOfCalls => {
            vec![json!({"type": "response.completed", "response": {"usage": usage}})]
        }
    }
}

fn google(part: Part) -> Vec<Value> {
    let chunk = |parts: Value| json!({"modelVersion": "m", "candidates": [{"content": {"role": "model", "parts": parts}}]});
    let counts = json!({"promptTokenCount": 9, "cachedContentTokenCount": 5, "candidatesTokenCount": 2});
    match part {
        Part::Start => vec![json!({"modelVersion": "m", "candidates": [{"index": 0}]})],
        Part::Text(text) => vec![chunk(json!([{"text": text}]))],
        // A call arrives whole.
        Part::Calls => vec![chunk(json!([
            {"functionCall": {"id": "a", "name": "get_weather", "args": {"city": "Paris"}}},
            {"functionCall": {"id": "b", "name": "get_weather"}},
        ]))],
        Part::Unknown => vec![
            json!({"ofTomorrow": {}}),
            json!({"candidates": [{"ofTomorrow": 1}]}),
            json!({"candidates": [{"content": {"parts": [{"thought": true, "text": "not shown"}]}}]}),
        ],
        Part::Extras => vec![json!({"candidates": [{"groundingMetadata": {"searchEntryPoint": {}},
            "citationMetadata": {"citationSources": []}}]})],
        Part::Overloaded => vec![json!({"error": {"code": 503, "status": "UNAVAILABLE", "message": "m"}})],
        Part::End | Part::EndOfCalls => {
            vec![json!({"candidates": [{"finishReason": "STOP"}]}), json!({"usageMetadata": counts})]
        }
    }
}

fn bedrock(part: Part) -> Vec<Value> {
    let start = |index: u64, call: Value| json!({"contentBlockStart": {"contentBlockIndex": index, "start": {"toolUse": call}}});
    let tool = |id: &str| json!({"toolUseId": id, "name": "get_weather"});
    let delta =
        |index: u64, delta: Value| json!({"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}});
    let input = |index: u64, json: &str| delta(index, json!({"toolUse": {"input": json}}));
    let stop = |index: u64| json!({"contentBlockStop": {"contentBlockIndex": index}});
    let end = |reason: &str| {
        let usage =
            json!({"inputTokens": 4, "cacheReadInputTokens": 5, "outputTokens": 2, "totalTokens": 11});
        vec![
            json!({"messageStop": {"stopReason": reason}}),
            json!({"metadata": {"usage": usage, "metrics": {}}}),
        ]
    };
    match part {
        Part::Start => vec![json!({"messageStart": {"role": "assistant"}})],
        Part::Text(text) => vec![delta(0, json!({"text": text})), stop(0)],
        Part::Calls => vec![
            start(1, tool("a")),
            start(2, tool("b")),
            input(1, "{\"city\":\"Pa"),
            input(2, ""),
            input(1, "ris\"}"),
            stop(2),
            stop(1),
        ],
        Part::Unknown => vec![
            json!({"ofTomorrow": {}}),
            json!({"contentBlockStart": {"contentBlockIndex": 7, "start": {"ofTomorrow": {}}}}),
            delta(7, json!({"ofTomorrow": "x"})),
            stop(99),
        ],
        Part::Extras => vec![
            delta(0, json!({"citation": {"title": "c"}})),
            start(8, json!({"toolUseId": "s", "name": "web", "type": "server_tool_use"})),
            input(8, "{\"query\":\"q\"}"),
        ],
        Part::Overloaded => vec![json!({"serviceUnavailableException": {"message": "m"}})],
        Part::End => end("end_turn"),
        Part::EndOfCalls => end("tool_use"),
    }
}

/// What was read of an answer.
#[derive(Debug, Default, PartialEq)]
struct Read {
    text: String,
    calls: Vec<(String, Value)>,
    finished: Option<(StopReason, Vec<Block>, Usage)>,
    error: Option<ModelError>,
    sent: usize,
}

async fn read(wire: Wire, limits: ModelLimits, answers: impl IntoIterator<Item = FakeResponse>) -> Read {
    let fake = Fake::start(answers).await;
    let mut events = wire.client(&fake, limits).stream(&ModelId::new("m"), &hello());
    let mut read = Read::default();
    while let Some(event) = events.next().await {
        assert!(read.finished.is_none() && read.error.is_none(), "{wire:?}: nothing follows the end");
        match event {
            Ok(ModelEvent::TextDelta(text)) => read.text.push_str(&text),
            Ok(ModelEvent::ToolUse { id, input, .. }) => read.calls.push((id, input)),
            Ok(ModelEvent::Finished { stop, assistant_blocks, usage }) => {
                // Blocks of a provider's own kind are tested beside its codec.
                let ours =
                    assistant_blocks.into_iter().filter(|block| !matches!(block, Block::Native { .. }));
                read.finished = Some((stop, ours.collect(), usage));
            }
            Ok(_) => {}
            Err(error) => read.error = Some(error),
        }
    }
    read.sent = fake.requests().len();
    read
}

fn whole(bytes: Vec<u8>) -> FakeResponse {
    FakeResponse::Stream(vec![Piece::Bytes(bytes)])
}

fn once() -> ModelLimits {
    ModelLimits { retry: Retry { tries: 1, ..limits().retry }, ..limits() }
}

fn said(text: &str) -> Read {
    let finished = Some((StopReason::EndTurn, vec![Block::text(text)], USED));
    Read { text: text.to_owned(), finished, sent: 1, ..Read::default() }
}

fn failed(text: &str, error: ModelError) -> Read {
    Read { text: text.to_owned(), error: Some(error), sent: 1, ..Read::default() }
}

/// Cases 1 and 2: after some text, the provider reports an error, or the answer ends.
#[tokio::test]
async fn an_answer_that_fails_after_some_text_is_not_repeated() {
    for wire in WIRES {
        let overloaded = whole(wire.bytes(&[Part::Start, Part::Text("Half"), Part::Overloaded]));
        let error = match wire {
            // This format has no code for it.
            R => ModelError::Server { status: 500, retry_after: None },
            _ => ModelError::Overloaded { retry_after: None },
        };
        assert_eq!(read(wire, limits(), [overloaded]).await, failed("Half", error), "{wire:?}");
        let ends = whole(wire.bytes(&[Part::Start, Part::Text("Half")]));
        assert_eq!(read(wire, limits(), [ends]).await, failed("Half", ModelError::Truncated), "{wire:?}");
        let lost = vec![Piece::Bytes(wire.bytes(&[Part::Start, Part::Text("Half")])), Piece::Break];
        let lost = read(wire, limits(), [FakeResponse::Stream(lost)]).await;
        assert_eq!(lost, failed("Half", ModelError::ConnectionLost), "{wire:?}");
    }
}

/// Cases 1 and 2 before the first text: another try follows.
#[tokio::test]
async fn an_answer_that_fails_before_its_text_is_repeated() {
    for wire in WIRES {
        for parts in [&[Part::Start, Part::Overloaded][..], &[Part::Overloaded], &[Part::Start], &[]] {
            let answers =
                [whole(wire.bytes(parts)), whole(wire.bytes(&[Part::Start, Part::Text("Hi"), Part::End]))];
            let expected = Read { sent: 2, ..said("Hi") };
            assert_eq!(read(wire, limits(), answers).await, expected, "{wire:?} {parts:?}");
        }
    }
}

/// Cases 3, 4 and 13: what is unknown is skipped, and usage is read wherever it is.
#[tokio::test]
async fn what_is_unknown_is_skipped() {
    for wire in WIRES {
        for parts in [
            &[Part::Start, Part::Text("Hi"), Part::End][..],
            &[Part::Unknown, Part::Start, Part::Unknown, Part::Text("Hi"), Part::Unknown, Part::End],
            &[Part::Start, Part::Text("Hi"), Part::Extras, Part::End],
        ] {
            assert_eq!(
                read(wire, limits(), [whole(wire.bytes(parts))]).await,
                said("Hi"),
                "{wire:?} {parts:?}"
            );
        }
    }
}

/// Cases 5 and 6: two calls at once, and a call without arguments.
#[tokio::test]
async fn calls_may_come_together_and_without_arguments() {
    for wire in WIRES {
        let parts = [Part::Start, Part::Text("Two."), Part::Calls, Part::EndOfCalls];
        let mut read = read(wire, limits(), [whole(wire.bytes(&parts))]).await;
        read.calls.sort_by(|one, other| one.0.cmp(&other.0));
        let call =
            |id: &str, input: Value| Block::ToolUse { id: id.into(), name: "get_weather".into(), input };
        let paris = json!({"city": "Paris"});
        let blocks = vec![Block::text("Two."), call("a", paris.clone()), call("b", json!({}))];
        let expected = Read {
            calls: vec![("a".into(), paris), ("b".into(), json!({}))],
            finished: Some((StopReason::ToolUse, blocks, USED)),
            ..said("Two.")
        };
        assert_eq!(read, expected, "{wire:?}");
    }
}

/// Case 7: how long a rate limit asks to wait.
#[tokio::test]
async fn a_rate_limit_says_how_long_to_wait() {
    for wire in WIRES {
        let named: &[_] = if wire == B { &[("x-amzn-errortype", "ThrottlingException:")] } else { &[] };
        for (headers, seconds) in [
            (&[("retry-after", "7")][..], Some(7.0)),
            (&[("retry-after-ms", "250"), ("retry-after", "7")], Some(0.25)),
            (&[("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT")], Some(0.0)),
            (&[], None),
            (&[("retry-after", "3600")], Some(3_600.0)),
        ] {
            let answer = refuse(429, &[named, headers].concat(), &wire.limited().to_string());
            let retry_after = seconds.map(Duration::from_secs_f64);
            let expected = failed("", ModelError::RateLimited { retry_after });
            assert_eq!(read(wire, once(), [answer]).await, expected, "{wire:?} {headers:?}");
        }
        // An hour is too long to wait.
        let hour = refuse(429, &[named, &[("retry-after", "3600")]].concat(), &wire.limited().to_string());
        assert_eq!(read(wire, limits(), [hour]).await.sent, 1, "{wire:?}");
    }
}

/// Cases 8 and 9: answers that are not from the provider itself, and errors in unusual forms.
#[tokio::test]
async fn errors_may_have_any_form() {
    for wire in WIRES {
        let html = refuse(502, &[("content-type", "text/html")], "<html><h1>502 Bad Gateway</h1></html>");
        let bad_gateway = ModelError::Server { status: 502, retry_after: None };
        assert_eq!(read(wire, once(), [html]).await, failed("", bad_gateway), "{wire:?}");
        for (status, body, error) in [
            (
                400,
                json!({"code": "Client specified an invalid argument", "error": "Incorrect API key provided: na***ys"}),
                ModelError::Authentication,
            ),
            (
                400,
                json!([{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "API key not valid. Please pass a valid API key."}}]),
                ModelError::Authentication,
            ),
            (400, json!({"error": "prompt is too long: 3 tokens > 2 maximum"}), ModelError::ContextTooLarge),
        ] {
            assert_eq!(
                read(wire, once(), [refuse(status, &[], &body.to_string())]).await,
                failed("", error),
                "{wire:?} {body}"
            );
        }
        // A page with status 200 is no answer.
        let page = read(wire, once(), [whole(b"<html>Please log in</html>\n\n".to_vec())]).await;
        assert!(
            matches!(page.error, Some(ModelError::Truncated | ModelError::Malformed)),
            "{wire:?} {page:?}"
        );
    }
}

/// Case 10: line ends, comments, data over several lines, and characters that are cut by a packet's end.
#[tokio::test]
async fn an_answer_may_be_cut_anywhere() {
    for wire in WIRES {
        let bytes = wire.bytes(&[Part::Start, Part::Text("Grüße 👋"), Part::End]);
        for size in [1, 2, 3, 7, 64] {
            let pieces = bytes.chunks(size).map(|chunk| Piece::Bytes(chunk.to_vec())).collect();
            assert_eq!(
                read(wire, limits(), [FakeResponse::Stream(pieces)]).await,
                said("Grüße 👋"),
                "{wire:?} {size}"
            );
        }
    }
    for wire in SSE {
        let text = String::from_utf8(wire.bytes(&[Part::Start, Part::Text("Grüße 👋"), Part::End])).unwrap();
        for variant in [
            text.replace('\n', "\r\n"),
            text.replace('\n', "\r"),
            text.replace("data: ", "data:"),
            text.replace("data: {", ": OPENROUTER PROCESSING\n\ndata: {\ndata: "),
            format!("\u{feff}: comment\nretry: 3\nid: 7\n\n{text}"),
        ] {
            assert_eq!(
                read(wire, limits(), [whole(variant.clone().into())]).await,
                said("Grüße 👋"),
                "{wire:?} {variant}"
            );
        }
    }
}

/// Cases 11 and 12: a server that hangs, and a client that leaves.
#[tokio::test]
async fn nobody_waits_for_ever() {
    let short = Duration::from_millis(40);
    for wire in WIRES {
        let begun = || Piece::Bytes(wire.bytes(&[Part::Start, Part::Text("Half")]));
        let silent = ModelLimits { first_byte: short, ..once() };
        let expected = failed("", ModelError::Timeout(TimeoutPhase::FirstByte));
        assert_eq!(read(wire, silent, [FakeResponse::Silence]).await, expected, "{wire:?}");
        let idle = ModelLimits { idle: short, ..once() };
        let hangs = FakeResponse::Stream(vec![begun(), Piece::Hang]);
        let expected = failed("Half", ModelError::Timeout(TimeoutPhase::Idle));
        assert_eq!(read(wire, idle, [hangs]).await, expected, "{wire:?}");

        let mut fake = Fake::start([FakeResponse::Stream(vec![begun(), Piece::Hang])]).await;
        let mut events = wire.client(&fake, limits()).stream(&ModelId::new("m"), &hello());
        assert!(matches!(events.next().await, Some(Ok(ModelEvent::Started { .. }))), "{wire:?}");
        drop(events);
        let left = tokio::time::timeout(Duration::from_secs(5), fake.left.recv()).await;
        assert_eq!(left, Ok(Some(())), "{wire:?}: the connection is closed");
    }
}

/// Case 14: a model's id reaches the provider unchanged.
#[tokio::test]
async fn a_models_id_is_sent_as_it_is() {
    for wire in WIRES {
        let ids = ["qwen3-max", "openai/o3-mini-high", "org::m", "llama3.2:1b"];
        let answer = || whole(wire.bytes(&[Part::Start, Part::Text("Hi"), Part::End]));
        let fake = Fake::start(ids.map(|_| answer())).await;
        let client = wire.client(&fake, limits());
        for id in ids {
            let events: Vec<_> = client.stream(&ModelId::new(id), &hello()).collect().await;
            assert!(
                matches!(events.last(), Some(Ok(ModelEvent::Finished { .. }))),
                "{wire:?} {id}: {events:?}"
            );
        }
        for (id, (path, body)) in ids.into_iter().zip(fake.paths().into_iter().zip(fake.requests())) {
            match wire {
                A | C | R => assert_eq!(body.1["model"], id, "{wire:?}"),
                G if id.contains('/') => assert_eq!(path, format!("/v1beta/{id}:streamGenerateContent")),
                G => assert_eq!(path, format!("/v1beta/models/{id}:streamGenerateContent")),
                B => {
                    let encoded = id.replace('/', "%2F").replace(':', "%3A");
                    assert_eq!(path, format!("/model/{encoded}/converse-stream"));
                }
            }
        }
    }
}
