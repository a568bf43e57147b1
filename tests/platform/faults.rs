//! What goes wrong on AWS, with the whole platform on top: it is told as something to try again, and nothing is lost or done
//! twice.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::SignedDuration;
use lamplighter_local::engines::faults::{Fault, FaultConfig, FaultRates, Faults};
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::Cx;
use shared::clock::{Clock, ManualClock};
use shared::config::Config;
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

    /// The nth thing to do, which it names.
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

    /// Does it, as often as it takes. How often the answer was that it may or may not have been done.
    async fn acknowledged(&self, n: usize) -> usize {
        let mut unsure = 0;
        for _ in 0..20 {
            let lost = self.faults.injected(Fault::AnswerLost);
            let answer = self.attempt(n).await;
            if answer.status == 201 {
                return unsure;
            }
            assert!(matches!(answer.status, 409 | 503), "{answer:?}");
            assert_eq!(answer.body["retryable"], true, "{answer:?}");
            unsure += usize::from(self.faults.injected(Fault::AnswerLost) > lost);
            if answer.body["code"] == "idempotency_in_flight" {
                // Its key could not be given free; it is, after a minute.
                self.clock.set(self.clock.now() + SignedDuration::from_secs(61));
            }
        }
        panic!("{n} was never done");
    }

    /// How often each thing is there.
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
async fn what_is_acknowledged_among_faults_is_there_once() {
    let stage = Stage::start().await;
    stage.faults.set_rates(FaultRates {
        throttled: 0.05,
        conflict: 0.05,
        unprocessed: 0.2,
        slow_down: 0.05,
        slow: 0.05,
        dropped: 0.02,
        answer_lost: 0.02,
    });
    let mut unsure = 0;
    for n in 0..OPERATIONS {
        unsure += stage.acknowledged(n).await;
    }
    stage.faults.set_rates(FaultRates::default());
    let found = stage.found().await;
    for n in 0..OPERATIONS {
        assert!(found.contains_key(&format!("thing {n}")), "{n} is lost");
    }
    let doubled: Vec<_> = found.iter().filter(|(_, count)| **count > 1).collect();
    assert!(doubled.len() <= unsure, "{doubled:?} are doubled, {unsure} were unsure");
    for fault in [Fault::Throttled, Fault::Conflict, Fault::SlowDown, Fault::Dropped, Fault::AnswerLost] {
        assert!(stage.faults.injected(fault) > 0, "{fault:?}");
    }
}

#[tokio::test]
async fn while_nothing_works_everything_says_to_try_again() {
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
    // Afterwards it works, under the same keys.
    for n in [0, 2, 3] {
        let _ = stage.attempt(n).await.expect(201);
    }
    assert_eq!(stage.found().await.into_values().collect::<Vec<_>>(), [1, 1, 1]);
}

/// A server for these handlers, on another table or bucket than there is.
async fn deployed_with(cx: &Cx, change: fn(&mut Config)) -> String {
    let mut config = Config::clone(&cx.config);
    change(&mut config);
    let cx = Cx::new(config, cx.clock.clone()).unwrap();
    let app = shared::http::app(cx, catalog::router(), None);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    url
}

#[tokio::test]
async fn a_table_or_bucket_that_is_not_there_is_no_matter_of_trying_again() {
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
