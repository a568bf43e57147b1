//! The one switch: after a stop nothing begins in any process, and a start says what was missed.

use std::time::{Duration, Instant};

use domain::ids::{ActionId, RunId};
use futures::future::join_all;
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::AuthConfig;
use shared::flows::executor::route;
use shared::flows::turn::Topic;
use shared::store::DueItem;
use tests::events::events;
use tests::model::{Says, ScriptedModel};
use tests::process::{Process, followed};
use tests::stage::Stage;
use tests::{Harness, send};

/// Looks something up first, so that a second call of the model would follow.
fn works(messages: &[Value]) -> Says {
    let since = messages.iter().rposition(|message| message["role"] == "user").unwrap_or(0);
    match messages[since..].iter().filter(|message| message["role"] == "tool").count() {
        0 => Says::Call("query_assets", json!({"limit": 3})),
        _ => Says::Text("There is nothing yet.".into()),
    }
}

fn says(_: &[Value]) -> Says {
    Says::Text("A report about lamp oil.".into())
}

/// An executor in a process of its own that works on what is due of an action.
fn executor(stage: &Stage, action: ActionId) -> Process {
    let process = Process::start(stage);
    let (cx, item) = (process.cx.clone(), DueItem::action(&stage.owner, action));
    process.runtime.spawn(async move {
        let deadline = cx.clock.now() + SignedDuration::from_mins(15);
        route::process(&cx, &item, deadline).await
    });
    process
}

async fn stop(h: &Harness) -> Value {
    h.post("/account/stop", json!({})).await.expect(200)
}

async fn is_stopped(h: &Harness, run: &str) {
    let view = h.get(&format!("/runs/{run}")).await.expect(200);
    assert_eq!(
        (&view["state"], &view["error"]["code"]),
        (&json!("cancelled"), &json!("stopped")),
        "{view:#}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_ends_what_is_under_way_and_nothing_begins_afterwards() {
    let model = ScriptedModel::held(works).await;
    let stage = Stage::with(model.config("gpt-5.1")).await;
    let h = &stage.h;
    let agent = Topic::Agent(stage.agent.parse().unwrap(), None);
    // A turn of this process, turns of two others of which one dies, a run of an action, and one that is queued.
    let path = format!("/agents/{}/chat", stage.agent);
    let request = h.request(Method::POST, &path).header("accept", "text/event-stream");
    let streamed = request.json(&json!({"message": "Hello"})).send().await.unwrap();
    let location = streamed.headers()["location"].to_str().unwrap().to_owned();
    let (alive, dead) = (Process::start(&stage), Process::start(&stage));
    let mut runs = vec![location.rsplit('/').next().unwrap().to_owned()];
    runs.push(alive.begins(&stage, agent, "Hello").await.to_string());
    runs.push(dead.begins(&stage, Topic::Setup(None), "Hello").await.to_string());
    let (at_work, queued) = (stage.approved(json!({})).await, stage.approved(json!({})).await);
    for action in [at_work, queued] {
        let started = h.post(&format!("/actions/{action}/run"), json!({})).await.expect(202);
        runs.push(started["run_id"].as_str().unwrap().to_owned());
    }
    let working = executor(&stage, at_work);
    model.asked_times(4).await;
    dead.kill();

    let began = Instant::now();
    let stopped = stop(h).await;
    let took = began.elapsed();
    // A stop that waited for the model would wait for ever.
    println!("a stop of five runs took {took:?}");
    assert_eq!((&stopped["stopped_at"], &stopped["runs_ended"]), (&json!(stage.clock.now()), &json!(5)));
    for run in &runs {
        is_stopped(h, run).await;
    }
    let told = events(&streamed.text().await.unwrap());
    assert_eq!(told.last().unwrap().name, "run.cancelled");
    for (action, run) in [(at_work, &runs[3]), (queued, &runs[4])] {
        let occurrence = h.get(&format!("/actions/{action}/runs/{run}")).await.expect(200);
        let is = (&occurrence["state"], &occurrence["reason_code"]);
        assert_eq!(is, (&json!("cancelled"), &json!("stopped")), "{occurrence:#}");
    }

    // The model would answer now, and the executors are awake.
    model.allow(100);
    stage.executors.work().await;
    let (other, item) = (executor(&stage, at_work), DueItem::run(&stage.owner, runs[2].parse().unwrap()));
    let deadline = stage.clock.now() + SignedDuration::from_mins(15);
    route::process(&other.cx, &item, deadline).await.unwrap();
    let refused = h.post(&path, json!({"message": "Hello"})).await.refused(409, "account_stopped");
    assert!(refused["detail"].as_str().unwrap().contains("lamplighter start"), "{refused:#}");
    h.post("/setup/chat", json!({"message": "Hello"})).await.refused(409, "account_stopped");
    h.post(&format!("/actions/{at_work}/run"), json!({})).await.refused(409, "account_stopped");
    let completion = json!({"model": stage.agent, "messages": [{"role": "user", "content": "Hello"}]});
    let refused = h.post("/v1/chat/completions", completion).await;
    assert_eq!((refused.status, &refused.body["error"]["code"]), (409, &json!("account_stopped")));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(model.asked(), 4);
    assert_eq!(h.get("/account").await.expect(200)["stopped_at"], stopped["stopped_at"]);
    let spend = h.platform.cx.store.spend(&stage.owner, stage.clock.now()).await.unwrap();
    assert_eq!(spend.committed_micros, spend.spent_micros);

    // A second stop changes nothing; neither does a second start.
    stage.at(1);
    let again = stop(h).await;
    assert_eq!((&again["stopped_at"], &again["runs_ended"]), (&stopped["stopped_at"], &json!(0)));
    let started = h.post("/account/start", json!({})).await.expect(200);
    let is = json!({"stopped_at": stopped["stopped_at"], "data": [], "has_more": false});
    assert_eq!(started, is);
    let started = h.post("/account/start", json!({"missed": "skip"})).await.expect(200);
    assert_eq!(started, json!({"data": [], "has_more": false}));
    assert_eq!(h.get("/account").await.expect(200).get("stopped_at"), None);
    assert_eq!(h.post(&path, json!({"message": "Hello"})).await.expect(200)["state"], "completed");
    for process in [alive, working, other] {
        process.kill();
    }
}

/// Each stop meets turns that begin at the same moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_runs_end_and_those_that_begin_meanwhile() {
    let model = ScriptedModel::held(works).await;
    let stage = Stage::with(model.config("gpt-5.1")).await;
    let process = Process::start(&stage);
    let begin = || process.begins(&stage, Topic::Setup(None), "Hello");
    let runs: Vec<RunId> = join_all((0..50).map(|_| begin())).await;
    model.asked_times(50).await;
    model.allow(1_000);
    let late = (0..20).map(async |n| {
        tokio::time::sleep(Duration::from_millis(10 * n)).await;
        let sent = stage.h.post("/setup/chat", json!({"message": "Hello"})).await;
        assert!([200, 409].contains(&sent.status), "{sent:?}");
    });
    let (stopped, _) = futures::join!(
        async {
            let began = Instant::now();
            stop(&stage.h).await;
            (began.elapsed(), Instant::now())
        },
        join_all(late)
    );
    println!("a stop of 50 turns took {:?}", stopped.0);
    tokio::time::sleep(Duration::from_secs(2).saturating_sub(stopped.1.elapsed())).await;
    let asked = model.asked();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(model.asked(), asked);
    for run in runs {
        let names: Vec<String> = followed(&stage.h, run).await.into_iter().map(|event| event.name).collect();
        let last = names.last().unwrap();
        assert!(["run.cancelled", "run.completed"].contains(&last.as_str()), "{names:?}");
    }
    process.kill();
}

/// What is asked about a due time this many minutes after noon.
async fn why(stage: &Stage, action: ActionId, hour: u32) -> (String, String) {
    let why = h_why(stage, action, &format!("?at=2026-11-21T{hour}:00:00Z")).await;
    (why["code"].as_str().unwrap().to_owned(), why["sentence"].as_str().unwrap().to_owned())
}

async fn h_why(stage: &Stage, action: ActionId, query: &str) -> Value {
    stage.h.get(&format!("/actions/{action}/why{query}")).await.expect(200)
}

const HOURLY: &str = "0 * * * *";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn due_times_are_kept_while_the_account_is_stopped() {
    for answer in ["skip", "run_newest"] {
        let model = ScriptedModel::start(says).await;
        let stage = Stage::with(model.config("gpt-5.1")).await;
        let h = &stage.h;
        let action = stage.approved(json!({"schedule": {"cron": HOURLY, "catch_up": "none"}})).await;
        let paused = stage.approved(json!({"schedule": {"cron": HOURLY}})).await;
        h.post(&format!("/actions/{paused}/pause"), json!({})).await.expect(200);
        stop(h).await;
        // A restarted process finds the account stopped, too.
        for minutes in [60, 63, 120, 180, 185] {
            stage.happens_at(minutes).await;
            executor(&stage, action).kill();
        }
        assert_eq!((stage.became(action).await, model.asked()), (Vec::new(), 0));
        let stopped = "at 2026-11-21 12:00. Start it with `POST /account/start`.";
        let sentence =
            |hour| format!("Nothing runs at 2026-11-21 {hour}:00 (UTC): the account was stopped {stopped}");
        for hour in [13, 15, 20] {
            assert_eq!(why(&stage, action, hour).await, ("stopped".to_owned(), sentence(hour)));
        }
        assert_eq!(h_why(&stage, action, "").await["sentence"], sentence(13));

        let list = json!({
            "data": [{
                "action_id": action, "title": "Report", "due_times": 3,
                "first_due_at": "2026-11-21T13:00:00Z", "last_due_at": "2026-11-21T15:00:00Z",
            }],
            "has_more": false,
        });
        let refused = h.post("/account/start", json!({})).await.refused(409, "missed_runs");
        assert_eq!(refused["current"], list);
        h.post("/account/start", json!({"missed": "all"})).await.refused(400, "invalid_input");
        assert!(h.get("/account").await.expect(200)["stopped_at"].is_string());
        assert_eq!(stage.became(action).await, Vec::<String>::new());

        let started = h.post("/account/start", json!({"missed": answer})).await.expect(200);
        assert_eq!((&started["data"], &started["has_more"]), (&list["data"], &json!(false)));
        stage.executors.work().await;
        let became = match answer {
            "skip" => vec!["60 skipped stopped"],
            _ => vec!["60 skipped stopped", "180 succeeded"],
        };
        assert_eq!(stage.became(action).await, became, "{answer}");
        let record = &h.get(&format!("/actions/{action}/runs")).await.expect(200)["data"][became.len() - 1];
        let (times, last) = if answer == "skip" { (3, "15:00") } else { (2, "14:00") };
        assert_eq!(record["due_times"], times);
        assert_eq!(record["last_due_at"], format!("2026-11-21T{last}:00Z"));
        let (code, sentence) = why(&stage, action, 14).await;
        assert_eq!(
            (code.as_str(), sentence),
            (
                "skipped",
                format!(
                    "The run that was due at 2026-11-21 14:00 (UTC) was skipped: the account was stopped at 2026-11-21 12:00; \
                     this record is for {times} due times, the last one at 2026-11-21 {last}."
                )
            )
        );
        // It goes on as before.
        stage.happens_at(240).await;
        let newest = stage.became(action).await.pop().unwrap();
        assert!(newest.starts_with("240 succeeded"), "{answer}: {newest}");
        assert_eq!(why(&stage, action, 14).await.0, "skipped");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_schedule_decides_as_after_an_outage() {
    let mut results = Vec::new();
    for stops in [true, false] {
        let model = ScriptedModel::start(says).await;
        let stage = Stage::with(model.config("gpt-5.1")).await;
        let mut actions = Vec::new();
        for catch_up in ["none", "latest", "all"] {
            actions.push(stage.approved(json!({"schedule": {"cron": HOURLY, "catch_up": catch_up}})).await);
        }
        if stops {
            stop(&stage.h).await;
            for minutes in [59, 60, 120, 180] {
                stage.happens_at(minutes).await;
            }
        }
        stage.at(190);
        if stops {
            stage.h.post("/account/start", json!({"missed": "each_schedule"})).await.expect(200);
            stage.executors.work().await;
        } else {
            stage.happens_at(190).await;
        }
        let mut became = Vec::new();
        for action in actions {
            became.push(stage.became(action).await);
        }
        results.push(became);
    }
    assert_eq!(results[0], results[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_owner_is_not_affected() {
    let model = ScriptedModel::start(says).await;
    let config = PlatformConfig {
        auth: AuthConfig::On(None),
        models: model.config("gpt-5.1"),
        ..PlatformConfig::in_memory()
    };
    let h = Harness::with(config).await;
    let (one, other) = (h.key_of("one").await, h.key_of("other").await);
    let call = async |key: &str, path: &str, body: Value| {
        send(h.request(Method::POST, path).bearer_auth(key).json(&body)).await
    };
    call(&one, "/account/stop", json!({})).await.expect(200);
    let hello = json!({"message": "Hello"});
    call(&one, "/setup/chat", hello.clone()).await.refused(409, "account_stopped");
    call(&other, "/setup/chat", hello.clone()).await.expect(200);
    call(&one, "/account/start", json!({})).await.expect(200);
    call(&one, "/setup/chat", hello).await.expect(200);
}
