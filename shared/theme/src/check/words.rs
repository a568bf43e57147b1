//! The words of a file outside of its scripts: what scripts can find in the markup.

use std::hash::{BuildHasher, BuildHasherDefault};

use rustc_hash::{FxHashSet, FxHasher};

use super::{CheckedFile, Content};
use crate::text::Span;

/// The longest beginning of a name that markup completes.
pub const MAX_PREFIX: usize = 100;

/// What the checks of scripts need to know of a file.
#[derive(Default)]
pub struct FileWords {
    /// The parts outside of scripts and schemas. A class may stand anywhere in them, for example in a capture.
    parts: Vec<Span>,
    /// The first halves of the hashes of the words of these parts.
    hashes: FxHashSet<u32>,
    /// Words in the values of ids.
    pub ids: Vec<Span>,
    /// Words that an output may complete, such as `Menu-` in `Menu-{{ id }}`.
    pub prefixes: Vec<Span>,
    pub scripts: Vec<Span>,
    /// Texts that the filter `script_tag` makes scripts of other hosts of.
    pub tags: Vec<Span>,
    /// Whether a script adds scripts to the page.
    pub has_loader: bool,
}

/// The longest text before a filter `script_tag` that is looked at, and the most such filters of a file.
const MAX_TAG: usize = 2_000;
const MAX_TAGS: usize = 500;

/// The texts before the filter `script_tag` that have an address: `'//host/name.js' | script_tag`.
fn script_tags(text: &str) -> Vec<Span> {
    let bytes = text.as_bytes();
    let before = |at: usize| {
        let from = text.ceil_char_boundary(at.saturating_sub(MAX_TAG));
        let start = memchr::memrchr(b'{', &bytes[from..at]).map_or(at, |open| from + open);
        Span::new(start, at)
    };
    let all = memchr::memmem::find_iter(bytes, "script_tag").map(before);
    all.filter(|span| span.of(text).contains("//")).take(MAX_TAGS).collect()
}

/// Whether a script adds scripts to the page.
fn has_loader(text: &str) -> bool {
    ["createElement('script')", "createElement(\"script\")"]
        .iter()
        .any(|call| memchr::memmem::find(text.as_bytes(), call.as_bytes()).is_some())
}

const fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// The words of a part of a text.
fn words(text: &str, part: Span) -> impl Iterator<Item = Span> {
    let bytes = text.as_bytes();
    let (mut at, end) = (part.start as usize, (part.end as usize).min(bytes.len()));
    std::iter::from_fn(move || {
        while at < end && !is_of_word(bytes[at]) {
            at += 1;
        }
        let start = at;
        while at < end && is_of_word(bytes[at]) {
            at += 1;
        }
        (start < at).then(|| Span::new(start, at))
    })
}

pub fn hash(word: &str) -> u64 {
    BuildHasherDefault::<FxHasher>::default().hash_one(word)
}

const fn half(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl FileWords {
    pub fn of(file: &CheckedFile) -> Self {
        let text = file.text.as_str();
        let whole = Span::new(0, text.len());
        let mut found = Self::default();
        match &file.content {
            Content::Script(_) => {
                found.scripts.push(whole);
                found.has_loader = has_loader(text);
            }
            Content::Json(_) => found.parts.push(whole),
            Content::Liquid(liquid) => {
                found.tags = script_tags(text);
                found.has_loader = has_loader(text);
                let mut at = 0;
                for (span, _) in &liquid.markup.scripts {
                    if at < span.start {
                        found.parts.push(Span { start: at, end: span.start });
                    }
                    found.scripts.push(*span);
                    at = span.end;
                }
                let rest = text.get(at as usize..).unwrap_or_default();
                let end = liquid.schema.as_ref().and_then(|_| rest.find("schema")).unwrap_or(rest.len());
                found.parts.push(Span { start: at, end: at + end as u32 });
                for element in &liquid.markup.elements {
                    let value = element.attribute("id").and_then(|attribute| attribute.value);
                    found.ids.extend(value.into_iter().flat_map(|value| words(text, value)));
                }
            }
            _ => {}
        }
        // Room for as many words as such a text usually has.
        let bytes: usize = found.parts.iter().map(|part| (part.end - part.start) as usize).sum();
        found.hashes.reserve(bytes / 32);
        for part in &found.parts {
            for word in words(text, *part) {
                let name = word.of(text);
                let is_new = found.hashes.insert(half(hash(name)));
                // Also if another word has the same hash.
                if is_new || name.ends_with(['-', '_']) {
                    let is_prefix = name.ends_with(['-', '_']) && (2..=MAX_PREFIX).contains(&name.len());
                    found.prefixes.extend(is_prefix.then_some(word));
                }
            }
        }
        found.hashes.shrink_to_fit();
        found
    }

    /// Whether the file has the word, which has this hash.
    pub fn has(&self, hash: u64, word: &str, text: &str) -> bool {
        let bytes = text.as_bytes();
        let is_in = |part: &Span| {
            let (start, end) = (part.start as usize, (part.end as usize).min(bytes.len()));
            let found = memchr::memmem::find_iter(bytes.get(start..end).unwrap_or_default(), word);
            found.map(|at| start + at).any(|at| {
                let after = at + word.len();
                (at == start || !is_of_word(bytes[at - 1])) && (after == end || !is_of_word(bytes[after]))
            })
        };
        // Two words can have one hash.
        self.hashes.contains(&half(hash)) && self.parts.iter().any(is_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_whole_words_of_its_markup() {
        let text = "{% if a %}<p class=\"card card--big\" id=\"Menu-{{ b }}\">é-x</p>{% endif %}<script>only()</script>";
        let file = CheckedFile::read("snippets/a.liquid", text.as_bytes(), None);
        let has = |word: &str| file.words.has(hash(word), word, text);
        for (word, expected) in [
            ("card", true),
            ("card--big", true),
            ("card--", false),
            ("ca", false),
            ("-x", true),
            ("only", false),
        ] {
            assert_eq!(has(word), expected, "{word}");
        }
        assert!(!file.words.has(hash("card"), "car", text), "the hash of another word");
        let of = |spans: &[Span]| spans.iter().map(|span| span.of(text).to_owned()).collect::<Vec<_>>();
        assert_eq!(of(&file.words.prefixes), ["Menu-"]);
        assert_eq!(of(&file.words.scripts), ["only()"]);
        assert!(of(&file.words.ids).contains(&"Menu-".to_owned()));
    }
}
