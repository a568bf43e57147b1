//! `run`, `pause` and `resume`: what a person does with an action that is approved.

use serde_json::{Value, json};

use super::api::Api;
use super::names::{self, Kind};
use super::screen::{line, print_json};
use super::values::Fields;
use crate::Failure;
use crate::args::{NamedAction, Resume};
use crate::output;
use crate::server::{Change, ServerError};
use crate::url::segment;

/// Runs an action now, once.
///
/// # Errors
/// If there is no such action, or the server refuses it.
pub fn run(api: &Api, args: &NamedAction) -> Result<(), Failure> {
    let id = names::id(api, Kind::Action, &args.action)?;
    let started = sent(api, &id, "run", &json!({}))?;
    if args.json.json {
        return print_json(&started);
    }
    let title = line(started["action"].text("title"));
    let run = line(started.text("run_id"));
    Ok(output::print(format!("{title} runs now. `lamplighter runs {run}` shows what becomes of it.\n"))?)
}

/// Pauses an action.
///
/// # Errors
/// If there is no such action, or the server refuses it.
pub fn pause(api: &Api, args: &NamedAction) -> Result<(), Failure> {
    let id = names::id(api, Kind::Action, &args.action)?;
    let action = sent(api, &id, "pause", &json!({}))?;
    if args.json.json {
        return print_json(&action);
    }
    let title = line(action.text("title"));
    let mut text =
        format!("Paused {title}. Its due times are skipped until `lamplighter resume {}`.\n", line(&id));
    if let Some(run) = action.some("live_run") {
        text.push_str(&format!("The run {} goes on.\n", line(run)));
    }
    Ok(output::print(text)?)
}

/// Continues an action after a pause, or its run that waits for a person.
///
/// # Errors
/// If there is no such action, or the server refuses it.
pub fn resume(api: &Api, args: &Resume) -> Result<(), Failure> {
    let id = names::id(api, Kind::Action, &args.action)?;
    let body = args.message.as_ref().map_or_else(|| json!({}), |message| json!({ "message": message }));
    let action = sent(api, &id, "resume", &body)?;
    if args.json.json {
        return print_json(&action);
    }
    let reasons: Vec<_> =
        action.items("will_not_run").iter().map(|reason| line(reason.text("text"))).collect();
    let title = line(action.text("title"));
    let mut text = if action.text("state") == "paused" {
        let id = line(&id);
        format!("The run of {title} goes on. The action stays paused until `lamplighter resume {id}`.\n")
    } else if !reasons.is_empty() {
        format!("Resumed {title}.\nIt does not run: {}\n", reasons.join(" "))
    } else {
        let next = action.some("next_due").map(|at| format!("; next due {}", api.when(at)));
        format!("Resumed {title}{}.\n", next.unwrap_or_default())
    };
    if let Some(run) = action.some("live_run") {
        text.push_str(&format!("`lamplighter runs {}` shows its run.\n", line(run)));
    }
    Ok(output::print(text)?)
}

/// Sends what is to be done, once.
fn sent(api: &Api, id: &str, what: &str, body: &Value) -> Result<Value, Failure> {
    api.sent(Change::Post, &format!("/actions/{}/{what}", segment(id)), body)
        .map_err(|error| refused(error, id))
}

/// The server's refusal, and what to do if nobody has approved the action as it is.
fn refused(error: ServerError, id: &str) -> Failure {
    match error.conflict() {
        Some("not_approved" | "approval_mismatch") => Failure::Message(format!(
            "{error}\n`lamplighter approve {}` shows its ticket, and approves it",
            line(id)
        )),
        _ => error.into(),
    }
}
