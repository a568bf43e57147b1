//! What a file defines and uses. The checks across files need nothing else of it.

use super::Notes;
use super::Severity::Warning;
use super::names::{NAMES, Type};
use crate::words::Lexicon;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenderKind {
    Render,
    Include,
    Section,
    Group,
    Block,
    Layout,
}

/// A tag that puts another file here.
#[derive(Debug)]
pub struct Render {
    pub kind: RenderKind,
    /// `None` if only a variable names it.
    pub name: Option<String>,
    pub at: usize,
    pub arguments: Vec<(String, Type, usize)>,
    /// The variable that `with` or `for` gives the snippet.
    pub alias: Option<(String, Type)>,
    /// The arguments whose values are written out.
    pub written: Vec<Written>,
    pub is_open: bool,
}

/// An argument whose value is written out: `columns: 4`.
#[derive(Debug)]
pub struct Written {
    pub name: String,
    /// The type of the value: see [`super::expression::Value::written_type`].
    pub kind: &'static str,
    pub at: usize,
    /// Whether `with` or `for` gives it.
    pub is_alias: bool,
}

/// A translation key that is read.
#[derive(Debug)]
pub struct KeyUse {
    pub key: String,
    pub at: usize,
    pub named: Vec<String>,
}

#[derive(Debug)]
pub struct SettingUse {
    pub id: String,
    pub at: usize,
    /// The block types for which this place is reached, if that is known.
    pub types: Option<Vec<String>>,
}

/// A setting that is printed without escaping.
#[derive(Debug)]
pub struct RawText {
    pub id: String,
    pub at: usize,
    pub is_block: bool,
    pub types: Option<Vec<String>>,
    pub in_value: bool,
}

/// Properties of a variable that may be an argument of the snippet.
#[derive(Debug)]
pub struct ChainUse {
    pub root: String,
    pub names: Vec<Option<String>>,
    pub at: usize,
}

#[derive(Debug)]
pub struct Param {
    pub name: String,
    pub kind: String,
    pub is_required: bool,
    pub at: usize,
}

impl Param {
    /// The type that a written value must have and does not have. A `boolean` may be any value, because each one is true or false, and
    /// an `object` may be any value, too. An argument by its name is compared only with the basic types: an object can be made of a
    /// handle.
    pub fn mismatch(&self, written: &Written) -> Option<&str> {
        let kind = self.kind.as_str();
        let is_compared = match kind {
            "string" | "number" => true,
            "" | "boolean" | "object" => false,
            _ => written.is_alias,
        };
        (is_compared && kind != written.kind).then_some(kind)
    }

    pub fn kind_type(&self) -> Type {
        let (name, is_array) = match self.kind.strip_suffix("[]") {
            Some(name) => (name, true),
            None => (self.kind.as_str(), false),
        };
        match NAMES.objects.get_key_value(name) {
            Some((name, _)) => Type { name, is_array },
            None => Type::UNKNOWN,
        }
    }
}

/// The `doc` tag of a snippet or block.
#[derive(Debug, Default)]
pub struct Doc {
    pub params: Vec<Param>,
}

impl Doc {
    pub fn read(body: &str, base: usize, notes: &mut Notes) -> Self {
        let mut doc = Self::default();
        let mut at = base;
        for line in body.split_inclusive('\n') {
            let here = at;
            at += line.len();
            let Some(rest) = line.trim_start().strip_prefix("@param") else { continue };
            let rest = rest.trim_start();
            let (kind, rest) = match rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
                Some((kind, rest)) => (kind.trim(), rest.trim_start()),
                None => ("", rest),
            };
            let word = rest.split_whitespace().next().unwrap_or_default();
            let name = word.trim_start_matches('[').split([']', '=']).next().unwrap_or_default();
            if name.is_empty() {
                continue;
            }
            if doc.params.iter().any(|param: &Param| param.name == name) {
                let message = format!("the parameter `{name}` is there twice");
                notes.add(here, Warning, "UniqueDocParamNames", message);
            }
            let element = kind.strip_suffix("[]").unwrap_or(kind);
            if !matches!(element, "" | "string" | "number" | "boolean" | "object")
                && !NAMES.objects.contains_key(element)
                && !NAMES.globals.contains_key(element)
            {
                notes.add(here, Warning, "ValidDocParamTypes", format!("`{kind}` is not a type"));
            }
            doc.params.push(Param {
                name: name.to_owned(),
                kind: kind.to_owned(),
                is_required: !word.starts_with('['),
                at: here,
            });
        }
        doc
    }
}

/// A set of words. A theme has tens of thousands of them, so those of a file are kept in one string.
#[derive(Default)]
pub struct WordSet(Lexicon);

impl WordSet {
    pub fn insert(&mut self, word: &str) {
        self.0.intern(word);
    }

    pub fn contains(&self, word: &str) -> bool {
        self.0.get(word).is_some()
    }
}

impl std::fmt::Debug for WordSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WordSet").field(&self.0.len()).finish()
    }
}

/// Everything that a file of Liquid says about other files.
#[derive(Debug, Default)]
pub struct Facts {
    pub renders: Vec<Render>,
    pub assets: Vec<(String, usize)>,
    pub keys: Vec<KeyUse>,
    pub theme_settings: Vec<SettingUse>,
    pub section_settings: Vec<SettingUse>,
    pub block_settings: Vec<SettingUse>,
    /// Block types that the code names.
    pub block_types: Vec<(String, usize)>,
    /// Variables that neither the file nor the platform defines.
    pub unknown_names: Vec<(String, usize)>,
    pub unused: Vec<(String, usize)>,
    /// Every variable that is read.
    pub words: WordSet,
    /// The words of strings in the code. Some of them become classes and ids.
    pub literals: WordSet,
    /// The words of comments.
    pub commented: WordSet,
    pub chains: Vec<ChainUse>,
    pub doc: Option<Doc>,
    pub raw_texts: Vec<RawText>,
    pub page_sizes: Vec<SettingUse>,
    pub product_forms: Vec<usize>,
    pub static_ids: Vec<String>,
    /// How often `content_for 'blocks'` is there, and where the last one is.
    pub content_for_blocks: usize,
    pub content_for_blocks_at: usize,
    pub has_static_blocks: bool,
    pub includes: bool,
}
