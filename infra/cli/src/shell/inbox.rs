//! `inbox`: what waits for the person, and the command that answers it.

use serde_json::Value;

use super::api::Api;
use super::screen::{Look, Screen, indented, line, print_json};
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
    text.push_str(&format!("  → {}\n", api.screen.painted(&answer(api.screen, item), Look::Dim)));
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

/// The command that answers it.
fn answer(screen: Screen, item: &Value) -> String {
    let short = |id: &str| line(short_ids(screen, &[id]).first().map_or(id, String::as_str));
    let (action, run, call) = (item.text("action_id"), item.text("run_id"), line(item.text("call_id")));
    // Without a time, `why` is about the newest due time, and the item may be about another one.
    let why = |at: Option<&str>| {
        let at = at.map(|at| format!(" --at {}", line(at))).unwrap_or_default();
        format!("lamplighter why {}{at}", short(action))
    };
    match item.text("kind") {
        "approval" => format!("lamplighter approve {}", short(action)),
        "proposal" => format!("lamplighter accept {}", line(item.text("proposal_id"))),
        "call" if item.text("asks") == "outcome" => {
            format!("lamplighter answer {} {call} happened (or not-happened)", line(run))
        }
        "call" | "ceiling" => format!("lamplighter answer {} {call} yes (or no)", line(run)),
        "question" => format!("lamplighter resume {} --message \"your answer\"", short(action)),
        "unknown" | "held" => format!("lamplighter resume {}", short(action)),
        "failed" => {
            let how = if item["paused_because"].is_object() { "resume" } else { "run" };
            format!("lamplighter {how} {} (when the cause is mended)", short(action))
        }
        "missed" => format!("lamplighter run {} (or {})", short(action), why(item.some("at"))),
        "preflight" => why(item.some("next_at")),
        _ => format!("lamplighter actions {}", short(action)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_names_a_command_that_answers_it() {
        let item = |kind: &str, more: Value| {
            let mut item = json!({
                "kind": kind, "action_id": "act_1", "run_id": "run_1", "call_id": "3.0", "proposal_id": "prp_1",
                "at": "2026-11-23T12:00:00Z", "next_at": "2026-11-24T12:00:00Z",
            });
            item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            item
        };
        for (kind, more, command) in [
            ("approval", json!({}), "approve act_1"),
            ("proposal", json!({}), "accept prp_1"),
            ("call", json!({"asks": "permission"}), "answer run_1 3.0 yes (or no)"),
            ("call", json!({"asks": "outcome"}), "answer run_1 3.0 happened (or not-happened)"),
            ("ceiling", json!({}), "answer run_1 3.0 yes (or no)"),
            ("question", json!({}), "resume act_1 --message \"your answer\""),
            ("unknown", json!({}), "resume act_1"),
            ("held", json!({}), "resume act_1"),
            ("failed", json!({}), "run act_1 (when the cause is mended)"),
            (
                "failed",
                json!({"paused_because": {"code": "equal_failures"}}),
                "resume act_1 (when the cause is mended)",
            ),
            ("missed", json!({}), "run act_1 (or lamplighter why act_1 --at 2026-11-23T12:00:00Z)"),
            ("preflight", json!({}), "why act_1 --at 2026-11-24T12:00:00Z"),
            ("something new", json!({}), "actions act_1"),
        ] {
            assert_eq!(answer(Screen::plain(None), &item(kind, more)), format!("lamplighter {command}"));
        }
    }
}
