//! Occurrences with a clock that the test sets: every due time gets one result, even if executors die.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::actions::{ActionState, OccurrenceState};
use domain::ids::{AssetId, RunId};
use domain::models::Role;
use jiff::{SignedDuration, Timestamp};
use models::ModelsConfig;
use serde_json::{Value, json};
use shared::flows::actions;
use shared::flows::executor::sweep::sweep;
use shared::store::Store;
use shared::store::table::Order;
use tests::executors::LEASE;
use tests::model::{Says, ScriptedModel};
use tests::stage::{Stage, noon};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_due_time_ends_once_though_executors_are_killed() {
    const ACTIONS: usize = 60;
    let stage = Stage::with(ModelsConfig::default()).await;
    let due = noon() + SignedDuration::from_mins(1);
    let mut ids = Vec::new();
    for _ in 0..ACTIONS {
        ids.push(stage.approved(json!({"schedule": {"at": due.to_string()}})).await);
    }
    stage.clock.set(due);
    let mut killed = 0;
    for round in 0.. {
        // An executor has three tries. So that most occurrences end by work, few executors die in later rounds.
        let share = [0.4, 0.3, 0.1].get(round).copied().unwrap_or(0.0);
        stage.executors.trouble(0.1, share);
        tokio::join!(stage.sweep(), stage.sweep());
        killed += stage.executors.work().await.killed;
        let mut at_rest = 0;
        for id in &ids {
            let state = stage.action(*id).await.state;
            at_rest += usize::from(matches!(state, ActionState::Completed | ActionState::Failed));
        }
        if at_rest == ACTIONS {
            break;
        }
        assert!(round < 8, "{at_rest} of {ACTIONS} are at rest");
        stage.clock.set(stage.clock.now() + LEASE);
    }
    assert!(killed > 0);

    let mut possible = BTreeSet::new();
    let mut expired = 0;
    for id in ids {
        let [occurrence] = stage.occurrences(id).await.try_into().expect("one occurrence");
        assert_eq!((occurrence.due_at, occurrence.run_id), (due, RunId::for_occurrence(id, due)));
        let run = stage.h.platform.cx.store.run(&stage.owner, occurrence.run_id).await.unwrap().unwrap();
        assert!(run.value.state.is_final(), "{:?}", run.value);
        match occurrence.state {
            OccurrenceState::Succeeded => assert_eq!(stage.outputs(occurrence.run_id).await, 1),
            OccurrenceState::Failed => {
                assert_eq!(occurrence.attempts - occurrence.attempts_before_step, 3, "{occurrence:?}");
                expired += 1;
            }
            _ => panic!("{occurrence:?}"),
        }
        possible.insert(AssetId::for_output(occurrence.run_id, 0));
    }
    // Nothing was saved twice with another id, and everything that finished has its output.
    let assets = stage.assets().await;
    assert!(assets.is_subset(&possible) && assets.len() >= ACTIONS - expired, "{} assets", assets.len());
    println!("{ACTIONS} actions, {killed} executors killed, {expired} out of tries");
}

/// A model that asks which week, and writes about the week of the answer.
fn asks(messages: &[Value]) -> Says {
    let last = messages.last().unwrap();
    if last["content"].as_str().is_some_and(|content| content.starts_with("saved")) {
        return Says::Text("It is done.".into());
    }
    let contents = messages.iter().filter_map(|message| message["content"].as_str());
    let answer = contents.filter_map(|content| content.split_once("The person answered: ")).next_back();
    match answer {
        None => Says::Call("ask_person", json!({"question": "Which week?"})),
        Some((_, week)) => Says::Call("save_output", json!({"title": "Report", "content": week})),
    }
}

#[tokio::test]
async fn a_run_that_asks_waits_and_later_due_times_are_held() {
    let model = ScriptedModel::start(asks).await;
    let stage = Stage::with(model.config("scripted")).await;
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(60).await;
    assert_eq!(stage.became(id).await, ["60 waiting asked"]);
    stage.happens_at(120).await;
    stage.happens_at(180).await;
    // The due times that are held share one record.
    assert_eq!(stage.became(id).await, ["60 waiting asked", "120 held needs_approval"]);
    let covers = stage.occurrences(id).await[1].covers.unwrap();
    assert_eq!((covers.times, covers.last), (2, noon() + SignedDuration::from_hours(3)));
    assert_eq!((stage.action(id).await.state, model.asked()), (ActionState::NeedsApproval, 1));

    let store = &stage.h.platform.cx.store;
    let messages = store.messages(&stage.owner, id, None, 10, Order::Oldest).await.unwrap().items;
    let cards: Vec<_> =
        messages.iter().map(|(_, m)| (m.value.message.role, m.value.message.text())).collect();
    assert_eq!(cards.len(), 1);
    assert!(cards[0].0 == Role::Assistant && cards[0].1.contains("Which week?"), "{cards:?}");

    stage.h.post(&format!("/actions/{id}/resume"), json!({"message": "Week 47"})).await.expect(200);
    stage.executors.work().await;
    assert_eq!(stage.became(id).await, ["60 succeeded", "120 held needs_approval"]);
    let run = stage.occurrences(id).await[0].run_id;
    let output = &store.run_outputs(&stage.owner, run).await.unwrap()[0];
    let content = stage.h.get(&format!("/assets/{}/content", output.asset_id)).await.expect(200);
    assert_eq!(content, "Week 47");
    // It is back on its schedule.
    let action = stage.action(id).await;
    assert_eq!((action.state, action.live_run), (ActionState::Scheduled, None));
    stage.happens_at(240).await;
    assert_eq!(stage.became(id).await[2], "240 waiting asked");
}

#[tokio::test]
async fn a_run_that_needs_another_grant_waits() {
    fn plans(_: &[Value]) -> Says {
        let task = json!({"instructions": "Look", "expected_output": "A list"});
        let action = json!({"title": "Look", "description": "Look", "priority": "low", "task_config": task});
        Says::Call("generate_actions", json!({"actions": [action]}))
    }
    let model = ScriptedModel::start(plans).await;
    let stage = Stage::with(model.config("scripted")).await;
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(60).await;
    assert_eq!(stage.became(id).await, ["60 waiting outside_grant"]);
    assert!(stage.occurrences(id).await[0].reason.as_deref().unwrap().contains("generate_actions"));
    assert_eq!(stage.action(id).await.state, ActionState::NeedsApproval);
}

#[tokio::test]
async fn changed_content_does_not_run_without_a_new_approval() {
    let model = ScriptedModel::start(writes).await;
    let stage = Stage::with(model.config("scripted")).await;
    let every = json!({"schedule": {"every": "1h"}});
    let (edited, drifted) = (stage.approved(every.clone()).await, stage.approved(every).await);
    // An edit withdraws the approval.
    let edit =
        json!({"task_config": {"instructions": "Write something else", "expected_output": "A report"}});
    stage.h.patch(&format!("/actions/{edited}"), edit).await.expect(200);
    // A change that the approval does not see is found before the run.
    let cx = &stage.h.platform.cx;
    let read = actions::load(cx, &stage.owner, drifted).await.unwrap();
    let mut changed = read.value.clone();
    changed.task_config.instructions = "Write something else".into();
    changed.version += 1;
    let write = Store::replace_action(&stage.owner, &changed, read.version, changed.wake_at(None)).unwrap();
    assert!(cx.store.write_all(vec![write]).await.unwrap().done());

    stage.happens_at(60).await;
    assert_eq!(stage.became(edited).await, [""; 0]);
    assert_eq!(stage.became(drifted).await, ["60 held drifted"]);
    let states = (stage.action(edited).await.state, stage.action(drifted).await.state);
    assert_eq!(states, (ActionState::Defined, ActionState::NeedsApproval));
    assert_eq!((model.asked(), stage.assets().await.len()), (0, 0));
}

fn writes(messages: &[Value]) -> Says {
    match messages.last().unwrap()["role"].as_str() {
        Some("tool") => Says::Text("It is done.".into()),
        _ => Says::Call("save_output", json!({"title": "Report", "content": "Lamp oil is dear."})),
    }
}

#[tokio::test]
async fn overlap_decides_a_due_time_during_a_live_run() {
    let cases = [
        ("skip", ["10 running", "20 skipped overlap"], ["10 succeeded", "20 skipped overlap"]),
        ("queue", ["10 running", "20 due"], ["10 succeeded", "20 succeeded"]),
        ("replace", ["10 cancelled replaced", "20 running"], ["10 cancelled replaced", "20 succeeded"]),
    ];
    for (overlap, meets, ends) in cases {
        let model = ScriptedModel::held(writes).await;
        let stage = Stage::with(model.config("scripted")).await;
        let id = stage.approved(json!({"schedule": {"every": "10m", "overlap": overlap}})).await;
        tokio::join!(stage.happens_at(10), async {
            model.asked_times(1).await;
            // The first run is within its lease. Idle executors handle what is due now.
            stage.at(20);
            stage.sweep().await;
            let mut became = stage.became(id).await;
            loop {
                if became == meets {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
                became = stage.became(id).await;
            }
            assert_eq!(became, meets, "{overlap}");
            model.allow(10);
        });
        assert_eq!(stage.became(id).await, ends, "{overlap}");
        let succeeded = ends.iter().filter(|end| end.ends_with("succeeded")).count();
        assert_eq!(stage.assets().await.len(), succeeded, "{overlap}");
    }
}

#[tokio::test]
async fn an_outage_is_caught_up_as_configured() {
    let superseded = |due: [i64; 5]| due.map(|due| format!("{due} missed superseded")).to_vec();
    let all = [720, 1_440, 2_160, 2_880, 3_600, 4_320];
    let mut latest = superseded([720, 1_440, 2_160, 2_880, 3_600]);
    latest.push("4320 succeeded".to_owned());
    let cases = [
        ("none", all.map(|due| format!("{due} missed catch_up_off")).to_vec()),
        ("latest", latest),
        ("all", all.map(|due| format!("{due} succeeded")).to_vec()),
    ];
    let model = ScriptedModel::start(writes).await;
    let stage = Stage::with(model.config("scripted")).await;
    let mut ids = Vec::new();
    for (catch_up, _) in &cases {
        ids.push(stage.approved(json!({"schedule": {"every": "12h", "catch_up": catch_up}})).await);
    }
    // Three days and an hour.
    stage.happens_at(73 * 60).await;
    for (id, (catch_up, expected)) in ids.into_iter().zip(cases) {
        assert_eq!(stage.became(id).await, expected, "{catch_up}");
        let next = stage.action(id).await.next_due.unwrap();
        assert_eq!(next, noon() + SignedDuration::from_hours(84), "{catch_up}");
    }
    assert_eq!(stage.assets().await.len(), 1 + all.len());
}

#[tokio::test]
async fn a_run_ends_when_its_budget_is_used_up() {
    let model = ScriptedModel::start(writes).await;
    let stage = Stage::with(model.config("gpt-5.1")).await;
    // The first answer costs more than is left for a second.
    model.costs(9_990);
    let at = noon() + SignedDuration::from_mins(60);
    let more = json!({"schedule": {"at": at.to_string()}, "budget": {"per_run_micros": 100_000}});
    let id = stage.approved(more).await;
    stage.happens_at(60).await;
    // A person may raise the ceiling. This one does not.
    let [occurrence] = stage.occurrences(id).await.try_into().unwrap();
    assert_eq!((occurrence.state, occurrence.attempts), (OccurrenceState::Waiting, 1));
    let reject = format!("/runs/{}/calls/2.0/reject", occurrence.run_id);
    stage.h.post(&reject, json!({})).await.expect(200);
    stage.executors.work().await;
    let [occurrence] = stage.occurrences(id).await.try_into().unwrap();
    assert_eq!((occurrence.state, occurrence.attempts), (OccurrenceState::Failed, 1));
    let run = stage.h.platform.cx.store.run(&stage.owner, occurrence.run_id).await.unwrap().unwrap().value;
    assert_eq!(run.error.unwrap().code, "budget_exceeded");
    assert_eq!((model.asked(), run.cost_micros), (1, occurrence.cost_micros));
    assert!((99_000..=100_000).contains(&run.cost_micros), "{}", run.cost_micros);
    assert_eq!(stage.action(id).await.state, ActionState::Failed);
    // The costs of a run are those of its action. A conversation about the action is not one of its runs.
    stage.h.post(&format!("/actions/{id}/messages"), json!({"content": "Why?"})).await.expect(200);
    let path = format!("/usage?month={}", at.strftime("%Y-%m"));
    let month = stage.h.get(&path).await.expect(200)["month"].clone();
    let rows = month["by_action"].as_array().unwrap();
    let (of_runs, others): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row["action_id"] == json!(id));
    assert_eq!((of_runs.len(), others.len()), (1, 1), "{month:#}");
    assert_eq!((&of_runs[0]["calls"], &of_runs[0]["cost_micros"]), (&json!(1), &json!(run.cost_micros)));
    assert!(others[0].get("action_id").is_none() && others[0]["calls"].as_i64() > Some(0), "{month:#}");
    let models = month["by_model"].as_array().unwrap();
    assert_eq!((models.len(), &models[0]["model"]), (1, &json!("gpt-5.1")), "{month:#}");
    assert_eq!(models[0]["provider"], run.model.unwrap().model.vendor.as_str());
}

/// A count that is too high is corrected, and does not cause wake-ups for ever.
#[tokio::test]
async fn a_wrong_count_of_queued_runs_is_corrected() {
    let stage = Stage::with(ModelsConfig::default()).await;
    let id = stage.approved(json!({"schedule": {"at": "2026-11-21T12:01:00Z"}})).await;
    let cx = &stage.h.platform.cx;
    let read = actions::load(cx, &stage.owner, id).await.unwrap();
    let next = domain::actions::Action { queued: 3, next_due: None, ..read.value.clone() };
    let writes = actions::action_writes(&stage.owner, &read, &next, None, noon()).unwrap();
    assert!(cx.store.write_all(writes).await.unwrap().done());
    stage.happens_at(1).await;
    let action = stage.action(id).await;
    assert_eq!((action.queued, action.state), (0, ActionState::Failed));
    for minutes in [10, 20, 60] {
        stage.at(minutes);
        let swept = sweep(&stage.h.platform.cx, Timestamp::MAX).await.unwrap();
        assert_eq!(swept.leased, 0, "after {minutes} minutes");
    }
}

/// Each run counts once for its agent, also if executors die or work twice, and if its action has further due times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_of_recurring_actions_are_counted_once_each() {
    const HOURS: i64 = 12;
    let stage = Stage::with(ModelsConfig::default()).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(stage.approved(json!({"schedule": {"every": "1h"}})).await);
    }
    let once = noon() + SignedDuration::from_mins(60);
    ids.push(stage.approved(json!({"schedule": {"at": once.to_string()}})).await);
    let mut killed = 0;
    for minutes in (0..=HOURS * 60 + 30).step_by(5) {
        // The last half hour is for what executors that died have left.
        let share = if minutes < HOURS * 60 { 0.3 } else { 0.0 };
        stage.executors.trouble(0.2, share);
        stage.at(minutes);
        tokio::join!(stage.sweep(), stage.sweep());
        killed += stage.executors.work().await.killed;
    }
    assert!(killed > 0);
    let (mut succeeded, mut failed) = (0, 0);
    for id in &ids {
        for occurrence in stage.occurrences(*id).await {
            assert!(occurrence.state.is_final(), "{occurrence:?}");
            succeeded += i64::from(occurrence.state == OccurrenceState::Succeeded);
            failed += i64::from(occurrence.state == OccurrenceState::Failed);
        }
    }
    assert!(succeeded > 4 * HOURS / 2, "{succeeded} of {}", 4 * HOURS + 1);
    let metrics = stage.h.get(&format!("/agents/{}", stage.agent)).await.expect(200)["metrics"].clone();
    assert_eq!(metrics["actions_completed"], succeeded, "{metrics:#}");
    assert_eq!(metrics["actions_failed"], failed, "{metrics:#}");
    // A person completes an action: that counts, too.
    stage.h.post(&format!("/actions/{}/complete", ids[0]), json!({})).await.expect(200);
    let metrics = stage.h.get(&format!("/agents/{}", stage.agent)).await.expect(200)["metrics"].clone();
    assert_eq!(metrics["actions_completed"], succeeded + 1);
}
