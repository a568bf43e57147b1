//! What a chat proposes for an action that exists: changes and commands, and how a person accepts them.

use domain::actions::ActionState;
use domain::ids::ActionId;
use futures::future::join_all;
use jiff::SignedDuration;
use serde_json::{Value, json};
use tests::made;
use tests::model::{Says, ScriptedModel};
use tests::stage::{Stage, noon};

/// A model that makes the call that the person writes as `{"tool": …, "input": …}`, and replies with its result.
fn obeys(request: &[Value]) -> Says {
    let last = request.last().unwrap();
    let text = last["content"].as_str().map_or_else(|| last["content"].to_string(), str::to_owned);
    if last["role"] == "tool" {
        return Says::Text(format!("It said: {text}"));
    }
    let words = text.rsplit("</in_view>").next().unwrap_or_default().trim();
    let Ok(call) = serde_json::from_str::<Value>(words) else { return Says::Text("Hello.".to_owned()) };
    let tools = ["change_action", "command_action", "generate_asset"];
    let name = tools.into_iter().find(|name| call["tool"] == *name).unwrap();
    Says::Call(name, call["input"].clone())
}

/// A stage whose model obeys.
async fn scripted() -> (Stage, ScriptedModel) {
    let model = ScriptedModel::start(obeys).await;
    let stage = Stage::with(model.config("scripted")).await;
    (stage, model)
}

/// What the model says after a call of this tool in a chat with the agent.
async fn calls(stage: &Stage, agent: &str, tool: &str, input: Value) -> Value {
    let message = json!({"tool": tool, "input": input}).to_string();
    stage.h.post(&format!("/agents/{agent}/chat"), json!({ "message": message })).await.expect(200)
}

/// The id of what the model proposes in a chat with the agent.
async fn proposed(stage: &Stage, tool: &str, input: Value) -> String {
    let turn = calls(stage, &stage.agent, tool, input).await;
    let proposal = &turn["proposals"][0]["proposal_id"];
    proposal.as_str().unwrap_or_else(|| panic!("{turn:#}")).to_owned()
}

async fn command(stage: &Stage, id: ActionId, command: &str) -> String {
    proposed(stage, "command_action", json!({"action_id": id, "command": command})).await
}

fn accept(proposal: &str) -> String {
    format!("/proposals/{proposal}/accept")
}

/// Accepts with the hash that the proposal shows now.
async fn approving(stage: &Stage, proposal: &str) -> Value {
    let shown = stage.h.get(&format!("/proposals/{proposal}")).await.expect(200);
    assert!(shown["approval_hash"].is_string(), "{shown:#}");
    json!({"approval_hash": shown["approval_hash"]})
}

async fn hourly(stage: &Stage) -> ActionId {
    stage.approved(json!({"schedule": {"every": "1h"}})).await
}

#[tokio::test]
async fn a_change_that_is_accepted_with_its_hash_stays_approved() {
    let (stage, _model) = scripted().await;
    let h = &stage.h;
    let id = hourly(&stage).await;
    let change = json!({"action_id": id, "schedule": {"every": "2h"}});
    let proposal = proposed(&stage, "change_action", change.clone()).await;
    let body = approving(&stage, &proposal).await;
    stage.at(10);
    let accepted = h.post_once(&accept(&proposal), "press", body.clone()).await.expect(200);
    assert_eq!((&accepted["kind"], &accepted["proposal_id"]), (&json!("change"), &json!(proposal)));
    assert_eq!(accepted["action"]["approval"]["hash"], accepted["action"]["approval_hash"]);
    assert_eq!(accepted["action"]["effects"], json!(["approved"]));
    let action = stage.action(id).await;
    assert_eq!(action.state, ActionState::Scheduled);
    assert_eq!(action.next_due, Some(noon() + SignedDuration::from_mins(130)));
    // What was approved can be read, and the history says who did it.
    let approval = h.get(&format!("/actions/{id}/approval")).await.expect(200);
    assert_eq!(
        (&approval["holds"], &approval["approved"]["content"]["schedule"]["every"]),
        (&json!(true), &json!("2h"))
    );
    let newest = h.get(&format!("/actions/{id}/history")).await.expect(200)["data"][0].clone();
    assert_eq!((&newest["command"], &newest["by"]["kind"]), (&json!("change"), &json!("proposal")));
    assert_eq!(
        (&newest["effects"], &newest["changes"][0]["field"]),
        (&json!(["approved"]), &json!("schedule"))
    );
    // It runs at its new times.
    stage.happens_at(60).await;
    assert_eq!(stage.became(id).await.len(), 0);
    stage.happens_at(130).await;
    assert_eq!(stage.became(id).await.len(), 1);
    // The same request again has the same answer, and another one finds nothing.
    let again = h.post_once(&accept(&proposal), "press", body.clone()).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    h.post(&accept(&proposal), body).await.refused(404, "not_found");

    // Without the hash, it waits for the approval. The answer has the hash for it.
    let change = json!({"action_id": id, "schedule": {"every": "3h"}});
    let proposal = proposed(&stage, "change_action", change).await;
    let accepted = h.post(&accept(&proposal), json!({})).await.expect(200);
    assert_eq!(
        (&accepted["action"]["state"], &accepted["action"]["approval"]),
        (&json!("defined"), &Value::Null)
    );
    assert_eq!(accepted["action"]["effects"][0], "approval_withdrawn");
    stage.approve(&accepted["action"]).await;
    assert_eq!(stage.action(id).await.state, ActionState::Scheduled);
}

#[tokio::test]
async fn nothing_is_approved_that_the_person_has_not_seen() {
    let (stage, _model) = scripted().await;
    let h = &stage.h;
    let id = hourly(&stage).await;
    let path = format!("/actions/{id}");
    let proposal =
        proposed(&stage, "change_action", json!({"action_id": id, "schedule": {"every": "2h"}})).await;
    let read = async || h.get(&format!("/proposals/{proposal}")).await.expect(200);
    let seen = approving(&stage, &proposal).await;
    // Another hash, and that of the action as it is.
    for hash in ["00".repeat(32), stage.action(id).await.approval.unwrap().hash] {
        h.post(&accept(&proposal), json!({"approval_hash": hash})).await.refused(409, "approval_mismatch");
    }
    // The action was changed. Without an approval of its own, there is nothing that one press could approve.
    let changed = h.patch(&path, json!({"title": "Other"})).await.expect(200);
    let refused = h.post(&accept(&proposal), seen.clone()).await.refused(409, "not_approved");
    assert_eq!(refused["current"]["title"], "Other");
    assert!(read().await.get("approval_hash").is_none());
    // It was approved again, as something else.
    stage.approve(&changed).await;
    h.post(&accept(&proposal), seen.clone()).await.refused(409, "approval_mismatch");
    // The agent was edited.
    let newer = approving(&stage, &proposal).await;
    h.patch(&format!("/agents/{}", stage.agent), json!({"goal": "Sells lamps"})).await.expect(200);
    h.post(&accept(&proposal), newer).await.refused(409, "approval_mismatch");
    assert!(read().await.get("approval_hash").is_none());
    // All of this has changed nothing, and the proposal waits.
    let action = stage.action(id).await;
    assert_eq!(
        (action.state, action.schedule_text().unwrap().as_str()),
        (ActionState::Scheduled, "Every hour (UTC).")
    );
    stage.approve(&h.get(&path).await.expect(200)).await;
    let newest = approving(&stage, &proposal).await;
    let accepted = h.post(&accept(&proposal), newest).await.expect(200);
    assert_eq!(
        (&accepted["action"]["title"], &accepted["action"]["state"]),
        (&json!("Other"), &json!("scheduled"))
    );
}

#[tokio::test]
async fn a_title_of_the_person_is_approved_with_the_change_and_a_pause_stays() {
    let (stage, _model) = scripted().await;
    let id = hourly(&stage).await;
    stage.h.post(&format!("/actions/{id}/pause"), json!({})).await.expect(200);
    let proposal =
        proposed(&stage, "change_action", json!({"action_id": id, "schedule": {"every": "2h"}})).await;
    let mut body = approving(&stage, &proposal).await;
    body["title"] = json!("x".repeat(201));
    stage.h.post(&accept(&proposal), body.clone()).await.refused(400, "invalid_input");
    body["title"] = json!("Every two hours");
    let accepted = stage.h.post(&accept(&proposal), body).await.expect(200);
    let action = &accepted["action"];
    assert_eq!((&action["title"], &action["state"]), (&json!("Every two hours"), &json!("paused")));
    assert_eq!(action["approval"]["hash"], action["approval_hash"]);
    stage.h.post(&format!("/actions/{id}/resume"), json!({})).await.expect(200);
    assert_eq!(stage.action(id).await.next_due, Some(noon() + SignedDuration::from_hours(2)));
}

#[tokio::test]
async fn a_command_that_is_accepted_does_what_its_route_does() {
    let (stage, _model) = scripted().await;
    let h = &stage.h;
    let id = hourly(&stage).await;
    let pause = command(&stage, id, "pause").await;
    let read = h.get(&format!("/proposals/{pause}")).await.expect(200);
    assert_eq!(
        (&read["kind"], &read["command"], &read["title"]),
        (&json!("command"), &json!("pause"), &json!("Report"))
    );
    assert_eq!(read["description"], "It does not run until you resume it.");
    let inbox = h.get("/inbox").await.expect(200);
    let item =
        inbox["data"].as_array().unwrap().iter().find(|item| item["proposal_id"] == json!(pause)).unwrap();
    assert_eq!((&item["proposal_kind"], &item["action_id"]), (&json!("command"), &json!(id)));
    // Nothing has happened yet.
    assert_eq!(stage.action(id).await.state, ActionState::Scheduled);
    let accepted = h.post(&accept(&pause), json!({})).await.expect(200);
    assert_eq!((&accepted["command"], &accepted["action"]["state"]), (&json!("pause"), &json!("paused")));
    assert_eq!(stage.action(id).await.state, ActionState::Paused);
    h.get(&format!("/proposals/{pause}")).await.refused(404, "not_found");
    let newest = h.get(&format!("/actions/{id}/history")).await.expect(200)["data"][0].clone();
    assert_eq!((&newest["command"], &newest["by"]["proposal_id"]), (&json!("pause"), &json!(pause)));

    let resume = command(&stage, id, "resume").await;
    h.post(&accept(&resume), json!({})).await.expect(200);
    assert_eq!(stage.action(id).await.state, ActionState::Scheduled);

    let run = command(&stage, id, "run_now").await;
    let begun = h.post(&accept(&run), json!({})).await.expect(200);
    assert_eq!(stage.action(id).await.live_run.map(|run| json!(run)).as_ref(), Some(&begun["run_id"]));
    stage.executors.work().await;

    let rehearse = command(&stage, id, "rehearse").await;
    let begun = h.post(&accept(&rehearse), json!({})).await.expect(200);
    let run = h.get(&format!("/runs/{}", begun["run_id"].as_str().unwrap())).await.expect(200);
    assert_eq!((&run["kind"], &run["action_id"]), (&json!("rehearsal"), &json!(id)));
    h.post(&accept(&rehearse), json!({})).await.refused(404, "not_found");

    let dismiss = command(&stage, id, "dismiss").await;
    h.post(&accept(&dismiss), json!({})).await.expect(200);
    assert_eq!(stage.action(id).await.state, ActionState::Dismissed);
}

#[tokio::test]
async fn a_command_that_the_state_does_not_allow_is_neither_proposed_nor_done() {
    let (stage, _model) = scripted().await;
    let h = &stage.h;
    let id = hourly(&stage).await;
    let draft =
        json!({"title": "Draft", "task_config": {"instructions": "Look", "expected_output": "A list"}});
    let draft =
        h.post(&format!("/agents/{}/actions", stage.agent), draft).await.expect(201)["action_id"].clone();
    let refused = async |action: &Value, command: &str, told: &str| {
        let input = json!({"action_id": action, "command": command});
        let turn = calls(&stage, &stage.agent, "command_action", input).await;
        assert!(turn["message"].as_str().unwrap().contains(told), "{command}: {turn:#}");
        assert_eq!(turn["proposals"], json!([]), "{command}");
    };
    refused(&json!(id), "resume", "the action is not paused").await;
    refused(&draft, "run_now", "the action is not approved").await;
    refused(&draft, "pause", "the action is not approved").await;
    refused(&json!(id), "delete", "must be one of `pause`, `resume`").await;

    // It was paused since it was proposed.
    let pause = command(&stage, id, "pause").await;
    h.post(&format!("/actions/{id}/pause"), json!({})).await.expect(200);
    let problem = h.post(&accept(&pause), json!({})).await.refused(409, "wrong_state");
    assert!(problem["detail"].as_str().unwrap().contains("the action is paused already"), "{problem:#}");
    refused(&json!(id), "pause", "the action is paused already").await;
    let run = command(&stage, id, "run_now").await;
    h.patch(&format!("/agents/{}", stage.agent), json!({"goal": "Sells lamps"})).await.expect(200);
    h.post(&accept(&run), json!({})).await.refused(409, "approval_mismatch");
    h.post(&format!("/actions/{id}/dismiss"), json!({})).await.expect(200);
    h.post(&accept(&run), json!({})).await.refused(409, "wrong_state");
    refused(&json!(id), "rehearse", "the action was dismissed").await;
}

#[tokio::test]
async fn an_agent_reaches_only_its_own_actions() {
    let (stage, _model) = scripted().await;
    let other = stage.h.agent().await;
    let id = hourly(&stage).await;
    let theirs = made::foreign(&stage.h).await.action;
    let theirs = theirs.strip_prefix("/actions/").unwrap();
    for (agent, action) in [(&other, json!(id)), (&stage.agent, json!(theirs)), (&other, json!(theirs))] {
        for (tool, more) in
            [("change_action", json!({"title": "Mine"})), ("command_action", json!({"command": "pause"}))]
        {
            let mut input = more;
            input["action_id"] = action.clone();
            let turn = calls(&stage, agent, tool, input).await;
            let told = format!("there is no action {}", action.as_str().unwrap());
            assert!(turn["message"].as_str().unwrap().contains(&told), "{tool}: {turn:#}");
            assert_eq!(turn["proposals"], json!([]), "{tool}");
        }
    }
    for (tool, input) in
        [("change_action", json!({"title": "Mine"})), ("command_action", json!({"command": "pause"}))]
    {
        let turn = calls(&stage, &stage.agent, tool, input).await;
        assert!(turn["message"].as_str().unwrap().contains("action_id: is required in a chat"), "{turn:#}");
    }
    // In the conversation about an action, another action of the agent can be named, and not one of another agent.
    let second = stage.approved(json!({"title": "Second", "schedule": {"every": "1h"}})).await;
    let about = async |input: Value| {
        let call = json!({"tool": "command_action", "input": input}).to_string();
        stage.h.post(&format!("/actions/{second}/messages"), json!({ "content": call })).await.expect(200)
    };
    let turn = about(json!({"command": "pause"})).await;
    assert_eq!(turn["proposals"][0]["action_id"], json!(second), "{turn:#}");
    let turn = about(json!({"command": "pause", "action_id": id})).await;
    assert_eq!(turn["proposals"][0]["action_id"], json!(id), "{turn:#}");
    let turn = about(json!({"command": "pause", "action_id": theirs})).await;
    assert!(turn["message"].as_str().unwrap().contains("there is no action"), "{turn:#}");
}

#[tokio::test]
async fn presses_at_once_have_one_effect() {
    let (stage, _model) = scripted().await;
    let h = &stage.h;
    for (of, version) in [("pause", 1), ("run_now", 1), ("change", 1), ("rehearse", 0)] {
        let id = hourly(&stage).await;
        let (proposal, body) = match of {
            "change" => {
                let change = json!({"action_id": id, "schedule": {"every": "2h"}});
                let proposal = proposed(&stage, "change_action", change).await;
                let body = approving(&stage, &proposal).await;
                (proposal, body)
            }
            command_of => (command(&stage, id, command_of).await, json!({})),
        };
        let before = stage.action(id).await.version;
        let path = accept(&proposal);
        let answers = join_all((0..6).map(|_| h.post(&path, body.clone()))).await;
        let count = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
        // Who comes later finds no proposal, or an action that has already been paused, changed or begun.
        assert_eq!((count(200), count(404) + count(409)), (1, 5), "{of}: {answers:#?}");
        assert_eq!(stage.action(id).await.version, before + version, "{of}");
        let runs = h.get(&format!("/actions/{id}/runs")).await.expect(200);
        assert_eq!(runs["data"].as_array().unwrap().len(), usize::from(of == "run_now"), "{of}");
    }
}

#[tokio::test]
async fn what_has_expired_or_was_replaced_is_not_accepted() {
    let (stage, _model) = scripted().await;
    let h = &stage.h;
    let id = hourly(&stage).await;
    let first =
        calls(&stage, &stage.agent, "command_action", json!({"action_id": id, "command": "pause"})).await;
    let (old, chat) = (first["proposals"][0]["proposal_id"].as_str().unwrap(), &first["chat_id"]);
    let call =
        json!({"tool": "command_action", "input": {"action_id": id, "command": "run_now"}}).to_string();
    let body = json!({"message": call, "chat_id": chat});
    let turn = h.post(&format!("/agents/{}/chat", stage.agent), body).await.expect(200);
    let new = turn["proposals"][0]["proposal_id"].as_str().unwrap();
    let refused = h.post(&accept(old), json!({})).await.refused(409, "proposal_superseded");
    assert_eq!(refused["current"]["superseded_by"], json!(new));
    let waiting = h.get(&format!("/agents/{}/proposals", stage.agent)).await.expect(200);
    assert_eq!(waiting["data"].as_array().unwrap().len(), 1, "{waiting:#}");
    stage.at(30 * 24 * 60 + 1);
    h.post(&accept(new), json!({})).await.refused(404, "not_found");
    assert_eq!(stage.action(id).await.live_run, None);
}

#[tokio::test]
async fn each_kind_of_proposal_has_its_own_way() {
    let (stage, _model) = scripted().await;
    let h = &stage.h;
    let id = hourly(&stage).await;
    let asset = made::asset_proposal(h, &stage.agent, None, "c").await.to_string();
    let action = made::action_proposal(h, &stage.agent).await.to_string();
    for proposal in [&asset, &action] {
        let problem = h.post(&accept(proposal), json!({})).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], "proposal_id");
    }
    let pause = command(&stage, id, "pause").await;
    for (body, field) in
        [(json!({"title": "Other"}), "title"), (json!({"approval_hash": "00"}), "approval_hash")]
    {
        let problem = h.post(&accept(&pause), body).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], field);
    }
    h.post(&accept(&pause), json!({"command": "run_now"})).await.refused(400, "invalid_input");
    let take = json!({"proposal_id": pause});
    h.patch(&format!("/actions/{id}"), take.clone()).await.refused(400, "invalid_input");
    for elsewhere in ["actions", "assets"] {
        h.post(&format!("/agents/{}/{elsewhere}", stage.agent), take.clone())
            .await
            .refused(400, "invalid_input");
    }
    assert_eq!(stage.action(id).await.state, ActionState::Scheduled);
    // The action was deleted.
    h.delete(&format!("/actions/{id}")).await.expect(204);
    h.post(&accept(&pause), json!({})).await.refused(404, "not_found");
}
