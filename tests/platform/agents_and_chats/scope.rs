//! The reach of an agent's tools: its own things, but not those of another agent or another owner.

use std::time::Duration;

use domain::ids::{AgentId, Owner};
use domain::tools::actions::QUERY_ACTIONS;
use domain::tools::assets::{QUERY_ASSETS, READ_ASSET};
use domain::tools::messages::READ_MESSAGES;
use domain::tools::practices::QUERY_PRACTICE;
use domain::tools::runs::EXPLAIN_OWN_ACTION;
use domain::tools::{Effect, LOOP, ToolCall};
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use shared::flows::tools::{Reach, look_up};
use tests::Harness;
use tests::made;
use tests::model::{Says, ScriptedModel};

/// The tools that look something up.
const LOOKING: [&str; 3] = ["query_actions", "query_assets", "read_asset"];

fn text(message: &Value) -> &str {
    message["content"].as_str().unwrap_or_default()
}

/// A model that calls the tools that the person's newest message names as `CALL tool {…}`. In a run it saves the
/// results, and in a chat it replies with them.
fn obeys(request: &[Value]) -> Says {
    let results: Vec<&str> = request.iter().filter(|m| m["role"] == "tool").map(text).collect();
    let asked = request.iter().rev().find(|m| m["role"] == "user").map(text).unwrap_or_default();
    // What it is told of memory may name earlier calls.
    let asked = asked.rsplit("</lamplighter_memory>").next().unwrap_or_default();
    let in_run = asked.contains("IN A RUN");
    match results[..] {
        [result] if in_run => Says::Call("save_output", json!({"title": "Told", "content": result})),
        [result] => Says::Text(format!("TOLD {result}")),
        [_, ..] => Says::Text("Done.".to_owned()),
        [] => {
            let call = asked.rsplit("CALL ").next().unwrap_or_default();
            let name = LOOKING.into_iter().find(|name| call.starts_with(name)).unwrap_or("query_actions");
            let arguments = call.lines().next().unwrap_or_default().trim_start_matches(name);
            Says::Call(name, serde_json::from_str(arguments.trim()).unwrap_or_else(|_| json!({})))
        }
    }
}

struct Two {
    h: Harness,
    _model: ScriptedModel,
    mine: String,
    /// Another agent of the same owner, its asset and its action.
    other: String,
    asset: String,
    action: String,
}

const SECRET: &str = "the other agent's secret";

async fn two_agents() -> Two {
    let model = ScriptedModel::start(obeys).await;
    let h = Harness::with(PlatformConfig { models: model.config("scripted"), ..PlatformConfig::in_memory() })
        .await;
    let (mine, other) = (h.agent().await, h.agent().await);
    let asset = json!({"title": "Secret", "content": SECRET});
    let asset = h.post(&format!("/agents/{other}/assets"), asset).await.expect(201);
    let action = h.post(&format!("/agents/{other}/actions"), action(SECRET)).await.expect(201);
    let id = |value: &Value, name: &str| value[name].as_str().unwrap().to_owned();
    Two { asset: id(&asset, "asset_id"), action: id(&action, "action_id"), _model: model, h, mine, other }
}

fn action(instructions: &str) -> Value {
    json!({
        "title": "Work", "description": "d", "priority": "low",
        "task_config": {"instructions": instructions, "expected_output": "o"}
    })
}

/// The result of a tool for a model in a chat with this agent.
async fn told_in_chat(two: &Two, agent: &str, call: &str) -> String {
    let body = json!({"message": format!("CALL {call}")});
    let turn = two.h.post(&format!("/agents/{agent}/chat"), body).await.expect(200);
    turn["message"].as_str().unwrap().strip_prefix("TOLD ").expect("a result").to_owned()
}

/// The result of a tool for a model in a run of this agent.
async fn told_in_run(two: &Two, agent: &str, call: &str) -> String {
    let instructions = format!("IN A RUN\nCALL {call}");
    let made = two.h.post(&format!("/agents/{agent}/actions"), action(&instructions)).await.expect(201);
    let path = format!("/actions/{}", made["action_id"].as_str().unwrap());
    two.h.post(&format!("{path}/approve"), json!({"approval_hash": made["approval_hash"]})).await.expect(200);
    let run = two.h.post(&format!("{path}/run"), json!({})).await.expect(202);
    let run = format!("{path}/runs/{}", run["run_id"].as_str().unwrap());
    loop {
        let state = two.h.get(&run).await.expect(200);
        if state["state"] == "succeeded" {
            let outputs = two.h.get(&format!("{run}/outputs")).await.expect(200);
            let asset = outputs["data"][0]["asset_id"].as_str().unwrap().to_owned();
            let content = two.h.get(&format!("/assets/{asset}/content")).await.expect(200);
            return content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        }
        assert_ne!(state["state"], "failed", "{state:#}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn an_agents_tools_read_only_its_own_data_in_chats_and_runs() {
    let two = two_agents().await;
    let read = format!("read_asset {{\"asset_id\": \"{}\"}}", two.asset);
    for call in [read.as_str(), "query_assets {}", "query_actions {}"] {
        for told in [told_in_chat(&two, &two.mine, call).await, told_in_run(&two, &two.mine, call).await] {
            assert!(!told.contains(SECRET) && !told.contains("Secret"), "{call}: {told}");
            assert!(!told.contains(&two.action), "{call}: {told}");
        }
    }
    let told = told_in_chat(&two, &two.mine, &read).await;
    assert!(told.ends_with(&format!("there is no asset {}", two.asset)), "{told}");
    // Its own agent reads it.
    assert!(told_in_chat(&two, &two.other, &read).await.contains(SECRET));
    assert!(told_in_run(&two, &two.other, &read).await.contains(SECRET));
    assert!(told_in_chat(&two, &two.other, "query_assets {}").await.contains(&two.asset));
    assert!(told_in_chat(&two, &two.other, "query_actions {}").await.contains(&two.action));
    // It is also not part of what the model is shown.
    let sent = two._model.sent();
    let mine = sent.iter().filter(|request| {
        let words = request.to_string();
        words.contains("Secret") && !words.contains(&two.asset)
    });
    assert_eq!(mine.count(), 0, "{sent:#?}");
}

#[tokio::test]
async fn every_read_tool_is_limited_to_its_agent_and_owner() {
    let h = Harness::start().await;
    let (mine, other) = (h.agent().await, h.agent().await);
    let of_other =
        h.post(&format!("/agents/{other}/assets"), json!({"title": "Secret", "content": SECRET})).await;
    let of_other = of_other.expect(201)["asset_id"].as_str().unwrap().to_owned();
    h.post(&format!("/agents/{other}/actions"), action("Secret")).await.expect(201);
    let foreign = made::foreign(&h).await;
    let foreign = foreign.asset.trim_start_matches("/assets/").to_owned();

    let cx = &h.platform.cx;
    let mine: AgentId = mine.parse().unwrap();
    let mine = cx.store.agent(&made::local(), mine).await.unwrap().unwrap().value;
    let inputs = [
        (&QUERY_ACTIONS, vec![json!({}), json!({"state": "defined", "limit": 100})]),
        (&QUERY_ASSETS, vec![json!({}), json!({"query": "e"}), json!({"asset_type": "document"})]),
        (&READ_ASSET, vec![json!({"asset_id": of_other}), json!({"asset_id": foreign})]),
    ];
    for owner in [made::local(), Owner::new("a-third").unwrap()] {
        for (tool, inputs) in &inputs {
            for input in inputs {
                let call = ToolCall::parse(tool, input).unwrap();
                match look_up(cx, &owner, Reach::of(&mine), call).await.unwrap() {
                    Ok(told) => assert!(told == r#"{"actions":[]}"# || told == r#"{"assets":[]}"#, "{told}"),
                    Err(sentence) => assert!(sentence.starts_with("there is no asset ast_"), "{sentence}"),
                }
            }
        }
    }
    // Every tool that only reads is tried above.
    // `read_messages` knows one conversation alone: see `long_chats::older_messages_are_read_by_page_and_by_text`.
    // Practices belong to the person and to no agent: see `practices.rs`. Those of another owner are tried below.
    // `explain_action` reads the agent's own actions: see `explained.rs`.
    let elsewhere = [&READ_MESSAGES, &QUERY_PRACTICE, &EXPLAIN_OWN_ACTION];
    let reading = LOOP.iter().filter(|tool| tool.effect == Effect::Read && !elsewhere.contains(tool));
    let reading = reading.map(|tool| tool.name);
    assert_eq!(reading.collect::<Vec<_>>(), inputs.map(|(tool, _)| tool.name));

    let practice = h.post("/practices", json!({"name": "Secret"})).await.expect(201);
    let call = |input: &Value| ToolCall::parse(&QUERY_PRACTICE, input).unwrap();
    let stranger = Owner::new("a-third").unwrap();
    let told = look_up(cx, &stranger, Reach::of(&mine), call(&json!({}))).await.unwrap();
    assert_eq!(told, Ok(r#"{"practices":[]}"#.to_owned()));
    for named in [&json!("Secret"), &practice["practice_id"]] {
        let told =
            look_up(cx, &stranger, Reach::of(&mine), call(&json!({ "practice": named }))).await.unwrap();
        assert_eq!(told, Err("the person has no practices".to_owned()));
    }
}
