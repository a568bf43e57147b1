//! The stylesheet scanner: rules, the classes in their selectors, custom properties and comments.
//!
//! It reads CSS and the syntax that SCSS adds. It skips Liquid inside the stylesheet.

use super::{DegradedReason, ScanResult, SymbolKind};
use crate::text::Span;

/// Reads the part `within` of `text`.
pub fn scan(text: &str, within: Span, found: &mut ScanResult) {
    let mut scanner =
        Scanner { text, end: within.end as usize, at: within.start as usize, open: Vec::new(), found };
    scanner.run();
}

struct Rule {
    /// The position where its selector begins.
    start: usize,
    /// The symbols of its selector. Their bodies end at the end of the rule.
    symbols: std::ops::Range<usize>,
    keyframes: bool,
}

struct Scanner<'a> {
    text: &'a str,
    end: usize,
    at: usize,
    open: Vec<Rule>,
    found: &'a mut ScanResult,
}

impl Scanner<'_> {
    fn run(&mut self) {
        let bytes = self.text.as_bytes();
        // The position where the current statement begins.
        let mut start = self.at;
        while self.at < self.end {
            match bytes[self.at] {
                b'/' if self.starts_with("/*") => {
                    let comment_from = self.at;
                    let blank = self.text[start..comment_from].trim().is_empty();
                    self.skip_past("*/", 2);
                    self.found.comments.push(Span::new(comment_from, self.at));
                    if blank {
                        start = self.at;
                    }
                }
                b'/' if self.starts_with("//") && self.is_line_comment() => {
                    let comment_from = self.at;
                    let rest = &bytes[self.at..self.end];
                    self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                    self.found.comments.push(Span::new(comment_from, self.at));
                    start = self.at;
                }
                b'{' if self.starts_with("{{") => self.skip_past("}}", 2),
                b'{' if self.starts_with("{%") => self.skip_past("%}", 2),
                // SCSS interpolation is part of the selector.
                b'#' if self.starts_with("#{") => self.skip_past("}", 2),
                quote @ (b'"' | b'\'') => self.string(quote),
                b'{' => {
                    self.open_rule(start);
                    self.at += 1;
                    start = self.at;
                }
                b'}' => {
                    self.declaration(start);
                    self.at += 1;
                    self.close_rule();
                    start = self.at;
                }
                b';' => {
                    self.declaration(start);
                    self.at += 1;
                    start = self.at;
                }
                _ => self.at += 1,
            }
        }
        for rule in std::mem::take(&mut self.open) {
            self.found.degrade(rule.start, DegradedReason::Unbalanced);
        }
    }

    fn starts_with(&self, word: &str) -> bool {
        self.text.as_bytes()[self.at..self.end].starts_with(word.as_bytes())
    }

    /// `//` after a colon is part of a URL.
    fn is_line_comment(&self) -> bool {
        self.at == 0 || self.text.as_bytes()[self.at - 1].is_ascii_whitespace()
    }

    /// Skips past `close`. If there is none, it skips to the end, so that many unclosed openers still take linear time.
    fn skip_past(&mut self, close: &str, opener: usize) {
        let from = (self.at + opener).min(self.end);
        let rest = &self.text.as_bytes()[from..self.end];
        match memchr::memmem::find(rest, close.as_bytes()) {
            Some(at) => self.at = from + at + close.len(),
            None => {
                self.found.degrade(self.at, DegradedReason::Unbalanced);
                self.at = self.end;
            }
        }
    }

    /// A string ends at its closing quote, or at the end of its line if it has none.
    fn string(&mut self, quote: u8) {
        let bytes = self.text.as_bytes();
        self.at += 1;
        while self.at < self.end {
            match bytes[self.at] {
                b'\\' => self.at += 2,
                b'\n' => break,
                b if b == quote => {
                    self.at += 1;
                    break;
                }
                _ => self.at += 1,
            }
        }
        self.at = self.at.min(self.end);
    }

    fn open_rule(&mut self, start: usize) {
        let raw = &self.text[start..self.at];
        let start = start + (raw.len() - raw.trim_start().len());
        let prelude = Span::new(start, self.at.max(start));
        let inner = prelude.of(self.text);
        let first = self.found.symbols.len();
        let mut keyframes = false;
        if let Some(rule) = inner.strip_prefix('@') {
            if let Some(at) = rule.find("keyframes") {
                keyframes = true;
                let name_at = start + 1 + at + "keyframes".len();
                let name = self.text[name_at..self.at].trim();
                let name_at = self.at - self.text[name_at..self.at].trim_start().len();
                self.found.symbol(SymbolKind::Keyframes, Span::new(name_at, name_at + name.len()), prelude);
            }
        } else if !self.open.last().is_some_and(|rule| rule.keyframes) {
            self.selector(prelude);
        }
        let symbols = first..self.found.symbols.len();
        self.open.push(Rule { start, symbols, keyframes });
    }

    fn selector(&mut self, prelude: Span) {
        let bytes = prelude.of(self.text).as_bytes();
        let base = prelude.start as usize;
        let mut at = 0;
        while at < bytes.len() {
            let mark = bytes[at];
            at += 1;
            if !matches!(mark, b'.' | b'#') {
                continue;
            }
            let start = at;
            while at < bytes.len() && is_name(bytes[at]) {
                at += 1;
            }
            if bytes.get(start).is_none_or(u8::is_ascii_digit) {
                continue;
            }
            let name = Span::new(base + start, base + at);
            if mark == b'.' {
                self.found.symbol(SymbolKind::CssClass, name, prelude);
            } else {
                self.found.identifiers.push(name);
            }
        }
    }

    /// `--gap: 1rem` and SCSS's `$gap: 1rem` define a property.
    fn declaration(&mut self, start: usize) {
        let raw = &self.text[start..self.at];
        let start = start + (raw.len() - raw.trim_start().len());
        let statement = raw.trim();
        if (statement.starts_with("--") || statement.starts_with('$'))
            && let Some(length) = statement.find(':')
        {
            let name = Span::new(start, start + statement[..length].trim_end().len());
            self.found.symbol(SymbolKind::CssProperty, name, Span::new(start, start + statement.len()));
        }
    }

    fn close_rule(&mut self) {
        let Some(rule) = self.open.pop() else {
            self.found.degrade(self.at - 1, DegradedReason::Unbalanced);
            return;
        };
        for symbol in &mut self.found.symbols[rule.symbols] {
            symbol.body.end = self.at as u32;
        }
        self.found.blocks.push(Span::new(rule.start, self.at));
    }
}

fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_') || b >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> (Vec<(SymbolKind, &str, &str)>, usize) {
        let mut found = ScanResult::default();
        scan(text, Span::new(0, text.len()), &mut found);
        let symbols = found.symbols.iter().map(|s| (s.kind, s.name.of(text), s.body.of(text))).collect();
        (symbols, found.degraded.len())
    }

    #[test]
    fn rules_name_their_classes_and_properties() {
        use SymbolKind::{CssClass, CssProperty, Keyframes};
        let check = |text: &str, expected: &[(SymbolKind, &str, &str)], degraded: usize| {
            assert_eq!(shown(text), (expected.to_vec(), degraded), "{text:?}");
        };
        check(
            ".a, b.c:hover { x: y }",
            &[(CssClass, "a", ".a, b.c:hover { x: y }"), (CssClass, "c", ".a, b.c:hover { x: y }")],
            0,
        );
        check(
            "@media (min-width: 1.5em) { .a { margin: .5rem } }",
            &[(CssClass, "a", ".a { margin: .5rem }")],
            0,
        );
        check(
            ":root { --gap: 1rem; color: red; --last:2 }",
            &[(CssProperty, "--gap", "--gap: 1rem"), (CssProperty, "--last", "--last:2")],
            0,
        );
        check(
            "@keyframes spin { from { top: 0 } 50.5% { top: 1 } }",
            &[(Keyframes, "spin", "@keyframes spin { from { top: 0 } 50.5% { top: 1 } }")],
            0,
        );
        check("/* .no {} */ .a { content: '} .b {' }", &[(CssClass, "a", ".a { content: '} .b {' }")], 0);
        check(
            ".a { {% if x %}color: {{ y }}{% endif %} } .b {}",
            &[(CssClass, "a", ".a { {% if x %}color: {{ y }}{% endif %} }"), (CssClass, "b", ".b {}")],
            0,
        );
        check(
            "$w: 2px; // .no {\n.a { &.b { url: http://x } }",
            &[
                (CssProperty, "$w", "$w: 2px"),
                (CssClass, "a", ".a { &.b { url: http://x } }"),
                (CssClass, "b", "&.b { url: http://x }"),
            ],
            0,
        );
        check(".a { } } .b {", &[(CssClass, "a", ".a { }"), (CssClass, "b", ".b ")], 2);
        check("/* open", &[], 1);
    }
}
