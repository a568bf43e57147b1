//! Models that write more than a record of a run or an event may hold.

use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use tests::events::events;
use tests::model::{Says, Script, ScriptedModel};
use tests::{Harness, send};

/// More than an item of the table holds.
const LONG: usize = 500_000;

fn one_long_text(_: &[Value]) -> Says {
    Says::Text("é".repeat(LONG / 2))
}

async fn harness(script: Script) -> (Harness, ScriptedModel) {
    let model = ScriptedModel::start(script).await;
    let mut config = PlatformConfig::in_memory();
    config.models = model.config("scripted");
    (Harness::with(config).await, model)
}

#[tokio::test]
async fn a_turn_with_a_long_reply_is_completed() {
    let (h, _model) = harness(one_long_text).await;
    let agent = h.agent().await;
    let run = h.post(&format!("/agents/{agent}/chat"), json!({"message": "Write"})).await.expect(200);
    assert_eq!(run["state"], "completed", "{:.500}", run.to_string());
    // The run keeps the beginning and says so. Its events and the chat have everything.
    let message = run["message"].as_str().unwrap();
    assert!(message.len() <= 100_100 && message.ends_with("(shortened)"), "{} bytes", message.len());
    let followed = format!("/runs/{}/events", run["run_id"].as_str().unwrap());
    let request = h.request(Method::GET, &followed).header("accept", "text/event-stream");
    let all = events(send(request).await.body.as_str().unwrap());
    let deltas = all.iter().filter(|event| event.name == "message.delta");
    let text: usize = deltas.map(|event| event.data["text"].as_str().unwrap().len()).sum();
    assert!(text >= LONG, "{text} bytes");
    let chat = h.get(&format!("/chats/{}", run["chat_id"].as_str().unwrap())).await.expect(200);
    assert!(chat.to_string().len() > LONG, "{} bytes", chat.to_string().len());
}

/// A client sends the long reply back with its next message.
#[tokio::test]
async fn a_conversation_with_a_long_reply_goes_on() {
    let (h, _model) = harness(one_long_text).await;
    let agent = h.agent().await;
    let long = "a".repeat(40_000);
    for messages in [
        json!([{"role": "user", "content": "Write"}, {"role": "assistant", "content": long}, {"role": "user", "content": "Go on"}]),
        json!([{"role": "assistant", "content": long}, {"role": "user", "content": "Go on"}]),
    ] {
        let body = json!({"model": agent, "messages": messages});
        h.post("/v1/chat/completions", body).await.expect(200);
    }
}
