//! Names in texts that may load a file at run time, although no reference in the code names the file.
//!
//! `{{ 'icon-' | append: name | append: '.svg' | inline_asset_content }}` loads any asset whose name begins with `icon-`, and a
//! script that fetches `?section_id=cart-drawer` loads a section. Whoever asks for unused files must not be told to delete those.
//! Hints only ever keep a file from being called unused, so they may be too many and must not be too few.

use memchr::memmem;

use super::json::{Tree, ValueKind};
use super::{EdgeKind, EdgeNature, ScanResult};
use crate::text::Span;

/// Which files a hint may load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HintKind {
    /// Files with this name.
    Whole,
    /// Files whose names begin with this.
    Start,
    /// Files whose names end with this.
    End,
    /// Any snippet, because the name is computed. The text of such a hint is the expression.
    AnySnippet,
    AnySection,
    AnyBlock,
    AnyAsset,
}

impl HintKind {
    pub const ALL: [Self; 7] = [
        Self::Whole,
        Self::Start,
        Self::End,
        Self::AnySnippet,
        Self::AnySection,
        Self::AnyBlock,
        Self::AnyAsset,
    ];

    /// The kinds that name no file.
    pub const ANY: [Self; 4] = [Self::AnySnippet, Self::AnySection, Self::AnyBlock, Self::AnyAsset];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    pub kind: HintKind,
    pub name: Span,
}

/// Longer words are data.
const MAX_WORD: usize = 64;
/// The longest address in a stylesheet that is read.
const MAX_ADDRESS: usize = 512;
/// What a request to the Section Rendering API names its sections with.
const SECTION_KEYS: [&str; 2] = ["section_id", "sections"];
/// Filters that keep what the literal parts of a name say about it.
const HARMLESS: [&str; 8] =
    ["append", "prepend", "downcase", "handle", "handleize", "strip", "escape", "asset_url"];

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.') || b >= 0x80
}

impl ScanResult {
    /// Adds a hint, unless the text cannot be the name of a file or a part of it.
    pub(super) fn hint(&mut self, kind: HintKind, name: Span) {
        if !name.is_empty() {
            self.hints.push(Hint { kind, name });
        }
    }

    /// Adds each word of a text as the name of a file: `/cart?section_id=cart-drawer` has three.
    fn hint_words(&mut self, text: &str, span: Span) {
        let bytes = text.as_bytes();
        let (mut at, end) = (span.start as usize, span.end as usize);
        while at < end {
            let length = bytes[at..end].iter().take_while(|b| is_word(**b)).count();
            if (2..=MAX_WORD).contains(&length) {
                self.hint(HintKind::Whole, Span::new(at, at + length));
            }
            at += length.max(1);
        }
    }
}

/// The word at the end of a text, or nothing if the text ends with something else.
fn last_word(text: &str, span: Span) -> Span {
    let bytes = &text.as_bytes()[span.start as usize..span.end as usize];
    let length = bytes.iter().rev().take(MAX_WORD).take_while(|b| is_word(**b)).count();
    whole_characters(text, span.end as usize - length, span.end as usize)
}

/// The word at the beginning of a text.
fn first_word(text: &str, span: Span) -> Span {
    let bytes = &text.as_bytes()[span.start as usize..span.end as usize];
    let length = bytes.iter().take(MAX_WORD).take_while(|b| is_word(**b)).count();
    whole_characters(text, span.start as usize, span.start as usize + length)
}

/// The length of a word is limited in bytes, so one of its ends may be in the middle of a character.
fn whole_characters(text: &str, mut start: usize, mut end: usize) -> Span {
    while !text.is_char_boundary(start) {
        start += 1;
    }
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Span::new(start.min(end), end)
}

/// The strings of a tag or an output. A string that `append` or `prepend` completes is a part of a name.
pub fn liquid(text: &str, markup: Span, strings: &[Span], found: &mut ScanResult) {
    let first = found.hints.len();
    for &string in strings {
        let before = text[markup.start as usize..string.start as usize - 1].trim_end();
        let after = &text[(string.end as usize + 1).min(markup.end as usize)..markup.end as usize];
        let is_completed = after
            .trim_start()
            .strip_prefix('|')
            .is_some_and(|filter| filter.trim_start().starts_with("append"));
        if is_completed || before.ends_with("prepend:") {
            found.hint(HintKind::Start, last_word(text, string));
        } else if before.ends_with("append:") {
            found.hint(HintKind::End, first_word(text, string));
        }
        found.hint_words(text, string);
    }
    // The end of a name says little if its beginning is known.
    if found.hints[first..].iter().any(|hint| hint.kind == HintKind::Start) {
        let ends = found.hints.split_off(first);
        found.hints.extend(ends.into_iter().filter(|hint| hint.kind != HintKind::End));
    }
}

/// Whether the literal parts of an expression say which names it can have.
pub fn is_narrow(expression: &str) -> bool {
    let mut stages = expression.split('|');
    let is_literal = stages.next().is_some_and(|first| first.trim_start().starts_with(['\'', '"']));
    let mut is_named = is_literal;
    for stage in stages {
        let filter = stage.trim_start();
        let name = filter.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
        if !name.is_empty() && !HARMLESS.contains(&name) {
            return false;
        }
        is_named |= matches!(name, "append" | "prepend") && filter.contains(['\'', '"']);
    }
    is_named
}

/// References whose names are computed, once all of a template was read. `narrow` are the variables whose every value has a
/// literal part, `wide` those with another value.
pub fn computed(text: &str, narrow: &[Span], wide: &[Span], found: &mut ScanResult) {
    let names =
        |spans: &[Span]| -> rustc_hash::FxHashSet<&str> { spans.iter().map(|span| span.of(text)).collect() };
    let (narrow, wide) = (names(narrow), names(wide));
    let mut hints = Vec::new();
    for reference in &found.references {
        let kind = match reference.kind {
            EdgeKind::Render | EdgeKind::Include => HintKind::AnySnippet,
            EdgeKind::Section | EdgeKind::SectionGroup => HintKind::AnySection,
            EdgeKind::Asset => HintKind::AnyAsset,
            _ => continue,
        };
        let expression = reference.name.of(text).trim().trim_end_matches('|').trim_end();
        // `{% render block %}` renders the block of an app.
        let is_app = reference.kind == EdgeKind::Render && expression == "block";
        let is_known = is_narrow(expression) || (narrow.contains(expression) && !wide.contains(expression));
        if reference.nature == EdgeNature::Indirect && !is_app && !is_known {
            hints.push(Hint { kind, name: reference.name });
        }
    }
    found.hints.extend(hints);
    requests(text, found);
}

/// Addresses of the Section Rendering API in a template's own text, such as `?section_id={{ section.id }}`.
fn requests(text: &str, found: &mut ScanResult) {
    for key in SECTION_KEYS {
        for at in memmem::find_iter(text.as_bytes(), key.as_bytes()) {
            let after = at + key.len();
            if text.as_bytes().get(after) == Some(&b'=') {
                section(text, Span::new(at, after), Span::new(after + 1, text.len()), found);
            }
        }
    }
}

/// What follows `section_id=` within `rest`.
fn section(text: &str, key: Span, rest: Span, found: &mut ScanResult) {
    let bytes = &text.as_bytes()[rest.start as usize..rest.end as usize];
    let is_list = |b: &u8| is_word(*b) || *b == b',' || *b == b'%';
    let length = bytes.iter().take(MAX_ADDRESS).take_while(|b| is_list(b)).count();
    let names = whole_characters(text, rest.start as usize, rest.start as usize + length);
    found.hint_words(text, names);
    if names.is_empty() || matches!(bytes.get(length), Some(b'{' | b'$')) {
        found.hint(HintKind::AnySection, key);
    }
}

/// The text of a `{% capture %}`, up to its first tag or output. Returns whether it says which names there can be.
pub fn capture(text: &str, start: Span, is_whole: bool, found: &mut ScanResult) -> bool {
    found.hint_words(text, start);
    if !is_whole {
        let word = last_word(text, start);
        found.hint(HintKind::Start, word);
        return !word.is_empty();
    }
    true
}

/// The value of an HTML attribute that may hold a name or an address.
pub fn attribute(text: &str, name: &str, value: Span, found: &mut ScanResult) {
    let may_name = name.starts_with("data-")
        || name.starts_with("hx-")
        || matches!(name, "src" | "href" | "action" | "value");
    if may_name {
        found.hint_words(text, value);
    }
}

/// A string or a piece of a template literal in a script.
pub struct Piece {
    pub span: Span,
    /// Whether a computed value stands directly before.
    pub continues: bool,
    /// Whether a computed value follows directly.
    pub is_continued: bool,
}

/// The strings of a script, in their order.
pub fn script(text: &str, pieces: &[Piece], found: &mut ScanResult) {
    let mut has_start = false;
    for Piece { span, continues, is_continued } in pieces {
        let inner = span.of(text);
        found.hint_words(text, *span);
        if *continues && !has_start {
            found.hint(HintKind::End, first_word(text, *span));
        }
        let start = if *is_continued { last_word(text, *span) } else { Span::default() };
        found.hint(HintKind::Start, start);
        has_start = !start.is_empty();
        if *is_continued && inner.ends_with("assets/") {
            found.hint(HintKind::AnyAsset, *span);
        }
        let is_key =
            |key: &&str| *inner == **key || inner.strip_suffix('=').is_some_and(|rest| rest.ends_with(*key));
        if SECTION_KEYS.iter().any(is_key) {
            found.hint(HintKind::AnySection, *span);
        }
    }
}

/// Whether a word of a script is the key of a request for sections, such as `sections: ids`.
pub fn is_section_key(word: &str) -> bool {
    SECTION_KEYS.contains(&word)
}

/// The files that a stylesheet loads: `url(a.png)` and `@import "a.css"`.
pub fn stylesheet(text: &str, within: Span, found: &mut ScanResult) {
    let bytes = &text.as_bytes()[..within.end as usize];
    for (key, close) in [("url(", b')'), ("@import", b';')] {
        for at in memmem::find_iter(&bytes[within.start as usize..], key.as_bytes()) {
            let start = within.start as usize + at + key.len();
            let rest = &bytes[start..bytes.len().min(start + MAX_ADDRESS)];
            let length = memchr::memchr(close, rest).unwrap_or(0);
            found.hint_words(text, Span::new(start, start + length));
        }
    }
}

/// The strings of a JSON file that are one word. `type` and `id` of a setting name no file.
pub fn json(text: &str, tree: &Tree, is_schema: bool, found: &mut ScanResult) {
    for node in &tree.nodes {
        let key = node.key.of(text);
        if node.kind != ValueKind::String || (is_schema && matches!(key, "type" | "id")) {
            continue;
        }
        if (2..=MAX_WORD).contains(&node.span.of(text).len()) && node.span.of(text).bytes().all(is_word) {
            found.hint(HintKind::Whole, node.span);
        }
    }
}

/// Whether a text of a locale can be the name of a file.
pub fn is_one_word(text: &str) -> bool {
    (2..=MAX_WORD).contains(&text.len()) && text.bytes().all(is_word)
}
