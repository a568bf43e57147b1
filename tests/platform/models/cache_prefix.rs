//! The part of a request that providers cache does not change from turn to turn, unless somebody changes the agent.
//!
//! The test looks at two things: `prefix_hash` in the record of each run, and the tools and instructions in the requests
//! as the provider received them, byte for byte.

use std::collections::BTreeMap;

use base::clock::{Clock, ManualClock};
use domain::ids::RunId;
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::engines::DataLocation;
use lamplighter_local::platform::PlatformConfig;
use models::{Addresses, ModelsConfig};
use reqwest::Method;
use serde_json::{Value, json};
use shared::flows::executor::sweep::sweep;
use shared::store::table::Order;
use tempfile::TempDir;
use tests::Harness;
use tests::anthropic::{Block, FakeAnthropic};
use tests::executors::Executors;
use tests::made;
use tests::things::Caller;

/// Looks something up if the message says so, and saves an output in a scheduled run.
fn answer(body: &Value) -> Vec<Block> {
    let last = body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    let has_result = last.contains("tool_result");
    let call = |tool: &str, input: Value| vec![Block::Call { tool: tool.to_owned(), input }];
    let text = |text: &str| vec![Block::Text(text.to_owned())];
    match kind(body) {
        "check" => text(r#"{"score": 90, "meets": true, "missing": []}"#),
        "run" if !has_result => call("save_output", json!({"title": "Report", "content": "Oil costs 7."})),
        "chat" if !has_result && last.contains("Look") => call("query_actions", json!({})),
        _ => text("Done."),
    }
}

/// The kind of conversation, from the instructions.
fn kind(body: &Value) -> &'static str {
    let system = body["system"].to_string();
    let kinds = ["chat", "run", "check", "about", "setup"];
    kinds.into_iter().find(|kind| system.contains(&format!("<lamplighter:{kind}>"))).expect("a known kind")
}

/// One agent on a platform whose process can be replaced.
struct Scene {
    h: Harness,
    clock: ManualClock,
    model: FakeAnthropic,
    folder: TempDir,
    agent: String,
    chat: Option<String>,
}

impl Scene {
    async fn start() -> Self {
        let model = FakeAnthropic::start(answer).await;
        let clock = ManualClock::at("2026-11-21T12:00:00Z".parse().unwrap());
        let folder = TempDir::new().unwrap();
        let h = Harness::with(config(&model, &clock, &folder)).await;
        let agent = h.agent().await;
        Self { h, clock, model, folder, agent, chat: None }
    }

    /// Another process takes over.
    async fn restart(self) -> Self {
        let Self { h, clock, model, folder, agent, chat } = self;
        h.platform.stop().await;
        let h = Harness::with(config(&model, &clock, &folder)).await;
        Self { h, clock, model, folder, agent, chat }
    }

    /// The prefix of a turn, as its record and as its requests have it.
    async fn turn(&mut self, message: &str) -> Prefix {
        let mut input = json!({"message": message});
        if let Some(chat) = &self.chat {
            input["chat_id"] = chat.as_str().into();
        }
        let view = self.h.post(&format!("/agents/{}/chat", self.agent), input).await.expect(200);
        self.chat = view["chat_id"].as_str().map(str::to_owned);
        let hash = self.hash(view["run_id"].as_str().unwrap().parse().unwrap()).await;
        let mut sent = sent(&self.model.asked());
        assert_eq!(sent.keys().collect::<Vec<_>>(), [&"chat"]);
        Prefix { hash, sent: sent.remove("chat").unwrap() }
    }

    async fn hash(&self, run: RunId) -> String {
        let run = self.h.platform.cx.store.run(&made::local(), run).await.unwrap().unwrap();
        run.value.prefix_hash.expect("a run that has called a model has the hash")
    }

    async fn change(&self, method: Method, path: &str, body: Value) {
        Caller { h: &self.h, key: None }.call(method, path, body).await.expect(200);
    }
}

fn config(model: &FakeAnthropic, clock: &ManualClock, folder: &TempDir) -> PlatformConfig {
    let models = ModelsConfig {
        anthropic_key: Some("sk-ant-test".to_owned()),
        addresses: Addresses { anthropic: model.url.clone(), ..Addresses::default() },
        ..ModelsConfig::default()
    };
    PlatformConfig {
        data: DataLocation::Folder(folder.path().to_owned()),
        models,
        clock: Clock::Manual(clock.clone()),
        automatic: false,
        ..PlatformConfig::in_memory()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Prefix {
    hash: String,
    /// The request without its conversation: the model, the tools and the instructions, with their cache marks.
    sent: String,
}

/// What the requests of each kind of conversation begin with. Each kind must have one beginning.
fn sent(bodies: &[Value]) -> BTreeMap<&'static str, String> {
    let mut kinds = BTreeMap::new();
    for body in bodies {
        let mut prefix = body.clone();
        for changes in ["messages", "max_tokens", "tool_choice"] {
            prefix.as_object_mut().unwrap().remove(changes);
        }
        let prefix = prefix.to_string();
        let known = kinds.entry(kind(body)).or_insert_with(|| prefix.clone());
        assert_eq!(*known, prefix, "the prefix drifts inside a run");
    }
    kinds
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cached_prefix_of_an_agents_turns_stays_the_same() {
    let mut scene = Scene::start().await;
    let first = scene.turn("Hello").await;
    assert!(first.sent.contains("query_actions") && first.sent.contains("cache_control"), "{}", first.sent);
    assert_eq!(scene.turn("And again").await, first);
    assert_eq!(scene.turn("Look at my actions").await, first, "with a tool's result in the conversation");

    // The agent gets an asset and an action, which are in view from then on.
    let agent = scene.agent.clone();
    let asset = json!({"title": "Notes", "content": "Oil"});
    scene.h.post(&format!("/agents/{agent}/assets"), asset).await.expect(201);
    let action = json!({
        "title": "Report", "schedule": {"every": "1h"},
        "task_config": {"instructions": "Write a report", "expected_output": "A report"},
    });
    let action = scene.h.post(&format!("/agents/{agent}/actions"), action).await.expect(201);
    assert_eq!(scene.turn("Look again").await, first, "after an action was defined");
    let approve = format!("/actions/{}/approve", action["action_id"].as_str().unwrap());
    scene.h.post(&approve, json!({"approval_hash": action["approval_hash"]})).await.expect(200);
    assert_eq!(scene.turn("What is due?").await, first, "after an approval");

    scene.clock.set(scene.clock.now() + SignedDuration::from_hours(26));
    assert_eq!(scene.turn("Good morning").await, first, "on the next day");
    scene.chat = None;
    assert_eq!(scene.turn("Hello").await, first, "in another chat");
    scene.chat = None;
    let mut scene = scene.restart().await;
    assert_eq!(scene.turn("Hello").await, first, "after a restart");

    // What does not concern the prompt does not change it.
    let path = format!("/agents/{agent}");
    scene.change(Method::PATCH, &path, json!({"budget": {"per_run_micros": 900_000}})).await;
    scene.change(Method::PATCH, "/account", json!({"timezone": "Europe/Berlin"})).await;
    assert_eq!(scene.turn("Hello").await, first, "after a change that the model does not see");

    // A deliberate change does. The same instructions give the same prefix again.
    scene.change(Method::PATCH, &path, json!({"instructions": "Name every price in euros."})).await;
    let changed = scene.turn("Hello").await;
    assert!(changed.hash != first.hash && changed.sent != first.sent);
    assert_eq!(scene.turn("And again").await, changed);
    scene.change(Method::PATCH, &path, json!({"instructions": ""})).await;
    assert_eq!(scene.turn("Hello").await, first);
    scene.change(Method::PATCH, &path, json!({"model_tier": "fast"})).await;
    let other_model = scene.turn("Hello").await;
    assert!(other_model.hash != first.hash && other_model.sent != first.sent);
}

/// Executors are killed in the middle of runs, and another process continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cached_prefix_of_scheduled_runs_stays_the_same() {
    let scene = Scene::start().await;
    let action = json!({
        "title": "Report", "schedule": {"every": "1h"},
        "task_config": {"instructions": "Write a report", "expected_output": "A report"},
    });
    let action = scene.h.post(&format!("/agents/{}/actions", scene.agent), action).await.expect(201);
    let path = format!("/actions/{}", action["action_id"].as_str().unwrap());
    let hash = json!({"approval_hash": action["approval_hash"]});
    scene.h.post(&format!("{path}/approve"), hash).await.expect(200);
    // The next hour comes. Returns how many executors were killed in it.
    let an_hour = async |scene: &Scene, executors: &Executors| {
        scene.clock.set(scene.clock.now() + SignedDuration::from_hours(1));
        let mut killed = 0;
        for _ in 0..8 {
            sweep(&scene.h.platform.cx, Timestamp::MAX).await.unwrap();
            killed += executors.work().await.killed;
            // The lease of a dead executor ends.
            scene.clock.set(scene.clock.now() + SignedDuration::from_mins(2));
        }
        killed
    };
    let executors = Executors::of(&scene.h.platform, 2);
    assert_eq!(an_hour(&scene, &executors).await, 0);
    executors.trouble(0.0, 0.7);
    let mut killed = 0;
    for _ in 0..50 {
        killed += an_hour(&scene, &executors).await;
        if killed >= 3 {
            break;
        }
    }
    assert!(killed >= 3, "only {killed} executors were killed");
    let scene = scene.restart().await;
    an_hour(&scene, &Executors::of(&scene.h.platform, 2)).await;

    // Each kind of request has had one prefix in all of this.
    let bodies = scene.model.asked();
    let kinds: Vec<&str> = sent(&bodies).into_keys().collect();
    assert_eq!(kinds, ["check", "run"]);
    let id = action["action_id"].as_str().unwrap().parse().unwrap();
    let store = &scene.h.platform.cx.store;
    let found = store.occurrences(&made::local(), id, None, 100, Order::Oldest).await.unwrap();
    let mut hashes = Vec::new();
    for (_, occurrence) in found.items {
        let run = store.run(&made::local(), occurrence.value.run_id).await.unwrap();
        hashes.extend(run.and_then(|run| run.value.prefix_hash));
    }
    assert!(hashes.len() >= 3, "{} runs", hashes.len());
    assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{hashes:#?}");
}
