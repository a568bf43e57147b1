//! Cuts the markup of a tag or output into lexemes.

use crate::text::Span;

use super::pieces::{is_blank, is_word};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lexeme {
    Name,
    Number,
    Text,
    Comparison,
    Dot,
    Dots,
    Colon,
    Comma,
    Pipe,
    OpenSquare,
    CloseSquare,
    OpenRound,
    CloseRound,
    Question,
    Dash,
    End,
}

impl Lexeme {
    /// The name that Liquid gives it in its messages.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Name => "id",
            Self::Number => "number",
            Self::Text => "string",
            Self::Comparison => "comparison",
            Self::Dot => "dot",
            Self::Dots => "dotdot",
            Self::Colon => "colon",
            Self::Comma => "comma",
            Self::Pipe => "pipe",
            Self::OpenSquare => "open_square",
            Self::CloseSquare => "close_square",
            Self::OpenRound => "open_round",
            Self::CloseRound => "close_round",
            Self::Question => "question",
            Self::Dash => "dash",
            Self::End => "end_of_string",
        }
    }

    /// How it is written, if it is a sign.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Dots => "..",
            Self::Colon => ":",
            Self::CloseSquare => "]",
            Self::CloseRound => ")",
            _ => "",
        }
    }
}

/// A lexeme and its place. Files are smaller than 4 GiB.
#[derive(Clone, Copy, Debug)]
pub struct Lexed {
    pub lexeme: Lexeme,
    pub span: Span,
}

/// The lexemes of a markup, and behind them an [`Lexeme::End`]. `at` is the place of the markup in its file.
///
/// # Errors
/// The place of a character that begins no lexeme, such as a quote without its partner.
pub fn lex(markup: &str, at: usize) -> Result<Vec<Lexed>, usize> {
    let bytes = markup.as_bytes();
    let mut found: Vec<Lexed> = Vec::with_capacity((bytes.len() / 4 + 2).min(64));
    let mut next = 0;
    while let Some(&byte) = bytes.get(next) {
        if is_blank(byte) {
            next += 1;
            continue;
        }
        let start = next;
        let lexeme = match byte {
            b'|' => Lexeme::Pipe,
            b':' => Lexeme::Colon,
            b',' => Lexeme::Comma,
            b'[' => Lexeme::OpenSquare,
            b']' => Lexeme::CloseSquare,
            b'(' => Lexeme::OpenRound,
            b')' => Lexeme::CloseRound,
            b'?' => Lexeme::Question,
            b'.' if bytes.get(start + 1) == Some(&b'.') => Lexeme::Dots,
            b'.' => Lexeme::Dot,
            b'-' if !bytes.get(start + 1).is_some_and(u8::is_ascii_digit) => Lexeme::Dash,
            b'-' | b'0'..=b'9' => Lexeme::Number,
            b'=' | b'!' if bytes.get(start + 1) == Some(&b'=') => Lexeme::Comparison,
            b'<' | b'>' => Lexeme::Comparison,
            b'\'' | b'"' => Lexeme::Text,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Lexeme::Name,
            _ => return Err(at + start),
        };
        next = match lexeme {
            Lexeme::Dots => start + 2,
            Lexeme::Number => number_end(bytes, start),
            Lexeme::Name => name_end(bytes, start),
            Lexeme::Text => match memchr::memchr(byte, bytes.get(start + 1..).unwrap_or_default()) {
                Some(length) => start + length + 2,
                None => return Err(at + start),
            },
            Lexeme::Comparison => {
                let is_long = match byte {
                    b'<' => matches!(bytes.get(start + 1), Some(b'=' | b'>')),
                    b'>' => bytes.get(start + 1) == Some(&b'='),
                    _ => true,
                };
                start + 1 + usize::from(is_long)
            }
            _ => start + 1,
        };
        let is_operator = lexeme == Lexeme::Name
            && bytes.get(start..next) == Some(b"contains")
            && found.last().is_none_or(|last| last.lexeme != Lexeme::Dot);
        let lexeme = if is_operator { Lexeme::Comparison } else { lexeme };
        found.push(Lexed { lexeme, span: Span::new(at + start, at + next) });
    }
    let end = at + markup.trim_end_matches(|c: char| u8::try_from(c).is_ok_and(is_blank)).len();
    found.push(Lexed { lexeme: Lexeme::End, span: Span::new(end, end) });
    Ok(found)
}

fn digits_end(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    at
}

/// The end of a number. A dot belongs to it only if a digit follows.
fn number_end(bytes: &[u8], start: usize) -> usize {
    let whole = digits_end(bytes, start + 1);
    if bytes.get(whole) == Some(&b'.') && bytes.get(whole + 1).is_some_and(u8::is_ascii_digit) {
        return digits_end(bytes, whole + 1);
    }
    whole
}

/// The end of a name. It may end with one question mark.
fn name_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while bytes.get(at).is_some_and(|byte| is_word(*byte) || *byte == b'-') {
        at += 1;
    }
    at + usize::from(bytes.get(at) == Some(&b'?'))
}
