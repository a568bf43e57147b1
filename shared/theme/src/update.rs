//! Updates the index of one set of files to another set, by the files that differ.
//!
//! Hashes show which files differ. Nobody has to record changes: whatever happened to the files since the index was
//! built, the difference is computed from the files as they are, and the result is the index of those files.

use std::collections::BTreeMap;

use super::index::{MAX_FILES, ThemeError, ThemeIndex};
use super::path::check_path;
use super::record::{FileRecord, RecordReader};

/// How a theme's current files differ from those of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Paths that are new or have other content.
    pub changed: Vec<String>,
    pub removed: Vec<String>,
}

impl Difference {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty()
    }
}

impl ThemeIndex {
    /// The files to read and to remove, so that the index matches `files`. `files` are paths, each with the first half
    /// of the SHA-256 of its content.
    pub fn difference<'a>(&self, files: impl IntoIterator<Item = (&'a str, [u8; 16])>) -> Difference {
        let mut known: BTreeMap<&str, [u8; 16]> = self.files.iter().map(|f| (&*f.path, f.hash)).collect();
        let mut changed = Vec::new();
        for (path, hash) in files {
            if known.remove(path) != Some(hash) {
                changed.push(path.to_owned());
            }
        }
        Difference { changed, removed: known.into_keys().map(str::to_owned).collect() }
    }

    /// The index with some files replaced or added and others removed. The derived parts are computed once, however
    /// many files there are.
    ///
    /// # Errors
    /// If a path is not valid in a theme, or if there would be more than [`MAX_FILES`] files.
    pub fn updated<'a>(
        &self,
        changed: impl IntoIterator<Item = (&'a str, &'a [u8])>,
        removed: &[String],
    ) -> Result<Self, ThemeError> {
        let mut tables = self.tables.clone();
        let mut by_path: BTreeMap<Box<str>, FileRecord> =
            self.files.iter().map(|file| (file.path.clone(), file.clone())).collect();
        for path in removed {
            by_path.remove(path.as_str());
        }
        let mut reader = RecordReader::new(&mut tables);
        for (path, content) in changed {
            check_path(path).map_err(|source| ThemeError::Path { path: path.to_owned(), source })?;
            by_path.insert(path.into(), reader.read(path, content));
        }
        if by_path.len() > MAX_FILES {
            return Err(ThemeError::TooManyFiles);
        }
        Ok(Self::assemble(tables, by_path.into_values().collect()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sha2::{Digest, Sha256};

    use crate::ThemeIndex;
    use crate::tests::harbour::FILES;

    fn hash(content: &str) -> [u8; 16] {
        Sha256::digest(content.as_bytes())[..16].try_into().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn applying_the_difference_gives_the_new_index(
            before in proptest::collection::btree_map(0..FILES.len(), 0..FILES.len(), 0..FILES.len()),
            after in proptest::collection::btree_map(0..FILES.len(), 0..FILES.len(), 0..FILES.len()),
        ) {
            let files = |of: &std::collections::BTreeMap<usize, usize>| -> Vec<(&str, &str)> {
                of.iter().map(|(&path, &content)| (FILES[path].0, FILES[content].1)).collect()
            };
            let (before, after) = (files(&before), files(&after));
            let index = ThemeIndex::build(before).unwrap();
            let hashed = || after.iter().map(|&(path, content)| (path, hash(content)));
            let difference = index.difference(hashed());
            let content = |path: &str| after.iter().find(|file| file.0 == path).unwrap().1.as_bytes();
            let changed = difference.changed.iter().map(|path| (path.as_str(), content(path)));
            let updated = index.updated(changed, &difference.removed).unwrap();
            prop_assert!(updated.to_blob() == ThemeIndex::build(after.clone()).unwrap().to_blob());
            prop_assert!(updated.difference(hashed()).is_empty());
        }
    }
}
