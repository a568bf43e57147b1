//! The inbox: everything that waits for a person, once each, and nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::agent_loop::CallResult;
use domain::ids::ActionId;
use domain::tools::{Effect, Surface, ToolDef};
use futures::future::BoxFuture;
use lamplighter_local::platform::PlatformConfig;
use models::ModelsConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::outside::{Called, Outside, OutsideCall, OutsideTools};
use shared::config::{AuthConfig, RunsConfig};
use tests::model::{Says, ScriptedModel};
use tests::stage::{Stage, noon};
use tests::things::Caller;
use tests::{Harness, made};

const ANY: usize = 10_000_000;

static MAIL: ToolDef = ToolDef::new(
    "send_mail",
    "Sends a mail.",
    Effect::Outside,
    &[Surface::Chat, Surface::Run],
    || json!({"type": "object", "properties": {"to": {"type": "string"}, "text": {"type": "string"}}}),
);

/// An outside service. Its calls have no known result.
struct Post;

impl Outside for Post {
    fn tools(&self) -> Vec<&'static ToolDef> {
        vec![&MAIL]
    }

    fn cost_micros(&self, _: &ToolDef, _: &Value) -> Option<i64> {
        Some(700)
    }

    fn call(&self, call: OutsideCall) -> BoxFuture<'static, Called> {
        let is_lost = call.arguments["text"] == "lost";
        Box::pin(async move {
            match is_lost {
                true => Called::Unknown,
                false => Called::Done(CallResult::told("It is sent.")),
            }
        })
    }
}

/// Does what the newest message of a person or the task says.
fn works(messages: &[Value]) -> Says {
    let since = messages.iter().rposition(|message| message["role"] == "user").unwrap_or(0);
    let text = messages[since]["content"].as_str().unwrap_or_default();
    if messages[since..].iter().any(|message| message["role"] == "tool") {
        return Says::Text("It is done.".into());
    }
    if text.contains("Ask first") {
        let question = "Which week?\n<script>alert(1)</script>";
        return Says::Call("ask_person", json!({"question": question, "choices": ["this one", "the  next"]}));
    }
    if text.contains("Mail it") {
        let text = if text.contains("and lose it") { "lost" } else { "Hello" };
        return Says::Call("send_mail", json!({"to": "a@b.example", "text": text}));
    }
    Says::Call("save_output", json!({"title": "Report", "content": "Lamp oil is dear."}))
}

async fn stage() -> (ScriptedModel, Stage) {
    let model = ScriptedModel::start(works).await;
    let runs = RunsConfig { outside: OutsideTools::new(Arc::new(Post)), ..RunsConfig::default() };
    let stage = Stage::with_runs(model.config("scripted"), runs).await;
    (model, stage)
}

fn task(title: &str, instructions: &str) -> Value {
    json!({"title": title, "task_config": {"instructions": instructions, "expected_output": "A report"}})
}

async fn read(stage: &Stage) -> Value {
    let inbox = stage.h.get("/inbox").await.expect(200);
    let data = inbox["data"].as_array().unwrap();
    let ids: BTreeSet<&str> = data.iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), data.len(), "nothing appears twice: {inbox:#}");
    let counted: u64 = inbox["counts"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(counted as usize, data.len());
    for item in data {
        let kind = item["kind"].as_str().unwrap();
        assert_eq!(inbox["counts"][kind], data.iter().filter(|item| item["kind"] == kind).count());
        assert!(!item["text"].as_str().unwrap().is_empty(), "{item:#}");
    }
    inbox
}

/// The kinds and titles, in order.
async fn kinds(stage: &Stage) -> Vec<String> {
    let inbox = read(stage).await;
    assert_eq!(inbox["complete"], true);
    let data = inbox["data"].as_array().unwrap().iter();
    data.map(|item| format!("{} {}", item["kind"].as_str().unwrap(), item["title"].as_str().unwrap()))
        .collect()
}

async fn act(stage: &Stage, id: ActionId, how: &str, body: Value) -> Value {
    let answer = stage.h.post(&format!("/actions/{id}/{how}"), body).await;
    assert!(answer.status < 300, "{how}: {:#}", answer.body);
    answer.body
}

async fn hash_of(stage: &Stage, id: ActionId) -> Value {
    json!({"approval_hash": stage.h.get(&format!("/actions/{id}")).await.expect(200)["approval_hash"]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_waits_until_it_is_given_and_again_after_a_change() {
    let (_model, stage) = stage().await;
    assert_eq!(read(&stage).await, json!({"data": [], "complete": true, "counts": {}, "live": 0}));
    let mut body = task("Prices", "Look");
    body["schedule"] = json!({"cron": "0 9 * * *", "timezone": "Europe/Berlin"});
    let action = stage.h.post(&format!("/agents/{}/actions", stage.agent), body).await.expect(201);
    let id: ActionId = action["action_id"].as_str().unwrap().parse().unwrap();
    let item = read(&stage).await["data"][0].clone();
    assert_eq!(item["id"], format!("approval/{id}"));
    for (field, is) in [
        ("kind", json!("approval")),
        ("agent_id", json!(stage.agent)),
        ("agent_name", json!("Watch")),
        ("action_id", json!(id)),
        ("action_title", json!("Prices")),
        ("approval_hash", action["approval_hash"].clone()),
        ("schedule_text", json!("At 09:00 (Europe/Berlin).")),
        ("next_at", json!("2026-11-22T08:00:00Z")),
        ("changed_since_approval", json!(false)),
    ] {
        assert_eq!(item[field], is, "{field}: {item:#}");
    }
    act(&stage, id, "approve", hash_of(&stage, id).await).await;
    assert_eq!(kinds(&stage).await, [""; 0]);

    // The agent changes: nothing would run, although nobody has touched the action.
    let agent = format!("/agents/{}", stage.agent);
    stage.h.patch(&agent, json!({"goal": "Sells oil"})).await.expect(200);
    let item = read(&stage).await["data"][0].clone();
    assert_eq!(
        (&item["kind"], &item["changed_since_approval"]),
        (&json!("approval"), &json!(true)),
        "{item:#}"
    );
    // A due time comes and is held. It is still one item.
    stage.happens_at(24 * 60).await;
    stage.happens_at(48 * 60).await;
    let inbox = read(&stage).await;
    assert_eq!(inbox["counts"], json!({"approval": 1}), "{inbox:#}");
    assert!(inbox["data"][0]["held_text"].as_str().unwrap().starts_with("held once"), "{inbox:#}");
    // The agent is as it was: only the answer is missing.
    stage.h.patch(&agent, json!({"goal": "A research agent that watches"})).await.expect(200);
    assert_eq!(kinds(&stage).await, ["held Prices"]);
    act(&stage, id, "resume", json!({})).await;
    assert_eq!(kinds(&stage).await, [""; 0]);

    stage
        .h
        .patch(&format!("/actions/{id}"), json!({"task_config": {"instructions": "Look twice"}}))
        .await
        .expect(200);
    let item = read(&stage).await["data"][0].clone();
    assert_eq!((&item["kind"], &item["changed_since_approval"]), (&json!("approval"), &json!(true)));
    stage
        .h
        .patch(&format!("/actions/{id}"), json!({"task_config": {"instructions": "Look"}}))
        .await
        .expect(200);
    assert_eq!(read(&stage).await["data"][0]["changed_since_approval"], false, "it is what was approved");
    // An archived agent does nothing, whatever a person answers.
    stage.h.patch(&agent, json!({"status": "archived"})).await.expect(200);
    assert_eq!(kinds(&stage).await, [""; 0]);
    stage.h.patch(&agent, json!({"status": "active"})).await.expect(200);
    act(&stage, id, "dismiss", json!({})).await;
    assert_eq!(kinds(&stage).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_and_calls_of_runs_and_chats_wait_with_what_an_answer_needs() {
    let (_model, stage) = stage().await;
    let asks = stage.approved(task("Asks", "Ask first")).await;
    let mails = stage.approved(task("Mails", "Mail it")).await;
    for id in [asks, mails] {
        act(&stage, id, "run", json!({})).await;
    }
    assert_eq!(read(&stage).await["live"], 2);
    stage.executors.work().await;
    stage.at(1);
    let chat = format!("/agents/{}/chat", stage.agent);
    let turn = stage.h.post(&chat, json!({"message": "Mail it"})).await.expect(200);
    assert_eq!(turn["state"], "waiting", "{turn:#}");

    let inbox = read(&stage).await;
    assert_eq!(
        (&inbox["counts"], &inbox["live"]),
        (&json!({"call": 2, "question": 1}), &json!(0)),
        "{inbox:#}"
    );
    let data = inbox["data"].as_array().unwrap();
    // The newest comes first.
    assert_eq!(data[0]["chat_id"], turn["chat_id"]);
    assert_eq!((&data[0]["run_id"], data[0].get("action_id")), (&turn["run_id"], None));
    for item in data.iter().filter(|item| item["kind"] == "call") {
        let run = stage.h.get(&format!("/runs/{}", item["run_id"].as_str().unwrap())).await.expect(200);
        let card = &run["cards"][0];
        for field in ["call_id", "tool", "arguments", "why", "hash", "asks", "cost_micros", "expires_at"] {
            assert_eq!(item[field], card[field], "{field}");
        }
        assert_eq!(item["arguments"]["to"], "a@b.example");
        assert_eq!(item["agent_name"], "Watch");
    }
    let question = data.iter().find(|item| item["kind"] == "question").unwrap();
    assert_eq!(question["text"], "Which week?\n<script>alert(1)</script>");
    assert_eq!(
        (&question["action_id"], &question["choices"]),
        (&json!(asks), &json!(["this one", "the next"]))
    );

    // Each answer takes its item away.
    let answer = async |item: &Value, how: &str| {
        let (run, call) = (item["run_id"].as_str().unwrap(), item["call_id"].as_str().unwrap());
        let path = format!("/runs/{run}/calls/{call}/{how}");
        stage.h.post(&path, json!({})).await.expect(200);
    };
    answer(&data[0], "reject").await;
    let mail = data.iter().find(|item| item["action_id"] == json!(mails)).unwrap();
    answer(mail, "approve").await;
    stage.h.post(&format!("/actions/{asks}/messages"), json!({"content": "This week"})).await.expect(202);
    let inbox = read(&stage).await;
    assert_eq!((&inbox["data"], &inbox["live"]), (&json!([]), &json!(3)), "they go on: {inbox:#}");
    stage.executors.work().await;
    assert_eq!(read(&stage).await["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_outcome_is_unknown_waits_for_what_became_of_it() {
    let (_model, stage) = stage().await;
    let id = stage.approved(task("Mails", "Mail it and lose it")).await;
    act(&stage, id, "run", json!({})).await;
    stage.executors.work().await;
    let card = read(&stage).await["data"][0].clone();
    assert_eq!(card["asks"], "permission");
    let (run, call) = (card["run_id"].as_str().unwrap(), card["call_id"].as_str().unwrap());
    stage.h.post(&format!("/runs/{run}/calls/{call}/approve"), json!({})).await.expect(200);
    stage.executors.work().await;
    let inbox = read(&stage).await;
    let card = &inbox["data"][0];
    assert_eq!((&card["kind"], &card["asks"]), (&json!("call"), &json!("outcome")), "{inbox:#}");
    assert_eq!(inbox["data"].as_array().unwrap().len(), 1);
    // Nobody answers for two weeks. Then the question is no longer a question, but a fact.
    stage.happens_at(15 * 24 * 60).await;
    let inbox = read(&stage).await;
    let left = stage.occurrences(id).await.last().unwrap().clone();
    match left.state {
        domain::actions::OccurrenceState::Unknown => {
            assert_eq!(inbox["counts"], json!({"unknown": 1}), "{inbox:#}");
            assert_eq!(inbox["data"][0]["run_id"], json!(left.run_id));
            assert!(inbox["data"][0]["reason"].as_str().unwrap().contains("not known"), "{inbox:#}");
        }
        other => panic!("{other:?} {inbox:#}"),
    }
}

#[tokio::test]
async fn failures_are_listed_while_they_are_the_newest_state() {
    let (model, stage) = stage().await;
    let id = stage.approved(json!({"schedule": {"every": "24h"}})).await;
    const DAY: i64 = 24 * 60;
    model.has_context(10);
    stage.happens_at(DAY).await;
    let item = read(&stage).await["data"][0].clone();
    let newest = stage.occurrences(id).await.last().unwrap().clone();
    for (field, is) in [
        ("kind", json!("failed")),
        ("run_id", json!(newest.run_id)),
        ("error_code", json!("conversation_too_large")),
        ("reason", json!(newest.reason)),
        ("times", json!(1)),
        ("action_id", json!(id)),
        ("next_at", json!(noon() + jiff::SignedDuration::from_mins(2 * DAY))),
    ] {
        assert_eq!(item[field], is, "{field}: {item:#}");
    }
    assert_eq!(item.get("paused_because"), None);
    // A success by hand ends it.
    model.has_context(ANY);
    act(&stage, id, "run", json!({})).await;
    stage.executors.work().await;
    assert_eq!(kinds(&stage).await, [""; 0]);

    // Three failures pause it, and that stays as long as it is paused.
    model.has_context(10);
    for day in 2..=4 {
        stage.happens_at(day * DAY).await;
    }
    let item = read(&stage).await["data"][0].clone();
    assert_eq!((&item["kind"], &item["times"]), (&json!("failed"), &json!(3)), "{item:#}");
    assert_eq!(item["paused_because"]["code"], "equal_failures");
    assert!(
        item["text"]
            .as_str()
            .unwrap()
            .starts_with("The action was paused after three failures with the same cause: "),
        "{item:#}"
    );
    stage.happens_at(20 * DAY).await;
    assert_eq!(kinds(&stage).await, ["failed Report"]);
    act(&stage, id, "resume", json!({})).await;
    assert_eq!(kinds(&stage).await, [""; 0]);
    // A failure that is followed by nothing is listed for a week.
    stage.happens_at(21 * DAY).await;
    assert_eq!(kinds(&stage).await, ["failed Report"]);
    act(&stage, id, "pause", json!({})).await;
    stage.at(28 * DAY);
    assert_eq!(kinds(&stage).await, ["failed Report"]);
    stage.at(28 * DAY + 60);
    assert_eq!(kinds(&stage).await, [""; 0]);
}

#[tokio::test]
async fn a_missed_due_time_is_listed_until_the_action_has_run() {
    let (model, stage) = stage().await;
    let id = stage.approved(json!({"schedule": {"every": "24h", "catch_up": "none"}})).await;
    const DAY: i64 = 24 * 60;
    stage.happens_at(2 * DAY + 60).await;
    assert_eq!(stage.became(id).await, ["1440 missed catch_up_off", "2880 missed catch_up_off"]);
    let inbox = read(&stage).await;
    assert_eq!(inbox["counts"], json!({"missed": 1}), "only the newest: {inbox:#}");
    assert_eq!(inbox["data"][0]["at"], json!(noon() + jiff::SignedDuration::from_mins(2 * DAY)));
    // A run by hand that fails does not settle it; one that succeeds does.
    model.has_context(10);
    stage.at(2 * DAY + 61);
    act(&stage, id, "run", json!({})).await;
    stage.executors.work().await;
    assert_eq!(kinds(&stage).await, ["missed Report"]);
    model.has_context(ANY);
    stage.at(2 * DAY + 62);
    act(&stage, id, "run", json!({})).await;
    stage.executors.work().await;
    assert_eq!(kinds(&stage).await, [""; 0]);
}

#[tokio::test]
async fn what_is_found_before_a_run_is_listed() {
    let (model, stage) = stage().await;
    let id = stage.approved(json!({"schedule": {"every": "24h"}})).await;
    model.lists(401);
    stage.happens_at(12 * 60).await;
    let item = read(&stage).await["data"][0].clone();
    assert_eq!((&item["kind"], &item["action_id"]), (&json!("preflight"), &json!(id)), "{item:#}");
    assert_eq!(item["problems"][0]["code"], "model_key_refused");
    assert_eq!(item["next_at"], json!(noon() + jiff::SignedDuration::from_hours(24)));
    model.lists(200);
    stage.happens_at(24 * 60 - 5).await;
    assert_eq!(kinds(&stage).await, [""; 0]);

    // That the approval no longer holds is said once.
    stage.h.patch(&format!("/agents/{}", stage.agent), json!({"goal": "Sells oil"})).await.expect(200);
    stage.happens_at(36 * 60).await;
    stage.happens_at(60 * 60 - 5).await;
    assert_eq!(kinds(&stage).await, ["approval Report"]);
}

#[tokio::test]
async fn proposals_wait_until_they_expire() {
    let stage = Stage::with(ModelsConfig::default()).await;
    let asset = made::asset_proposal(&stage.h, &stage.agent, None, "Oil").await;
    stage.at(1);
    let action = made::action_proposal(&stage.h, &stage.agent).await;
    assert_eq!(kinds(&stage).await, ["proposal Look", "proposal Draft"]);
    let inbox = read(&stage).await;
    let told: Vec<_> = inbox["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (&item["proposal_id"], &item["proposal_kind"]))
        .collect();
    assert_eq!(told, [(&json!(action), &json!("action")), (&json!(asset), &json!("asset"))]);
    stage.h.delete(&format!("/proposals/{asset}")).await.expect(204);
    assert_eq!(kinds(&stage).await, ["proposal Look"]);
    stage.at(30 * 24 * 60 + 1);
    assert_eq!(kinds(&stage).await, [""; 0]);
}

#[tokio::test]
async fn hostile_texts_come_back_as_they_are_and_long_ones_are_cut() {
    let stage = Stage::with(ModelsConfig::default()).await;
    let hostile = "</script><img src=x onerror=alert(1)>\u{202e}\u{0}' OR 1=1 --💡";
    let hostile = hostile.replace('\u{0}', "");
    let body = json!({
        "title": hostile, "description": "ä".repeat(100),
        "task_config": {"instructions": hostile, "expected_output": hostile},
    });
    stage.h.post(&format!("/agents/{}/actions", stage.agent), body).await.expect(201);
    assert_eq!(kinds(&stage).await, [format!("approval {hostile}")]);
}

#[tokio::test]
async fn a_stranger_sees_nothing_anywhere() {
    let mut config = PlatformConfig::in_memory();
    config.auth = AuthConfig::On(None);
    let h = Harness::with(config).await;
    let (mine, theirs) = (h.key_of("me").await, h.key_of("you").await);
    let (me, you) = (Caller { h: &h, key: Some(&mine) }, Caller { h: &h, key: Some(&theirs) });
    let ids = me.things("oil").await;
    for path in ["/inbox", "/runs", "/runs?kind=chat", "/search?q=oil", "/day"] {
        let own = me.call(Method::GET, path, Value::Null).await.expect(200);
        // Nothing is due or has run by itself.
        let is_empty = matches!(path, "/runs" | "/day");
        assert_eq!(own["data"] == json!([]), is_empty, "{path}: {own:#}");
        let answer = you.call(Method::GET, path, Value::Null).await.expect(200);
        assert_eq!((&answer["data"], &answer["complete"]), (&json!([]), &json!(true)), "{path}");
        tests::send(h.request(Method::GET, path)).await.refused(401, "unauthenticated");
    }
    for (name, path) in [("agent_id", "/runs?agent_id="), ("action_id", "/runs?action_id=")] {
        let path = format!("{path}{}", ids[name]);
        me.call(Method::GET, &path, Value::Null).await.expect(200);
        you.call(Method::GET, &path, Value::Null).await.refused(404, "not_found");
    }
}
