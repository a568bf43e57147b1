//! Finds the beginning and the end of a JSON payload while it arrives.

use serde_json::Value;

/// Where the JSON of a payload begins.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// More text is needed.
    Wait,
    /// It is not JSON.
    Not,
    /// At this byte, possibly inside its own code fence.
    At { offset: usize, fenced: bool },
}

/// Skips whitespace, the rest of the delimiter, and the opening line of a code fence.
pub(super) fn begin(text: &str, opens: &[char], end: bool) -> Begin {
    let wait = if end { Begin::Not } else { Begin::Wait };
    let skip = |text: &str| text.len() - text.trim_start().len();
    let mut offset = text.len() - text.trim_start_matches(|c: char| c == '-' || c.is_whitespace()).len();
    let rest = &text[offset..];
    let mut fenced = false;
    if rest.starts_with("```") {
        let Some(line) = rest.find('\n') else { return wait };
        fenced = true;
        offset += line + 1;
        offset += skip(&text[offset..]);
    } else if !rest.is_empty() && "```".starts_with(rest) {
        return wait;
    }
    match text[offset..].chars().next() {
        None => wait,
        Some(first) if opens.contains(&first) => Begin::At { offset, fenced },
        Some(_) => Begin::Not,
    }
}

/// Finds the end of one JSON object or array. Brackets inside strings do not count.
#[derive(Debug, Default)]
pub(super) struct Scan {
    seen: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Scan {
    /// `text` begins with the bracket and is at least as long as in the previous call. The part that was already read
    /// is not read again.
    pub(super) fn end(&mut self, text: &str) -> Option<usize> {
        for byte in text.as_bytes()[self.seen..].iter().copied() {
            self.seen += 1;
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(self.seen);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

/// Parses JSON. It accepts the most common fault of small models: unescaped line ends and tabs in a string.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).or_else(|error| {
        let reason = || format!("it is not JSON: line {}, column {}", error.line(), error.column());
        serde_json::from_str(&escape_controls(text)).map_err(|_| reason())
    })
}

fn escape_controls(text: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    let mut out = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        match c {
            '\n' if in_string => out.push_str("\\n"),
            '\r' if in_string => out.push_str("\\r"),
            '\t' if in_string => out.push_str("\\t"),
            _ => out.push(c),
        }
        in_string ^= c == '"' && !escaped;
        escaped = c == '\\' && in_string && !escaped;
    }
    out
}
