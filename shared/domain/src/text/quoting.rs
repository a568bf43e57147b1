//! Text of others within a prompt: no line of it can end the block that it stands in.

use std::borrow::Cow;

/// Whether a reader may begin a new line after this character: every line break of Unicode, and the separators that some programs
/// take for one.
#[must_use]
pub const fn breaks_line(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// At most `max` bytes of a text, with `> ` before each line, also after rare line breaks. So no line of it can end the block
/// that it stands in.
#[must_use]
pub fn quoted(text: &str, max: usize) -> String {
    let text = text.trim();
    let cut = text.floor_char_boundary(max);
    let text_lines = text[..cut].split(breaks_line);
    let mut lines: String = text_lines.map(|line| format!("> {line}\n")).collect();
    if cut < text.len() {
        lines.push_str(&format!("> … ({} more bytes)\n", text.len() - cut));
    }
    lines
}

/// A text without line breaks and other control characters.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    let is_out = |c: char| c.is_control() || breaks_line(c);
    if text.contains(is_out) { text.replace(is_out, " ").into() } else { text.into() }
}

/// At most `max` bytes of a text on one line. A text that was cut ends in an ellipsis.
#[must_use]
pub fn short_line(text: &str, max: usize) -> String {
    let line = one_line(text);
    let line = line.trim();
    if line.len() <= max {
        return line.to_owned();
    }
    let end = line.floor_char_boundary(max.saturating_sub('…'.len_utf8()));
    format!("{}…", line[..end].trim_end())
}

/// Marks of direction, characters without a width, fillers, tags and characters for private use.
#[must_use]
pub const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}'
        | '\u{E000}'..='\u{F8FF}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}'
        | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{10FFFF}')
}
