//! Reads the links of CSS, as the tokenizer of CSS Syntax does: with its comments, strings and escapes.

use super::Found;
use super::target::{judge_maybe, judge_read};

/// What a style is read from.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

/// Adds the links of a style sheet, or of the value of `style`, that are not permitted.
///
/// A string is a link after `@import`, within each function, and in a property that other properties use. Elsewhere, such as in
/// `content: "Note: "`, it is one only if it looks so.
pub(super) fn read(text: &str, found: &mut Found) {
    let hosts = found.hosts;
    let mut reader = Reader { text, at: 0 };
    // How many functions are open, and whether strings outside of them are links.
    let (mut depth, mut is_rule, mut is_custom) = (0_usize, false, false);
    let mut after_equals = false;
    while let Some(char) = reader.peek() {
        if found.is_full() {
            return;
        }
        let equals = std::mem::take(&mut after_equals);
        match char {
            '/' if reader.rest().starts_with("/*") => {
                let comment = &reader.rest()[2..];
                reader.at += 2 + comment.find("*/").map_or(comment.len(), |end| end + 2);
            }
            '"' | '\'' => {
                let string = reader.string(char);
                // `a[href^="mailto:"]` selects elements.
                let is_link = !equals && (depth > 0 || is_rule || is_custom);
                found.add_again(if is_link {
                    judge_read(&string, hosts)
                } else {
                    judge_maybe(&string, hosts)
                });
            }
            _ if is_name(char) || reader.is_escape() => {
                let name = reader.name();
                if reader.peek() != Some('(') {
                    is_custom |= name.starts_with("--");
                    continue;
                }
                reader.at += 1;
                depth += 1;
                if name.eq_ignore_ascii_case("url") || name.eq_ignore_ascii_case("src") {
                    reader.blanks();
                    if !matches!(reader.peek(), Some('"' | '\'')) {
                        let link = reader.until_parenthesis();
                        depth -= 1;
                        found.add_again(judge_read(&link, hosts));
                    }
                }
            }
            _ => {
                reader.at += char.len_utf8();
                match char {
                    '@' => is_rule = true,
                    '(' => depth += 1,
                    ')' => depth = depth.saturating_sub(1),
                    ';' | '{' | '}' => (depth, is_rule, is_custom) = (0, false, false),
                    '=' => after_equals = true,
                    char if char.is_whitespace() => after_equals = equals,
                    _ => {}
                }
            }
        }
    }
}

/// Whether a character belongs to a name.
fn is_name(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '-' | '_') || !char.is_ascii()
}

/// All escapes of a text resolved.
pub(super) fn unescaped(text: &str) -> String {
    let mut reader = Reader { text, at: 0 };
    let mut plain = String::with_capacity(text.len());
    while let Some(char) = reader.peek() {
        match char {
            '\\' => plain.extend(reader.escape()),
            _ => {
                plain.push(char);
                reader.at += char.len_utf8();
            }
        }
    }
    plain
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']).len();
    }

    /// Whether an escape begins here. A backslash before the end of a line is none.
    fn is_escape(&self) -> bool {
        let mut chars = self.rest().chars();
        chars.next() == Some('\\') && !matches!(chars.next(), Some('\n' | '\r' | '\u{c}'))
    }

    /// The character of the escape that begins here. `None` for a line that goes on, and at the end of the text.
    fn escape(&mut self) -> Option<char> {
        self.at += 1;
        let digits = self.rest().bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
        if digits == 0 {
            let char = self.peek()?;
            self.at += char.len_utf8();
            return (!matches!(char, '\n' | '\r' | '\u{c}')).then_some(char);
        }
        let code = u32::from_str_radix(&self.rest()[..digits], 16).unwrap_or_default();
        self.at += digits;
        if self.rest().starts_with("\r\n") {
            self.at += 2;
        } else if matches!(self.peek(), Some(' ' | '\t' | '\n' | '\r' | '\u{c}')) {
            self.at += 1;
        }
        Some(char::from_u32(code).filter(|char| *char != '\0').unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// The string that begins here with a quotation mark. It ends at the end of its line at the latest.
    fn string(&mut self, quote: char) -> String {
        self.at += 1;
        let mut string = String::new();
        while let Some(char) = self.peek() {
            match char {
                '\\' => string.extend(self.escape()),
                '\n' | '\r' | '\u{c}' => break,
                _ => {
                    self.at += char.len_utf8();
                    if char == quote {
                        break;
                    }
                    string.push(char);
                }
            }
        }
        string
    }

    /// The name that begins here.
    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(char) = self.peek() {
            if is_name(char) {
                name.push(char);
                self.at += char.len_utf8();
            } else if self.is_escape() {
                name.extend(self.escape());
            } else {
                break;
            }
        }
        name
    }

    /// The rest of `url(` without quotation marks.
    fn until_parenthesis(&mut self) -> String {
        let mut link = String::new();
        while let Some(char) = self.peek() {
            if char == '\\' {
                link.extend(self.escape());
                continue;
            }
            self.at += char.len_utf8();
            if char == ')' {
                break;
            }
            link.push(char);
        }
        link
    }
}
