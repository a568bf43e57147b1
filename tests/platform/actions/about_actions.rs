//! Conversations about an action: what a model sees, what it may propose, and that it can decide nothing.

use std::time::Duration;

use domain::actions::ActionState;
use domain::ids::{ActionId, MessageId};
use futures::future::join_all;
use lamplighter_local::demo::DemoSettings;
use lamplighter_local::platform::PlatformConfig;
use models::{Addresses, ModelsConfig, ServerConfig};
use reqwest::Method;
use serde_json::{Value, json};
use shared::blobs::BlobKey;
use shared::store::keys;
use tests::events::{events, names, stream};
use tests::model::{Says, ScriptedModel, free_server};
use tests::stage::Stage;
use tests::{Harness, send};

async fn demo() -> Stage {
    Stage::with(ModelsConfig::default()).await
}

fn messages(id: ActionId) -> String {
    format!("/actions/{id}/messages")
}

async fn say(stage: &Stage, id: ActionId, content: &str) -> Value {
    stage.h.post(&messages(id), json!({"content": content})).await.expect(200)
}

/// Who wrote what, and whether a run did.
async fn said(h: &Harness, id: ActionId) -> Vec<(String, String)> {
    let list = h.get(&messages(id)).await.expect(200);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    list["data"].as_array().unwrap().iter().map(|m| (text(&m["role"]), text(&m["content"]))).collect()
}

/// The newest text of the request.
fn last(request: &[Value]) -> &str {
    request.last().and_then(|message| message["content"].as_str()).unwrap_or_default()
}

/// A model that does what the person wrote last. It calls `{"tool": …, "input": …}` and replies with the result. To any
/// other text it replies with the whole request.
fn obeys(request: &[Value]) -> Says {
    if request.last().is_some_and(|message| message["role"] == "tool") {
        return Says::Text(format!("It said: {}", last(request)));
    }
    let words = last(request).rsplit("</in_view>").next().unwrap_or_default().trim();
    match serde_json::from_str::<Value>(words) {
        Ok(call) => {
            let name =
                ["change_action", "generate_asset", "approve"].into_iter().find(|n| call["tool"] == *n);
            Says::Call(name.unwrap_or("query_actions"), call["input"].clone())
        }
        Err(_) => Says::Text(format!("I was shown:\n{}", last(request))),
    }
}

#[tokio::test]
async fn a_question_is_answered_and_a_requested_change_is_proposed() {
    let stage = demo().await;
    let h = &stage.h;
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    let asked = stream(h, &messages(id), json!({"content": "Did it run?"})).await;
    assert_eq!((names(&asked)[0], names(&asked).last()), ("run.started", Some(&"run.completed")));
    assert_eq!(asked[0].data["action_id"], json!(id));
    stage.happens_at(60).await;
    let told = say(&stage, id, "What happened in the last run?").await;
    assert_eq!((&told["kind"], &told["action_id"]), (&json!("chat"), &json!(id)));
    assert!(told["message"].as_str().unwrap().contains("13:00 (UTC, UTC+00:00): succeeded"), "{told:#}");
    assert!(told["cost_micros"].as_i64().unwrap() > 0 && told.get("chat_id").is_none());

    // The requested change is a proposal. The action continues as it was approved.
    let before = stage.action(id).await;
    let wished = say(&stage, id, "Compare the delivery times, too.").await;
    let proposal = &wished["proposals"][0];
    let instructions = "Write a report about lamp oil\nCompare the delivery times, too.";
    assert_eq!((&proposal["kind"], &proposal["action_id"]), (&json!("change"), &json!(id)));
    assert_eq!(proposal["change"], json!({"task_config": {"instructions": instructions}}));
    assert_eq!(stage.action(id).await, before);
    stage.happens_at(120).await;
    assert_eq!(stage.became(id).await, ["60 succeeded", "120 succeeded"]);

    // The proposal can be read. It is neither an asset nor a new action, and does not belong to another action.
    let proposal_id = &proposal["proposal_id"];
    let read = h.get(&format!("/proposals/{}", proposal_id.as_str().unwrap())).await.expect(200);
    let mut shown = read.clone();
    // With it, the person can approve the change when it is accepted.
    assert!(shown.as_object_mut().unwrap().remove("approval_hash").is_some_and(|hash| hash.is_string()));
    assert_eq!(&shown, proposal);
    let take = json!({"proposal_id": proposal_id});
    for elsewhere in ["actions", "assets"] {
        let elsewhere = format!("/agents/{}/{elsewhere}", stage.agent);
        let problem = h.post(&elsewhere, take.clone()).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], "proposal_id");
    }
    let other = stage.approved(json!({})).await;
    h.patch(&format!("/actions/{other}"), take.clone()).await.refused(404, "not_found");
    let stale = h.request(Method::PATCH, &format!("/actions/{id}")).header("if-match", "\"1\"").json(&take);
    send(stale).await.refused(409, "version_conflict");

    // When the person accepts it, the approval is withdrawn. The changed action runs after a new approval.
    let path = format!("/actions/{id}");
    let changed = h.patch(&path, take.clone()).await.expect(200);
    assert_eq!(changed["task_config"]["instructions"], instructions);
    assert_eq!((&changed["state"], &changed["approval"]), (&json!("defined"), &Value::Null));
    h.patch(&path, take).await.refused(404, "not_found");
    stage.happens_at(180).await;
    assert_eq!(stage.became(id).await.len(), 2);
    let hash = json!({"approval_hash": changed["approval_hash"]});
    assert_eq!(h.post(&format!("{path}/approve"), hash).await.expect(200)["state"], "scheduled");
    stage.happens_at(240).await;
    assert_eq!(stage.became(id).await[2], "240 succeeded");

    let said: Vec<String> = said(h, id).await.into_iter().map(|(role, _)| role).collect();
    assert_eq!(said.iter().filter(|role| *role == "user").count(), 3, "{said:?}");
    assert_eq!(said[..2], ["user", "assistant"]);
}

#[tokio::test]
async fn a_persons_fields_override_a_proposal_and_other_edits_stay() {
    let model = ScriptedModel::start(obeys).await;
    let stage = Stage::with(model.config("scripted")).await;
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    let change = json!({"title": "Proposed", "priority": "high", "schedule": {"every": "2h"}});
    let call = json!({"tool": "change_action", "input": change}).to_string();
    let turn = say(&stage, id, &call).await;
    assert!(turn["message"].as_str().unwrap().contains("waits for the person's yes"), "{turn:#}");
    let proposal = &turn["proposals"][0];
    // A schedule without a zone is proposed in that of the account.
    let mut proposed = change.clone();
    proposed["schedule"]["timezone"] = json!("UTC");
    assert_eq!((&proposal["title"], &proposal["change"]), (&json!("Proposed"), &proposed));
    let path = format!("/actions/{id}");
    stage.h.patch(&path, json!({"description": "Edited since"})).await.expect(200);
    let take = json!({"proposal_id": proposal["proposal_id"], "title": "Mine", "schedule": null});
    stage
        .h
        .patch(&path, json!({"proposal_id": proposal["proposal_id"], "title": ""}))
        .await
        .refused(400, "invalid_input");
    let changed = stage.h.patch(&path, take).await.expect(200);
    for (field, expected) in [
        ("title", json!("Mine")),
        ("description", json!("Edited since")),
        ("priority", json!("high")),
        ("schedule", Value::Null),
    ] {
        assert_eq!(changed[field], expected, "{field}");
    }
}

/// Whatever a model calls, the action stays as a person has approved it.
#[tokio::test]
async fn a_model_can_neither_change_nor_approve() {
    let model = ScriptedModel::start(obeys).await;
    let stage = Stage::with(model.config("scripted")).await;
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    let before = stage.action(id).await;
    let hash = before.approval.as_ref().unwrap().hash.clone();
    for (tool, input, told) in [
        ("change_action", json!({}), "must change something"),
        ("change_action", json!({"schedule": {"every": "1h"}}), "must change something"),
        ("change_action", json!({"schedule": {"every": "1s"}}), "schedule.every: must be 1m to 366d"),
        ("change_action", json!({"grants": ["generate_actions"]}), "grants: is not a field here"),
        ("change_action", json!({"budget": {"per_run_micros": 1}}), "budget: is not a field here"),
        ("change_action", json!({"approval": {"hash": hash}}), "approval: is not a field here"),
        ("change_action", json!({"state": "completed"}), "state: is not a field here"),
        (
            "change_action",
            json!({"task_config": {"instructions": ""}}),
            "task_config.instructions: is required (1 to 20000 characters)",
        ),
        ("approve", json!({"approval_hash": hash}), "there is no tool approve"),
    ] {
        let turn = say(&stage, id, &json!({"tool": tool, "input": input}).to_string()).await;
        assert!(turn["message"].as_str().unwrap().contains(told), "{input}: {turn:#}");
        assert_eq!((&turn["proposals"], stage.action(id).await), (&json!([]), before.clone()), "{input}");
    }
    let proposals = stage.h.get(&format!("/agents/{}/proposals", stage.agent)).await.expect(200);
    assert_eq!(proposals["data"], json!([]));

    // In a chat with the agent, the model must say which action it means.
    let call = json!({"tool": "change_action", "input": {"title": "Other"}}).to_string();
    let chat =
        stage.h.post(&format!("/agents/{}/chat", stage.agent), json!({"message": call})).await.expect(200);
    assert!(chat["message"].as_str().unwrap().contains("action_id: is required in a chat"), "{chat:#}");

    stage.h.post(&format!("/actions/{id}/dismiss"), json!({})).await.expect(200);
    let turn = say(&stage, id, &call).await;
    assert!(turn["message"].as_str().unwrap().contains("was dismissed"), "{turn:#}");
}

#[tokio::test]
async fn the_model_sees_the_action_its_runs_their_outputs_and_what_was_said() {
    fn works_and_tells(request: &[Value]) -> Says {
        let system = request[0]["content"].as_str().unwrap_or_default();
        match (system.contains("<lamplighter:run>"), request.last().is_some_and(|m| m["role"] == "tool")) {
            (true, true) => Says::Text("Done.".into()),
            (true, false) => Says::Call("save_output", json!({"title": "Oil", "content": "Oil costs 7."})),
            (false, _) => {
                let said = request.iter().filter_map(|message| message["content"].as_str());
                Says::Text(said.skip(1).collect::<Vec<_>>().join("\n|"))
            }
        }
    }
    let model = ScriptedModel::start(works_and_tells).await;
    let stage = Stage::with(model.config("scripted")).await;
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    let first = say(&stage, id, "Is it ready?").await["message"].as_str().unwrap().to_owned();
    for part in [
        "action: act_",
        "\"Report\"",
        "approval: given ",
        "Every hour (UTC).",
        "Write a report about lamp oil",
    ] {
        assert!(first.contains(part), "{part}: {first}");
    }
    assert!(
        first.ends_with("last runs:\n</in_view>\n\nIs it ready?") || first.ends_with("Is it ready?"),
        "{first}"
    );
    stage.happens_at(60).await;
    let second = say(&stage, id, "And now?").await["message"].as_str().unwrap().to_owned();
    // The conversation comes before the view, which is shown once and not stored.
    assert_eq!(
        second.matches("<in_view>").count(),
        2,
        "once by itself, once quoted in the first answer: {second}"
    );
    let view = second.rfind("<in_view>").unwrap();
    assert!(second[..view].contains("Is it ready?"), "{second}");
    for part in [
        "- due on Saturday, 21 November 2026, 13:00 (UTC, UTC+00:00): succeeded",
        "\"Oil\"",
        "Oil costs 7.",
        "And now?",
    ] {
        assert!(second[view..].contains(part), "{part}: {second}");
    }
    assert!(said(&stage.h, id).await.iter().all(|(role, text)| role != "user" || !text.contains("in_view")));
}

#[tokio::test]
async fn invalid_messages_are_refused() {
    let stage = demo().await;
    let h = &stage.h;
    let id = stage.approved(json!({})).await;
    let path = messages(id);
    for content in [String::new(), "  ".into(), "x".repeat(32_001)] {
        let problem = h.post(&path, json!({"content": content})).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], "content");
    }
    h.post(&path, json!({"message": "hello"})).await.refused(400, "invalid_input");
    let nobodys = "/actions/act_0193f2a7c5e7d3a9b1f4c6d8e0a2b4c0/messages";
    h.post(nobodys, json!({"content": "hi"})).await.refused(404, "not_found");
    h.patch(&format!("/agents/{}", stage.agent), json!({"status": "archived"})).await.expect(200);
    h.post(&path, json!({"content": "hi"})).await.refused(409, "agent_archived");
    assert_eq!(said(h, id).await, []);
}

#[tokio::test]
async fn a_repeated_message_is_stored_once() {
    let stage = demo().await;
    let id = stage.approved(json!({})).await;
    let (path, body) = (messages(id), json!({"content": "Why is it so?"}));
    let first = stage.h.post_once(&path, "said", body.clone()).await.expect(200);
    let again = stage.h.post_once(&path, "said", body).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.expect(200), first);
    let else_ = json!({"content": "Else"});
    stage.h.post_once(&path, "said", else_).await.refused(422, "idempotency_mismatch");
    assert_eq!(said(&stage.h, id).await.len(), 2);
}

/// The work decides about the models of conversations that are no work of the agent itself.
#[tokio::test]
async fn each_kind_of_conversation_says_why_it_has_its_model() {
    let model = ScriptedModel::start(|_| Says::Text("It went well.".into())).await;
    let addresses = Addresses { xai: model.url(), ..Addresses::default() };
    let models = ModelsConfig { xai_key: Some("key".into()), addresses, ..ModelsConfig::default() };
    let stage = Stage::with(models).await;
    let id = stage.approved(json!({})).await;
    let used = async |path: &str, body: Value| {
        let run = stage.h.post(path, body).await.expect(200)["run_id"].as_str().unwrap().to_owned();
        let model = stage.h.get(&format!("/runs/{run}")).await.expect(200)["model"].clone();
        ["level", "model"].map(|field| model[field].as_str().unwrap().to_owned())
    };
    let about = used(&messages(id), json!({"content": "What happened?"})).await;
    assert_eq!(about, ["vendor", "xai/grok-4.7"]);
    let chat = used(&format!("/agents/{}/chat", stage.agent), json!({"message": "Hello"})).await;
    assert_eq!(chat, ["tier", "xai/grok-4.3"]);
    let setup = used("/setup/chat", json!({"message": "An agent"})).await;
    assert_eq!(setup, ["work", "xai/grok-4.3"]);
}

/// A person's message is kept even if the answer fails. The next turn includes it.
#[tokio::test]
async fn a_message_outlives_a_model_that_fails() {
    let away = ModelsConfig {
        forced: Some("compatible/away".parse().unwrap()),
        ..free_server(ServerConfig::at("http://127.0.0.1:9/v1"))
    };
    let stage = Stage::with(away).await;
    let id = stage.approved(json!({})).await;
    let failed = stage.h.post(&messages(id), json!({"content": "Are you there?"})).await;
    failed.refused(503, "run_failed");
    let streamed = stream(&stage.h, &messages(id), json!({"content": "And now?"})).await;
    assert_eq!(names(&streamed), ["run.started", "run.failed"]);
    let user = |text: &str| ("user".to_owned(), text.to_owned());
    assert_eq!(said(&stage.h, id).await, [user("Are you there?"), user("And now?")]);
    assert_eq!(stage.action(id).await.state, ActionState::Defined);
}

#[tokio::test]
async fn a_ceiling_stops_an_answer_before_it_costs() {
    let mut config = PlatformConfig::in_memory();
    (config.budget.day_micros, config.budget.day_max_micros) = (10, 10);
    let h = Harness::with(config).await;
    let agent = h.agent().await;
    let task = json!({"title": "t", "task_config": {"instructions": "i", "expected_output": "o"}});
    let action = h.post(&format!("/agents/{agent}/actions"), task).await.expect(201);
    let id: ActionId = action["action_id"].as_str().unwrap().parse().unwrap();
    h.post(&messages(id), json!({"content": "Why?"})).await.refused(402, "budget_exceeded");
    assert_eq!(said(&h, id).await.len(), 1);
}

#[tokio::test]
async fn an_answer_is_cancelled_and_followed_like_any_turn() {
    let mut config = PlatformConfig::in_memory();
    config.demo = DemoSettings { delay_per_word: Duration::from_millis(100) };
    let h = Harness::with(config).await;
    let agent = h.agent().await;
    let task = json!({"title": "t", "task_config": {"instructions": "i", "expected_output": "o"}});
    let action = h.post(&format!("/agents/{agent}/actions"), task).await.expect(201);
    let path = format!("/actions/{}/messages", action["action_id"].as_str().unwrap());
    let request = h.request(Method::POST, &path).header("accept", "text/event-stream");
    let response = request.json(&json!({"content": "Why?"})).send().await.unwrap();
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    assert_eq!(h.post(&format!("{location}/cancel"), json!({})).await.status, 202);
    let seen = events(&response.text().await.unwrap());
    assert_eq!(seen.last().unwrap().name, "run.cancelled");
    let replay = h.request(Method::GET, &format!("{location}/events")).header("accept", "text/event-stream");
    assert_eq!(events(send(replay).await.body.as_str().unwrap()), seen);
    assert_eq!(h.get(&location).await.expect(200)["state"], "cancelled");
}

/// A model that asks which week, and writes about the week of the answer. About the action it talks in one sentence.
fn asks(request: &[Value]) -> Says {
    if !request[0]["content"].as_str().unwrap_or_default().contains("<lamplighter:run>") {
        return Says::Text("I only talk.".into());
    }
    if last(request).starts_with("saved") {
        return Says::Text("It is done.".into());
    }
    let contents = request.iter().filter_map(|message| message["content"].as_str());
    match contents.filter_map(|content| content.split_once("The person answered: ")).next_back() {
        None => Says::Call("ask_person", json!({"question": "Which week?"})),
        Some((_, week)) => Says::Call("save_output", json!({"title": "Report", "content": week})),
    }
}

/// A run of the action waits for an answer to its question.
async fn asked(model: &ScriptedModel) -> (Stage, ActionId, String) {
    let stage = Stage::with(model.config("scripted")).await;
    let id = stage.approved(json!({"schedule": {"every": "1d"}})).await;
    stage.happens_at(24 * 60).await;
    assert_eq!(stage.became(id).await, ["1440 waiting asked"]);
    let run = stage.occurrences(id).await[0].run_id.to_string();
    (stage, id, run)
}

async fn output(stage: &Stage, id: ActionId, run: &str) -> Value {
    let outputs = stage.h.get(&format!("/actions/{id}/runs/{run}/outputs")).await.expect(200);
    let asset = outputs["data"][0]["asset_id"].as_str().unwrap();
    stage.h.get(&format!("/assets/{asset}/content")).await.expect(200)
}

#[tokio::test]
async fn a_message_to_a_run_that_asks_is_its_answer() {
    let model = ScriptedModel::start(asks).await;
    let (stage, id, run) = asked(&model).await;
    let asked_before = model.asked();
    let answer = stage.h.post_once(&messages(id), "answer", json!({"content": "Week 47"})).await;
    assert_eq!(answer.headers["location"], format!("/runs/{run}"));
    let answer = answer.expect(202);
    assert_eq!((&answer["run_id"], &answer["state"]), (&json!(run), &json!("running")));
    // There is no other reply, and sending the answer twice counts once.
    let again = stage.h.post_once(&messages(id), "answer", json!({"content": "Week 47"})).await;
    assert_eq!(again.expect(202), answer);
    assert_eq!(model.asked(), asked_before);
    // Before the run continues, somebody asks about it. That is not an answer, and hides no answer.
    assert_eq!(say(&stage, id, "Does it know?").await["message"], "I only talk.");
    stage.executors.work().await;
    assert_eq!(stage.became(id).await, ["1440 succeeded"]);
    assert_eq!(output(&stage, id, &run).await, "Week 47");
    let entry = |role: &str, text: &str| (role.to_owned(), text.to_owned());
    let expected = [
        entry("assistant", "Which week?"),
        entry("user", "Week 47"),
        entry("user", "Does it know?"),
        entry("assistant", "I only talk."),
    ];
    assert_eq!(said(&stage.h, id).await, expected);
}

/// A question may wait for longer than a run's steps are kept. Then the run starts again from the beginning, and gets the answer.
#[tokio::test]
async fn an_answer_counts_when_the_steps_have_expired() {
    let model = ScriptedModel::start(|request: &[Value]| {
        let begun = request[0]["content"].as_str().unwrap_or_default();
        assert!(
            !begun.contains("The person answered") || begun.contains("and asked: Which week?"),
            "{begun}"
        );
        asks(request)
    })
    .await;
    let (stage, id, run) = asked(&model).await;
    // The table's engine expires items by the machine's clock, not by this one. The record and the events expire
    // together with the steps.
    let (store, owner) = (&stage.h.platform.cx.store, &stage.owner);
    let run_id = run.parse().unwrap();
    // The reply, and the result of its call.
    assert_eq!(store.step_parts(owner, run_id).await.unwrap().len(), 2);
    store.delete_range(&keys::run_children(owner, run_id)).await.unwrap();
    assert!(store.run(owner, run_id).await.unwrap().is_none());
    stage.h.post(&messages(id), json!({"content": "Week 47"})).await.expect(202);
    stage.executors.work().await;
    assert_eq!(stage.became(id).await, ["1440 succeeded"]);
    assert_eq!(output(&stage, id, &run).await, "Week 47");
    let steps = store.step_parts(owner, run_id).await.unwrap();
    let numbered: Vec<_> = steps.iter().map(|step| (step.n, step.anew)).collect();
    assert_eq!(numbered[0], (2, true), "{steps:?}");
}

#[tokio::test]
async fn an_answer_to_a_run_returns_its_further_events() {
    let model = ScriptedModel::start(asks).await;
    let (stage, id, run) = asked(&model).await;
    let request = stage.h.request(Method::POST, &messages(id)).header("accept", "text/event-stream");
    let response = request.json(&json!({"content": "Week 48"})).send().await.unwrap();
    assert_eq!(response.headers()["location"], format!("/runs/{run}"));
    let (text, _) = tokio::join!(response.text(), stage.executors.work());
    let received = events(&text.unwrap());
    assert_eq!(received.last().unwrap().name, "run.completed");
    assert!(
        !names(&received).contains(&"run.waiting") && names(&received).contains(&"tool.result"),
        "{received:?}"
    );
    assert_eq!(output(&stage, id, &run).await, "Week 48");
}

/// One of several messages is the answer. The others arrive when there is no question any more, and get replies one at
/// a time.
#[tokio::test]
async fn one_of_several_concurrent_messages_is_the_answer() {
    let model = ScriptedModel::start(asks).await;
    let (stage, id, run) = asked(&model).await;
    let say = async |week: &str| stage.h.post(&messages(id), json!({"content": week})).await;
    let weeks = ["Week 1", "Week 2", "Week 3"];
    let answers = join_all(weeks.map(say)).await;
    let count = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((count(202), count(200) + count(409)), (1, 2), "{answers:#?}");
    let refused = answers.iter().filter(|answer| answer.status == 409);
    refused.for_each(|answer| assert_eq!(answer.body["code"], "turn_in_progress"));
    let first = answers.iter().position(|answer| answer.status == 202).unwrap();
    stage.executors.work().await;
    assert_eq!(output(&stage, id, &run).await, weeks[first]);
}

/// A run that needs a tool without a grant waits for a decision, not for a message.
#[tokio::test]
async fn a_run_that_waits_for_a_decision_can_be_talked_about() {
    fn plans(request: &[Value]) -> Says {
        if !request[0]["content"].as_str().unwrap_or_default().contains("<lamplighter:run>") {
            return Says::Text(last(request).to_owned());
        }
        let task = json!({"instructions": "Look", "expected_output": "A list"});
        let action = json!({"title": "Look", "description": "Look", "priority": "low", "task_config": task});
        Says::Call("generate_actions", json!({"actions": [action]}))
    }
    let model = ScriptedModel::start(plans).await;
    let stage = Stage::with(model.config("scripted")).await;
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(60).await;
    let told = say(&stage, id, "What does it want?").await;
    assert!(
        told["message"].as_str().unwrap().contains("waiting, it wants to use generate_actions"),
        "{told:#}"
    );
    assert_eq!(stage.became(id).await, ["60 waiting outside_grant"]);
}

#[tokio::test]
async fn large_replies_are_in_the_bucket_and_deleted_with_the_action() {
    fn writes_at_length(request: &[Value]) -> Says {
        if request.last().is_some_and(|message| message["role"] == "tool") {
            return Says::Text("x".repeat(70_000));
        }
        let content = "oil ".repeat(20_000);
        let asset = json!({"title": "t", "description": "d", "asset_type": "document", "content": content});
        Says::Call("generate_asset", asset)
    }
    let model = ScriptedModel::start(writes_at_length).await;
    let stage = Stage::with(model.config("scripted")).await;
    let id = stage.approved(json!({})).await;
    let turn = say(&stage, id, "Write it all down").await;
    assert_eq!(turn["proposals"][0]["bytes"], 80_000);
    let cx = &stage.h.platform.cx;
    let found =
        cx.store.messages(&stage.owner, id, None, 10, shared::store::table::Order::Oldest).await.unwrap();
    let stored: Vec<MessageId> = found
        .items
        .iter()
        .filter(|(_, m)| m.value.overflow)
        .map(|(_, m)| m.value.message.message_id)
        .collect();
    assert!(!stored.is_empty());
    let key = |message: &MessageId| BlobKey::message(&stage.owner, id.into(), *message);
    for message in &stored {
        assert!(cx.blobs.get(&key(message)).await.is_ok());
    }
    // The next turn includes them completely.
    assert_eq!(say(&stage, id, "Once more").await["state"], "completed");
    assert_eq!(stage.h.delete(&format!("/actions/{id}")).await.status, 204);
    for message in &stored {
        assert!(cx.blobs.get(&key(message)).await.is_err());
    }
}
