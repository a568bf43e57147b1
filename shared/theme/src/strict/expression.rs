//! Values and filters.

use crate::text::Span;

use super::Kind;
use super::lexer::{Lexed, Lexeme, lex};
use super::range;

/// Why a markup is refused: the first error of Liquid.
#[derive(Clone, Debug)]
pub struct Stop {
    pub place: Span,
    pub kind: Kind,
    /// What Liquid says.
    pub parser: String,
}

impl Stop {
    pub fn new(place: Span, kind: Kind, parser: impl Into<String>) -> Self {
        Self { place, kind, parser: parser.into() }
    }
}

pub type Read<T = ()> = Result<T, Stop>;

/// What a value waits for while the values in its brackets are read.
enum Open {
    /// `]`, after which further properties may follow.
    Property,
    /// `..`
    RangeStart,
    /// `)`
    RangeEnd,
}

/// Reads the markup of one tag or output.
pub struct Cursor<'a> {
    text: &'a str,
    /// The place of `text` in its file.
    base: usize,
    lexemes: Vec<Lexed>,
    next: usize,
}

impl<'a> Cursor<'a> {
    /// # Errors
    /// A character that begins nothing.
    pub fn new(markup: &'a str, at: usize) -> Read<Self> {
        match lex(markup, at) {
            Ok(lexemes) => Ok(Self { text: markup, base: at, lexemes, next: 0 }),
            Err(wrong) => {
                let character =
                    markup.get(wrong - at..).and_then(|rest| rest.chars().next()).unwrap_or_default();
                let kind = if matches!(character, '"' | '\'') { Kind::OpenQuote } else { Kind::Character };
                let place = Span::new(wrong, wrong + character.len_utf8());
                Err(Stop::new(place, kind, format!("Unexpected character {character}")))
            }
        }
    }

    fn ahead(&self, by: usize) -> Lexed {
        let last = self.lexemes.len().saturating_sub(1);
        let end = Lexed { lexeme: Lexeme::End, span: Span::default() };
        self.lexemes.get((self.next + by).min(last)).copied().unwrap_or(end)
    }

    pub fn peek(&self) -> Lexed {
        self.ahead(0)
    }

    pub fn is(&self, lexeme: Lexeme) -> bool {
        self.peek().lexeme == lexeme
    }

    pub fn second_is(&self, lexeme: Lexeme) -> bool {
        self.ahead(1).lexeme == lexeme
    }

    pub fn is_done(&self) -> bool {
        self.is(Lexeme::End)
    }

    pub fn word(&self, lexed: Lexed) -> &'a str {
        let (start, end) = (lexed.span.start as usize, lexed.span.end as usize);
        self.text.get(start.saturating_sub(self.base)..end.saturating_sub(self.base)).unwrap_or_default()
    }

    pub fn take(&mut self, lexeme: Lexeme) -> bool {
        let found = self.is(lexeme);
        self.next += usize::from(found);
        found
    }

    /// Takes a name with these letters.
    pub fn take_word(&mut self, word: &str) -> bool {
        let found = self.is(Lexeme::Name) && self.word(self.peek()) == word;
        self.next += usize::from(found);
        found
    }

    /// What Liquid says of the next lexeme if it expects another one.
    pub fn unexpected(&self, expected: Lexeme) -> String {
        format!("Expected {} but found {}", expected.word(), self.peek().lexeme.word())
    }

    /// Takes a lexeme that must be there.
    pub fn expect(&mut self, lexeme: Lexeme, kind: Kind) -> Read<Lexed> {
        let found = self.peek();
        if found.lexeme == lexeme {
            self.next += 1;
            return Ok(found);
        }
        Err(Stop::new(found.span, kind, self.unexpected(lexeme)))
    }

    pub fn name(&mut self) -> Read<Lexed> {
        self.expect(Lexeme::Name, Kind::Name)
    }

    pub fn colon(&mut self) -> Read<Lexed> {
        self.sign(Lexeme::Colon)
    }

    fn sign(&mut self, lexeme: Lexeme) -> Read<Lexed> {
        self.expect(lexeme, Kind::Sign { expected: lexeme.sign() })
    }

    /// The rest of the markup, from the next lexeme on.
    pub fn rest(&self) -> Span {
        let end = self.lexemes.last().map_or(self.base, |last| last.span.end as usize);
        let start = (self.peek().span.start as usize).min(end);
        Span::new(start, end)
    }

    /// The end of the markup must be here.
    pub fn finish(&self) -> Read {
        if self.is_done() {
            return Ok(());
        }
        Err(Stop::new(self.rest(), Kind::Rest, self.unexpected(Lexeme::End)))
    }

    /// A value. The values in its brackets are read without recursion, because they can be nested as deep as the text is long.
    pub fn value(&mut self) -> Read<Span> {
        let first = self.next;
        let mut has_range = false;
        let mut open: Vec<Open> = Vec::new();
        'value: loop {
            let found = self.peek();
            let mut has_properties = false;
            match found.lexeme {
                Lexeme::Name => {
                    self.next += 1;
                    has_properties = true;
                }
                Lexeme::Text | Lexeme::Number => self.next += 1,
                Lexeme::OpenRound => {
                    self.next += 1;
                    open.push(Open::RangeStart);
                    continue;
                }
                Lexeme::OpenSquare => {
                    let said = "Bare bracket access is not allowed. Use self['...'] instead";
                    return Err(Stop::new(found.span, Kind::BareBrackets, said));
                }
                Lexeme::End => {
                    return Err(Stop::new(
                        found.span,
                        Kind::Value,
                        "[:end_of_string] is not a valid expression",
                    ));
                }
                lexeme => {
                    let said =
                        format!("[:{}, {:?}] is not a valid expression", lexeme.word(), self.word(found));
                    return Err(Stop::new(found.span, Kind::Value, said));
                }
            }
            loop {
                if has_properties && self.take(Lexeme::OpenSquare) {
                    open.push(Open::Property);
                    continue 'value;
                }
                if has_properties && self.take(Lexeme::Dot) {
                    let is_number = self.is(Lexeme::Number);
                    self.expect(Lexeme::Name, if is_number { Kind::NumberAsProperty } else { Kind::Name })?;
                    continue;
                }
                match open.pop() {
                    None => break 'value,
                    Some(Open::Property) => {
                        self.sign(Lexeme::CloseSquare)?;
                        has_properties = true;
                    }
                    Some(Open::RangeStart) => {
                        self.sign(Lexeme::Dots)?;
                        has_range = true;
                        open.push(Open::RangeEnd);
                        continue 'value;
                    }
                    Some(Open::RangeEnd) => {
                        self.sign(Lexeme::CloseRound)?;
                        has_properties = false;
                    }
                }
            }
        }
        let lexemes = self.lexemes.get(first..self.next).unwrap_or_default();
        let span = Span {
            start: lexemes.first().map_or(0, |lexed| lexed.span.start),
            end: lexemes.last().map_or(0, |lexed| lexed.span.end),
        };
        // Liquid also finds ranges in the texts of square brackets.
        let has_dots = |lexed: &Lexed| lexed.lexeme == Lexeme::Text && self.word(*lexed).contains("..");
        if has_range || lexemes.len() > 1 && lexemes.iter().any(has_dots) {
            let written: String = lexemes.iter().map(|lexed| self.word(*lexed)).collect();
            if let Some(wrong) = range::wrong_end(&written) {
                let said = format!("Invalid expression type '{wrong}' in range expression");
                return Err(Stop::new(span, Kind::RangeType, said));
            }
        }
        Ok(span)
    }

    /// A value with filters, up to the end of the markup. Nothing at all is accepted, too.
    pub fn filtered(&mut self) -> Read {
        if self.is_done() {
            return Ok(());
        }
        self.value()?;
        while self.take(Lexeme::Pipe) {
            self.name()?;
            if !self.take(Lexeme::Colon) {
                continue;
            }
            // A colon without an argument and a comma behind the last argument are accepted.
            while !self.is(Lexeme::Pipe) && !self.is_done() {
                self.argument()?;
                if !self.take(Lexeme::Comma) {
                    break;
                }
            }
        }
        self.finish()
    }

    /// A value, or a name, a colon and a value. Returns whether it has a name.
    pub fn argument(&mut self) -> Read<bool> {
        let has_name = self.is(Lexeme::Name) && self.second_is(Lexeme::Colon);
        if has_name {
            self.next += 2;
        }
        self.value()?;
        Ok(has_name)
    }

    /// Arguments with names. The commas between them may be missing. `each` may refuse a name.
    pub fn named_arguments(&mut self, mut each: impl FnMut(&Self, Lexed) -> Read) -> Read {
        self.take(Lexeme::Comma);
        while self.is(Lexeme::Name) {
            let name = self.peek();
            each(self, name)?;
            self.next += 1;
            self.colon()?;
            self.value()?;
            self.take(Lexeme::Comma);
        }
        Ok(())
    }
}
