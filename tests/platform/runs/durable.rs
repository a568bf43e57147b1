//! Turns that outlive their process: killed at every store, released, cancelled, one at a time per conversation.

use std::path::Path;
use std::time::{Duration, Instant};

use base::clock::Clock;
use domain::ids::RunId;
use domain::runs::form::ReplyForm;
use domain::runs::{Run, RunKind};
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::flows::executor::route;
use shared::flows::turn::Topic;
use shared::store::table::Written;
use shared::store::{DueItem, Store};
use tests::events::events;
use tests::model::{Says, ScriptedModel};
use tests::process::{Process, followed, take_over, valid};
use tests::program::Server;
use tests::stage::Stage;
use tests::{Harness, send};

use crate::command;

/// Looks something up, proposes an asset, looks again, and says that it is done.
fn works(messages: &[Value]) -> Says {
    let since = messages.iter().rposition(|message| message["role"] == "user").unwrap_or(0);
    let results = messages[since..].iter().filter(|message| message["role"] == "tool").count();
    match results {
        0 => Says::Call("query_assets", json!({"limit": 3})),
        1 => {
            let brief =
                json!({"title": "Brief", "description": "d", "asset_type": "document", "content": "Oil."});
            Says::Call("generate_asset", brief)
        }
        _ => Says::Text("It should not come to this.".into()),
    }
}

/// The same, with text after each look-up.
fn talks(messages: &[Value]) -> Says {
    let since = messages.iter().rposition(|message| message["role"] == "user").unwrap_or(0);
    let results = messages[since..].iter().filter(|message| message["role"] == "tool").count();
    match results {
        0 => Says::Call("query_assets", json!({"limit": 3})),
        1 => Says::Call("query_actions", json!({})),
        _ => Says::Text("There is nothing saved yet, and nothing is planned.".into()),
    }
}

/// The result of a run, without ids and times.
#[derive(Debug, PartialEq)]
struct Became {
    state: Value,
    message: Value,
    proposals: Vec<String>,
    waiting: usize,
    said: Vec<(String, String)>,
    tools: Vec<(String, Value)>,
    text: String,
}

async fn became(stage: &Stage, run: RunId) -> Became {
    let h = &stage.h;
    let all = followed(h, run).await;
    let view = h.get(&format!("/runs/{run}")).await.expect(200);
    let ids: Vec<u64> = all.iter().map(|event| event.id).collect();
    assert_eq!(ids, (1..=all.len() as u64).collect::<Vec<_>>(), "one continuous run");
    let valid = valid(all);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let tools = valid.iter().filter(|event| event.name == "tool.result");
    let tools = tools.map(|event| (text(&event.data["tool"]), event.data["is_error"].clone())).collect();
    let deltas = valid.iter().filter(|event| event.name == "message.delta");
    let chat = h.get(&format!("/chats/{}", view["chat_id"].as_str().unwrap())).await.expect(200);
    let said = chat["messages"].as_array().unwrap().iter();
    let proposals = view["proposals"].as_array().unwrap().iter();
    let waiting = h.get(&format!("/agents/{}/proposals", stage.agent)).await.expect(200);
    Became {
        state: view["state"].clone(),
        message: view["message"].clone(),
        proposals: proposals.map(|proposal| text(&proposal["title"])).collect(),
        waiting: waiting["data"].as_array().unwrap().len(),
        said: said.map(|message| (text(&message["role"]), text(&message["content"]))).collect(),
        tools,
        text: deltas.map(|event| text(&event.data["text"])).collect(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_is_killed_at_any_store_is_finished_and_does_nothing_twice() {
    for script in [works, talks] {
        let model = ScriptedModel::start(script).await;
        let undisturbed = {
            let stage = Stage::with(model.config("gpt-5.1")).await;
            let process = Process::start(&stage);
            let topic = Topic::Agent(stage.agent.parse().unwrap(), None);
            let run = process.begins(&stage, topic, "Write a brief").await;
            let became = (became(&stage, run).await, followed(&stage.h, run).await.len() as u64);
            process.kill();
            became
        };
        let (undisturbed, stores) = undisturbed;
        assert_eq!(undisturbed.state, "completed", "{undisturbed:#?}");
        let mut taken_over = 0;
        for kill_at in 1..stores {
            let stage = Stage::with(model.config("gpt-5.1")).await;
            let process = Process::start(&stage);
            let topic = Topic::Agent(stage.agent.parse().unwrap(), None);
            let run = process.begins(&stage, topic, "Write a brief").await;
            while let Some(mut live) = process.cx.live.listen(run) {
                if live.wait_for(|recent| recent.newest >= kill_at).await.is_ok() {
                    break;
                }
            }
            process.kill();
            take_over(&stage, run).await;
            let all = followed(&stage.h, run).await;
            taken_over += usize::from(all.iter().any(|event| event.name == "step.restarted"));
            assert_eq!(became(&stage, run).await, undisturbed, "killed at event {kill_at}");
            // Its reservation was returned, and the possible cost of the lost call was counted.
            let spend = stage.h.platform.cx.store.spend(&stage.owner, stage.clock.now()).await.unwrap();
            assert!(spend.committed_micros == spend.spent_micros && spend.spent_micros > 0, "{spend:?}");
        }
        assert!(taken_over > 0, "no kill came in time");
    }
}

/// The process that takes a run over keeps to what the client asks of the reply.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_is_taken_over_keeps_its_form() {
    let model = ScriptedModel::held(talks).await;
    let stage = Stage::with(model.config("gpt-5.1")).await;
    let process = Process::start(&stage);
    let form =
        ReplyForm { stop: vec![" saved".to_owned()], max_tokens: Some(50_000_000), ..ReplyForm::default() };
    let topic = Topic::Agent(stage.agent.parse().unwrap(), None);
    let run = process.begins_with(&stage, topic, "Hello", form.clone()).await;
    model.asked_times(1).await;
    process.kill();
    model.allow(10);
    take_over(&stage, run).await;
    let view = stage.h.get(&format!("/runs/{run}")).await.expect(200);
    assert_eq!((&view["state"], &view["message"]), (&json!("completed"), &json!("There is nothing")));
    assert_eq!(stage.h.platform.cx.store.run(&stage.owner, run).await.unwrap().unwrap().value.form, form);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_kills_its_process_repeatedly_is_given_up() {
    let model = ScriptedModel::held(works).await;
    let stage = Stage::with(model.config("gpt-5.1")).await;
    let process = Process::start(&stage);
    let run = process.begins(&stage, Topic::Setup(None), "Hello").await;
    model.asked_times(1).await;
    process.kill();
    for kill in 2..=4 {
        stage.clock.set(stage.clock.now() + SignedDuration::from_secs(61));
        let process = Process::start(&stage);
        let (cx, owner) = (process.cx.clone(), stage.owner.clone());
        process.runtime.spawn(async move {
            let deadline = cx.clock.now() + SignedDuration::from_mins(15);
            route::process(&cx, &DueItem::run(&owner, run), deadline).await
        });
        model.asked_times(kill).await;
        process.kill();
    }
    take_over(&stage, run).await;
    let view = stage.h.get(&format!("/runs/{run}")).await.expect(200);
    assert_eq!(
        (&view["state"], &view["error"]["code"]),
        (&json!("failed"), &json!("interrupted")),
        "{view:#}"
    );
    // The conversation is free again.
    model.allow(10);
    let again = json!({"chat_id": view["chat_id"], "message": "Hello again"});
    assert_eq!(stage.h.post("/setup/chat", again).await.expect(200)["state"], "completed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_whose_time_is_up_is_handed_on() {
    let model = ScriptedModel::held(talks).await;
    let stage = Stage::with(model.config("gpt-5.1")).await;
    let process = Process::start(&stage);
    let run = process.begins(&stage, Topic::Agent(stage.agent.parse().unwrap(), None), "Hello").await;
    model.asked_times(1).await;
    process.cx.stopping.set();
    // It waits neither for its model, which never answers, nor for the end of its lease, which never comes on this clock.
    while !process.cx.live.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Nothing waits for a lease, which does not end on this clock. The run is in the queue.
    model.allow(10);
    let mut view = Value::Null;
    while view["state"] != "completed" {
        stage.executors.work().await;
        view = stage.h.get(&format!("/runs/{run}")).await.expect(200);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    process.kill();
}

/// Cancels a run while its model withholds its answer. A cancel that waited for the model would wait for ever.
///
/// Two seconds are promised on a machine without other work. Here other tests compute, too. So the test measures the
/// cost of each step of the cancel before and after it, by reading the run as the cancel does.
async fn cancelled(h: &Harness, run: &str) -> Value {
    /// The cancel reads the run every 100 ms for 1.2 s, and then writes a few times.
    const STEPS: u32 = 30;
    let look = async || {
        let began = Instant::now();
        for _ in 0..3 {
            h.get(&format!("/runs/{run}")).await.expect(200);
        }
        began.elapsed() / 3
    };
    let before = look().await;
    let began = Instant::now();
    let view = h.post(&format!("/runs/{run}/cancel"), json!({})).await.expect(202);
    let took = began.elapsed();
    let step = before.max(look().await);
    assert!(took < Duration::from_secs(2) + STEPS * step, "{took:?}, {step:?} a step");
    assert_eq!(view["state"], "cancelled", "{view:#}");
    view
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_run_is_cancelled_within_two_seconds() {
    let model = ScriptedModel::held(talks).await;
    let stage = Stage::with(model.config("gpt-5.1")).await;
    let h = &stage.h;
    let agent = Topic::Agent(stage.agent.parse().unwrap(), None);
    let action = stage.approved(json!({})).await;
    // Turns whose process is alive, or dead.
    for (topic, dead) in
        [(agent.clone(), false), (agent, true), (Topic::Setup(None), false), (Topic::Action(action), false)]
    {
        let process = Process::start(&stage);
        let asked = model.asked();
        let run = process.begins(&stage, topic.clone(), "Hello").await;
        model.asked_times(asked + 1).await;
        let live = if dead {
            process.kill();
            None
        } else {
            Some(process)
        };
        cancelled(h, &run.to_string()).await;
        let names: Vec<String> = followed(h, run).await.into_iter().map(|event| event.name).collect();
        assert_eq!(names.last().map(String::as_str), Some("run.cancelled"), "{topic:?} {dead}: {names:?}");
        // It makes no further call, and the conversation is free.
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert_eq!(model.asked(), asked + 1, "{topic:?} {dead}");
        live.into_iter().for_each(Process::kill);
    }
    let spend = h.platform.cx.store.spend(&stage.owner, stage.clock.now()).await.unwrap();
    assert_eq!(spend.committed_micros, spend.spent_micros);

    // Runs of an action: queued, running, and left by a dead executor.
    let executor = |stage: &Stage, action| {
        let process = Process::start(stage);
        let (cx, item) = (process.cx.clone(), DueItem::action(&stage.owner, action));
        process.runtime.spawn(async move {
            let deadline = cx.clock.now() + SignedDuration::from_mins(15);
            route::process(&cx, &item, deadline).await
        });
        process
    };
    for how in ["queued", "at work", "dead"] {
        let action = stage.approved(json!({})).await;
        let started = h.post(&format!("/actions/{action}/run"), json!({})).await.expect(202);
        let run = started["run_id"].as_str().unwrap();
        let asked = model.asked();
        let process = (how != "queued").then(|| executor(&stage, action));
        if how != "queued" {
            model.asked_times(asked + 1).await;
        }
        let process = if how == "dead" {
            process.into_iter().for_each(Process::kill);
            None
        } else {
            process
        };
        cancelled(h, run).await;
        let occurrence = h.get(&format!("/actions/{action}/runs/{run}")).await.expect(200);
        assert_eq!(occurrence["state"], "cancelled", "{how}: {occurrence:#}");
        assert_eq!(stage.action(action).await.live_run, None, "{how}");
        stage.executors.work().await;
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert_eq!(model.asked(), asked + usize::from(how != "queued"), "{how}");
        process.into_iter().for_each(Process::kill);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_turn_of_a_conversation_runs_at_a_time() {
    let model = ScriptedModel::held(|_| Says::Text("Yes.".into())).await;
    let mut config = PlatformConfig::in_memory();
    config.models = model.config("scripted");
    let h = Harness::with(config).await;
    let path = format!("/agents/{}/chat", h.agent().await);
    let begin = |body: Value| {
        let request = h.request(Method::POST, &path).header("accept", "text/event-stream").json(&body);
        async move { request.send().await.unwrap() }
    };
    let first = begin(json!({"message": "One"})).await;
    let run = first.headers()["location"].to_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let chat = h.get(&format!("/runs/{run}")).await.expect(200)["chat_id"].clone();

    let say = |message: &str, if_busy: &str| {
        h.post(&path, json!({"chat_id": chat, "message": message, "if_busy": if_busy}))
    };
    let refused =
        h.post(&path, json!({"chat_id": chat, "message": "Two"})).await.refused(409, "turn_in_progress");
    assert_eq!(refused["current"]["run_id"], json!(run));
    say("Two", "reject").await.refused(409, "turn_in_progress");
    say("Two", "sometimes").await.refused(400, "invalid_input");

    // Another conversation is not affected.
    model.asked_times(1).await;
    let (other, queued) = tokio::join!(h.post(&path, json!({"message": "Elsewhere"})), async {
        let waits = say("Three", "queue");
        tokio::pin!(waits);
        assert!(tokio::time::timeout(Duration::from_millis(500), &mut waits).await.is_err(), "it waits");
        model.allow(10);
        waits.await
    });
    assert_eq!(
        (other.expect(200)["state"].clone(), queued.expect(200)["state"].clone()),
        (json!("completed"), json!("completed"))
    );
    assert_eq!(h.get(&format!("/runs/{run}")).await.expect(200)["state"], "completed");
    drop(first);

    // If four begin at once, one succeeds, and the messages stay in order.
    let all = futures::future::join_all((0..4).map(|n| say(["a", "b", "c", "d"][n], "reject"))).await;
    let begun = all.iter().filter(|answer| answer.status == 200).count();
    assert!(begun >= 1 && all.iter().all(|answer| answer.status == 200 || answer.status == 409));
    let seen = h.get(&format!("/chats/{}", chat.as_str().unwrap())).await.expect(200);
    let roles: Vec<&str> =
        seen["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant"].repeat(2 + begun));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_interrupts_the_one_before_it() {
    let model = ScriptedModel::held(|_| Says::Text("Yes.".into())).await;
    let mut config = PlatformConfig::in_memory();
    config.models = model.config("scripted");
    let h = Harness::with(config).await;
    let body = json!({"message": "One"});
    let first = h.request(Method::POST, "/setup/chat").header("accept", "text/event-stream").json(&body);
    let first = first.send().await.unwrap();
    let run = first.headers()["location"].to_str().unwrap().to_owned();
    let chat = h.get(&run).await.expect(200)["chat_id"].clone();
    model.asked_times(1).await;
    let second = async {
        let body = json!({"chat_id": chat, "message": "Two", "if_busy": "interrupt"});
        h.post("/setup/chat", body).await.expect(200)
    };
    let allow = async {
        model.asked_times(2).await;
        model.allow(2);
    };
    let (second, ()) = tokio::join!(second, allow);
    assert_eq!(second["state"], "completed");
    assert_eq!(h.get(&run).await.expect(200)["state"], "cancelled");
}

/// Another client begins a turn whenever one is cancelled. Repeated interrupting has a limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_finds_others_for_too_long_is_refused() {
    let mut config = PlatformConfig::in_memory();
    // Its patience of two minutes takes a little more than a second.
    config.clock = Clock::scaled(100);
    let h = Harness::with(config).await;
    let first = h.post("/setup/chat", json!({"message": "One"})).await.expect(200);
    let chat = first["chat_id"].as_str().unwrap().parse::<domain::ids::ChatId>().unwrap();
    let (cx, owner) = (h.platform.cx.clone(), tests::made::local());
    let (holds, mut held) = tokio::sync::watch::channel(0);
    let hog = tokio::spawn(async move {
        loop {
            let live = cx.store.live_turn(&owner, chat.into()).await.unwrap();
            let run = match &live {
                Some(live) => cx.store.run(&owner, live.value.run_id).await.unwrap(),
                None => None,
            };
            if run.is_some_and(|run| !run.value.state.is_final()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
                continue;
            }
            let now = cx.clock.now();
            let run_id = RunId::from_uuid(cx.clock.uuid());
            let lease = now + SignedDuration::from_hours(24);
            let run = Run { chat_id: Some(chat), ..Run::begun(run_id, RunKind::Setup, now, lease) };
            let version = live.map_or(0, |live| live.version);
            let writes = vec![
                Store::hold_thread(&owner, chat.into(), run_id, version).unwrap(),
                Store::run_write(&owner, &run).unwrap(),
            ];
            if matches!(cx.store.write_all(writes).await.unwrap(), Written::Yes) {
                holds.send_modify(|held| *held += 1);
            }
        }
    });
    held.wait_for(|held| *held > 0).await.unwrap();
    let body = json!({"chat_id": chat, "message": "Two", "if_busy": "interrupt"});
    let answer = h.post("/setup/chat", body).await;
    // Usually the other client is faster each time, but sometimes this turn is.
    if answer.status != 200 {
        let refused = answer.refused(409, "turn_in_progress");
        assert!(refused["current"]["run_id"].is_string(), "{refused:#}");
    }
    hog.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_chat_keeps_no_late_reply() {
    let model = ScriptedModel::held(|_| Says::Text("Late. ".repeat(20_000))).await;
    let stage = Stage::with(model.config("scripted")).await;
    let (h, cx) = (&stage.h, &stage.h.platform.cx);
    for how in ["deleted", "reset", "deleted, and the turn is not stopped"] {
        let process = Process::start(&stage);
        let asked = model.asked();
        let run = process.begins(&stage, Topic::Agent(stage.agent.parse().unwrap(), None), "Hello").await;
        let view = h.get(&format!("/runs/{run}")).await.expect(200);
        let chat: domain::ids::ChatId = view["chat_id"].as_str().unwrap().parse().unwrap();
        model.asked_times(asked + 1).await;
        let ends = match how {
            "deleted" => {
                assert_eq!(h.delete(&format!("/chats/{chat}")).await.status, 204);
                "run.cancelled"
            }
            "reset" => {
                h.post(&format!("/chats/{chat}"), json!({})).await.expect(200);
                "run.cancelled"
            }
            _ => {
                let found = cx.store.chat(&stage.owner, chat).await.unwrap().unwrap();
                cx.store
                    .delete_chat(&stage.owner, &found.value, cx.clock.uuid(), cx.clock.now())
                    .await
                    .unwrap();
                model.allow(1);
                "run.completed"
            }
        };
        assert_eq!(followed(h, run).await.last().unwrap().name, ends, "{how}");
        while !process.cx.live.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        let left = cx.store.messages(&stage.owner, chat, None, 10, shared::store::table::Order::Oldest).await;
        assert_eq!(left.unwrap().items.len(), 0, "{how}");
        assert!(cx.store.live_turn(&stage.owner, chat.into()).await.unwrap().is_none(), "{how}");
        process.kill();
    }
}

/// A run that ends leaves the mark of its conversation alone if a newer run holds it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_ends_late_keeps_the_mark_of_a_newer_run() {
    let model = ScriptedModel::held(|_| Says::Text("Yes.".into())).await;
    let stage = Stage::with(model.config("scripted")).await;
    let (h, cx, owner) = (&stage.h, &stage.h.platform.cx, &stage.owner);
    for how in ["it completes", "its executor is dead"] {
        let process = Process::start(&stage);
        let asked = model.asked();
        let run = process.begins(&stage, Topic::Agent(stage.agent.parse().unwrap(), None), "Hello").await;
        model.asked_times(asked + 1).await;
        let view = h.get(&format!("/runs/{run}")).await.expect(200);
        let chat: domain::ids::ChatId = view["chat_id"].as_str().unwrap().parse().unwrap();
        let mark = cx.store.live_turn(owner, chat.into()).await.unwrap().unwrap();
        let newer = RunId::from_uuid(cx.clock.uuid());
        let held = Store::hold_thread(owner, chat.into(), newer, mark.version).unwrap();
        assert!(cx.store.write_all(vec![held]).await.unwrap().done());
        let mut process = Some(process);
        if how == "it completes" {
            model.allow(1);
        } else {
            process.take().into_iter().for_each(Process::kill);
            h.post(&format!("/runs/{run}/cancel"), json!({})).await;
        }
        let ended = followed(h, run).await.last().unwrap().name.clone();
        assert_eq!(ended, if how == "it completes" { "run.completed" } else { "run.cancelled" });
        let mark = cx.store.live_turn(owner, chat.into()).await.unwrap();
        assert_eq!(mark.map(|mark| mark.value.run_id), Some(newer), "{how}");
        let said = cx.store.messages(owner, chat, None, 10, shared::store::table::Order::Oldest).await;
        assert_eq!(said.unwrap().items.len(), if how == "it completes" { 2 } else { 1 }, "{how}");
        process.into_iter().for_each(Process::kill);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_are_cancelled_cannot_pass_the_ceiling_of_a_day() {
    const DAY: i64 = 400_000;
    let model = ScriptedModel::held(|_| Says::Text("Yes.".into())).await;
    let mut config = PlatformConfig::in_memory();
    config.models = model.config("gpt-5.1");
    (config.budget.day_micros, config.budget.day_max_micros) = (DAY, DAY);
    let h = Harness::with(config).await;
    let agent = h.agent().await;
    let message = "word ".repeat(6_000);
    let mut cancelled_turns = 0;
    for n in 1.. {
        let body = json!({"message": message});
        let request =
            h.request(Method::POST, &format!("/agents/{agent}/chat")).header("accept", "text/event-stream");
        let response = request.json(&body).send().await.unwrap();
        let run = response.headers()["location"].to_str().unwrap().to_owned();
        let ended = async { events(&response.text().await.unwrap()).pop().unwrap() };
        let stop = async {
            tokio::select! {
                () = model.asked_times(n) => {}
                () = tokio::time::sleep(Duration::from_secs(3)) => {}
            }
            h.post(&format!("{run}/cancel"), json!({})).await.expect(202)
        };
        let (ended, view) = tokio::join!(ended, stop);
        let spend =
            h.platform.cx.store.spend(&tests::made::local(), h.platform.cx.clock.now()).await.unwrap();
        assert!(spend.committed_micros <= DAY, "{spend:?}");
        if ended.name == "run.failed" {
            assert_eq!(ended.data["error"]["code"], "budget_exceeded");
            break;
        }
        assert_eq!(view["usage"]["estimated"], true, "{view:#}");
        assert!(view["cost_micros"].as_i64().unwrap() > 0);
        cancelled_turns += 1;
        assert!(cancelled_turns < 200, "the ceiling is never reached: {spend:?}");
    }
    assert!(cancelled_turns > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_json_turn_is_known_by_its_key_while_it_runs() {
    let model = ScriptedModel::held(|_| Says::Text("Yes.".into())).await;
    let stage = Stage::with(model.config("scripted")).await;
    let path = format!("/agents/{}/chat", stage.agent);
    let body = json!({"message": "Hello"});
    let first = stage.h.post_once(&path, "long", body.clone());
    let second = async {
        model.asked_times(1).await;
        stage.clock.set(stage.clock.now() + SignedDuration::from_secs(90));
        let refused = stage.h.post_once(&path, "long", body.clone()).await;
        let refused = refused.refused(409, "idempotency_in_flight");
        model.allow(1);
        refused["current"]["run_id"].clone()
    };
    let (first, run) = tokio::join!(first, second);
    let first = first.expect(200);
    assert_eq!((&first["state"], &first["run_id"]), (&json!("completed"), &run));
    assert_eq!(stage.h.post_once(&path, "long", body).await.expect(200), first);
}

#[tokio::test]
async fn the_proposals_of_a_turn_are_limited() {
    fn plans(messages: &[Value]) -> Says {
        if messages.last().is_some_and(|message| message["role"] == "tool") {
            return Says::Text("That was all.".into());
        }
        let one = |n: usize| {
            json!({"title": format!("Action {n}"), "description": "d", "priority": "low",
            "task_config": {"instructions": "i", "expected_output": "o"}})
        };
        Says::Call("generate_actions", json!({"actions": (0..300).map(one).collect::<Vec<_>>()}))
    }
    let model = ScriptedModel::start(plans).await;
    let mut config = PlatformConfig::in_memory();
    config.models = model.config("scripted");
    let h = Harness::with(config).await;
    let agent = h.agent().await;
    let seen = tests::events::stream(&h, &format!("/agents/{agent}/chat"), json!({"message": "Plan"})).await;
    assert_eq!(seen.iter().filter(|event| event.name == "action.proposed").count(), 20);
    let limit = seen.iter().find(|event| event.name == "deliverable.invalid").unwrap();
    assert!(limit.data["reason"].as_str().unwrap().contains("at most 20"), "{limit:?}");
    let told = model.sent().last().unwrap()["messages"].to_string();
    assert!(told.contains("280 of these were not proposed"), "{told}");
    let list = h.get(&format!("/agents/{agent}/proposals?limit=100")).await.expect(200);
    assert_eq!(list["data"].as_array().unwrap().len(), 20);
}

/// The real server, with its data in this folder.
fn server_with(model: &ScriptedModel, data: &Path) -> Server {
    let mut command = command(data);
    command
        .env("LAMPLIGHTER_MODEL_URL", model.url())
        .env("LAMPLIGHTER_PRICES", r#"{"compatible/*": "free"}"#);
    Server::start(command.env("LAMPLIGHTER_MODEL", "scripted"))
}

fn ask_to_stop(server: &Server) {
    let asked = std::process::Command::new("kill").arg(server.id().to_string()).status();
    assert!(asked.unwrap().success());
}

/// Less than a lease lasts. So a run that continues within this time did not wait for the end of one.
const BEFORE_A_LEASE_ENDS: Duration = Duration::from_secs(50);

/// The real server, killed or stopped in the middle of a turn. The next one continues at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_ends_leaves_no_turn_behind() {
    let model = ScriptedModel::held(talks).await;
    let client = tests::client();
    for politely in [false, true] {
        let data = tempfile::TempDir::new().unwrap();
        let start = || server_with(&model, data.path());
        let server = start();
        let agent = json!({"name": "Watch", "goal": "A research agent that watches"});
        let agent = send(client.post(format!("{}/agents", server.url)).json(&agent)).await.expect(201);
        let path = format!("/agents/{}/chat", agent["agent_id"].as_str().unwrap());
        let asked = model.asked();
        let request = client.post(format!("{}{path}", server.url)).json(&json!({"message": "Hello"}));
        let mut response = request.send().await.unwrap();
        let run = response.headers()["location"].to_str().unwrap().to_owned();
        let mut received = Vec::new();
        received.extend(response.chunk().await.unwrap().unwrap());
        model.asked_times(asked + 1).await;
        model.allow(1);
        model.asked_times(asked + 2).await;
        if politely {
            ask_to_stop(&server);
            // The follower's answer ends, and does not hang.
            while let Ok(Some(chunk)) = response.chunk().await {
                received.extend(chunk);
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        drop(server);
        let last = events(std::str::from_utf8(&received).unwrap()).last().unwrap().id;
        let server = start();
        model.allow(10);
        let began = Instant::now();
        let rest = client.get(format!("{}{run}/events", server.url)).header("last-event-id", last);
        let rest = events(send(rest).await.body.as_str().unwrap());
        assert_eq!(rest.first().unwrap().id, last + 1);
        assert_eq!(rest.last().unwrap().name, "run.completed", "{rest:?}");
        assert!(began.elapsed() < BEFORE_A_LEASE_ENDS, "{:?}", began.elapsed());
        let view = send(client.get(format!("{}{run}", server.url))).await.expect(200);
        assert_eq!(view["message"], "There is nothing saved yet, and nothing is planned.");
        let whole = send(client.get(format!("{}{run}/events?after=0", server.url))).await;
        let valid = valid(events(whole.body.as_str().unwrap()));
        let tools: Vec<&str> = valid
            .iter()
            .filter(|event| event.name == "tool.result")
            .map(|event| event.data["tool"].as_str().unwrap())
            .collect();
        assert_eq!(tools, ["query_assets", "query_actions"]);
    }
}

/// A check fails closed: an output that was not found good is never a success.
#[tokio::test]
async fn an_output_that_was_not_found_good_is_not_a_success() {
    fn saves(messages: &[Value]) -> Says {
        match messages.last().map(|message| message["role"] == "tool") {
            Some(true) => Says::Text("Done.".into()),
            _ => Says::Call("save_output", json!({"title": "Report", "content": "Oil costs 7."})),
        }
    }
    let bad = r#"{"score": 30, "meets": false, "missing": ["the source"]}"#;
    let model = ScriptedModel::start(saves).await;
    let stage = Stage::with(model.config("scripted")).await;
    for (verdicts, state, reason, saved) in [
        (vec!["Looks fine."], "succeeded", None, 1),
        (vec!["Looks fine.", "I said that it looks fine."], "failed", Some("no readable verdict"), 1),
        (vec![bad, bad], "succeeded", None, 3),
        (vec![bad, bad, bad], "failed", Some("does not meet what was expected: the source"), 3),
    ] {
        model.finds(verdicts.iter().copied());
        let id = stage.approved(json!({})).await;
        stage.h.post(&format!("/actions/{id}/run"), json!({})).await.expect(202);
        stage.executors.work().await;
        assert_eq!(model.verdicts_left(), 0);
        let runs = stage.h.get(&format!("/actions/{id}/runs")).await.expect(200);
        let run = &runs["data"][0];
        assert_eq!((&run["state"], &run["attempts"]), (&json!(state), &json!(1)), "{verdicts:?}: {run:#}");
        match reason {
            Some(reason) => assert!(run["reason"].as_str().unwrap().contains(reason), "{run:#}"),
            None => assert_eq!((run.get("reason"), &run["score"]), (None, &json!(90)), "{run:#}"),
        }
        // The saved asset is kept, with one version per try.
        let outputs = format!("/actions/{id}/runs/{}/outputs", run["run_id"].as_str().unwrap());
        let outputs = stage.h.get(&outputs).await.expect(200);
        let asset = outputs["data"][0]["asset_id"].as_str().unwrap();
        let versions = stage.h.get(&format!("/assets/{asset}/versions")).await.expect(200);
        assert!(versions["data"].as_array().unwrap().len() <= saved, "{versions:#}");
    }
}

/// If there is no budget left for the check, the work is kept. The run succeeds and says that it was not checked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_budget_for_the_check_an_output_is_not_checked() {
    fn saves(messages: &[Value]) -> Says {
        match messages.last().map(|message| message["role"] == "tool") {
            Some(true) => Says::Text("Done.".into()),
            _ => Says::Call("save_output", json!({"title": "Report", "content": "Oil costs 7."})),
        }
    }
    for (spent_by, why) in [("this run", "the run's ceiling"), ("others", "today")] {
        let model = ScriptedModel::held(saves).await;
        let stage = Stage::with(model.config("gpt-5.1")).await;
        let cx = &stage.h.platform.cx;
        let id = stage.approved(json!({})).await;
        stage.h.post(&format!("/actions/{id}/run"), json!({})).await.expect(202);
        let spend = async {
            model.allow(1);
            // The final text is being written. The check comes after it.
            model.asked_times(2).await;
            if spent_by == "this run" {
                model.costs(1_000_000);
            } else {
                let day = cx.config.budget.day_micros;
                let committed =
                    cx.store.spend(&stage.owner, stage.clock.now()).await.unwrap().committed_micros;
                let (now, rest) = (stage.clock.now(), day - committed);
                assert!(tests::made::reserve(cx, &stage.owner, now, rest, day).await);
                // The reply is even longer than reserved, so nothing of the call's own reservation is returned.
                let sent = model.sent().pop().unwrap();
                let longest = sent.get("max_completion_tokens").or(sent.get("max_tokens"));
                model.costs(longest.unwrap().as_u64().unwrap() as usize + 1_000);
            }
            model.allow(1);
        };
        tokio::join!(stage.executors.work(), spend);
        let runs = stage.h.get(&format!("/actions/{id}/runs")).await.expect(200);
        let run = &runs["data"][0];
        assert_eq!(
            (&run["state"], &run["reason_code"]),
            (&json!("succeeded"), &json!("not_checked")),
            "{run:#}"
        );
        let reason = run["reason"].as_str().unwrap();
        assert!(reason.contains("saved but not checked") && reason.contains(why), "{reason}");
        assert_eq!((run.get("score"), model.asked()), (None, 2), "{run:#}");
        let outputs = format!("/actions/{id}/runs/{}/outputs", run["run_id"].as_str().unwrap());
        let outputs = stage.h.get(&outputs).await.expect(200);
        assert_eq!(outputs["data"].as_array().unwrap().len(), 1, "{outputs:#}");
    }
}

/// If the table does not answer for a moment, neither the turn nor the answer to its follower ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_and_its_follower_survive_an_outage_of_the_table() {
    use lamplighter_local::engines::faults::{FaultConfig, FaultRates};
    let model = ScriptedModel::held(|_| Says::Text("Yes.".into())).await;
    let mut config = PlatformConfig::in_memory();
    config.models = model.config("scripted");
    let slow_by = Duration::from_millis(1);
    config.faults = Some(FaultConfig { seed: 7, rates: FaultRates::default(), slow_by });
    let h = Harness::with(config).await;
    let agent = h.agent().await;
    let request = h.request(Method::POST, &format!("/agents/{agent}/chat"));
    let response = request.json(&json!({"message": "Hello"})).send().await.unwrap();
    model.asked_times(1).await;
    let faults = h.platform.engines().faults().unwrap();
    faults.set_rates(FaultRates { throttled: 1.0, slow_down: 1.0, ..FaultRates::default() });
    tokio::time::sleep(Duration::from_secs(5)).await;
    faults.set_rates(FaultRates::default());
    model.allow(1);
    let seen = events(&response.text().await.unwrap());
    assert_eq!(seen.last().unwrap().name, "run.completed", "{seen:?}");
}

/// Scheduled runs also continue at once when the server comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_an_action_continues_after_a_restart_of_the_server() {
    fn saves(messages: &[Value]) -> Says {
        match messages.last().map(|message| message["role"] == "tool") {
            Some(true) => Says::Text("Done.".into()),
            _ => Says::Call("save_output", json!({"title": "Report", "content": "Oil costs 7."})),
        }
    }
    let model = ScriptedModel::held(saves).await;
    let client = tests::client();
    for politely in [false, true] {
        let data = tempfile::TempDir::new().unwrap();
        let start = || server_with(&model, data.path());
        let server = start();
        let url = server.url.clone();
        let post = |path: String, body: Value| send(client.post(format!("{url}{path}")).json(&body));
        let agent = post("/agents".into(), json!({"name": "Watch", "goal": "An agent"})).await.expect(201);
        let action = json!({"title": "Report", "description": "d", "priority": "low",
            "task_config": {"instructions": "Write", "expected_output": "A report"}});
        let path = format!("/agents/{}/actions", agent["agent_id"].as_str().unwrap());
        let action = post(path, action).await.expect(201);
        let path = format!("/actions/{}", action["action_id"].as_str().unwrap());
        let hash = json!({"approval_hash": action["approval_hash"]});
        post(format!("{path}/approve"), hash).await.expect(200);
        let asked = model.asked();
        post(format!("{path}/run"), json!({})).await.expect(202);
        model.asked_times(asked + 1).await;
        model.allow(1);
        model.asked_times(asked + 2).await;
        if politely {
            ask_to_stop(&server);
            tokio::time::sleep(Duration::from_millis(800)).await;
        }
        drop(server);
        let server = start();
        model.allow(10);
        let began = Instant::now();
        loop {
            let runs = send(client.get(format!("{}{path}/runs", server.url))).await.expect(200);
            if runs["data"][0]["state"] == "succeeded" {
                break;
            }
            assert!(began.elapsed() < BEFORE_A_LEASE_ENDS, "{runs:#}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let run = send(client.get(format!("{}{path}/runs", server.url))).await.expect(200);
        let outputs = format!("{path}/runs/{}/outputs", run["data"][0]["run_id"].as_str().unwrap());
        let outputs = send(client.get(format!("{}{outputs}", server.url))).await.expect(200);
        assert_eq!(outputs["data"].as_array().unwrap().len(), 1, "{outputs:#}");
        let asset = outputs["data"][0]["asset_id"].as_str().unwrap();
        let versions = send(client.get(format!("{}/assets/{asset}/versions", server.url))).await.expect(200);
        assert_eq!(versions["data"].as_array().unwrap().len(), 1, "it was saved once: {versions:#}");
    }
}
