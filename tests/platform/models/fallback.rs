//! Providers that fail: another one answers, for chats and for scheduled runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

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
use models::{Addresses, Candidate, ModelLimits, ModelsConfig, Retry};
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::Config;
use shared::{Cx, model_choice};
use tests::events::names;
use tests::model::{Says, ScriptedModel};
use tests::process::followed;
use tests::stage::Stage;
use tests::things::Caller;

/// How a provider fails.
#[derive(Clone, Copy, Debug)]
enum Fails {
    Status(u16),
    /// With the status 429, and a pause of this many seconds.
    ModelLimits(u64),
    /// The answer never begins.
    Hangs,
    /// The answer ends after its first event.
    Ends,
    /// The answer ends after some text.
    EndsInTheText,
}

/// A server with Anthropic's wire format that fails.
struct Failing {
    url: String,
    calls: Arc<AtomicUsize>,
    how: Arc<Mutex<Fails>>,
}

type Shared = (Arc<AtomicUsize>, Arc<Mutex<Fails>>);

impl Failing {
    async fn start() -> Self {
        let (calls, how) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Fails::Status(529))));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let app = Router::new().route("/v1/messages", post(fail)).with_state((calls.clone(), how.clone()));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, calls, how }
    }

    fn fails(&self, how: Fails) {
        *self.how.lock().unwrap() = how;
    }

    fn calls(&self) -> usize {
        self.calls.swap(0, Ordering::SeqCst)
    }
}

async fn fail(State((calls, how)): State<Shared>, Json(body): Json<Value>) -> Response {
    calls.fetch_add(1, Ordering::SeqCst);
    let how = *how.lock().unwrap();
    let error = json!({"type": "error", "error": {"type": "api_error", "message": "no"}});
    let message = json!({"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 10, "output_tokens": 1},
    }});
    let began = format!("event: message_start\ndata: {message}\n\n");
    let block =
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let delta = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Half a "}});
    let said = format!(
        "{began}event: content_block_start\ndata: {block}\n\nevent: content_block_delta\ndata: {delta}\n\n"
    );
    let events = |text: String| ([("content-type", "text/event-stream")], text).into_response();
    match how {
        Fails::Status(status) => (StatusCode::from_u16(status).unwrap(), Json(error)).into_response(),
        Fails::ModelLimits(wait) => {
            (StatusCode::TOO_MANY_REQUESTS, [("retry-after", wait.to_string())], Json(error)).into_response()
        }
        Fails::Hangs => {
            let never = stream::pending::<Result<Bytes, std::convert::Infallible>>().boxed();
            tokio::time::sleep(Duration::from_secs(3_600)).await;
            Body::from_stream(never).into_response()
        }
        Fails::Ends => events(began),
        Fails::EndsInTheText => events(said),
    }
}

fn answers(messages: &[Value]) -> Says {
    let last = messages.last().unwrap()["content"].as_str().unwrap_or_default().to_owned();
    Says::Text(
        if last.starts_with("Result of save_output") { "Done." } else { "The other one answers." }.into(),
    )
}

/// A stage with a failing provider, and one that works.
async fn scene() -> (Stage, Failing, ScriptedModel) {
    let (failing, working) = (Failing::start().await, ScriptedModel::start(answers).await);
    let addresses = Addresses { anthropic: failing.url.clone(), xai: working.url(), ..Addresses::default() };
    let retry = Retry {
        first_pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(2),
        ..Retry::default()
    };
    let limits = ModelLimits { first_byte: Duration::from_millis(500), retry, ..ModelLimits::default() };
    let key = || Some("key".to_owned());
    let models =
        ModelsConfig { anthropic_key: key(), xai_key: key(), addresses, limits, ..ModelsConfig::default() };
    (Stage::with(models).await, failing, working)
}

async fn say(stage: &Stage, message: &str) -> Value {
    let path = format!("/agents/{}/chat", stage.agent);
    stage.h.post(&path, json!({"message": message})).await.body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_fails_is_replaced() {
    for (how, code) in [
        (Fails::Status(529), "model_overloaded"),
        (Fails::Status(500), "model_failed"),
        (Fails::Status(503), "model_failed"),
        (Fails::Status(401), "model_key_refused"),
        (Fails::ModelLimits(3_600), "model_rate_limited"),
        (Fails::Hangs, "model_timeout"),
        (Fails::Ends, "model_answer_broken"),
    ] {
        let (stage, failing, working) = scene().await;
        failing.fails(how);
        let view = say(&stage, "Hello").await;
        assert_eq!(view["message"], "The other one answers.", "{how:?}: {view:#}");
        let calls = failing.calls();
        assert!((1..=2).contains(&calls) && working.asked() == 1, "{how:?}: {calls}");
        let events = followed(&stage.h, view["run_id"].as_str().unwrap().parse().unwrap()).await;
        let fallbacks: Vec<&Value> =
            events.iter().filter(|event| event.name == "model.fallback").map(|event| &event.data).collect();
        let [fallback] = fallbacks[..] else { panic!("{how:?}: {:?}", names(&events)) };
        let seen = (&fallback["from"], &fallback["to"], &fallback["code"]);
        assert_eq!(
            seen,
            (&json!("anthropic/claude-sonnet-5-5"), &json!("xai/grok-4.3"), &json!(code)),
            "{how:?}"
        );
        assert!(fallback["reason"].as_str().unwrap().len() > 10);
        // The record says it too.
        let kept = &view["fallbacks"][0];
        assert_eq!((&kept["from"], &kept["to"], &kept["code"]), seen, "{view:#}");
        // The run names the model that answered, and why.
        let model = &view["model"];
        assert_eq!((&model["model"], &model["level"]), (&json!("xai/grok-4.3"), &json!("tier")));
        let why = format!("the tier decides; it replaces anthropic/claude-sonnet-5-5 ({code})");
        assert_eq!(model["why"], json!(why));
        // Nothing stays reserved.
        let spend = stage.h.platform.cx.store.spend(&stage.owner, stage.clock.now()).await.unwrap();
        assert_eq!((spend.committed_micros, spend.spent_micros > 0), (spend.spent_micros, true), "{how:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scheduled_runs_use_the_same_providers() {
    let (stage, failing, _working) = scene().await;
    failing.fails(Fails::Status(529));
    let action = stage.approved(json!({})).await;
    let run = stage.h.post(&format!("/actions/{action}/run"), json!({})).await.expect(202)["run_id"].clone();
    stage.executors.work().await;
    let view = stage.h.get(&format!("/runs/{}", run.as_str().unwrap())).await.expect(200);
    assert_eq!(view["state"], "completed", "{view:#}");
    assert!(failing.calls() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_is_left_alone_for_as_long_as_it_asks() {
    let (stage, failing, working) = scene().await;
    failing.fails(Fails::ModelLimits(60));
    say(&stage, "Hello").await;
    assert_eq!(failing.calls(), 1);
    let until = stage.clock.now() + jiff::SignedDuration::from_secs(60);
    for _ in 0..3 {
        // The preferred model is not called. The run says so, and names the model that answers.
        let view = say(&stage, "Hello again").await;
        assert_eq!(view["model"]["model"], "xai/grok-4.3", "{view:#}");
        let why = "the tier decides; it replaces anthropic/claude-sonnet-5-5 (model_paused)";
        assert_eq!(view["model"]["why"], why);
        assert_eq!(view["fallbacks"][0]["code"], "model_paused", "{view:#}");
        let events = followed(&stage.h, view["run_id"].as_str().unwrap().parse().unwrap()).await;
        let fallback = events.iter().find(|event| event.name == "model.fallback").expect("it is told");
        let reason = fallback.data["reason"].as_str().unwrap();
        assert!(reason.ends_with(&format!("is not called until {until:.0}")), "{reason}");
    }
    assert_eq!((failing.calls(), working.asked()), (0, 4));
    stage.clock.set(stage.clock.now() + jiff::SignedDuration::from_secs(61));
    say(&stage, "Are you back?").await;
    assert_eq!((failing.calls(), working.asked()), (1, 5));
    // Costs are those of the model that answered.
    let path = format!("/usage?month={}", stage.clock.now().strftime("%Y-%m"));
    let usage = stage.h.get(&path).await.expect(200)["month"].clone();
    let rows = usage["by_model"].as_array().unwrap();
    let of = |row: &serde_json::Value| (row["provider"].clone(), row["model"].clone());
    assert!(rows.iter().any(|row| of(row) == ("xai".into(), "grok-4.3".into())), "{usage:#}");
}

/// Another process, which has made no call yet, knows that the provider asked for a pause.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_share_what_they_know_about_providers() {
    let (stage, failing, working) = scene().await;
    failing.fails(Fails::ModelLimits(60));
    say(&stage, "Hello").await;
    assert_eq!(failing.calls(), 1);
    let here = &stage.h.platform.cx;
    let there = Cx::new(Config::clone(&here.config), here.clock.clone()).unwrap();
    let ask = Ask { tier: Some(ModelTier::Standard), ..Ask::default() };
    let gates = async || {
        let route = model_choice::route(&there, &stage.owner, &ask, 0).await.unwrap().unwrap();
        let gate = |candidate: &Candidate| (candidate.id().to_string(), candidate.gate(stage.clock.now()));
        route.candidates.iter().take(2).map(gate).collect::<Vec<_>>()
    };
    let closed = ("grok-4.3".to_owned(), Gate::Closed);
    let until = stage.clock.now() + jiff::SignedDuration::from_secs(60);
    assert_eq!(gates().await, [("claude-sonnet-5-5".to_owned(), Gate::Open { until }), closed.clone()]);
    // `GET /models` says why the preferred model is not called.
    let models = stage.h.get("/models?tier=standard").await.expect(200);
    let chosen = &models["choices"][0]["models"];
    assert_eq!(chosen[0]["paused_until"], json!(until), "{models:#}");
    assert_eq!(chosen[1]["paused_until"], Value::Null);
    // It works again: the others hear of it.
    stage.clock.set(until + jiff::SignedDuration::from_secs(1));
    failing.fails(Fails::Status(400));
    say(&stage, "Hello again").await;
    assert_eq!(gates().await[0].1, Gate::Probe, "an invalid request says nothing about the provider");
    assert_eq!(working.asked(), 1);
}

/// An owner's own key is sent in place of the deployment's, and with the billing mode `byok` no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owners_own_key_pays() {
    let (stage, failing, working) = scene().await;
    failing.fails(Fails::Status(529));
    let key = "xai-own-key-of-the-owner";
    put(&stage, "/account/provider-keys/xai", json!({"key": key})).await;
    assert_eq!(say(&stage, "Hello").await["message"], "The other one answers.");
    assert!(failing.calls() > 0, "a provider without an own key is called with the deployment's");
    assert_eq!(working.keys(), [format!("Bearer {key}")]);

    stage.h.patch("/account", json!({"billing_mode": "byok"})).await.expect(200);
    assert_eq!(say(&stage, "Hello").await["message"], "The other one answers.");
    assert_eq!((failing.calls(), working.asked()), (0, 2));
    let models = stage.h.get("/models").await.expect(200);
    assert_eq!(models["providers"], json!([{"provider": "xai", "own_key": true}]));

    stage.h.delete("/account/provider-keys/xai").await.expect(204);
    let refused = say(&stage, "Hello").await;
    assert_eq!(refused["current"]["error_code"], "model_not_configured", "{refused:#}");
    assert_eq!((failing.calls(), working.asked()), (0, 2), "the deployment's keys are not used");
}

async fn put(stage: &Stage, path: &str, body: Value) {
    let caller = Caller { h: &stage.h, key: None };
    caller.call(Method::PUT, path, body).await.expect(200);
}

/// A conversation that is larger than the model's context is sent again without its older part, and the person is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_that_is_too_large_is_reduced() {
    let model = ScriptedModel::start(|_| Says::Text("I remember the end.".into())).await;
    let stage = Stage::with(model.config("scripted")).await;
    let view = say(&stage, "Hello").await;
    let chat = view["chat_id"].as_str().unwrap().to_owned();
    let message = |at: usize| json!({"role": if at.is_multiple_of(2) { "user" } else { "assistant" }, "content": format!("{at} {}", "lamp oil ".repeat(200))});
    let messages: Vec<Value> = (0..30).map(message).collect();
    stage.h.post(&format!("/chats/{chat}/messages"), json!({"messages": messages})).await.expect(201);
    let path = format!("/agents/{}/chat", stage.agent);
    let turn = json!({"chat_id": chat, "message": "What was the last thing?"});

    model.has_context(30_000);
    let before = model.asked();
    let view = stage.h.post(&path, turn.clone()).await.expect(200);
    assert_eq!(view["message"], "I remember the end.", "{view:#}");
    assert!((2..6).contains(&(model.asked() - before)), "{}", model.asked());
    let events = followed(&stage.h, view["run_id"].as_str().unwrap().parse().unwrap()).await;
    let reduced = events.iter().find(|event| event.name == "context.reduced").expect("it is told");
    assert!(reduced.data["messages_left_out"].as_u64() > Some(0), "{}", reduced.data);
    let sent = model.sent().last().unwrap()["messages"].to_string();
    assert!(sent.len() <= 30_000 && sent.contains("What was the last thing?"), "{}", sent.len());
    assert!(sent.contains("were left out") && !sent.contains("\"0 lamp oil"), "{sent:.300}");
    // The chat has all of it.
    let kept = stage.h.get(&format!("/chats/{chat}")).await.expect(200).to_string();
    assert!(kept.contains("\"0 lamp oil"), "nothing is lost");

    // What cannot become smaller fails, and says why.
    model.has_context(10);
    let refused = stage.h.post(&path, turn).await.body;
    assert_eq!(refused["current"]["error_code"], "conversation_too_large", "{refused:#}");
}

/// A reply that followers have seen is not begun again by another model.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_was_shown_is_not_replaced() {
    let (stage, failing, working) = scene().await;
    failing.fails(Fails::EndsInTheText);
    let refused = say(&stage, "Hello").await;
    assert_eq!(refused["current"]["error_code"], "model_answer_broken", "{refused:#}");
    assert_eq!((failing.calls(), working.asked()), (1, 0));
}
