//! The texts of a locale.

use std::hash::BuildHasher;
use std::sync::OnceLock;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::Notes;
use super::Severity::{Error, Warning};
use super::json::{Node, Value};
use crate::scan::locale::PLURALS;

/// The most bytes of all keys of a locale together. A key has the names of all objects around it, so that a short text could have keys
/// without measure. Of a locale with more, nothing is known.
const MOST_KEYS: usize = 16 << 20;

/// The texts of a locale by their keys. A theme has hundreds of thousands of them, so the keys are kept in one string, and of the texts only
/// those with placeholders.
#[derive(Debug, Default)]
pub struct Locale {
    /// The keys in order, one after the other.
    keys: Box<str>,
    texts: Box<str>,
    entries: Box<[Entry]>,
    /// The numbers of the texts by the hashes of their keys, once a text was looked for. Only the default locales need it.
    numbers: OnceLock<FxHashMap<u64, u32>>,
}

#[derive(Debug)]
struct Entry {
    /// Where the key and the text end. They begin where those before them end.
    key_end: u32,
    text_end: u32,
    at: u32,
    is_plural: bool,
}

/// A text of a locale.
#[derive(Clone, Copy, Debug)]
pub struct Translation<'a> {
    pub key: &'a str,
    /// Empty if it has no `{`.
    pub text: &'a str,
    pub at: usize,
    pub is_plural: bool,
}

/// A text that was just read.
struct Found {
    key: String,
    text: String,
    at: usize,
    is_plural: bool,
}

#[derive(Default)]
struct Reading {
    found: Vec<Found>,
    bytes: usize,
}

impl Reading {
    fn add(&mut self, key: String, text: &str, at: usize, is_plural: bool) {
        // What has no placeholder is not compared.
        let text =
            if memchr::memchr(b'{', text.as_bytes()).is_some() { text.to_owned() } else { String::new() };
        self.found.push(Found { key, text, at, is_plural });
    }

    const fn is_full(&self) -> bool {
        self.bytes > MOST_KEYS
    }
}

impl Locale {
    /// Reads a locale. `None` if its keys are too long together.
    pub fn read(root: &Node, notes: &mut Notes) -> Option<Self> {
        if !root.is_object() {
            notes.add(
                root.at,
                Error,
                "ValidLocale",
                format!("a locale must be an object, is {}", root.kind()),
            );
            return Some(Self::default());
        }
        let mut reading = Reading::default();
        flatten(root, "", &mut reading, notes);
        (!reading.is_full()).then(|| Self::of(reading.found))
    }

    fn of(mut found: Vec<Found>) -> Self {
        // Of a key that is there twice, the last text counts.
        found.reverse();
        found.sort_by(|a, b| a.key.cmp(&b.key));
        found.dedup_by(|a, b| a.key == b.key);
        let keys: String = found.iter().map(|found| found.key.as_str()).collect();
        let texts: String = found.iter().map(|found| found.text.as_str()).collect();
        let (mut key_end, mut text_end) = (0, 0);
        let entry = |found: &Found| {
            key_end += found.key.len() as u32;
            text_end += found.text.len() as u32;
            Entry { key_end, text_end, at: found.at as u32, is_plural: found.is_plural }
        };
        let entries = found.iter().map(entry).collect();
        Self { keys: keys.into(), texts: texts.into(), entries, numbers: OnceLock::new() }
    }

    /// The number of texts.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The text with this number, in the order of the keys.
    pub fn nth(&self, number: usize) -> Option<Translation<'_>> {
        let entry = self.entries.get(number)?;
        let before = number.checked_sub(1).and_then(|before| self.entries.get(before));
        let (key, text) = before.map_or((0, 0), |before| (before.key_end, before.text_end));
        Some(Translation {
            key: self.keys.get(key as usize..entry.key_end as usize)?,
            text: self.texts.get(text as usize..entry.text_end as usize)?,
            at: entry.at as usize,
            is_plural: entry.is_plural,
        })
    }

    /// The first text whose key is not before this one.
    fn from(&self, key: &str) -> Option<Translation<'_>> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.nth(middle)?.key < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.nth(low)
    }

    pub fn get(&self, key: &str) -> Option<Translation<'_>> {
        let numbers = || {
            (0..).zip(self.iter()).map(|(number, text)| (FxBuildHasher.hash_one(text.key), number)).collect()
        };
        let number = self.numbers.get_or_init(numbers).get(&FxBuildHasher.hash_one(key))?;
        let found = self.nth(*number as usize)?;
        // Of two keys with the same hash the table has one.
        if found.key == key { Some(found) } else { self.from(key).filter(|text| text.key == key) }
    }

    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Whether the key is that of a group of texts.
    pub fn has_group(&self, key: &str) -> bool {
        let prefix = format!("{key}.");
        self.from(&prefix).is_some_and(|text| text.key.starts_with(&prefix))
    }

    pub fn iter(&self) -> impl Iterator<Item = Translation<'_>> {
        (0..self.len()).map_while(|number| self.nth(number))
    }
}

fn flatten(node: &Node, prefix: &str, reading: &mut Reading, notes: &mut Notes) {
    let is_plural = !node.members().is_empty()
        && node
            .members()
            .iter()
            .all(|member| PLURALS.contains(&member.key.as_str()) && member.node.text().is_some());
    if is_plural {
        // Languages with more forms, such as Polish, can do without it. The texts of the checkout are merged with those of the platform.
        let is_short = node.members().iter().all(|member| matches!(member.key.as_str(), "one" | "zero"));
        if is_short && !prefix.starts_with("shopify.") && !prefix.starts_with("customer_accounts.") {
            let message = format!("the plurals of `{prefix}` have no `other`");
            notes.add(node.at, Warning, "ValidLocale", message);
        }
        for member in node.members() {
            unbalanced(member.node.text().unwrap_or_default(), &member.node, notes);
        }
        let text: Vec<&str> = node.members().iter().filter_map(|member| member.node.text()).collect();
        reading.add(prefix.to_owned(), &text.join("\n"), node.at, true);
        return;
    }
    for member in node.members() {
        reading.bytes += prefix.len() + member.key.len();
        if reading.is_full() {
            return;
        }
        let key = if prefix.is_empty() { member.key.clone() } else { [prefix, &member.key].join(".") };
        match &member.node.value {
            Value::String(text) => {
                unbalanced(text, &member.node, notes);
                reading.add(key, text, member.key_at, false);
            }
            Value::Object(_) => flatten(&member.node, &key, reading, notes),
            Value::Null => {}
            _ => {
                let message = format!("the text of `{key}` must be a string, is {}", member.node.kind());
                notes.add(member.node.at, Warning, "ValidLocale", message);
            }
        }
    }
}

fn unbalanced(text: &str, node: &Node, notes: &mut Notes) {
    if memchr::memchr2(b'{', b'}', text.as_bytes()).is_none() {
        return;
    }
    let (open, close) = (text.matches("{{").count(), text.matches("}}").count());
    if open != close {
        notes.add(node.at, Warning, "ValidLocale", "a placeholder in this text has no `{{` or `}}`");
    }
}

/// The names between `{{` and `}}`.
pub fn placeholders(text: &str) -> FxHashSet<&str> {
    names(text).collect()
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    let ended = text.split("{{").skip(1).filter_map(|part| part.split_once("}}"));
    ended.map(|(name, _)| name.trim().trim_matches('-').trim())
}

/// The first name, in order, of a placeholder that `text` has and `original` does not have.
pub fn extra_placeholder<'a>(text: &'a str, original: &str) -> Option<&'a str> {
    // Sets cost more than they save for the few names of a usual text.
    const SHORT: usize = 400;
    if text.len().max(original.len()) <= SHORT {
        return names(text).filter(|name| !names(original).any(|other| other == *name)).min();
    }
    let theirs = placeholders(original);
    names(text).filter(|name| !theirs.contains(name)).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::json;
    use crate::text::Span;

    fn read(text: &str) -> Option<Locale> {
        let parsed = json::parse(text, Span::new(0, text.len()), true).expect("JSON");
        Locale::read(&parsed.root, &mut Notes::default())
    }

    #[test]
    fn texts_have_the_names_of_their_groups() {
        let text = r#"{"b": {"x": "one", "a": {"one": "{{ n }}", "other": "{{ m }}"}}, "a": "first", "a": "{{ last }}", "ba": "z"}"#;
        let locale = read(text).expect("texts");
        let all: Vec<(&str, &str, bool)> =
            locale.iter().map(|text| (text.key, text.text, text.is_plural)).collect();
        assert_eq!(
            all,
            [
                ("a", "{{ last }}", false),
                ("b.a", "{{ n }}\n{{ m }}", true),
                ("b.x", "", false),
                ("ba", "", false)
            ]
        );
        assert!(locale.has("b.x") && locale.has("ba") && !locale.has("b") && !locale.has("c"));
        assert!(
            locale.has_group("b")
                && !locale.has_group("a")
                && !locale.has_group("ba")
                && !locale.has_group("z")
        );
        let at = |key: &str| locale.get(key).map(|text| text.at);
        assert_eq!(at("a"), text.find("\"a\": \"{{ last"));
        assert_eq!(read("{}").map(|locale| locale.len()), Some(0));
    }

    #[test]
    fn a_placeholder_that_the_original_lacks_is_found_in_short_and_long_texts() {
        for more in ["", &"x".repeat(1_000)] {
            let extra = |text: &str, original: &str| {
                extra_placeholder(&format!("{text}{more}"), original).map(str::to_owned)
            };
            assert_eq!(extra("{{ b }} {{- c -}} {{ a }}", "{{c}}"), Some("a".to_owned()));
            assert_eq!(extra("{{ c }} {{ c }}", "{{c}} {{ d }}"), None);
            assert_eq!(extra("{{ c", ""), None);
        }
    }

    #[test]
    fn long_names_of_groups_do_not_multiply() {
        let texts = vec!["\"x\": \"\""; 20_000].join(",");
        let text = format!("{{\"{}\": {{{texts}}}}}", "g".repeat(10_000));
        assert!(read(&text).is_none());
        assert!(read(&text.replace(&"g".repeat(10_000), "g")).is_some());
    }
}
