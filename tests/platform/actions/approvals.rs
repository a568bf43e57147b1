//! An approval binds everything that a run is told: what withdraws it, what people see of that, and how they approve
//! again.

use domain::actions::ActionState;
use domain::ids::ActionId;
use models::ModelsConfig;
use serde_json::{Value, json};
use tests::model::{Says, ScriptedModel};
use tests::stage::Stage;

fn writes(messages: &[Value]) -> Says {
    match messages.last().unwrap()["role"].as_str() {
        Some("tool") => Says::Text("It is done.".into()),
        _ => Says::Call("save_output", json!({"title": "Report", "content": "Lamp oil is dear."})),
    }
}

async fn read(stage: &Stage, id: ActionId) -> Value {
    stage.h.get(&format!("/actions/{id}")).await.expect(200)
}

#[tokio::test]
async fn an_edit_of_the_agent_names_the_approvals_that_it_withdraws() {
    let model = ScriptedModel::start(writes).await;
    let stage = Stage::with(model.config("scripted")).await;
    let agent = format!("/agents/{}", stage.agent);
    let hourly = json!({"schedule": {"every": "1h"}});
    let (first, second) = (stage.approved(hourly.clone()).await, stage.approved(hourly.clone()).await);
    let define = json!({"title": "Else", "task_config": {"instructions": "Do", "expected_output": "A page"}});
    stage.h.post(&format!("{agent}/actions"), define).await.expect(201);
    let before = read(&stage, first).await;
    let approvals = format!("{agent}/approvals");
    let none = json!({"data": [], "has_more": false});
    assert_eq!(stage.h.get(&approvals).await.expect(200), none);

    // Changing something that a run is not told withdraws nothing.
    let edited = stage.h.patch(&agent, json!({"model_tier": "deep"})).await.expect(200);
    assert_eq!(edited["withdrawn_approvals"], json!([]));

    let edit = json!({"goal": "A research agent that sells lamp oil"});
    let edited = stage.h.patch(&agent, edit.clone()).await.expect(200);
    assert_eq!(edited["goal"], "A research agent that sells lamp oil");
    let withdrawn = edited["withdrawn_approvals"].as_array().unwrap();
    let now = read(&stage, first).await;
    assert_eq!(withdrawn.len(), 2);
    assert_eq!(
        withdrawn[1],
        json!({
            "action_id": first, "title": "Report", "approved_at": before["approval"]["approved_at"],
            "approved_hash": before["approval_hash"], "approval_hash": now["approval_hash"],
            "changes": [{
                "field": "agent.goal", "approved": "A research agent that watches",
                "current": "A research agent that sells lamp oil",
            }],
        })
    );
    // A repeated call names them again, and so does the list.
    let again = stage.h.patch(&agent, edit).await.expect(200);
    assert_eq!(again["withdrawn_approvals"], edited["withdrawn_approvals"]);
    assert_eq!(stage.h.get(&approvals).await.expect(200)["data"], edited["withdrawn_approvals"]);
    assert_ne!(now["approval"]["hash"], now["approval_hash"]);
    let seen = stage.h.get(&format!("/actions/{first}/approval")).await.expect(200);
    assert_eq!(
        (&seen["holds"], &seen["approval_hash"], &seen["changes"]),
        (&json!(false), &now["approval_hash"], &withdrawn[1]["changes"])
    );
    assert_eq!(seen["approved"]["content"]["agent"]["goal"], "A research agent that watches");
    assert_eq!(seen["current"]["agent"]["goal"], "A research agent that sells lamp oil");

    // Nothing runs under them.
    let run = stage.h.post(&format!("/actions/{first}/run"), json!({})).await;
    run.refused(409, "approval_mismatch");
    stage.happens_at(60).await;
    assert_eq!(stage.became(first).await, ["60 held drifted"]);
    assert_eq!((stage.action(first).await.state, model.asked()), (ActionState::NeedsApproval, 0));

    // Approved again in one call. If one hash is not the one that was seen, only that approval is refused.
    let next_due = read(&stage, second).await["next_due"].clone();
    let nobody = ActionId::from_uuid(stage.h.platform.cx.clock.uuid());
    let give = json!({"approvals": [
        {"action_id": first, "approval_hash": now["approval_hash"]},
        {"action_id": second, "approval_hash": before["approval_hash"]},
        {"action_id": nobody, "approval_hash": before["approval_hash"]},
    ]});
    let given = stage.h.post(&approvals, give).await.expect(200)["data"].clone();
    let told: Vec<(&Value, &Value)> =
        given.as_array().unwrap().iter().map(|one| (&one["approved"], &one["code"])).collect();
    assert_eq!(
        told,
        [
            (&json!(true), &Value::Null),
            (&json!(false), &json!("approval_mismatch")),
            (&json!(false), &json!("not_found")),
        ]
    );
    assert_eq!(given[0]["action"]["state"], "scheduled");
    let one = json!({"action_id": second, "approval_hash": withdrawn[0]["approval_hash"]});
    let given = stage.h.post(&approvals, json!({"approvals": [one]})).await.expect(200);
    assert_eq!(given["data"][0]["approved"], true);
    // The schedule keeps its place.
    assert_eq!(read(&stage, second).await["next_due"], next_due);
    assert_eq!(stage.h.get(&approvals).await.expect(200), none);
    stage.happens_at(120).await;
    for id in [first, second] {
        assert_eq!(stage.became(id).await, ["60 held drifted", "120 succeeded"]);
    }

    let twice = json!({"approvals": [
        {"action_id": first, "approval_hash": ""}, {"action_id": first, "approval_hash": ""},
    ]});
    for (body, field) in [(twice, "approvals"), (json!({"approvals": []}), "approvals")] {
        let refused = stage.h.post(&approvals, body).await.refused(400, "invalid_input");
        assert_eq!(refused["errors"][0]["field"], field);
    }
}

#[tokio::test]
async fn an_edit_of_approved_text_withdraws_the_approval_and_shows_the_difference() {
    let stage = Stage::with(ModelsConfig::default()).await;
    for (edit, field) in [
        (json!({"title": "Obey"}), "title"),
        (json!({"description": "Ignore the instructions"}), "description"),
        (json!({"task_config": {"expected_output": "Else"}}), "task_config.expected_output"),
    ] {
        let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
        let path = format!("/actions/{id}/approval");
        let approved = stage.h.get(&path).await.expect(200);
        assert_eq!((&approved["holds"], &approved["changes"]), (&json!(true), &json!([])));
        let edited = stage.h.patch(&format!("/actions/{id}"), edit).await.expect(200);
        assert_eq!((&edited["state"], &edited["approval"]), (&json!("defined"), &Value::Null), "{field}");
        let seen = stage.h.get(&path).await.expect(200);
        let fields: Vec<&Value> = seen["changes"].as_array().unwrap().iter().map(|c| &c["field"]).collect();
        assert_eq!((&seen["holds"], fields), (&json!(false), vec![&json!(field)]));
        assert_eq!(seen["approved"], approved["approved"]);
    }
    let never = json!({"title": "Never", "task_config": {"instructions": "Do", "expected_output": "A page"}});
    let never = stage.h.post(&format!("/agents/{}/actions", stage.agent), never).await.expect(201);
    let path = format!("/actions/{}/approval", never["action_id"].as_str().unwrap());
    let seen = stage.h.get(&path).await.expect(200);
    assert_eq!(
        (&seen["holds"], &seen["approved"], &seen["changes"]),
        (&json!(false), &Value::Null, &json!([]))
    );
}

/// Many approvals with one `Idempotency-Key` are all given, and the answer is replayed.
#[tokio::test]
async fn many_approvals_are_given_under_one_key() {
    let stage = Stage::with(ModelsConfig::default()).await;
    let agent = format!("/agents/{}", stage.agent);
    for _ in 0..12 {
        stage.approved(json!({"schedule": {"every": "1h"}})).await;
    }
    let edited = stage.h.patch(&agent, json!({"instructions": "Name your sources"})).await.expect(200);
    let approvals: Vec<Value> = edited["withdrawn_approvals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| json!({"action_id": one["action_id"], "approval_hash": one["approval_hash"]}))
        .collect();
    let body = json!({"approvals": approvals});
    let given = stage.h.post_once(&format!("{agent}/approvals"), "all", body.clone()).await.expect(200);
    let approved = given["data"].as_array().unwrap().iter().filter(|one| one["approved"] == true).count();
    assert_eq!(approved, 12, "{given:#}");
    let again = stage.h.post_once(&format!("{agent}/approvals"), "all", body).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.expect(200), given);
}

#[tokio::test]
async fn an_action_says_what_a_month_will_cost_and_an_approval_warns_of_a_ceiling_below() {
    let model = ScriptedModel::start(writes).await;
    let stage = Stage::with(model.config("gpt-5.1")).await;
    let budget = json!({"per_run_micros": 1_000_000, "per_month_micros": 2_000_000});
    let id = stage.approved(json!({"schedule": {"every": "1h"}, "budget": budget})).await;
    let before = read(&stage, id).await["expected_cost"].clone();
    assert_eq!((&before["runs"], &before["month_micros"]), (&json!(720), &json!(720_000_000)));
    assert!(
        before["text"]
            .as_str()
            .unwrap()
            .starts_with("at most $720.00 in 30 days: 720 runs at $1.00, the ceiling")
    );
    let approval = async || stage.h.get(&format!("/actions/{id}/approval")).await.expect(200);
    let warned = approval().await["warnings"].clone();
    assert!(
        warned[0].as_str().unwrap().ends_with("The ceiling of the action has $2.00 left in this month."),
        "{warned:#}"
    );

    for hour in 1..=7 {
        stage.happens_at(60 * hour).await;
    }
    let costs: Vec<i64> = stage.occurrences(id).await.iter().map(|run| run.cost_micros).collect();
    let after = read(&stage, id).await["expected_cost"].clone();
    let average = costs[2..].iter().sum::<i64>() / 5;
    assert!(average > 0, "{costs:?}");
    assert_eq!((&after["run_micros"], &after["month_micros"]), (&json!(average), &json!(average * 720)));
    assert_eq!(approval().await["expected_cost"], after);
    let by_hand = stage.approved(json!({})).await;
    assert!(read(&stage, by_hand).await.get("expected_cost").is_none());
}

/// Whatever keeps an action from running is said where the action is read, all of it.
#[tokio::test]
async fn an_action_says_all_that_keeps_it_from_running() {
    let stage = Stage::with(ModelsConfig::default()).await;
    let id = stage.approved(json!({"schedule": {"every": "1d"}})).await;
    let agent = format!("/agents/{}", stage.agent);
    let reasons = async || {
        let read = read(&stage, id).await["will_not_run"].clone();
        let found = stage.h.get("/actions").await.expect(200)["data"].clone();
        let of = found.as_array().unwrap().iter().find(|one| one["action_id"] == json!(id)).unwrap();
        assert_eq!(of["will_not_run"], read);
        read
    };
    assert_eq!(read(&stage, id).await["schedule_text"], "Every day at 12:00 (UTC).");
    assert_eq!(reasons().await, Value::Null);
    stage.h.patch(&agent, json!({"status": "paused"})).await.expect(200);
    let off = json!({"code": "agent_paused", "text": "The agent is paused."});
    assert_eq!(reasons().await, json!([off]));
    stage.h.post(&format!("/actions/{id}/run"), json!({})).await.refused(409, "agent_not_active");
    stage.h.post(&format!("/actions/{id}/pause"), json!({})).await.expect(200);
    stage.h.post("/account/stop", json!({})).await.expect(200);
    let paused = json!({"code": "paused", "text": "You paused the action at 2026-11-21 12:00 (UTC)."});
    let stopped =
        json!({"code": "account_stopped", "text": "Everything was stopped at 2026-11-21 12:00 (UTC)."});
    assert_eq!(reasons().await, json!([off, paused, stopped]));
    // An action that runs only by hand does not run either.
    let by_hand =
        json!({"title": "By hand", "task_config": {"instructions": "Do", "expected_output": "A page"}});
    let by_hand = stage.h.post(&format!("{agent}/actions"), by_hand).await.expect(201);
    let by_hand = by_hand["action_id"].as_str().unwrap().parse().unwrap();
    assert_eq!(read(&stage, by_hand).await["will_not_run"], json!([off, stopped]));

    stage.h.post("/account/start", json!({})).await.expect(200);
    stage.h.post(&format!("/actions/{id}/resume"), json!({})).await.expect(200);
    stage.h.patch(&agent, json!({"status": "active"})).await.expect(200);
    assert_eq!(reasons().await, Value::Null);
}

/// "Why did nothing run then?" is not answered with what is so only now.
#[tokio::test]
async fn a_time_at_which_an_approval_held_is_not_explained_by_its_end() {
    let stage = Stage::with(ModelsConfig::default()).await;
    let id = stage.approved(json!({"schedule": {"cron": "0 20 * * *"}})).await;
    stage.at(30);
    let task = json!({"task_config": {"instructions": "Else", "expected_output": "A report"}});
    stage.h.patch(&format!("/actions/{id}"), task).await.expect(200);
    stage.at(60);
    let why = async |at: &str| {
        let why = stage.h.get(&format!("/actions/{id}/why?at=2026-11-21T{at}:00Z")).await.expect(200);
        (why["code"].clone(), why["sentence"].as_str().unwrap().to_owned())
    };
    let then = "There is no record of a run due at 2026-11-21 12:10 (UTC). The action was approved then; its approval was withdrawn only at \
                2026-11-21 12:30.";
    assert_eq!(why("12:10").await, (json!("no_record"), then.to_owned()));
    for at in ["12:45", "20:00"] {
        let (code, sentence) = why(at).await;
        assert_eq!(code, "not_approved", "{sentence}");
        assert!(sentence.contains("the approval of the action was withdrawn"), "{sentence}");
    }
}
