use domain::models::meter::Meter;
use domain::models::{Block, ModelId, StopReason, estimate};
use serde_json::json;

use super::super::anthropic::Anthropic;
use super::super::fake::{Fake, FakeResponse, Piece, limits, refuse, whole};
use super::super::openai::{Dialect, FIRST_MODEL, OpenAi};
use super::super::{Model, Retry};
use super::*;
use crate::sample::hello;

/// The input that [`HELLO`] reports, in tokens.
const SAID: u64 = 3;

const HELLO: &str = r#"event: message_start
data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":3,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Grüße 👋"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}

event: message_stop
data: {"type":"message_stop"}

"#;

/// The text of a call or its error, and how often it was sent.
async fn outcome(
    answers: impl IntoIterator<Item = FakeResponse>,
    limits: ModelLimits,
) -> (String, Option<ModelError>, usize) {
    let fake = Fake::start(answers).await;
    let (text, error) =
        read(Anthropic::new(fake.anthropic().with_limits(limits)).stream(&ModelId::new("m"), &hello())).await;
    (text, error, fake.requests().len())
}

async fn read(mut events: EventStream) -> (String, Option<ModelError>) {
    let (mut text, mut finished) = (String::new(), false);
    while let Some(event) = events.next().await {
        assert!(!finished, "nothing follows the end");
        match event {
            Ok(ModelEvent::TextDelta(delta)) => text.push_str(&delta),
            Ok(ModelEvent::Finished { .. }) => finished = true,
            Ok(_) => {}
            Err(error) => {
                assert!(events.next().await.is_none(), "nothing follows an error");
                return (text, Some(error));
            }
        }
    }
    assert!(finished, "a stream without an error has an end");
    (text, None)
}

#[tokio::test]
async fn a_reply_is_read_however_it_is_framed() {
    let hello = ("Grüße 👋".to_owned(), None, 1);
    let comments = format!(": comment\n\n:\nretry: 3\nid: 7\n{HELLO}");
    let variants = [
        HELLO.to_owned(),
        HELLO.replace('\n', "\r\n"),
        HELLO.replace('\n', "\r"),
        HELLO.replace("data: ", "data:"),
        HELLO.replace("event: ", "event:"),
        comments,
        // One event's data over several lines.
        HELLO.replace(r#","index":0"#, "\ndata: ,\"index\":0"),
        // An event of an unknown future kind, and one without data.
        format!("event: tomorrow\ndata: {{\"type\":\"tomorrow\"}}\n\nevent: empty\n\ndata:\n\n{HELLO}"),
        format!("\u{feff}{HELLO}"),
        format!("{HELLO}data: after the end\n\n"),
    ];
    for text in variants {
        assert_eq!(outcome([whole(&text)], limits()).await, hello, "{text}");
    }
    // Cut in the middle of characters, lines and line ends.
    for size in [1, 2, 3, 7, 64] {
        let bytes = HELLO.replace('\n', "\r\n").into_bytes();
        let pieces = bytes.chunks(size).map(|chunk| Piece::Bytes(chunk.to_vec())).collect();
        assert_eq!(outcome([FakeResponse::Stream(pieces)], limits()).await, hello, "{size}");
    }
}

#[tokio::test]
async fn a_failure_before_the_first_piece_is_retried() {
    let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}\n\n";
    let start = &HELLO[..HELLO.find("event: content_block_start").unwrap()];
    let ok = || ("Grüße 👋".to_owned(), None, 2);
    for failure in [
        refuse(429, &[("retry-after-ms", "5")], "{}"),
        refuse(429, &[("retry-after", "0")], "{}"),
        refuse(500, &[], "{}"),
        refuse(502, &[("content-type", "text/html")], "<html><h1>502 Bad Gateway</h1></html>"),
        refuse(529, &[], ""),
        refuse(400, &[("x-should-retry", "true")], "{}"),
        whole(""),
        whole(start),
        whole(overloaded),
        whole(&format!("{start}{overloaded}")),
        FakeResponse::Stream(vec![Piece::Break]),
        FakeResponse::Stream(vec![Piece::Bytes(start.into()), Piece::Break]),
    ] {
        assert_eq!(outcome([failure, whole(HELLO)], limits()).await, ok());
    }
}

/// A try that may have been billed is reported once: by an event, or by the error that ends the call.
#[tokio::test]
async fn a_try_that_may_have_been_billed_is_counted() {
    let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}\n\n";
    let start = &HELLO[..HELLO.find("event: content_block_start").unwrap()];
    let cut_off = || FakeResponse::Stream(vec![Piece::Break]);
    let begun = || whole(&format!("{start}{overloaded}"));
    let refused = || refuse(429, &[("retry-after", "0")], "{}");
    let guess = estimate::request_tokens(&ModelId::new("m"), &hello());
    for (answers, lost, fails, input) in [
        (vec![whole(HELLO)], 0, false, SAID),
        (vec![refused(), whole(HELLO)], 0, false, SAID),
        (vec![cut_off(), whole(HELLO)], 1, false, guess + SAID),
        (vec![begun(), refused(), whole(HELLO)], 1, false, 2 * SAID),
        (vec![refused(), refused(), refused()], 0, true, 0),
        // The last one is reported by its error, and by what it had sent before.
        (vec![cut_off(), cut_off(), cut_off()], 2, true, 3 * guess),
        (vec![begun(), begun(), begun()], 2, true, 3 * SAID),
    ] {
        let fake = Fake::start(answers).await;
        let events: Vec<_> =
            Anthropic::new(fake.anthropic()).stream(&ModelId::new("m"), &hello()).collect().await;
        let counted = events.iter().filter(|event| matches!(event, Ok(ModelEvent::TryLost(_)))).count();
        assert_eq!((counted, events.last().unwrap().is_err()), (lost, fails), "{events:?}");
        // Each try that has begun says what its provider had reported: 3 tokens of input.
        let mut meter = Meter::default();
        events.iter().flatten().for_each(|event| meter.record(event));
        let error = events.iter().find_map(|event| event.as_ref().err());
        let used = meter.used(&ModelId::new("m"), &hello(), error);
        assert_eq!(used.input_tokens, input, "{events:?}");
    }
}

#[tokio::test]
async fn permanent_failures_are_not_retried() {
    let check = async |answers: Vec<FakeResponse>, expected: ModelError, sent: usize| {
        assert_eq!(outcome(answers, limits()).await, (String::new(), Some(expected), sent));
    };
    check(vec![refuse(401, &[], "{}")], ModelError::Authentication, 1).await;
    check(vec![refuse(500, &[("x-should-retry", "false")], "")], ModelError::Unexpected { status: 500 }, 1)
        .await;
    let hour = Some(Duration::from_secs(3600));
    check(
        vec![refuse(429, &[("retry-after", "3600")], "")],
        ModelError::RateLimited { retry_after: hour },
        1,
    )
    .await;
    let server = || ModelError::Server { status: 503, retry_after: None };
    check((0..3).map(|_| refuse(503, &[], "")).collect(), server(), 3).await;
    let long = "x".repeat(1_000_000);
    check((0..3).map(|_| refuse(503, &[], &long)).collect(), server(), 3).await;
    check(
        vec![refuse(307, &[("location", "http://127.0.0.1:1/")], "")],
        ModelError::Unexpected { status: 307 },
        1,
    )
    .await;
    check(vec![whole("data: <html>\n\n")], ModelError::Malformed, 1).await;
}

#[tokio::test]
async fn a_failure_after_the_first_piece_is_returned_to_the_caller() {
    let cut = |marker: &str| HELLO[..HELLO.find(marker).unwrap()].to_owned();
    let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n";
    let begun = cut("event: content_block_stop");
    let check = async |pieces: Vec<Piece>, expected: ModelError| {
        let limits = ModelLimits { idle: Duration::from_millis(50), ..limits() };
        let (text, error, sent) = outcome([FakeResponse::Stream(pieces)], limits).await;
        assert_eq!((text.as_str(), error, sent), ("Grüße 👋", Some(expected), 1));
    };
    let bytes = |text: &str| Piece::Bytes(text.into());
    check(vec![bytes(&begun)], ModelError::Truncated).await;
    check(vec![bytes(&cut("event: message_stop"))], ModelError::Truncated).await;
    // The last frame lacks the blank line that ends it.
    check(vec![bytes(HELLO.trim_end())], ModelError::Truncated).await;
    check(vec![bytes(&begun), bytes(overloaded)], ModelError::Overloaded { retry_after: None }).await;
    check(vec![bytes(&begun), Piece::Break], ModelError::ConnectionLost).await;
    check(vec![bytes(&begun), Piece::Hang], ModelError::Timeout(TimeoutPhase::Idle)).await;
}

/// Any server may be configured, so any answer is possible.
#[tokio::test]
async fn an_answer_without_an_end_is_broken_off() {
    let begun = HELLO[..HELLO.find("event: content_block_stop").unwrap()].to_owned();
    let delta = format!(
        "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{}\"}}}}\n\n",
        "x".repeat(1024 * 1024)
    );
    // As frames, and as one endless line.
    for piece in [delta, "x".repeat(1024 * 1024)] {
        let pieces = (0..2 * MAX_ANSWER_BYTES / piece.len()).map(|_| Piece::Bytes(piece.clone().into()));
        let answer = [Piece::Bytes(begun.clone().into())].into_iter().chain(pieces).collect();
        let (text, error, _) = outcome([FakeResponse::Stream(answer)], limits()).await;
        assert_eq!(error, Some(ModelError::Truncated));
        assert!(text.len() < MAX_ANSWER_BYTES, "{}", text.len());
    }
}

#[tokio::test]
async fn every_wait_has_a_limit() {
    let short = Duration::from_millis(40);
    let once = ModelLimits { retry: Retry { tries: 1, ..limits().retry }, ..limits() };
    let (_, error, _) = outcome([FakeResponse::Silence], ModelLimits { first_byte: short, ..once }).await;
    assert_eq!(error, Some(ModelError::Timeout(TimeoutPhase::FirstByte)));
    let (_, error, _) =
        outcome([FakeResponse::Stream(vec![Piece::Hang])], ModelLimits { idle: short, ..once }).await;
    assert_eq!(error, Some(ModelError::Timeout(TimeoutPhase::Idle)));
    let deadline = ModelLimits { deadline: short, ..limits() };
    for answer in [
        FakeResponse::Silence,
        FakeResponse::Stream(vec![Piece::Hang]),
        FakeResponse::Stream(vec![Piece::Bytes(HELLO[..HELLO.len() - 40].into()), Piece::Hang]),
        refuse(429, &[("retry-after", "60")], ""),
    ] {
        let (_, error, sent) = outcome([answer], deadline).await;
        assert_eq!((error, sent), (Some(ModelError::Timeout(TimeoutPhase::Deadline)), 1));
    }
    let nobody = Endpoint::anthropic("http://127.0.0.1:1", "k").unwrap().with_limits(limits());
    assert_eq!(
        read(Anthropic::new(nobody).stream(&ModelId::new("m"), &hello())).await.1,
        Some(ModelError::Connection { at: "http://127.0.0.1:1".to_owned() })
    );
}

#[tokio::test]
async fn a_stream_that_is_dropped_closes_its_connection() {
    let begun = HELLO[..HELLO.find("event: content_block_stop").unwrap()].to_owned();
    let mut fake = Fake::start([
        FakeResponse::Stream(vec![Piece::Bytes(begun.into()), Piece::Hang]),
        FakeResponse::Silence,
    ])
    .await;
    let model = Anthropic::new(fake.anthropic());
    let mut events = model.stream(&ModelId::new("m"), &hello());
    assert!(matches!(events.next().await, Some(Ok(ModelEvent::Started { .. }))));
    drop(events);
    fake.left.recv().await.unwrap();
    // The same before the answer has begun.
    let mut events = model.stream(&ModelId::new("m"), &hello());
    assert!(tokio::time::timeout(Duration::from_millis(50), events.next()).await.is_err());
    drop(events);
    fake.left.recv().await.unwrap();
}

#[tokio::test]
async fn a_model_id_reaches_the_wire_unchanged() {
    const DONE: &str = "data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n\
                        : OPENROUTER PROCESSING\n\ndata: [DONE]\n\n";
    let ids = ["qwen3-max", "openai/o3-mini-high", "org::m", "llama3.2:1b"];
    let fake = Fake::start(ids.map(|_| whole(DONE)).into_iter().chain([whole(DONE)])).await;
    let model = OpenAi::new(fake.openai(), Dialect::COMPATIBLE);
    for id in ids.into_iter().chain([FIRST_MODEL]) {
        assert_eq!(read(model.stream(&ModelId::new(id), &hello())).await, ("Hi".to_owned(), None), "{id}");
    }
    let sent: Vec<Value> = fake.requests().into_iter().map(|(_, body)| body["model"].clone()).collect();
    assert_eq!(json!(sent), json!(["qwen3-max", "openai/o3-mini-high", "org::m", "llama3.2:1b", "first:7b"]));
}

#[tokio::test]
async fn an_openai_reply_is_read_to_its_end() {
    let fake = Fake::start([whole(
        "data:{\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\r\n\r\n\
         data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\r\n\r\n\
         data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\r\n\r\ndata: [DONE]\r\n\r\n",
    )])
    .await;
    let events: Vec<_> = OpenAi::new(fake.openai(), Dialect::OPENAI)
        .stream(&ModelId::new("m"), &hello())
        .try_collect()
        .await
        .unwrap();
    let usage = domain::models::Usage { input_tokens: 9, output_tokens: 2, ..Default::default() };
    assert_eq!(
        events,
        [
            ModelEvent::Started { model: ModelId::new("m") },
            ModelEvent::TextDelta("Hi".into()),
            ModelEvent::Usage(usage),
            ModelEvent::Finished {
                stop: StopReason::EndTurn,
                assistant_blocks: vec![Block::text("Hi")],
                usage,
            },
        ]
    );
}

#[test]
fn a_key_is_in_no_text() {
    let endpoint = Endpoint::anthropic("http://localhost/", "sk-secret").unwrap();
    assert!(!format!("{endpoint:?} {:?}", endpoint.headers).contains("sk-secret"));
    assert_eq!(endpoint.base(), "http://localhost");
}
