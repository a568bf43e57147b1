//! Drafts that are made again: the newer one replaces the earlier one, with its history.

use serde_json::{Value, json};
use tests::Harness;
use tests::completions::scripted;
use tests::model::Says;

/// A model that proposes what the person names: `asset TITLE: CONTENT`, `action TITLE: CONTENT` or `change FIELD: VALUE`.
fn proposes(messages: &[Value]) -> Says {
    if messages.last().unwrap()["role"] == "tool" {
        return Says::Text("It waits for your yes.".to_owned());
    }
    let content = &messages.iter().rfind(|message| message["role"] == "user").unwrap()["content"];
    let said = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
    let line = said.lines().last().unwrap();
    let (what, value) = line.split_once(": ").unwrap();
    match what.split_once(' ').unwrap() {
        ("asset", title) => Says::Call("generate_asset", json!({"title": title, "content": value})),
        ("action", title) => Says::Call(
            "generate_actions",
            json!({"actions": [{"title": title, "description": value,
                "task_config": {"instructions": value, "expected_output": "A list"}}]}),
        ),
        (_, field) => Says::Call("change_action", json!({field: value})),
    }
}

async fn waiting(h: &Harness, agent: &str) -> Vec<Value> {
    let found = h.get(&format!("/agents/{agent}/proposals")).await.expect(200);
    found["data"].as_array().unwrap().iter().map(|one| one["proposal_id"].clone()).collect()
}

async fn inbox(h: &Harness) -> Vec<Value> {
    let found = h.get("/inbox").await.expect(200);
    let proposals = found["data"].as_array().unwrap().iter().filter(|item| item["kind"] == "proposal");
    proposals.map(|item| item["proposal_id"].clone()).collect()
}

#[tokio::test]
async fn a_refined_draft_replaces_the_earlier_one_with_its_history() {
    let (h, _model, agent) = scripted(proposes, "scripted").await;
    for (kind, route) in [("asset", "assets"), ("action", "actions")] {
        let chat = h.post(&format!("/agents/{agent}/chats"), json!({})).await.expect(201)["chat_id"].clone();
        let say = async |message: String| {
            let body = json!({"message": message, "chat_id": chat});
            h.post(&format!("/agents/{agent}/chat"), body).await.expect(200)
        };
        let first = say(format!("{kind} Oil prices: one")).await;
        let one = first["proposals"][0]["proposal_id"].clone();
        let other = say(format!("{kind} Gas: other")).await["proposals"][0]["proposal_id"].clone();
        let two = say(format!("{kind} oil  PRICES: two")).await["proposals"][0]["proposal_id"].clone();
        let three = say(format!("{kind} Oil prices: three")).await["proposals"][0]["proposal_id"].clone();

        // Lists, the inbox and the earlier run offer only the newest one.
        assert_eq!(waiting(&h, &agent).await, [three.clone(), other.clone()], "{kind}");
        let mut offered = inbox(&h).await;
        offered.sort_by_key(Value::to_string);
        let mut expected = [three.clone(), other.clone()];
        expected.sort_by_key(Value::to_string);
        assert_eq!(offered, expected, "{kind}");
        let run = h.get(&format!("/runs/{}", first["run_id"].as_str().unwrap())).await.expect(200);
        assert_eq!(run["proposals"], json!([]), "{kind}");

        // The history can be read.
        let read =
            async |id: &Value| h.get(&format!("/proposals/{}", id.as_str().unwrap())).await.expect(200);
        assert_eq!(read(&three).await["replaces"], json!([one, two]), "{kind}");
        assert_eq!(read(&one).await["superseded_by"], two, "{kind}");
        assert_eq!(read(&two).await["superseded_by"], three, "{kind}");
        assert!(read(&other).await.get("replaces").is_none(), "{kind}");

        let accept =
            async |id: &Value| h.post(&format!("/agents/{agent}/{route}"), json!({"proposal_id": id})).await;
        for old in [&one, &two] {
            let refused = accept(old).await.refused(409, "proposal_superseded");
            assert!(refused["current"]["superseded_by"].is_string(), "{refused:#}");
        }
        accept(&three).await.expect(201);
        // What was accepted is replaced by nothing.
        say(format!("{kind} Oil prices: four")).await;
        let mut left = waiting(&h, &agent).await;
        assert_eq!(left.len(), 2, "{kind}");
        let four = left.remove(0);
        assert!(read(&four).await.get("replaces").is_none(), "{kind}");

        // In another chat, the same title is another thing.
        let away = json!({"message": format!("{kind} Oil prices: away")});
        h.post(&format!("/agents/{agent}/chat"), away).await.expect(200);
        let all = waiting(&h, &agent).await;
        assert_eq!(all.len(), 3, "{kind}");
        for id in all {
            h.delete(&format!("/proposals/{}", id.as_str().unwrap())).await.expect(204);
        }
    }
}

#[tokio::test]
async fn a_change_that_sets_the_same_fields_replaces_the_earlier_one() {
    let (h, _model, agent) = scripted(proposes, "scripted").await;
    let define =
        json!({"title": "Report", "task_config": {"instructions": "Do it", "expected_output": "A page"}});
    let action = h.post(&format!("/agents/{agent}/actions"), define).await.expect(201)["action_id"].clone();
    let path = format!("/actions/{}", action.as_str().unwrap());
    let say = async |message: &str| {
        let run = h.post(&format!("{path}/messages"), json!({"content": message})).await.expect(200);
        run["proposals"][0]["proposal_id"].clone()
    };
    let one = say("change priority: low").await;
    let other = say("change title: Reports").await;
    let two = say("change priority: high").await;
    assert_eq!(waiting(&h, &agent).await, [two.clone(), other.clone()]);
    h.patch(&path, json!({"proposal_id": one})).await.refused(409, "proposal_superseded");
    let changed = h.patch(&path, json!({"proposal_id": two})).await.expect(200);
    assert_eq!((&changed["priority"], &changed["title"]), (&json!("high"), &json!("Report")));
}

/// The person accepts the earlier draft while the newer one is made: each is accepted once or replaced.
#[tokio::test]
async fn an_acceptance_and_a_newer_draft_do_not_lose_each_other() {
    let (h, _model, agent) = scripted(proposes, "scripted").await;
    for _ in 0..8 {
        let path = format!("/agents/{agent}/chat");
        let first = h.post(&path, json!({"message": "asset Oil: one"})).await.expect(200);
        let one = first["proposals"][0]["proposal_id"].clone();
        let saves = format!("/agents/{agent}/assets");
        let (newer, saved) = tokio::join!(
            h.post(&path, json!({"message": "asset Oil: two", "chat_id": first["chat_id"]})),
            h.post(&saves, json!({"proposal_id": one})),
        );
        let two = newer.expect(200)["proposals"][0]["proposal_id"].clone();
        assert!([201, 409].contains(&saved.status), "{}", saved.body);
        assert_eq!(waiting(&h, &agent).await, std::slice::from_ref(&two));
        h.post(&saves, json!({"proposal_id": two})).await.expect(201);
    }
}
