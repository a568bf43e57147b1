//! The files of a theme, one after another.

use serde::Serialize;
use utoipa::ToSchema;

use super::includes::{Includes, Scopes};
use super::places::Edit;
use super::stored::{self, Settings};
use super::{Also, Fixed, How, LeftPlace, MendedPlace, also, file_of, places};
use crate::check::STRICT_CODE;
use crate::path::FileKind;

/// Mends the files of a theme.
#[derive(Clone, Debug)]
pub struct Mender {
    pub(super) how: How,
    settings: Settings,
    also: Vec<Also>,
    scopes: Scopes,
}

/// A file with changes, or with something left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FixedFile {
    #[schema(example = "snippets/price.liquid")]
    pub path: String,
    /// The changes as a unified diff. Empty if nothing was changed.
    pub diff: String,
    /// Each tag or output that was changed.
    pub changes: Vec<MendedPlace>,
    /// What is still refused, with what a person can do.
    pub left: Vec<LeftPlace>,
    /// The new text.
    #[serde(skip)]
    #[schema(ignore)]
    pub text: String,
}

impl FixedFile {
    /// Whether Shopify refused the file before. It accepts an `else if`, which has a mend, too.
    #[must_use]
    pub fn was_refused(&self) -> bool {
        self.is_refused() || self.changes.iter().any(|change| change.code == STRICT_CODE)
    }

    /// Whether Shopify still refuses it.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.left.iter().any(|left| left.code == STRICT_CODE)
    }
}

impl Mender {
    #[must_use]
    pub fn new(how: How) -> Self {
        Self { how, settings: Settings::default(), also: Vec::new(), scopes: Scopes::default() }
    }

    /// The same that mends these findings, too. It has learnt nothing yet.
    #[must_use]
    pub fn also(self, also: Vec<Also>) -> Self {
        Self { also, ..self }
    }

    /// Whether a file of this path is looked at when a theme is mended. `is_named` says that the caller has named it: a file that is not of the
    /// theme, such as a copy of an e-mail, must be named.
    #[must_use]
    pub fn looks_at(&self, path: &str, is_named: bool) -> bool {
        let kind = FileKind::of(path);
        stored::has_json(kind)
            || (path.ends_with(".liquid") && (is_named || kind != FileKind::Other))
            || (matches!(kind, FileKind::Locale | FileKind::SchemaLocale) && !self.also.is_empty())
    }

    /// Learns which settings a file defines. Before the first file is mended, the mender must have seen all files of the theme.
    pub fn learn(&mut self, path: &str, text: &str) {
        self.settings.learn(path, text);
        if self.also.contains(&Also::DeprecatedTag) {
            self.scopes.learn(path, text);
        }
    }

    /// Mends a file. None if there is nothing to mend and nothing is refused.
    #[must_use]
    pub fn mend(&self, path: &str, text: &str) -> Option<FixedFile> {
        let mut fixed = file_of(path, text, self.how, &self.settings);
        self.add(path, text, &mut fixed);
        if fixed.changes.is_empty() && fixed.left.is_empty() {
            return None;
        }
        let diff = fixed.diff(path, text);
        let Fixed { text, changes, left, .. } = fixed;
        Some(FixedFile { path: path.to_owned(), diff, changes, left, text })
    }

    /// Adds what is mended on request, where nothing else is mended.
    fn add(&self, path: &str, text: &str, fixed: &mut Fixed) {
        let mut found: Vec<(Edit, MendedPlace)> = also::read(path, text, &self.also);
        if path.ends_with(".liquid") && self.also.contains(&Also::DeprecatedTag) {
            let Includes { mended, left } = self.scopes.fix(path, text);
            found.extend(mended);
            fixed.left.extend(left);
        }
        for (edit, change) in found {
            let at = fixed.edits.partition_point(|other| other.span.end <= edit.span.start);
            if fixed.edits.get(at).is_none_or(|next| edit.span.end <= next.span.start) {
                fixed.edits.insert(at, edit);
                fixed.changes.push(change);
            }
        }
        fixed.changes.sort_by_key(|change| change.line);
        fixed.text = places::applied(text, &fixed.edits);
    }
}
