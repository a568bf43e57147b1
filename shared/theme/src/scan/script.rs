//! The script scanner: classes, methods, functions, custom elements and imports.
//!
//! The lexer splits the text into tokens and pairs the brackets. Definitions are then recognised as patterns of a few
//! tokens.

mod lexer;

use super::{EdgeKind, EdgeNature, ScanResult, SymbolKind, hints};
use crate::text::Span;
use lexer::{Kind, Lexer, Token};

/// Reads the part `within` of `text`.
pub fn scan(text: &str, within: Span, found: &mut ScanResult) {
    let tokens = Lexer::tokens(text, within, found);
    Reader { text, tokens: &tokens, found }.run();
    strings(text, &tokens, found);
}

/// Adds the names in strings and template literals.
fn strings(text: &str, tokens: &[Token], found: &mut ScanResult) {
    let is_mark = |index: usize, mark| tokens.get(index).is_some_and(|token| token.kind == Kind::Mark(mark));
    let byte = |at: usize| text.as_bytes().get(at).copied();
    let mut pieces = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let (start, end) = (token.span.start as usize, token.span.end as usize);
        match token.kind {
            Kind::String => pieces.push(hints::Piece {
                span: token.span,
                continues: index > 0 && is_mark(index - 1, b'+'),
                is_continued: is_mark(index + 1, b'+'),
            }),
            Kind::Template => pieces.push(hints::Piece {
                span: token.span,
                continues: start > 0 && byte(start - 1) == Some(b'}'),
                is_continued: byte(end) == Some(b'$'),
            }),
            Kind::Word if is_mark(index + 1, b':') && hints::is_section_key(token.span.of(text)) => {
                found.hint(hints::HintKind::AnySection, token.span);
            }
            _ => {}
        }
    }
    hints::script(text, &pieces, found);
}

struct Reader<'a, 'f> {
    text: &'a str,
    tokens: &'a [Token],
    found: &'f mut ScanResult,
}

impl Reader<'_, '_> {
    fn run(&mut self) {
        // The open brackets, and whether each is the body of a class.
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
        // The body of a custom element is the body of its class.
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

    /// The end of the bracket that opens at `index`, or the end of the bracket itself if it is not closed.
    fn end_of(&self, index: usize) -> u32 {
        self.tokens[self.tokens[index].pair as usize].span.end.max(self.tokens[index].span.end)
    }

    /// Adds a class. Returns the index of the opening brace of its body.
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

    /// Adds a definition with its name at `name`, its parameters at `parameters`, and a body after them.
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

    /// Adds a function or an arrow function at `value`.
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

    /// The classes in a string that looks like a selector.
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

    fn read(text: &str) -> ScanResult {
        let mut found = ScanResult::default();
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
    fn unclosed_brackets_are_reported() {
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
