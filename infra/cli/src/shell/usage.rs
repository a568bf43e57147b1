//! `usage`: what today and a month cost.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::Value;

use super::api::Api;
use super::screen::{Look, line, print_json};
use super::table::Table;
use super::values::{Fields, dollars};
use crate::Failure;
use crate::args::Usage;
use crate::output;

/// How many agents and actions are shown.
const MOST: usize = 10;

/// Prints the costs.
///
/// # Errors
/// If the server does not answer, or the month is none.
pub fn run(api: &Api, args: &Usage) -> Result<(), Failure> {
    let this_month = || Timestamp::now().strftime("%Y-%m").to_string();
    let month = args.month.clone().unwrap_or_else(this_month);
    let usage = api.get("/usage", &[("month", Some(&month))])?;
    if args.json.json {
        return print_json(&usage);
    }
    let micros = |field| usage.number(field).unwrap_or(0);
    let mut text = format!(
        "today     {} of {} (UTC, {})\n",
        dollars(micros("spent_micros")),
        dollars(micros("ceiling_micros")),
        line(usage.text("date"))
    );
    let reserved = micros("committed_micros") - micros("spent_micros");
    if reserved > 0 {
        text.push_str(&format!(
            "          {} more are reserved for calls that are under way\n",
            dollars(reserved)
        ));
    }
    let of_month = &usage["month"];
    text.push_str(&format!("{:<10}{}\n", line(of_month.text("month")), amount(&of_month["total"])));
    for (heading, list, path, field, name) in [
        ("AGENT", "by_agent", "/agents", "agent_id", "name"),
        ("ACTION", "by_action", "/actions", "action_id", "title"),
    ] {
        let rows = of_month.items(list);
        if rows.is_empty() {
            continue;
        }
        let names = names(api, path, field, name);
        let mut table = Table::new(api.screen, &[heading, "COST", "CALLS"]);
        for row in rows.iter().take(MOST) {
            let id = row.text(field);
            let called = if id.is_empty() { "(other)" } else { names.get(id).map_or(id, String::as_str) };
            table.row([
                (called, Look::Plain),
                (amount(row).as_str(), Look::Plain),
                (calls(row).as_str(), Look::Plain),
            ]);
        }
        text.push_str(&format!("\n{}", table.lines()));
    }
    let mut table = Table::new(api.screen, &["MODEL", "PROVIDER", "COST", "CALLS"]);
    for row in of_month.items("by_model") {
        table.row([
            (row.text("model"), Look::Plain),
            (row.text("provider"), Look::Plain),
            (amount(row).as_str(), Look::Plain),
            (calls(row).as_str(), Look::Plain),
        ]);
    }
    if !table.is_empty() {
        text.push_str(&format!("\n{}", table.lines()));
    }
    Ok(output::print(text)?)
}

fn amount(used: &Value) -> String {
    dollars(used.number("cost_micros").unwrap_or(0))
}

fn calls(used: &Value) -> String {
    used.number("calls").map(|calls| calls.to_string()).unwrap_or_default()
}

/// Names by id. Without them, the ids are shown.
fn names(api: &Api, path: &str, field: &str, name: &str) -> HashMap<String, String> {
    let list = api.list(path, &[], 200).unwrap_or_default();
    list.items("data")
        .iter()
        .map(|thing| (thing.text(field).to_owned(), thing.text(name).to_owned()))
        .collect()
}
