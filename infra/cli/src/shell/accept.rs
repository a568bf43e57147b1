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

/// Saves the proposed asset, defines the proposed action, or changes the action as proposed.
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
