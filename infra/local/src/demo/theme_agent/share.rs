//! A sentence with several wishes: each one is a part for a specialist.

use serde_json::json;

use super::super::ask::Ask;
use super::super::reply::{DemoReply, shortened, text};
use super::super::theme_turn::{Call, Step, Turn};
use super::{SPECIALIST, may_call, no_change, plan, wish};

/// The most wishes of a sentence.
const MAX_PARTS: usize = 4;

/// What stands between two wishes.
const BETWEEN: [&str; 5] = [", and ", " and ", ";", ". ", "\n"];

/// The wishes of a sentence. It is one wish if a rule does not know one of its parts: the words between them may belong to a text.
pub fn parts(said: &str) -> Vec<String> {
    let mut parts = vec![said.trim().to_owned()];
    if wish::read(said).is_some() {
        return parts;
    }
    for between in BETWEEN {
        parts =
            parts.iter().flat_map(|part| part.split(between)).map(|part| part.trim().to_owned()).collect();
    }
    parts.retain(|part| !part.is_empty());
    let is_known = |part: &String| wish::read(part).is_some();
    if (1..=MAX_PARTS).contains(&parts.len()) && parts.iter().all(is_known) {
        parts
    } else {
        vec![said.to_owned()]
    }
}

/// Finds the file of each part first, so that a specialist can be given it. Then a specialist does each part.
pub fn answer(ask: &Ask, turn: &Turn, parts: &[String]) -> DemoReply {
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for part in parts {
        let task = |call: &&Call| call.name == SPECIALIST && call.input["task"] == *part;
        if let Some(call) = turn.calls.iter().find(task) {
            let said = said_by(call);
            if call.result.starts_with("It has changed ")
                && !call.result.starts_with("It has changed nothing.")
            {
                done.push(said);
            } else {
                failed.push(format!("“{part}”: {said}"));
            }
            continue;
        }
        let own = Turn { said: part.clone(), ..turn.clone() };
        let (words, name, input) = match plan(&own) {
            Ok(plan) => {
                let path = plan.input["path"].as_str().unwrap_or_default().to_owned();
                let input = json!({"kind": kind_of(&path), "task": part, "files": [path]});
                (format!("A specialist does this part: {part}."), SPECIALIST, input)
            }
            Err(Step::Call(name, input)) => {
                (if turn.calls.is_empty() { "Let me look.".to_owned() } else { String::new() }, name, input)
            }
            Err(Step::Say(why)) => {
                failed.push(format!("“{part}”: {why}"));
                continue;
            }
        };
        if may_call(ask, turn, name, parts.len()) {
            return DemoReply { text: words, call: Some((name.to_owned(), input)) };
        }
        failed.push(format!("“{part}”: I may not make the calls that this needs."));
    }
    if done.is_empty() {
        return no_change(&failed.join(" "));
    }
    let mut lines: Vec<String> = done.into_iter().map(|said| format!("- {said}")).collect();
    lines.extend(failed.into_iter().map(|why| format!("- Not done: {why}")));
    text(format!("{}\n\nThe edits wait in a change set until you apply them.", lines.join("\n")))
}

/// The first line of a specialist's report.
fn said_by(call: &Call) -> String {
    let report = call.result.split_once("which is data:\n").map_or("", |(_, report)| report);
    let line = report.lines().find(|line| !line.trim().is_empty());
    let words = line.or_else(|| call.result.lines().next()).unwrap_or_default();
    let words = words.trim_end_matches("The edit waits in a change set until you apply it.").trim();
    shortened(words, 300)
}

/// What a specialist of this file is good at.
fn kind_of(path: &str) -> &'static str {
    let name = path.trim_end_matches(".liquid");
    match name.rsplit_once('.').map(|(_, end)| end) {
        Some("css" | "scss") => "css",
        Some("js" | "mjs") => "javascript",
        Some("json") => "json",
        _ => "liquid",
    }
}
