//! "Why did it not run?" in a conversation with an agent.

use models::ModelsConfig;
use serde_json::{Value, json};
use tests::model::{Says, ScriptedModel};
use tests::stage::Stage;

fn text(message: &Value) -> &str {
    message["content"].as_str().unwrap_or_default()
}

/// Calls `explain_action` with the arguments in the person's newest message, and says what it was told.
fn asks(request: &[Value]) -> Says {
    let asked = request.iter().rev().find(|message| message["role"] == "user").map(text).unwrap_or_default();
    let arguments = asked.rsplit("ASK ").next().and_then(|rest| rest.lines().next()).unwrap_or_default();
    match request.iter().filter(|message| message["role"] == "tool").map(text).next_back() {
        Some(result) => Says::Text(format!("TOLD {result}")),
        None => {
            Says::Call("explain_action", serde_json::from_str(arguments.trim()).unwrap_or_else(|_| json!({})))
        }
    }
}

async fn chat(stage: &Stage, message: &str) -> String {
    let turn = stage.h.post(&format!("/agents/{}/chat", stage.agent), json!({"message": message})).await;
    turn.expect(200)["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_tool_tells_what_is_paused_not_approved_and_missed() {
    let model = ScriptedModel::start(asks).await;
    let stage = Stage::with(model.config("scripted")).await;
    let told = async |arguments: Value| -> String {
        // The turns of a manual clock would all have the same time.
        stage.clock.set(stage.clock.now() + jiff::SignedDuration::from_secs(1));
        let said = chat(&stage, &format!("ASK {arguments}")).await;
        said.strip_prefix("TOLD ").unwrap_or_else(|| panic!("{said}")).to_owned()
    };
    let answer = async |arguments: Value| -> Value { serde_json::from_str(&told(arguments).await).unwrap() };
    assert_eq!(answer(json!({})).await, json!({"actions": [], "complete": true}));

    let schedule = json!({"every": "1h", "catch_up": "none"});
    let missed = stage.approved(json!({"title": "Missed", "schedule": schedule})).await;
    let paused = stage.approved(json!({"title": "Paused", "schedule": {"every": "1h"}})).await;
    stage.h.post(&format!("/actions/{paused}/pause"), json!({})).await.expect(200);
    let draft = json!({
        "title": "Draft", "schedule": {"cron": "0 9 * * *"},
        "task_config": {"instructions": "Write", "expected_output": "A report"},
    });
    stage.h.post(&format!("/agents/{}/actions", stage.agent), draft).await.expect(201);
    // Nothing works for a while.
    stage.happens_at(2 * 60 + 30).await;
    let all = answer(json!({})).await;
    let rows = all["actions"].as_array().unwrap();
    let of = |title: &str| rows.iter().find(|row| row["title"] == title).unwrap();
    assert_eq!(of("Draft")["will_not_run"], "The action is not approved yet.");
    assert!(of("Draft")["next_due"].as_str().unwrap().contains("22 November 2026, 09:00"), "{all:#}");
    let row = of("Paused");
    let words = row["will_not_run"].as_str().unwrap();
    assert!(words.starts_with("You paused the action at 2026-11-21 12:00:0"), "{words}");
    let not_run = row["did_not_succeed"].as_array().unwrap();
    assert_eq!(not_run.len(), 2, "{row:#}");
    assert!(
        not_run[0]
            .as_str()
            .unwrap()
            .contains("at 2026-11-21 14:00:01 (UTC) was skipped: the action was paused"),
        "{row:#}"
    );
    let row = of("Missed");
    assert_eq!((&row["will_not_run"], &row["nothing_ran_since"]), (&Value::Null, &Value::Null));
    let not_run = row["did_not_succeed"].as_array().unwrap();
    assert!(!not_run.is_empty(), "{row:#}");
    assert!(not_run[0].as_str().unwrap().contains(" was missed: "), "{row:#}");

    let one = answer(json!({"action_id": missed, "at": "2026-11-21T13:00:01Z"})).await;
    let explanation = one["actions"][0]["explanation"].as_str().unwrap();
    assert!(explanation.contains("at 2026-11-21 13:00:01 (UTC) was missed: "), "{one:#}");
    assert_eq!(one["actions"].as_array().unwrap().len(), 1);

    // Another agent's action does not exist for it.
    let other = stage.h.agent().await;
    let foreign = json!({"title": "Secret", "task_config": {"instructions": "x", "expected_output": "y"}});
    let foreign = stage.h.post(&format!("/agents/{other}/actions"), foreign).await.expect(201);
    let refused = told(json!({"action_id": foreign["action_id"]})).await;
    assert!(refused.contains("there is no action act_") && !refused.contains("Secret"), "{refused}");
    assert!(!told(json!({})).await.contains("Secret"));
    let refused = told(json!({"at": "2026-11-21T13:00:00Z"})).await;
    assert!(refused.contains("must be given together with action_id"), "{refused}");
}

/// The demo model has no key and still answers the question.
#[tokio::test]
async fn the_demo_model_says_why() {
    let stage = Stage::with(ModelsConfig::default()).await;
    let id = stage.approved(json!({"title": "Morning brief", "schedule": {"cron": "0 13 * * *"}})).await;
    stage.h.post(&format!("/actions/{id}/pause"), json!({})).await.expect(200);
    stage.happens_at(90).await;
    let said = chat(&stage, "Why did my brief not run?").await;
    let expected = "Morning brief: You paused the action at 2026-11-21 12:00 (UTC). The run that was due at 2026-11-21 13:00 (UTC) \
                    was skipped: the action was paused.";
    assert!(said.contains(expected), "{said}");
}
