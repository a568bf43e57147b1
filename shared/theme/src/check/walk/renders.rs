//! Tags that print another file, and forms.

use rustc_hash::FxHashSet;

use super::Walker;
use crate::check::Severity::{Error, Info, Warning};
use crate::check::expression::{Parser, Value};
use crate::check::facts::{Render, RenderKind, Written};
use crate::check::names::{FORMS, Type};

impl<'a> Walker<'a, '_> {
    pub(super) fn layout(&mut self, at: usize, mut parser: Parser<'a>) {
        match parser.value() {
            Value::Text { text, .. } => self.push_render(RenderKind::Layout, text, at),
            Value::Path { root: "none", .. } => {}
            value => self.value(&value),
        }
    }

    pub(super) fn form(&mut self, at: usize, mut parser: Parser<'a>, name: &'a str) {
        match parser.value() {
            Value::Text { text, at: text_at } => {
                if !FORMS.contains(&text) {
                    let message = format!("there is no form of the type `{text}`");
                    self.notes.add(text_at, Error, "UnknownForm", message);
                }
                if text == "product" {
                    self.facts.product_forms.push(at);
                }
            }
            value => self.value(&value),
        }
        while parser.take_mark(",") {
            let _ = parser.name_with_colon();
            let value = parser.value();
            self.value(&value);
        }
        self.open(name, at);
    }

    pub(super) fn render(&mut self, at: usize, name: &'a str, mut parser: Parser<'a>) {
        let kind = if name == "render" { RenderKind::Render } else { RenderKind::Include };
        if name == "include" {
            self.notes.add(at, Info, "DeprecatedTag", "`include` is deprecated: use `render`");
        }
        let mut render = Render {
            kind,
            name: None,
            at,
            arguments: Vec::new(),
            alias: None,
            written: Vec::new(),
            is_open: false,
        };
        match parser.value() {
            Value::Text { text, .. } => {
                render.name = Some(text.to_owned());
                if text.trim().is_empty() {
                    self.notes.add(at, Error, "MissingTemplate", format!("`{name}` has an empty name"));
                    render.name = None;
                }
            }
            value => {
                self.value(&value);
                render.is_open = true;
            }
        }
        for word in ["with", "for"] {
            if parser.take_word(word) {
                let value_at = parser.here();
                let value = parser.value();
                let kind = if word == "for" { self.element_of(&value) } else { self.type_of_value(&value) };
                // Each element of a range is a number.
                let written = value.written_type().map(|kind| match kind {
                    "range" if word == "for" => "number",
                    kind => kind,
                });
                self.value(&value);
                let alias = if parser.take_word("as") { parser.word().map(|(alias, _)| alias) } else { None };
                let alias = alias.map(str::to_owned).or_else(|| render.name.clone()).unwrap_or_default();
                render.written.extend(written.map(|kind| Written {
                    name: alias.clone(),
                    kind,
                    at: value_at,
                    is_alias: true,
                }));
                render.alias = Some((alias, kind));
            }
        }
        let mut seen = FxHashSet::default();
        loop {
            parser.take_mark(",");
            let Some((argument, argument_at)) = parser.name_with_colon() else { break };
            let value = parser.value();
            if !seen.insert(argument) {
                let message = format!("the argument `{argument}` is there twice");
                self.notes.add(argument_at, Warning, "DuplicateRenderSnippetArguments", message);
            }
            let kind = self.type_of_value(&value);
            render.written.extend(written(argument, argument_at, &value));
            render.arguments.push((argument.to_owned(), kind, argument_at));
            self.value(&value);
        }
        self.facts.renders.push(render);
    }

    fn push_render(&mut self, kind: RenderKind, name: &str, at: usize) {
        self.facts.renders.push(Render {
            kind,
            name: Some(name.to_owned()),
            at,
            arguments: Vec::new(),
            alias: None,
            written: Vec::new(),
            is_open: false,
        });
    }

    pub(super) fn section(&mut self, at: usize, name: &'a str, mut parser: Parser<'a>) {
        let kind = if name == "section" { RenderKind::Section } else { RenderKind::Group };
        if let Value::Text { text, .. } = parser.value() {
            self.push_render(kind, text, at);
        }
    }

    pub(super) fn content_for(&mut self, at: usize, mut parser: Parser<'a>) {
        let Value::Text { text: what, .. } = parser.value() else { return };
        let (mut kind, mut id) = (None, None);
        let mut arguments: Vec<(String, Type, usize)> = Vec::new();
        let mut values = Vec::new();
        while parser.take_mark(",") {
            // Names such as `closest.product` are arguments, too.
            let mut word = parser.name_with_colon();
            if word.is_none() {
                let value = parser.value();
                if matches!(value, Value::Missing) {
                    break;
                }
                word = parser.take_mark(":").then_some(("", at));
            }
            let value = parser.value();
            match (word.map(|(word, _)| word), &value) {
                (Some("type"), Value::Text { text, .. }) => kind = Some(Some(*text)),
                (Some("type"), _) => kind = Some(None),
                (Some("id"), Value::Text { text, .. }) => id = Some(Some(*text)),
                (Some("id"), _) => id = Some(None),
                (Some(""), _) => {}
                (Some(name), value) => {
                    let name_at = word.map_or(at, |(_, at)| at);
                    if arguments.iter().any(|(known, ..)| known == name) {
                        let message = format!("the argument `{name}` is there twice");
                        self.notes.add(name_at, Warning, "DuplicateContentForArguments", message);
                    }
                    arguments.push((name.to_owned(), self.type_of_value(value), name_at));
                    values.extend(written(name, name_at, value));
                }
                _ => {}
            }
            self.value(&value);
        }
        match what {
            "blocks" => {
                self.facts.content_for_blocks += 1;
                self.facts.content_for_blocks_at = at;
                if self.facts.content_for_blocks == 2 {
                    let message = "`content_for 'blocks'` is there twice";
                    self.notes.add(at, Warning, "DuplicateContentForBlocks", message);
                }
            }
            "block" => {
                self.facts.has_static_blocks = true;
                for (name, given) in [("type", kind.is_some()), ("id", id.is_some())] {
                    if !given {
                        let message = format!("`content_for 'block'` lacks the argument `{name}`");
                        self.notes.add(at, Error, "MissingContentForArguments", message);
                    }
                }
                if let Some(Some(name)) = kind {
                    self.push_render(RenderKind::Block, name, at);
                    if let Some(render) = self.facts.renders.last_mut() {
                        (render.arguments, render.written) = (arguments, values);
                    }
                }
                if let Some(Some(id)) = id {
                    // Two branches of a condition may print the same block.
                    if self.stack.is_empty() && self.facts.static_ids.iter().any(|other| other == id) {
                        let message = format!("the id `{id}` of a static block is there twice");
                        self.notes.add(at, Error, "UniqueStaticBlockId", message);
                    }
                    if self.stack.is_empty() {
                        self.facts.static_ids.push(id.to_owned());
                    }
                }
            }
            other => self.invalid(at, format!("`content_for` knows 'blocks' and 'block', not '{other}'")),
        }
    }
}

/// An argument whose value is written out.
fn written(name: &str, at: usize, value: &Value) -> Option<Written> {
    let kind = value.written_type()?;
    Some(Written { name: name.to_owned(), kind, at, is_alias: false })
}
