//! `find_references`: where a file or a symbol is defined and used.

use memchr::memmem;
use rustc_hash::FxHashSet;
use theme::ThemeIndex;
use theme::path::{FileKind, handle};
use theme::scan::liquid::TokenKind;
use theme::scan::{EdgeKind, EdgeNature, SymbolKind, locale, scan};
use theme::text::{Lines, Span};

use super::{edge_name, nature_name};
use crate::answer::{Report, excerpt};
use crate::arguments::{References, SymbolSort};
use crate::error::ToolError;
use crate::needs::{Needs, paths};
use crate::read::json::Json;
use crate::read::liquid::Liquid;
use crate::text::{is_word, line_of};
use crate::tree::{Tree, has_liquid, is_liquid};

pub fn needs(call: &References, index: &ThemeIndex) -> Needs {
    let Some(path) = &call.path else {
        let sort = call.kind;
        return paths(index, |path, kind| kind != FileKind::Other && reads(sort, path, kind));
    };
    let users: FxHashSet<String> = index.needed_by(path).into_iter().map(|edge| edge.from).collect();
    let mut users: Vec<String> = users.into_iter().collect();
    users.sort_unstable();
    Needs::Paths(users)
}

/// Whether symbols of a sort can be in a file.
fn reads(sort: Option<SymbolSort>, path: &str, kind: FileKind) -> bool {
    let is_json = matches!(kind, FileKind::JsonTemplate | FileKind::SectionGroup);
    match sort {
        None => true,
        Some(SymbolSort::Snippet) => has_liquid(path, kind),
        Some(SymbolSort::Section | SymbolSort::Block) => {
            is_liquid(kind) || is_json || kind == FileKind::SettingsData
        }
        Some(SymbolSort::Setting) => {
            has_liquid(path, kind)
                || is_json
                || matches!(kind, FileKind::SettingsSchema | FileKind::SettingsData)
        }
        Some(SymbolSort::CssClass | SymbolSort::CustomElement | SymbolSort::Function) => {
            is_liquid(kind) || matches!(kind, FileKind::Stylesheet | FileKind::Script)
        }
        Some(SymbolSort::Translation) => {
            has_liquid(path, kind) || kind.is_locale() || kind == FileKind::SettingsSchema || is_json
        }
    }
}

pub fn run(call: &References, tree: &Tree<'_>) -> Result<String, ToolError> {
    match (&call.path, &call.symbol) {
        (Some(path), _) => of_file(call, path, tree),
        (_, symbol) => Ok(of_symbol(call, symbol.as_deref().unwrap_or_default(), tree)),
    }
}

fn of_file(call: &References, path: &str, tree: &Tree<'_>) -> Result<String, ToolError> {
    tree.require(path)?;
    let mut report = Report::new(call.page(), "reference", "references");
    let mut edges = tree.index.needed_by(path);
    edges.sort_by(|a, b| (&a.from, a.lines, a.kind).cmp(&(&b.from, b.lines, b.kind)));
    let mut lines: Option<(String, Lines)> = None;
    for edge in edges {
        report.item(|| {
            let text = tree.text(&edge.from).unwrap_or_default();
            if lines.as_ref().is_none_or(|(path, _)| *path != edge.from) {
                lines = Some((edge.from.clone(), Lines::new(text)));
            }
            let excerpt = lines.as_ref().map_or(String::new(), |(_, lines)| {
                if edge.lines.start > lines.count() || text.is_empty() {
                    return String::new();
                }
                format!("  {}", excerpt(text, lines, lines.span_of(edge.lines.start).start))
            });
            let via = match edge.kind {
                EdgeKind::CssClass | EdgeKind::Setting | EdgeKind::Translation => format!(" {}", edge.via),
                _ => String::new(),
            };
            let (kind, nature) = (edge_name(edge.kind), nature_name(edge.nature));
            format!("{}:{}  {kind}{via}{nature}{excerpt}", edge.from, edge.lines.start)
        });
    }
    if path.starts_with("assets/") || path.starts_with("locales/") || path.starts_with("config/") {
        report.note("For classes, texts and settings, only the first use of each file is listed. Use symbol for all uses.");
    }
    if report.total() == 0 && tree.index.orphans().contains(&path) {
        report.note(format!("Probably unused: {}.", theme::graph::why_unused(path)));
    }
    Ok(report.finish())
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Hit {
    at: u32,
    /// At one place, a known meaning comes before a call, and a call before a mention.
    is_call: bool,
    is_mention: bool,
    what: &'static str,
}

fn of_symbol(call: &References, symbol: &str, tree: &Tree<'_>) -> String {
    let mut report = Report::new(call.page(), "place", "places");
    let wanted = call.kind;
    // A selector names the class that follows the dot.
    let symbol = match wanted {
        None | Some(SymbolSort::CssClass) => symbol.strip_prefix('.').unwrap_or(symbol),
        Some(SymbolSort::Setting) => symbol.rsplit('.').next().unwrap_or(symbol),
        _ => symbol,
    };
    let mut found = Vec::new();
    // The last part of a dotted key is the key in the locale.
    let last = symbol.rsplit('.').next().unwrap_or(symbol);
    let finder = memmem::Finder::new(last.as_bytes());
    let (mut definitions, mut uses) = (0, 0);
    for (path, kind, text) in tree.texts(|path, kind| kind != FileKind::Other && reads(wanted, path, kind)) {
        found.clear();
        let is_file = handle(path) == symbol;
        if let Some(what) = is_file.then(|| file_sort(kind, wanted)).flatten() {
            definitions += 1;
            report.item(|| format!("{path}:1  {what}: this file"));
        }
        if finder.find(text.as_bytes()).is_none() {
            continue;
        }
        hits(path, kind, text, symbol, wanted, &mut found);
        if found.is_empty() {
            continue;
        }
        found.sort_unstable();
        let lines = Lines::new(text);
        // A mention on a line whose meaning is known says nothing more.
        let known: FxHashSet<u32> =
            found.iter().filter(|hit| !hit.is_mention).map(|hit| line_of(&lines, hit.at)).collect();
        let mut last = None;
        let mut defined = None;
        for hit in &found {
            let line = line_of(&lines, hit.at);
            // A definition with brackets looks like a call.
            let is_defined = hit.what == "call" && defined == Some(hit.at);
            if is_defined || (hit.is_mention && known.contains(&line)) || last == Some((line, hit.what)) {
                continue;
            }
            if hit.what.starts_with("defines") {
                defined = Some(hit.at);
            }
            last = Some((line, hit.what));
            definitions += usize::from(hit.what.starts_with("defines"));
            uses += usize::from(!hit.is_mention);
            report.item(|| format!("{path}:{line}  {}  {}", hit.what, excerpt(text, &lines, hit.at)));
        }
    }
    if definitions == 0 && report.total() > 0 {
        report.note(if uses > 0 {
            "Nothing in the theme defines it."
        } else {
            "Nothing in the theme defines or uses this name; other names contain it."
        });
    }
    report.finish()
}

fn file_sort(kind: FileKind, wanted: Option<SymbolSort>) -> Option<&'static str> {
    let (sort, what) = match kind {
        FileKind::Snippet => (SymbolSort::Snippet, "defines the snippet"),
        FileKind::Section => (SymbolSort::Section, "defines the section"),
        FileKind::Block => (SymbolSort::Block, "defines the block"),
        _ => return None,
    };
    wanted.is_none_or(|wanted| wanted == sort).then_some(what)
}

fn hits(
    path: &str,
    kind: FileKind,
    text: &str,
    symbol: &str,
    wanted: Option<SymbolSort>,
    found: &mut Vec<Hit>,
) {
    let is = |sort: SymbolSort| wanted.is_none_or(|wanted| wanted == sort);
    let mut add =
        |at: u32, what: &'static str| found.push(Hit { at, is_call: false, is_mention: false, what });
    if kind.is_locale() {
        if is(SymbolSort::Translation) {
            let key = symbol.strip_prefix("t:").unwrap_or(symbol);
            locale::entries(text, |here, span| {
                if here == key || locale::plural_of(key) == Some(here) {
                    add(span.start, "defines the text");
                }
            });
        }
        return;
    }
    if matches!(kind, FileKind::JsonTemplate | FileKind::SectionGroup | FileKind::SettingsData)
        && is(SymbolSort::Setting)
    {
        stored(text, symbol, |at| add(at, "stores a value"));
    }
    let result = scan(kind, path, text);
    for symbol_found in result.symbols.iter().filter(|found| found.name.of(text) == symbol) {
        let (sort, what) = match symbol_found.kind {
            SymbolKind::Setting => (SymbolSort::Setting, "defines the setting"),
            SymbolKind::BlockType => (SymbolSort::Block, "defines the block type"),
            SymbolKind::CustomElement => (SymbolSort::CustomElement, "defines the element"),
            SymbolKind::Class => (SymbolSort::Function, "defines the class of a script"),
            SymbolKind::Function => (SymbolSort::Function, "defines the function"),
            SymbolKind::Method => (SymbolSort::Function, "defines the method"),
            SymbolKind::CssClass => (SymbolSort::CssClass, "defines the style"),
            _ => continue,
        };
        if is(sort) {
            add(symbol_found.name.start, what);
        }
    }
    for reference in result.references.iter().filter(|found| found.name.of(text) == symbol) {
        if reference.nature == EdgeNature::Indirect {
            continue;
        }
        let sort = match reference.kind {
            EdgeKind::Render | EdgeKind::Include => SymbolSort::Snippet,
            EdgeKind::Section => SymbolSort::Section,
            EdgeKind::Block => SymbolSort::Block,
            EdgeKind::CustomElement => SymbolSort::CustomElement,
            EdgeKind::CssClass => SymbolSort::CssClass,
            EdgeKind::Translation => SymbolSort::Translation,
            EdgeKind::Setting => SymbolSort::Setting,
            _ => continue,
        };
        if is(sort) {
            add(reference.name.start, edge_name(reference.kind));
        }
    }
    if is(SymbolSort::Setting) {
        for span in result.identifiers.iter().filter(|span| span.of(text) == symbol) {
            if text[..span.start as usize].ends_with("settings.") {
                add(span.start, "setting of a section or block");
            }
        }
    }
    if is(SymbolSort::Translation) {
        for label in result.labels.iter().filter(|label| label.of(text).strip_prefix("t:") == Some(symbol)) {
            add(label.start, "label");
        }
    }
    // A name with another meaning is no mention.
    let references = result.references.iter().map(|reference| reference.name);
    let names = references.chain(result.symbols.iter().map(|symbol| symbol.name));
    let others: FxHashSet<u32> =
        names.filter(|name| name.of(text) == symbol).map(|name| name.start).collect();
    mentions(path, kind, text, symbol, wanted, &others, found);
}

/// The keys of `settings` objects.
fn stored(text: &str, symbol: &str, mut each: impl FnMut(u32)) {
    let json = Json::read(text);
    let Some(root) = json.root() else { return };
    // Values of settings stand in objects with the key `settings`, and in `current` and the presets of `settings_data.json`.
    let mut open = vec![(root, false)];
    while let Some((node, is_settings)) = open.pop() {
        for child in json.children(node) {
            let key = json.key(child);
            if is_settings && key == symbol {
                each(json.at(child));
            }
            open.push((child, key == "settings" || key == "current" || json.key(node) == "presets"));
        }
    }
}

/// The word where the scanners see no meaning.
fn mentions(
    path: &str,
    kind: FileKind,
    text: &str,
    symbol: &str,
    wanted: Option<SymbolSort>,
    others: &FxHashSet<u32>,
    found: &mut Vec<Hit>,
) {
    if wanted.is_some_and(|wanted| {
        !matches!(
            wanted,
            SymbolSort::Function | SymbolSort::CssClass | SymbolSort::CustomElement | SymbolSort::Block
        )
    }) {
        return;
    }
    // Prose and schemas mention words that are no names of code.
    let skipped: Vec<Span> = if has_liquid(path, kind) {
        let liquid = Liquid::read(text);
        let body = |token: &theme::scan::liquid::Token| match token.kind {
            TokenKind::Comment { body } | TokenKind::Schema { body } => Some(body),
            _ => None,
        };
        liquid.tokens.iter().filter_map(body).collect()
    } else {
        Vec::new()
    };
    let bytes = text.as_bytes();
    let mut next = 0;
    for at in memmem::find_iter(bytes, symbol.as_bytes()) {
        let end = at + symbol.len();
        let is_part = at.checked_sub(1).is_some_and(|before| is_word(bytes[before]))
            || bytes.get(end).is_some_and(|&byte| is_word(byte));
        while skipped.get(next).is_some_and(|span| (span.end as usize) <= at) {
            next += 1;
        }
        if is_part
            || others.contains(&(at as u32))
            || skipped.get(next).is_some_and(|span| (span.start as usize) <= at)
        {
            continue;
        }
        let is_call =
            bytes.get(end) == Some(&b'(') && wanted.is_none_or(|wanted| wanted == SymbolSort::Function);
        let hit = Hit {
            at: at as u32,
            is_call,
            is_mention: !is_call,
            what: if is_call { "call" } else { "mention" },
        };
        found.push(hit);
    }
}
