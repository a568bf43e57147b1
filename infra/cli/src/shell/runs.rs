//! `runs`: a list of runs, or one of them.

use serde_json::Value;

use super::actions::look;
use super::api::Api;
use super::names::{self, Kind};
use super::screen::{Look, block, line, print_json};
use super::table::{Table, short_ids};
use super::times;
use super::values::{Fields, cost, counted};
use crate::Failure;
use crate::args::Runs;
use crate::output;
use crate::url::segment;

/// How many of the newest runs are looked through for the beginning of an id.
const NEWEST: u32 = 1_000;

/// Prints a list of runs, or one of them.
///
/// # Errors
/// If the server does not answer, or there is no such run.
pub fn run(api: &Api, args: &Runs) -> Result<(), Failure> {
    if let Some(called) = &args.run {
        let run = api.get(&format!("/runs/{}", segment(&id(api, called)?)), &[])?;
        if args.json.json {
            return print_json(&run);
        }
        return Ok(output::print(shown(api, &run))?);
    }
    let action = args.action.as_deref().map(|called| names::id(api, Kind::Action, called)).transpose()?;
    let agent = args.agent.as_deref().map(|called| names::id(api, Kind::Agent, called)).transpose()?;
    let from = args.from.as_deref().map(|text| api.instant(text, "--from", false)).transpose()?;
    let to = args.to.as_deref().map(|text| api.instant(text, "--to", true)).transpose()?;
    let query = [
        ("from", from.as_deref()),
        ("to", to.as_deref()),
        ("agent_id", agent.as_deref()),
        ("action_id", action.as_deref()),
        ("state", args.state.as_deref()),
        ("kind", args.kind.as_deref()),
    ];
    let list = api.list("/runs", &query, args.limit.limit)?;
    if args.json.json {
        return print_json(&list);
    }
    let runs = list.items("data");
    let ids: Vec<&str> = runs.iter().map(|run| run.text("run_id")).collect();
    let mut table = Table::new(api.screen, &["WHEN", "STATE", "WHAT", "AGENT", "TOOK", "COST", "WHY", "ID"]);
    for (run, id) in runs.iter().zip(short_ids(api.screen, &ids)) {
        table.row([
            (api.when(run.text("at")).as_str(), Look::Plain),
            (run.text("state"), look(run.text("state"))),
            (run.some("action_title").unwrap_or(run.text("kind")), Look::Plain),
            (run.text("agent_name"), Look::Plain),
            (took(run).as_str(), Look::Plain),
            (cost(run).as_str(), Look::Plain),
            (why(run).as_str(), Look::Plain),
            (id.as_str(), Look::Dim),
        ]);
    }
    output::print(if table.is_empty() { "there are no such runs\n".to_owned() } else { table.lines() })?;
    api.note_more(&list);
    if !list.is("complete") {
        output::note("this is not everything, because there are too many actions");
    }
    Ok(())
}

fn took(run: &Value) -> String {
    times::between(run.text("started_at"), run.text("finished_at")).unwrap_or_default()
}

/// Why it did not simply succeed.
#[must_use]
pub fn why(run: &Value) -> String {
    let times = run.number("due_times").filter(|times| *times > 1);
    let times =
        times.map(|times| format!("({}) ", counted(times, "due time", "due times"))).unwrap_or_default();
    let reason = run.some("reason").or_else(|| run["error"].some("detail")).unwrap_or_default();
    format!("{times}{reason}")
}

/// The id of a run that begins like this, among the newest runs of actions and the newest turns.
///
/// # Errors
/// If there is none, or there are several.
pub fn id(api: &Api, called: &str) -> Result<String, Failure> {
    match names::digits("run_", called) {
        Some(32) => return Ok(called.to_owned()),
        Some(_) => {}
        None => {
            return Err(Failure::Message(format!(
                "`{called}` is not the id of a run; it must be `run_` and digits, as `lamplighter runs` shows it"
            )));
        }
    }
    let mut found: Vec<Value> = Vec::new();
    for kind in [None, Some("chat"), Some("setup")] {
        let mut list = api.list("/runs", &[("kind", kind)], NEWEST)?;
        found.extend(list["data"].as_array_mut().map(std::mem::take).unwrap_or_default());
    }
    names::id_in_list(called, "run_", "run", &found, "run_id", "action_title")
}

fn shown(api: &Api, run: &Value) -> String {
    let state = run.text("state");
    let mut text = format!(
        "{}  {}  {}\n",
        api.screen.painted(&line(run.text("run_id")), Look::Bold),
        line(run.text("kind")),
        api.screen.painted(&line(state), look(state))
    );
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            text.push_str(&format!("{name:<10}{value}\n"));
        }
    };
    row("agent", line(run.text("agent_id")));
    row("action", line(run.text("action_id")));
    row("chat", line(run.text("chat_id")));
    row("began", api.when(run.text("created_at")));
    row("took", times::between(run.text("created_at"), run.text("finished_at")).unwrap_or_default());
    row("cost", cost(run));
    row("model", line(run["model"].text("model")));
    if run["error"].is_object() {
        row("error", line(&format!("{} ({})", run["error"].text("detail"), run["error"].text("code"))));
    }
    row("told", line(run["told"].text("sentence")));
    if run["tainted"].is_object() {
        row("careful", "it has read what strangers wrote; what it says may be false".to_owned());
    }
    for card in run.items("cards") {
        let what = format!("{} {}: {}", card.text("tool"), card.text("state"), card.text("why"));
        row("asked", line(&what));
        if card.text("state") == "waiting" {
            row(
                "",
                format!(
                    "→ lamplighter answer {} {} yes (or no)",
                    line(run.text("run_id")),
                    line(card.text("call_id"))
                ),
            );
        }
    }
    for proposal in run.items("proposals") {
        row("draft", line(&format!("{}  {}", proposal.text("proposal_id"), proposal.text("title"))));
    }
    if let Some(message) = run.some("message") {
        text.push_str(&format!("\n{}\n", block(message.trim_end())));
    }
    text
}
