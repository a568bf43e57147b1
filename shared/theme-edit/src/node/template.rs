//! All parts of a template: its Liquid, the other languages within it, and the elements between.

use theme::scan::liquid::{TokenKind, tokens};
use theme::text::Span;

use super::{Finder, html, liquid};

/// Adds all parts of a template.
pub(super) fn read(finder: &mut Finder) {
    let text = finder.text;
    let mut blocks = liquid::blocks(finder);
    for style in &blocks.styles {
        finder.css(&blocks.masked, Span::new(style.start, style.end));
    }
    let mut bytes = std::mem::take(&mut blocks.masked).into_bytes();
    for byte in blocks.styles.iter().cloned().flatten() {
        if bytes[byte] != b'\n' {
            bytes[byte] = b' ';
        }
    }
    // Whole bodies were blanked, and they begin and end at ASCII.
    blocks.masked = String::from_utf8(bytes).unwrap_or_else(|_| " ".repeat(text.len()));
    for token in tokens(text).0 {
        match token.kind {
            TokenKind::Schema { body } => finder.schema(body),
            TokenKind::Style { body } => finder.css(text, body),
            TokenKind::Script { body } => finder.script(text, body),
            _ => {}
        }
    }
    html::read(finder, &blocks);
}
