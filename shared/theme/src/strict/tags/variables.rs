//! Tags that set a variable.

use super::super::expression::{Cursor, Read, Stop};
use super::super::lexer::Lexeme;
use super::super::pieces::{is_word, skip_blanks};
use super::super::{Kind, Span};

/// `capture`, `increment` and `decrement` take one name.
pub fn target(markup: &str, at: usize) -> Read {
    // Liquid takes zero characters for blanks here.
    let start = markup.len() - markup.trim_start_matches(edge).len();
    let name = markup.trim_matches(edge);
    let mut cursor = Cursor::new(name, at + start)?;
    let wrong = Span::new(at + start, at + start + name.len());
    cursor.expect(Lexeme::Name, Kind::Target).map_err(|stop| Stop { place: wrong, ..stop })?;
    if cursor.is_done() {
        return Ok(());
    }
    Err(Stop::new(wrong, Kind::Target, cursor.unexpected(Lexeme::End)))
}

fn edge(c: char) -> bool {
    c == '\0' || super::blank(c)
}

/// `assign` looks for the first `=` with a name before it. What stands before the name is ignored: `a b = 1` sets `b`.
pub fn assign(markup: &str, at: usize) -> Read {
    let Some((target, value)) = halves(markup) else {
        let said = "Syntax Error in 'assign' - Valid syntax: assign [var] = [source]";
        let end = at + markup.trim_end_matches(super::blank).len();
        return Err(Stop::new(Span::new(at.min(end), end), Kind::Target, said));
    };
    let place = Span::new(at + target.start as usize, at + target.end as usize);
    let mut cursor = Cursor::new(target.of(markup), place.start as usize).map_err(|stop| Stop {
        place,
        kind: Kind::Target,
        ..stop
    })?;
    cursor.expect(Lexeme::Name, Kind::Target).map_err(|stop| Stop { place, ..stop })?;
    if !cursor.is_done() {
        return Err(Stop::new(place, Kind::Target, cursor.unexpected(Lexeme::End)));
    }
    Cursor::new(markup.get(value..).unwrap_or_default(), at + value)?.filtered()
}

/// The target of an `assign`, and where its value begins.
pub fn halves(markup: &str) -> Option<(Span, usize)> {
    let bytes = markup.as_bytes();
    for sign in memchr::memchr_iter(b'=', bytes) {
        let end =
            bytes.get(..sign)?.iter().rposition(|byte| !super::is_blank(*byte)).map_or(0, |last| last + 1);
        if let Some(start) = signature_start(bytes, end) {
            return Some((Span::new(start, end), skip_blanks(bytes, sign + 1)));
        }
    }
    None
}

/// Where the signs of a variable that end at `end` begin: names, dots and square brackets, each of which may have a round bracket at each side.
fn signature_start(bytes: &[u8], end: usize) -> Option<usize> {
    let is_sign = |at: usize| {
        bytes.get(at).is_some_and(|byte| is_word(*byte) || matches!(byte, b'-' | b'.' | b'[' | b']'))
    };
    let is = |at: usize, bracket: u8| bytes.get(at) == Some(&bracket);
    let mut start = None;
    // Whether the signs from this place on make a target: here, one, two and three places further.
    let mut reaches = [true, false, false, false];
    let mut at = end;
    while let Some(before) = at.checked_sub(1) {
        if !is_sign(before) && !is(before, b'(') && !is(before, b')') {
            break;
        }
        let from_here = (is_sign(before)
            && (reaches[0] || is(before + 1, b')') && before + 1 < end && reaches[1]))
            || (is(before, b'(')
                && before + 1 < end
                && is_sign(before + 1)
                && (reaches[1] || is(before + 2, b')') && before + 2 < end && reaches[2]));
        reaches = [from_here, reaches[0], reaches[1], reaches[2]];
        at = before;
        if from_here {
            start = Some(at);
        }
    }
    start
}
