//! The texts of a locale file and their dotted keys.

use super::json::{Tree, ValueKind};
use crate::text::Span;

/// The forms of a plural, each a key of its text.
pub const PLURALS: [&str; 6] = ["zero", "one", "two", "few", "many", "other"];

/// The key of a plural, if the key is one of its forms: `cart.items` for `cart.items.one`.
pub fn plural_of(key: &str) -> Option<&str> {
    let (plural, form) = key.rsplit_once('.')?;
    PLURALS.contains(&form).then_some(plural)
}

/// Texts with longer keys are left out. Otherwise hostile nesting could make the total size of the keys quadratic in
/// the size of the file.
const MAX_KEY_BYTES: usize = 256;

/// Calls `each` with the key (for example `general.cart.title`) and the span of every text in a locale file. The forms
/// of a plural share the key that templates use. Returns the first position that is not valid JSON.
pub fn entries(text: &str, mut each: impl FnMut(&str, Span)) -> Option<u32> {
    let tree = Tree::read(text, Span::new(0, text.len()));
    // The keys of the open objects, joined. A node's children follow it, so a stack of lengths is enough.
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
        let is_text = node.kind == ValueKind::String;
        let is_plural = is_text && PLURALS.contains(&key) && !path.is_empty();
        if !is_plural {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(key);
        }
        if is_text {
            if path.len() <= MAX_KEY_BYTES {
                each(&path, node.span);
            }
        } else {
            open.push((index, path.len()));
        }
    }
    tree.invalid
}

/// The language of a locale file: `pt-BR` for `locales/pt-BR.schema.json`.
pub fn language(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').next().unwrap_or(name)
}

/// Whether the file is a default locale, which contains the theme's original texts.
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
        let mut shown: Vec<(String, &str)> = Vec::new();
        let invalid = entries(text, |key, span| shown.push((key.to_owned(), span.of(text))));
        let expected = [("a.b", "one text"), ("a.c", "1 item"), ("a.c", "n items"), ("d", "e")];
        assert_eq!(shown, expected.map(|(key, text)| (key.to_owned(), text)));
        assert_eq!(invalid, None);
    }

    #[test]
    fn key_length_is_limited() {
        let mut longest = 0;
        let text = r#"{"text": "x", "more": "#.repeat(1_000);
        entries(&text, |key, _| longest = longest.max(key.len()));
        assert_eq!(longest, "more.".len() * 50 + "text".len());
    }

    #[test]
    fn a_path_tells_the_language() {
        assert_eq!(language("locales/pt-BR.schema.json"), "pt-BR");
        assert!(is_default("locales/en.default.schema.json") && !is_default("locales/fr.json"));
    }
}
