//! The ends of a range must be numbers, or what may become one. Liquid looks at them only after it has put the lexemes of the value
//! together to a text again, and it reads this text with the tolerant rules. So `(1..(true..2))` is accepted, and `((true..1)..2)` is not.

use super::pieces::{is_blank, skip_blanks};

/// The most steps into brackets. It is enough for each text that a person writes, and keeps hostile ones linear.
const MAX_DEPTH: usize = 64;

/// The end of a range that Liquid refuses, in the text of a value without blanks between its lexemes.
pub fn wrong_end(value: &str) -> Option<&str> {
    let mut todo = vec![(value, 0)];
    while let Some((value, depth)) = todo.pop() {
        if depth > MAX_DEPTH {
            continue;
        }
        let value = value.trim_matches(|c: char| u8::try_from(c).is_ok_and(|b| is_blank(b) || b == 0));
        if is_quoted(value) {
            continue;
        }
        if let Some((first, last)) = ends(value) {
            if let Some(wrong) = wrong_pair(first, last, depth) {
                return Some(wrong);
            }
            todo.extend([(last, depth + 1), (first, depth + 1)]);
            continue;
        }
        brackets(value, |inner| todo.push((inner, depth + 1)));
    }
    None
}

fn is_quoted(value: &str) -> bool {
    ['"', '\''].iter().any(|quote| value.starts_with(*quote) && value.ends_with(*quote))
}

/// The two ends of a text that Liquid takes for a range: brackets around it, no blank in it, and the last `..` divides it.
pub fn ends(value: &str) -> Option<(&str, &str)> {
    let inner = value.strip_prefix('(')?.strip_suffix(')')?;
    let bytes = inner.as_bytes();
    let start = skip_blanks(bytes, 0);
    let length = bytes.get(start..)?.iter().take_while(|byte| !is_blank(**byte)).count();
    let (first, rest) = match inner.get(start..start + length)?.rfind("..") {
        // The text before the dots may not be empty.
        Some(0) => return None,
        Some(at) => {
            // Blanks may stand before the dots, but then the dots are behind all that has no blank.
            let word_end = start + length;
            let after = skip_blanks(bytes, word_end);
            if after > word_end && inner.get(after..)?.starts_with("..") {
                (inner.get(start..word_end)?, inner.get(after + 2..)?)
            } else {
                (inner.get(start..start + at)?, inner.get(start + at + 2..)?)
            }
        }
        None => {
            let word_end = start + length;
            let after = skip_blanks(bytes, word_end);
            if length == 0 || !inner.get(after..)?.starts_with("..") {
                return None;
            }
            (inner.get(start..word_end)?, inner.get(after + 2..)?)
        }
    };
    let last = rest.trim_matches(|c: char| u8::try_from(c).is_ok_and(is_blank));
    (!last.is_empty() && !last.bytes().any(is_blank)).then_some((first, last))
}

/// What an end of a range can be.
#[derive(PartialEq)]
enum End {
    /// A variable, so that the whole range is computed later.
    Later,
    Number,
    Wrong,
}

fn end_of(value: &str, depth: usize) -> End {
    if is_quoted(value) || depth > MAX_DEPTH {
        return End::Number;
    }
    match value {
        "true" | "false" => End::Wrong,
        "nil" | "null" | "" | "blank" | "empty" => End::Number,
        "-" => End::Later,
        _ => match ends(value) {
            // A range of numbers is a range at once. With a variable, it is computed later.
            Some((first, last)) => match (end_of(first, depth + 1), end_of(last, depth + 1)) {
                (End::Later, _) | (_, End::Later) => End::Later,
                _ => End::Wrong,
            },
            None if is_number(value) => End::Number,
            None => End::Later,
        },
    }
}

/// The end that is wrong, if the range is computed at once.
fn wrong_pair<'a>(first: &'a str, last: &'a str, depth: usize) -> Option<&'a str> {
    match (end_of(first, depth + 1), end_of(last, depth + 1)) {
        (End::Later, _) | (_, End::Later) => None,
        (End::Wrong, _) => Some(first),
        (_, End::Wrong) => Some(last),
        _ => None,
    }
}

/// Digits and dots behind a minus.
fn is_number(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// Calls `each` with what stands in each outermost pair of square brackets. A bracket without a partner counts as text.
fn brackets<'a>(value: &'a str, mut each: impl FnMut(&'a str)) {
    let bytes = value.as_bytes();
    let mut open: Vec<usize> = Vec::new();
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'[' => open.push(at),
            b']' => {
                if let Some(start) = open.pop() {
                    while pairs.last().is_some_and(|(first, _)| *first > start) {
                        pairs.pop();
                    }
                    pairs.push((start, at));
                }
            }
            _ => {}
        }
    }
    for (start, end) in pairs {
        if let Some(inner) = value.get(start + 1..end) {
            each(inner);
        }
    }
}
