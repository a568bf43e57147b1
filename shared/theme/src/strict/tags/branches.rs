//! Conditions and cases.

use super::super::Kind;
use super::super::expression::{Cursor, Read, Stop};
use super::super::lexer::Lexeme;

/// Comparisons, joined by `and` and `or`.
pub fn condition(markup: &str, at: usize) -> Read {
    let mut cursor = Cursor::new(markup, at)?;
    loop {
        cursor.value()?;
        if cursor.take(Lexeme::Comparison) {
            cursor.value()?;
        }
        if !cursor.take_word("and") && !cursor.take_word("or") {
            return cursor.finish();
        }
    }
}

pub fn case(markup: &str, at: usize) -> Read {
    let mut cursor = Cursor::new(markup, at)?;
    cursor.value()?;
    cursor.finish()
}

/// Values, separated by commas or `or`.
pub fn when(markup: &str, at: usize) -> Read {
    let mut cursor = Cursor::new(markup, at)?;
    loop {
        cursor.value()?;
        if !cursor.take_word("or") && !cursor.take(Lexeme::Comma) {
            return cursor.finish();
        }
    }
}

/// The `else` of a `case` takes nothing.
pub fn else_of_case(markup: &str, at: usize) -> Read {
    let said = "Syntax Error in tag 'case' - Valid else condition: {% else %} (no parameters) ";
    // Liquid takes zero characters for blanks here.
    if markup.trim_matches(|c| c == '\0' || super::blank(c)).is_empty() {
        return Ok(());
    }
    super::no_words(markup, at, said).map_err(|stop| Stop { kind: Kind::ElseWithWords, ..stop })
}
