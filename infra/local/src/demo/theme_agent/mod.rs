//! The theme agent of the demo: true small edits for a few sentences, by plain rules.
//!
//! `theme_turn` has read what was said and done so far. `wish` finds out what a sentence wants, `places` finds the place of an edit, `stored`
//! finds values in JSON files, `edits` writes the calls, and `share` gives a sentence with several wishes to specialists. Each answer follows from the request alone: a rule runs from its beginning
//! each time, and asks for the first thing that no result says yet.

mod edits;
mod places;
mod share;
mod stored;
mod wish;

use serde_json::json;

use super::ask::Ask;
use super::reply::{DEMO, DemoReply, shortened, text};
use super::theme_turn::{Call, Step, Turn};

/// The most calls of a turn, with the one that takes an edit back.
const MAX_CALLS: usize = 8;

/// The tool that gives a part of the work to another model.
const SPECIALIST: &str = "run_specialist";

/// The words with which a model says that nothing must be changed.
const NO_CHANGE: &str = "NO CHANGE: ";

const ABILITIES: &str = "I can do these: \"Make the header sticky\"; \"Change the announcement to Free shipping over 50\"; \"Change the button \
                         colour to #0a7\"; and \"Rename Sold out to Gone\", if the old text stands in the theme once. With the key of a \
                         provider, a real model does the rest.";

/// What a rule leads to if it finds its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    tool: &'static str,
    input: serde_json::Value,
    /// What is said when the edit is made: a sentence that names the file.
    done: String,
}

pub fn answer(ask: &Ask, turn: &Turn) -> DemoReply {
    match turn.mode.as_str() {
        "ask" => return text(about_files(turn)),
        "plan" => {
            return text(format!(
                "{DEMO}I make no plans for a theme. Say in one sentence what shall change. {ABILITIES}"
            ));
        }
        _ => {}
    }
    let parts = share::parts(&turn.said);
    if parts.len() > 1 && ask.offers(SPECIALIST) {
        return share::answer(ask, turn, &parts);
    }
    if let Some((at, edit)) = turn.edit() {
        return after(ask, turn, at, edit);
    }
    match plan(turn) {
        Ok(plan) if may_call(ask, turn, plan.tool, 1) => {
            DemoReply { text: "I make the edit.".to_owned(), call: Some((plan.tool.to_owned(), plan.input)) }
        }
        Err(Step::Call(name, input)) if may_call(ask, turn, name, 1) => {
            let words = if turn.calls.is_empty() { "Let me look." } else { "" };
            DemoReply { text: words.to_owned(), call: Some((name.to_owned(), input)) }
        }
        Err(Step::Say(why)) => no_change(&why),
        Ok(_) | Err(Step::Call(..)) => no_change("I may not make the calls that this needs."),
    }
}

/// Whether a turn with so many wishes may make one more call. One call is left for taking the edit back.
fn may_call(ask: &Ask, turn: &Turn, tool: &str, wishes: usize) -> bool {
    ask.offers(tool) && turn.calls.len() + 1 < MAX_CALLS * wishes
}

fn no_change(why: &str) -> DemoReply {
    text(format!("{NO_CHANGE}{why}"))
}

fn plan(turn: &Turn) -> Result<Plan, Step> {
    match wish::read(&turn.said) {
        Some(wish::Wish::Sticky) => places::sticky(turn),
        Some(wish::Wish::Announcement(words)) => places::announcement(turn, &words),
        Some(wish::Wish::ButtonColour(colour)) => places::button(turn, &colour),
        Some(wish::Wish::Text { old, new }) => places::words(turn, &old, &new),
        None => {
            Err(Step::Say(format!("I am Lamplighter's demo model, which follows plain rules. {ABILITIES}")))
        }
    }
}

/// What follows the answer to an edit.
fn after(ask: &Ask, turn: &Turn, at: usize, edit: &Call) -> DemoReply {
    let path = edit.input["path"].as_str().unwrap_or_default();
    let first = |text: &str| shortened(text.lines().next().unwrap_or_default(), 300);
    if edit.is_error {
        return no_change(&format!("the edit of `{path}` was refused: {}", first(&edit.result)));
    }
    let Some(number) = edit.result.strip_prefix("edit ").and_then(|rest| rest.split(' ').next()) else {
        return no_change(&format!("`{path}` is already like this."));
    };
    if let Some((_, problems)) = edit.result.split_once("This edit has made wrong:\n") {
        let problem = first(problems);
        return match turn.calls[at + 1..].iter().find(|call| call.name == "undo_edit") {
            None => match number.parse::<u64>() {
                Ok(number) if ask.offers("undo_edit") => DemoReply {
                    text: "The edit has made something wrong, so I take it back.".to_owned(),
                    call: Some(("undo_edit".to_owned(), json!({ "edit": number }))),
                },
                _ => text(format!(
                    "My edit of `{path}` has made something wrong, so don't apply it: {problem}"
                )),
            },
            Some(undo) if undo.is_error => text(format!(
                "My edit of `{path}` has made something wrong, and I could not take it back, so don't apply it: {problem}"
            )),
            Some(_) => {
                no_change(&format!("my edit of `{path}` made something wrong, so I took it back: {problem}"))
            }
        };
    }
    let done = match plan(&turn.until(at)) {
        Ok(plan) => plan.done,
        Err(_) => format!("`{path}` is edited."),
    };
    text(format!("{done} The edit waits in a change set until you apply it."))
}

/// The answer to a question: the files that the briefing names.
fn about_files(turn: &Turn) -> String {
    let intro = "I am Lamplighter's demo model, which follows plain rules and does not understand questions.";
    if turn.files.is_empty() {
        return format!("{intro} I found no file that this one is about.");
    }
    let line = |(path, why): &(String, String)| match why.as_str() {
        "" => format!("- `{path}`"),
        why => format!("- `{path}`: {why}"),
    };
    let lines: Vec<String> = turn.files.iter().map(line).collect();
    format!("{intro} These files belong to this one, best match first:\n\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests;
