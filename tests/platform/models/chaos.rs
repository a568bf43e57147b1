//! Chaos: one provider fails in every way at random, another one works. Hundreds of turns of the whole platform.
//!
//! The faulty provider speaks Anthropic's format and the healthy one OpenAI's. Both note what they charge for each turn,
//! with prices of their own, so the platform's records are compared with bills that another program wrote. The clock of
//! the platform is simulated: four seconds pass between turns. The limits of calls are short, and in real time.
//!
//! CI makes 2,000 turns: `CHAOS_TURNS=2000 cargo test -p tests --test platform chaos -- --nocapture` also prints the figures.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use domain::models::ModelTier;
use domain::models::breaker::Gate;
use domain::models::routing::Ask;
use futures::{StreamExt, stream};
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use models::{Addresses, ModelLimits, ModelsConfig, Retry};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::BudgetConfig;
use shared::model_choice;
use tests::events::{events, text};
use tests::send;
use tests::stage::Stage;

/// How many turns there are, unless `CHAOS_TURNS` says otherwise. CI makes 2,000.
const TURNS: usize = 400;

/// At most one turn in so many may be cut off in view of its reader: 25 of 2,000. The faulty provider cuts off the text in 3 of 100 faults.
/// Two runs of 2,000 turns had 12 and 15 such turns. A breaker that stays closed in the outage adds about 15 to them.
const ONE_CUT_IN: usize = 80;

/// A run of so many turns cuts some off. A shorter run may cut off none.
const CUTS: usize = 2_000;

/// How many turns are under way at once.
const AT_ONCE: usize = 4;

/// The limit until the first byte of an answer. Until then a person sees nothing.
const FIRST_BYTE: Duration = Duration::from_secs(3);

/// Micro-dollars per million tokens of input and output, as both providers publish them.
const SONNET: [u64; 2] = [2_000_000, 10_000_000];
const GROK: [u64; 2] = [1_250_000, 2_500_000];

/// What the faulty provider reports as the input of each call, and the healthy one.
const INPUT: u64 = 1_234;
const OUTPUT: u64 = 77;

/// What the faulty provider does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Does {
    Answers,
    /// The status, and the `retry-after` in seconds.
    Refuses(u16, Option<u64>),
    /// No byte comes.
    HangsAtOnce,
    /// Nothing comes after the first event.
    HangsLater,
    /// The connection ends after the first event.
    Truncates,
    /// It ends in the middle of the arguments of a tool, before any text.
    TruncatesACall,
    /// An event that is not JSON.
    Garbles,
    /// An event that says that it is overloaded, with the status 200.
    IsOverloadedLater,
    /// The connection ends after a part of the text. Somebody has seen it, so no other model may begin again.
    TruncatesTheText,
}

impl Does {
    /// A fault. Six in a hundred hang, and take the whole limit.
    fn fault(rng: &mut StdRng) -> Self {
        match rng.random_range(0..100) {
            0..20 => Self::Refuses(429, [None, Some(1), Some(20)][rng.random_range(0..3)]),
            20..40 => Self::Refuses(529, None),
            40..60 => Self::Refuses([500, 502, 503][rng.random_range(0..3)], None),
            60..63 => Self::HangsAtOnce,
            63..66 => Self::HangsLater,
            66..80 => Self::Truncates,
            80..85 => Self::TruncatesACall,
            85..90 => Self::Garbles,
            90..97 => Self::IsOverloadedLater,
            _ => Self::TruncatesTheText,
        }
    }

    /// What the provider charges, in tokens of input and output. A call that it refuses costs nothing.
    const fn charged(self) -> [u64; 2] {
        match self {
            Self::Answers => [INPUT, OUTPUT],
            Self::Refuses(..) => [0, 0],
            // It has read the request and said nothing. Nobody outside knows what it charges.
            Self::HangsAtOnce => [INPUT, 1],
            Self::HangsLater
            | Self::Truncates
            | Self::TruncatesACall
            | Self::Garbles
            | Self::IsOverloadedLater
            | Self::TruncatesTheText => [INPUT, 1],
        }
    }
}

/// The bills of a turn.
#[derive(Clone, Debug, Default)]
struct Bill {
    micros: u64,
    faults: Vec<Does>,
    calls: usize,
}

#[derive(Clone)]
struct Providers(Arc<Mutex<Shared>>);

struct Shared {
    /// How many of a hundred calls fail.
    failing: u32,
    bills: HashMap<String, Bill>,
}

impl Providers {
    async fn start() -> (Self, String) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Shared { failing: 0, bills: HashMap::new() };
        let providers = Self(Arc::new(Mutex::new(shared)));
        let app = Router::new()
            .route("/v1/messages", post(faulty))
            .route("/chat/completions", post(healthy))
            .with_state(providers.clone());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        (providers, url)
    }

    fn fails(&self, percent: u32) {
        self.0.lock().unwrap().failing = percent;
    }

    fn bill(&self, turn: &str) -> Bill {
        self.0.lock().unwrap().bills.get(turn).cloned().unwrap_or_default()
    }

    fn charge(&self, turn: String, prices: [u64; 2], [input, output]: [u64; 2], did: Does) {
        let mut shared = self.0.lock().unwrap();
        let bill = shared.bills.entry(turn).or_default();
        // Rounded up for each call, as every price list does it for the smallest unit of a bill.
        bill.micros += (input * prices[0] + output * prices[1]).div_ceil(1_000_000);
        bill.calls += 1;
        if did != Does::Answers {
            bill.faults.push(did);
        }
    }
}

/// The name of the turn that a request belongs to: the last word of the newest message.
fn turn_of(body: &Value) -> String {
    let last = body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    // What it is told of memory names earlier turns. The message itself comes last.
    let from = last.rfind("turn-").expect("a message names its turn");
    last[from..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect()
}

async fn faulty(State(providers): State<Providers>, Json(body): Json<Value>) -> Response {
    let turn = turn_of(&body);
    let does = {
        // By turn and call, so that the faults do not depend on the order of turns.
        let number: u64 = turn["turn-".len()..].parse().unwrap();
        let mut rng = StdRng::seed_from_u64(1_000 * number + providers.bill(&turn).calls as u64);
        let fails = rng.random_range(0..100) < providers.0.lock().unwrap().failing;
        if fails { Does::fault(&mut rng) } else { Does::Answers }
    };
    providers.charge(turn, SONNET, does.charged(), does);
    let event = |kind: &str, mut data: Value| {
        data["type"] = json!(kind);
        format!("event: {kind}\ndata: {data}\n\n")
    };
    let block = |kind: Value| event("content_block_start", json!({"index": 0, "content_block": kind}));
    let delta = |delta: Value| event("content_block_delta", json!({"index": 0, "delta": delta}));
    let mut said = event(
        "message_start",
        json!({"message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": INPUT, "output_tokens": 1},
        }}),
    );
    let text = || block(json!({"type": "text", "text": ""}));
    match does {
        Does::Refuses(status, pause) => {
            let error = json!({"type": "error", "error": {"type": "api_error", "message": "no"}});
            let mut refused = (StatusCode::from_u16(status).unwrap(), Json(error)).into_response();
            if let Some(seconds) = pause {
                refused.headers_mut().insert("retry-after", seconds.into());
            }
            return refused;
        }
        Does::HangsAtOnce => return std::future::pending().await,
        Does::Truncates | Does::HangsLater => {}
        Does::TruncatesACall => {
            said.push_str(&block(
                json!({"type": "tool_use", "id": "toolu_1", "name": "query_actions", "input": {}}),
            ));
            said.push_str(&delta(json!({"type": "input_json_delta", "partial_json": "{\"sta"})));
        }
        Does::Garbles => said.push_str("event: content_block_start\ndata: {\"type\": \n\n"),
        Does::IsOverloadedLater => {
            said.push_str(&event("error", json!({"error": {"type": "overloaded_error", "message": "no"}})));
        }
        Does::TruncatesTheText => {
            said.push_str(&text());
            said.push_str(&delta(json!({"type": "text_delta", "text": "Hm"})));
        }
        Does::Answers => {
            said.push_str(&text());
            said.push_str(&delta(json!({"type": "text_delta", "text": "Here."})));
            said.push_str(&event("content_block_stop", json!({"index": 0})));
            let stop = json!({"stop_reason": "end_turn", "stop_sequence": null});
            said.push_str(&event(
                "message_delta",
                json!({"delta": stop, "usage": {"output_tokens": OUTPUT}}),
            ));
            said.push_str(&event("message_stop", json!({})));
        }
    }
    let first = stream::iter([Ok::<_, Infallible>(Bytes::from(said))]);
    let body = match does {
        Does::HangsLater => Body::from_stream(first.chain(stream::pending())),
        _ => Body::from_stream(first),
    };
    ([("content-type", "text/event-stream")], body).into_response()
}

async fn healthy(State(providers): State<Providers>, Json(body): Json<Value>) -> Response {
    providers.charge(turn_of(&body), GROK, [INPUT, OUTPUT], Does::Answers);
    let chunk = |choices: Value, usage: Value| {
        let data = json!({
            "id": "c", "object": "chat.completion.chunk", "created": 1, "model": body["model"], "choices": choices,
            "usage": usage,
        });
        format!("data: {data}\n\n")
    };
    let delta = |delta: Value, end: Value| json!([{"index": 0, "delta": delta, "finish_reason": end}]);
    let usage = json!({"prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT});
    let said = [
        chunk(delta(json!({"role": "assistant", "content": "There."}), Value::Null), Value::Null),
        chunk(delta(json!({}), json!("stop")), Value::Null),
        chunk(json!([]), usage),
        "data: [DONE]\n\n".to_owned(),
    ];
    ([("content-type", "text/event-stream")], said.concat()).into_response()
}

/// What became of a turn.
struct Turned {
    answered: bool,
    /// The text of the reply in the events that a reader gets, up to the end of the run.
    seen: String,
    took: Duration,
    cost_micros: u64,
    estimated: bool,
    bill: Bill,
    opened: bool,
}

async fn turned(stage: &Stage, providers: &Providers, number: usize) -> Turned {
    let name = format!("turn-{number}");
    let path = format!("/agents/{}/chat", stage.agent);
    let request = stage.h.request(Method::POST, &path).header("accept", "application/json");
    let began = Instant::now();
    let answer = send(request.json(&json!({"message": format!("This is {name}")}))).await;
    let took = began.elapsed();
    let run = match answer.body["run_id"].as_str() {
        Some(run) => run.to_owned(),
        None => {
            // A turn that failed: its run is the only one with this message.
            assert_eq!(answer.body["code"], "run_failed", "{:#}", answer.body);
            let location = answer.headers.get("location").expect("a failed turn names its run");
            location.to_str().unwrap().rsplit('/').next().unwrap().to_owned()
        }
    };
    let request = stage.h.request(Method::GET, &format!("/runs/{run}/events?after=0"));
    let stream = send(request.header("accept", "text/event-stream")).await;
    let events = events(stream.body.as_str().expect("a stream of events"));
    assert_eq!(
        events.last().map(|event| event.name.as_str()),
        Some(if answer.status == 200 { "run.completed" } else { "run.failed" }),
        "{name}: {events:#?}"
    );
    let cx = &stage.h.platform.cx;
    let run = cx.store.run(&stage.owner, run.parse().unwrap()).await.unwrap().unwrap().value;
    let ask = Ask { tier: Some(ModelTier::Standard), ..Ask::default() };
    let route = model_choice::route(cx, &stage.owner, &ask, 0).await.unwrap().unwrap();
    Turned {
        answered: answer.status == 200,
        seen: text(&events),
        took,
        cost_micros: run.cost_micros.unsigned_abs(),
        estimated: run.usage.estimated,
        bill: providers.bill(&name),
        opened: matches!(route.candidates[0].gate(cx.clock.now()), Gate::Open { .. }),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_one_healthy_provider_turns_succeed_and_cost_what_was_charged() {
    let (providers, url) = Providers::start().await;
    let key = || Some("key".to_owned());
    let retry = Retry {
        first_pause: Duration::from_millis(5),
        longest_pause: Duration::from_millis(10),
        ..Retry::default()
    };
    let models = ModelsConfig {
        anthropic_key: key(),
        xai_key: key(),
        addresses: Addresses { anthropic: url.clone(), xai: url, ..Addresses::default() },
        limits: ModelLimits { first_byte: FIRST_BYTE, idle: FIRST_BYTE, retry, ..ModelLimits::default() },
        ..ModelsConfig::default()
    };
    let budget = BudgetConfig { day_micros: i64::MAX / 4, ..BudgetConfig::default() };
    let stage = Stage::of(PlatformConfig { models, budget, ..PlatformConfig::in_memory() }).await;

    let count = std::env::var("CHAOS_TURNS").map_or(TURNS, |text| text.parse().unwrap());
    let mut all = Vec::with_capacity(count);
    // Good weather, a bad day, an outage, and the way back. Each has a share of the turns, in hundredths.
    for (share, failing) in [(20, 3), (30, 40), (25, 100), (25, 0)] {
        let turns = count * share / 100;
        providers.fails(failing);
        let numbers = all.len()..all.len() + turns;
        let calls = stream::iter(numbers).map(|number| {
            stage.clock.set(stage.clock.now() + SignedDuration::from_secs(4));
            turned(&stage, &providers, number)
        });
        let turned: Vec<Turned> = calls.buffered(AT_ONCE).collect().await;
        all.extend(turned);
    }

    // Success: only a turn whose text was cut off after a reader had seen it may fail.
    let failed = all.iter().filter(|turn| !turn.answered).count();
    let in_view = |turn: &&Turned| !turn.answered && !turn.seen.is_empty();
    let cut = all.iter().filter(in_view).count();
    let lost = failed - cut;
    println!("{count} turns: {cut} were cut off in view of their reader, {lost} others failed");
    assert!(lost * 1_000 <= count, "{lost} turns failed though a provider worked");
    assert!(cut > 0 || count < CUTS, "no turn was cut off in view, so this says nothing about such turns");
    assert!(cut * ONE_CUT_IN <= count, "{cut} of {count} turns were cut off in view of their reader");
    for (number, turn) in all.iter().enumerate() {
        // The reader sees one reply, or the beginning of one. No other model begins again after it.
        let cuts = turn.bill.faults.contains(&Does::TruncatesTheText);
        let expected: &[&str] = match (turn.answered, cuts) {
            (true, false) => &["Here.", "There."],
            (false, true) => &["Hm"],
            (false, false) => &[""],
            (true, true) => &[],
        };
        assert!(expected.contains(&turn.seen.as_str()), "turn {number}: {:?} {:?}", turn.seen, turn.bill);
    }

    // Costs: to the micro-dollar, if the provider has said anything. A call that hangs from the start says nothing: then
    // the record says that it is estimated, and never less than the bill.
    let (mut charged, mut recorded) = (0, 0);
    let mut kinds: HashMap<Does, usize> = HashMap::new();
    for (number, turn) in all.iter().enumerate() {
        turn.bill.faults.iter().for_each(|fault| *kinds.entry(*fault).or_default() += 1);
        charged += turn.bill.micros;
        recorded += turn.cost_micros;
        let unknown = turn.bill.faults.contains(&Does::HangsAtOnce);
        let billed = turn.bill.faults.iter().any(|fault| fault.charged() != [0, 0]);
        assert_eq!(turn.estimated, billed, "turn {number}: {:?}", turn.bill);
        if unknown {
            assert!(
                turn.cost_micros >= turn.bill.micros,
                "turn {number}: {} {:?}",
                turn.cost_micros,
                turn.bill
            );
        } else {
            assert_eq!(turn.cost_micros, turn.bill.micros, "turn {number}: {:?}", turn.bill);
        }
    }
    println!("charged {charged} micro-dollars, recorded {recorded}; faults: {kinds:?}");
    assert!(kinds.len() >= 6, "{kinds:?}");
    let usage = stage.h.get("/usage?month=2026-11").await.expect(200);
    assert_eq!(usage["month"]["total"]["cost_micros"], recorded);
    let spend = stage.h.platform.cx.store.spend(&stage.owner, stage.clock.now()).await.unwrap();
    assert_eq!(spend.committed_micros, spend.spent_micros, "nothing stays reserved");

    // Latency: what a turn takes more than one without any fault.
    let mut calm: Vec<Duration> =
        all.iter().filter(|turn| turn.bill.faults.is_empty()).map(|turn| turn.took).collect();
    calm.sort();
    let usual = calm[calm.len() / 2];
    let mut added: Vec<Duration> = all.iter().map(|turn| turn.took.saturating_sub(usual)).collect();
    added.sort();
    let p99 = added[count * 99 / 100];
    println!("a calm turn takes {usual:?}; added: p99 {p99:?}, most {:?}", added[count - 1]);
    // The other work of a busy machine delays turns, too: half a limit is for that.
    assert!(p99 <= FIRST_BYTE * 3 / 2, "{p99:?}");

    // The breaker opens in the outage, so that the faulty provider is left alone, and closes when it is over.
    let outage = &all[count / 2..count * 3 / 4];
    let asked = outage.iter().filter(|turn| !turn.bill.faults.is_empty()).count();
    let opened = outage.iter().filter(|turn| turn.opened).count();
    assert!(opened * 10 > outage.len() * 7, "it was open after {opened} of {} turns", outage.len());
    assert!(asked * 5 < outage.len(), "{asked} of {} turns called the faulty provider", outage.len());
    let back = &all[count * 19 / 20..];
    assert!(back.iter().all(|turn| turn.bill.calls == 1 && !turn.opened), "it closes");
    println!("{asked} of {} turns of the outage called the faulty provider", outage.len());
}
