//! Saved chats and proposals: every route, every refusal, and concurrent appends.

use base::clock::{Clock, ManualClock};
use domain::chats::conversation::MAX_APPEND;
use domain::chats::proposal::LIFETIME;
use futures::future::join_all;
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use tests::Harness;
use tests::made;
use tests::model::{Says, ScriptedModel};
use tests::stage::{Stage, noon};

fn said(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

fn contents(chat: &Value) -> Vec<&str> {
    chat["messages"].as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap()).collect()
}

async fn chat(h: &Harness, agent: &str, body: Value) -> String {
    let chat = h.post(&format!("/agents/{agent}/chats"), body).await.expect(201);
    format!("/chats/{}", chat["chat_id"].as_str().unwrap())
}

#[tokio::test]
async fn a_chat_is_saved_read_appended_to_and_deleted() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let asset = "ast_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c";
    let action = "act_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c";
    let made = h
        .post(
            &format!("/agents/{agent}/chats"),
            json!({
                "title": " Prices ", "messages": [said("user", "hello"), said("assistant", "yes?")],
                "generated_assets": [asset, asset],
            }),
        )
        .await;
    let path = made.headers["location"].to_str().unwrap().to_owned();
    let made = made.expect(201);
    assert_eq!((&made["title"], &made["agent_id"]), (&json!("Prices"), &json!(agent)));
    assert_eq!(contents(&made), ["hello", "yes?"]);
    assert_eq!(h.get(&path).await.expect(200), made);

    let more = json!({
        "messages": [said("user", "draft it")], "generated_assets": [asset], "generated_actions": [action],
    });
    let appended = h.post(&format!("{path}/messages"), more).await.expect(201);
    assert_eq!(contents(&appended), ["draft it"]);
    let read = h.get(&path).await.expect(200);
    assert_eq!(contents(&read), ["hello", "yes?", "draft it"]);
    assert_eq!(read["messages"][2], appended["messages"][0]);
    assert_eq!((&read["generated_assets"], &read["generated_actions"]), (&json!([asset]), &json!([action])));

    let empty = chat(&h, &agent, json!({})).await;
    let list = h.get(&format!("/agents/{agent}/chats")).await.expect(200);
    let listed: Vec<String> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| format!("/chats/{}", c["chat_id"].as_str().unwrap()))
        .collect();
    assert_eq!(listed, [empty, path.clone()]);

    assert_eq!(h.delete(&path).await.status, 204);
    h.get(&path).await.refused(404, "not_found");
    h.delete(&path).await.refused(404, "not_found");
    h.post(&path, json!({})).await.refused(404, "not_found");
    let late = json!({"messages": [said("user", "late")]});
    h.post(&format!("{path}/messages"), late).await.refused(404, "not_found");
}

#[tokio::test]
async fn a_chat_is_read_backwards_by_pages() {
    let h = Harness::start().await;
    let messages: Vec<Value> = (1..=5).map(|i| said("user", &i.to_string())).collect();
    let path = chat(&h, &h.agent().await, json!({"messages": messages})).await;
    let (mut pages, mut query) = (Vec::new(), "?limit=2".to_owned());
    loop {
        let page = h.get(&format!("{path}{query}")).await.expect(200);
        pages.push(contents(&page).join(" "));
        assert_eq!(page["has_more"], page["next_cursor"].is_string());
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        query = format!("?limit=2&cursor={cursor}");
    }
    assert_eq!(pages, ["4 5", "2 3", "1"]);
}

#[tokio::test]
async fn a_reset_forgets_what_was_said_and_keeps_what_was_made() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let asset = "ast_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c";
    let large = "语".repeat(30_000);
    let body = json!({"messages": [said("user", &large), said("user", "b")], "generated_assets": [asset]});
    let path = chat(&h, &agent, body).await;
    let proposal = made::asset_proposal(&h, &agent, Some(path.trim_start_matches("/chats/")), "draft").await;
    assert_eq!(contents(&h.get(&path).await.expect(200)), [large.as_str(), "b"]);
    for _ in 0..2 {
        let reset = h.post(&path, json!({})).await.expect(200);
        assert_eq!((contents(&reset), &reset["generated_assets"]), (vec![], &json!([asset])));
    }
    let _ = h.post(&format!("{path}/messages"), json!({"messages": [said("user", "c")]})).await.expect(201);
    let read = h.get(&path).await.expect(200);
    assert_eq!((contents(&read), &read["has_more"]), (vec!["c"], &json!(false)));
    let _ = h.get(&format!("/proposals/{proposal}")).await.expect(200);
}

#[tokio::test]
async fn errors_in_a_chat_are_named() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let path = chat(&h, &agent, json!({})).await;
    let messages = format!("{path}/messages");
    let long = said("user", &"x".repeat(32_001));
    for (body, field) in [
        (json!({}), "messages"),
        (json!({"messages": []}), "messages"),
        (json!({"messages": vec![said("user", "x"); MAX_APPEND + 1]}), "messages"),
        (json!({"messages": [said("user", "x"), said("user", " ")]}), "messages[1].content"),
        (json!({"messages": [long]}), "messages[0].content"),
        (json!({"messages": [said("system", "x")]}), "messages[0].role"),
        (json!({"generated_assets": ["act_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c"]}), "generated_assets[0]"),
    ] {
        let problem = h.post(&messages, body).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], field);
    }
    let chats = format!("/agents/{agent}/chats");
    h.post(&chats, json!({"title": "t".repeat(201)})).await.refused(400, "invalid_input");
    h.get(&format!("{path}?limit=0")).await.refused(400, "invalid_input");
    h.get(&format!("{path}?cursor=x")).await.refused(400, "invalid_input");
}

#[tokio::test]
async fn the_largest_number_of_long_messages_can_be_appended() {
    let h = Harness::start().await;
    let path = chat(&h, &h.agent().await, json!({})).await;
    let texts: Vec<String> = (0..MAX_APPEND).map(|i| format!("{i} {}", "x".repeat(31_000))).collect();
    let messages: Vec<Value> = texts.iter().map(|text| said("user", text)).collect();
    let _ = h.post_once(&format!("{path}/messages"), "all", json!({"messages": messages})).await.expect(201);
    assert_eq!(contents(&h.get(&format!("{path}?limit=100")).await.expect(200)), texts);
}

#[tokio::test]
async fn concurrent_appends_lose_nothing() {
    let h = Harness::start().await;
    let path = chat(&h, &h.agent().await, json!({})).await;
    let messages = format!("{path}/messages");
    let append = async |writer: usize| {
        for i in 0..5 {
            let pair =
                [said("user", &format!("{writer} {i} a")), said("assistant", &format!("{writer} {i} b"))];
            let _ = h.post(&messages, json!({"messages": pair})).await.expect(201);
        }
    };
    join_all((0..8).map(append)).await;
    let chat = h.get(&format!("{path}?limit=200")).await.expect(200);
    let all = contents(&chat);
    assert_eq!(all.len(), 80);
    for writer in 0..8 {
        let own: Vec<&str> =
            all.iter().copied().filter(|text| text.starts_with(&format!("{writer} "))).collect();
        let expected: Vec<String> =
            (0..5).flat_map(|i| [format!("{writer} {i} a"), format!("{writer} {i} b")]).collect();
        assert_eq!(own, expected);
    }
}

#[tokio::test]
async fn a_repeated_append_appends_once() {
    let h = Harness::start().await;
    let path = chat(&h, &h.agent().await, json!({})).await;
    let messages = format!("{path}/messages");
    let body = json!({"messages": [said("user", "once")]});
    let first = h.post_once(&messages, "k", body.clone()).await.expect(201);
    assert_eq!(h.post_once(&messages, "k", body).await.expect(201), first);
    assert_eq!(contents(&h.get(&path).await.expect(200)), ["once"]);
}

#[tokio::test]
async fn a_repeated_creation_makes_one_chat_and_a_repeated_reset_resets_once() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let chats = format!("/agents/{agent}/chats");
    let body = json!({"title": "Prices", "messages": [said("user", "first")]});
    let made = h.post_once(&chats, "make", body.clone()).await;
    let location = made.headers["location"].clone();
    let made = made.expect(201);
    let again = h.post_once(&chats, "make", body).await;
    assert_eq!(
        (&again.headers["idempotent-replayed"], &again.headers["location"]),
        (&"true".parse().unwrap(), &location)
    );
    assert_eq!(again.expect(201), made);
    assert_eq!(h.get(&chats).await.expect(200)["data"].as_array().unwrap().len(), 1);
    h.post_once(&chats, "make", json!({"title": "Else"})).await.refused(422, "idempotency_mismatch");

    let path = location.to_str().unwrap();
    let reset = h.post_once(path, "reset", json!({})).await.expect(200);
    assert_eq!(contents(&reset), [""; 0]);
    h.post(&format!("{path}/messages"), json!({"messages": [said("user", "second")]})).await.expect(201);
    let again = h.post_once(path, "reset", json!({})).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.expect(200), reset);
    // A message after the reset is kept, although the reset was requested again.
    assert_eq!(contents(&h.get(path).await.expect(200)), ["second"]);
}

#[tokio::test]
async fn an_expired_proposal_is_not_found() {
    let clock = ManualClock::at("2026-11-21T12:00:00Z".parse().unwrap());
    let config = PlatformConfig { clock: Clock::Manual(clock.clone()), ..PlatformConfig::in_memory() };
    let h = Harness::with(config).await;
    let agent = h.agent().await;
    let proposal = made::asset_proposal(&h, &agent, None, "content").await;
    let path = format!("/proposals/{proposal}");
    let list = format!("/agents/{agent}/proposals");
    clock.set(clock.now() + LIFETIME - SignedDuration::from_secs(1));
    assert_eq!(h.get(&path).await.expect(200)["content"], "content");
    assert_eq!(h.get(&list).await.expect(200)["data"].as_array().unwrap().len(), 1);
    clock.set(clock.now() + SignedDuration::from_secs(1));
    h.get(&path).await.refused(404, "not_found");
    assert_eq!(h.get(&list).await.expect(200)["data"], json!([]));
    let take = json!({"proposal_id": proposal});
    h.post(&format!("/agents/{agent}/assets"), take).await.refused(404, "not_found");
    h.delete(&path).await.refused(404, "not_found");
    assert_eq!(h.get("/assets").await.expect(200)["data"], json!([]));
}

#[tokio::test]
async fn another_owners_chats_and_proposals_are_not_found() {
    let h = Harness::start().await;
    let foreign = made::foreign(&h).await;
    let body = json!({"messages": [said("user", "x")]});
    h.get(&foreign.chat).await.refused(404, "not_found");
    h.post(&foreign.chat, json!({})).await.refused(404, "not_found");
    h.delete(&foreign.chat).await.refused(404, "not_found");
    h.post(&format!("{}/messages", foreign.chat), body.clone()).await.refused(404, "not_found");
    h.get(&format!("{}/chats", foreign.agent)).await.refused(404, "not_found");
    h.post(&format!("{}/chats", foreign.agent), body).await.refused(404, "not_found");
    h.get(&foreign.proposal).await.refused(404, "not_found");
    h.delete(&foreign.proposal).await.refused(404, "not_found");
    h.get(&format!("{}/proposals", foreign.agent)).await.refused(404, "not_found");
}

#[tokio::test]
async fn proposals_wait_and_are_read_and_discarded() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let large = "x".repeat(70_000);
    let first = made::asset_proposal(&h, &agent, None, &large).await;
    let second = made::action_proposal(&h, &agent).await;
    let list = h.get(&format!("/agents/{agent}/proposals")).await.expect(200);
    let [action, asset] = list["data"].as_array().unwrap().as_slice() else { panic!("{list}") };
    assert_eq!((&action["kind"], &action["priority"]), (&json!("action"), &json!("high")));
    assert_eq!((&asset["kind"], &asset["bytes"]), (&json!("asset"), &json!(70_000)));
    assert!(asset.get("content").is_none());
    let path = format!("/proposals/{first}");
    assert_eq!(h.get(&path).await.expect(200)["content"], large);
    assert_eq!(h.get(&format!("/proposals/{second}")).await.expect(200), *action);
    assert_eq!(h.delete(&path).await.status, 204);
    h.get(&path).await.refused(404, "not_found");
    h.delete(&path).await.refused(404, "not_found");
    let list = h.get(&format!("/agents/{agent}/proposals")).await.expect(200);
    assert_eq!(list["data"], json!([action]));
}

#[tokio::test]
async fn an_agents_deletion_takes_its_assets_chats_and_proposals() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let asset =
        h.post(&format!("/agents/{agent}/assets"), json!({"title": "t", "content": "c"})).await.expect(201);
    let chat = chat(&h, &agent, json!({"messages": [said("user", &"é".repeat(32_000))]})).await;
    let proposal = made::asset_proposal(&h, &agent, None, &"x".repeat(70_000)).await;
    assert_eq!(h.delete(&format!("/agents/{agent}")).await.status, 204);
    let asset = format!("/assets/{}", asset["asset_id"].as_str().unwrap());
    for path in [asset, chat, format!("/proposals/{proposal}")] {
        h.get(&path).await.refused(404, "not_found");
    }
    assert_eq!(h.get("/assets").await.expect(200)["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chat_says_when_it_was_last_written_and_which_turn_is_live() {
    let model = ScriptedModel::held(|_| Says::Text("Here it is.".into())).await;
    let stage = Stage::with(model.config("scripted")).await;
    let h = &stage.h;
    let quiet = chat(h, &stage.agent, json!({"title": "Quiet"})).await;
    stage.at(5);
    let path = format!("/agents/{}/chat", stage.agent);
    let request = h.request(Method::POST, &path).header("accept", "text/event-stream");
    let streamed = request.json(&json!({"message": "Hello"})).send().await.unwrap();
    let run = streamed.headers()["location"].to_str().unwrap().rsplit('/').next().unwrap().to_owned();
    model.asked_times(1).await;
    let chats = async || h.get(&format!("/agents/{}/chats", stage.agent)).await.expect(200)["data"].clone();
    let at = |minutes| json!(noon() + SignedDuration::from_mins(minutes));
    let [busy, other] = &chats().await.as_array().unwrap().clone()[..] else { panic!("two chats") };
    assert_eq!((&busy["live_run"], &busy["updated_at"]), (&json!(run), &at(5)), "{busy:#}");
    assert_eq!((other.get("live_run"), &other["updated_at"]), (None, &at(0)));
    let read = h.get(&format!("/chats/{}", busy["chat_id"].as_str().unwrap())).await.expect(200);
    assert_eq!((&read["live_run"], &read["updated_at"]), (&json!(run), &at(5)));

    stage.at(7);
    model.allow(1);
    streamed.text().await.unwrap();
    let busy = chats().await[0].clone();
    assert_eq!((busy.get("live_run"), &busy["updated_at"]), (None, &at(7)), "{busy:#}");
    stage.at(9);
    let more = json!({"messages": [said("user", "more")]});
    h.post(&format!("{quiet}/messages"), more).await.expect(201);
    assert_eq!(chats().await[1]["updated_at"], at(9));
}
