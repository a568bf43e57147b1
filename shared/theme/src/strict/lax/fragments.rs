//! The pieces of a markup that the patterns of the tolerant parser find.

use crate::strict::pieces::{is_word, skip_blanks};
use crate::text::Span;

pub fn skip(markup: &str, at: usize) -> usize {
    skip_blanks(markup.as_bytes(), at)
}

/// The end of a text in quotes that begins at `at`.
fn quoted_end(bytes: &[u8], at: usize) -> Option<usize> {
    let quote = *bytes.get(at).filter(|byte| matches!(**byte, b'"' | b'\''))?;
    memchr::memchr(quote, bytes.get(at + 1..)?).map(|length| at + length + 2)
}

/// The end of the fragment that begins at `at`: a text in quotes, or signs without blanks, commas and bars, in which texts in quotes may stand.
fn fragment_end(bytes: &[u8], at: usize) -> Option<usize> {
    if let Some(end) = quoted_end(bytes, at) {
        return Some(end);
    }
    let mut end = at;
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'"' | b'\'' => match quoted_end(bytes, end) {
                Some(quoted) => end = quoted,
                None => break,
            },
            b',' | b'|' => break,
            byte if super::is_blank(*byte) => break,
            _ => end += 1,
        }
    }
    (end > at).then_some(end)
}

/// The first fragment at or behind `at`.
pub fn fragment(markup: &str, at: usize) -> Option<Span> {
    let bytes = markup.as_bytes();
    (at..bytes.len()).find_map(|start| fragment_end(bytes, start).map(|end| Span::new(start, end)))
}

/// The last colon outside of quotes in the signs at the beginning, from which blanks, commas and bars are away.
pub fn last_colon(markup: &str) -> Option<usize> {
    let bytes = markup.as_bytes();
    let (mut at, mut found) = (0, None);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' | b'\'' => match quoted_end(bytes, at) {
                Some(end) => at = end,
                None => break,
            },
            b',' | b'|' => break,
            byte if super::is_blank(*byte) => break,
            b':' => {
                found = Some(at);
                at += 1;
            }
            _ => at += 1,
        }
    }
    found
}

/// The end of the fragments without anything between them that begin at `at`.
pub fn fragments(markup: &str, at: usize) -> Option<usize> {
    let mut end = fragment_end(markup.as_bytes(), at)?;
    while let Some(next) = fragment_end(markup.as_bytes(), end) {
        end = next;
    }
    Some(end)
}

/// The first texts in quotes without anything between them.
pub fn quoted_string(markup: &str) -> Option<Span> {
    let bytes = markup.as_bytes();
    let (start, mut end) = (0..bytes.len()).find_map(|at| quoted_end(bytes, at).map(|end| (at, end)))?;
    while let Some(next) = quoted_end(bytes, end) {
        end = next;
    }
    Some(Span::new(start, end))
}

/// The parts behind the first `|`: each ends at a `|` or at a quote without a partner.
pub fn filters(rest: &str) -> Vec<&str> {
    let bytes = rest.as_bytes();
    let mut found = Vec::new();
    let Some(bar) = memchr::memchr(b'|', bytes) else { return found };
    let mut at = skip_blanks(bytes, bar + 1);
    while at < bytes.len() {
        let start = at;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b',' => at += 1,
                byte if super::is_blank(*byte) => at += 1,
                _ => match fragment_end(bytes, at) {
                    Some(end) => at = end,
                    None => break,
                },
            }
        }
        found.extend(rest.get(start..at).filter(|part| !part.is_empty()));
        at += 1;
    }
    found
}

/// The arguments of a filter: behind a colon or a comma, a value that may have a name.
pub fn filter_arguments(filter: &str) -> Vec<(Option<&str>, &str)> {
    let bytes = filter.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(length) = bytes.get(at..).and_then(|rest| memchr::memchr2(b':', b',', rest)) {
        let start = skip_blanks(bytes, at + length + 1);
        at += length + 1;
        let mut name_end = start;
        while bytes.get(name_end).is_some_and(|byte| is_word(*byte)) {
            name_end += 1;
        }
        let colon = skip_blanks(bytes, name_end);
        let value = skip_blanks(bytes, colon + 1);
        let named = (name_end > start && bytes.get(colon) == Some(&b':'))
            .then(|| fragment_end(bytes, value).map(|end| (filter.get(start..name_end), value, end)))
            .flatten();
        let (name, value, end) = match named {
            Some(named) => named,
            None => match fragment_end(bytes, start) {
                Some(end) => (None, start, end),
                None => continue,
            },
        };
        found.extend(filter.get(value..end).map(|value| (name, value)));
        at = end;
    }
    found
}

/// All words that a colon and a value follow, wherever they stand.
pub fn attributes(markup: &str) -> Vec<(&str, &str)> {
    let bytes = markup.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes.get(at).is_some_and(|byte| is_word(*byte)) {
            at += 1;
            continue;
        }
        let mut end = at;
        while bytes.get(end).is_some_and(|byte| is_word(*byte) || *byte == b'-') {
            end += 1;
        }
        let colon = skip_blanks(bytes, end);
        let value = skip_blanks(bytes, colon + 1);
        match (bytes.get(colon), fragment_end(bytes, value)) {
            (Some(b':'), Some(value_end)) => {
                found.extend(markup.get(at..end).zip(markup.get(value..value_end)));
                at = value_end;
            }
            _ => at = end,
        }
    }
    found
}
