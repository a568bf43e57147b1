//! The theme map: the purpose of each file, its contents with their lines, its dependencies, and its keywords. All of
//! it comes from the index, without a model.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::fields::Field;
use super::index::ThemeIndex;
use super::path::{FileKind, handle};
use super::record::FileRecord;
use super::scan::{EdgeKind, EdgeNature, SymbolKind};
use super::text::LineRange;

/// The number of keywords per file.
const KEYWORDS: usize = 12;
/// How many names of one kind a purpose lists.
const NAMES: usize = 5;

/// The map's entry for one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileMap {
    pub path: String,
    pub kind: FileKind,
    pub bytes: u32,
    pub lines: u32,
    /// What the file is for, in one or two sentences.
    pub purpose: String,
    /// What the file contains, in the order of its lines.
    pub features: Vec<Feature>,
    /// The files it needs, each listed once.
    pub dependencies: Vec<Dependency>,
    /// Words that distinguish it from the other files, the most distinctive first. They are stems.
    pub keywords: Vec<String>,
}

/// Something that a file defines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Feature {
    pub name: String,
    pub kind: SymbolKind,
    pub lines: LineRange,
}

/// A file that another file needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct Dependency {
    pub path: String,
    pub edge: EdgeKind,
}

impl ThemeIndex {
    /// The map's entry for `path`.
    pub fn describe(&self, path: &str) -> Option<FileMap> {
        let file = self.file(path)?;
        let record = &self.files[file as usize];
        Some(FileMap {
            path: record.path.to_string(),
            kind: record.kind,
            bytes: record.bytes,
            lines: record.lines,
            purpose: self.purpose(file, record),
            features: self.features(record),
            dependencies: self.dependencies(file),
            keywords: self.keywords(record),
        })
    }

    /// The structure of a file: its definitions, in the order of its lines.
    pub fn outline(&self, path: &str) -> Option<Vec<Feature>> {
        let file = self.file(path)?;
        Some(self.features(&self.files[file as usize]))
    }

    fn features(&self, record: &FileRecord) -> Vec<Feature> {
        // A single CSS property is not a feature, and every stylesheet has hundreds of them.
        let shown = record.symbols.iter().filter(|symbol| symbol.kind != SymbolKind::CssProperty);
        let mut features: Vec<Feature> = shown
            .map(|symbol| Feature {
                name: self.tables.names.term(symbol.name).to_owned(),
                kind: symbol.kind,
                lines: symbol.lines,
            })
            .collect();
        features.sort_by(|a, b| a.lines.cmp(&b.lines).then_with(|| a.name.cmp(&b.name)));
        features
    }

    fn dependencies(&self, file: u32) -> Vec<Dependency> {
        let needs =
            self.graph.outgoing(file).iter().filter_map(|edge| {
                Some(Dependency { path: self.path(edge.to?).to_owned(), edge: edge.kind })
            });
        let mut dependencies: Vec<Dependency> = needs.collect();
        dependencies.sort_unstable();
        dependencies.dedup();
        dependencies
    }

    fn purpose(&self, file: u32, record: &FileRecord) -> String {
        let kind = match record.kind {
            FileKind::Other => "File",
            FileKind::JsonTemplate => "JSON template",
            FileKind::SettingsSchema => "Settings schema",
            FileKind::SettingsData => "Settings data",
            FileKind::SchemaLocale => "Theme editor texts",
            FileKind::Locale => "Texts",
            FileKind::SectionGroup => "Section group",
            FileKind::Layout => "Layout",
            FileKind::Template => "Template",
            FileKind::Section => "Section",
            FileKind::Block => "Block",
            FileKind::Snippet => "Snippet",
            FileKind::Stylesheet => "Stylesheet",
            FileKind::Script => "Script",
        };
        let mut purpose = format!("{kind} `{}`", handle(&record.path));
        if let Some(name) =
            self.names(record, SymbolKind::SchemaName).first().filter(|n| !n.starts_with("t:"))
        {
            purpose.push_str(&format!(", shown as “{name}”"));
        }
        purpose.push('.');
        if let Some(headline) = &record.headline {
            purpose.push_str(&format!(" {}.", headline.trim_end_matches('.')));
        }
        for (verb, kind) in [
            ("Defines the element", SymbolKind::CustomElement),
            ("Has the blocks", SymbolKind::BlockType),
            ("Has the settings", SymbolKind::Setting),
        ] {
            push_names(&mut purpose, verb, &self.names(record, kind));
        }
        let mut rendered: Vec<&str> = Vec::new();
        for edge in self.graph.outgoing(file) {
            let renders = matches!(
                edge.kind,
                EdgeKind::Render | EdgeKind::Include | EdgeKind::Section | EdgeKind::SectionGroup
            );
            if let (Some(to), true, true) = (edge.to, renders, edge.nature == EdgeNature::Direct) {
                rendered.push(handle(self.path(to)));
            }
        }
        rendered.sort_unstable();
        rendered.dedup();
        push_names(&mut purpose, "Renders", &rendered);
        purpose
    }

    fn names(&self, record: &FileRecord, kind: SymbolKind) -> Vec<&str> {
        let of_kind = record.symbols.iter().filter(|symbol| symbol.kind == kind);
        of_kind.map(|symbol| self.tables.names.term(symbol.name)).collect()
    }

    fn keywords(&self, record: &FileRecord) -> Vec<String> {
        let weigh = |field: Field| match field {
            Field::Path => 4.0,
            Field::Identifier | Field::Label => 2.0,
            Field::Text | Field::Comment => 1.5,
            Field::Body => 1.0,
        };
        let fields = [Field::Path, Field::Identifier, Field::Comment, Field::Label, Field::Text, Field::Body];
        let mut scored: Vec<(f32, &str)> = record
            .terms
            .iter()
            .map(|entry| {
                let count = |&field: &Field| weigh(field) * f32::from(entry.counts[field as usize]).ln_1p();
                let score = fields.iter().map(count).sum::<f32>() * self.idf(entry.term);
                (score, self.tables.terms.term(entry.term))
            })
            // Joined words (`cart drawer`) repeat their parts; single letters and numbers carry no meaning.
            .filter(|(_, word)| word.len() > 2 && word.chars().all(char::is_alphabetic))
            .collect();
        scored.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        scored.into_iter().take(KEYWORDS).map(|(_, word)| word.to_owned()).collect()
    }
}

fn push_names(purpose: &mut String, verb: &str, names: &[&str]) {
    if names.is_empty() {
        return;
    }
    purpose.push_str(&format!(" {verb} {}", names[..names.len().min(NAMES)].join(", ")));
    if names.len() > NAMES {
        purpose.push_str(&format!(" and {} more", names.len() - NAMES));
    }
    purpose.push('.');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{harbour, harbour::FILES};

    #[test]
    fn a_file_is_described_by_what_is_in_it() {
        let index = harbour();
        let drawer = index.describe("snippets/cart-drawer.liquid").unwrap();
        assert_eq!((drawer.kind, drawer.lines), (FileKind::Snippet, 21));
        assert!(drawer.purpose.starts_with("Snippet `cart-drawer`."), "{}", drawer.purpose);
        assert!(drawer.purpose.contains("Renders"), "{}", drawer.purpose);
        let needs =
            |path: &str, edge| drawer.dependencies.contains(&Dependency { path: path.to_owned(), edge });
        assert!(needs("snippets/price.liquid", EdgeKind::Render));
        assert!(needs("assets/cart-drawer.js", EdgeKind::CustomElement));
        assert!(drawer.keywords.iter().any(|word| word == "drawer"), "{:?}", drawer.keywords);
        assert_eq!(index.describe("snippets/nowhere.liquid"), None);
    }

    #[test]
    fn features_are_inside_their_files_and_in_order() {
        let index = harbour();
        for (path, content) in FILES {
            let file = index.describe(path).unwrap();
            let lines = content.lines().count().max(1) as u32;
            assert!(file.features.is_sorted_by_key(|feature| feature.lines), "{path}");
            for feature in &file.features {
                assert!(1 <= feature.lines.start && feature.lines.end <= lines, "{path}: {feature:?}");
            }
            assert_eq!(index.outline(path).as_ref(), Some(&file.features));
            assert!(file.keywords.len() <= KEYWORDS && !file.purpose.is_empty());
        }
    }
}
