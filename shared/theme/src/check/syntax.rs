//! Reports what strict Liquid refuses.

use super::Notes;
use super::Severity::Error;
use crate::strict::{Kind, Refusal};

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
        let mut message = format!("{} {}", refusal.message, said(&refusal.parser));
        if let Some(lax) = &refusal.lax {
            message = format!("{message}; {}", lax.sentence);
        }
        notes.add(refusal.place.start as usize, Error, CODE, message);
    }
    let Some(first) = refusals.iter().find(is_block) else { return };
    for (at, message) in misplaced {
        let same = refusals.iter().find(|refusal| is_block(refusal) && refusal.message == *message);
        notes.add(*at, Error, CODE, format!("{message} {}", said(&same.unwrap_or(first).parser)));
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
