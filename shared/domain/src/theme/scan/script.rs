//! The script scanner: classes, methods, functions, custom elements and imports.
//!
//! A lexer cuts the text into tokens and pairs the brackets; definitions are then patterns of a few tokens.

use super::{DegradedReason, EdgeKind, EdgeNature, Found, SymbolKind};
use crate::theme::text::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Word,
    /// Without its quotes.
    String,
    Mark(u8),
    /// A number, a regular expression, a template's text.
    Other,
}

#[derive(Clone, Copy, Debug)]
struct Token {
    kind: Kind,
    span: Span,
    /// For a bracket the index of its partner; itself when there is none.
    pair: u32,
}

/// Reads the part `within` of `text`.
pub fn scan(text: &str, within: Span, found: &mut Found) {
    let tokens = Lexer::tokens(text, within, found);
    Reader { text, tokens: &tokens, found }.run();
}

struct Lexer<'a, 'f> {
    bytes: &'a [u8],
    text: &'a str,
    at: usize,
    end: usize,
    tokens: Vec<Token>,
    open: Vec<u32>,
    /// For every template literal that is inside `${`, how many brackets were open before.
    templates: Vec<usize>,
    found: &'f mut Found,
}

impl<'a, 'f> Lexer<'a, 'f> {
    fn tokens(text: &'a str, within: Span, found: &'f mut Found) -> Vec<Token> {
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
        // What a template encloses can't close what was open before it.
        let floor = self.templates.last().copied().unwrap_or(0);
        let is_partner = |&&open: &&u32| self.tokens[open as usize].kind == Kind::Mark(wanted);
        // An unclosed bracket is rare and near: a deep look would make hostile input quadratic.
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

    /// A comment, a regular expression or a division.
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

    /// After a value a slash divides; after an operator or a keyword it begins a regular expression.
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

    /// A template's text up to its end or to the next `${`.
    fn template(&mut self) {
        let start = self.at;
        while self.at < self.end {
            match self.bytes[self.at] {
                b'\\' => self.at += 1,
                b'`' => {
                    self.push(Kind::Other, start, self.at);
                    self.at += 1;
                    return;
                }
                b'$' if self.bytes[..self.end].get(self.at + 1) == Some(&b'{') => {
                    self.push(Kind::Other, start, self.at);
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

/// The length of a regular expression that begins here, if it ends on its line and within reason.
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

struct Reader<'a, 'f> {
    text: &'a str,
    tokens: &'a [Token],
    found: &'f mut Found,
}

impl Reader<'_, '_> {
    fn run(&mut self) {
        // The brackets that are open, and whether each is a class's body.
        let mut class_bodies: Vec<(usize, bool)> = Vec::new();
        let mut next_is_class_body = None;
        let first_symbol = self.found.symbols.len();
        let mut elements: Vec<(usize, Span)> = Vec::new();
        for index in 0..self.tokens.len() {
            while class_bodies.last().is_some_and(|&(end, _)| end <= index) {
                class_bodies.pop();
            }
            let in_class = class_bodies.last().is_some_and(|&(_, is_class)| is_class);
            match self.tokens[index].kind {
                Kind::Mark(b'{' | b'(' | b'[') => {
                    let pair = self.tokens[index].pair as usize;
                    if pair > index {
                        class_bodies.push((pair, next_is_class_body == Some(index)));
                    }
                }
                Kind::Word => match self.word(index) {
                    "class" => next_is_class_body = self.class(index).or(next_is_class_body),
                    "function" => self.function(index),
                    "import" | "from" => self.import(index),
                    "const" | "let" | "var" => self.variable(index),
                    "define" if index >= 2 && self.word(index - 2) == "customElements" => {
                        if let Some((name, class)) = self.element(index) {
                            elements.push((self.found.symbols.len(), class));
                            let body = Span { start: self.tokens[index - 2].span.start, end: name.end };
                            self.found.symbol(SymbolKind::CustomElement, name, body);
                        }
                    }
                    _ if in_class => self.method(index),
                    _ => self.property(index),
                },
                Kind::String => self.selector(self.tokens[index].span),
                _ => {}
            }
        }
        // A custom element is where its class is.
        for (element, class) in elements {
            let class = class.of(self.text);
            let symbols = &self.found.symbols[first_symbol..];
            let body = symbols
                .iter()
                .find(|s| s.kind == SymbolKind::Class && s.name.of(self.text) == class)
                .map(|s| s.body);
            if let (Some(body), Some(symbol)) = (body, self.found.symbols.get_mut(element)) {
                symbol.body = body;
            }
        }
    }

    fn word(&self, index: usize) -> &str {
        match self.tokens.get(index) {
            Some(Token { kind: Kind::Word, span, .. }) => span.of(self.text),
            _ => "",
        }
    }

    fn is_mark(&self, index: usize, mark: u8) -> bool {
        self.tokens.get(index).is_some_and(|token| token.kind == Kind::Mark(mark))
    }

    /// The end of the bracket that opens at `index`; the bracket itself when it does not close.
    fn end_of(&self, index: usize) -> u32 {
        self.tokens[self.tokens[index].pair as usize].span.end.max(self.tokens[index].span.end)
    }

    /// Adds a class, and returns the index of its body's brace.
    fn class(&mut self, index: usize) -> Option<usize> {
        let body = (index + 1..index + 12).find(|&at| self.is_mark(at, b'{'))?;
        let name = self.word(index + 1);
        let span = Span { start: self.tokens[index].span.start, end: self.end_of(body) };
        if !name.is_empty() && name != "extends" {
            self.found.symbol(SymbolKind::Class, self.tokens[index + 1].span, span);
        }
        Some(body)
    }

    fn function(&mut self, index: usize) {
        let at = if self.is_mark(index + 1, b'*') { index + 2 } else { index + 1 };
        if !self.word(at).is_empty() && self.is_mark(at + 1, b'(') {
            self.callable(SymbolKind::Function, at, at + 1, self.tokens[index].span.start);
        }
    }

    /// Adds what is named at `name`, has its parameters at `parameters`, and a body after them.
    fn callable(&mut self, kind: SymbolKind, name: usize, parameters: usize, start: u32) {
        let after = self.tokens[parameters].pair as usize + 1;
        if after > parameters && self.is_mark(after, b'{') {
            let body = Span { start, end: self.end_of(after) };
            self.found.symbol(kind, self.tokens[name].span, body);
        }
    }

    fn method(&mut self, index: usize) {
        if self.is_mark(index + 1, b'(') {
            self.callable(SymbolKind::Method, index, index + 1, self.tokens[index].span.start);
        } else if self.is_mark(index + 1, b'=') {
            self.assigned(SymbolKind::Method, index, index + 2);
        }
    }

    fn variable(&mut self, index: usize) {
        if !self.word(index + 1).is_empty() && self.is_mark(index + 2, b'=') {
            self.assigned(SymbolKind::Function, index + 1, index + 3);
        }
    }

    /// `name: function () {}` and `X.prototype.name = function () {}`.
    fn property(&mut self, index: usize) {
        let is_assignment = self.is_mark(index + 1, b':') || self.is_mark(index + 1, b'=');
        if is_assignment && self.word(index + 2) == "function" {
            self.assigned(SymbolKind::Method, index, index + 2);
        }
    }

    /// A function or an arrow at `value`.
    fn assigned(&mut self, kind: SymbolKind, name: usize, value: usize) {
        let start = self.tokens[name].span.start;
        let value = if self.word(value) == "async" { value + 1 } else { value };
        if self.word(value) == "function" {
            let parameters = (value + 1..value + 4).find(|&at| self.is_mark(at, b'('));
            if let Some(parameters) = parameters {
                self.callable(kind, name, parameters, start);
            }
            return;
        }
        let arrow = if self.is_mark(value, b'(') {
            self.tokens[value].pair as usize + 1
        } else if !self.word(value).is_empty() {
            value + 1
        } else {
            return;
        };
        if self.is_mark(arrow, b'=') && self.is_mark(arrow + 1, b'>') {
            let body = arrow + 2;
            let end = if self.is_mark(body, b'{') || self.is_mark(body, b'(') {
                self.end_of(body)
            } else {
                self.tokens[arrow + 1].span.end
            };
            self.found.symbol(kind, self.tokens[name].span, Span { start, end });
        }
    }

    /// `import 'x'`, `import('x')` and `… from 'x'`.
    fn import(&mut self, index: usize) {
        let at = if self.is_mark(index + 1, b'(') { index + 2 } else { index + 1 };
        if let Some(Token { kind: Kind::String, span, .. }) = self.tokens.get(at) {
            self.found.reference(EdgeKind::Import, EdgeNature::Direct, *span);
        }
    }

    /// `customElements.define('name', Class)`.
    fn element(&self, index: usize) -> Option<(Span, Span)> {
        if !self.is_mark(index + 1, b'(') {
            return None;
        }
        let name = self.tokens.get(index + 2).filter(|token| token.kind == Kind::String)?;
        let class = self.tokens.get(index + 4).map_or(name.span, |token| token.span);
        Some((name.span, class))
    }

    /// Classes in a string that reads like a selector.
    fn selector(&mut self, string: Span) {
        let inner = string.of(self.text);
        let bytes = inner.as_bytes();
        let named = bytes.get(1).is_some_and(|&b| b.is_ascii_alphabetic() || b == b'_');
        if !inner.starts_with(['.', '#']) || !named || inner.len() > 120 {
            return;
        }
        let mut at = 0;
        while at < bytes.len() {
            let mark = bytes[at];
            at += 1;
            let start = at;
            if !matches!(mark, b'.' | b'#') {
                continue;
            }
            while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || matches!(bytes[at], b'-' | b'_'))
            {
                at += 1;
            }
            let name = Span::new(start, at).shifted(string.start as usize);
            if name.is_empty() {
                continue;
            }
            if mark == b'.' {
                self.found.reference(EdgeKind::CssClass, EdgeNature::Direct, name);
            } else {
                self.found.identifiers.push(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Found {
        let mut found = Found::default();
        scan(text, Span::new(0, text.len()), &mut found);
        found
    }

    #[test]
    fn definitions_are_found_with_their_bodies() {
        use SymbolKind::{Class, CustomElement, Function, Method};
        let check = |text: &str, expected: &[(SymbolKind, &str, &str)]| {
            let found = read(text);
            let shown: Vec<_> =
                found.symbols.iter().map(|s| (s.kind, s.name.of(text), s.body.of(text))).collect();
            assert_eq!(shown, expected, "{text:?}");
            assert_eq!(found.degraded, [], "{text:?}");
        };
        check(
            "function a(b) { return /}/.test(b) }",
            &[(Function, "a", "function a(b) { return /}/.test(b) }")],
        );
        check(
            "const f = async (x) => { y }; let g = z => z; var h = 1;",
            &[(Function, "f", "f = async (x) => { y }"), (Function, "g", "g = z =>")],
        );
        check(
            "class A extends B { constructor() { super(); } async go(x = {}) { if (x) {} } }",
            &[
                (
                    Class,
                    "A",
                    "class A extends B { constructor() { super(); } async go(x = {}) { if (x) {} } }",
                ),
                (Method, "constructor", "constructor() { super(); }"),
                (Method, "go", "go(x = {}) { if (x) {} }"),
            ],
        );
        check(
            "class A {} customElements.define('a-b', A);",
            &[(Class, "A", "class A {}"), (CustomElement, "a-b", "class A {}")],
        );
        check(
            "customElements.define('a-b', class extends B { go() {} })",
            &[(CustomElement, "a-b", "customElements.define('a-b"), (Method, "go", "go() {}")],
        );
        check(
            "x = { show: function() {} }; S.prototype.hide = function() {};",
            &[(Method, "show", "show: function() {}"), (Method, "hide", "hide = function() {}")],
        );
        check("const t = `a ${ {b: `}`}.b } {`; function u() {}", &[(Function, "u", "function u() {}")]);
        check("a = b / c; '}' // {\n/* { */ d = 4 / 2 / 1", &[]);
    }

    #[test]
    fn imports_and_selectors_refer() {
        let text = "import { a } from './a.js'; import 'b'; import('c'); q('.card .card__media'); q('a.b')";
        let shown: Vec<_> = read(text).references.iter().map(|r| (r.kind, r.name.of(text))).collect();
        assert_eq!(
            shown,
            [
                (EdgeKind::Import, "./a.js"),
                (EdgeKind::Import, "b"),
                (EdgeKind::Import, "c"),
                (EdgeKind::CssClass, "card"),
                (EdgeKind::CssClass, "card__media"),
            ]
        );
    }

    #[test]
    fn what_does_not_close_is_named() {
        let check = |text: &str, places: &[u32]| {
            let found = read(text);
            assert_eq!(found.degraded.iter().map(|d| d.offset).collect::<Vec<_>>(), places, "{text:?}");
        };
        check("function a() {", &[13]);
        check("a } b", &[2]);
        check("x = 'open\ny()", &[4]);
        check("`open ${a", &[]);
        check("`open", &[1]);
        check("/* open", &[0]);
        check("f(]", &[2, 1]);
    }
}
