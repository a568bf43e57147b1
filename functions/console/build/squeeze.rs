// Leaves out what only readers of the sources need: comments, indentation, empty lines, commas at the end of a list, and that a name is
// constant, which the tests check. Texts, templates and regular expressions stay as they are.

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
                let after = bytes.get(at).copied();
                if broke && matches!(after, Some(b')' | b']' | b'}')) && out.ends_with(b",") {
                    // A second comma would be a hole in the list.
                    if !matches!(out[..out.len() - 1].last(), None | Some(b',' | b'[')) {
                        out.pop();
                    }
                }
                // The last semicolon of a block, unless it is a whole statement: `while (a);`.
                if broke && after == Some(b'}') && out.ends_with(b";") && !out.ends_with(b"else;") {
                    let last = out[..out.len() - 1].last().copied();
                    if last.is_some_and(|b| is_word(b) || b == b'"') {
                        out.pop();
                    }
                }
                // A comment may stand between two new lines.
                let broke = broke || out.last() == Some(&b'\n');
                if out.last() == Some(&b'\n') {
                    out.pop();
                }
                let before = out.last().copied();
                if broke {
                    if may_end_statement(before, after) {
                        out.push(b'\n');
                    }
                } else if needs_space(before, after) {
                    out.push(b' ');
                }
            }
            b'c' if rest.starts_with(b"const ") && !out.last().is_some_and(|b| is_word(*b) || *b == b'.') => {
                out.extend_from_slice(b"let");
                at += b"const".len();
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

/// Whether a new line between two characters may end a statement. Each statement that is an expression ends with a semicolon, so a word
/// after a brace begins another one; otherwise the script would not be read at all.
fn may_end_statement(before: Option<u8>, after: Option<u8>) -> bool {
    let is_open = matches!(before, None | Some(b'{' | b'(' | b'[' | b',' | b';'));
    let is_closed = matches!(after, Some(b')' | b']' | b'}'));
    // `a++` and `/a/` may end one.
    let is_operator = |b: u8| b"=?:&|<>*%^".contains(&b);
    let goes_on = before.is_some_and(|b| is_operator(b) || b == b'!')
        || after.is_some_and(|b| is_operator(b) || b == b'.' || b == b',' || b == b';');
    let is_after_block = before == Some(b'}') && after.is_some_and(is_word);
    !(is_open || is_closed || goes_on || is_after_block)
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b == b'#' || !b.is_ascii()
}

/// Whether a space between two characters separates words, or operators such as `+ +`.
fn needs_space(before: Option<u8>, after: Option<u8>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return false };
    (is_word(before) && is_word(after))
        || (is_word(before) && matches!(after, b'"' | b'\'' | b'`' | b'/' | b'.'))
        || (matches!(before, b'"' | b'\'' | b'`' | b'/') && is_word(after))
        || (matches!(before, b'+' | b'-' | b'/' | b'<' | b'!') && matches!(after, b'+' | b'-' | b'/' | b'!'))
}
