//! `due`: what comes next. The rest of today is from the day, with every due time; after it, each action has its next one. What will not
//! run follows, with the reason.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::api::Api;
use super::screen::{Look, Screen, line, print_json};
use super::table::{Table, short_ids};
use super::values::{Fields, schedule};
use crate::Failure;
use crate::args::Due;
use crate::output;

/// How many actions are looked at.
const ACTIONS: u32 = 2_000;

/// Prints what comes next.
///
/// # Errors
/// If the server does not answer.
pub fn run(api: &Api, args: &Due) -> Result<(), Failure> {
    let day = api.get("/day", &[])?;
    let actions = api.list("/actions", &[("state", Some("scheduled"))], ACTIONS)?;
    let mut coming: Vec<(&str, &Value)> = day
        .items("data")
        .iter()
        .filter(|item| item.text("state") == "due" && item.text("run_id").is_empty())
        .map(|item| (item.text("at"), item))
        .collect();
    let idle: Vec<&Value> = day.items("not_running").iter().chain(day.items("not_running_later")).collect();
    let idle_ids: BTreeSet<&str> = idle.iter().map(|item| item.text("action_id")).collect();
    let later = actions.items("data").iter().filter_map(|action| {
        let next = action.some("next_due")?;
        let runs = action.items("will_not_run").is_empty() && !idle_ids.contains(action.text("action_id"));
        let is_later = runs && next >= day.text("to");
        is_later.then_some((next, action))
    });
    coming.extend(later);
    coming.sort_by_key(|(at, _)| *at);
    if args.json.json {
        let later: Vec<&Value> =
            coming.iter().filter(|(at, _)| *at >= day.text("to")).map(|(_, action)| *action).collect();
        return print_json(&json!({ "day": day, "later": later }));
    }
    let limit = args.limit.limit as usize;
    let ids: Vec<&str> = coming.iter().take(limit).map(|(_, item)| item.text("action_id")).collect();
    let mut table = Table::new(api.screen, &["WHEN", "ACTION", "AGENT", "SCHEDULE", "ID"]);
    for ((at, item), id) in coming.iter().zip(short_ids(api.screen, &ids)) {
        table.row([
            (api.when(at).as_str(), Look::Plain),
            (item.some("action_title").unwrap_or(item.text("title")), Look::Plain),
            (item.text("agent_name"), Look::Plain),
            (schedule(item), Look::Dim),
            (id.as_str(), Look::Dim),
        ]);
    }
    let mut text = String::new();
    if let Some(at) = day.some("stopped_at") {
        text.push_str(&format!(
            "{} since {}; nothing runs until `lamplighter start`\n",
            api.screen.painted("the account is stopped", Look::Bad),
            api.when(at)
        ));
    }
    text.push_str(&table.lines());
    let not_running = not_running(api.screen, &idle, |at| api.when(at));
    if !table.is_empty() && !not_running.is_empty() {
        text.push('\n');
    }
    text.push_str(&not_running.lines());
    for more in day.items("more") {
        text.push_str(&format!(
            "{} more today of {}\n",
            more.number("count").unwrap_or(0),
            line(more.text("action_id"))
        ));
    }
    if text.is_empty() {
        text.push_str("nothing is due\n");
    }
    output::print(text)?;
    if coming.len() > limit {
        output::note("there are more; `--limit N` shows more of them");
    }
    if actions.is("has_more") {
        output::note(&format!("only the newest {ACTIONS} actions were looked at"));
    }
    Ok(())
}

/// What will not run, with the reason.
fn not_running(screen: Screen, items: &[&Value], when: impl Fn(&str) -> String) -> Table {
    let mut table = Table::new(screen, &["WHEN", "WILL NOT RUN", "WHY"]);
    for item in items {
        table.row([
            (when(item.text("next_at")).as_str(), Look::Plain),
            (item.text("action_title"), Look::Plain),
            (item.text("text"), Look::Careful),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    #[test]
    fn a_long_name_leaves_the_reason_in_its_column() {
        let paused = "You paused the action at 2026-11-29 14:52:05 (Europe/Berlin).";
        let items = ["A".repeat(60), "日本".repeat(30), "Short".to_owned()]
            .map(|name| json!({"action_title": name, "next_at": "Mon 09:00", "text": paused}));
        let items: Vec<&Value> = items.iter().collect();
        let text = not_running(Screen::plain(Some(80)), &items, str::to_owned).lines();
        let lines: Vec<&str> = text.lines().collect();
        let column = |line: &str, of: &str| line.find(of).map(|at| line[..at].width()).unwrap();
        let why = column(lines[0], "WHY");
        assert_eq!(lines.len(), 4, "{text}");
        for line in &lines[1..] {
            assert!(line.width() <= 80 && line.starts_with("Mon 09:00  "), "{text}");
            assert_eq!(column(line, "You paused the action"), why, "{text}");
        }
        // A pipe gets all of it.
        let text = not_running(Screen::plain(None), &items, str::to_owned).lines();
        assert!(text.lines().nth(1).unwrap().ends_with(&format!("{}  {paused}", " ".repeat(60))), "{text}");
    }
}
