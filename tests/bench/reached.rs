//! Asks whether people are told: runs of five owners, whose receivers hang, refuse, redirect, lie or accept. It runs in real time, on the
//! whole local platform.
//!
//! ```text
//! cargo run --profile bench -p bench --bin reached -- 500   # runs, a fifth for each owner
//! ```
//!
//! It prints what each run's record says (`told`), what the receivers got, and how long after the end of its run a message arrived that
//! was accepted. Exits with 1 if a record says that somebody was told who was not, or the reverse; if a message was lost or came twice; or
//! if a message to a receiver that accepts took longer than a second.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use axum::http::Method;
use domain::reach::Policy;
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use shared::config::{AuthConfig, BudgetConfig, ReachConfig};
use tests::model::{Says, ScriptedModel};
use tests::site::{Answers, Site};
use tests::{Harness, send};

/// How long the program waits for what is told.
const PATIENCE: Duration = Duration::from_secs(120);

/// How late a message may be whose receiver accepts it.
const LATE: SignedDuration = SignedDuration::from_secs(1);

/// An owner with one receiver.
struct Person {
    name: &'static str,
    /// Whether the receiver says that it has accepted a message.
    accepts: bool,
    key: String,
    site: Site,
    runs: Vec<String>,
}

impl Person {
    async fn call(&self, h: &Harness, method: Method, path: &str, body: Value) -> Value {
        let request = h.request(method, path).bearer_auth(&self.key);
        let answer = send(if body.is_null() { request } else { request.json(&body) }).await;
        assert!(answer.status < 300, "{path}: {:#}", answer.body);
        answer.body
    }

    /// Makes this many actions, and the receiver.
    async fn prepare(&self, h: &Harness, count: usize) -> Vec<Value> {
        let hook = json!({"kind": "webhook", "url": self.site.url("/hook")});
        self.call(h, Method::POST, "/notifications/channels", hook).await;
        let told = json!({"kinds": {"succeeded": "at_once"}});
        self.call(h, Method::PUT, "/notifications", told).await;
        let agent = json!({"name": "Watch", "goal": "A research agent that watches"});
        let agent = self.call(h, Method::POST, "/agents", agent).await;
        let path = format!("/agents/{}/actions", agent["agent_id"].as_str().expect("an id"));
        let mut actions = Vec::new();
        for _ in 0..count {
            let task = json!({"instructions": "Write a line", "expected_output": "A line"});
            let action =
                self.call(h, Method::POST, &path, json!({"title": "Line", "task_config": task})).await;
            let approve = format!("/actions/{}/approve", action["action_id"].as_str().expect("an id"));
            let hash = json!({"approval_hash": action["approval_hash"]});
            self.call(h, Method::POST, &approve, hash).await;
            actions.push(action);
        }
        actions
    }

    /// The runs of which each message tells, with how often it came.
    fn received(&self) -> BTreeMap<String, usize> {
        let mut received = BTreeMap::new();
        for posted in self.site.posted() {
            let url = posted.json()["data"]["url"].as_str().unwrap_or_default().to_owned();
            *received.entry(url.rsplit('/').next().unwrap_or_default().to_owned()).or_default() += 1;
        }
        received
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let runs: usize = std::env::args().nth(1).map_or(500, |text| text.parse().expect("a number"));
    let model = ScriptedModel::start(|_: &[Value]| Says::Text("Lamp oil is dear.".into())).await;
    let elsewhere = Site::start(Answers::Status(204)).await;
    let receivers = [
        ("hangs", Answers::Hangs, false),
        ("refuses", Answers::Status(500), false),
        ("redirects", Answers::RedirectsTo(elsewhere.url("/hook")), false),
        // It accepts, and never ends its answer.
        ("lies", Answers::Endless(1 << 40), true),
        ("accepts", Answers::Status(204), true),
    ];
    let mut people = Vec::new();
    for (name, answers, accepts) in receivers {
        let site = Site::start(answers).await;
        people.push(Person { name, accepts, key: String::new(), site, runs: Vec::new() });
    }
    let sites = people.iter().map(|person| &person.site).chain([&elsewhere]);
    let allowed_hosts = sites.flat_map(|site| site.reach().policy.allowed_hosts.clone()).collect();
    let policy = Policy { allowed_hosts, ..Policy::default() }.into();
    let h = Harness::with(PlatformConfig {
        auth: AuthConfig::On(None),
        models: model.config("scripted"),
        budget: BudgetConfig { day_micros: i64::MAX / 2, ..BudgetConfig::default() },
        reach: ReachConfig { policy, ..ReachConfig::default() },
        executors: 10,
        ..PlatformConfig::in_memory()
    })
    .await;
    let mut actions = Vec::new();
    for person in &mut people {
        person.key = h.key_of(person.name).await;
        actions.push(person.prepare(&h, runs / 5).await);
    }
    println!("{} runs, a fifth each for receivers that hang, refuse, redirect, lie and accept", runs / 5 * 5);
    let began = (Instant::now(), Timestamp::now());
    // All are due together.
    for at in 0..runs / 5 {
        for (person, actions) in people.iter_mut().zip(&actions) {
            let path = format!("/actions/{}/run", actions[at]["action_id"].as_str().expect("an id"));
            let run = person.call(&h, Method::POST, &path, json!({})).await;
            person.runs.push(run["run_id"].as_str().expect("an id").to_owned());
        }
    }
    let mut good = true;
    for person in &people {
        good &= judged(&h, person, began).await;
    }
    let strangers = elsewhere.posted().len();
    if strangers > 0 {
        println!("wrong: {strangers} messages followed a redirect");
        good = false;
    }
    h.platform.stop().await;
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Compares what the records say with what the receiver got.
async fn judged(h: &Harness, person: &Person, began: (Instant, Timestamp)) -> bool {
    let until = began.0 + PATIENCE;
    let mut views = BTreeMap::<String, Value>::new();
    loop {
        for id in &person.runs {
            if !views.get(id).is_some_and(is_settled) {
                let view = person.call(h, Method::GET, &format!("/runs/{id}"), Value::Null).await;
                views.insert(id.clone(), view);
            }
        }
        if views.values().all(is_settled) || Instant::now() >= until {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let received = person.received();
    let (mut good, mut says) = (true, BTreeMap::<String, usize>::new());
    for (id, view) in &views {
        let told = &view["told"];
        let delivery = &told["deliveries"][0];
        let state = delivery["state"].as_str().unwrap_or("none");
        let error = delivery["error"].as_str().unwrap_or("no error");
        let tries = delivery["tries"].as_u64().unwrap_or_default();
        *says
            .entry(format!("{}, delivery {state}, {error}", told["state"].as_str().unwrap_or("nothing")))
            .or_default() += 1;
        let came = received.get(id).copied().unwrap_or_default() as u64;
        let is_true = view["state"] == "completed"
            && told["state"] == "sent"
            && (state == "delivered") == person.accepts;
        // A receiver that accepts gets a message once. Of the others, each try arrives once.
        let is_once = if person.accepts { came == 1 } else { came <= tries };
        if !is_true || !is_once {
            println!("wrong: {} {id} came {came} times in {tries} tries: {told}", person.name);
            good = false;
        }
    }
    println!("{:<10}{} messages; records say: {says:?}", person.name, received.values().sum::<usize>());
    if person.accepts {
        let mut lags = lags(person, &views, began);
        lags.sort();
        let [p50, p99] = [lags.len() / 2, lags.len() * 99 / 100].map(|at| lags[at.min(lags.len() - 1)]);
        let last = lags[lags.len() - 1];
        println!("{:<10}arrived after the end of its run: p50 {p50:#}, p99 {p99:#}, last {last:#}", "");
        if last > LATE {
            println!("wrong: a message came later than {LATE:#}");
            good = false;
        }
    }
    good
}

/// Whether nothing more is told of a run soon.
fn is_settled(view: &Value) -> bool {
    let delivery = &view["told"]["deliveries"][0];
    delivery["state"] == "delivered" || delivery["error"].is_string()
}

/// How long after the end of its run each message arrived.
fn lags(
    person: &Person,
    views: &BTreeMap<String, Value>,
    began: (Instant, Timestamp),
) -> Vec<SignedDuration> {
    let arrivals = person.site.received();
    let lag = |(posted, arrived): (tests::site::Posted, Instant)| {
        let url = posted.json()["data"]["url"].as_str().unwrap_or_default().to_owned();
        let view = views.get(url.rsplit('/').next().unwrap_or_default())?;
        let ended: Timestamp = view["finished_at"].as_str()?.parse().ok()?;
        let passed = SignedDuration::try_from(arrived.duration_since(began.0)).ok()?;
        Some((began.1 + passed).duration_since(ended))
    };
    person.site.posted().into_iter().zip(arrivals).filter_map(lag).collect()
}
