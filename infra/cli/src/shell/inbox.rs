//! `inbox`: what waits for the person, and the command that answers it.

use serde_json::Value;

use super::api::Api;
use super::screen::{Look, indented, line, print_json};
use super::table::short_ids;
use super::values::{Fields, counted, dollars, schedule};
use crate::Failure;
use crate::args::Inbox;
use crate::output;

/// Prints what waits.
///
/// # Errors
/// If the server does not answer.
pub fn run(api: &Api, args: &Inbox) -> Result<(), Failure> {
    let inbox = api.get("/inbox", &[])?;
    if args.json.json {
        return print_json(&inbox);
    }
    let items = inbox.items("data");
    let mut text = String::new();
    for item in items.iter().take(args.limit.limit as usize) {
        text.push_str(&shown(api, item));
        text.push('\n');
    }
    let live = inbox.number("live").unwrap_or(0);
    if live > 0 {
        text.push_str(&format!("{} under way\n", counted(live, "run is", "runs are")));
    }
    if items.is_empty() {
        text.push_str("nothing waits for you\n");
    }
    output::print(text)?;
    if items.len() > args.limit.limit as usize {
        output::note(&format!(
            "{} more wait; `--limit N` shows more of them",
            items.len() - args.limit.limit as usize
        ));
    }
    if !inbox.is("complete") {
        output::note("this is not everything, because there is too much");
    }
    Ok(())
}

/// An item: what waits, of whom, since when, and what to do.
fn shown(api: &Api, item: &Value) -> String {
    let kind = item.text("kind");
    let look = match kind {
        "failed" | "missed" | "preflight" => Look::Bad,
        "approval" | "proposal" => Look::Good,
        _ => Look::Careful,
    };
    let of =
        [item.some("agent_name"), item.some("action_title").filter(|title| *title != item.text("title"))];
    let of: Vec<String> = of.into_iter().flatten().map(line).collect();
    let mut text = format!(
        "{}  {}  {}\n",
        api.screen.painted(kind_word(kind), look),
        api.screen.painted(&line(item.text("title")), Look::Bold),
        api.screen.painted(
            &[of.join(", "), api.when(item.text("at"))]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join(", "),
            Look::Dim
        )
    );
    text.push_str(&indented(item.text("text"), "  "));
    if let Some(arguments) = item["arguments"].as_object() {
        text.push_str(&indented(
            &format!("{} {}", item.text("tool"), Value::Object(arguments.clone())),
            "  ",
        ));
    }
    if let Some(cost) = item.number("cost_micros") {
        text.push_str(&format!("  costs about {}\n", dollars(cost)));
    }
    for problem in item.items("problems") {
        text.push_str(&indented(problem.text("text"), "  "));
    }
    if item.some("schedule_text").is_some() {
        let next = item.some("next_at").map(|at| format!(", next {}", api.when(at))).unwrap_or_default();
        text.push_str(&format!("  {}{next}\n", line(schedule(item))));
    }
    if let Some(until) = item.some("expires_at") {
        text.push_str(&format!("  until {}\n", api.when(until)));
    }
    text.push_str(&format!("  → {}\n", api.screen.painted(&answer(api, item), Look::Dim)));
    text
}

fn kind_word(kind: &str) -> &str {
    match kind {
        "call" => "asks",
        "ceiling" => "needs money",
        "question" => "asks",
        "unknown" => "unclear",
        "held" => "held",
        "failed" => "failed",
        "missed" => "missed",
        "preflight" => "will fail",
        "approval" => "approve",
        "proposal" => "draft",
        _ => "waits",
    }
}

/// What answers it: a command, or a page of the console.
fn answer(api: &Api, item: &Value) -> String {
    let short = |id: &str| line(short_ids(api.screen, &[id]).first().map_or(id, String::as_str));
    let (action, run, call) = (item.text("action_id"), item.text("run_id"), line(item.text("call_id")));
    match item.text("kind") {
        "approval" => format!("lamplighter approve {}", short(action)),
        "proposal" => format!("lamplighter accept {}", line(item.text("proposal_id"))),
        "call" if item.text("asks") == "outcome" => {
            format!("lamplighter answer {} {call} happened (or not-happened)", line(run))
        }
        "call" | "ceiling" => format!("lamplighter answer {} {call} yes (or no)", line(run)),
        "failed" | "missed" | "preflight" => format!("lamplighter why {}", short(action)),
        _ => format!("lamplighter actions {}", short(action)),
    }
}
