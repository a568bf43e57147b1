//! Finds a theme among the entries of an archive.

use std::collections::{BTreeMap, BTreeSet};

use super::path::FileKind;

/// A theme needs this file to show any page.
pub const LAYOUT: &str = "layout/theme.liquid";

/// The largest number of entries that an error names.
const NAMED: usize = 3;

/// Why an archive cannot be imported as a theme. The message follows "the archive".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTheme {
    #[error(
        "has no files of a theme: expected {LAYOUT} and files in folders such as sections/, snippets/, templates/ and assets/, \
         at the top or within one folder; found {found}"
    )]
    None { found: String },
    #[error("has more than one theme: {}; choose one of them", folders.join(", "))]
    Many { folders: Vec<String> },
}

/// The theme's files among an archive's entries, each with its path in the theme.
///
/// The theme is at the top of the archive, or within a folder, as in downloads. A folder with a theme layout wins over one
/// without; among these, the folder nearest to the top wins. Files outside that folder are left out, and so are hidden files
/// and system files.
///
/// # Errors
/// If there is no theme, or if several folders are equally likely.
pub fn theme_paths<'a>(entries: &[&'a str]) -> Result<Vec<Option<&'a str>>, NoTheme> {
    let is_junk = |path: &str| {
        path.split('/').any(|part| part.starts_with('.') || matches!(part, "__MACOSX" | "Thumbs.db"))
    };
    let kept: Vec<&'a str> = entries.iter().copied().filter(|path| !is_junk(path)).collect();
    // Each folder that may contain the theme (with its slash), by rank. The lowest rank wins.
    let mut roots: BTreeMap<(bool, usize), BTreeSet<&str>> = BTreeMap::new();
    for path in &kept {
        for start in std::iter::once(0).chain(path.match_indices('/').map(|(at, _)| at + 1)) {
            let (root, rest) = path.split_at(start);
            if is_of_a_theme(rest) {
                roots.entry((rest != LAYOUT, root.matches('/').count())).or_default().insert(root);
            }
        }
    }
    let Some((_, found)) = roots.into_iter().next() else {
        return Err(NoTheme::None { found: named(&kept, entries.len()) });
    };
    let mut found = found.into_iter();
    match (found.next(), found.len()) {
        (Some(root), 0) => Ok(entries
            .iter()
            .map(|path| if is_junk(path) { None } else { path.strip_prefix(root) })
            .collect()),
        (first, _) => {
            let folders = first.into_iter().chain(found).take(NAMED).map(str::to_owned).collect();
            Err(NoTheme::Many { folders })
        }
    }
}

/// Whether only a theme has such a path. Other folders may also contain settings and translations with these names.
fn is_of_a_theme(path: &str) -> bool {
    !matches!(
        FileKind::of(path),
        FileKind::Other | FileKind::SettingsData | FileKind::Locale | FileKind::SchemaLocale
    )
}

/// Describes the first entries of an archive.
fn named(kept: &[&str], all: usize) -> String {
    if kept.is_empty() {
        return format!("{all} entries, but no visible file");
    }
    let first: Vec<&str> = kept.iter().take(NAMED).copied().collect();
    let more = all - first.len();
    if more == 0 { first.join(", ") } else { format!("{} and {more} more", first.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_themes_files_are_found_in_any_archive() {
        let check = |entries: &[&str], expected: &[Option<&str>]| {
            assert_eq!(theme_paths(entries).unwrap(), expected);
        };
        check(&["assets/a.css", "README.md"], &[Some("assets/a.css"), Some("README.md")]);
        check(
            &[
                "dawn-main/.github/x",
                "dawn-main/assets/a.css",
                "__MACOSX/dawn-main/._a",
                "dawn-main/README.md",
            ],
            &[None, Some("assets/a.css"), None, Some("README.md")],
        );
        check(&["assets/a.css", "assets/b.css"], &[Some("assets/a.css"), Some("assets/b.css")]);
        // Beside the folder, and deeper down.
        check(&["notes.txt", "my/shop/sections/a.liquid"], &[None, Some("sections/a.liquid")]);
        // The layout distinguishes the theme from folders that only look like one.
        check(
            &["assets/site.css", "theme/layout/theme.liquid", "theme/assets/a.css"],
            &[None, Some("layout/theme.liquid"), Some("assets/a.css")],
        );
        check(
            &["snippets/a.liquid", "old/snippets/a.liquid"],
            &[Some("snippets/a.liquid"), Some("old/snippets/a.liquid")],
        );
    }

    #[test]
    fn an_archive_without_a_theme_says_what_it_has() {
        let check = |entries: &[&str], expected: &str| {
            let error = theme_paths(entries).unwrap_err().to_string();
            assert!(error.ends_with(expected), "{error}");
        };
        check(&[], "found 0 entries, but no visible file");
        check(&[".DS_Store", "__MACOSX/layout/theme.liquid"], "found 2 entries, but no visible file");
        check(&["photo.jpg", "docs/a.txt"], "found photo.jpg, docs/a.txt");
        check(&["1.jpg", "2.jpg", "3.jpg", "4.jpg", "5.jpg"], "found 1.jpg, 2.jpg, 3.jpg and 2 more");
        check(&["config/settings_data.json", "locales/en.json"], "locales/en.json");
        check(&["a/assets/a.css", "b/assets/a.css"], "has more than one theme: a/, b/; choose one of them");
    }
}
