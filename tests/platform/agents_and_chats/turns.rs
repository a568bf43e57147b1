//! Turns: setting an agent up, chatting, streams and reconnecting, cancelling, proposals.

use std::time::Duration;

use lamplighter_local::demo::DemoSettings;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use tests::events::{events, names, stream, text};
use tests::model::{Says, ScriptedModel};
use tests::{Harness, send};

#[tokio::test]
async fn an_agent_is_set_up_by_talking() {
    let h = Harness::start().await;
    let first = h.post("/setup/chat", json!({"message": "I want to follow my market"})).await.expect(200);
    assert_eq!((first["state"].as_str(), first["kind"].as_str()), (Some("completed"), Some("setup")));
    assert!(first["message"].as_str().unwrap().contains("demo"), "{first:#}");
    assert!(first.get("agent_draft").is_none());
    let chat_id = first["chat_id"].clone();
    let mut last = first;
    for message in
        ["A research agent that reports on three competitors", "A one-page report each week", "Ongoing"]
    {
        last = h.post("/setup/chat", json!({"chat_id": chat_id, "message": message})).await.expect(200);
        if last.get("agent_draft").is_some() {
            break;
        }
    }
    let draft = last["agent_draft"].clone();
    assert!(draft["goal"].as_str().unwrap().starts_with("A"), "{last:#}");
    assert_eq!(draft["timeline"], "Ongoing");
    let agent = h.post("/agents", draft.clone()).await.expect(201);
    assert_eq!(agent["goal"], draft["goal"]);
}

#[tokio::test]
async fn a_turn_streams_proposes_and_can_be_read_again() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let path = format!("/agents/{agent}/chat");
    let seen = stream(&h, &path, json!({"message": "Write a short brief about lamp oil prices"})).await;
    let ids: Vec<u64> = seen.iter().map(|event| event.id).collect();
    assert_eq!(ids, (1..=seen.len() as u64).collect::<Vec<_>>());
    let names = names(&seen);
    assert_eq!((names.first(), names.last()), (Some(&"run.started"), Some(&"run.completed")), "{names:?}");
    assert!(
        names.contains(&"message.delta")
            && names.contains(&"asset.proposed")
            && names.contains(&"usage.updated")
    );

    // Each event says when it was stored, and which step and call it belongs to.
    let times: Vec<jiff::Timestamp> =
        seen.iter().map(|event| event.data["at"].as_str().unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted(), "{seen:#?}");
    for event in &seen {
        let of_step = !event.name.starts_with("run.");
        let of_call = event.name.starts_with("tool.") || event.name.ends_with(".proposed");
        assert_eq!(event.data["step"].is_u64(), of_step, "{event:?}");
        assert_eq!(event.data["call_id"].is_string(), of_call, "{event:?}");
    }

    let run_id = seen[0].data["run_id"].as_str().unwrap();
    let run = h.get(&format!("/runs/{run_id}")).await.expect(200);
    assert_eq!(run["state"], "completed");
    assert_eq!(run["message"].as_str().unwrap().trim(), text(&seen).trim());
    assert!(run["cost_micros"].as_i64().unwrap() > 0);
    let proposal = &run["proposals"][0];
    assert_eq!(proposal["kind"], "asset");
    assert!(proposal["content"].as_str().unwrap().contains("lamp oil"), "{proposal:#}");

    // A replay from any point is the same.
    let replay =
        send(h.request(Method::GET, &format!("/runs/{run_id}/events")).header("accept", "text/event-stream"));
    assert_eq!(events(replay.await.body.as_str().unwrap()), seen);
    let from_third = h
        .request(Method::GET, &format!("/runs/{run_id}/events"))
        .header("accept", "text/event-stream")
        .header("last-event-id", "3");
    assert_eq!(events(send(from_third).await.body.as_str().unwrap()), seen[3..]);

    // The proposal waits on the server, and can be accepted once.
    let list = h.get(&format!("/agents/{agent}/proposals")).await.expect(200);
    assert_eq!(list["data"][0]["proposal_id"], proposal["proposal_id"]);
    let body = json!({"proposal_id": proposal["proposal_id"]});
    let asset = h.post(&format!("/agents/{agent}/assets"), body.clone()).await.expect(201);
    h.post(&format!("/agents/{agent}/assets"), body).await.refused(404, "not_found");
    let content = h.get(&format!("/assets/{}/content", asset["asset_id"].as_str().unwrap())).await;
    assert_eq!(content.expect(200), proposal["content"]);
    assert_eq!(h.get(&format!("/agents/{agent}/proposals")).await.expect(200)["data"], json!([]));
    let chat = h.get(&format!("/chats/{}", run["chat_id"].as_str().unwrap())).await.expect(200);
    assert_eq!(chat["generated_assets"], json!([asset["asset_id"]]));
    let metrics = h.get(&format!("/agents/{agent}")).await.expect(200)["metrics"].clone();
    assert_eq!((&metrics["assets"], &metrics["cost_micros"]), (&json!(1), &run["cost_micros"]));
}

#[tokio::test]
async fn an_action_is_proposed_and_a_question_is_looked_up() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let path = format!("/agents/{agent}/chat");
    let turn = h
        .post(&path, json!({"message": "Schedule a weekly report about lamp oil every Monday"}))
        .await
        .expect(200);
    let proposal = &turn["proposals"][0];
    assert_eq!(proposal["kind"], "action", "{turn:#}");
    assert!(!proposal["task_config"]["instructions"].as_str().unwrap().is_empty());

    let chat_id = &turn["chat_id"];
    let asked = stream(&h, &path, json!({"chat_id": chat_id, "message": "What is scheduled?"})).await;
    let names = names(&asked);
    assert!(names.contains(&"tool.requested") && names.contains(&"tool.result"), "{names:?}");
    let chat = h.get(&format!("/chats/{}", chat_id.as_str().unwrap())).await.expect(200);
    let roles: Vec<&str> =
        chat["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles.iter().filter(|role| **role == "user").count(), 2, "{chat:#}");
}

#[tokio::test]
async fn a_client_that_disconnects_loses_nothing() {
    let mut config = PlatformConfig::in_memory();
    config.demo = DemoSettings { delay_per_word: Duration::from_millis(10) };
    let h = Harness::with(config).await;
    let agent = h.agent().await;
    let body = json!({"message": "Write a long brief about lamp oil"});
    let request =
        h.request(Method::POST, &format!("/agents/{agent}/chat")).header("accept", "text/event-stream");
    let mut response = request.json(&body).send().await.unwrap();
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let first = response.chunk().await.unwrap().unwrap();
    let first = events(std::str::from_utf8(&first).unwrap());
    assert_eq!(first[0].name, "run.started");
    drop(response);

    let last = first.last().unwrap().id;
    let rest = h
        .request(Method::GET, &format!("{location}/events?after={last}"))
        .header("accept", "text/event-stream");
    let rest = events(send(rest).await.body.as_str().unwrap());
    assert_eq!(rest.first().unwrap().id, last + 1);
    assert_eq!(rest.last().unwrap().name, "run.completed");
    let run = h.get(&location).await.expect(200);
    assert_eq!(run["message"].as_str().unwrap().trim(), text(&[first, rest].concat()).trim());
}

#[tokio::test]
async fn a_run_is_cancelled() {
    let mut config = PlatformConfig::in_memory();
    config.demo = DemoSettings { delay_per_word: Duration::from_millis(100) };
    let h = Harness::with(config).await;
    let agent = h.agent().await;
    let request =
        h.request(Method::POST, &format!("/agents/{agent}/chat")).header("accept", "text/event-stream");
    let response = request.json(&json!({"message": "Write a long brief"})).send().await.unwrap();
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(h.post(&format!("{location}/cancel"), json!({})).await.status, 202);
    let seen = events(&response.text().await.unwrap());
    assert_eq!(seen.last().unwrap().name, "run.cancelled");
    let run = h.get(&location).await.expect(200);
    assert_eq!(run["state"], "cancelled");
    // What was read stays, and the conversation goes on after it.
    assert_eq!(run["message"].as_str().unwrap(), text(&seen).trim());
    assert!(!run["message"].as_str().unwrap().is_empty(), "{run:#}");
    let chat = format!("/chats/{}", run["chat_id"].as_str().unwrap());
    let stored = h.get(&chat).await.expect(200);
    let said: Vec<_> = stored["messages"].as_array().unwrap().iter().map(|one| &one["content"]).collect();
    assert_eq!(said, [&json!("Write a long brief"), &run["message"]]);
    // Cancelling an ended run changes nothing.
    assert_eq!(h.post(&format!("{location}/cancel"), json!({})).await.expect(202)["state"], "cancelled");
}

#[tokio::test]
async fn a_repeated_turn_is_answered_with_its_run() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let path = format!("/agents/{agent}/chat");
    let body = json!({"message": "Hello"});
    let first = h.post_once(&path, "turn-1", body.clone()).await.expect(200);
    let again = h.post_once(&path, "turn-1", body).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.expect(200), first);
    h.post_once(&path, "turn-1", json!({"message": "Else"})).await.refused(422, "idempotency_mismatch");
}

#[tokio::test]
async fn invalid_turns_are_refused() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let path = format!("/agents/{agent}/chat");
    h.post(&path, json!({"message": "  "})).await.refused(400, "invalid_input");
    h.post(&path, json!({"message": "x".repeat(32_001)})).await.refused(400, "invalid_input");
    h.post("/agents/agt_0193f2a7c5e7d3a9b1f4c6d8e0a2b4c0/chat", json!({"message": "hi"}))
        .await
        .refused(404, "not_found");
    let setup = h.post("/setup/chat", json!({"message": "hello"})).await.expect(200);
    h.post(&path, json!({"chat_id": setup["chat_id"], "message": "hi"})).await.refused(404, "not_found");
    h.patch(&format!("/agents/{agent}"), json!({"status": "archived"})).await.expect(200);
    h.post(&path, json!({"message": "hi"})).await.refused(409, "agent_archived");
    h.get("/runs/run_0193f2a7c5e7d3a9b1f4c6d8e0a2b4c0").await.refused(404, "not_found");
}

#[tokio::test]
async fn a_ceiling_stops_a_turn_before_it_costs() {
    let mut config = PlatformConfig::in_memory();
    // Nobody may raise it.
    (config.budget.day_micros, config.budget.day_max_micros) = (10, 10);
    let h = Harness::with(config).await;
    let agent = h.agent().await;
    let refused = h.post(&format!("/agents/{agent}/chat"), json!({"message": "Write a brief"})).await;
    let problem = refused.refused(402, "budget_exceeded");
    assert!(problem["detail"].as_str().unwrap().contains("10 micro-dollars"), "{problem:#}");
    assert_eq!(h.get(&format!("/agents/{agent}")).await.expect(200)["metrics"]["cost_micros"], 0);
}

/// What a model thinks is shown while it thinks, and is no part of the reply.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thinking_is_shown_and_is_no_part_of_the_reply() {
    const THOUGHT: &str = "Let me see. ";
    fn says(_: &[Value]) -> Says {
        Says::Thought(THOUGHT.repeat(10_000), "It is noon.".into())
    }
    let model = ScriptedModel::start(says).await;
    let config = PlatformConfig { models: model.config("scripted"), ..PlatformConfig::in_memory() };
    let h = Harness::with(config).await;
    let agent = h.agent().await;
    let events = stream(&h, &format!("/agents/{agent}/chat"), json!({"message": "What time is it?"})).await;
    let text = |name: &str| {
        let of_kind = events.iter().filter(|event| event.name == name);
        of_kind.map(|event| event.data["text"].as_str().unwrap()).collect::<String>()
    };
    let shown = text("thinking.delta");
    assert!(
        (49_990..=50_000).contains(&shown.len()) && THOUGHT.repeat(10_000).starts_with(&shown),
        "{}",
        shown.len()
    );
    assert_eq!(text("message.delta"), "It is noon.");
    let names = names(&events);
    let first = names.iter().position(|name| *name == "message.delta").unwrap();
    assert!(
        names[..first].contains(&"thinking.delta") && !names[first..].contains(&"thinking.delta"),
        "{names:?}"
    );
    let run = h.get(&format!("/runs/{}", events[0].data["run_id"].as_str().unwrap())).await.expect(200);
    assert_eq!(run["message"], "It is noon.");
    let chat = h.get(&format!("/chats/{}", run["chat_id"].as_str().unwrap())).await.expect(200).to_string();
    assert!(!chat.contains("Let me see"), "{chat}");

    // Clients of OpenAI's format get it in the field that many of them show.
    let body = json!({"model": agent, "stream": true, "messages": [{"role": "user", "content": "Again?"}]});
    let answer = send(h.request(Method::POST, "/v1/chat/completions").json(&body)).await;
    let answer = answer.body.as_str().unwrap().to_owned();
    assert!(
        answer.contains("\"reasoning_content\":\"Let me see. ")
            && answer.contains("\"content\":\"It is noon.\"")
    );
}
