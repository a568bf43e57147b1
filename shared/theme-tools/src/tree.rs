//! The theme that a tool reads.

use std::collections::BTreeMap;

use theme::ThemeIndex;
use theme::path::FileKind;

use crate::error::ToolError;
use crate::similar::similar;

/// A longer text is not read. The platform accepts Liquid up to 256 KB, and the index reads files up to this length.
pub const MAX_FILE_BYTES: usize = 2 * 1024 * 1024;

/// The index of a theme, the sizes of its files, and the texts that were loaded.
pub struct Tree<'a> {
    pub index: &'a ThemeIndex,
    sizes: BTreeMap<&'a str, u64>,
    texts: BTreeMap<&'a str, &'a str>,
}

impl<'a> Tree<'a> {
    /// `sizes` has all files of the theme, and `texts` those that [`Call::needs`](crate::Call::needs) names, or more.
    pub fn new(
        index: &'a ThemeIndex,
        sizes: impl IntoIterator<Item = (&'a str, u64)>,
        texts: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let texts = texts.into_iter().filter(|(_, text)| text.len() <= MAX_FILE_BYTES);
        Self { index, sizes: sizes.into_iter().collect(), texts: texts.collect() }
    }

    #[must_use]
    pub fn text(&self, path: &str) -> Option<&'a str> {
        self.texts.get(path).copied()
    }

    #[must_use]
    pub fn size(&self, path: &str) -> Option<u64> {
        self.sizes.get(path).copied()
    }

    /// All paths with their sizes, sorted.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (&'a str, u64)> + '_ {
        self.sizes.iter().map(|(&path, &size)| (path, size))
    }

    /// The loaded texts of some kinds of files, sorted by path.
    pub(crate) fn texts(
        &self,
        wanted: impl Fn(&str, FileKind) -> bool,
    ) -> impl Iterator<Item = (&'a str, FileKind, &'a str)> {
        let of = move |(&path, &text): (&&'a str, &&'a str)| {
            let kind = FileKind::of(path);
            wanted(path, kind).then_some((path, kind, text))
        };
        self.texts.iter().filter_map(of)
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.sizes.contains_key(path) || self.index.lines(path).is_some()
    }

    /// An error that names similar files, if the theme does not have the file.
    pub(crate) fn require(&self, path: &str) -> Result<(), ToolError> {
        if self.has(path) {
            return Ok(());
        }
        let near = similar(self.index.paths(), path, 3);
        Err(ToolError::NoFile { path: path.to_owned(), near: near.into_iter().map(str::to_owned).collect() })
    }

    pub(crate) fn require_text(&self, path: &str) -> Result<&'a str, ToolError> {
        self.require(path)?;
        self.text(path).ok_or_else(|| ToolError::NotLoaded(path.to_owned()))
    }
}

/// Whether a file is a template with Liquid.
pub fn is_liquid(kind: FileKind) -> bool {
    use FileKind::{Block, Layout, Section, Snippet, Template};
    matches!(kind, Layout | Template | Section | Block | Snippet)
}

/// Whether a file is Liquid, also within a stylesheet or script.
pub fn has_liquid(path: &str, kind: FileKind) -> bool {
    is_liquid(kind) || (matches!(kind, FileKind::Stylesheet | FileKind::Script) && path.ends_with(".liquid"))
}
