//! Readers above those of the crate `theme`: nesting of Liquid, elements of HTML, values of JSON, schemas, stored settings, hiding CSS.

pub mod condition;
pub mod css;
pub mod html;
pub mod json;
pub mod labels;
pub mod liquid;
pub mod schema;
pub mod stored;

use theme::text::Lines;

/// The line of a place. A place past the end is on the last line.
pub fn line_of(lines: &Lines, at: u32) -> u32 {
    lines.line_of(at).clamp(1, lines.count())
}

/// Whether a byte can be part of a name.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || byte >= 0x80
}
