//! The texts that a call reads.

use theme::ThemeIndex;
use theme::path::FileKind;

/// The texts that a call reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    /// All files whose kind is not [`FileKind::Other`].
    AllText,
    /// These paths, sorted. The theme may lack some.
    Paths(Vec<String>),
}

/// All paths of the theme that are wanted.
pub fn paths(index: &ThemeIndex, wanted: impl Fn(&str, FileKind) -> bool) -> Needs {
    let paths = index.paths().filter(|path| wanted(path, FileKind::of(path)));
    Needs::Paths(paths.map(str::to_owned).collect())
}
