//! JSON with the line of each value, and with the children of each value at hand.

use std::borrow::Cow;
use std::rc::Rc;

use theme::scan::json::{Tree, ValueKind};
use theme::text::{Lines, Span};

use crate::answer::short;
use crate::text::line_of;

const NONE: u32 = u32::MAX;

/// The longest value that an answer shows.
const MAX_SHOWN: usize = 120;

pub struct Json<'a> {
    text: &'a str,
    tree: Tree,
    first: Vec<u32>,
    next: Vec<u32>,
    lines: Rc<Lines>,
}

impl<'a> Json<'a> {
    pub fn read(text: &'a str) -> Self {
        Self::within(text, Span::new(0, text.len()), Rc::new(Lines::new(text)))
    }

    /// Reads a part of a file. `lines` are those of the file.
    pub fn within(text: &'a str, within: Span, lines: Rc<Lines>) -> Self {
        let tree = Tree::read(text, within);
        let mut first = vec![NONE; tree.nodes.len()];
        let mut next = vec![NONE; tree.nodes.len()];
        // From the last to the first, so that the children are in their order.
        for index in (0..tree.nodes.len()).rev() {
            if let Some(parent) = tree.parent(index) {
                next[index] = first[parent];
                first[parent] = index as u32;
            }
        }
        Self { text, tree, first, next, lines }
    }

    /// The first value that is an object or array.
    pub fn root(&self) -> Option<usize> {
        let is_root = |&index: &usize| {
            self.tree.is_root(index)
                && matches!(self.tree.nodes[index].kind, ValueKind::Object | ValueKind::Array)
        };
        // Roots that are strings or numbers come from broken JSON.
        (0..self.tree.nodes.len()).find(is_root)
    }

    pub fn children(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let mut at = self.first[node];
        std::iter::from_fn(move || {
            let here = at;
            if here == NONE {
                return None;
            }
            at = self.next[here as usize];
            Some(here as usize)
        })
    }

    /// The last value with a key, as the platform reads it.
    pub fn get(&self, node: usize, key: &str) -> Option<usize> {
        self.children(node).filter(|&child| self.key(child) == key).last()
    }

    pub fn key(&self, node: usize) -> &'a str {
        self.tree.nodes[node].key.of(self.text)
    }

    pub fn kind(&self, node: usize) -> ValueKind {
        self.tree.nodes[node].kind
    }

    pub fn is_object(&self, node: usize) -> bool {
        self.kind(node) == ValueKind::Object
    }

    /// The text of a string, or the number or word of a scalar.
    pub fn word(&self, node: usize) -> Cow<'a, str> {
        let raw = self.tree.nodes[node].span.of(self.text);
        if self.kind(node) != ValueKind::String || !raw.contains('\\') {
            return Cow::Borrowed(raw);
        }
        match serde_json::from_str(&format!("\"{raw}\"")) {
            Ok(text) => Cow::Owned(text),
            Err(_) => Cow::Borrowed(raw),
        }
    }

    /// The text of a string with this key.
    pub fn text_of(&self, node: usize, key: &str) -> Option<Cow<'a, str>> {
        let found = self.get(node, key)?;
        (self.kind(found) == ValueKind::String).then(|| self.word(found))
    }

    /// The number or word of a value with this key, or the text of a string.
    pub fn word_of(&self, node: usize, key: &str) -> Option<Cow<'a, str>> {
        let found = self.get(node, key)?;
        matches!(self.kind(found), ValueKind::String | ValueKind::Scalar).then(|| self.word(found))
    }

    pub fn is_true(&self, node: usize, key: &str) -> bool {
        self.get(node, key).is_some_and(|found| {
            self.tree.nodes[found].span.of(self.text) == "true" && self.kind(found) == ValueKind::Scalar
        })
    }

    /// The value as an answer shows it: strings in quotes, objects and arrays cut.
    pub fn shown(&self, node: usize) -> String {
        let raw = self.tree.nodes[node].span.of(self.text);
        match self.kind(node) {
            ValueKind::String => format!("\"{}\"", short(raw, MAX_SHOWN)),
            _ => short(raw, MAX_SHOWN),
        }
    }

    pub fn at(&self, node: usize) -> u32 {
        self.tree.nodes[node].span.start
    }

    pub fn line(&self, node: usize) -> u32 {
        line_of(&self.lines, self.at(node))
    }

    /// The line of the first place that is not valid JSON.
    pub fn broken_line(&self) -> Option<u32> {
        self.tree.invalid.map(|at| line_of(&self.lines, at))
    }
}
