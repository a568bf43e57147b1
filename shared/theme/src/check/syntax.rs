//! Reports what strict Liquid refuses.

use super::Notes;
use super::Severity::{Error, Warning};
use super::json::Node;
use crate::strict::{Kind, Otherwise, Refusal, accepts, refusals};

pub const CODE: &str = "LiquidSyntaxError";

/// Findings about how a tag is read.
const DOUBTS: [&str; 2] = ["EmptyOutput", "LiquidHTMLSyntaxError"];

/// The longest part of what Liquid says, in characters. It can quote a whole file.
const LONGEST: usize = 120;

/// Adds an error for each refused place. Where blocks and ends are not paired, `misplaced` has better places than Liquid, which notices it
/// only at the end of another block: the indentation shows where an end is missing.
pub fn report(refusals: &[Refusal], misplaced: &[(usize, String)], notes: &mut Notes) {
    forget_doubts(refusals, notes);
    let is_block = |refusal: &&Refusal| matches!(refusal.kind, Kind::OpenBlock | Kind::StrayEnd);
    // A tag without its end can be a block, so that one mistake gives one finding.
    let has_cause = refusals.iter().any(|refusal| refusal.kind.is_pairing() && !is_block(&refusal));
    for refusal in refusals {
        if is_block(&refusal) && (has_cause || !misplaced.is_empty()) {
            continue;
        }
        notes.add(refusal.place.start as usize, Error, CODE, sentence(refusal));
    }
    let Some(first) = refusals.iter().find(is_block) else { return };
    for (at, message) in misplaced {
        let same = refusals.iter().find(|refusal| is_block(refusal) && refusal.message == *message);
        notes.add(*at, Error, CODE, format!("{message} {}", said(&same.unwrap_or(first).parser)));
    }
}

fn sentence(refusal: &Refusal) -> String {
    let message = format!("{} {}", refusal.message, said(&refusal.parser));
    match &refusal.lax {
        Some(lax) => format!("{message}; {}", lax.sentence),
        None => message,
    }
}

/// Adds a warning for each tag that shows something else than it did.
pub fn report_otherwise(otherwise: &[Otherwise], notes: &mut Notes) {
    for Otherwise { tag, sentence } in otherwise {
        let message = format!("Shopify's parser reads this as it is written; {sentence}");
        notes.add(tag.start as usize, Warning, "ReadOtherwise", message);
    }
}

/// Adds an error for the first refused place of a value that is Liquid: a setting of the type `liquid`. `what` names it.
pub fn report_value(what: &str, value: &Node, notes: &mut Notes) {
    if let Some(first) = value.text().and_then(|text| refusals(text).into_iter().next()) {
        notes.add(value.at, Error, CODE, format!("{what}: {}", sentence(&first)));
    }
}

/// Adds an error if a `visible_if` is no condition. `inner` stands between its braces.
pub fn report_condition(what: &str, inner: &str, at: usize, notes: &mut Notes) {
    if !accepts("if", inner) {
        let first = refusals(&format!("{{% if {inner} %}}{{% endif %}}")).into_iter().next();
        let said = first.map_or_else(String::new, |first| format!(": {}", sentence(&first)));
        notes.add(at, Error, CODE, format!("{what} is no condition{said}"));
    }
}

/// A tag that is refused has no second finding about how it is read: it is not.
fn forget_doubts(refusals: &[Refusal], notes: &mut Notes) {
    let mut tags: Vec<_> = refusals.iter().map(|refusal| refusal.tag).collect();
    tags.sort_unstable();
    let is_refused = |at: usize| {
        let before = tags.partition_point(|tag| tag.start as usize <= at);
        before.checked_sub(1).and_then(|last| tags.get(last)).is_some_and(|tag| at < tag.end as usize)
    };
    notes.list.retain(|note| !DOUBTS.contains(&note.code) || !is_refused(note.at));
}

/// What Liquid says, cut if it is long.
fn said(parser: &str) -> String {
    let mut said: String = parser.trim_end().chars().take(LONGEST).collect();
    if said.len() < parser.trim_end().len() {
        said.push('…');
    }
    format!("(Liquid: {})", said.replace('\n', " "))
}
