//! What a run hands on to the next run of its action: outputs, the notebook, what the person has said, and that there is nothing new.

use std::time::Duration;

use domain::actions::ReasonCode;
use domain::ids::{ActionId, RunId};
use jiff::SignedDuration;
use reqwest::Method;
use serde_json::{Value, json};
use shared::flows::executor::route;
use shared::store::DueItem;
use tests::model::{Says, ScriptedModel};
use tests::process::Process;
use tests::send;
use tests::stage::Stage;

fn text(message: &Value) -> &str {
    message["content"].as_str().unwrap_or_default()
}

/// How many results the run has, and its task with all that stands before it.
fn seen(messages: &[Value]) -> (usize, &str) {
    (messages.iter().filter(|message| message["role"] == "tool").count(), text(&messages[1]))
}

/// The version of the notebook that a run was shown.
fn version(task: &str) -> u64 {
    let from = task.find("version ").expect("a version") + "version ".len();
    task[from..].chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

/// Saves a numbered report and notes its number.
fn counts(messages: &[Value]) -> Says {
    let (results, task) = seen(messages);
    if !task.contains("<since_last_time>") {
        return Says::Text("I will.".into());
    }
    let number = version(task) + 1;
    match results {
        0 => {
            Says::Call("save_output", json!({"title": "Brief", "content": format!("Brief number {number}")}))
        }
        1 => Says::Call("note", json!({"text": format!("Seen until {number}."), "version": number - 1})),
        _ => Says::Text("Done.".into()),
    }
}

async fn stage(model: &ScriptedModel) -> Stage {
    Stage::with(model.config("scripted")).await
}

/// What the newest run was told before its task.
fn told(model: &ScriptedModel) -> String {
    let sent = model.sent();
    let run = sent.iter().rev().find(|request| text(&request["messages"][0]).contains("<lamplighter:run>"));
    let task = text(&run.unwrap()["messages"][1]);
    let (from, to) = (task.find("<since_last_time>").unwrap(), task.find("# Task").unwrap());
    task[from..to].trim().to_owned()
}

async fn put(stage: &Stage, id: ActionId, text: &str, if_match: Option<&str>) -> tests::Answer {
    let mut request = stage.h.request(Method::PUT, &format!("/actions/{id}/notebook"));
    if let Some(version) = if_match {
        request = request.header("if-match", format!("\"{version}\""));
    }
    send(request.json(&json!({ "text": text }))).await
}

#[tokio::test]
async fn a_run_is_told_what_the_runs_before_it_have_said_and_what_the_person_answered() {
    let model = ScriptedModel::start(counts).await;
    let stage = stage(&model).await;
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(60).await;
    let first = told(&model);
    assert!(
        first.contains("outputs: none, no run has succeeded so far\nnotebook: empty (version 0)\n"),
        "{first}"
    );

    stage.at(70);
    let path = format!("/actions/{id}/messages");
    stage.h.post(&path, json!({"content": "Leave the prices out"})).await.expect(200);
    stage.happens_at(120).await;
    let second = told(&model);
    assert!(second.contains("- 2026-11-21 13:00 ast_"), "{second}");
    assert!(second.contains("\"Brief\"\n> Brief number 1\n"), "{second}");
    assert!(
        second
            .contains("said by the person since the last run:\n- 2026-11-21 13:10\n> Leave the prices out\n"),
        "{second}"
    );
    assert!(
        second.contains("notebook (version 1, written by a run on 2026-11-21 13:00):\n> Seen until 1.\n"),
        "{second}"
    );

    // The person corrects the second brief, and edits the notebook.
    let runs = stage.h.get(&format!("/actions/{id}/runs")).await.expect(200);
    let run = runs["data"][0]["run_id"].as_str().unwrap();
    let outputs = stage.h.get(&format!("/actions/{id}/runs/{run}/outputs")).await.expect(200);
    let asset = outputs["data"][0]["asset_id"].as_str().unwrap();
    stage.at(130);
    stage.h.patch(&format!("/assets/{asset}"), json!({"content": "Corrected"})).await.expect(200);
    put(&stage, id, "Seen until 2, but read 1 again.", Some("2")).await.expect(200);
    for minutes in [180, 240, 300] {
        stage.happens_at(minutes).await;
    }
    let third = &model.sent().into_iter().map(|request| request["messages"].clone()).collect::<Vec<_>>();
    let third =
        third.iter().map(|messages| text(&messages[1])).find(|task| task.contains("(version 3")).unwrap();
    assert!(third.contains("\"Brief\", edited on 2026-11-21 14:10\n> Corrected\n"), "{third}");
    assert!(third.contains("notebook (version 3, edited by the person on 2026-11-21 14:10):"), "{third}");
    assert!(!third.contains("said by the person"), "{third}");
    let last = told(&model);
    assert_eq!(last.matches("> Brief number").count() + last.matches("> Corrected").count(), 3, "{last}");

    let notebook = stage.h.get(&format!("/actions/{id}/notebook")).await.expect(200);
    assert_eq!((&notebook["version"], &notebook["text"]), (&json!(6), &json!("Seen until 6.")));
    let approval = stage.h.get(&format!("/actions/{id}/approval")).await.expect(200);
    assert_eq!(
        (&approval["holds"], &approval["notebook"]),
        (&json!(true), &json!({"version": 6, "bytes": 13}))
    );
}

/// Writes to version 0 without looking, then does what it is told.
fn hasty(messages: &[Value]) -> Says {
    let (results, _) = seen(messages);
    match results {
        0 => Says::Call("note", json!({"text": "Mine", "version": 0})),
        1 if text(messages.last().unwrap()).contains("not written") => {
            Says::Call("note", json!({"text": "Mine and yours", "version": 1}))
        }
        1 | 2 => Says::Call("note", json!({"text": "x".repeat(4_001), "version": 2})),
        3 => Says::Call("save_output", json!({"title": "Brief", "content": "Same as ever"})),
        _ => Says::Text("Done.".into()),
    }
}

#[tokio::test]
async fn a_person_can_read_edit_and_erase_the_notebook_and_a_run_does_not_overwrite_an_edit() {
    let model = ScriptedModel::start(hasty).await;
    let stage = stage(&model).await;
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    let path = format!("/actions/{id}/notebook");
    assert_eq!(stage.h.get(&path).await.expect(200), json!({"version": 0, "text": ""}));
    put(&stage, id, "Yours", None).await.expect(200);
    put(&stage, id, "Late", Some("0")).await.refused(409, "version_conflict");
    let long = put(&stage, id, &"é".repeat(2_001), None).await.refused(400, "invalid_input");
    assert!(long.to_string().contains("must be at most 4000 bytes, is 4002"), "{long:#}");

    stage.happens_at(60).await;
    let sent = model.sent();
    let said = sent.iter().filter_map(|request| request["messages"].as_array()?.last()).map(text);
    let said: Vec<&str> = said.filter(|said| said.contains("written")).collect();
    assert_eq!(
        said[..3],
        [
            "Error: not written: the person has changed the notebook. It is version 1 now:\nYours",
            "written: the notebook is version 2",
            "Error: not written: text: must be at most 4000 bytes, is 4001",
        ]
    );
    let versions = stage.h.get(&format!("{path}/versions")).await.expect(200);
    let texts: Vec<&Value> =
        versions["data"].as_array().unwrap().iter().map(|version| &version["text"]).collect();
    assert_eq!(texts, ["Mine and yours", "Yours"]);
    assert!(versions["data"][0]["run_id"].is_string() && versions["data"][1]["run_id"].is_null());

    stage.h.delete(&path).await.expect(204);
    let erased = stage.h.get(&path).await.expect(200);
    assert_eq!((&erased["version"], &erased["text"]), (&json!(3), &json!("")));
    let left = stage.h.get(&format!("{path}/versions")).await.expect(200);
    assert_eq!(left["data"].as_array().unwrap().len(), 1, "{left:#}");
    let stored = tests::everything::scanned(&stage.h.platform.cx, "local").await;
    assert!(
        !stored.keys().any(|(_, sk)| sk.starts_with("NOTE#") && !sk.ends_with('3')),
        "{:#?}",
        stored.keys()
    );
    stage.h.delete(&format!("/actions/{id}")).await.expect(204);
    stage.h.get(&path).await.refused(404, "not_found");
    put(&stage, id, "Late", None).await.refused(404, "not_found");
}

#[tokio::test]
async fn the_newest_fifty_versions_of_a_notebook_are_kept() {
    let model = ScriptedModel::start(counts).await;
    let stage = stage(&model).await;
    let id = stage.approved(json!({})).await;
    for n in 1..=53 {
        put(&stage, id, &format!("Text {n}"), None).await.expect(200);
    }
    let versions = stage.h.get(&format!("/actions/{id}/notebook/versions?limit=200")).await.expect(200);
    let numbers: Vec<u64> = versions["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["version"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (4..=53).rev().collect::<Vec<_>>());
}

/// Saves a brief at first, then has nothing new.
fn honest(messages: &[Value]) -> Says {
    let (results, task) = seen(messages);
    match (results, task.contains("outputs: none")) {
        (0, true) => Says::Call("save_output", json!({"title": "Brief", "content": "Oil costs 7."})),
        (0, false) => Says::Call("nothing_new", json!({"reason": "Oil still costs 7"})),
        _ => Says::Text("Done.".into()),
    }
}

#[tokio::test]
async fn a_run_with_nothing_new_ends_without_an_output_and_without_a_check() {
    let model = ScriptedModel::start(honest).await;
    let stage = stage(&model).await;
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(60).await;
    let asked = model.asked();
    stage.happens_at(120).await;
    assert_eq!(stage.became(id).await, ["60 succeeded", "120 nothing_new nothing_new"]);
    assert_eq!(model.asked() - asked, 1, "one call of the model and no check");
    let [_, run] = stage.occurrences(id).await.try_into().unwrap();
    assert_eq!((stage.outputs(run.run_id).await, run.score), (0, None));
    let why = stage.h.get(&format!("/actions/{id}/why")).await.expect(200);
    assert_eq!(why["code"], "nothing_new");
    assert_eq!(
        why["sentence"],
        "The run that was due at 2026-11-21 14:00 (UTC) ran and had nothing new to report at 2026-11-21 14:00: Oil still costs 7."
    );
    let metrics = stage.h.get(&format!("/agents/{}", stage.agent)).await.expect(200)["metrics"].clone();
    assert_eq!((&metrics["actions_completed"], &metrics["runs_nothing_new"]), (&json!(1), &json!(1)));
    assert_eq!(stage.h.get(&format!("/runs/{}", run.run_id)).await.expect(200)["state"], "completed");
    assert_eq!(stage.h.get(&format!("/actions/{id}")).await.expect(200)["state"], "scheduled");
    // The next run is told the last output, not the silence.
    stage.happens_at(180).await;
    assert!(told(&model).contains("> Oil costs 7."), "{}", told(&model));
}

/// Says that there is nothing new after it has saved something.
fn contradicts_itself(messages: &[Value]) -> Says {
    match seen(messages).0 {
        0 => Says::Call("save_output", json!({"title": "Brief", "content": "Oil costs 7."})),
        1 => Says::Call("nothing_new", json!({"reason": "No"})),
        _ => Says::Text("Done.".into()),
    }
}

#[tokio::test]
async fn a_run_that_repeats_the_last_output_is_flagged() {
    let model = ScriptedModel::start(contradicts_itself).await;
    let stage = stage(&model).await;
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(60).await;
    stage.happens_at(120).await;
    let codes = stage.occurrences(id).await.into_iter().map(|run| (run.state.as_str(), run.reason_code));
    assert_eq!(codes.collect::<Vec<_>>(), [("succeeded", None), ("succeeded", Some(ReasonCode::SameAsLast))]);
    let why = stage.h.get(&format!("/actions/{id}/why")).await.expect(200);
    assert!(
        why["sentence"].as_str().unwrap().ends_with(", but its output equals that of the last run."),
        "{why:#}"
    );
    let refused = "not ended: the run has saved 1 outputs; end it with a sentence instead";
    assert!(model.sent().iter().any(|request| request.to_string().contains(refused)));
}

/// A process works on the run until the run has this many events, and dies.
async fn dies_at(stage: &Stage, id: ActionId, events: u64) {
    let process = Process::start(stage);
    let (cx, item) = (process.cx.clone(), DueItem::action(&stage.owner, id));
    let deadline = cx.clock.now() + SignedDuration::from_mins(15);
    let work = process.runtime.spawn(async move { route::process(&cx, &item, deadline).await });
    let mut run = None::<RunId>;
    loop {
        run = run.or(stage.action(id).await.live_run);
        let newest = match run {
            Some(run) => stage.h.platform.cx.store.last_event_id(&stage.owner, run).await.unwrap(),
            None => 0,
        };
        if newest >= events || work.is_finished() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    process.kill();
}

/// Whatever the moment at which a process dies, the notebook is written once, and the run ends as if nothing had happened.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_notebook_survives_a_kill_at_every_step() {
    let model = ScriptedModel::start(counts).await;
    let mut interrupted = 0;
    for events in 1..=12 {
        let stage = stage(&model).await;
        let id = stage.approved(json!({"schedule": {"every": "1d"}})).await;
        stage.at(24 * 60);
        stage.sweep().await;
        dies_at(&stage, id, events).await;
        for _ in 0..20 {
            if stage.action(id).await.live_run.is_none() && stage.occurrences(id).await.len() == 1 {
                break;
            }
            stage.clock.set(stage.clock.now() + SignedDuration::from_mins(2));
            stage.sweep().await;
            stage.executors.work().await;
        }
        let [run] = stage.occurrences(id).await.try_into().unwrap();
        interrupted += u32::from(run.fence > 1);
        assert_eq!(run.state.as_str(), "succeeded", "killed at event {events}: {run:#?}");
        let versions = stage.h.get(&format!("/actions/{id}/notebook/versions")).await.expect(200);
        assert_eq!(versions["data"].as_array().unwrap().len(), 1, "killed at event {events}: {versions:#}");
        assert_eq!(versions["data"][0]["text"], "Seen until 1.", "killed at event {events}");
    }
    assert!(interrupted >= 3, "only {interrupted} kills came in time");
}

#[tokio::test]
async fn a_run_is_told_what_people_have_changed_in_its_action() {
    let model = ScriptedModel::start(counts).await;
    let stage = stage(&model).await;
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(60).await;
    assert!(!told(&model).contains("changed in this task"), "{}", told(&model));

    let action = format!("/actions/{id}");
    let change = async |minutes, body: Value| {
        stage.at(minutes);
        stage.h.patch(&action, body).await.expect(200)
    };
    for number in 1..=5 {
        change(60 + number, json!({"title": format!("Title {number}")})).await;
    }
    let body = json!({"description": "Without prices", "task_config": {"expected_output": "Half a page"}});
    let changed = change(70, body).await;
    let hash = json!({"approval_hash": changed["approval_hash"]});
    stage.h.post(&format!("{action}/approve"), hash).await.expect(200);
    stage.happens_at(130).await;
    let second = told(&model);
    let newest_five = "changed in this task since the last run (the task below is the new one):\n\
         - 2026-11-21 13:02: changed title\n- 2026-11-21 13:03: changed title\n- 2026-11-21 13:04: changed title\n\
         - 2026-11-21 13:05: changed title\n\
         - 2026-11-21 13:10: changed description, task_config.expected_output\nnotebook";
    assert!(second.contains(newest_five), "{second}");
    stage.happens_at(190).await;
    assert!(!told(&model).contains("changed in this task"), "{}", told(&model));
}
