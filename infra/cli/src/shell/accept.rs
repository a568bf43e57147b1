//! `accept`: takes a proposal over.

use serde_json::{Value, json};

use super::api::{Api, parsed, patiently};
use super::proposals;
use super::screen::{line, print_json};
use super::values::Fields;
use crate::Failure;
use crate::args::Accept;
use crate::output;
use crate::server::Change;
use crate::url::segment;

/// Saves the proposed asset, defines the proposed action, changes the action as proposed, or does the proposed command.
///
/// # Errors
/// If there is no such proposal, or the server refuses it.
pub fn run(api: &Api, args: &Accept) -> Result<(), Failure> {
    let id = proposals::id(api, &args.proposal)?;
    let found = patiently(|| api.server.get(&format!("/proposals/{}", segment(&id)), &[]));
    let proposal = match found {
        Err(error) if error.status() == Some(404) => {
            let told =
                format!("there is no proposal {id}: it was accepted before, has expired, or never was");
            return Err(Failure::Message(told));
        }
        found => parsed(&found?.body)?,
    };
    let body = json!({ "proposal_id": id });
    let agent = segment(proposal.text("agent_id"));
    let made = match proposal.text("kind") {
        "asset" => api.send(Change::Post, &format!("/agents/{agent}/assets"), &body)?,
        "action" => api.send(Change::Post, &format!("/agents/{agent}/actions"), &body)?,
        "command" => api.send(Change::Post, &format!("/proposals/{}/accept", segment(&id)), &json!({}))?,
        "change" => {
            api.send(Change::Patch, &format!("/actions/{}", segment(proposal.text("action_id"))), &body)?
        }
        other => {
            return Err(Failure::Message(format!(
                "this program can't accept a proposal of the kind `{}`",
                line(other)
            )));
        }
    };
    if args.json.json {
        return print_json(&made);
    }
    Ok(output::print(told(proposal.text("kind"), &made))?)
}

fn told(kind: &str, made: &Value) -> String {
    if kind == "command" {
        let (title, run) = (line(made["action"].text("title")), line(made.text("run_id")));
        return match made.text("command") {
            "pause" => format!("Paused {title}. It does not run until it is resumed.\n"),
            "resume" => format!("Resumed {title}.\n"),
            "dismiss" => format!("Dismissed {title}. It never runs again.\n"),
            "rehearse" => format!("{title} is rehearsed. `lamplighter runs {run}` shows it.\n"),
            _ => format!("{title} runs now. `lamplighter runs {run}` shows it.\n"),
        };
    }
    let title = line(made.text("title"));
    if kind == "asset" {
        return format!("Saved {title}. `lamplighter assets {}` prints it.\n", line(made.text("asset_id")));
    }
    let done = if kind == "action" { "Defined" } else { "Changed" };
    let id = line(made.text("action_id"));
    if made.text("state") == "needs_approval" || made["approval"].is_null() {
        return format!("{done} {title}. It runs only after `lamplighter approve {id}`.\n");
    }
    format!("{done} {title} ({id}).\n")
}
