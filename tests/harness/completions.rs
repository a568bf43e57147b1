//! Platforms for clients of the OpenAI API.

#![allow(clippy::unwrap_used, reason = "a test's helpers panic as its body does")]

use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};

use crate::Harness;
use crate::model::{Says, Script, ScriptedModel};

/// A platform whose models answer as `script` says, the model, and an agent.
pub async fn scripted(script: Script, model: &str) -> (Harness, ScriptedModel, String) {
    let scripted = ScriptedModel::start(script).await;
    let mut config = PlatformConfig::in_memory();
    config.models = scripted.config(model);
    config.models.features.structured_outputs = true;
    let h = Harness::with(config).await;
    let agent = h.agent().await;
    (h, scripted, agent)
}

/// Answers with words; asked again, with JSON, unless the person calls it hopeless.
fn forgets(messages: &[Value]) -> Says {
    let all = json!(messages).to_string();
    let last = messages.last().unwrap()["content"].to_string();
    Says::Text(match (all.contains("hopeless"), last.contains("could not be read")) {
        (false, true) => "```json\n{\"city\": \"Kiel\", \"n\": 3}\n```".into(),
        _ => "It is Kiel.".into(),
    })
}

/// A server whose model forgets that its reply must be JSON, and repairs it.
pub async fn forgetful() -> (Harness, ScriptedModel, String) {
    scripted(forgets, "gpt-5-chat-latest").await
}
