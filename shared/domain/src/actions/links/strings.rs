//! Reads the strings of JSON: each is a text of its own, whatever escapes it is written with.
//!
//! No parser is used, so that JSON that is cut, nested without end or one value per line is read as well.

use super::target::{judge_link, judge_maybe};
use super::{Found, MAX_DEPTH, read as read_text};

/// The fields that hold links, or whose names end so.
const FIELDS: [&str; 12] =
    ["href", "src", "url", "uri", "link", "links", "urls", "hrefs", "homepage", "website", "iri", "@id"];

/// Without one of these, a string has no link.
const MARKS: [char; 9] = ['.', ':', '/', '\\', '<', '[', '@', '&', '。'];

/// Adds the links of the strings of a text, if it looks like JSON.
pub(super) fn read(text: &str, depth: usize, found: &mut Found) {
    if depth >= MAX_DEPTH || !text.trim_start().starts_with(['{', '[', '"']) {
        return;
    }
    let mut is_link = false;
    let mut at = 0;
    while let Some(start) = text[at..].find('"').map(|length| at + length + 1) {
        if found.is_full() {
            return;
        }
        let (string, end) = string(text, start);
        at = end;
        if text[at..].trim_start().starts_with(':') {
            let name = string.to_lowercase();
            is_link = FIELDS.iter().any(|field| name.ends_with(field));
            continue;
        }
        if !string.contains(MARKS) {
            continue;
        }
        let hosts = found.hosts;
        found.add_again(if is_link { judge_link(&string, hosts) } else { judge_maybe(&string, hosts) });
        read_text(&string, depth + 1, found);
    }
}

/// The string that begins after a quotation mark, and where the text goes on after it.
fn string(text: &str, start: usize) -> (String, usize) {
    let mut string = String::new();
    let mut units: Vec<u16> = Vec::new();
    let mut at = start;
    let mut chars = text[start..].chars();
    let flush = |units: &mut Vec<u16>, string: &mut String| {
        string.extend(
            char::decode_utf16(units.drain(..)).map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER)),
        );
    };
    while let Some(char) = chars.next() {
        at += char.len_utf8();
        let plain = match char {
            '"' => break,
            '\\' => {
                let Some(escape) = chars.next() else { break };
                at += escape.len_utf8();
                if escape == 'u'
                    && let Some(digits) = text.get(at..at + 4)
                    && let Ok(unit) = u16::from_str_radix(digits, 16)
                {
                    units.push(unit);
                    at += 4;
                    chars = text[at..].chars();
                    continue;
                }
                match escape {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    other => other,
                }
            }
            other => other,
        };
        flush(&mut units, &mut string);
        string.push(plain);
    }
    flush(&mut units, &mut string);
    (string, at)
}
