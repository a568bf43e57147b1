//! Reads the strings of JSON: each is a text of its own, whatever escapes it is written with.
//!
//! No parser is used, so that JSON that is cut, nested without end or one value per line is read as well. A text that looks like JSON is read
//! as such. In every other text, what stands between two quotation marks is read if it has escapes as a string of JSON or JavaScript has them:
//! JSON may follow a sentence, and be in a block of code or in a script.

use super::target::{judge_link, judge_maybe, scheme_of};
use super::{Found, MAX_DEPTH, read as read_text};

/// The fields that hold links, or whose names end so.
const FIELDS: [&str; 12] =
    ["href", "src", "url", "uri", "link", "links", "urls", "hrefs", "homepage", "website", "iri", "@id"];

/// Without one of these, a string has no link.
const MARKS: [char; 9] = ['.', ':', '/', '\\', '<', '[', '@', '&', '。'];

/// The most digits of `\u{10ffff}`.
const MAX_DIGITS: usize = 6;

/// Adds the links of the strings of a text.
pub(super) fn read(text: &str, depth: usize, found: &mut Found) {
    if depth >= MAX_DEPTH {
        return;
    }
    if text.trim_start().starts_with(['{', '[', '"']) {
        read_json(text, depth, found);
    }
    if text.contains('\\') {
        read_escaped(text, '"', depth, found);
        read_escaped(text, '\'', depth, found);
    }
}

/// Adds the links of what stands between two of these quotation marks and has escapes. Which of them begins a string is not known, so
/// what is between two strings is read as well. Each byte is read once.
fn read_escaped(text: &str, quote: char, depth: usize, found: &mut Found) {
    let (mut start, mut has_escape, mut before) = (None, false, ' ');
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        if found.is_full() {
            return;
        }
        match char {
            // `\"` is for JSON in a string.
            '\\' => has_escape |= chars.next().is_some_and(|(_, escape)| "/ux\"".contains(escape)),
            // No string goes on after the end of its line.
            '\n' => start = None,
            _ if char == quote => {
                if let Some(start) = start.filter(|_| has_escape) {
                    read_string(&text[start..at], depth, found);
                }
                // "It's" begins no string.
                let begins = quote == '"' || !before.is_alphanumeric();
                (start, has_escape) = (begins.then_some(at + 1), false);
            }
            _ => {}
        }
        before = char;
    }
    // The text may be cut.
    if let Some(start) = start.filter(|_| has_escape) {
        read_string(&text[start..], depth, found);
    }
}

/// Adds the links of one string, if its escapes are those of JSON or JavaScript.
fn read_string(text: &str, depth: usize, found: &mut Found) {
    let Some(string) = decoded(text).filter(|string| string.contains(MARKS)) else { return };
    let is_drive = scheme_of(&string).is_some_and(|scheme| scheme.len() == 1);
    if !is_drive && !is_pattern(&string) {
        found.add_again(judge_maybe(&string, found.hosts));
    }
    read_text(&string, depth + 1, found);
}

/// Whether two slashes are followed by what begins no host, as in the regular expression `//.*$`.
fn is_pattern(string: &str) -> bool {
    string.strip_prefix("//").is_some_and(|rest| {
        let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        !host
            .chars()
            .all(|char| char.is_alphanumeric() || char.is_whitespace() || "-._:%@[]。．｡".contains(char))
    })
}

/// A string as it is meant. `None` if it has other escapes than JSON and JavaScript write, such as `\d` of a regular expression and `\P` of a
/// path of Windows.
fn decoded(text: &str) -> Option<String> {
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(char) = rest.next() {
        let meant = match char {
            '\\' => match rest.next()? {
                escape @ ('u' | 'x') => {
                    let (number, after) = number(escape, rest.as_str())?;
                    rest = after.chars();
                    match u16::try_from(number) {
                        // Two halves may follow each other.
                        Ok(unit) => {
                            units.push(unit);
                            continue;
                        }
                        Err(_) => char::from_u32(number)?,
                    }
                }
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'b' => '\u{8}',
                'f' => '\u{c}',
                same @ ('"' | '\'' | '\\' | '/') => same,
                _ => return None,
            },
            char => char,
        };
        units.extend_from_slice(meant.encode_utf16(&mut [0; 2]));
    }
    Some(String::from_utf16_lossy(&units))
}

/// The number of an escape, and what follows: `002f` and `{2f}` after `u`, `2f` after `x`.
fn number(escape: char, text: &str) -> Option<(u32, &str)> {
    let (digits, after) = match text.strip_prefix('{').filter(|_| escape == 'u') {
        Some(inner) => {
            let length = inner.bytes().take(MAX_DIGITS + 1).position(|byte| byte == b'}')?;
            (&inner[..length], &inner[length + 1..])
        }
        None => text.split_at_checked(if escape == 'u' { 4 } else { 2 })?,
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some((is_number.then(|| u32::from_str_radix(digits, 16).ok()).flatten()?, after))
}

/// Adds the links of the strings of a text that looks like JSON.
fn read_json(text: &str, depth: usize, found: &mut Found) {
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
