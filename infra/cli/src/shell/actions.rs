//! `actions`: a list of actions, or one of them.

use serde_json::Value;

use super::api::Api;
use super::names::{self, Kind};
use super::screen::{Look, indented, line, print_json};
use super::table::{Table, short_ids};
use super::values::{Fields, dollars, schedule};
use crate::Failure;
use crate::args::Actions;
use crate::output;

/// Prints a list of actions, or one of them.
///
/// # Errors
/// If the server does not answer, or there is no such action.
pub fn run(api: &Api, args: &Actions) -> Result<(), Failure> {
    if let Some(called) = &args.action {
        let action = api.get(&names::path(api, Kind::Action, called)?, &[])?;
        if args.json.json {
            return print_json(&action);
        }
        return Ok(output::print(shown(api, &action))?);
    }
    let agent = args.agent.as_deref().map(|called| names::id(api, Kind::Agent, called)).transpose()?;
    let query = [("state", args.state.as_deref()), ("agent_id", agent.as_deref())];
    let list = api.list("/actions", &query, args.limit.limit)?;
    if args.json.json {
        return print_json(&list);
    }
    let actions = list.items("data");
    let ids: Vec<&str> = actions.iter().map(|action| action.text("action_id")).collect();
    let mut table = Table::new(api.screen, &["ID", "TITLE", "STATE", "NEXT", "SCHEDULE"]);
    for (action, id) in actions.iter().zip(short_ids(api.screen, &ids)) {
        let state = action.text("state");
        table.row([
            (id.as_str(), Look::Dim),
            (action.text("title"), Look::Plain),
            (state, look(state)),
            (next(api, action).as_str(), Look::Plain),
            (schedule(action), Look::Plain),
        ]);
    }
    output::print(if table.is_empty() { "there are no actions\n".to_owned() } else { table.lines() })?;
    api.note_more(&list);
    Ok(())
}

/// When an action runs next. Nothing if its next due time will not run.
fn next(api: &Api, action: &Value) -> String {
    match action.items("will_not_run") {
        [] => api.when(action.text("next_due")),
        _ => String::new(),
    }
}

/// How the state of an action or a run looks.
#[must_use]
pub fn look(state: &str) -> Look {
    match state {
        "failed" | "missed" | "unknown" => Look::Bad,
        "needs_approval" | "waiting" | "paused" | "held" => Look::Careful,
        "in_progress" | "running" | "succeeded" | "completed" | "active" => Look::Good,
        "dismissed" | "skipped" | "cancelled" | "unchanged" | "archived" => Look::Dim,
        _ => Look::Plain,
    }
}

/// An action in lines.
#[must_use]
pub fn shown(api: &Api, action: &Value) -> String {
    let state = action.text("state");
    let mut text = format!(
        "{}  {}\n{}\n",
        api.screen.painted(&line(action.text("title")), Look::Bold),
        api.screen.painted(&line(state), look(state)),
        line(action.text("action_id"))
    );
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            text.push_str(&format!("{name:<10}{value}\n"));
        }
    };
    row("about", line(action.text("description")));
    row("schedule", line(schedule(action)));
    row("next", next(api, action));
    for reason in action.items("will_not_run") {
        row("no run", line(reason.text("text")));
    }
    row("cost", line(action["expected_cost"].text("text")));
    row("ceiling", ceiling(&action["budget"]));
    row("may use", may_use(action));
    row("held", line(action.text("held_text")));
    row("paused", line(action["paused_because"].text("text")));
    for problem in action["preflight"].items("problems") {
        row("will fail", line(problem.text("text")));
    }
    if action["approval"].is_object() {
        row("approved", api.when(action["approval"].text("approved_at")));
    }
    if let Some(run) = action.some("live_run") {
        row("run", line(run));
    }
    row("hash", line(action.text("approval_hash")));
    text.push_str("\nWhat it does\n");
    text.push_str(&indented(action["task_config"].text("instructions"), "  "));
    text.push_str("\nExpected output\n");
    text.push_str(&indented(action["task_config"].text("expected_output"), "  "));
    text
}

/// The ceilings of an action's costs.
#[must_use]
pub fn ceiling(budget: &Value) -> String {
    let per = |field, unit| budget.number(field).map(|micros| format!("{} a {unit}", dollars(micros)));
    [per("per_run_micros", "run"), per("per_month_micros", "month")]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
}

/// The tools that an action may use without asking.
#[must_use]
pub fn may_use(action: &Value) -> String {
    let tools = action.items("grants").iter().filter_map(Value::as_str).map(|tool| {
        let most = action["max_uses"].number(tool).map(|most| format!(" (at most {most} a run)"));
        format!("{}{}", line(tool), most.unwrap_or_default())
    });
    tools.collect::<Vec<_>>().join(", ")
}
