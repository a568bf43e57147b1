//! An accepted markup, written so that the patterns of the tolerant parser find what the strict grammar finds: no blank stands in a value, blanks
//! stand around all other words and signs, and no text has a sign that a pattern takes for one of its own.

use super::value::is_name;
use crate::strict::lexer::{Lexed, Lexeme, lex};

/// They take the places of a comma and a colon in a text, and of a `nil` in a `cycle`. A markup that has one of them is not compared.
const COMMA: char = '\u{e000}';
const COLON: char = '\u{e001}';
const NIL: char = '\u{e002}';

/// It takes the place of a question mark of the name behind `as`, which the patterns do not find.
const QUESTION: &str = "--question";

pub fn spaced(name: &str, markup: &str) -> Option<String> {
    let lexed = lex(markup, 0).ok()?;
    if markup.contains([COMMA, COLON, NIL]) {
        return None;
    }
    let mut new = String::with_capacity(markup.len() + 8);
    let mut before = None;
    let mut word_before = "";
    for (index, Lexed { lexeme, span }) in lexed.iter().enumerate() {
        let after = lexed.get(index + 1).map_or(Lexeme::End, |next| next.lexeme);
        if before.is_some_and(|before| !clings(before, *lexeme)) && *lexeme != Lexeme::End {
            new.push(' ');
        }
        let word = span.of(markup);
        match lexeme {
            Lexeme::Text => new.extend(word.chars().map(|c| match c {
                ',' => COMMA,
                ':' => COLON,
                c => c,
            })),
            // The tolerant parser leaves it out.
            Lexeme::Name
                if name == "cycle"
                    && matches!(word, "nil" | "null")
                    && matches!(before, None | Some(Lexeme::Comma | Lexeme::Colon))
                    && matches!(after, Lexeme::Comma | Lexeme::Colon | Lexeme::End) =>
            {
                new.push(NIL);
            }
            Lexeme::Name if word_before == "as" && word.ends_with('?') => {
                new.push_str(word.trim_end_matches('?'));
                new.push_str(QUESTION);
            }
            _ => new.push_str(word),
        }
        (before, word_before) = (Some(*lexeme), word);
    }
    Some(new)
}

/// What was found in it, with the signs in their places again.
pub fn restored(found: &str) -> String {
    found.replace(COMMA, ",").replace(COLON, ":").replace(QUESTION, "?")
}

/// Both ways to write a property as one: `a['b']` as `a.b`.
pub fn plain(found: &str) -> String {
    let (mut new, mut rest) = (String::with_capacity(found.len()), found);
    while let Some((before, inner)) = rest.split_once('[') {
        new.push_str(before);
        let quoted = ['\'', '"'].into_iter().find_map(|quote| {
            let (word, after) = inner.strip_prefix(quote)?.split_once(quote)?;
            after.strip_prefix(']').filter(|_| is_name(word)).map(|after| (word, after))
        });
        rest = match quoted {
            Some((word, after)) => {
                new.push('.');
                new.push_str(word);
                after
            }
            None => {
                new.push('[');
                inner
            }
        };
    }
    new + rest
}

/// Whether no blank stands between two words or signs of one value.
const fn clings(before: Lexeme, next: Lexeme) -> bool {
    matches!(before, Lexeme::Dot | Lexeme::Dots | Lexeme::OpenSquare | Lexeme::OpenRound)
        || matches!(
            next,
            Lexeme::Dot
                | Lexeme::Dots
                | Lexeme::OpenSquare
                | Lexeme::CloseSquare
                | Lexeme::CloseRound
                | Lexeme::Comma
        )
}
