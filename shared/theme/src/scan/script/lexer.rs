//! Splits a script into tokens and pairs the brackets.

use crate::scan::{DegradedReason, ScanResult};
use crate::text::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Word,
    /// Without its quotes.
    String,
    Mark(u8),
    /// The text of a template literal, up to its end or to the next `${`.
    Template,
    /// A number or a regular expression.
    Other,
}

#[derive(Clone, Copy, Debug)]
pub struct Token {
    pub kind: Kind,
    pub span: Span,
    /// For a bracket, the index of its partner, or its own index if it has none.
    pub pair: u32,
}

pub struct Lexer<'a, 'f> {
    bytes: &'a [u8],
    text: &'a str,
    at: usize,
    end: usize,
    tokens: Vec<Token>,
    open: Vec<u32>,
    /// For every template literal that is inside `${`, how many brackets were open before it.
    templates: Vec<usize>,
    found: &'f mut ScanResult,
}

impl<'a, 'f> Lexer<'a, 'f> {
    pub fn tokens(text: &'a str, within: Span, found: &'f mut ScanResult) -> Vec<Token> {
        let mut lexer = Self {
            bytes: text.as_bytes(),
            text,
            at: within.start as usize,
            end: within.end as usize,
            tokens: Vec::with_capacity((within.end - within.start) as usize / 5),
            open: Vec::new(),
            templates: Vec::new(),
            found,
        };
        while lexer.at < lexer.end {
            lexer.step();
        }
        if let Some(&open) = lexer.open.first() {
            let offset = lexer.tokens[open as usize].span.start as usize;
            lexer.found.degrade(offset, DegradedReason::Unbalanced);
        }
        lexer.tokens
    }

    fn step(&mut self) {
        let start = self.at;
        match self.bytes[start] {
            b if b.is_ascii_whitespace() => self.at += 1,
            b if is_word(b) => {
                while self.at < self.end && is_word(self.bytes[self.at]) {
                    self.at += 1;
                }
                let kind = if b.is_ascii_digit() { Kind::Other } else { Kind::Word };
                self.push(kind, start, self.at);
            }
            b'/' => self.slash(),
            quote @ (b'"' | b'\'') => self.string(quote),
            b'`' => {
                self.at += 1;
                self.template();
            }
            b'}' if self.templates.last() == Some(&self.open.len()) => {
                self.templates.pop();
                self.at += 1;
                self.template();
            }
            mark => {
                self.at += 1;
                self.push(Kind::Mark(mark), start, self.at);
                self.pair(mark);
            }
        }
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize) {
        let pair = self.tokens.len() as u32;
        self.tokens.push(Token { kind, span: Span::new(start, end), pair });
    }

    fn pair(&mut self, mark: u8) {
        let index = self.tokens.len() as u32 - 1;
        let wanted = match mark {
            b'(' | b'[' | b'{' => return self.open.push(index),
            b')' => b'(',
            b']' => b'[',
            b'}' => b'{',
            _ => return,
        };
        // A bracket inside a template literal cannot close a bracket that was opened before it.
        let floor = self.templates.last().copied().unwrap_or(0);
        let is_partner = |&&open: &&u32| self.tokens[open as usize].kind == Kind::Mark(wanted);
        // An unclosed bracket is rare and usually near. A deep search would take quadratic time on hostile input.
        let near = self.open.len().saturating_sub(8).max(floor);
        match self.open.get(near..).and_then(|open| open.iter().rev().find(is_partner)).copied() {
            Some(partner) => {
                while self.open.pop() != Some(partner) {}
                self.tokens[partner as usize].pair = index;
                self.tokens[index as usize].pair = partner;
                if wanted == b'{' {
                    let start = self.tokens[partner as usize].span.start as usize;
                    self.found.blocks.push(Span::new(start, self.at));
                }
            }
            None => self.found.degrade(self.at - 1, DegradedReason::Unbalanced),
        }
    }

    /// Reads a comment, a regular expression or a division.
    fn slash(&mut self) {
        let start = self.at;
        let rest = &self.bytes[start..self.end];
        if rest.starts_with(b"//") {
            self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            self.found.comments.push(Span::new(start, self.at));
        } else if rest.starts_with(b"/*") {
            match memchr::memmem::find(&rest[2..], b"*/") {
                Some(at) => self.at += at + 4,
                None => {
                    self.found.degrade(start, DegradedReason::Unbalanced);
                    self.at = self.end;
                }
            }
            self.found.comments.push(Span::new(start, self.at));
        } else if let Some(length) = self.may_be_regex().then(|| regex_length(rest)).flatten() {
            self.at += length;
            self.push(Kind::Other, start, self.at);
        } else {
            self.at += 1;
            self.push(Kind::Mark(b'/'), start, self.at);
        }
    }

    /// After a value a slash is a division. After an operator or a keyword it begins a regular expression.
    fn may_be_regex(&self) -> bool {
        match self.tokens.last() {
            None => true,
            Some(Token { kind: Kind::Mark(mark), .. }) => !matches!(mark, b')' | b']' | b'}'),
            Some(Token { kind: Kind::Word, span, .. }) => {
                matches!(
                    span.of(self.text),
                    "return" | "typeof" | "case" | "in" | "of" | "void" | "delete" | "throw" | "else" | "do"
                )
            }
            Some(_) => false,
        }
    }

    fn string(&mut self, quote: u8) {
        let start = self.at + 1;
        self.at = start;
        while self.at < self.end && self.bytes[self.at] != quote && self.bytes[self.at] != b'\n' {
            self.at += if self.bytes[self.at] == b'\\' { 2 } else { 1 };
        }
        self.at = self.at.min(self.end);
        while !self.text.is_char_boundary(self.at) {
            self.at -= 1;
        }
        let closed = self.at < self.end && self.bytes[self.at] == quote;
        self.push(Kind::String, start.min(self.at), self.at);
        if closed {
            self.at += 1;
        } else {
            self.found.degrade(start - 1, DegradedReason::Unbalanced);
        }
    }

    /// Reads the text of a template literal up to its end or to the next `${`.
    fn template(&mut self) {
        let start = self.at;
        while self.at < self.end {
            match self.bytes[self.at] {
                b'\\' => self.at += 1,
                b'`' => {
                    self.push(Kind::Template, start, self.at);
                    self.at += 1;
                    return;
                }
                b'$' if self.bytes[..self.end].get(self.at + 1) == Some(&b'{') => {
                    self.push(Kind::Template, start, self.at);
                    self.at += 2;
                    self.templates.push(self.open.len());
                    return;
                }
                _ => {}
            }
            self.at += 1;
        }
        self.at = self.end;
        self.found.degrade(start.min(self.end), DegradedReason::Unbalanced);
    }
}

/// The length of a regular expression that begins here, if it ends on the same line and within 1,000 bytes.
fn regex_length(rest: &[u8]) -> Option<usize> {
    let rest = &rest[..rest.len().min(1_000)];
    let mut in_class = false;
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\n' => return None,
            b'\\' => at += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'/' if !in_class => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
    None
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'#') || b >= 0x80
}
