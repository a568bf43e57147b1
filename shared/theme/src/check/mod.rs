//! Checks a theme: what the platform would refuse, what breaks a page, and what fails silently.
//!
//! A file is read once into a [`CheckedFile`], which depends only on its path and bytes: what is wrong within the file,
//! and what other files need to know of it. [`CheckedTheme`] compares these facts across files. So a change of one file
//! reads one file, and the files that did not change are shared.
//!
//! Precision comes first. Where the text leaves a doubt, there is no error.

mod change;
mod css;
mod damage;
mod doubt;
mod expression;
mod facts;
mod html;
mod items;
pub(crate) mod json;
mod locale;
mod names;
mod pages;
mod pairing;
mod paths;
mod properties;
mod reach;
mod refused;
mod schema;
pub mod script;
#[cfg(test)]
mod sequence_tests;
mod settings;
mod syntax;
mod templates;
#[cfg(test)]
mod tests;
mod theme;
mod walk;
mod words;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use self::css::CssFacts;
pub use self::damage::edited::ChangedLines;
pub use self::doubt::Surroundings;
use self::facts::{Facts, RenderKind};
use self::html::{KeptMarkup, Markup};
use self::json::Node;
use self::locale::Locale;
use self::pairing::Half;
pub use self::refused::is_refused;
use self::schema::Schema;
use self::script::{ScriptFacts, ScriptReader};
use self::settings::Setting;
pub use self::syntax::CODE as STRICT_CODE;
use self::words::FileWords;
use super::path::FileKind;
use super::scan::liquid::{self, TokenKind};
use super::strict;
use super::text::{Lines, Span};

/// Whether Shopify has a filter of this name.
pub(crate) fn is_filter(name: &str) -> bool {
    names::NAMES.filters.contains(name)
}

/// Whether Shopify has a variable of this name, in all templates or in some.
pub(crate) fn is_global(name: &str) -> bool {
    names::NAMES.globals.contains_key(name)
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The platform refuses the file, or a page breaks.
    Error,
    /// Something silently does not work.
    Warning,
    /// It works, but could be better.
    Info,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
pub struct Finding {
    /// The file.
    pub path: String,
    /// From 1.
    pub line: u32,
    /// The name of the check.
    #[schema(example = "UndefinedObject")]
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, as a sentence.
    pub message: String,
    /// Whether the platform refuses the file for it, so that the file can't be uploaded.
    pub refused: bool,
}

#[derive(Clone, Debug)]
struct Note {
    at: usize,
    code: &'static str,
    severity: Severity,
    message: String,
}

/// The longest part of a line that is compared to find the same fault before a change, in bytes before and after its place. A file
/// can be one long line with many faults.
const EXCERPT: usize = 400;

/// The line of a place without the blanks around it, or a part of a long line.
fn excerpt(text: &str, line: Span, at: usize) -> &str {
    let (start, end) = (line.start as usize, line.end as usize);
    let at = at.clamp(start, end.max(start));
    let start = text.ceil_char_boundary(start.max(at.saturating_sub(EXCERPT)));
    let end = text.floor_char_boundary(end.min(at + EXCERPT));
    text.get(start..end).unwrap_or_default().trim()
}

/// The most findings of one file.
const MAX_NOTES: usize = 500;

#[derive(Debug, Default)]
struct Notes {
    list: Vec<Note>,
    /// How many of each severity there are. Suggestions must not displace errors.
    counts: [usize; 3],
    /// Whether there were more.
    is_cut: bool,
}

impl Notes {
    fn add(&mut self, at: usize, severity: Severity, code: &'static str, message: impl Into<String>) {
        let count = &mut self.counts[severity as usize];
        if *count < MAX_NOTES {
            *count += 1;
            self.list.push(Note { at, code, severity, message: message.into() });
        } else {
            self.is_cut = true;
        }
    }
}

/// The width of the blanks before a place, if nothing else precedes it on its line.
fn indent_of(bytes: &[u8], at: usize) -> Option<usize> {
    let width = bytes[..at].iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    matches!(bytes[..at - width].last(), None | Some(b'\n')).then_some(width)
}

/// A file that was read.
pub struct CheckedFile {
    kind: FileKind,
    text: String,
    lines: Lines,
    notes: Vec<Note>,
    /// Whether it has more findings of a severity than are listed.
    is_cut: bool,
    content: Content,
    /// Another file, also one that replaces this one, has another id.
    id: u64,
    words: FileWords,
    /// What is wrong beside the default locale with this id. A locale is not compared again with the same one.
    beside_default: Mutex<Option<(u64, Arc<BesideDefault>)>>,
}

/// A locale beside the default locale.
#[derive(Default)]
struct BesideDefault {
    notes: Box<[Note]>,
    /// The texts of the default locale that it lacks, by their numbers.
    missing: Box<[u32]>,
}

/// The id of the next file that is read.
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

enum Content {
    Liquid(Box<LiquidFile>),
    Json(Node),
    SettingsSchema(Vec<Setting>),
    Locale(Locale),
    Css(CssFacts),
    Script(ScriptFacts),
    /// A file whose content is not read, or that is not valid.
    None,
}

struct LiquidFile {
    facts: Facts,
    /// What was read of the markup. Once the file is read, only what `kept` has of it is there.
    markup: Markup,
    kept: KeptMarkup,
    /// Elements that the file only opens or only closes. Another file may have the other half.
    halves: Vec<Half>,
    schema: Option<Schema>,
    /// A schema that is not valid JSON, so that nothing is known of it.
    has_broken_schema: bool,
    css: CssFacts,
    scripts: Vec<(usize, ScriptFacts)>,
    is_broken: bool,
}

/// Whether the content of a file is checked. Of other files, only the path and the size matter.
#[must_use]
pub fn is_read(path: &str, bytes: u64) -> bool {
    (FileKind::of(path) != FileKind::Other || path.ends_with(".liquid")) && bytes <= paths::MAX_READ as u64
}

/// A mark that an editing tool left in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The byte where it stands.
    pub at: usize,
    /// The name of the check.
    pub code: &'static str,
    /// What is wrong, as a sentence.
    pub message: String,
}

/// The marks that editing tools leave: placeholders, fences, signs of diffs, escaped text, wrong encodings, curly quotes. Nothing else
/// of the file is checked, so this takes a small part of the time of [`CheckedFile::read`].
#[must_use]
pub fn damage(path: &str, bytes: &[u8]) -> Vec<Damage> {
    const CODES: [&str; 5] =
        ["EditingDamage", "Placeholder", "Encoding", "SmartQuotes", "InvisibleCharacter"];
    let mut notes = Notes::default();
    let (text, invalid) = match std::str::from_utf8(bytes) {
        Ok(text) => (text.into(), None),
        Err(error) => (String::from_utf8_lossy(bytes), Some(error.valid_up_to())),
    };
    damage::check_bytes(bytes, invalid, &mut notes);
    damage::check_text(FileKind::of(path), path, &text, &mut notes);
    let mut found: Vec<Damage> = notes
        .list
        .into_iter()
        .filter(|note| CODES.contains(&note.code))
        .map(|note| Damage { at: note.at.min(bytes.len()), code: note.code, message: note.message })
        .collect();
    found.sort_by_key(|damage| damage.at);
    found
}

/// Whether an edit may have left marks that [`damage`] finds in `after` and that the file did not have before. `changes` are the lines
/// that differ, in order and apart from each other, and `added` are the new ones, each with LF. If not, that is certain. This takes a
/// small part of the time of [`damage`] for the whole file.
#[must_use]
pub fn may_have_new_damage(
    path: &str,
    before: &[u8],
    after: &[u8],
    changes: &[ChangedLines],
    added: &[u8],
) -> bool {
    damage::edited::may_have_new(path, before, after, changes, added)
}

impl CheckedFile {
    /// A file whose content is not checked: see [`is_read`].
    #[must_use]
    pub fn unread(path: &str, bytes: u64) -> Self {
        let (kind, mut notes) = (FileKind::of(path), Notes::default());
        paths::check_size(kind, path, bytes, &mut notes);
        let text = String::new();
        Self {
            kind,
            lines: Lines::new(&text),
            notes: notes.list,
            is_cut: false,
            content: Content::None,
            text,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            words: FileWords::default(),
            beside_default: Mutex::default(),
        }
    }

    /// Reads a file.
    pub fn read(path: &str, bytes: &[u8], scripts: Option<&dyn ScriptReader>) -> Self {
        let kind = FileKind::of(path);
        let mut notes = Notes::default();
        let is_text = kind != FileKind::Other || path.ends_with(".liquid");
        let (text, invalid) = if is_text {
            match std::str::from_utf8(bytes) {
                Ok(text) => (text.to_owned(), None),
                Err(error) => (String::from_utf8_lossy(bytes).into_owned(), Some(error.valid_up_to())),
            }
        } else {
            (String::new(), None)
        };
        let mut file = Self {
            kind,
            lines: Lines::new(&text),
            notes: Vec::new(),
            is_cut: false,
            content: Content::None,
            text,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            words: FileWords::default(),
            beside_default: Mutex::default(),
        };
        paths::check_size(kind, path, paths::counted(kind, &file.text, bytes.len()), &mut notes);
        if is_text {
            damage::check_bytes(bytes, invalid, &mut notes);
            damage::check_text(kind, path, &file.text, &mut notes);
            if bytes.len() <= paths::MAX_READ {
                file.content = file.read_content(path, scripts, &mut notes);
                file.words = FileWords::of(&file);
                if let Content::Liquid(liquid) = &mut file.content {
                    liquid.kept = KeptMarkup::of(std::mem::take(&mut liquid.markup), &file.text);
                }
            }
        }
        // One place, one kind of fault: the first message is the most exact one.
        notes.list.sort_by(|a, b| (a.at, a.code, &a.message).cmp(&(b.at, b.code, &b.message)));
        notes.list.dedup_by(|a, b| a.at == b.at && a.code == b.code && a.message == b.message);
        (file.notes, file.is_cut) = (notes.list, notes.is_cut);
        file.lines.shrink();
        file
    }

    fn read_content(&self, path: &str, scripts: Option<&dyn ScriptReader>, notes: &mut Notes) -> Content {
        let text = self.text.as_str();
        match self.kind {
            FileKind::Layout
            | FileKind::Template
            | FileKind::Section
            | FileKind::Block
            | FileKind::Snippet => {
                if text.trim().is_empty() {
                    Content::None
                } else {
                    self.liquid(scripts, notes)
                }
            }
            FileKind::JsonTemplate
            | FileKind::SectionGroup
            | FileKind::SettingsSchema
            | FileKind::SettingsData
            | FileKind::Locale
            | FileKind::SchemaLocale => self.json(path, notes),
            FileKind::Stylesheet => self.stylesheet(path, notes),
            FileKind::Script => self.script(path, scripts, notes),
            FileKind::Other => Content::None,
        }
    }

    fn json(&self, path: &str, notes: &mut Notes) -> Content {
        if self.text.trim().is_empty() {
            return Content::None;
        }
        let root = match json::parse(&self.text, Span::new(0, self.text.len()), true) {
            Ok(parsed) => {
                for doubt in parsed.doubts {
                    notes.add(doubt.at, Severity::Warning, "ValidJSON", doubt.message);
                }
                parsed.root
            }
            Err(error) => {
                let message = format!("the file is not valid JSON: {}", error.message);
                notes.add(error.at, Severity::Error, "ValidJSON", message);
                return Content::None;
            }
        };
        templates::duplicate_keys(&root, notes);
        match self.kind {
            FileKind::SettingsSchema => Content::SettingsSchema(templates::settings_schema(&root, notes)),
            FileKind::Locale | FileKind::SchemaLocale => {
                Locale::read(&root, notes).map_or(Content::None, Content::Locale)
            }
            FileKind::SettingsData => {
                if path == "config/settings_data.json" {
                    templates::settings_data(&root, notes);
                }
                Content::Json(root)
            }
            _ => {
                templates::check_template(self.kind, &root, notes);
                Content::Json(root)
            }
        }
    }

    fn stylesheet(&self, path: &str, notes: &mut Notes) -> Content {
        let whole = Span::new(0, self.text.len());
        if path.contains(".scss") {
            return Content::None; // the platform no longer compiles it
        }
        if path.ends_with(".liquid") {
            self.strict(notes);
            let (tokens, _) = liquid::tokens(&self.text);
            return Content::Css(self.css_with_liquid(whole, &tokens, false, notes));
        }
        self.static_liquid(whole, "stylesheet", notes);
        Content::Css(css::scan(&self.text, whole, false, notes))
    }

    /// What strict Liquid says of a stylesheet or a script.
    fn strict(&self, notes: &mut Notes) {
        let read = strict::read(&self.text);
        syntax::report(&read.refusals, &[], notes);
        syntax::report_otherwise(&read.otherwise, notes);
    }

    /// Liquid in a file in which it does not run.
    fn static_liquid(&self, within: Span, what: &str, notes: &mut Notes) {
        let (tokens, _) = liquid::tokens(within.of(&self.text));
        for token in tokens.iter().take(1) {
            let at = (within.start + token.span.start) as usize;
            let before = &self.text[within.start as usize..at];
            // Within a comment it does no harm. `{{` in a script may be a block in a block.
            if before.rfind("/*").is_some_and(|open| before.rfind("*/").is_none_or(|close| close < open)) {
                continue;
            }
            if what == "script" && !self.is_liquid_in_script(&token.kind, at) {
                continue;
            }
            notes.add(at, Severity::Error, "LiquidInStaticAsset", format!("Liquid does not run in this {what}: its name must end in .liquid, or the value must come from the markup"));
        }
    }

    fn is_liquid_in_script(&self, kind: &TokenKind, at: usize) -> bool {
        let line_start = memchr::memrchr(b'\n', &self.text.as_bytes()[..at]).map_or(0, |newline| newline + 1);
        let before = self.text[line_start..at].trim_start();
        if before.starts_with("//") || before.starts_with('*') {
            return false;
        }
        match kind {
            TokenKind::Tag { name, .. } => names::NAMES.tags.contains(name.of(&self.text)),
            TokenKind::Output { markup } => {
                let inner = markup.of(&self.text);
                !inner.is_empty()
                    && inner
                        .trim_start()
                        .starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '\''))
                    && !inner.contains(['{', '}', ';', '\n'])
                    && (inner.contains(" | ") || inner.contains('.') || inner.starts_with('\''))
            }
            _ => true,
        }
    }

    fn script(&self, path: &str, scripts: Option<&dyn ScriptReader>, notes: &mut Notes) -> Content {
        let whole = Span::new(0, self.text.len());
        if path.ends_with(".liquid") {
            self.strict(notes);
        }
        let Some(reader) = scripts else { return Content::None };
        if path.ends_with(".liquid") {
            let (tokens, _) = liquid::tokens(&self.text);
            let mut facts = self.embedded(reader, whole, false, &tokens, notes);
            if script::is_library(path, &self.text) {
                facts.unresolved.clear();
            }
            return Content::Script(facts);
        }
        let before = notes.list.len();
        let is_library = script::is_library(path, &self.text);
        if !is_library {
            self.static_liquid(whole, "script", notes);
        }
        let mut facts = reader.read(&self.text, false);
        let is_static = notes.list.len() == before;
        note_unread(&facts, 0, notes);
        // A library looks for names that only some browsers or pages have.
        if is_library {
            facts.unresolved.clear();
        }
        if is_static {
            for (at, message) in facts.errors.drain(..).take(1) {
                notes.add(at, Severity::Error, "JavaScriptSyntax", message);
            }
        } else {
            facts.unresolved.clear();
        }
        Content::Script(facts)
    }

    /// Reads a script with Liquid in it.
    fn embedded(
        &self,
        reader: &dyn ScriptReader,
        span: Span,
        is_module: bool,
        tokens: &[liquid::Token],
        notes: &mut Notes,
    ) -> ScriptFacts {
        let base = span.start as usize;
        let (first, has_control) = script::without_liquid(&self.text, span, tokens, true);
        let mut facts = reader.read(&first, is_module);
        let mut in_all = None;
        if has_control && !facts.errors.is_empty() {
            let (all, _) = script::without_liquid(&self.text, span, tokens, false);
            let other = reader.read(&all, is_module);
            in_all = other.errors.first().cloned();
            if other.errors.is_empty() {
                facts = other;
            }
        }
        note_unread(&facts, base, notes);
        let errors = std::mem::take(&mut facts.errors);
        if has_control {
            facts.unresolved.clear();
        }
        if let Some((at, message)) = errors.into_iter().next() {
            // What Liquid prints is not known: a branch, a whole statement, a digit.
            let is_certain = !script::prints_files(&self.text, span, tokens)
                && in_all.is_none_or(|other| other == (at, message.clone()))
                && self.errs_without_outputs(reader, span, is_module, tokens, &first);
            let severity = if is_certain { Severity::Error } else { Severity::Warning };
            notes.add(base + at, severity, "JavaScriptSyntax", message);
        }
        facts.unresolved.retain(|unresolved| !unresolved.name.contains("____"));
        for unresolved in &mut facts.unresolved {
            unresolved.at += base;
        }
        for (_, at) in facts.selectors.iter_mut().chain(&mut facts.elements) {
            *at += base;
        }
        facts.selectors.retain(|(selector, _)| !selector.contains("____"));
        facts
    }

    /// Whether a script is not valid either if outputs that stand alone print nothing, and those beside digits print digits.
    fn errs_without_outputs(
        &self,
        reader: &dyn ScriptReader,
        span: Span,
        is_module: bool,
        tokens: &[liquid::Token],
        source: &str,
    ) -> bool {
        script::with_other_outputs(&self.text, span, tokens, source)
            .is_none_or(|other| !reader.read(&other, is_module).errors.is_empty())
    }

    fn liquid(&self, reader: Option<&dyn ScriptReader>, notes: &mut Notes) -> Content {
        let text = self.text.as_str();
        let (tokens, degraded) = liquid::tokens(text);
        let markup = html::read(text, &tokens, notes);
        stray_ends(text, &tokens, &markup, notes);
        let strict::Reading { refusals, otherwise } = strict::read(text);
        let mut walked = walk::walk(self.kind, text, &tokens, &degraded, &markup.places, notes);
        walked.is_broken |= refusals.iter().any(|refusal| refusal.kind.is_pairing());
        syntax::report(&refusals, &walked.misplaced, notes);
        syntax::report_otherwise(&otherwise, notes);
        if self.kind != FileKind::Layout {
            for render in walked.facts.renders.iter().filter(|render| render.kind == RenderKind::Group) {
                let message = "`sections` is allowed only in a layout: Shopify refuses it elsewhere";
                notes.add(render.at, Severity::Error, "SectionsOutsideLayout", message);
            }
        }
        let mut halves = Vec::new();
        if !walked.is_broken {
            halves = html::pair(text, &markup, self.kind == FileKind::Snippet, notes);
            html::check_elements(text, &markup, notes);
            if self.kind == FileKind::Section {
                html::check_blocks(text, &tokens, &markup, notes);
            }
        }
        let mut css = CssFacts::default();
        for span in &markup.stylesheets {
            self.static_liquid(*span, "stylesheet", notes);
            css.classes.extend(css::scan(text, *span, false, notes).classes);
        }
        for span in &markup.styles {
            css.classes.extend(self.css_with_liquid(*span, &tokens, walked.is_broken, notes).classes);
        }
        let mut scripts = Vec::new();
        if let Some(reader) = reader {
            for body in script::bodies(text, &markup) {
                let facts = self.embedded(reader, body.span, body.is_module, &tokens, notes);
                scripts.push((body.span.start as usize, facts));
            }
        }
        let (schema, has_broken_schema) = self.schema(&tokens, notes);
        if !walked.is_broken && !has_broken_schema {
            let is_single = |types: &str| {
                let limit = |kind: &str| schema.as_ref()?.block(kind)?.limit;
                let mut kinds = types.split(',').map(|kind| kind.trim().trim_matches(['\'', '"']));
                kinds.all(|kind| limit(kind).is_some_and(|limit| limit <= 1.0))
            };
            html::check_ids(text, &markup, &is_single, notes);
        }
        if let Some(schema) =
            schema.as_ref().filter(|_| !has_broken_schema && walked.facts.content_for_blocks > 0)
            && schema.root.get("blocks").is_none_or(json::Node::is_empty_array)
        {
            let message = "`content_for 'blocks'` prints nothing, because the schema has no `blocks`";
            notes.add(walked.facts.content_for_blocks_at, Severity::Warning, "EmptyBlockContent", message);
        }
        Content::Liquid(Box::new(LiquidFile {
            facts: walked.facts,
            markup,
            kept: KeptMarkup::default(),
            halves,
            schema,
            has_broken_schema,
            css,
            scripts,
            is_broken: walked.is_broken,
        }))
    }

    /// Reads a stylesheet with Liquid in it. What is wrong both with the first branches alone and with all branches is
    /// reported.
    fn css_with_liquid(
        &self,
        span: Span,
        tokens: &[liquid::Token],
        is_broken: bool,
        notes: &mut Notes,
    ) -> CssFacts {
        // With the blanks before the part and the byte before them, from which the scanner learns the indentation. Not with the
        // whole text, because a file can have many parts.
        let start = span.start as usize;
        let blanks = self.text[..start].trim_end_matches([' ', '\t']).len();
        let base = self.text.floor_char_boundary(blanks.saturating_sub(1));
        let before = &self.text[base..start];
        let blank = |first_only: bool| {
            let (part, has_control) = script::without_liquid(&self.text, span, tokens, first_only);
            (format!("{before}{part}"), has_control)
        };
        let (all, has_control) = blank(false);
        let within = Span::new(before.len(), all.len());
        let mut found = Notes::default();
        let mut facts = css::scan(&all, within, is_broken, &mut found);
        if has_control && !found.list.is_empty() {
            let (first, _) = blank(true);
            let mut other = Notes::default();
            css::scan(&first, Span::new(before.len(), first.len()), is_broken, &mut other);
            if other.list.len() < found.list.len() {
                std::mem::swap(&mut found, &mut other);
            }
            // What the branches have to do with it is not certain.
            let known: rustc_hash::FxHashSet<(usize, &str)> =
                other.list.iter().map(|note| (note.at, note.message.as_str())).collect();
            for note in &mut found.list {
                if note.severity == Severity::Error && !known.contains(&(note.at, note.message.as_str())) {
                    note.severity = Severity::Warning;
                }
            }
        }
        for note in &mut found.list {
            note.at += base;
        }
        for (_, at) in &mut facts.classes {
            *at += base;
        }
        notes.list.append(&mut found.list);
        notes.is_cut |= found.is_cut;
        facts
    }

    fn schema(&self, tokens: &[liquid::Token], notes: &mut Notes) -> (Option<Schema>, bool) {
        let mut found: Option<Schema> = None;
        let mut is_broken = false;
        let mut count = 0;
        let (mut has_style, mut has_script) = (false, false);
        for token in tokens {
            let (name, body) = match token.kind {
                TokenKind::Schema { body } => ("schema", body),
                TokenKind::Style { .. } => ("stylesheet", Span::default()),
                TokenKind::Script { .. } => ("javascript", Span::default()),
                _ => continue,
            };
            let at = token.span.start as usize;
            if name != "schema" {
                if matches!(self.kind, FileKind::Layout | FileKind::Template) {
                    let message = format!("`{name}` is allowed only in sections, blocks and snippets");
                    notes.add(at, Severity::Error, "StaticStylesheetAndJavascriptTags", message);
                    continue;
                }
                let (has_one, code) = match name {
                    "stylesheet" => (&mut has_style, "StylesheetOncePerFile"),
                    _ => (&mut has_script, "JavascriptOncePerFile"),
                };
                if std::mem::replace(has_one, true) {
                    notes.add(at, Severity::Error, code, format!("the file has a `{name}` already"));
                }
                continue;
            }
            count += 1;
            if !matches!(self.kind, FileKind::Section | FileKind::Block) {
                let message = "a schema is allowed only in sections and blocks";
                notes.add(at, Severity::Error, "ValidSchema", message);
                continue;
            }
            if count > 1 {
                notes.add(at, Severity::Error, "ValidSchema", "the file has a schema already");
                continue;
            }
            match schema::read(self.kind, &self.text, body, notes) {
                Some(schema) => found = Some(schema),
                None => is_broken = true,
            }
        }
        (found, is_broken)
    }

    fn line(&self, at: usize) -> u32 {
        self.lines.line_of(at.min(self.text.len()) as u32).clamp(1, self.lines.count())
    }
}

fn note_unread(facts: &ScriptFacts, base: usize, notes: &mut Notes) {
    if let Some((at, message)) = &facts.unread {
        notes.add(base + at, Severity::Info, "ScriptNotRead", message.clone());
    }
}

/// Ends of tags and outputs that nothing opened: `{ product.title }}`.
fn stray_ends(text: &str, tokens: &[liquid::Token], markup: &Markup, notes: &mut Notes) {
    let mut spans: Vec<Span> = tokens.iter().map(|token| token.span).collect();
    spans.extend(markup.scripts.iter().map(|(span, _)| *span));
    spans.extend(&markup.styles);
    spans.sort();
    let (mut at, mut looked) = (0, 0);
    let mut check = |from: usize, to: usize| {
        for (needle, what) in
            [("}}", "`}}` ends no output: the page shows it"), ("%}", "`%}` ends no tag: the page shows it")]
        {
            let Some(part) = text.get(from..to) else { continue };
            for found in memchr::memmem::find_iter(part.as_bytes(), needle) {
                // Each look goes back in the text.
                looked += 1;
                if looked > 500 {
                    return;
                }
                let place = from + found;
                let line = memchr::memrchr(b'\n', &text.as_bytes()[..place]).map_or(0, |newline| newline + 1);
                let before = &text[line.max(from)..place];
                // Styles in attributes end with a percent sign and a brace nowhere; JSON in attributes ends with `}}`.
                let opener = before.rfind('{').or_else(|| before.rfind('%'));
                let is_liquid = match needle {
                    "}}" => opener.is_some_and(|open| {
                        let inner = &before[open + 1..];
                        !inner.contains([':', '"', ';']) && !inner.trim().is_empty()
                    }),
                    _ => before.contains('{') || before.trim_start().starts_with('%'),
                };
                let in_liquid_tag =
                    text[..place].rfind("{%").is_some_and(|open| !text[open..place].contains("%}"));
                let in_comment =
                    || text[..place].rfind("<!--").is_some_and(|open| !text[open..place].contains("-->"));
                if is_liquid && !in_liquid_tag && !in_comment() {
                    notes.add(place, Severity::Error, "StrayEnd", what);
                }
            }
        }
    };
    for span in spans {
        let (start, end) = (span.start as usize, span.end as usize);
        if start > at {
            check(at, start);
        }
        at = at.max(end);
    }
    check(at, text.len());
}

/// All files of a theme, read.
#[derive(Clone, Default)]
pub struct CheckedTheme {
    files: BTreeMap<String, Arc<CheckedFile>>,
    surroundings: Surroundings,
    /// What is wrong with these files, if it was asked for before. A change of the files empties it.
    found: OnceLock<Arc<[Located]>>,
    places: theme::SelectorPlaces,
}

/// A finding with the byte where it stands. Whether the theme proves it is not settled yet.
#[derive(Clone)]
struct Located {
    finding: Finding,
    at: usize,
}

/// With more findings, they are computed again each time, so that a theme that is kept does not become many times as large.
const MOST_KEPT: usize = 20_000;

impl CheckedTheme {
    /// Reads the files of a theme.
    pub fn read<P: AsRef<str>, B: AsRef<[u8]>>(
        files: impl IntoIterator<Item = (P, B)>,
        scripts: Option<&dyn ScriptReader>,
    ) -> Self {
        Self::default().changed(files, &[], scripts)
    }

    /// Reads the files of a theme on up to `threads` threads, of which the caller's is one. `read` reads an entry of `files`. The result
    /// is the same with each number of threads. A file at the end of the list may begin last, so the largest ones come first.
    ///
    /// # Errors
    /// The error of the first entry that can't be read.
    pub fn read_on<T: Sync, E: Send>(
        threads: usize,
        files: &[T],
        read: impl Fn(&T) -> Result<(String, CheckedFile), E> + Sync,
    ) -> Result<Self, E> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(file) = files.get(index) else { return done };
                done.push((index, read(file)));
            }
        };
        let mut results = std::thread::scope(|scope| {
            let helpers = (1..threads.min(files.len()))
                // If there can be no further thread, the others do its work.
                .map_while(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok())
                .collect::<Vec<_>>();
            let mut results = work();
            for helper in helpers {
                match helper.join() {
                    Ok(more) => results.extend(more),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            results
        });
        results.sort_unstable_by_key(|(index, _)| *index);
        let mut theme = Self::default();
        for (_, file) in results {
            let (path, file) = file?;
            theme.put(path, file);
        }
        Ok(theme)
    }

    /// Reads a file, and adds it or replaces the one at its path.
    pub fn add(&mut self, path: &str, bytes: &[u8], scripts: Option<&dyn ScriptReader>) {
        self.put(path.to_owned(), CheckedFile::read(path, bytes, scripts));
    }

    fn put(&mut self, path: String, file: CheckedFile) {
        self.found = OnceLock::new();
        self.files.insert(path, Arc::new(file));
    }

    /// Adds a file whose content is not checked, or replaces the one at its path.
    pub fn add_unread(&mut self, path: String, bytes: u64) {
        let file = CheckedFile::unread(&path, bytes);
        self.put(path, file);
    }

    /// Says what stands around the theme in its folder.
    pub fn set_surroundings(&mut self, surroundings: Surroundings) {
        self.surroundings = surroundings;
    }

    pub fn remove(&mut self, path: &str) {
        if self.files.remove(path).is_some() {
            self.found = OnceLock::new();
        }
    }

    /// The number of files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The same theme with some files replaced or added and some deleted. The other files are not read again.
    #[must_use]
    pub fn changed<P: AsRef<str>, B: AsRef<[u8]>>(
        &self,
        files: impl IntoIterator<Item = (P, B)>,
        deleted: &[String],
        scripts: Option<&dyn ScriptReader>,
    ) -> Self {
        let mut theme = self.clone();
        for path in deleted {
            theme.remove(path);
        }
        for (path, bytes) in files {
            theme.add(path.as_ref(), bytes.as_ref(), scripts);
        }
        theme
    }

    /// Whether a file has more than 500 findings of one severity, so that some are missing.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.files.values().any(|file| file.is_cut)
    }

    /// Everything that is wrong, by path and line. Of each file and severity, the first 500. What the theme alone does not prove is a
    /// warning.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found: Vec<Finding> = self.located().iter().map(|located| located.finding.clone()).collect();
        doubt::settle(self, &mut found);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// What the change from `base` to this theme adds. A finding that `base` already has is not new, even on another
    /// line.
    pub fn added_since(&self, base: &Self) -> Vec<Finding> {
        change::added(base, self)
    }

    /// The findings, sorted. Of equal ones on equal parts of lines there is one.
    fn located(&self) -> Arc<[Located]> {
        if let Some(found) = self.found.get() {
            return found.clone();
        }
        let mut found: Vec<Located> = Vec::new();
        self.each_note(|path, note| found.push(Located { finding: self.finding(path, note), at: note.at }));
        let key = |located: &Located| self.excerpt(located);
        found.sort_by(|a, b| a.finding.cmp(&b.finding).then_with(|| key(a).cmp(key(b))));
        found.dedup_by(|a, b| a.finding == b.finding && key(a) == key(b));
        let found: Arc<[Located]> = found.into();
        if found.len() <= MOST_KEPT {
            return self.found.get_or_init(|| found).clone();
        }
        found
    }

    /// The part of the line of a finding that is compared.
    fn excerpt(&self, located: &Located) -> &str {
        let file = self.files.get(&located.finding.path);
        file.map_or("", |file| excerpt(&file.text, file.lines.span_of(located.finding.line), located.at))
    }

    /// Calls `each` with what is wrong within the files, and then with what is wrong between them.
    fn each_note(&self, mut each: impl FnMut(&str, &Note)) {
        let reach = reach::Reach::of(self);
        let mut each = |path: &str, note: &Note| match reach.severity(path, note) {
            severity if severity == note.severity => each(path, note),
            severity => each(path, &Note { severity, ..note.clone() }),
        };
        for (path, file) in &self.files {
            file.notes.iter().for_each(|note| each(path, note));
        }
        for (path, note) in theme::check(self) {
            each(&path, &note);
        }
    }

    fn finding(&self, path: &str, note: &Note) -> Finding {
        Finding {
            path: path.to_owned(),
            line: self.files.get(path).map_or(1, |file| file.line(note.at)),
            code: note.code,
            severity: note.severity,
            message: note.message.clone(),
            refused: is_refused(path, note.code, note.severity),
        }
    }
}
