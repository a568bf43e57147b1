//! Lines and words of a file's text.

use theme::text::Lines;

/// The line of a place. A place past the end is on the last line.
pub fn line_of(lines: &Lines, at: u32) -> u32 {
    lines.line_of(at).clamp(1, lines.count())
}

/// Whether a byte can be part of a name.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || byte >= 0x80
}
