//! Conditions as the tolerant parser reads them: it cuts the markup at `and` and `or`, and takes one comparison from each part.

use super::fragments::{fragment, skip};
use super::value::written;
use super::{Found, is_empty};
use crate::strict::pieces::{is_blank, is_word};

const OPERATORS: [&str; 8] = ["==", "!=", "<>", "<", ">", "<=", ">=", "contains"];

pub fn find(markup: &str) -> Found {
    let mut new = String::new();
    // From the first part to the last one: a value or comparison, then a joint, and so on.
    let mut is_joint = false;
    let parts = parts(markup);
    if parts.len().is_multiple_of(2) {
        return Found::Refused;
    }
    for part in parts {
        if is_joint {
            let joint = part.trim();
            if !matches!(joint, "and" | "or") {
                return Found::Refused;
            }
            new = format!("{new} {joint} ");
        } else {
            match comparison(part) {
                Found::Same(comparison) => new.push_str(&comparison),
                other => return other,
            }
        }
        is_joint = !is_joint;
    }
    Found::Same(new)
}

/// A value, and an operator and a value behind it.
fn comparison(part: &str) -> Found {
    let Some(left) = fragment(part, 0) else { return Found::Refused };
    let after = skip(part, left.end as usize);
    let rest = part.get(after..).unwrap_or_default();
    let length = rest.find(|c: char| !(matches!(c, '=' | '!' | '<' | '>' | '_') || c.is_ascii_lowercase()));
    let operator = rest.get(..length.unwrap_or(rest.len())).unwrap_or_default();
    let Some(left) = written(left.of(part)) else { return Found::Unwritten };
    if operator.is_empty() {
        return Found::Same(left);
    }
    if !OPERATORS.contains(&operator) {
        return Found::Error(format!("Unknown operator {operator}"));
    }
    let start = skip(part, after + operator.len());
    let right = match fragment(part, start).filter(|right| right.start as usize == start) {
        Some(right) => written(right.of(part)),
        None => Some("nil".to_owned()),
    };
    right.map_or(Found::Unwritten, |right| Found::Same(format!("{left} {operator} {right}")))
}

/// The parts between the joints, and the joints.
fn parts(markup: &str) -> Vec<&str> {
    let bytes = markup.as_bytes();
    let mut parts = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if let Some(end) = joint(bytes, at) {
            parts.extend(markup.get(at..end));
            at = end;
            continue;
        }
        let start = at;
        loop {
            let word = skip(markup, at);
            if word >= bytes.len() || joint(bytes, word).is_some() {
                break;
            }
            let end = match fragment(markup, word).filter(|piece| piece.start as usize == word) {
                Some(piece) => piece.end as usize,
                // A comma, a bar or a quote without its partner, with what follows it without a blank.
                None => bytes.get(word..).map_or(bytes.len(), |rest| {
                    word + rest.iter().position(|byte| is_blank(*byte)).unwrap_or(rest.len())
                }),
            };
            at = skip(markup, end);
        }
        if at == start {
            at += 1;
        } else {
            parts.extend(markup.get(start..at).filter(|part| !is_empty(part)));
        }
    }
    parts
}

/// The end of an `and` or `or` that begins at `at`, with a blank at each side.
fn joint(bytes: &[u8], at: usize) -> Option<usize> {
    let is_word_at = |at: usize| bytes.get(at).is_some_and(|byte| is_word(*byte));
    let is_edge = |at: usize| at.checked_sub(1).is_some_and(is_word_at) != is_word_at(at);
    let is_space = |at: usize| bytes.get(at).is_some_and(|byte| is_blank(*byte));
    if !is_edge(at) {
        return None;
    }
    let word = at + usize::from(is_space(at));
    let length = [&b"and"[..], b"or"]
        .iter()
        .find(|joint| bytes.get(word..).is_some_and(|rest| rest.starts_with(joint)))?
        .len();
    let end = word + length;
    if is_space(end) && is_edge(end + 1) {
        return Some(end + 1);
    }
    is_edge(end).then_some(end)
}
