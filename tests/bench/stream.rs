//! The cost of streaming a model's reply: the time between the provider's first byte and ours, and the time that each delta takes.
//! The provider is a server in this process, so that both sides use one clock.
//!
//! ```text
//! cargo run --profile bench -p tests --example stream
//! ```
//!
//! A delta's time is that of a turn with many deltas which arrive at once, without the time of a turn with one delta, divided by
//! their number. It includes the provider's side of the connection. Exits with 1 if a turn fails.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::post;
use axum::serve::ListenerExt;
use bytes::Bytes;
use futures::StreamExt;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::models::{ModelsConfig, ServerConfig};
use tests::Harness;
use tests::model::free_server;
use tokio::net::TcpListener;

/// Turns with one delta.
const TURNS: usize = 300;

const WARM_UP: usize = 20;

/// The deltas of a long reply, and how many long replies are read.
const DELTAS: usize = 20_000;
const LONG: usize = 15;

/// How long the provider thinks before its first byte. Then the turn has nothing else to do.
const THINKS: Duration = Duration::from_millis(30);

struct Provider {
    began: Instant,
    /// When the first byte of the newest answer was given to the connection, in nanoseconds since `began`.
    first_byte: AtomicU64,
    deltas: AtomicUsize,
}

fn frame(choices: &Value, usage: &Value) -> String {
    let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": choices,
        "usage": usage});
    format!("data: {chunk}\n\n")
}

async fn answer(State(provider): State<Arc<Provider>>) -> impl IntoResponse {
    let deltas = provider.deltas.load(Ordering::Relaxed);
    let delta = frame(
        &json!([{"index": 0, "delta": {"role": "assistant", "content": "word "}, "finish_reason": null}]),
        &Value::Null,
    );
    let end = [
        frame(&json!([{"index": 0, "delta": {}, "finish_reason": "stop"}]), &Value::Null),
        frame(
            &json!([]),
            &json!({"prompt_tokens": 10, "completion_tokens": deltas, "total_tokens": 10 + deltas}),
        ),
        "data: [DONE]\n\n".to_owned(),
    ];
    let first = delta.clone();
    let first = async move {
        tokio::time::sleep(THINKS).await;
        let since = provider.began.elapsed().as_nanos();
        provider.first_byte.store(u64::try_from(since).unwrap_or(u64::MAX), Ordering::SeqCst);
        first
    };
    let rest = delta.repeat(deltas - 1) + &end.concat();
    let body = futures::stream::once(first).chain(futures::stream::iter([rest]));
    let body = Body::from_stream(body.map(|text| Ok::<_, std::io::Error>(Bytes::from(text))));
    ([("content-type", "text/event-stream")], body)
}

/// A turn. Returns the time from the provider's first byte to the first text that a client has, and to the end.
async fn turn(h: &Harness, agent: &str, provider: &Provider) -> Result<(Duration, Duration), String> {
    let request = h.request(Method::POST, &format!("/agents/{agent}/chat"));
    let request = request.header("accept", "text/event-stream").json(&json!({"message": "Go on"}));
    let mut body = request.send().await.map_err(|error| error.to_string())?.bytes_stream();
    let (mut text, mut first) = (String::new(), None);
    while let Some(piece) = body.next().await {
        text.push_str(&String::from_utf8_lossy(&piece.map_err(|error| error.to_string())?));
        if first.is_none() && text.contains("event: message.delta") {
            first = Some(provider.began.elapsed());
        }
    }
    let end = provider.began.elapsed();
    if !text.contains("event: run.completed") {
        return Err(text.chars().rev().take(300).collect::<String>().chars().rev().collect());
    }
    let sent = Duration::from_nanos(provider.first_byte.load(Ordering::SeqCst));
    let first = first.ok_or("the turn has no text")?;
    Ok((first.saturating_sub(sent), end.saturating_sub(sent)))
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100]
}

#[tokio::main]
async fn main() -> ExitCode {
    let provider = Arc::new(Provider {
        began: Instant::now(),
        first_byte: AtomicU64::new(0),
        deltas: AtomicUsize::new(1),
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it listens");
    let routes = Router::new().route("/chat/completions", post(answer)).with_state(Arc::clone(&provider));
    // Otherwise its kernel keeps the first byte back until the platform's has confirmed the headers.
    let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let models = ModelsConfig {
        forced: Some("compatible/m".parse().expect("a model")),
        ..free_server(ServerConfig::at(format!("http://{address}")))
    };
    let h = Harness::with(PlatformConfig { models, ..PlatformConfig::in_memory() }).await;
    let agent = h.agent().await;
    let (mut first, mut short, mut long) = (Vec::new(), Vec::new(), Vec::new());
    for at in 0..WARM_UP + TURNS + LONG {
        if at == WARM_UP + TURNS {
            provider.deltas.store(DELTAS, Ordering::Relaxed);
        }
        match turn(&h, &agent, &provider).await {
            Err(error) => {
                println!("a turn failed: {error}");
                return ExitCode::FAILURE;
            }
            Ok(_) if at < WARM_UP => {}
            Ok((to_first, whole)) if at < WARM_UP + TURNS => {
                first.push(to_first);
                short.push(whole);
            }
            Ok((_, whole)) => long.push(whole),
        }
    }
    let [median, late, latest] = [50, 99, 100].map(|percent| percentile(&mut first, percent));
    println!(
        "from the provider's first byte to ours: p50 {median:?}, p99 {late:?}, max {latest:?} ({TURNS} turns)"
    );
    let (one, many) = (percentile(&mut short, 50), percentile(&mut long, 50));
    let each = many.saturating_sub(one) / u32::try_from(DELTAS - 1).expect("a small number");
    println!("a delta: {each:?} (a turn with one: {one:?}, with {DELTAS}: {many:?}, medians)");
    ExitCode::SUCCESS
}
