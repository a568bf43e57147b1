//! Liquid in JSON: settings of the type `liquid`, and `visible_if`.
//!
//! A value is read without its escapes, mended, and the changed part is escaped again. All other bytes of the file stay.

use rustc_hash::{FxHashMap, FxHashSet};

use super::places::{self, Edit};
use super::{Fixed, How, LeftPlace};
use crate::check::json::{self, Node, Parsed};
use crate::path::{FileKind, handle};
use crate::scan::liquid::{self, TokenKind};
use crate::strict;
use crate::text::{Lines, Span};

/// The deepest nesting of blocks.
const MAX_NESTING: usize = 10;

/// The settings of a section or a theme block that hold Liquid.
#[derive(Clone, Debug, Default)]
struct Held {
    ids: FxHashSet<String>,
    /// Those of the blocks that the schema defines itself.
    blocks: FxHashMap<String, FxHashSet<String>>,
}

/// Which settings of a theme hold Liquid.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    theme: FxHashSet<String>,
    sections: FxHashMap<String, Held>,
    blocks: FxHashMap<String, Held>,
}

/// A string of a file.
struct Place {
    /// Where its quote is.
    at: usize,
    /// Whose value it is.
    what: String,
    /// Whether it is a `visible_if`.
    is_condition: bool,
}

impl Settings {
    /// Learns which settings a file defines.
    pub fn learn(&mut self, path: &str, text: &str) {
        // Most schemas have none.
        if memchr::memmem::find(text.as_bytes(), b"\"liquid\"").is_none() {
            return;
        }
        let kind = FileKind::of(path);
        let Some(Parsed { root, .. }) = of_file(path, text) else { return };
        match kind {
            FileKind::SettingsSchema => {
                let groups = root.items().iter().filter_map(|group| group.get("settings"));
                self.theme = groups.flat_map(liquid_ids).collect();
            }
            FileKind::Section => drop(self.sections.insert(handle(path).to_owned(), held(&root))),
            FileKind::Block => drop(self.blocks.insert(handle(path).to_owned(), held(&root))),
            _ => {}
        }
    }
}

/// Whether a file can have Liquid in JSON strings.
pub fn has_json(kind: FileKind) -> bool {
    matches!(
        kind,
        FileKind::JsonTemplate | FileKind::SectionGroup | FileKind::SettingsSchema | FileKind::SettingsData
    )
}

/// Mends the Liquid in the strings of a file.
pub fn fix(path: &str, text: &str, how: How, settings: &Settings) -> Fixed {
    let mut fixed = Fixed { text: String::new(), changes: Vec::new(), left: Vec::new(), edits: Vec::new() };
    let mut places = found(path, text, settings);
    places.sort_by_key(|place| place.at);
    places.dedup_by_key(|place| place.at);
    if !places.is_empty() {
        let lines = Lines::new(text);
        places.iter().for_each(|place| place.mend(text, &lines, how, &mut fixed));
    }
    fixed.text = places::applied(text, &fixed.edits);
    fixed
}

/// The JSON of a file: a section or block has it in its schema.
pub fn of_file(path: &str, text: &str) -> Option<Parsed> {
    let kind = FileKind::of(path);
    if has_json(kind) || matches!(kind, FileKind::Locale | FileKind::SchemaLocale) {
        return json::parse(text, Span::new(0, text.len()), true).ok();
    }
    if !matches!(kind, FileKind::Section | FileKind::Block) {
        return None;
    }
    let body = liquid::tokens(text).0.into_iter().find_map(|token| match token.kind {
        TokenKind::Schema { body } => Some(body),
        _ => None,
    })?;
    json::parse(text, body, false).ok()
}

fn is_liquid(setting: &Node) -> bool {
    setting.text_of("type") == Some("liquid")
}

/// The settings of a list that hold Liquid.
fn liquid_ids(list: &Node) -> impl Iterator<Item = String> {
    list.items()
        .iter()
        .filter(|setting| is_liquid(setting))
        .filter_map(|setting| setting.text_of("id"))
        .map(str::to_owned)
}

fn held(root: &Node) -> Held {
    let ids = |holder: &Node| holder.get("settings").into_iter().flat_map(liquid_ids).collect();
    let blocks = root.get("blocks").map_or(&[][..], Node::items);
    // A block that only names a theme block has no more than its type.
    let local = blocks.iter().filter(|block| block.members().len() > 1);
    let local = local.filter_map(|block| Some((block.text_of("type")?.to_owned(), ids(block))));
    Held { ids: ids(root), blocks: local.collect() }
}

fn found(path: &str, text: &str, settings: &Settings) -> Vec<Place> {
    let mut found = Vec::new();
    let Some(Parsed { root, .. }) = of_file(path, text) else { return found };
    match FileKind::of(path) {
        FileKind::Section | FileKind::Block => {
            let own = held(&root);
            defined(&root, &mut found);
            for block in root.get("blocks").map_or(&[][..], Node::items) {
                defined(block, &mut found);
            }
            let presets = root.get("presets").map_or(&[][..], Node::items);
            for holder in presets.iter().chain(root.get("default")) {
                stored_by(holder, &own, settings, &mut found);
            }
        }
        FileKind::SettingsSchema => {
            root.items().iter().for_each(|group| defined(group, &mut found));
        }
        FileKind::JsonTemplate | FileKind::SectionGroup => {
            sections(&root, settings, &mut found);
        }
        FileKind::SettingsData => {
            let presets =
                root.get("presets").map_or(&[][..], Node::members).iter().map(|preset| &preset.node);
            for values in root.get("current").into_iter().chain(presets) {
                stored(values, &settings.theme, &mut found);
                sections(values, settings, &mut found);
            }
        }
        _ => {}
    }
    found
}

/// What the settings of a schema, a block of it, or a group define.
fn defined(holder: &Node, found: &mut Vec<Place>) {
    for setting in holder.get("settings").map_or(&[][..], Node::items) {
        let id = setting.text_of("id").unwrap_or_default();
        if let Some(condition) = setting.get("visible_if") {
            found.push(Place {
                at: condition.at,
                what: format!("the `visible_if` of `{id}`"),
                is_condition: true,
            });
        }
        if let Some(default) = setting.get("default").filter(|_| is_liquid(setting)) {
            found.push(Place { at: default.at, what: format!("the Liquid of `{id}`"), is_condition: false });
        }
    }
}

/// The values of these settings.
fn stored(values: &Node, ids: &FxHashSet<String>, found: &mut Vec<Place>) {
    if ids.is_empty() {
        return;
    }
    for member in values.members().iter().filter(|member| ids.contains(&member.key)) {
        let what = format!("the Liquid of `{}`", member.key);
        found.push(Place { at: member.node.at, what, is_condition: false });
    }
}

fn sections(root: &Node, settings: &Settings, found: &mut Vec<Place>) {
    for section in root.get("sections").map_or(&[][..], Node::members) {
        let Some(kind) = section.node.text_of("type") else { continue };
        let none = Held::default();
        stored_by(&section.node, settings.sections.get(kind).unwrap_or(&none), settings, found);
    }
}

/// The values that a section or a preset stores, and those of its blocks.
fn stored_by(holder: &Node, own: &Held, settings: &Settings, found: &mut Vec<Place>) {
    if let Some(values) = holder.get("settings") {
        stored(values, &own.ids, found);
    }
    blocks(holder, own, settings, 0, found);
}

fn blocks(holder: &Node, own: &Held, settings: &Settings, depth: usize, found: &mut Vec<Place>) {
    let Some(list) = holder.get("blocks").filter(|_| depth < MAX_NESTING) else { return };
    for block in list.items().iter().chain(list.members().iter().map(|member| &member.node)) {
        let Some(kind) = block.text_of("type") else { continue };
        let ids = own.blocks.get(kind).or_else(|| settings.blocks.get(kind).map(|block| &block.ids));
        if let (Some(values), Some(ids)) = (block.get("settings"), ids) {
            stored(values, ids, found);
        }
        blocks(block, own, settings, depth + 1, found);
    }
}

impl Place {
    fn mend(&self, text: &str, lines: &Lines, how: How, fixed: &mut Fixed) {
        let Some(string) = Unescaped::read(text, self.at) else { return };
        let new = if self.is_condition {
            self.condition(&string.text, how)
        } else {
            super::liquid(&string.text, how)
        };
        let line = lines.line_of(self.at as u32);
        fixed.changes.extend(new.changes.into_iter().map(|mut change| {
            (change.line, change.reason) = (line, format!("{}: {}", self.what, change.reason));
            change
        }));
        fixed.left.extend(new.left.into_iter().map(|mut left| {
            (left.line, left.reason) = (line, format!("{}: {}", self.what, left.reason));
            left
        }));
        fixed.edits.extend(new.edits.into_iter().map(|edit| string.edit(edit)));
    }

    /// Mends an output that has the grammar of `if`.
    fn condition(&self, text: &str, how: How) -> Fixed {
        let same =
            || Fixed { text: text.to_owned(), changes: Vec::new(), left: Vec::new(), edits: Vec::new() };
        let trimmed = text.trim();
        let Some(inner) = trimmed.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")) else {
            return same();
        };
        let inner = inner.trim_matches('-');
        if strict::accepts("if", inner) {
            return same();
        }
        let start = inner.as_ptr() as usize - text.as_ptr() as usize;
        let (before, after) = ("{% if ", " %}{% endif %}");
        let mut fixed = super::liquid(&format!("{before}{inner}{after}"), how);
        let end = before.len() + inner.len();
        let is_within =
            |edit: &Edit| before.len() <= edit.span.start as usize && edit.span.end as usize <= end;
        let edits: Vec<Edit> = fixed
            .edits
            .iter()
            .filter(|edit| is_within(edit))
            .map(|edit| Edit {
                span: Span {
                    start: edit.span.start - before.len() as u32 + start as u32,
                    end: edit.span.end - before.len() as u32 + start as u32,
                },
                new: edit.new.clone(),
            })
            .collect();
        let new = places::applied(text, &edits);
        let is_mended = edits.len() == fixed.edits.len()
            && new
                .trim()
                .strip_prefix("{{")
                .and_then(|rest| rest.strip_suffix("}}"))
                .is_some_and(|inner| strict::accepts("if", inner.trim_matches('-')));
        if is_mended && let Some(mut change) = fixed.changes.pop() {
            (change.before, change.after) = (trimmed.to_owned(), new.trim().to_owned());
            return Fixed { text: new, changes: vec![change], left: Vec::new(), edits };
        }
        // A mend that writes a tag before the condition has no place here.
        let reason = fixed
            .left
            .pop()
            .map(|left| left.reason)
            .or_else(|| fixed.changes.pop().map(|change| change.reason));
        let left = LeftPlace {
            line: 0,
            code: crate::check::STRICT_CODE,
            kind: strict::first_fault("if", inner).map_or("Value", |stop| stop.kind.name()),
            place: trimmed.to_owned(),
            reason: reason.unwrap_or_else(|| "it is no condition".to_owned()),
            choices: vec!["write a condition as in `if`".to_owned()],
        };
        Fixed { left: vec![left], ..same() }
    }
}

/// A string of JSON without its escapes.
struct Unescaped {
    text: String,
    /// For each byte of `text`, and its end: the place in the file.
    places: Vec<u32>,
}

impl Unescaped {
    /// The string whose quote is at `at`.
    fn read(file: &str, at: usize) -> Option<Self> {
        let bytes = file.as_bytes();
        if bytes.get(at) != Some(&b'"') {
            return None;
        }
        let mut end = at + 1;
        while *bytes.get(end)? != b'"' {
            end += 1 + usize::from(bytes.get(end) == Some(&b'\\'));
        }
        let raw = file.get(at + 1..end)?;
        let mut read =
            Self { text: String::with_capacity(raw.len()), places: Vec::with_capacity(raw.len() + 1) };
        let mut next = 0;
        while let Some(rest) = raw.get(next..).filter(|rest| !rest.is_empty()) {
            let (c, length) = character(rest)?;
            read.text.push(c);
            read.places.extend(std::iter::repeat_n((at + 1 + next) as u32, c.len_utf8()));
            next += length;
        }
        read.places.push(end as u32);
        Some(read)
    }

    /// An edit of the text as one of the file.
    fn edit(&self, edit: Edit) -> Edit {
        let place = |at: u32| self.places.get(at as usize).copied().unwrap_or_default();
        Edit {
            span: Span { start: place(edit.span.start), end: place(edit.span.end) },
            new: escaped(&edit.new),
        }
    }
}

/// The first character of a string, and how many bytes it has in the file. Half of a pair of surrogates is no character.
fn character(rest: &str) -> Option<(char, usize)> {
    let first = rest.chars().next()?;
    if first != '\\' {
        return Some((first, first.len_utf8()));
    }
    let unit = |at: usize| {
        rest.get(at..at + 6)
            .and_then(|unit| unit.strip_prefix("\\u"))
            .and_then(|hex| u16::from_str_radix(hex, 16).ok())
    };
    Some(match rest.as_bytes().get(1)? {
        b'n' => ('\n', 2),
        b't' => ('\t', 2),
        b'r' => ('\r', 2),
        b'b' => ('\u{8}', 2),
        b'f' => ('\u{c}', 2),
        b'u' => {
            let units = [unit(0)?, unit(6).unwrap_or_default()];
            let c = char::decode_utf16(units).next()?.ok()?;
            (c, 6 * c.len_utf16())
        }
        c => (char::from(*c), 2),
    })
}

/// A text as a part of a string of JSON.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}
