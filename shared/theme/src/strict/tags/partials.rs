//! `render` and `include`.

use super::super::Kind;
use super::super::expression::{Cursor, Read};
use super::super::lexer::Lexeme;

/// `render` takes a name in quotes. Shopify also renders a block of an app: `render block`.
pub fn render(markup: &str, at: usize, is_block: &dyn Fn(&str) -> bool) -> Read {
    let mut cursor = Cursor::new(markup, at)?;
    let first = cursor.peek();
    if first.lexeme == Lexeme::Name && (cursor.word(first) == "block" || is_block(cursor.word(first))) {
        cursor.value()?;
    } else {
        cursor.expect(Lexeme::Text, Kind::NameWithoutQuotes)?;
    }
    rest(&mut cursor)
}

pub fn include(markup: &str, at: usize) -> Read {
    let mut cursor = Cursor::new(markup, at)?;
    cursor.value()?;
    rest(&mut cursor)
}

/// `for` or `with` a value, `as` a name, and arguments.
fn rest(cursor: &mut Cursor) -> Read {
    if cursor.take_word("for") || cursor.take_word("with") {
        cursor.value()?;
    }
    if cursor.take_word("as") {
        cursor.name()?;
    }
    cursor.named_arguments(|_, _| Ok(()))?;
    cursor.finish()
}
