//! Scanners: from a file's text to the things it names, the things it refers to, and its structure.
//!
//! They are no parsers. A theme under edit is broken half of the time, and a scanner that gives up on a file hides
//! it from every request. So nothing here fails: what could not be made sense of is a [`Degraded`] place, and the
//! rest of the file is read as if it were not there. Every scanner passes over its text once, without recursion.
//!
//! The syntax trees of general parsers are not used: parsing one large stylesheet takes them longer than a change
//! of one file may take altogether, while all that is wanted of it are rules, classes and their lines.

pub mod css;
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

/// What kind of thing a file defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SymbolKind {
    /// A section's, block's or settings group's name in its schema.
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

/// How a file refers to another, or to a thing that another defines.
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

    /// Whether what it joins is mostly about the same thing: a file and what it renders or loads.
    pub fn is_near(self) -> bool {
        matches!(self, Self::Render | Self::Include | Self::Asset | Self::CustomElement)
    }
}

/// How sure an edge is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EdgeNature {
    /// Written out in the code.
    Direct,
    /// Worked out at run time: a variable's value, or whatever blocks a merchant puts there.
    Indirect,
    /// What a schema's preset or default starts with.
    Preset,
}

impl EdgeNature {
    pub const ALL: [Self; 3] = [Self::Direct, Self::Indirect, Self::Preset];
}

/// A place that a scanner could not make sense of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Degraded {
    pub offset: u32,
    pub reason: DegradedReason,
}

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
    /// JSON that is no JSON.
    InvalidJson,
    /// Braces, a string or a comment that don't close.
    Unbalanced,
    /// Bytes that are no UTF-8; they were replaced.
    InvalidUtf8,
    /// Machine-made text: chunked by lines only.
    Minified,
    /// Larger than is read; known by its path only.
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
    /// The whole definition.
    pub body: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    pub kind: EdgeKind,
    pub nature: EdgeNature,
    /// What is referred to; for an indirect one the expression that yields it.
    pub name: Span,
}

/// What a scanner found in a file. All spans are absolute in the file's text.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub symbols: Vec<Symbol>,
    pub references: Vec<Reference>,
    /// Texts of the theme editor: literal, or a key that begins with `t:`.
    pub labels: Vec<Span>,
    pub comments: Vec<Span>,
    /// Names that are neither defined here nor elsewhere in the theme (ids, attributes, variables).
    pub identifiers: Vec<Span>,
    /// Whatever opens and closes: rules, functions, objects, `if` … `endif`. Nesting tells where to cut.
    pub blocks: Vec<Span>,
    /// Places where another language begins or ends.
    pub cuts: Vec<u32>,
    pub degraded: Vec<Degraded>,
}

impl Found {
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

/// Reads a file by its kind. Locales' texts are read by [`locale`] apart.
pub fn scan(kind: FileKind, path: &str, text: &str) -> Found {
    let mut found = Found::default();
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
            } else {
                script::scan(code, whole, &mut found);
            }
        }
        FileKind::JsonTemplate | FileKind::SectionGroup => schema::scan_template(text, &mut found),
        FileKind::SettingsSchema => schema::scan_settings(text, &mut found),
        FileKind::SettingsData | FileKind::Locale | FileKind::SchemaLocale | FileKind::Other => {}
    }
    found
}

/// Whether a text was made by a machine: its lines are far longer than anyone writes.
pub fn is_minified(text: &str, lines: u32) -> bool {
    text.len() > 2_000 && text.len() / lines as usize > 400
}
