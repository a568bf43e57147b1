//! Scanners: from a file's text to the things it defines, the things it refers to, and its structure.
//!
//! They are not parsers. A theme that is being edited is often broken, and a scanner that rejects a file would hide it
//! from every request. So scanners never fail: a place that cannot be understood becomes a [`Degraded`] entry, and the
//! rest of the file is read without it. Every scanner reads its text once, without recursion.
//!
//! The syntax trees of general parsers are not used. Parsing one large stylesheet takes longer than the whole update
//! after a change of one file may take, and the index only needs rules, classes and their lines.

pub mod css;
pub mod hints;
pub mod json;
pub mod liquid;
pub mod locale;
pub mod markup;
pub mod schema;
pub mod script;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::path::FileKind;
use super::text::Span;

/// The kind of thing that a file defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SymbolKind {
    /// The name of a section, block or settings group in its schema.
    SchemaName,
    Setting,
    BlockType,
    Preset,
    CustomElement,
    Class,
    Function,
    Method,
    CssClass,
    CssProperty,
    Keyframes,
}

impl SymbolKind {
    pub const ALL: [Self; 11] = [
        Self::SchemaName,
        Self::Setting,
        Self::BlockType,
        Self::Preset,
        Self::CustomElement,
        Self::Class,
        Self::Function,
        Self::Method,
        Self::CssClass,
        Self::CssProperty,
        Self::Keyframes,
    ];
}

/// How a file refers to another file, or to something that another file defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EdgeKind {
    Render,
    Include,
    Section,
    SectionGroup,
    Block,
    Layout,
    Asset,
    Import,
    CustomElement,
    CssClass,
    Translation,
    Setting,
}

impl EdgeKind {
    pub const ALL: [Self; 12] = [
        Self::Render,
        Self::Include,
        Self::Section,
        Self::SectionGroup,
        Self::Block,
        Self::Layout,
        Self::Asset,
        Self::Import,
        Self::CustomElement,
        Self::CssClass,
        Self::Translation,
        Self::Setting,
    ];

    /// Whether both ends are mostly about the same topic: a file and what it renders or loads.
    pub fn is_near(self) -> bool {
        matches!(self, Self::Render | Self::Include | Self::Asset | Self::CustomElement)
    }
}

/// How certain an edge is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EdgeNature {
    /// The name is written literally in the code.
    Direct,
    /// The name is known only at run time: the value of a variable, or any block that a merchant adds there.
    Indirect,
    /// The initial content of a schema's preset or default.
    Preset,
}

impl EdgeNature {
    pub const ALL: [Self; 3] = [Self::Direct, Self::Indirect, Self::Preset];
}

/// A place that a scanner could not understand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Degraded {
    pub offset: u32,
    pub reason: DegradedReason,
}

/// What could not be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DegradedReason {
    /// `{%` without `%}` before the next tag.
    UnclosedTag,
    /// `{{` without `}}` before the next tag.
    UnclosedOutput,
    /// A block such as `{% comment %}` or `{% if %}` without its end.
    UnclosedBlock,
    /// An end such as `{% endif %}` without its beginning, or crossing another block.
    StrayEnd,
    /// Invalid JSON.
    InvalidJson,
    /// Braces, a string or a comment without their end.
    Unbalanced,
    /// Invalid UTF-8 bytes. They were replaced.
    InvalidUtf8,
    /// Generated text. It is chunked by lines only.
    Minified,
    /// The file is too large to be read. Only its path is indexed.
    TooLarge,
}

impl DegradedReason {
    pub const ALL: [Self; 9] = [
        Self::UnclosedTag,
        Self::UnclosedOutput,
        Self::UnclosedBlock,
        Self::StrayEnd,
        Self::InvalidJson,
        Self::Unbalanced,
        Self::InvalidUtf8,
        Self::Minified,
        Self::TooLarge,
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub kind: SymbolKind,
    pub name: Span,
    /// The span of the whole definition.
    pub body: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    pub kind: EdgeKind,
    pub nature: EdgeNature,
    /// The name of the target. For an indirect reference, the expression that produces the name.
    pub name: Span,
}

/// The result of scanning a file. All spans are absolute positions in the file's text.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ScanResult {
    pub symbols: Vec<Symbol>,
    pub references: Vec<Reference>,
    pub hints: Vec<hints::Hint>,
    /// Texts of the theme editor: literal text, or a key that begins with `t:`.
    pub labels: Vec<Span>,
    pub comments: Vec<Span>,
    /// Names that are not defined in the theme (ids, attributes, variables).
    pub identifiers: Vec<Span>,
    /// Everything that opens and closes: rules, functions, objects, `if` … `endif`. The nesting shows where to cut.
    pub blocks: Vec<Span>,
    /// Positions where another language begins or ends.
    pub cuts: Vec<u32>,
    pub degraded: Vec<Degraded>,
}

impl ScanResult {
    fn symbol(&mut self, kind: SymbolKind, name: Span, body: Span) {
        if !name.is_empty() {
            self.symbols.push(Symbol { kind, name, body });
        }
    }

    fn reference(&mut self, kind: EdgeKind, nature: EdgeNature, name: Span) {
        if !name.is_empty() {
            self.references.push(Reference { kind, nature, name });
        }
    }

    fn degrade(&mut self, offset: usize, reason: DegradedReason) {
        self.degraded.push(Degraded { offset: offset as u32, reason });
    }
}

/// Scans a file according to its kind. The texts of locales are read separately by [`locale`].
pub fn scan(kind: FileKind, path: &str, text: &str) -> ScanResult {
    let mut found = ScanResult::default();
    let whole = Span::new(0, text.len());
    match kind {
        FileKind::Layout | FileKind::Template | FileKind::Section | FileKind::Block | FileKind::Snippet => {
            liquid::scan(text, &mut found);
        }
        FileKind::Stylesheet | FileKind::Script => {
            let masked = path.ends_with(".liquid").then(|| liquid::scan_asset(text, &mut found));
            let code = masked.as_deref().unwrap_or(text);
            if kind == FileKind::Stylesheet {
                css::scan(code, whole, &mut found);
                hints::stylesheet(code, whole, &mut found);
            } else {
                script::scan(code, whole, &mut found);
            }
        }
        FileKind::JsonTemplate | FileKind::SectionGroup => schema::scan_template(text, &mut found),
        FileKind::SettingsSchema => schema::scan_settings(text, &mut found),
        FileKind::SettingsData => hints::json(text, &json::Tree::read(text, whole), false, &mut found),
        FileKind::Locale | FileKind::SchemaLocale | FileKind::Other => {}
    }
    found
}

/// Whether a text was generated by a program: its lines are far longer than people write.
pub fn is_minified(text: &str, lines: u32) -> bool {
    text.len() > 2_000 && text.len() / lines as usize > 400
}
