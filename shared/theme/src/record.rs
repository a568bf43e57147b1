//! The index data of one file. It depends only on the file's path and bytes.

use std::borrow::Cow;

use rustc_hash::FxHashSet;
use sha2::{Digest, Sha256};

use super::chunks::{self, Unit};
use super::fields::{Field, FieldCounter, FieldTerm};
use super::path::{FileKind, handle};
use super::scan::hints::{self, HintKind};
use super::scan::{self, DegradedReason, EdgeKind, EdgeNature, ScanResult, SymbolKind, locale};
use super::text::{LineRange, Lines, Span};
use super::words::{Lexicon, TermId, Tokenizer};

/// Only the path of a larger file is indexed. The platform itself accepts Liquid files up to 256 KB.
pub const MAX_FILE_BYTES: usize = 2 * 1024 * 1024;

/// The largest number of broken places that are reported for one file.
const MAX_DEGRADED: usize = 20;

/// Longer names are expressions or data, so they are cut.
const MAX_NAME_BYTES: usize = 96;

/// An estimate for locale files, including keys.
const USUAL_BYTES_PER_WORD: usize = 16;

/// A name's number in the theme's table of names.
pub type NameId = u32;

/// The tables that records refer to.
#[derive(Clone, Default)]
pub struct Tables {
    pub terms: Lexicon,
    /// Names as they are written: snippets, classes, settings, translation keys.
    pub names: Lexicon,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolRecord {
    pub kind: SymbolKind,
    pub name: NameId,
    pub lines: LineRange,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceRecord {
    pub kind: EdgeKind,
    pub nature: EdgeNature,
    pub name: NameId,
    pub lines: LineRange,
}

/// A text of the default locale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultText {
    pub key: NameId,
    pub terms: Vec<TermId>,
}

/// The texts of a locale file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Texts {
    Default(Vec<DefaultText>),
    /// For every word of another language, the keys whose texts contain it, as pairs of the word's hash and the key,
    /// sorted.
    Foreign(Vec<(u32, NameId)>),
}

#[derive(Clone, Debug)]
pub struct FileRecord {
    pub path: Box<str>,
    pub kind: FileKind,
    /// The first half of the content's SHA-256.
    pub hash: [u8; 16],
    pub bytes: u32,
    /// For a file that is too large to be read, the number of its bytes.
    pub characters: u32,
    pub lines: u32,
    pub degraded: Vec<(u32, DegradedReason)>,
    pub symbols: Vec<SymbolRecord>,
    pub references: Vec<ReferenceRecord>,
    /// Names that may load a file at run time, each once.
    pub hints: Vec<(HintKind, NameId)>,
    /// Keys of the labels that the schema locale translates.
    pub label_keys: Vec<NameId>,
    pub terms: Vec<FieldTerm>,
    pub units: Vec<Unit>,
    /// The terms of all units, unit by unit; each unit's terms are sorted. `unit_ends` holds the end of each unit.
    pub unit_terms: Vec<(TermId, u8)>,
    pub unit_ends: Vec<u32>,
    pub texts: Option<Texts>,
    /// The words of a target's own name, without folder and extensions.
    pub own_name: Vec<TermId>,
    /// The first words of the comment at the beginning of the file.
    pub headline: Option<Box<str>>,
}

/// Reads files into records. It is cheap to create for one file, and faster per file when it reads many.
pub struct RecordReader<'a> {
    names: &'a mut Lexicon,
    tokenizer: Tokenizer<'a>,
    counter: FieldCounter,
    unit: Vec<TermId>,
}

impl<'a> RecordReader<'a> {
    pub fn new(tables: &'a mut Tables) -> Self {
        Self {
            names: &mut tables.names,
            tokenizer: Tokenizer::new(&mut tables.terms),
            counter: FieldCounter::default(),
            unit: Vec::new(),
        }
    }

    pub fn read(&mut self, path: &str, bytes: &[u8]) -> FileRecord {
        let kind = FileKind::of(path);
        let digest = Sha256::digest(bytes);
        let mut record = FileRecord {
            path: path.into(),
            kind,
            hash: digest[..16].try_into().expect("a digest has 32 bytes"),
            bytes: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            characters: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            lines: 1,
            degraded: Vec::new(),
            symbols: Vec::new(),
            references: Vec::new(),
            hints: Vec::new(),
            label_keys: Vec::new(),
            terms: Vec::new(),
            units: Vec::new(),
            unit_terms: Vec::new(),
            unit_ends: Vec::new(),
            texts: None,
            own_name: Vec::new(),
            headline: None,
        };
        if kind == FileKind::Other {
            return record;
        }
        if bytes.len() > MAX_FILE_BYTES {
            record.degraded.push((1, DegradedReason::TooLarge));
            self.path_terms_only(&mut record);
            // Nothing is known about what it loads.
            let name = self.names.intern("");
            record.hints = HintKind::ANY.map(|kind| (kind, name)).into();
            return record;
        }
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(bytes),
        };
        let lines = Lines::new(&text);
        record.lines = lines.count();
        record.characters = text.chars().count() as u32;
        if let Cow::Owned(replaced) = &text {
            let offset = replaced.find('\u{FFFD}').unwrap_or(0);
            record.degraded.push((lines.line_of(offset as u32), DegradedReason::InvalidUtf8));
        }
        if kind.is_locale() {
            self.locale(&mut record, &text, &lines);
        } else if kind.is_target() {
            self.code(&mut record, &text, &lines);
        } else {
            self.hints(&mut record, &scan::scan(kind, path, &text), &text);
        }
        record
    }

    fn path_terms_only(&mut self, record: &mut FileRecord) {
        let counter = &mut self.counter;
        self.tokenizer.name(&record.path, |term| counter.add(term, Field::Path, 1));
        record.terms = counter.take();
    }

    fn name(&mut self, text: &str, span: Span) -> NameId {
        let mut name = span.of(text);
        while name.len() > MAX_NAME_BYTES {
            let mut end = MAX_NAME_BYTES;
            while !name.is_char_boundary(end) {
                end -= 1;
            }
            name = &name[..end];
        }
        self.names.intern(name)
    }

    fn code(&mut self, record: &mut FileRecord, text: &str, lines: &Lines) {
        let minified = scan::is_minified(text, lines.count());
        let found = if minified {
            record.degraded.push((1, DegradedReason::Minified));
            // Only what it may load is kept.
            ScanResult { hints: scan::scan(record.kind, &record.path, text).hints, ..ScanResult::default() }
        } else {
            scan::scan(record.kind, &record.path, text)
        };
        let degraded = found.degraded.iter().map(|place| (lines.line_of(place.offset), place.reason));
        record.degraded.extend(degraded.take(MAX_DEGRADED));
        self.links(record, &found, text, lines);
        self.hints(record, &found, text);
        self.terms(record, &found, text, lines, minified);
        record.own_name = own_name(&record.path, self.tokenizer.lexicon());
        record.headline = headline(&found, text);
    }

    fn hints(&mut self, record: &mut FileRecord, found: &ScanResult, text: &str) {
        let mut seen = FxHashSet::default();
        for hint in &found.hints {
            let word = hint.name.of(text);
            // A number is no name.
            if hint.kind == HintKind::Whole && !word.bytes().any(|b| b.is_ascii_alphabetic() || b >= 0x80) {
                continue;
            }
            if seen.insert((hint.kind, word)) {
                record.hints.push((hint.kind, self.name(text, hint.name)));
            }
        }
        record.hints.sort_unstable();
        record.hints.dedup();
    }

    fn links(&mut self, record: &mut FileRecord, found: &ScanResult, text: &str, lines: &Lines) {
        let mut seen = FxHashSet::default();
        for symbol in &found.symbols {
            let name = self.name(text, symbol.name);
            if seen.insert((symbol.kind, name)) {
                let lines = lines.range_of(symbol.body);
                record.symbols.push(SymbolRecord { kind: symbol.kind, name, lines });
            }
        }
        let mut seen = FxHashSet::default();
        for reference in &found.references {
            let (kind, nature) = (reference.kind, reference.nature);
            let name = self.name(text, reference.name);
            let many = matches!(kind, EdgeKind::CssClass | EdgeKind::Translation | EdgeKind::Setting);
            if seen.insert((kind, nature, name)) || !many {
                let lines = lines.range_of(reference.name);
                record.references.push(ReferenceRecord { kind, nature, name, lines });
            }
        }
        for label in &found.labels {
            if let Some(key) = label.of(text).strip_prefix("t:") {
                record.label_keys.push(self.names.intern(key));
            }
        }
        record.label_keys.sort_unstable();
        record.label_keys.dedup();
    }

    fn terms(
        &mut self,
        record: &mut FileRecord,
        found: &ScanResult,
        text: &str,
        lines: &Lines,
        minified: bool,
    ) {
        let counter = &mut self.counter;
        self.tokenizer.name(&record.path, |term| counter.add(term, Field::Path, 1));
        for symbol in &found.symbols {
            self.tokenizer.name(symbol.name.of(text), |term| counter.add(term, Field::Identifier, 1));
        }
        for reference in &found.references {
            if reference.nature != EdgeNature::Indirect {
                self.tokenizer
                    .terms(reference.name.of(text), |_, term| counter.add(term, Field::Identifier, 1));
            }
        }
        for &identifier in &found.identifiers {
            self.tokenizer.terms(identifier.of(text), |_, term| counter.add(term, Field::Identifier, 1));
        }
        for &comment in &found.comments {
            self.tokenizer.terms(comment.of(text), |_, term| counter.add(term, Field::Comment, 1));
        }
        for &label in found.labels.iter().filter(|label| !label.of(text).starts_with("t:")) {
            self.tokenizer.terms(label.of(text), |_, term| counter.add(term, Field::Label, 1));
        }
        record.units = chunks::units(text, lines, found, minified);
        for unit in &record.units {
            let span =
                Span { start: lines.span_of(unit.lines.start).start, end: lines.span_of(unit.lines.end).end };
            let unit = &mut self.unit;
            unit.clear();
            self.tokenizer.terms(span.of(text), |_, term| unit.push(term));
            unit.sort_unstable();
            for same in unit.chunk_by(|a, b| a == b) {
                let times = u8::try_from(same.len()).unwrap_or(u8::MAX);
                record.unit_terms.push((same[0], times));
                counter.add(same[0], Field::Body, times);
            }
            record.unit_ends.push(record.unit_terms.len() as u32);
        }
        record.terms = counter.take();
    }

    fn locale(&mut self, record: &mut FileRecord, text: &str, lines: &Lines) {
        let (names, tokenizer) = (&mut *self.names, &mut self.tokenizer);
        let invalid;
        record.texts = Some(if locale::is_default(&record.path) {
            let mut texts = Vec::new();
            invalid = locale::entries(text, |key, span| {
                let mut terms = Vec::new();
                tokenizer.terms(span.of(text), |_, term| terms.push(term));
                if hints::is_one_word(span.of(text)) {
                    record.hints.push((HintKind::Whole, names.intern(span.of(text))));
                }
                texts.push(DefaultText { key: names.intern(key), terms });
            });
            Texts::Default(texts)
        } else {
            let mut words = Vec::with_capacity(text.len() / USUAL_BYTES_PER_WORD);
            invalid = locale::entries(text, |key, span| {
                let key = names.intern(key);
                super::words::hashes(span.of(text), |hash| words.push((hash, key)));
            });
            // The pair is compared as one number, because a theme has hundreds of thousands of them.
            words.sort_unstable_by_key(|&(hash, key)| u64::from(hash) << 32 | u64::from(key));
            words.dedup();
            Texts::Foreign(words)
        });
        record.hints.sort_unstable();
        record.hints.dedup();
        if let Some(offset) = invalid {
            record.degraded.push((lines.line_of(offset), DegradedReason::InvalidJson));
        }
    }
}

/// The terms of a file's name without folder and extensions. The path's terms are already in the lexicon.
pub fn own_name(path: &str, terms: &Lexicon) -> Vec<TermId> {
    let name = handle(path).split('.').next().unwrap_or_default();
    let mut own = Vec::new();
    for term in super::words::words(name).iter().filter_map(|word| terms.get(word)) {
        if !own.contains(&term) {
            own.push(term);
        }
    }
    own
}

/// The first sentence of a comment at the beginning of the file, where authors describe the file.
fn headline(found: &ScanResult, text: &str) -> Option<Box<str>> {
    let comment = found.comments.iter().find(|comment| comment.start < 200)?.of(text);
    let line = comment
        .lines()
        .map(|line| line.trim().trim_start_matches(['*', '/', '#', '-', '@', '=', ' ']).trim())
        .find(|line| line.split_whitespace().count() >= 3)?;
    let end = line.char_indices().nth(120).map_or(line.len(), |(at, _)| at);
    Some(line[..end].trim_end_matches("*/").trim_end().into())
}
