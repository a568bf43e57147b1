//! The cost of streaming a model's reply: the time between the provider's first byte and ours, and the time that each delta takes.
//! The provider is a server in this process, so that both sides use one clock.
//!
//! ```text
//! cargo run --profile bench -p bench --bin stream
//! ```
//!
//! A delta's time is that of a turn with many deltas which arrive at once, without the time of a turn with one delta, divided by
//! their number. It includes the provider's side of the connection.
//!
//! Machines and profiles differ, and a busy machine is slow at everything. So nothing is compared with a fixed time, only with work of
//! the same run: a first byte with that of a proxy that forwards the answer, a delta with parsing it once with `serde_json`. Turns and
//! requests of the proxy alternate, so that both meet the same other work.
//!
//! Exits with 1 if a turn fails. The figures decide nothing: on a busy machine, their ratios are up to half higher than on an idle one.

use std::hint::black_box;
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
use models::{ModelsConfig, ServerConfig};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tests::Harness;
use tests::model::free_server;
use tokio::net::TcpListener;

/// How often everything is measured.
const ROUNDS: usize = 5;

/// Turns with one delta in a round, and as many requests of the proxy.
const TURNS: usize = 60;

const WARM_UP: usize = 20;

/// The deltas of a long reply, and how many long replies are read in a round.
const DELTAS: usize = 20_000;
const LONG: usize = 3;

/// What is asked for: our first byte, in first bytes of the proxy. 2 ms are asked for, and the proxy takes 0.2 ms in an optimised build on
/// two cores. The platform stores a turn's first text before it shows it, the proxy stores nothing.
const FIRST_BYTES: f64 = 10.0;

/// What is asked for: the time of a delta, in times of parsing it. 20 µs are asked for, and parsing takes 7 µs in the profile of the
/// tests. An optimised build takes 3 µs for a delta and has about the same ratio.
const PARSES: f64 = 3.0;

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

fn delta() -> String {
    let choice =
        json!({"index": 0, "delta": {"role": "assistant", "content": "word "}, "finish_reason": null});
    frame(&json!([choice]), &Value::Null)
}

async fn answer(State(provider): State<Arc<Provider>>) -> impl IntoResponse {
    let deltas = provider.deltas.load(Ordering::Relaxed);
    let delta = delta();
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

/// A server that forwards requests to the provider and answers back, and does nothing else.
async fn forward(
    State((client, provider)): State<(reqwest::Client, String)>,
    request: Bytes,
) -> impl IntoResponse {
    let answer = client.post(provider).header("content-type", "application/json").body(request).send();
    let answer = answer.await.expect("the provider answers");
    ([("content-type", "text/event-stream")], Body::from_stream(answer.bytes_stream()))
}

async fn serve(routes: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it listens");
    // Otherwise its kernel keeps the first byte back until the reader's has confirmed the headers.
    let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    format!("http://{address}")
}

/// The times from the provider's first byte to the first text that a client has, and to the end.
struct Took {
    first: Duration,
    whole: Duration,
}

/// Sends a request and reads the answer. `text` is in the first piece that has text, `end` in every complete answer.
async fn read(request: RequestBuilder, provider: &Provider, [text, end]: [&str; 2]) -> Result<Took, String> {
    let mut body = request.send().await.map_err(|error| error.to_string())?.bytes_stream();
    let (mut all, mut first) = (String::new(), None);
    while let Some(piece) = body.next().await {
        all.push_str(&String::from_utf8_lossy(&piece.map_err(|error| error.to_string())?));
        if first.is_none() && all.contains(text) {
            first = Some(provider.began.elapsed());
        }
    }
    let whole = provider.began.elapsed();
    if !all.contains(end) {
        return Err(all.chars().rev().take(300).collect::<String>().chars().rev().collect());
    }
    let sent = Duration::from_nanos(provider.first_byte.load(Ordering::SeqCst));
    let first = first.ok_or("the answer has no text")?;
    Ok(Took { first: first.saturating_sub(sent), whole: whole.saturating_sub(sent) })
}

/// The ways to the provider.
struct Ways {
    h: Harness,
    agent: String,
    client: reqwest::Client,
    proxy: String,
    provider: Arc<Provider>,
}

impl Ways {
    async fn turn(&self) -> Result<Took, String> {
        let request = self.h.request(Method::POST, &format!("/agents/{}/chat", self.agent));
        let request = request.header("accept", "text/event-stream").json(&json!({"message": "Go on"}));
        let read = read(request, &self.provider, ["event: message.delta", "event: run.completed"]).await;
        read.map_err(|error| format!("a turn failed: {error}"))
    }

    async fn forwarded(&self) -> Result<Took, String> {
        let request = self.client.post(&self.proxy).json(&json!({"messages": []}));
        let read = read(request, &self.provider, ["word ", "[DONE]"]).await;
        read.map_err(|error| format!("a request of the proxy failed: {error}"))
    }
}

/// The times of a round.
struct Round {
    first: Vec<Duration>,
    proxy: Vec<Duration>,
    delta: Duration,
    parse: Duration,
}

impl Round {
    async fn measure(ways: &Ways) -> Result<Self, String> {
        let (mut first, mut proxy) = (Vec::new(), Vec::new());
        let (mut short, mut long, mut parses) = (Vec::new(), Vec::new(), Vec::new());
        ways.provider.deltas.store(1, Ordering::Relaxed);
        for _ in 0..TURNS {
            let turn = ways.turn().await?;
            first.push(turn.first);
            short.push(turn.whole);
            proxy.push(ways.forwarded().await?.first);
        }
        ways.provider.deltas.store(DELTAS, Ordering::Relaxed);
        let text = delta();
        let data = text.trim_start_matches("data: ");
        for _ in 0..LONG {
            long.push(ways.turn().await?.whole);
            let began = Instant::now();
            for _ in 0..DELTAS {
                let parsed: Value = serde_json::from_str(black_box(data)).expect("a delta is JSON");
                black_box(parsed);
            }
            parses.push(began.elapsed());
        }
        let deltas = u32::try_from(DELTAS).expect("a small number");
        Ok(Self {
            delta: percentile(&long, 50).saturating_sub(percentile(&short, 50)) / (deltas - 1),
            parse: percentile(&parses, 50) / deltas,
            first,
            proxy,
        })
    }

    /// The first bytes of turns, in first bytes of the proxy.
    fn first_bytes(&self, percent: usize) -> f64 {
        ratio(percentile(&self.first, percent), percentile(&self.proxy, percent))
    }
}

fn ratio(ours: Duration, theirs: Duration) -> f64 {
    ours.as_secs_f64() / theirs.as_secs_f64()
}

fn compare(what: &str, ratio: f64, asked: f64) {
    println!("{what}: {ratio:.1} ({asked} asked for)");
}

fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100]
}

#[tokio::main]
async fn main() -> ExitCode {
    match measure().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn measure() -> Result<(), String> {
    let provider = Arc::new(Provider {
        began: Instant::now(),
        first_byte: AtomicU64::new(0),
        deltas: AtomicUsize::new(1),
    });
    let routes = Router::new().route("/chat/completions", post(answer)).with_state(Arc::clone(&provider));
    let url = serve(routes).await;
    let models = ModelsConfig {
        forced: Some("compatible/m".parse().expect("a model")),
        ..free_server(ServerConfig::at(url.clone()))
    };
    let h = Harness::with(PlatformConfig { models, ..PlatformConfig::in_memory() }).await;
    let agent = h.agent().await;
    let client = tests::client();
    let state = (client.clone(), format!("{url}/chat/completions"));
    let proxy = serve(Router::new().route("/", post(forward)).with_state(state)).await;
    let ways = Ways { h, agent, client, proxy, provider };
    for _ in 0..WARM_UP {
        ways.turn().await?;
        ways.forwarded().await?;
    }
    let mut rounds = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let round = Round::measure(&ways).await?;
        let [p50, p99, bare50, bare99] =
            [(&round.first, 50), (&round.first, 99), (&round.proxy, 50), (&round.proxy, 99)]
                .map(|(times, percent)| percentile(times, percent));
        println!(
            "first byte p50 {p50:.2?}, p99 {p99:.2?}; of the proxy {bare50:.2?}, {bare99:.2?}; \
             a delta {:.2?}, parsing it {:.2?}",
            round.delta, round.parse
        );
        rounds.push(round);
    }
    let first: Vec<Duration> = rounds.iter().flat_map(|round| &round.first).copied().collect();
    let proxy: Vec<Duration> = rounds.iter().flat_map(|round| &round.proxy).copied().collect();
    let median = ratio(percentile(&first, 50), percentile(&proxy, 50));
    // A turn takes longer than the proxy, so other work of the machine hits the late turns of most rounds. The best round has least.
    let late = rounds.iter().map(|round| round.first_bytes(99)).fold(f64::INFINITY, f64::min);
    let mut deltas: Vec<f64> = rounds.iter().map(|round| ratio(round.delta, round.parse)).collect();
    deltas.sort_unstable_by(f64::total_cmp);
    compare("our first byte in first bytes of the proxy, p50 of all rounds", median, FIRST_BYTES);
    compare("our first byte in first bytes of the proxy, p99 of the best round", late, FIRST_BYTES);
    compare("a delta in times of parsing it, median of the rounds", deltas[ROUNDS / 2], PARSES);
    Ok(())
}
