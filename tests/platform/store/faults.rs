//! Faults of AWS with the whole platform on top: they are reported as errors to retry, and nothing is lost or done
//! twice.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use base::clock::{Clock, ManualClock};
use domain::ids::Owner;
use jiff::SignedDuration;
use lamplighter_local::engines::faults::{Fault, FaultConfig, FaultRates, Faults};
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::Cx;
use shared::config::Config;
use shared::edge::extract::Actor;
use shared::flows::agents;
use shared::store::{Claim, Once, RequestState};
use tests::{Answer, Harness, send};

/// How many things are done while faults happen.
const OPERATIONS: usize = 200;

struct Stage {
    h: Harness,
    clock: ManualClock,
    faults: Faults,
    agent: String,
    chat: String,
}

impl Stage {
    async fn start() -> Self {
        let clock = ManualClock::at("2026-11-21T12:00:00Z".parse().unwrap());
        let faults =
            FaultConfig { seed: 7, rates: FaultRates::default(), slow_by: Duration::from_millis(20) };
        let h = Harness::with(PlatformConfig {
            clock: Clock::Manual(clock.clone()),
            automatic: false,
            faults: Some(faults),
            ..PlatformConfig::in_memory()
        })
        .await;
        let agent = h.agent().await;
        let chat = h.post(&format!("/agents/{agent}/chats"), json!({})).await.expect(201);
        let chat = chat["chat_id"].as_str().unwrap().to_owned();
        let faults = h.platform.engines().faults().unwrap().clone();
        Self { h, clock, faults, agent, chat }
    }

    /// The nth thing to do, with its name.
    fn operation(&self, n: usize) -> (String, Value) {
        let Self { agent, chat, .. } = self;
        let name = format!("thing {n}");
        match n % 5 {
            0 => ("/agents".to_owned(), json!({"name": name, "goal": "A research agent that watches"})),
            1 => (format!("/agents/{agent}/assets"), json!({"title": name, "content": "Lamp oil is dear."})),
            // Too long for the table.
            2 => {
                (format!("/agents/{agent}/assets"), json!({"title": name, "content": "oil ".repeat(20_000)}))
            }
            3 => {
                (format!("/chats/{chat}/messages"), json!({"messages": [{"role": "user", "content": name}]}))
            }
            _ => {
                let task = json!({"instructions": "Do it", "expected_output": "A page"});
                (format!("/agents/{agent}/actions"), json!({"title": name, "task_config": task}))
            }
        }
    }

    async fn attempt(&self, n: usize) -> Answer {
        let (path, body) = self.operation(n);
        self.h.post_once(&path, &format!("key {n}"), body).await
    }

    /// Repeats the request until it succeeds. Returns whether it was answered, or only reported as done.
    async fn acknowledged(&self, n: usize) -> bool {
        for _ in 0..20 {
            let answer = self.attempt(n).await;
            if answer.status == 201 {
                return true;
            }
            if answer.body["code"] == "idempotency_answer_lost" {
                assert_eq!((answer.status, &answer.body["retryable"]), (409, &json!(false)));
                return false;
            }
            assert!(matches!(answer.status, 409 | 503), "{answer:?}");
            assert_eq!(answer.body["retryable"], true, "{answer:?}");
            if answer.body["code"] == "idempotency_in_flight" {
                // Its key could not be released. It becomes free after a minute.
                self.a_minute_later();
            }
        }
        panic!("{n} was never done");
    }

    fn a_minute_later(&self) {
        self.clock.set(self.clock.now() + SignedDuration::from_secs(61));
    }

    /// How often each thing exists.
    async fn found(&self) -> BTreeMap<String, usize> {
        let chat = &self.chat;
        let mut found = BTreeMap::new();
        for (path, list, name) in [
            ("/agents".to_owned(), "data", "name"),
            ("/assets".to_owned(), "data", "title"),
            ("/actions".to_owned(), "data", "title"),
            (format!("/chats/{chat}"), "messages", "content"),
        ] {
            let mut cursor = String::new();
            loop {
                let page = self.h.get(&format!("{path}?limit=100{cursor}")).await.expect(200);
                for item in page[list].as_array().unwrap() {
                    let name = item[name].as_str().unwrap();
                    if name.starts_with("thing ") {
                        *found.entry(name.to_owned()).or_default() += 1;
                    }
                }
                match page["next_cursor"].as_str() {
                    Some(next) => cursor = format!("&cursor={next}"),
                    None => break,
                }
            }
        }
        found
    }
}

#[tokio::test]
async fn acknowledged_writes_are_stored_once_despite_faults() {
    let stage = Stage::start().await;
    stage.faults.set_rates(FaultRates {
        throttled: 0.05,
        conflict: 0.05,
        unprocessed: 0.2,
        // Few of the requests are to the bucket.
        slow_down: 0.2,
        slow: 0.05,
        dropped: 0.02,
        answer_lost: 0.02,
        ..FaultRates::default()
    });
    for n in 0..OPERATIONS {
        stage.acknowledged(n).await;
    }
    stage.faults.set_rates(FaultRates::default());
    assert_eq!(stage.found().await, once(0..OPERATIONS));
    for fault in [Fault::Throttled, Fault::Conflict, Fault::SlowDown, Fault::Dropped, Fault::AnswerLost] {
        assert!(stage.faults.injected(fault) > 0, "{fault:?}");
    }
}

/// Each of these things, once.
fn once(things: Range<usize>) -> BTreeMap<String, usize> {
    things.map(|n| (format!("thing {n}"), 1)).collect()
}

#[tokio::test]
async fn interrupted_and_repeated_requests_are_done_once() {
    const CUT_OFF: usize = 60;
    let stage = Stage::start().await;
    stage.faults.set_rates(FaultRates { slow: 0.5, ..FaultRates::default() });
    let (mut answered, mut told, mut whole) = (0, 0, Duration::ZERO);
    for n in 0..CUT_OFF {
        // A client that disconnects ends the request here, like the end of a process: at any moment of the work.
        let patience = whole.mul_f64((n % 20) as f64 / 20.0);
        let in_time = tokio::time::timeout(patience, stage.attempt(n)).await;
        stage.a_minute_later();
        let began = Instant::now();
        match stage.acknowledged(n).await {
            true if in_time.is_err() => {
                answered += 1;
                whole = whole.max(began.elapsed());
            }
            true => {}
            false => told += 1,
        }
    }
    assert_eq!(stage.found().await, once(0..CUT_OFF));
    assert!(answered > 0 && told > 0, "{answered} were done at the second try, {told} at the first");
}

#[tokio::test]
async fn a_key_knows_whether_its_request_is_done() {
    let stage = Stage::start().await;
    let cx = &stage.h.platform.cx;
    let owner = Owner::new("local").unwrap();
    let claim =
        async |key: &str| cx.store.claim_idempotency(&owner, key, "print", cx.clock.now()).await.unwrap();
    let first = async |key: &str| match claim(key).await {
        Claim::First(claimed) => claimed,
        Claim::Other(record) => panic!("{record:?}"),
    };
    let record_state = async |key: &str| match claim(key).await {
        Claim::First(_) => None,
        Claim::Other(record) => Some(record.outcome),
    };
    let make = async |once: &Once| {
        let agent = serde_json::from_value(json!({"name": "Watch", "goal": "Watch"})).unwrap();
        agents::create(cx, &owner, once, Actor::Person, agent).await
    };

    // Killed before it did anything: a minute later another request may do it. If the first one is still alive, it has
    // lost its key.
    let slow = first("slow").await;
    assert_eq!(record_state("slow").await, Some(RequestState::InFlight));
    stage.a_minute_later();
    let second = first("slow").await;
    let refused = make(&Once::of(&slow)).await.unwrap_err();
    assert_eq!((refused.status().as_u16(), refused.code()), (409, "idempotency_in_flight"));
    make(&Once::of(&second)).await.unwrap();

    // Killed after it did the work: for a day, no request with this key does it again.
    assert_eq!(record_state("slow").await, Some(RequestState::Done));
    cx.store.release_idempotency(&second).await.unwrap();
    stage.a_minute_later();
    assert_eq!(record_state("slow").await, Some(RequestState::Done));
    stage.clock.set(stage.clock.now() + SignedDuration::from_hours(24));
    assert_eq!(record_state("slow").await, None);

    // Released: it can be requested again at once.
    let released = first("free").await;
    cx.store.release_idempotency(&released).await.unwrap();
    assert_eq!(record_state("free").await, None);

    // Only the first of its transactions is marked, and the answer is stored after it.
    let twice = first("twice").await;
    let once = Once::of(&twice);
    make(&once).await.unwrap();
    make(&once.clone()).await.unwrap();
    let answer = RequestState::Answered { status: 201, headers: Vec::new(), body: "{}".into() };
    cx.store.complete_idempotency(&twice, answer.clone(), cx.clock.now()).await.unwrap();
    assert_eq!(record_state("twice").await, Some(answer));
}

#[tokio::test]
async fn during_an_outage_every_error_is_retryable() {
    let stage = Stage::start().await;
    for rates in [
        FaultRates { throttled: 1.0, slow_down: 1.0, ..FaultRates::default() },
        FaultRates { dropped: 1.0, ..FaultRates::default() },
        FaultRates { conflict: 1.0, slow_down: 1.0, ..FaultRates::default() },
    ] {
        stage.faults.set_rates(rates);
        let begins_with_the_table =
            if rates.conflict > 0.0 { "contended" } else { "temporarily_unavailable" };
        for n in [0, 2, 3] {
            let problem = stage.attempt(n).await;
            assert!(problem.headers.contains_key("retry-after"), "{problem:?}");
            let body = problem.refused(503, begins_with_the_table);
            assert_eq!(body["retryable"], true, "{body:#}");
        }
        stage.faults.set_rates(FaultRates::default());
    }
    assert_eq!(stage.found().await, BTreeMap::new());
    // Afterwards it works, with the same keys.
    for n in [0, 2, 3] {
        let _ = stage.attempt(n).await.expect(201);
    }
    assert_eq!(stage.found().await.into_values().collect::<Vec<_>>(), [1, 1, 1]);
}

/// A server with these handlers, on another table or bucket.
async fn deployed_with(cx: &Cx, change: fn(&mut Config)) -> String {
    let mut config = Config::clone(&cx.config);
    change(&mut config);
    let cx = Cx::new(config, cx.clock.clone()).unwrap();
    let app = shared::edge::app::app(cx, catalog::router(), None);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    url
}

#[tokio::test]
async fn a_missing_table_or_bucket_is_not_retryable() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let client = tests::client();
    let no_table = deployed_with(&h.platform.cx, |config| config.aws.table = "absent".into()).await;
    for (method, path) in [(Method::GET, "/agents"), (Method::POST, "/agents")] {
        let body = json!({"name": "Watch", "goal": "Watch"});
        let answer = send(client.request(method, format!("{no_table}{path}")).json(&body)).await;
        let problem = answer.refused(500, "misconfigured");
        assert_eq!(problem["retryable"], false);
        assert!(!problem["detail"].as_str().unwrap().contains("absent"), "{problem:#}");
    }
    let no_bucket = deployed_with(&h.platform.cx, |config| config.aws.bucket = "absent".into()).await;
    let body = json!({"title": "Long", "content": "oil ".repeat(20_000)});
    let answer = send(client.post(format!("{no_bucket}/agents/{agent}/assets")).json(&body)).await;
    answer.refused(500, "misconfigured");
}
