//! Variables that a file assigns.

use super::{BLOCKS, Walker};
use crate::check::expression::{Parser, Value};
use crate::check::facts::Doc;
use crate::check::names::Type;
use crate::scan::liquid::{Token, TokenKind};
use crate::strict::{assign_target, quoted};

impl<'a> Walker<'a, '_> {
    /// Reads which variables the file defines. A variable may be read before the line that assigns it, in a loop.
    pub(super) fn definitions(&mut self, tokens: &[Token]) {
        for token in tokens {
            match token.kind {
                TokenKind::Tag { name, markup } => {
                    let (name, markup, at) =
                        (name.of(self.text), markup.of(self.text), markup.start as usize);
                    match name {
                        "assign" | "capture" | "increment" | "decrement" => {
                            let mut parser = match name {
                                "assign" => assigned(markup, at).1,
                                _ => Parser::new(markup, at),
                            };
                            let word = match parser.value() {
                                Value::Path { root, .. } => Some(root),
                                Value::Text { text, .. } => Some(text),
                                _ => None,
                            };
                            if let Some(word) = word {
                                self.assigned
                                    .entry(word)
                                    .or_insert((0, Type::UNKNOWN, token.span.start as usize))
                                    .0 += 1;
                            }
                        }
                        "include" => self.facts.includes = true,
                        _ => {}
                    }
                    if let Some(ended) = name.strip_prefix("end") {
                        self.ends.entry(ended).or_default().push(token.span.start as usize);
                    } else if BLOCKS.contains(&name) {
                        self.opens.entry(name).or_default().push(token.span.start as usize);
                    }
                }
                TokenKind::Comment { body } => {
                    let head = token.span.of(self.text);
                    let head = head.trim_start_matches(['{', '%', '-', ' ', '\n', '\t', '\r']);
                    if head.starts_with("doc") && self.facts.doc.is_none() {
                        let doc = Doc::read(body.of(self.text), body.start as usize, self.notes);
                        for param in &doc.params {
                            self.doc_types.insert(param.name.clone(), param.kind_type());
                        }
                        self.facts.doc = Some(doc);
                    }
                }
                _ => {}
            }
        }
    }

    pub(super) fn assign(&mut self, at: usize, markup: &'a str, markup_at: usize) {
        let (before, mut parser) = assigned(markup, markup_at);
        if !before.is_empty() {
            self.doubtful(at, format!("`assign` ignores {} before the name", quoted(before)));
        }
        let name = match parser.value() {
            Value::Path { root, .. } => root,
            Value::Missing => return,
            _ => "",
        };
        if !parser.take_mark("=") || parser.is_done() {
            return;
        }
        let filtered = parser.filtered();
        self.filtered(&filtered);
        if let Some((times, kind, _)) = self.assigned.get(name)
            && *times == 1
            && !kind.is_known()
        {
            let kind = self.type_of_filtered(&filtered);
            if let Some(entry) = self.assigned.get_mut(name) {
                entry.1 = kind;
            }
        }
    }

    pub(super) fn unused(&mut self) {
        if self.facts.includes {
            return;
        }
        for (name, (_, _, at)) in &self.assigned {
            // A variable is also read as the name within brackets, in the text of the file.
            if !self.read.contains(name) && !name.starts_with('_') {
                let tag = self.text[*at..].trim_start_matches(['{', '%', '-', ' ', '\n', '\t', '\r']);
                if tag.starts_with("assign") || tag.starts_with("capture") {
                    self.facts.unused.push(((*name).to_owned(), *at));
                }
            }
        }
        self.facts.unused.sort_by_key(|(_, at)| *at);
    }
}

/// What an `assign` ignores before its name, and a parser that begins at the name.
fn assigned(markup: &str, at: usize) -> (&str, Parser<'_>) {
    let start = assign_target(markup).map_or(0, |target| target.start as usize);
    let (before, rest) = markup.split_at_checked(start).unwrap_or(("", markup));
    (before.trim(), Parser::new(rest, at + before.len()))
}
