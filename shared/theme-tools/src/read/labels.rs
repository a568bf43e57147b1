//! The texts of labels in the theme editor.

use rustc_hash::FxHashMap;
use theme::path::FileKind;
use theme::scan::locale;

use crate::tree::Tree;

/// The texts of the default language, by their keys.
#[derive(Default)]
pub struct Labels<'a>(FxHashMap<String, &'a str>);

/// Whether a file has the labels of the default language.
pub fn is_labels(path: &str, kind: FileKind) -> bool {
    kind == FileKind::SchemaLocale && locale::is_default(path)
}

impl<'a> Labels<'a> {
    pub fn read(tree: &Tree<'a>) -> Self {
        let mut texts = FxHashMap::default();
        for (_, _, text) in tree.texts(is_labels) {
            locale::entries(text, |key, span| _ = texts.insert(key.to_owned(), span.of(text)));
        }
        Self(texts)
    }

    /// The text of a label. For a key that has no text, the key.
    pub fn of<'t>(&'t self, label: &'t str) -> &'t str {
        label.strip_prefix("t:").and_then(|key| self.0.get(key).copied()).unwrap_or(label)
    }

    /// Whether the label is a key without a text.
    pub fn is_missing(&self, label: &str) -> bool {
        label.strip_prefix("t:").is_some_and(|key| !self.0.contains_key(key))
    }
}
