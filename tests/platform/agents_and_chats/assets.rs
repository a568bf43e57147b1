//! Assets: every route, every refusal, concurrent calls and crashes.

use domain::assets::AssetPatch;
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};
use shared::flows::agents::assets;
use shared::flows::executor::sweep::sweep;
use shared::flows::executor::wake::wake;
use shared::store::Once;
use tests::made;
use tests::model::{Says, ScriptedModel};
use tests::stage::Stage;
use tests::{Answer, Harness, bus, send};

async fn saved(h: &Harness, agent: &str) -> String {
    let body =
        json!({"title": "Report", "description": "Weekly", "asset_type": "document", "content": "# One"});
    let asset = h.post(&format!("/agents/{agent}/assets"), body).await.expect(201);
    format!("/assets/{}", asset["asset_id"].as_str().unwrap())
}

async fn edit(h: &Harness, path: &str, version: u64, body: Value) -> Answer {
    let request = h.request(Method::PATCH, path).header("if-match", format!("\"{version}\""));
    send(request.json(&body)).await
}

fn ids(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().map(|asset| asset["asset_id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_asset_is_saved_read_listed_changed_and_deleted() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let path = saved(&h, &agent).await;
    let asset = h.get(&path).await.expect(200);
    assert_eq!(
        [&asset["agent_id"], &asset["title"], &asset["asset_type"], &asset["bytes"], &asset["version"]],
        [&json!(agent), &json!("Report"), &json!("document"), &json!(5), &json!(1)]
    );
    assert!(asset.get("content").is_none() && asset.get("run_id").is_none());
    assert_eq!(h.get(&format!("/agents/{agent}")).await.expect(200)["metrics"]["assets"], 1);

    let content = h.get(&format!("{path}/content")).await;
    for (name, value) in [
        ("content-type", "text/markdown; charset=utf-8"),
        ("x-content-type-options", "nosniff"),
        ("x-content-version", "1"),
        ("content-disposition", "attachment; filename=\"Report.md\"; filename*=UTF-8''Report.md"),
    ] {
        assert_eq!(content.headers[name], value);
    }
    assert_eq!(content.expect(200), "# One");

    let changed = edit(&h, &path, 1, json!({"content": "x = 1", "asset_type": "code"})).await.expect(200);
    assert_eq!((&changed["content_version"], &changed["version"]), (&json!(2), &json!(2)));
    let renamed = h.patch(&path, json!({"title": "Final"})).await.expect(200);
    assert_eq!((&renamed["content_version"], &renamed["version"]), (&json!(2), &json!(3)));
    let content = h.get(&format!("{path}/content")).await;
    assert_eq!(content.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(content.expect(200), "x = 1");
    assert_eq!(h.get(&format!("{path}/content?version=1")).await.expect(200), "# One");
    let versions = h.get(&format!("{path}/versions")).await.expect(200);
    let numbers: Vec<_> =
        versions["data"].as_array().unwrap().iter().map(|v| &v["content_version"]).collect();
    assert_eq!(numbers, [&json!(2), &json!(1)]);

    let second = saved(&h, &agent).await;
    let other = h.agent().await;
    let (first, second) = (path.trim_start_matches("/assets/"), second.trim_start_matches("/assets/"));
    for (query, expected) in [
        ("/assets".to_owned(), vec![second, first]),
        (format!("/agents/{agent}/assets"), vec![second, first]),
        ("/assets?asset_type=code".to_owned(), vec![first]),
        (format!("/agents/{agent}/assets?asset_type=document"), vec![second]),
        (format!("/assets?agent_id={agent}&limit=1"), vec![second]),
        (format!("/assets?agent_id={other}"), vec![]),
    ] {
        assert_eq!(ids(&h.get(&query).await.expect(200)), expected, "{query}");
    }

    assert_eq!(h.delete(&path).await.status, 204);
    for gone in [
        path.clone(),
        format!("{path}/content"),
        format!("{path}/content?version=1"),
        format!("{path}/versions"),
    ] {
        h.get(&gone).await.refused(404, "not_found");
    }
    h.delete(&path).await.refused(404, "not_found");
    assert_eq!(h.get(&format!("/agents/{agent}")).await.expect(200)["metrics"]["assets"], 1);
}

#[tokio::test]
async fn errors_in_an_asset_are_named() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let path = saved(&h, &agent).await;
    let assets = format!("/agents/{agent}/assets");
    for (body, field) in [
        (json!({"content": "x"}), "title"),
        (json!({"title": "t"}), "content"),
        (json!({"title": "t", "content": " "}), "content"),
        (json!({"title": "t".repeat(201), "content": "x"}), "title"),
        (json!({"title": "t", "content": "x", "description": "d".repeat(2001)}), "description"),
        (json!({"title": "t", "content": "x", "asset_type": "film"}), "asset_type"),
        (json!({"title": "t", "content": "x".repeat(4 * 1024 * 1024 + 1)}), "content"),
    ] {
        let problem = h.post(&assets, body).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], field);
    }
    let problem = h.patch(&path, json!({"title": " ", "content": ""})).await.refused(400, "invalid_input");
    assert_eq!(problem["errors"].as_array().unwrap().len(), 2);
    h.get("/assets?asset_type=film").await.refused(400, "invalid_input");
    h.get(&format!("{path}/content?version=x")).await.refused(400, "invalid_input");
    h.get(&format!("{path}/content?version=2")).await.refused(404, "not_found");
    let problem = edit(&h, &path, 7, json!({"title": "x"})).await.refused(409, "version_conflict");
    assert_eq!(problem["current"]["title"], "Report");
}

#[tokio::test]
async fn another_owners_assets_are_not_found() {
    let h = Harness::start().await;
    let foreign = made::foreign(&h).await;
    let asset = &foreign.asset;
    for path in [
        asset.clone(),
        format!("{asset}/content"),
        format!("{asset}/versions"),
        format!("{}/assets", foreign.agent),
    ] {
        h.get(&path).await.refused(404, "not_found");
    }
    h.patch(asset, json!({"title": "mine"})).await.refused(404, "not_found");
    h.delete(asset).await.refused(404, "not_found");
    let body = json!({"title": "t", "content": "c"});
    h.post(&format!("{}/assets", foreign.agent), body).await.refused(404, "not_found");
    let agent = h.agent().await;
    let proposal = foreign.proposal.trim_start_matches("/proposals/");
    let body = json!({"proposal_id": proposal});
    h.post(&format!("/agents/{agent}/assets"), body).await.refused(404, "not_found");
    assert_eq!(h.get("/assets").await.expect(200)["data"], json!([]));
}

#[tokio::test]
async fn a_repeated_save_saves_once() {
    let h = Harness::start().await;
    let assets = format!("/agents/{}/assets", h.agent().await);
    let body = json!({"title": "t", "content": "c"});
    let first = h.post_once(&assets, "k", body.clone()).await.expect(201);
    let again = h.post_once(&assets, "k", body).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.expect(201), first);
    let other = json!({"title": "u", "content": "c"});
    h.post_once(&assets, "k", other).await.refused(422, "idempotency_mismatch");
    assert_eq!(ids(&h.get(&assets).await.expect(200)).len(), 1);
}

#[tokio::test]
async fn a_proposal_is_saved_once_and_its_chat_says_so() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let assets = format!("/agents/{agent}/assets");
    let chat = h.post(&format!("/agents/{agent}/chats"), json!({})).await.expect(201);
    let chat = chat["chat_id"].as_str().unwrap();
    let large = "é".repeat(50_000);
    for content in ["small", &large] {
        let proposal = made::asset_proposal(&h, &agent, Some(chat), content).await;
        let save = || h.post(&assets, json!({"proposal_id": proposal, "description": "Changed"}));
        let answers = join_all((0..4).map(|_| save())).await;
        let (won, lost): (Vec<Answer>, Vec<Answer>) =
            answers.into_iter().partition(|answer| answer.status == 201);
        assert_eq!((won.len(), lost.len()), (1, 3));
        for answer in lost {
            answer.refused(404, "not_found");
        }
        let asset = won.into_iter().next().unwrap().expect(201);
        assert_eq!((&asset["title"], &asset["description"]), (&json!("Draft"), &json!("Changed")));
        assert!(asset["run_id"].is_string());
        let path = format!("/assets/{}", asset["asset_id"].as_str().unwrap());
        assert_eq!(h.get(&format!("{path}/content")).await.expect(200), content);
        let chat = h.get(&format!("/chats/{chat}")).await.expect(200);
        assert_eq!(chat["generated_assets"].as_array().unwrap().last(), Some(&asset["asset_id"]));
        h.get(&format!("/proposals/{proposal}")).await.refused(404, "not_found");
    }
    assert_eq!(ids(&h.get(&assets).await.expect(200)).len(), 2);

    // A deleted chat does not delete the proposal. A proposal of another agent is not found.
    let proposal = made::asset_proposal(&h, &agent, Some(chat), "kept").await;
    let other = format!("/agents/{}/assets", h.agent().await);
    h.post(&other, json!({"proposal_id": proposal})).await.refused(404, "not_found");
    assert_eq!(h.delete(&format!("/chats/{chat}")).await.status, 204);
    let body =
        json!({"proposal_id": proposal, "title": "Mine", "content": "Mine, too", "asset_type": "email"});
    assert_eq!(h.post(&assets, body).await.expect(201)["title"], "Mine");
    let action = made::action_proposal(&h, &agent).await;
    let problem = h.post(&assets, json!({"proposal_id": action})).await.refused(400, "invalid_input");
    assert_eq!(problem["errors"][0]["field"], "proposal_id");
}

#[tokio::test]
async fn concurrent_writers_of_an_asset_mix_nothing() {
    let h = Harness::start().await;
    let path = saved(&h, &h.agent().await).await;
    let texts: Vec<String> = (0..8).map(|i| format!("writer {i} ").repeat(1_000 + i)).collect();
    let edits = join_all(texts.iter().map(|text| h.patch(&path, json!({"content": text})))).await;
    for (text, answer) in texts.iter().zip(edits) {
        let asset = answer.expect(200);
        let content =
            h.get(&format!("{path}/content?version={}", asset["content_version"])).await.expect(200);
        assert_eq!(content, text.as_str());
        assert_eq!(asset["bytes"], text.len());
    }
    let versions = h.get(&format!("{path}/versions")).await.expect(200);
    assert_eq!(versions["data"].as_array().unwrap().len(), 9);

    // With `If-Match`, one of two writers gets a conflict.
    let answers = join_all((0..2).map(|i| edit(&h, &path, 9, json!({"content": format!("{i}")})))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
}

/// The details of the events of saved assets, in the order in which the bus got them.
fn saved_events(told: &[Value]) -> Vec<Value> {
    let entries = told.iter().flat_map(|call| call["Entries"].as_array().unwrap());
    let saved = entries.filter(|entry| entry["DetailType"] == "asset.saved");
    saved.map(|entry| serde_json::from_str(entry["Detail"].as_str().unwrap()).unwrap()).collect()
}

#[tokio::test]
async fn each_content_that_is_saved_is_one_event_without_texts() {
    let model = ScriptedModel::start(|messages| match messages.last().map(|message| &message["role"]) {
        Some(role) if role == "tool" => Says::Text("It is saved.".into()),
        _ => Says::Call("save_output", json!({"title": "Secret report", "content": "Lamp oil is dear."})),
    })
    .await;
    let stage = Stage::with(model.config("claude-haiku-4-5")).await;
    let (cx, told) = &bus::kept(&stage.h.platform.cx).await;
    let (owner, agent) = (&stage.owner, stage.agent.parse().unwrap());
    let input = serde_json::from_value(json!({"title": "Secret brief", "content": "Oil."})).unwrap();
    let asset = assets::save(cx, owner, &Once::none(), agent, input).await.unwrap().asset;
    let patch = |json: Value| serde_json::from_value::<AssetPatch>(json).unwrap();
    for change in [json!({"content": "Lamp oil."}), json!({"title": "Final"})] {
        assets::change(cx, owner, asset.asset_id, None, patch(change)).await.unwrap();
    }
    let expected = |version: u64, bytes: u64| {
        json!({
            "owner": "local", "agent_id": stage.agent, "asset_id": asset.asset_id, "content_version": version,
            "asset_type": "document", "bytes": bytes,
        })
    };
    // A new title is no new content.
    assert_eq!(saved_events(&told.lock().unwrap()), [expected(1, 4), expected(2, 9)]);

    told.lock().unwrap().clear();
    let id = stage.approved(json!({"schedule": {"every": "24h"}})).await;
    stage.at(24 * 60);
    sweep(cx, Timestamp::MAX).await.unwrap();
    for _ in 0..2 {
        wake(cx, owner, id, cx.clock.now() + SignedDuration::from_mins(15)).await.unwrap();
    }
    let run = stage.occurrences(id).await[0].run_id;
    let events = saved_events(&told.lock().unwrap());
    let [event] = &events[..] else { panic!("{events:#?}") };
    assert_eq!((&event["run_id"], &event["bytes"]), (&json!(run), &json!(17)), "{event:#}");
    assert!(!json!(*told.lock().unwrap()).to_string().contains("Secret"), "events have no texts");
}
