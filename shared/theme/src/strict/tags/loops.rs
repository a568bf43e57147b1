//! Loops, and `cycle`.

use super::super::Kind;
use super::super::expression::{Cursor, Read, Stop};
use super::super::lexer::Lexeme;

/// The variable and the list.
fn head(cursor: &mut Cursor) -> Read {
    cursor.expect(Lexeme::Name, Kind::Target)?;
    if !cursor.take_word("in") {
        return Err(Stop::new(cursor.peek().span, Kind::LoopWithoutIn, "For loops require an 'in' clause"));
    }
    cursor.value().map(drop)
}

pub fn for_loop(markup: &str, at: usize) -> Read {
    let mut cursor = Cursor::new(markup, at)?;
    head(&mut cursor)?;
    cursor.take_word("reversed");
    while cursor.is(Lexeme::Comma) || cursor.is(Lexeme::Name) {
        cursor.take(Lexeme::Comma);
        if !cursor.take_word("limit") && !cursor.take_word("offset") {
            let said = "Invalid attribute in for loop. Valid attributes are limit and offset";
            return Err(Stop::new(cursor.peek().span, Kind::LoopOption, said));
        }
        cursor.colon()?;
        cursor.value()?;
    }
    cursor.finish()
}

pub fn tablerow(markup: &str, at: usize) -> Read {
    let mut cursor = Cursor::new(markup, at)?;
    head(&mut cursor)?;
    cursor.named_arguments(|cursor, name| match cursor.word(name) {
        "cols" | "limit" | "offset" | "range" => Ok(()),
        word => {
            let said = format!(
                "Invalid attribute '{word}' in tablerow loop. Valid attributes are cols, limit, offset, and range"
            );
            Err(Stop::new(name.span, Kind::LoopOption, said))
        }
    })?;
    cursor.finish()
}

/// Values with commas between them, and a name before a colon.
pub fn cycle(markup: &str, at: usize) -> Read {
    let mut cursor = Cursor::new(markup, at)?;
    if cursor.is_done() {
        let said = "Syntax Error in 'cycle' - Valid syntax: cycle [name :] var [, var2, var3 ...]";
        return Err(Stop::new(cursor.peek().span, Kind::Value, said));
    }
    cursor.value()?;
    if cursor.take(Lexeme::Colon) {
        cursor.value()?;
    }
    while cursor.take(Lexeme::Comma) && !cursor.is_done() {
        cursor.value()?;
    }
    cursor.finish()
}
