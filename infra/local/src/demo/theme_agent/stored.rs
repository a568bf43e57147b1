//! Values in a JSON file of a theme, with their places in its text.

use std::ops::Range;

use theme::scan::json::{Tree, ValueKind, unescape};
use theme::text::Span;

/// A file that the tolerant reader has read, because the platform puts a comment before its own files.
pub struct Stored<'a> {
    text: &'a str,
    tree: Tree,
    children: Vec<Vec<usize>>,
}

impl<'a> Stored<'a> {
    pub fn read(text: &'a str) -> Self {
        let tree = Tree::read(text, Span::new(0, text.len()));
        let mut children = vec![Vec::new(); tree.nodes.len()];
        for node in 0..tree.nodes.len() {
            if let Some(parent) = tree.parent(node) {
                children[parent].push(node);
            }
        }
        Self { text, tree, children }
    }

    pub fn root(&self) -> Option<usize> {
        (0..self.tree.nodes.len()).find(|node| self.tree.is_root(*node) && self.is_object(*node))
    }

    pub fn all(&self) -> Range<usize> {
        0..self.tree.nodes.len()
    }

    pub fn is_object(&self, node: usize) -> bool {
        self.tree.nodes[node].kind == ValueKind::Object
    }

    pub fn children(&self, node: usize) -> &[usize] {
        &self.children[node]
    }

    pub fn parent(&self, node: usize) -> Option<usize> {
        self.tree.parent(node)
    }

    pub fn key(&self, node: usize) -> &'a str {
        self.tree.nodes[node].key.of(self.text)
    }

    /// The last value with this key, as the platform reads it.
    pub fn get(&self, node: usize, key: &str) -> Option<usize> {
        self.children[node].iter().rev().copied().find(|child| self.key(*child) == key)
    }

    /// The text of a string.
    pub fn string(&self, node: usize) -> Option<String> {
        let one = &self.tree.nodes[node];
        (one.kind == ValueKind::String).then(|| unescape(one.span.of(self.text)))
    }

    pub fn string_of(&self, node: usize, key: &str) -> Option<String> {
        self.string(self.get(node, key)?)
    }

    /// Where a value stands, with its quotes.
    pub fn place(&self, node: usize) -> Range<usize> {
        let one = &self.tree.nodes[node];
        let quote = usize::from(one.kind == ValueKind::String);
        one.span.start as usize - quote..one.span.end as usize + quote
    }

    /// The value as it is written.
    pub fn written(&self, node: usize) -> &'a str {
        &self.text[self.place(node)]
    }

    /// The place and the text that make a first entry of an object.
    pub fn entry(&self, object: usize, key: &str, value: &str) -> (Range<usize>, String) {
        match self.children[object].first() {
            Some(first) => {
                let at = self.tree.nodes[*first].key.start as usize - 1;
                let line = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
                let before = &self.text[line..at];
                let gap = match before.trim().is_empty() && line > 0 {
                    true => format!("\n{before}"),
                    false => " ".to_owned(),
                };
                (at..at, format!("\"{key}\": {value},{gap}"))
            }
            None => (self.place(object), format!("{{ \"{key}\": {value} }}")),
        }
    }
}

/// A text as a JSON string.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_entry(text: &str, key: &str) -> String {
        let stored = Stored::read(text);
        let object = key.split('.').fold(stored.root().unwrap(), |node, key| stored.get(node, key).unwrap());
        let (place, new) = stored.entry(object, "x", "1");
        format!("{}{new}{}", &text[..place.start], &text[place.end..])
    }

    #[test]
    fn an_entry_has_the_form_of_its_neighbours() {
        let text = "/* auto */\n{\n  \"a\": {\n    \"b\": \"\\u00e9\"\n  }\n}\n";
        let made = "/* auto */\n{\n  \"a\": {\n    \"x\": 1,\n    \"b\": \"\\u00e9\"\n  }\n}\n";
        assert_eq!(with_entry(text, "a"), made);
        assert_eq!(with_entry("{\"a\": {\"b\": 2}}", "a"), "{\"a\": {\"x\": 1, \"b\": 2}}");
        assert_eq!(with_entry("{\"a\": {}}", "a"), "{\"a\": { \"x\": 1 }}");
        let stored = Stored::read(text);
        let a = stored.get(stored.root().unwrap(), "a").unwrap();
        let b = stored.get(a, "b").unwrap();
        assert_eq!((stored.string(b).as_deref(), stored.written(b)), (Some("é"), "\"\\u00e9\""));
        assert_eq!(stored.string_of(a, "c"), None);
    }
}
