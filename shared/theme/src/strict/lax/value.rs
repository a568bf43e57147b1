//! How strict Liquid writes what the tolerant parser read from a fragment.

use crate::strict::pieces::{is_blank, is_word};
use crate::strict::range;

/// The most steps into brackets.
const MAX_DEPTH: usize = 16;

/// A value of strict Liquid that is the same as the fragment, if there is one.
pub fn written(fragment: &str) -> Option<String> {
    value(fragment, 0)
}

/// Whether a text is a name that can stand alone.
pub fn is_name(word: &str) -> bool {
    let (name, is_question) = match word.strip_suffix('?') {
        Some(name) => (name, true),
        None => (word, false),
    };
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| is_word(byte) || byte == b'-')
        && (is_question || name != "contains")
}

fn value(fragment: &str, depth: usize) -> Option<String> {
    if depth > MAX_DEPTH {
        return None;
    }
    let fragment = fragment.trim_matches(|c: char| u8::try_from(c).is_ok_and(|b| is_blank(b) || b == 0));
    if fragment.len() > 1
        && let Some(quote) =
            ['"', '\''].into_iter().find(|q| fragment.starts_with(*q) && fragment.ends_with(*q))
    {
        return quoted(fragment.get(1..fragment.len() - 1)?, quote);
    }
    if matches!(fragment, "nil" | "null" | "true" | "false" | "blank" | "empty") {
        return Some(fragment.to_owned());
    }
    if let Some((first, last)) = range::ends(fragment) {
        return Some(format!("({}..{})", value(first, depth + 1)?, value(last, depth + 1)?));
    }
    number(fragment).or_else(|| path(fragment, depth))
}

/// A text in quotes that it does not contain, with these if possible.
fn quoted(text: &str, quote: char) -> Option<String> {
    let other = if quote == '"' { '\'' } else { '"' };
    let quote = [quote, other].into_iter().find(|quote| !text.contains(*quote))?;
    // An output would end at its end.
    (!text.contains("}}") && !text.contains("%}")).then(|| format!("{quote}{text}{quote}"))
}

/// A number. What follows a second dot is ignored, and `1.` is `1.0`.
fn number(fragment: &str) -> Option<String> {
    let digits = fragment.strip_prefix('-').unwrap_or(fragment);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !is_number {
        return None;
    }
    let mut parts = fragment.split('.');
    let whole = parts.next()?;
    Some(match parts.next() {
        None => whole.to_owned(),
        Some("") => format!("{whole}.0"),
        Some(part) => format!("{whole}.{part}"),
    })
}

/// A variable and its properties: words and square brackets, and all else is ignored.
fn path(fragment: &str, depth: usize) -> Option<String> {
    let bytes = fragment.as_bytes();
    let partners = partners(bytes);
    let mut new = String::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if let Some(end) = partners.get(at).copied().flatten() {
            let inner = value(fragment.get(at + 1..end)?, depth + 1)?;
            if new.is_empty() {
                new.push_str("self");
            }
            new = format!("{new}[{inner}]");
            at = end + 1;
        } else if is_word(byte) || byte == b'-' {
            let start = at;
            while bytes.get(at).is_some_and(|byte| is_word(*byte) || *byte == b'-') {
                at += 1;
            }
            at += usize::from(bytes.get(at) == Some(&b'?'));
            let word = fragment.get(start..at)?;
            match (new.is_empty(), is_name(word)) {
                (true, true) => new.push_str(word),
                (true, false) => new = format!("self['{word}']"),
                (false, true) => new = format!("{new}.{word}"),
                (false, false) => new = format!("{new}['{word}']"),
            }
        } else {
            at += 1;
        }
    }
    Some(match new.as_str() {
        "" => "nil".to_owned(),
        // With other signs around it, it was the name of a variable.
        "nil" | "null" | "true" | "false" | "blank" | "empty" => format!("self['{new}']"),
        _ => new,
    })
}

/// The closing partner of each opening square bracket.
fn partners(bytes: &[u8]) -> Vec<Option<usize>> {
    let mut partners = vec![None; bytes.len()];
    let mut open = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'[' => open.push(at),
            b']' => {
                if let Some(partner) = open.pop().and_then(|start: usize| partners.get_mut(start)) {
                    *partner = Some(at);
                }
            }
            _ => {}
        }
    }
    partners
}
