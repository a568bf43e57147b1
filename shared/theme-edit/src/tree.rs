//! The files of a theme: paths, versions and bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::version::Version;

/// The bytes of a file, shared and never changed.
pub type Bytes = Arc<[u8]>;

/// A file of a theme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The hash of its bytes.
    pub version: Version,
    /// Its bytes. `None` if only its version is known, as for images that nobody opens.
    pub bytes: Option<Bytes>,
}

impl File {
    /// A file with its bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { version: Version::of(&bytes), bytes: Some(bytes) }
    }

    /// A file of which only the version is known.
    #[must_use]
    pub fn listed(version: Version) -> Self {
        Self { version, bytes: None }
    }
}

/// The files of a theme, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree(pub BTreeMap<String, File>);

impl Tree {
    /// The file at a path.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&File> {
        self.0.get(path)
    }

    /// Adds or replaces a file.
    pub fn insert(&mut self, path: impl Into<String>, file: File) {
        self.0.insert(path.into(), file);
    }

    /// The version of each file.
    #[must_use]
    pub fn versions(&self) -> BTreeMap<String, Version> {
        self.0.iter().map(|(path, file)| (path.clone(), file.version)).collect()
    }
}

impl<P: Into<String>, B: Into<Bytes>> FromIterator<(P, B)> for Tree {
    fn from_iter<I: IntoIterator<Item = (P, B)>>(files: I) -> Self {
        Self(files.into_iter().map(|(path, bytes)| (path.into(), File::new(bytes))).collect())
    }
}
