//! Tags that only Shopify has. Their parser is not public, so theme-check 3.29.1 is the reference. Where it reports more than the syntax,
//! such as an unknown type of `content_for`, other checks say it.

use super::super::Kind;
use super::super::expression::{Cursor, Read, Stop};
use super::super::lexer::Lexeme;

/// One or two values, then arguments with names.
pub fn form(markup: &str, at: usize) -> Read {
    let mut cursor = Cursor::new(markup, at)?;
    let said = "Syntax error in 'form' tag";
    let (mut values, mut has_named) = (0, false);
    loop {
        let place = cursor.peek().span;
        if cursor.argument()? {
            has_named = true;
            if values == 0 {
                return Err(Stop::new(place, Kind::Arguments, said));
            }
        } else {
            values += 1;
            if has_named || values > 2 {
                return Err(Stop::new(place, Kind::Arguments, said));
            }
        }
        if !cursor.take(Lexeme::Comma) {
            return cursor.finish();
        }
    }
}

pub fn paginate(markup: &str, at: usize) -> Read {
    let mut cursor = Cursor::new(markup, at)?;
    cursor.value()?;
    if !cursor.take_word("by") {
        return Err(Stop::new(cursor.peek().span, Kind::PaginateWithoutBy, "Syntax error in 'paginate' tag"));
    }
    cursor.value()?;
    comma_arguments(&mut cursor)?;
    cursor.finish()
}

/// Arguments with names and commas between them. A comma may stand behind the last one, and a name may have dots.
fn comma_arguments(cursor: &mut Cursor) -> Read {
    while cursor.take(Lexeme::Comma) && cursor.is(Lexeme::Name) {
        dotted_argument(cursor)?;
    }
    Ok(())
}

fn dotted_argument(cursor: &mut Cursor) -> Read {
    cursor.name()?;
    while cursor.take(Lexeme::Dot) {
        cursor.name()?;
    }
    cursor.colon()?;
    cursor.value().map(drop)
}

pub fn section(markup: &str, at: usize, name: &str) -> Read {
    let mut cursor = Cursor::new(markup, at)?;
    cursor.expect(Lexeme::Text, Kind::NameWithoutQuotes)?;
    if name == "section" {
        comma_arguments(&mut cursor)?;
    }
    cursor.finish()
}

/// `content_for` takes a text in quotes. What follows it is not refused: it is ignored from the first odd sign on.
pub fn content_for(markup: &str, at: usize) -> Read {
    let words = super::trimmed(markup);
    let is_text = ['"', '\'']
        .into_iter()
        .any(|quote| words.strip_prefix(quote).is_some_and(|rest| rest.contains(quote)));
    if is_text {
        return Ok(());
    }
    Cursor::new(markup, at)?.expect(Lexeme::Text, Kind::NameWithoutQuotes).map(drop)
}

pub fn layout(markup: &str, at: usize) -> Read {
    let mut cursor = Cursor::new(markup, at)?;
    cursor.value()?;
    cursor.finish()
}

/// A name in quotes, and for `block` arguments.
pub fn block(markup: &str, at: usize, name: &str) -> Read {
    section(markup, at, if name == "block" { "section" } else { name })
}

/// `stylesheet` takes nothing, or `'scss'`.
pub fn stylesheet(markup: &str, at: usize) -> Read {
    if matches!(super::trimmed(markup), "'scss'" | "\"scss\"") {
        return Ok(());
    }
    super::no_words(markup, at, "'stylesheet' tag can only accept the string argument 'scss'")
}
