//! One owner's rehearsals leave executors for the other owners.

use domain::ids::RunId;
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use shared::flows::executor::route;
use shared::store::DueItem;
use tests::model::{Says, ScriptedModel};
use tests::process::Process;
use tests::stage::Stage;

fn writes(_: &[Value]) -> Says {
    Says::Text("A report.".into())
}

async fn rehearsal(stage: &Stage) -> RunId {
    let task = json!({"instructions": "Write a report", "expected_output": "A report"});
    let body = json!({"title": "Report", "task_config": task});
    let action = stage.h.post(&format!("/agents/{}/actions", stage.agent), body).await.expect(201);
    let path = format!("/actions/{}/rehearse", action["action_id"].as_str().unwrap());
    let begun = stage.h.post(&path, json!({})).await.expect(202);
    begun["run_id"].as_str().unwrap().parse().unwrap()
}

/// Of four executors, three may work on one owner's runs, and one more on what a person has begun.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rehearsals_of_one_owner_take_only_the_owner_s_places() {
    let model = ScriptedModel::held(writes).await;
    let config =
        PlatformConfig { models: model.config("gpt-5.1"), executors: 4, ..PlatformConfig::in_memory() };
    let stage = Stage::of(config).await;
    let mut processes = Vec::new();
    let mut last = None;
    for n in 0..5 {
        let run = rehearsal(&stage).await;
        let process = Process::start(&stage);
        let (cx, item) = (process.cx.clone(), DueItem::run(&stage.owner, run));
        let deadline = cx.clock.now() + SignedDuration::from_mins(15);
        let works = process.runtime.spawn(async move { route::process(&cx, &item, deadline).await });
        if n < 4 {
            model.asked_times(n + 1).await;
        } else {
            works.await.unwrap().unwrap();
            last = Some(run);
        }
        processes.push(process);
    }
    assert_eq!(model.asked(), 4, "the fifth executor is left for other owners");
    let path = format!("/runs/{}", last.unwrap());
    assert_eq!(stage.h.get(&path).await.expect(200)["state"], "running");
    // When the others have ended, a sweep finds it.
    for process in processes {
        process.kill();
    }
    model.allow(100);
    stage.happens_at(30).await;
    assert_eq!(stage.h.get(&path).await.expect(200)["state"], "completed");
}
