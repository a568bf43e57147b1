// Leaves out what only readers of the sources need: comments, indentation and empty lines. Texts, templates and regular
// expressions stay as they are.

/// Shortens a script.
pub fn script(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len());
    // For each open template: how many braces are open in its current expression.
    let mut templates: Vec<usize> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        match bytes[at] {
            b'/' if rest.starts_with(b"//") => at += line(rest),
            b'/' if rest.starts_with(b"/*") => {
                at += find(rest, b"*/").map_or(rest.len(), |end| end + 2);
            }
            b'"' | b'\'' => at = copy(&mut out, bytes, at, at + quoted(rest)),
            b'`' => {
                at += 1;
                out.push(b'`');
                at = template(&mut out, bytes, at, &mut templates);
            }
            b'}' if templates.last() == Some(&0) => {
                templates.pop();
                out.push(b'}');
                at = template(&mut out, bytes, at + 1, &mut templates);
            }
            b'/' if begins_regex(&out) => at = copy(&mut out, bytes, at, at + regex(rest)),
            b' ' | b'\t' | b'\n' | b'\r' => {
                let end = rest.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(rest.len());
                let broke = rest[..end].contains(&b'\n');
                at += end;
                let before = out.last().copied();
                if broke {
                    // A new line may end a statement.
                    if !matches!(before, None | Some(b'\n' | b'{' | b'(' | b'[' | b',' | b';')) {
                        out.push(b'\n');
                    }
                } else if before != Some(b'\n') && needs_space(before, bytes.get(at).copied()) {
                    out.push(b' ');
                }
            }
            byte => {
                if let Some(open) = templates.last_mut() {
                    match byte {
                        b'{' => *open += 1,
                        b'}' => *open -= 1,
                        _ => {}
                    }
                }
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

/// Shortens a style sheet. A space may separate selectors, so one stays.
pub fn style(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find("/*") {
        out.push_str(&rest[..begin]);
        rest = rest[begin..].find("*/").map_or("", |end| &rest[begin + end + 2..]);
    }
    out.push_str(rest);
    let lines: Vec<&str> = out.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

fn copy(out: &mut Vec<u8>, bytes: &[u8], from: usize, to: usize) -> usize {
    out.extend_from_slice(&bytes[from..to]);
    to
}

fn line(rest: &[u8]) -> usize {
    rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len())
}

fn find(rest: &[u8], what: &[u8]) -> Option<usize> {
    rest.windows(what.len()).position(|found| found == what)
}

/// The length of a text in quotes.
fn quoted(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != rest[0] {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// Copies a template from `at` to its end, or to its next expression.
fn template(out: &mut Vec<u8>, bytes: &[u8], mut at: usize, templates: &mut Vec<usize>) -> usize {
    let begin = at;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'`' => return copy(out, bytes, begin, at + 1),
            b'$' if bytes.get(at + 1) == Some(&b'{') => {
                templates.push(0);
                return copy(out, bytes, begin, at + 2);
            }
            _ => at += 1,
        }
    }
    copy(out, bytes, begin, bytes.len())
}

/// The length of a regular expression. A slash within brackets does not end it.
fn regex(rest: &[u8]) -> usize {
    let (mut at, mut class) = (1, false);
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 1,
            b'[' => class = true,
            b']' => class = false,
            b'/' if !class => return at + 1,
            b'\n' => return at,
            _ => {}
        }
        at += 1;
    }
    rest.len()
}

/// Whether a slash begins a regular expression: it does where a value is expected.
fn begins_regex(out: &[u8]) -> bool {
    let end = out.iter().rposition(|b| !b.is_ascii_whitespace()).map_or(0, |last| last + 1);
    let Some(last) = end.checked_sub(1).map(|last| out[last]) else { return true };
    if last.is_ascii_alphanumeric() || last == b'_' || last == b'$' {
        let word = out[..end].rsplit(|b| !b.is_ascii_alphanumeric() && *b != b'_' && *b != b'$').next();
        return word.is_some_and(|word| {
            [&b"return"[..], b"typeof", b"case", b"of", b"in", b"do", b"else", b"await", b"yield"]
                .contains(&word)
        });
    }
    !matches!(last, b')' | b']' | b'}' | b'"' | b'\'' | b'`')
}

/// Whether a space between two characters separates words, or operators such as `+ +`.
fn needs_space(before: Option<u8>, after: Option<u8>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return false };
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b == b'#' || !b.is_ascii();
    (is_word(before) && is_word(after))
        || (is_word(before) && matches!(after, b'"' | b'\'' | b'`' | b'/' | b'.'))
        || (matches!(before, b'"' | b'\'' | b'`' | b'/') && is_word(after))
        || (matches!(before, b'+' | b'-' | b'/' | b'<' | b'!') && matches!(after, b'+' | b'-' | b'/' | b'!'))
}
