//! The dependency graph: which file needs which other file, how, and on which lines.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::path::{FileKind, handle};
use super::record::{FileRecord, NameId, ReferenceRecord, Tables, Texts};
use super::scan::hints::HintKind;
use super::scan::locale;
use super::scan::{EdgeKind, EdgeNature, SymbolKind};
use super::text::LineRange;

/// If more stylesheets than this define a class, the class does not show which one is needed.
const MAX_DEFINERS: usize = 3;
/// A name that is built at run time is resolved to at most this many files.
const MAX_GUESSED: usize = 200;

/// A reference. It is resolved if the theme has the named file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawEdge {
    pub from: u32,
    /// `None` if the theme has no such file.
    pub to: Option<u32>,
    pub kind: EdgeKind,
    pub nature: EdgeNature,
    pub name: NameId,
    pub lines: LineRange,
}

/// An edge as callers see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Edge {
    pub from: String,
    /// The file that is needed. `None` if the theme does not have it.
    pub to: Option<String>,
    pub kind: EdgeKind,
    pub nature: EdgeNature,
    /// The name that the reference uses.
    pub via: String,
    /// The lines of the reference in `from`.
    pub lines: LineRange,
}

/// All edges of a theme, indexed by both ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Sorted by `from`, and within a file by line.
    pub edges: Vec<RawEdge>,
    starts: Vec<u32>,
    /// Indexes of edges, by the file they lead to.
    incoming: Vec<Vec<u32>>,
    /// For each file, the files that it renders or loads and the files that render or load it, each once.
    near: Vec<Vec<u32>>,
    /// For each file, the sections and groups that it shows and the files that show it, each once.
    section_near: Vec<Vec<u32>>,
}

impl Graph {
    pub fn build(files: &[FileRecord], tables: &Tables) -> Self {
        let resolver = Resolver::new(files, tables);
        let mut graph = Self::default();
        for (index, file) in files.iter().enumerate() {
            graph.starts.push(graph.edges.len() as u32);
            // A stylesheet or locale is listed once per file and kind, even if many names need it.
            let mut seen = FxHashSet::default();
            for reference in &file.references {
                resolver.resolve(index, reference, |to| {
                    let is_bulk = matches!(reference.kind, EdgeKind::CssClass | EdgeKind::Translation);
                    if to == Some(index as u32)
                        || (is_bulk && to.is_some() && !seen.insert((reference.kind, to)))
                    {
                        return;
                    }
                    graph.edges.push(RawEdge {
                        from: index as u32,
                        to,
                        kind: reference.kind,
                        nature: reference.nature,
                        name: reference.name,
                        lines: reference.lines,
                    });
                });
            }
        }
        graph.starts.push(graph.edges.len() as u32);
        graph.incoming = vec![Vec::new(); files.len()];
        graph.near = vec![Vec::new(); files.len()];
        graph.section_near = vec![Vec::new(); files.len()];
        for (index, edge) in graph.edges.iter().enumerate() {
            let Some(to) = edge.to else { continue };
            graph.incoming[to as usize].push(index as u32);
            let near = match edge.kind {
                kind if kind.is_near() => &mut graph.near,
                EdgeKind::Section | EdgeKind::SectionGroup => &mut graph.section_near,
                _ => continue,
            };
            near[edge.from as usize].push(to);
            near[to as usize].push(edge.from);
        }
        for near in graph.near.iter_mut().chain(&mut graph.section_near) {
            near.sort_unstable();
            near.dedup();
        }
        graph
    }

    /// The edges to the files that this file needs.
    pub fn outgoing(&self, file: u32) -> &[RawEdge] {
        &self.edges[self.starts[file as usize] as usize..self.starts[file as usize + 1] as usize]
    }

    /// The edges from the files that need this file.
    pub fn incoming(&self, file: u32) -> impl ExactSizeIterator<Item = &RawEdge> {
        self.incoming[file as usize].iter().map(|&index| &self.edges[index as usize])
    }

    /// The files that this file renders or loads, and the files that render or load it, each once.
    pub fn near(&self, file: u32) -> &[u32] {
        &self.near[file as usize]
    }

    /// The sections and groups that this file shows, and the files that show it, each once.
    pub fn section_near(&self, file: u32) -> &[u32] {
        &self.section_near[file as usize]
    }
}

struct Resolver<'a> {
    files: &'a [FileRecord],
    tables: &'a Tables,
    by_handle: FxHashMap<(Folder, &'a str), u32>,
    elements: ByName,
    classes: Vec<Definers>,
    settings: ByName,
    texts: ByName,
}

/// Maps names to files by the name's number. A flat array is used because the numbers are dense and most names are
/// looked up.
struct ByName {
    files: Vec<u32>,
    any: bool,
}

impl ByName {
    fn new(names: usize) -> Self {
        Self { files: vec![u32::MAX; names], any: false }
    }

    /// The last file with a name wins.
    fn insert(&mut self, name: NameId, file: u32) {
        self.files[name as usize] = file;
        self.any = true;
    }

    fn get(&self, name: NameId) -> Option<u32> {
        Some(self.files[name as usize]).filter(|&file| file != u32::MAX)
    }
}

/// The stylesheets that define a class, if there are only a few.
#[derive(Clone, Copy, Default)]
struct Definers {
    count: usize,
    files: [u32; MAX_DEFINERS],
}

impl Definers {
    fn add(&mut self, file: u32) {
        if self.count > 0 && self.files[self.count.min(MAX_DEFINERS) - 1] == file {
            return;
        }
        if let Some(place) = self.files.get_mut(self.count) {
            *place = file;
        }
        self.count += 1;
    }

    fn few(&self) -> &[u32] {
        if self.count <= MAX_DEFINERS { &self.files[..self.count] } else { &[] }
    }
}

/// Where to look for a name of some kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Folder {
    Snippets,
    Sections,
    Groups,
    Blocks,
    Layouts,
    Assets,
}

fn folder_of(file: &FileRecord) -> Option<Folder> {
    Some(match file.kind {
        FileKind::Snippet => Folder::Snippets,
        FileKind::Section => Folder::Sections,
        FileKind::SectionGroup => Folder::Groups,
        FileKind::Block => Folder::Blocks,
        FileKind::Layout => Folder::Layouts,
        FileKind::Stylesheet | FileKind::Script => Folder::Assets,
        FileKind::Other if file.path.starts_with("assets/") => Folder::Assets,
        _ => return None,
    })
}

impl<'a> Resolver<'a> {
    fn new(files: &'a [FileRecord], tables: &'a Tables) -> Self {
        let mut all = Self {
            files,
            tables,
            by_handle: FxHashMap::default(),
            elements: ByName::new(tables.names.len()),
            classes: vec![Definers::default(); tables.names.len()],
            settings: ByName::new(tables.names.len()),
            texts: ByName::new(tables.names.len()),
        };
        for (index, file) in (0_u32..).zip(files) {
            if let Some(folder) = folder_of(file) {
                all.by_handle.insert((folder, handle(&file.path)), index);
            }
            for symbol in &file.symbols {
                match symbol.kind {
                    SymbolKind::CustomElement => all.elements.insert(symbol.name, index),
                    SymbolKind::CssClass => all.classes[symbol.name as usize].add(index),
                    SymbolKind::Setting if file.kind == FileKind::SettingsSchema => {
                        all.settings.insert(symbol.name, index);
                    }
                    _ => {}
                }
            }
            if let (FileKind::Locale, Some(Texts::Default(texts))) = (file.kind, &file.texts) {
                texts.iter().for_each(|text| all.texts.insert(text.key, index));
            }
        }
        all
    }

    fn resolve(&self, from: usize, reference: &ReferenceRecord, mut each: impl FnMut(Option<u32>)) {
        let name = self.tables.names.term(reference.name);
        let folder = match reference.kind {
            EdgeKind::Render | EdgeKind::Include => Folder::Snippets,
            EdgeKind::Section => Folder::Sections,
            EdgeKind::SectionGroup => Folder::Groups,
            EdgeKind::Block => return self.block(from, reference, name, each),
            EdgeKind::Layout => Folder::Layouts,
            EdgeKind::Asset => Folder::Assets,
            EdgeKind::Import => return each_import(self, name, each),
            EdgeKind::CustomElement => {
                return self.elements.get(reference.name).into_iter().for_each(|to| each(Some(to)));
            }
            EdgeKind::CssClass => {
                let definers = self.classes[reference.name as usize].few();
                return definers.iter().for_each(|&to| each(Some(to)));
            }
            EdgeKind::Translation => {
                // A template may name one form of a plural.
                let plural = || self.texts.get(self.tables.names.get(locale::plural_of(name)?)?);
                let known = self.texts.get(reference.name).or_else(plural);
                // Without a default locale it is unknown whether a key is missing.
                let is_key = reference.nature == EdgeNature::Direct && name.contains('.');
                if known.is_some() || (is_key && self.texts.any) {
                    each(known);
                }
                return;
            }
            EdgeKind::Setting => {
                if self.settings.any {
                    each(self.settings.get(reference.name));
                }
                return;
            }
        };
        if reference.nature == EdgeNature::Indirect {
            self.guessed(folder, name, each);
        } else {
            each(self.find(folder, name));
        }
    }

    fn find(&self, folder: Folder, name: &str) -> Option<u32> {
        let found = self.by_handle.get(&(folder, name)).copied();
        if found.is_some() || folder != Folder::Assets {
            return found;
        }
        // The platform compiles `theme.scss.liquid` to `theme.scss.css`, and `a.css.liquid` to `a.css`.
        let source = name.strip_suffix(".css").unwrap_or(name);
        [source, source.strip_suffix(".scss").unwrap_or(source)]
            .into_iter()
            .find_map(|name| self.by_handle.get(&(folder, name)).copied())
    }

    /// For a name that is built at run time: all files whose names begin with its literal part (`'icon-' | append:
    /// name`).
    fn guessed(&self, folder: Folder, expression: &str, mut each: impl FnMut(Option<u32>)) {
        let Some(start) = expression.find(['\'', '"']) else { return };
        let prefix = expression[start + 1..].split(['\'', '"']).next().unwrap_or_default();
        if prefix.len() < 3 {
            return;
        }
        let matches = |file: &&(usize, &FileRecord)| {
            folder_of(file.1) == Some(folder) && handle(&file.1.path).starts_with(prefix)
        };
        let found = self.files.iter().enumerate().filter(|file| matches(&file)).take(MAX_GUESSED);
        found.for_each(|(index, _)| each(Some(index as u32)));
    }

    fn block(&self, from: usize, reference: &ReferenceRecord, name: &str, mut each: impl FnMut(Option<u32>)) {
        match (reference.nature, self.find(Folder::Blocks, name)) {
            (_, Some(to)) => each(Some(to)),
            // Any theme block whose name does not begin with an underscore can be used here.
            (EdgeNature::Indirect, None) if name == "@theme" => {
                let public =
                    |file: &FileRecord| file.kind == FileKind::Block && !handle(&file.path).starts_with('_');
                let blocks = self.files.iter().enumerate().filter(|(_, file)| public(file));
                blocks.take(MAX_GUESSED).for_each(|(index, _)| each(Some(index as u32)));
            }
            // A block that the section itself defines is not a file. A block of an app is not part of the theme.
            (EdgeNature::Direct, None) if !self.defines_block(from, reference.name) => each(None),
            _ => {}
        }
    }

    fn defines_block(&self, file: usize, name: NameId) -> bool {
        self.files[file].symbols.iter().any(|s| s.kind == SymbolKind::BlockType && s.name == name)
    }
}

/// Resolves `./card.js`, `@theme/card` and `card`: import maps name scripts by their base names.
fn each_import(resolver: &Resolver<'_>, name: &str, mut each: impl FnMut(Option<u32>)) {
    let base = name.rsplit('/').next().unwrap_or(name);
    let found = resolver
        .find(Folder::Assets, base)
        .or_else(|| resolver.by_handle.get(&(Folder::Assets, format!("{base}.js").as_str())).copied());
    // A package from outside the theme is not a missing file.
    if found.is_some() || name.starts_with("./") || name.starts_with("../") {
        each(found);
    }
}

/// Files that are probably unused: no other file needs them, no merchant can place them anywhere, and no text of the theme can
/// be a name that loads them at run time. If a name is computed and no part of it is known, no file of that kind is listed.
pub fn orphans(files: &[FileRecord], tables: &Tables, graph: &Graph) -> Vec<u32> {
    let is_orphan = |index: u32, file: &FileRecord| {
        let can_be = match file.kind {
            FileKind::Snippet | FileKind::Stylesheet | FileKind::Script => true,
            // A section with a preset can be added in the theme editor, and so can a public block.
            FileKind::Section => !file.symbols.iter().any(|symbol| symbol.kind == SymbolKind::Preset),
            FileKind::Block => handle(&file.path).starts_with('_'),
            FileKind::SectionGroup => true,
            FileKind::Other => file.path.starts_with("assets/"),
            _ => false,
        };
        let needed = |edge: &RawEdge| !matches!(edge.kind, EdgeKind::CssClass | EdgeKind::CustomElement);
        can_be && !graph.incoming(index).any(needed)
    };
    let hints = Hints::new(files, tables);
    (0_u32..)
        .zip(files)
        .filter(|&(index, file)| is_orphan(index, file) && !hints.may_load(index, file))
        .map(|(index, _)| index)
        .collect()
}

/// What the texts of a theme may load at run time.
struct Hints<'a> {
    /// For each name, a file in whose text it stands, and whether there are others. A file does not load itself.
    whole: FxHashMap<&'a str, (u32, bool)>,
    starts: FxHashSet<&'a str>,
    ends: FxHashSet<&'a str>,
    any: FxHashSet<HintKind>,
}

impl<'a> Hints<'a> {
    fn new(files: &'a [FileRecord], tables: &'a Tables) -> Self {
        let mut all = Self {
            whole: FxHashMap::default(),
            starts: FxHashSet::default(),
            ends: FxHashSet::default(),
            any: FxHashSet::default(),
        };
        for (index, file) in (0_u32..).zip(files) {
            for &(kind, name) in &file.hints {
                let name = tables.names.term(name);
                match kind {
                    HintKind::Whole => {
                        let from = all.whole.entry(name).or_insert((index, false));
                        from.1 |= from.0 != index;
                    }
                    HintKind::Start => _ = all.starts.insert(name),
                    HintKind::End => _ = all.ends.insert(name),
                    any => _ = all.any.insert(any),
                }
            }
        }
        all
    }

    fn may_load(&self, index: u32, file: &FileRecord) -> bool {
        let any = match folder_of(file) {
            Some(Folder::Snippets) => HintKind::AnySnippet,
            Some(Folder::Sections | Folder::Groups) => HintKind::AnySection,
            Some(Folder::Blocks) => HintKind::AnyBlock,
            Some(Folder::Assets) => HintKind::AnyAsset,
            _ => return true,
        };
        let elsewhere = |name: &str| self.whole.get(name).is_some_and(|&(from, many)| many || from != index);
        let name = handle(&file.path);
        let is_named = elsewhere(name)
            || file.path.rsplit('/').next().is_some_and(elsewhere)
            // The platform compiles `theme.scss.liquid` to `theme.scss.css`.
            || name.strip_suffix(".scss").is_some_and(|stem| elsewhere(&format!("{stem}.css")))
            || (name.ends_with(".scss") && elsewhere(&format!("{name}.css")));
        // A name has at most 256 bytes.
        let parts = || name.char_indices().map(|(at, c)| (at, at + c.len_utf8()));
        is_named
            || self.any.contains(&any)
            || parts().any(|(_, end)| self.starts.contains(&name[..end]))
            || parts().any(|(start, _)| self.ends.contains(&name[start..]))
    }
}

/// Why a file is probably unused. The message follows the path.
pub fn why_unused(path: &str) -> &'static str {
    match FileKind::of(path) {
        FileKind::Snippet => "no file renders this snippet, and no text or computed name matches its name",
        FileKind::Section => {
            "no template, group or layout places this section, it has no preset, and no text or computed name matches its name"
        }
        FileKind::SectionGroup => {
            "no layout places this group of sections, and no text or computed name matches its name"
        }
        FileKind::Block => {
            "no section, block or template uses this block, and no text or computed name matches its name"
        }
        _ => "no template, style or script loads this asset, and no text or computed name matches its name",
    }
}
