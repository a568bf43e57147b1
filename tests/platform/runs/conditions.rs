//! Conditions of actions: what a program checks of the outputs, what a run is told, and how it ends.

use domain::actions::ActionState;
use domain::agent_loop::Purpose;
use domain::ids::{ActionId, RunId};
use jiff::SignedDuration;
use models::ModelsConfig;
use serde_json::{Value, json};
use shared::flows::actions;
use shared::flows::executor::route;
use shared::store::{DueItem, Store};
use tests::model::{Says, ScriptedModel};
use tests::process::Process;
use tests::stage::{Stage, noon};

const GOOD: &str = "# Summary\nOn 21 November 2026 lamp oil costs 7, see https://good.com/prices.";
const BAD: &str = "Lamp oil costs 7, see https://good.com@evil.com/prices.";

fn saves(messages: &[Value], content: &str) -> Says {
    match messages.last().unwrap()["role"].as_str() {
        Some("tool") => Says::Text("It is done.".into()),
        _ => Says::Call("save_output", json!({"title": "Report", "content": content})),
    }
}

fn was_told(messages: &[Value]) -> bool {
    messages.iter().any(|message| message.to_string().contains("A program checked the conditions"))
}

fn good(messages: &[Value]) -> Says {
    saves(messages, GOOD)
}

fn good_when_told(messages: &[Value]) -> Says {
    saves(messages, if was_told(messages) { GOOD } else { BAD })
}

fn bad(messages: &[Value]) -> Says {
    saves(messages, BAD)
}

fn conditions() -> Value {
    json!({"conditions": [
        {"kind": "min_words", "words": 5},
        {"kind": "names_today"},
        {"kind": "headings", "headings": ["Summary"]},
        {"kind": "links_only_to", "hosts": ["good.com"]},
    ]})
}

async fn starts(stage: &Stage, id: ActionId) -> RunId {
    let started = stage.h.post(&format!("/actions/{id}/run"), json!({})).await.expect(202);
    started["run_id"].as_str().or(started["live_run"].as_str()).unwrap().parse().unwrap()
}

/// What the stored steps of a run were for.
async fn purposes(stage: &Stage, run: RunId) -> Vec<Purpose> {
    let parts = stage.h.platform.cx.store.step_parts(&stage.owner, run).await.unwrap();
    parts.iter().filter(|part| part.call.is_none()).map(|part| part.purpose).collect()
}

/// How many versions of its one output a run has saved.
async fn versions(stage: &Stage, id: ActionId, run: RunId) -> usize {
    let outputs = stage.h.get(&format!("/actions/{id}/runs/{run}/outputs")).await.expect(200);
    assert_eq!(outputs["data"].as_array().unwrap().len(), 1, "{outputs:#}");
    let asset = outputs["data"][0]["asset_id"].as_str().unwrap();
    let versions = stage.h.get(&format!("/assets/{asset}/versions")).await.expect(200);
    versions["data"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_run_meets_its_conditions_or_is_told_once_and_then_fails() {
    use Purpose::{Check, Conditions, Work};
    let once = [Work, Work, Conditions];
    let met = [&once[..], &[Check]].concat();
    let revised = [&once[..], &once, &[Check]].concat();
    let failed = [&once[..], &once].concat();
    for (script, state, steps, saved) in [
        (good as tests::model::Script, "succeeded", met, 1),
        (good_when_told, "succeeded", revised, 2),
        (bad, "failed", failed, 2),
    ] {
        let model = ScriptedModel::start(script).await;
        let stage = Stage::with(model.config("scripted")).await;
        let id = stage.approved(conditions()).await;
        let run = starts(&stage, id).await;
        // The model finds everything good. Only a program looks at the conditions.
        model.finds([r#"{"score": 77, "meets": true, "missing": []}"#]);
        stage.executors.work().await;
        let runs = stage.h.get(&format!("/actions/{id}/runs")).await.expect(200);
        let ended = &runs["data"][0];
        assert_eq!(ended["state"], state, "{ended:#}");
        assert_eq!(purposes(&stage, run).await, steps);
        assert_eq!(versions(&stage, id, run).await, saved, "the outputs stay saved");
        let sent = model.sent();
        let first = sent[0]["messages"].to_string();
        assert!(first.contains("# Conditions") && first.contains("headings: \\\"Summary\\\""), "{first}");
        let view = stage.h.get(&format!("/runs/{run}")).await.expect(200);
        if state == "succeeded" {
            assert_eq!((model.verdicts_left(), &ended["score"]), (0, &json!(77)));
            assert_eq!(view.get("error"), None);
        } else {
            assert_eq!((model.verdicts_left(), ended.get("score")), (1, None));
            assert_eq!(view["error"]["code"], "condition_not_met", "{view:#}");
            let detail = view["error"]["detail"].as_str().unwrap();
            for part in [
                "no output names the date 2026-11-21",
                "no output has all of the headings \"Summary\"",
                "links may lead only to good.com",
                "`https://good.com@evil.com`, which has a user name",
            ] {
                assert!(detail.contains(part), "{detail}");
            }
            assert!(!detail.contains("words"), "{detail}");
            assert_eq!(ended["reason"], detail);
        }
        if steps.len() > 4 {
            let told = sent[2]["messages"].to_string();
            assert!(told.contains("no output names the date 2026-11-21"), "{told}");
        }
    }
}

/// The process is killed whenever it asks the model, and another one goes on on the next day. Each check of the conditions is
/// made for the day on which the run began, and is stored once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_killed_at_any_step_decides_the_same_on_the_next_day() {
    use Purpose::{Check, Conditions, Work};
    for (script, state, checked) in
        [(good_when_told as tests::model::Script, "succeeded", 1), (bad, "failed", 0)]
    {
        for kill_at in 1..=4 {
            let model = ScriptedModel::held(script).await;
            let stage = Stage::with(model.config("scripted")).await;
            let id = stage.approved(conditions()).await;
            let run = starts(&stage, id).await;
            model.allow(kill_at - 1);
            let process = Process::start(&stage);
            let (cx, item) = (process.cx.clone(), DueItem::action(&stage.owner, id));
            let deadline = cx.clock.now() + SignedDuration::from_mins(15);
            process.runtime.spawn(async move { route::process(&cx, &item, deadline).await });
            model.asked_times(kill_at).await;
            process.kill();
            stage.clock.set(noon() + SignedDuration::from_hours(13));
            model.allow(20);
            for _ in 0..5 {
                stage.sweep().await;
                stage.executors.work().await;
                if stage.occurrences(id).await[0].state.is_final() {
                    break;
                }
                stage.clock.set(stage.clock.now() + SignedDuration::from_mins(20));
            }
            let [occurrence] = stage.occurrences(id).await.try_into().unwrap();
            assert_eq!(occurrence.state.as_str(), state, "killed at {kill_at}: {occurrence:?}");
            let steps =
                [&[Work, Work, Conditions, Work, Work, Conditions][..], &vec![Check; checked]].concat();
            assert_eq!(purposes(&stage, run).await, steps, "killed at {kill_at}");
            assert_eq!(versions(&stage, id, run).await, 2, "killed at {kill_at}");
        }
    }
}

#[tokio::test]
async fn an_approval_binds_the_conditions() {
    let model = ScriptedModel::start(good).await;
    let stage = Stage::with(model.config("scripted")).await;
    let hourly = json!({"schedule": {"every": "1h"}, "conditions": conditions()["conditions"]});
    let (edited, drifted) = (stage.approved(hourly.clone()).await, stage.approved(hourly).await);
    let path = format!("/actions/{edited}");
    let before = stage.h.get(&path).await.expect(200);
    assert_eq!(before["conditions"], conditions()["conditions"]);

    // The same list changes nothing. Another one withdraws the approval.
    stage.h.patch(&path, conditions()).await.expect(200);
    assert_eq!(stage.action(edited).await.state, ActionState::Scheduled);
    let fewer = stage.h.patch(&path, json!({"conditions": [{"kind": "names_today"}]})).await.expect(200);
    assert_eq!(
        (&fewer["state"], fewer.get("approval")),
        (&json!("defined"), Some(&Value::Null)),
        "{fewer:#}"
    );
    assert_ne!(fewer["approval_hash"], before["approval_hash"]);
    let old = json!({"approval_hash": before["approval_hash"]});
    stage.h.post(&format!("{path}/approve"), old).await.refused(409, "approval_mismatch");
    stage.h.post(&format!("{path}/run"), json!({})).await.refused(409, "not_approved");
    let none = stage.h.patch(&path, json!({"conditions": []})).await.expect(200);
    assert_eq!(none.get("conditions"), None);

    // A change that the approval does not see is found before the run.
    let cx = &stage.h.platform.cx;
    let read = actions::load(cx, &stage.owner, drifted).await.unwrap();
    let mut changed = read.value.clone();
    changed.conditions.clear();
    changed.version += 1;
    let write = Store::replace_action(&stage.owner, &changed, read.version, changed.wake_at(None)).unwrap();
    assert!(cx.store.write_all(vec![write]).await.unwrap().done());
    let compared = stage.h.get(&format!("/actions/{drifted}/approval")).await.expect(200);
    assert_eq!(compared["changes"][0]["field"], "conditions", "{compared:#}");
    assert_eq!(compared["changes"][0]["current"], json!([]));
    stage.happens_at(60).await;
    assert_eq!(stage.became(drifted).await, ["60 held drifted"]);
    assert_eq!(model.asked(), 0);
}

#[tokio::test]
async fn bad_conditions_are_refused_by_field() {
    let stage = Stage::with(ModelsConfig::default()).await;
    let id = stage.approved(json!({})).await;
    for (conditions, field) in [
        (
            json!([{"kind": "names_today"}, {"kind": "names_today"}, {"kind": "min_words", "words": 0}]),
            "conditions[2].words",
        ),
        (json!([{"kind": "min_words", "words": "x"}]), "conditions[0].words"),
        (json!([{"kind": "min_words"}]), "conditions[0].words"),
        (json!([{"kind": "best"}]), "conditions[0].kind"),
        (json!([{"kind": "names_today", "hosts": ["a.com"]}]), "conditions[0].hosts"),
        (json!([{"kind": "names_today", "zone": "UTC"}]), "conditions[0].zone"),
        (
            json!([{"kind": "json", "schema": {"items": {"pattern": "x"}}}]),
            "conditions[0].schema.items.pattern",
        ),
        (json!([{"kind": "links_only_to", "hosts": ["*.a.com"]}]), "conditions[0].hosts[0]"),
        (json!(vec![json!({"kind": "names_today"}); 11]), "conditions"),
    ] {
        let task = json!({"instructions": "Do", "expected_output": "A page"});
        let body = json!({"title": "Report", "task_config": task, "conditions": conditions});
        let path = format!("/agents/{}/actions", stage.agent);
        let refused = stage.h.post(&path, body).await.refused(400, "invalid_input");
        assert_eq!(refused["errors"][0]["field"], field, "{refused:#}");
        let body = json!({"conditions": conditions});
        let refused = stage.h.patch(&format!("/actions/{id}"), body).await.refused(400, "invalid_input");
        assert_eq!(refused["errors"][0]["field"], field, "{refused:#}");
    }
}
