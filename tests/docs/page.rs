//! Reading the manuals and the sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package is a folder of the repository")
        .to_owned()
}

/// A file of the repository.
pub fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The text of one section of a page: from its heading to the next heading of the same or a higher level.
pub fn section(page: &str, heading: &str) -> String {
    let level = |line: &str| line.bytes().take_while(|byte| *byte == b'#').count();
    let mut lines = page.lines().skip_while(|line| *line != heading);
    assert!(lines.next().is_some(), "there is no heading {heading:?}");
    let end = level(heading);
    let text = lines.take_while(|line| !line.starts_with('#') || level(line) > end);
    text.collect::<Vec<_>>().join("\n")
}

/// The texts in backticks of the first column of all tables, without the headers.
pub fn first_column(text: &str) -> Vec<String> {
    column(text, 0)
}

/// The texts in backticks of a column of all tables, without the headers.
pub fn column(text: &str, column: usize) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_header = |at: usize| lines.get(at + 1).is_some_and(|next| next.starts_with("|---"));
    let rows = lines.iter().enumerate().filter(|(at, line)| line.starts_with("| ") && !is_header(*at));
    let cells = rows.filter_map(|(_, line)| line.split('|').nth(column + 1));
    cells.flat_map(in_backticks).collect()
}

/// The texts in backticks.
pub fn in_backticks(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// All Rust sources below some folders, as one text without comments and without the tests at their ends.
pub fn code(folders: &[&str]) -> String {
    let mut text = String::new();
    for folder in folders {
        add(&root().join(folder), &mut text);
    }
    text
}

fn add(path: &Path, text: &mut String) {
    if path.is_dir() {
        let mut entries: Vec<PathBuf> = fs::read_dir(path)
            .expect("a folder is read")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        entries.sort();
        for entry in entries {
            add(&entry, text);
        }
        return;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if !name.ends_with(".rs") || name.contains("test") || name == "fake.rs" {
        return;
    }
    let source = fs::read_to_string(path).expect("a source is read");
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    for line in source.lines().filter(|line| !line.trim_start().starts_with("//")) {
        text.push_str(line);
        text.push('\n');
    }
}

/// The words that follow `before` directly, made of characters that `fits` accepts.
pub fn after(text: &str, before: &str, fits: impl Fn(char) -> bool + Copy) -> BTreeSet<String> {
    let words = text.match_indices(before).map(|(at, _)| {
        text[at + before.len()..]
            .trim_start()
            .trim_start_matches('"')
            .chars()
            .take_while(|c| fits(*c))
            .collect()
    });
    words.filter(|word: &String| !word.is_empty()).collect()
}

/// Compares what a manual lists with what the code has. The message names the differences in both directions.
pub fn compare(page: &str, documented: &BTreeSet<String>, code: &BTreeSet<String>) {
    let unknown: Vec<_> = documented.difference(code).collect();
    let missing: Vec<_> = code.difference(documented).collect();
    assert!(unknown.is_empty(), "{page} names what the code does not have: {unknown:?}");
    assert!(missing.is_empty(), "{page} does not name what the code has: {missing:?}");
}

pub fn set(items: impl IntoIterator<Item = impl Into<String>>) -> BTreeSet<String> {
    items.into_iter().map(Into::into).collect()
}

#[test]
fn a_section_ends_at_the_next_heading_of_its_level() {
    let page = "# T\n## A\n| x |\n|---|\n| `a` `b` | `c` |\n### B\n| y |\n|---|\n| `d` |\n## C\n| `e` |\n";
    assert_eq!(first_column(&section(page, "## A")), ["a", "b", "d"]);
    assert_eq!(column(&section(page, "## A"), 1), ["c"]);
}

#[test]
fn differences_are_found_in_both_directions() {
    let fails = |documented: &[&str], code: &[&str]| {
        let (documented, code) = (set(documented.to_vec()), set(code.to_vec()));
        std::panic::catch_unwind(|| compare("a page", &documented, &code)).is_err()
    };
    assert!(!fails(&["a", "b"], &["b", "a"]));
    assert!(fails(&["a", "b"], &["a"]));
    assert!(fails(&["a"], &["a", "b"]));
}
