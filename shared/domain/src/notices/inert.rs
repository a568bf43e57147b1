//! Texts from outside, made harmless: on one line, without what nobody sees, and without addresses and mentions.

use crate::text::quoting::{breaks_line, is_invisible};

/// How many combining characters may follow each other: letters of all languages need no more, and more of them cover other lines.
const COMBINING: usize = 3;

/// A text as it may be shown: one line without what nobody sees.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut marks = 0;
    for c in text.chars() {
        if c.is_control() || breaks_line(c) || c.is_whitespace() {
            if !clean.is_empty() && !clean.ends_with(' ') {
                clean.push(' ');
            }
        } else if is_invisible(c) {
            // It does not separate combining characters, and some of them are such.
            continue;
        } else if is_combining(c) {
            marks += 1;
            if marks <= COMBINING {
                clean.push(c);
            }
            continue;
        } else {
            clean.push(c);
        }
        marks = 0;
    }
    clean.truncate(clean.trim_end().len());
    clean
}

const fn is_combining(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36F}' | '\u{483}'..='\u{489}' | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}'
        | '\u{20D0}'..='\u{20FF}' | '\u{FE20}'..='\u{FE2F}')
}

/// A text as it may be shown, in which no client finds an address or a mention.
#[must_use]
pub fn inert(text: &str) -> String {
    let text: Vec<char> = visible(text).chars().collect();
    let mut out = String::with_capacity(text.len());
    for (at, &c) in text.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| text[at]);
        let after = text.get(at + 1).copied();
        match c {
            '@' | '\u{FF20}' | '\u{FE6B}' => out.push_str("(at)"),
            ':' if after.is_some_and(|next| !next.is_whitespace() && !next.is_ascii_digit()) => {
                out.push_str("[:]");
            }
            // Clients also take these for dots in names of hosts.
            '.' | '\u{3002}' | '\u{FF0E}' | '\u{FF61}' if joins(before, after) || is_address(&text, at) => {
                out.push_str("[.]");
            }
            // A command of a bot.
            '/' if before.is_none_or(char::is_whitespace) => out.push_str("[/]"),
            c => out.push(c),
        }
    }
    out
}

/// Whether a dot between these may be one in the name of a host: `a.b`, and not `3.1 GB` or the end of a sentence.
pub(super) fn joins(before: Option<char>, after: Option<char>) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    before.is_some_and(is_part) && after.is_some_and(|c| is_part(c) && !c.is_ascii_digit())
}

/// Whether the dot stands in four numbers, as in the address of a machine.
fn is_address(text: &[char], at: usize) -> bool {
    // Longer than any address of a machine.
    const NEAR: usize = 20;
    let is_part = |c: &char| c.is_ascii_digit() || *c == '.';
    let near = at.saturating_sub(NEAR);
    let begin = text[near..at].iter().rposition(|c| !is_part(c)).map_or(near, |before| near + before + 1);
    let dots = text[begin..].iter().take(2 * NEAR).take_while(|c| is_part(c)).filter(|c| **c == '.').count();
    dots >= 3
}

/// At most `max` characters of a text.
#[must_use]
pub fn cut(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    text.chars().take(max.saturating_sub(1)).chain(['…']).collect()
}
