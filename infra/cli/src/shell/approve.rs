//! `approve`: the ticket of an action, and its approval by the hash of what was shown.

use std::io::{self, IsTerminal};

use serde_json::{Value, json};

use super::actions::{ceiling, may_use};
use super::api::Api;
use super::chat::confirmed;
use super::names::{self, Kind};
use super::screen::{Look, indented, line, print_json};
use super::values::{Fields, schedule};
use crate::Failure;
use crate::args::Approve;
use crate::output;
use crate::server::Change;

/// Shows the ticket, and approves the action if the person says yes or has given the hash.
///
/// # Errors
/// If the person says no, the hash is another one, or the server refuses it.
pub fn run(api: &Api, args: &Approve) -> Result<(), Failure> {
    let path = names::path(api, Kind::Action, &args.action)?;
    let action = api.get(&path, &[])?;
    let ticket = api.get(&format!("{path}/approval"), &[])?;
    let hash = ticket.text("approval_hash").to_owned();
    if let Some(seen) = &args.hash
        && *seen != hash
    {
        return Err(Failure::Message(format!(
            "not approved: the action has changed, its hash is {}, and not {seen}; look at it again",
            line(&hash)
        )));
    }
    if args.json.json && args.hash.is_none() {
        print_json(&ticket)?;
        return Err(no_hash());
    }
    if !args.json.json {
        output::print(shown(api, &action, &ticket))?;
    }
    if ticket.is("holds") && !matches!(action.text("state"), "needs_approval" | "defined") {
        if args.json.json {
            return print_json(&action);
        }
        return Ok(output::print("It is approved as it is.\n")?);
    }
    if args.hash.is_none() {
        if !io::stdin().is_terminal() || !api.screen.is_terminal() {
            return Err(no_hash());
        }
        if !confirmed("Approve it?")? {
            return Err(Failure::Message("not approved".to_owned()));
        }
    }
    let approved = api.send(Change::Post, &format!("{path}/approve"), &json!({ "approval_hash": hash }))?;
    if args.json.json {
        return print_json(&approved);
    }
    let next = approved.some("next_due").map(|at| format!("; next due {}", api.when(at))).unwrap_or_default();
    Ok(output::print(format!("Approved{next}.\n"))?)
}

fn no_hash() -> Failure {
    Failure::Message(
        "not approved: without a terminal, `--hash HASH` must say which ticket you have seen; the hash is in it".to_owned(),
    )
}

/// The ticket: everything that an approval permits.
pub(super) fn shown(api: &Api, action: &Value, ticket: &Value) -> String {
    let current = &ticket["current"];
    let mut text = format!("{}\n", api.screen.painted(&line(current.text("title")), Look::Bold));
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!("{name:<10}{value}\n"));
        }
    };
    row("agent", &line(current["agent"].text("name")));
    row("about", &line(current.text("description")));
    let when = schedule(action);
    row("when", &line(if when.is_empty() { "only when you run it" } else { when }));
    row("next", &api.when(action.text("next_due")));
    let tools = may_use(current);
    row("may use", if tools.is_empty() { "nothing beside its own notes and outputs" } else { &tools });
    row("cost", &line(ticket["expected_cost"].text("text")));
    row("ceiling", &ceiling(&current["budget"]));
    row("model", &line(current.text("model_tier")));
    let call = &current["call"];
    if call.is_object() {
        row("calls", &line(&format!("{} {}", call.text("method"), call.text("url"))));
        row("body", &line(call.text("body")));
    }
    for watch in current.items("watches") {
        row("watches", &line(&watched(watch)));
    }
    for condition in current.items("conditions") {
        row("condition", &line(&without_kind(condition)));
    }
    row("told", &line(ticket["told"].text("text")));
    for limit in ticket.items("cannot").iter().filter_map(Value::as_str) {
        row("limit", &api.screen.painted(&line(limit), Look::Careful));
    }
    for warning in ticket.items("warnings").iter().filter_map(Value::as_str) {
        row("careful", &api.screen.painted(&line(warning), Look::Careful));
    }
    text.push_str("\nWhat it does\n");
    text.push_str(&indented(current["task_config"].text("instructions"), "  "));
    text.push_str("\nExpected output\n");
    text.push_str(&indented(current["task_config"].text("expected_output"), "  "));
    let changes = ticket.items("changes");
    if !changes.is_empty() {
        text.push_str("\nChanged since it was approved\n");
    }
    for change in changes {
        text.push_str(&format!("  {}\n", line(change.text("field"))));
        text.push_str(&indented(&plain(&change["approved"]), "  - "));
        text.push_str(&indented(&plain(&change["current"]), "  + "));
    }
    text.push_str(&format!("\nhash      {}\n", line(ticket.text("approval_hash"))));
    text
}

/// A text without quotes; anything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn watched(watch: &Value) -> String {
    let what = ["url", "asset_id", "path", "project_id"].into_iter().filter_map(|field| watch.some(field));
    format!("{} {}", watch.text("kind"), what.collect::<Vec<_>>().join(" of "))
}

fn without_kind(condition: &Value) -> String {
    let mut rest = condition.clone();
    let rest = rest.as_object_mut().map(std::mem::take).unwrap_or_default();
    let parts =
        rest.iter().filter(|(name, _)| *name != "kind").map(|(name, value)| format!("{name} {value}"));
    format!("{} {}", condition.text("kind"), parts.collect::<Vec<_>>().join(", "))
}
