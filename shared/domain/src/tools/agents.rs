//! Tools about agents.

use serde_json::json;

use super::Effect::Propose;
use super::Surface::Setup;
use super::ToolDef;
use super::arguments::deliverable;
use super::schema::{object, text};

pub static READY_TO_CREATE: ToolDef = ToolDef {
    to_call: Some(|input| deliverable("ready_to_create", input)),
    ..ToolDef::new(
        "ready_to_create",
        "Ends the setup conversation and proposes the agent. Call it once, when you know everything you need.",
        Propose,
        &[Setup],
        || {
            let properties = json!({
                "title": text("The agent's name.", 200),
                "goal": text("\"A [type] agent that [does what]\".", 2_000),
                "success_criteria": text("How the person will know that it works.", 2_000),
                "timeline": text("A date, a range of dates, or \"Ongoing\".", 2_000),
                "instructions": text("How it should work, as far as that was said.", 20_000),
            });
            object(&properties, &["title", "goal", "success_criteria", "timeline"])
        },
    )
};
