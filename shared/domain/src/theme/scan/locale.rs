//! The texts of a locale file, by their dotted keys.

use super::json::{Tree, ValueKind};
use crate::theme::text::Span;

const PLURALS: [&str; 6] = ["zero", "one", "two", "few", "many", "other"];

/// One text of a locale file.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// `general.cart.title`. A plural's forms share the key that templates use.
    pub key: String,
    pub text: Span,
}

/// The texts of a locale file, and the first place that is no JSON.
pub fn entries(text: &str) -> (Vec<Entry>, Option<u32>) {
    let tree = Tree::read(text, Span::new(0, text.len()));
    let mut entries = Vec::with_capacity(tree.nodes.len());
    // The keys of the open objects, joined; a node's children follow it, so a stack of lengths is enough.
    let mut path = String::new();
    let mut open: Vec<(usize, usize)> = Vec::new();
    for (index, node) in tree.nodes.iter().enumerate() {
        let Some(parent) = tree.parent(index) else {
            path.clear();
            open = vec![(index, 0)];
            continue;
        };
        while open.last().is_some_and(|&(top, _)| top != parent) {
            open.pop();
        }
        path.truncate(open.last().map_or(0, |&(_, length)| length));
        let key = node.key.of(text);
        if node.kind == ValueKind::String {
            let is_plural = PLURALS.contains(&key) && !path.is_empty();
            let key = match (is_plural, path.is_empty()) {
                (true, _) => path.clone(),
                (false, true) => key.to_owned(),
                (false, false) => format!("{path}.{key}"),
            };
            entries.push(Entry { key, text: node.span });
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(key);
            open.push((index, path.len()));
        }
    }
    (entries, tree.invalid)
}

/// The language of a locale file: `pt-BR` for `locales/pt-BR.schema.json`.
pub fn language(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').next().unwrap_or(name)
}

/// Whether the file holds the texts that the theme is written in.
pub fn is_default(path: &str) -> bool {
    path.contains(".default.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_keys_that_templates_use() {
        let text =
            r#"/* x */ {"a": {"b": "one text", "c": {"one": "1 item", "other": "n items"}}, "d": "e"}"#;
        let (entries, invalid) = entries(text);
        let shown: Vec<_> = entries.iter().map(|e| (e.key.as_str(), e.text.of(text))).collect();
        assert_eq!(shown, [("a.b", "one text"), ("a.c", "1 item"), ("a.c", "n items"), ("d", "e")]);
        assert_eq!(invalid, None);
    }

    #[test]
    fn a_path_tells_the_language() {
        assert_eq!(language("locales/pt-BR.schema.json"), "pt-BR");
        assert!(is_default("locales/en.default.schema.json") && !is_default("locales/fr.json"));
    }
}
