//! `trace_rendering_chain`: how a file comes onto a page, and what it brings along.

use std::collections::BTreeMap;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use theme::ThemeIndex;
use theme::graph::Edge;
use theme::path::FileKind;
use theme::scan::{EdgeKind, EdgeNature};

use super::edge_name;
use crate::answer::{Report, short};
use crate::arguments::RenderingChain;
use crate::error::ToolError;
use crate::needs::Needs;
use crate::read::liquid::Liquid;
use crate::read::schema::Schema;
use crate::read::stored::{Layout, Stored};
use crate::tree::Tree;

/// The most ways that are found. A theme can have more than anyone can read.
const MAX_WAYS: usize = 2_000;
/// The most steps of the search for ways.
const MAX_STEPS: usize = 40_000;
/// The longest way. Blocks nest up to eight levels.
const MAX_LENGTH: usize = 16;
/// The most files that are listed below the file.
const MAX_BELOW: usize = 400;
const THEME_LAYOUT: &str = "layout/theme.liquid";

fn renders(kind: EdgeKind) -> bool {
    use EdgeKind::{Block, Include, Layout, Render, Section, SectionGroup};
    matches!(kind, Render | Include | Section | SectionGroup | Block | Layout)
}

/// All files that lead to a file.
fn above(index: &ThemeIndex, path: &str) -> FxHashSet<String> {
    let mut seen: FxHashSet<String> = FxHashSet::default();
    seen.insert(path.to_owned());
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        for edge in index.needed_by(&path) {
            if renders(edge.kind) && edge.kind != EdgeKind::Layout && seen.insert(edge.from.clone()) {
                open.push(edge.from);
            }
        }
    }
    seen
}

pub fn needs(call: &RenderingChain, index: &ThemeIndex) -> Needs {
    let is_read = |path: &String| {
        use FileKind::{Block, JsonTemplate, Section, SectionGroup, Template};
        let kind = FileKind::of(path);
        matches!(kind, JsonTemplate | SectionGroup | Template)
            || (*path == call.path && matches!(kind, Section | Block))
    };
    let mut paths: Vec<String> = above(index, &call.path).into_iter().filter(is_read).collect();
    if call.path.starts_with("layout/") {
        let templates = index.paths().filter(|path| path.starts_with("templates/"));
        paths.extend(templates.map(str::to_owned));
    }
    paths.sort_unstable();
    paths.dedup();
    Needs::Paths(paths)
}

/// The section, and perhaps the block, whose type stands on a line of a JSON file.
type Places = FxHashMap<(u32, String), (usize, Option<usize>)>;

/// A reference, and its lines.
type Step = (Edge, Vec<u32>);

struct Finder<'t, 'a> {
    tree: &'t Tree<'a>,
    stored: FxHashMap<String, Stored<'a>>,
    layouts: FxHashMap<String, Option<String>>,
    places: FxHashMap<String, Places>,
    known: FxHashMap<String, Rc<Vec<Step>>>,
    ways: Vec<String>,
    taken: usize,
    is_cut: bool,
}

pub fn run(call: &RenderingChain, tree: &Tree<'_>) -> Result<String, ToolError> {
    tree.require(&call.path)?;
    let mut finder = Finder {
        tree,
        stored: FxHashMap::default(),
        layouts: FxHashMap::default(),
        places: FxHashMap::default(),
        known: FxHashMap::default(),
        ways: Vec::new(),
        taken: 0,
        is_cut: false,
    };
    let mut report = Report::new(call.page(), "way", "ways");
    let kind = FileKind::of(&call.path);
    if kind == FileKind::Layout {
        finder.templates_of(&call.path);
    } else {
        finder.up(&mut vec![call.path.clone()], String::new());
    }
    report
        .head(format!("Ways to {}, from the layout down. A number is the line of the reference.", call.path));
    let (ways, is_cut) = (std::mem::take(&mut finder.ways), finder.is_cut);
    for way in &ways {
        report.item(|| way.clone());
    }
    if is_cut {
        report.note("There are more ways. The search stopped at its limit.");
    }
    let has_preset = matches!(kind, FileKind::Section | FileKind::Block)
        && tree
            .text(&call.path)
            .and_then(|text| Schema::read(&call.path, text))
            .is_some_and(|schema| schema.json.get(schema.root, "presets").is_some());
    if has_preset {
        report.note("It has a preset, so a merchant can add it in the theme editor at any time.");
    }
    if ways.is_empty() && !has_preset {
        report.note("No reference leads to it. A name that is computed at run time is not followed.");
    }
    report.note(format!("Below {}:", call.path));
    let lines = below(tree, &call.path);
    if lines.is_empty() {
        report.note("  nothing");
    }
    for line in lines {
        report.note(line);
    }
    Ok(report.finish())
}

impl<'a> Finder<'_, 'a> {
    fn stored(&mut self, path: &str) -> Option<&Stored<'a>> {
        if !self.stored.contains_key(path) {
            let stored = Stored::template(self.tree.text(path)?);
            self.stored.insert(path.to_owned(), stored);
        }
        self.stored.get(path)
    }

    /// The layout of a template.
    fn layout(&mut self, path: &str) -> Option<String> {
        if let Some(layout) = self.layouts.get(path) {
            return layout.clone();
        }
        let layout = if FileKind::of(path) == FileKind::JsonTemplate {
            self.stored(path).map_or(Layout::Default, |stored| stored.layout.clone())
        } else {
            self.tree.text(path).map_or(Layout::Default, liquid_layout)
        };
        let layout = match layout {
            Layout::Default => Some(THEME_LAYOUT.to_owned()),
            Layout::None => None,
            Layout::Named(name) => Some(format!("layout/{name}.liquid")),
        };
        self.layouts.insert(path.to_owned(), layout.clone());
        layout
    }

    /// The first section or block with each type on each line of a JSON file.
    fn places(&mut self, path: &str) -> &Places {
        if !self.places.contains_key(path) {
            let mut places = FxHashMap::default();
            for (index, section) in
                self.stored(path).iter().flat_map(|stored| stored.sections.iter().enumerate())
            {
                places.entry((section.type_line, section.kind.to_string())).or_insert((index, None));
                for (at, block) in section.blocks.iter().enumerate() {
                    places.entry((block.type_line, block.kind.to_string())).or_insert((index, Some(at)));
                }
            }
            self.places.insert(path.to_owned(), places);
        }
        self.places.entry(path.to_owned()).or_default()
    }

    fn templates_of(&mut self, path: &str) {
        let templates: Vec<&str> =
            self.tree.index.paths().filter(|path| path.starts_with("templates/")).collect();
        for template in templates {
            if self.layout(template).as_deref() == Some(path) {
                self.ways.push(format!("{path} > {template}"));
            }
        }
    }

    /// The references to a file, with the lines of each.
    fn steps(&mut self, path: &str) -> Rc<Vec<Step>> {
        if let Some(steps) = self.known.get(path) {
            return Rc::clone(steps);
        }
        let edges = self.tree.index.needed_by(path).into_iter();
        let mut edges: Vec<Edge> =
            edges.filter(|edge| renders(edge.kind) && edge.kind != EdgeKind::Layout).collect();
        edges.sort_by(|a, b| (&a.from, a.lines).cmp(&(&b.from, b.lines)));
        // Several references in one file of code are one step. In a JSON file, each is another section or block.
        let mut steps: Vec<Step> = Vec::new();
        for edge in edges {
            let line = edge.lines.start;
            match steps.last_mut() {
                Some((last, lines)) if last.from == edge.from && !edge.from.ends_with(".json") => {
                    if lines.last() != Some(&line) {
                        lines.push(line);
                    }
                }
                _ => steps.push((edge, vec![line])),
            }
        }
        let steps = Rc::new(steps);
        self.known.insert(path.to_owned(), Rc::clone(&steps));
        steps
    }

    /// Follows the references upwards. `way` has the files from the given one up, and `text` what stands behind the first of them.
    fn up(&mut self, way: &mut Vec<String>, text: String) {
        let Some(path) = way.last().cloned() else { return };
        if self.ways.len() >= MAX_WAYS {
            self.is_cut = true;
            return;
        }
        match FileKind::of(&path) {
            FileKind::Layout => return self.ways.push(format!("{path}{text}")),
            FileKind::Template | FileKind::JsonTemplate => {
                let layout = self.layout(&path).unwrap_or_else(|| "(no layout)".to_owned());
                return self.ways.push(format!("{layout} > {path}{text}"));
            }
            _ => {}
        }
        let mut used = false;
        for (edge, lines) in self.steps(&path).iter() {
            self.taken += 1;
            if self.taken > MAX_STEPS || way.len() >= MAX_LENGTH {
                self.is_cut = true;
                break;
            }
            if way.contains(&edge.from) {
                continue;
            }
            used = true;
            let place = self.place(edge, lines);
            let name = if way.len() == 1 { way[0].clone() } else { path.clone() };
            way.push(edge.from.clone());
            self.up(way, format!("{place} > {name}{text}"));
            way.pop();
        }
        // A section that a merchant can add, or a file that nothing uses: the way begins here.
        if !used && way.len() > 1 {
            self.ways.push(format!("(no template) > {path}{text}"));
        }
    }

    /// The line of a reference, and what a JSON file says about the section or block there.
    fn place(&mut self, edge: &Edge, lines: &[u32]) -> String {
        let line = edge.lines.start;
        let shown: Vec<String> = lines.iter().take(6).map(u32::to_string).collect();
        let more = if lines.len() > 6 { " …" } else { "" };
        let lines = shown.join(",") + more;
        let what = match (edge.kind, edge.nature) {
            (EdgeKind::Block, EdgeNature::Indirect) => " any theme block".to_owned(),
            (EdgeKind::Block, EdgeNature::Preset) if !edge.from.ends_with(".json") => " preset".to_owned(),
            (EdgeKind::Include, _) => " include".to_owned(),
            _ => String::new(),
        };
        let is_json = matches!(FileKind::of(&edge.from), FileKind::JsonTemplate | FileKind::SectionGroup);
        if !is_json || self.stored(&edge.from).is_none() {
            return format!(":{lines}{what}");
        }
        let place = self.places(&edge.from).get(&(line, edge.via.clone())).copied();
        let (Some((section, block)), Some(stored)) = (place, self.stored(&edge.from)) else {
            return format!(":{lines}{what}");
        };
        let section = &stored.sections[section];
        let mut notes = vec![match section.place {
            Some(place) => format!("section {}, {} of {}", short(section.id, 60), place + 1, stored.ordered),
            None => format!("section {}, NOT IN order", short(section.id, 60)),
        }];
        if section.is_disabled {
            notes.push("DISABLED".to_owned());
        }
        if let Some(block) = block.map(|block| &section.blocks[block]) {
            notes.push(format!("block {}", short(block.id, 60)));
            if block.is_disabled {
                notes.push("block DISABLED".to_owned());
            }
            if !block.is_ordered {
                notes.push("block NOT IN block_order".to_owned());
            }
        }
        format!(":{line} ({})", notes.join(", "))
    }
}

fn liquid_layout(text: &str) -> Layout {
    let liquid = Liquid::read(text);
    let layout = liquid.tags().find(|(name, ..)| *name == "layout").map(|(_, markup, _)| {
        let markup = markup.of(text);
        match crate::read::liquid::first_string(markup) {
            Some(name) => Layout::Named(name.to_owned()),
            None if markup.trim() == "none" => Layout::None,
            None => Layout::Default,
        }
    });
    layout.unwrap_or(Layout::Default)
}

/// The files that a file renders, and those that they render. Each file's own part is listed once.
fn below(tree: &Tree<'_>, path: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut seen: FxHashSet<String> = FxHashSet::default();
    let mut open = vec![(path.to_owned(), 0_usize, String::new())];
    while let Some((path, depth, text)) = open.pop() {
        if depth > 0 {
            let again = seen.contains(&path);
            lines.push(format!(
                "{}{text}{}",
                "  ".repeat(depth.min(MAX_LENGTH)),
                if again { " (see above)" } else { "" }
            ));
            if lines.len() >= MAX_BELOW {
                lines.push(format!("  There is more: {} files here are not followed.", open.len()));
                break;
            }
        }
        if !seen.insert(path.clone()) || depth >= MAX_LENGTH {
            continue;
        }
        // Several references to one file are one line.
        let mut next: BTreeMap<(u32, String), (Vec<u32>, EdgeKind, EdgeNature)> = BTreeMap::new();
        let mut first: FxHashMap<String, u32> = FxHashMap::default();
        for edge in tree.index.depends_on(&path) {
            if !renders(edge.kind) || edge.kind == EdgeKind::Layout {
                continue;
            }
            let name = edge.to.unwrap_or_else(|| format!("missing: {}", edge.via));
            let line = edge.lines.start;
            let key = (*first.entry(name.clone()).or_insert(line), name);
            next.entry(key).or_insert_with(|| (Vec::new(), edge.kind, edge.nature)).0.push(line);
        }
        for ((_, name), (places, kind, nature)) in next.into_iter().rev() {
            let places: Vec<String> = places.iter().take(8).map(u32::to_string).collect();
            let nature = if nature == EdgeNature::Indirect { ", at run time" } else { "" };
            let text = format!("{name}  {}{nature}, line {}", edge_name(kind), places.join(", "));
            open.push((name, depth + 1, text));
        }
    }
    lines
}
