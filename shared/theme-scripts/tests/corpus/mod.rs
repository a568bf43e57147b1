//! A theme of our own, and faults that are planted in it: each is a small edit with the place where it must be found.

pub mod code;
pub mod damage;
pub mod harmless;
pub mod liquid;
pub mod reference;
pub mod stored;

use std::path::{Path, PathBuf};

use theme::check::{CheckedTheme, Finding};
use theme_scripts::Oxc;

/// What a fault does to a shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grade {
    /// The platform does not accept the file.
    Refused,
    /// A page breaks.
    Broken,
    /// Something does not work, and nothing says so.
    Silent,
    /// It works, but could be better.
    Quality,
}

/// One edit.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub kind: &'static str,
    pub grade: Grade,
    pub path: &'static str,
    /// The text that is replaced, where it is first found. Empty for a new file.
    pub old: &'static str,
    pub new: &'static str,
    /// Where the finding must be, if it is not where the edit begins: a path, and a text on the line.
    pub at: Option<(&'static str, &'static str)>,
}

pub const fn fault(
    kind: &'static str,
    grade: Grade,
    path: &'static str,
    old: &'static str,
    new: &'static str,
) -> Fault {
    Fault { kind, grade, path, old, new, at: None }
}

impl Fault {
    pub const fn at(self, path: &'static str, text: &'static str) -> Self {
        Self { at: Some((path, text)), ..self }
    }
}

/// All faults.
pub fn all() -> Vec<Fault> {
    let lists: [&[Fault]; 11] = [
        liquid::SYNTAX,
        liquid::REFERENCES,
        liquid::MARKUP,
        stored::SCHEMA,
        stored::ATTRIBUTES,
        stored::TEMPLATES,
        stored::SETTINGS,
        stored::LOCALES,
        code::STYLES,
        code::SCRIPTS,
        damage::DAMAGE,
    ];
    let mut all: Vec<Fault> = lists.concat();
    all.extend([stored::many_sections(), stored::many_blocks(), stored::large_snippet()]);
    all
}

/// A `new` text that deletes the file.
pub const DELETED: &str = "\u{0}deleted";

/// The files of a theme in a folder.
pub fn files(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).expect("the folder is readable") {
            let path = entry.expect("the entry is readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                let name = path.strip_prefix(folder).expect("it is within").to_string_lossy().into_owned();
                found.push((name, text));
            }
        }
    }
    found
}

pub fn lantern() -> Vec<(String, String)> {
    files(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/lantern"))
}

/// A theme after an edit: what became of the one file, and where the finding must be.
#[derive(Debug)]
pub struct Planted {
    /// The file, or `None` if it is deleted.
    pub after: Option<String>,
    pub expected: (String, u32),
}

/// Makes the edit.
pub fn edited(texts: &[(String, String)], fault: &Fault) -> Planted {
    let Fault { path, old, new, at, .. } = fault;
    let before = texts.iter().find(|(name, _)| name == path).map(|(_, text)| text.as_str());
    let start = match before {
        Some(text) if !old.is_empty() => text.find(old).unwrap_or_else(|| panic!("{path} has no {old:?}")),
        _ => 0,
    };
    let after = match before {
        Some(text) if !old.is_empty() => format!("{}{new}{}", &text[..start], &text[start + old.len()..]),
        _ => (*new).to_owned(),
    };
    let line_of = |text: &str, at: usize| text[..at].matches('\n').count() as u32 + 1;
    let expected = match at {
        None => {
            let same = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
            let place = (start + same).min(after.len());
            let place = (0..=place).rev().find(|at| after.is_char_boundary(*at)).unwrap_or(0);
            ((*path).to_owned(), line_of(&after, place))
        }
        Some((place, text)) => {
            let other = texts.iter().find(|(name, _)| name == place).map(|(_, text)| text.as_str());
            let content = if place == path { after.as_str() } else { other.unwrap_or_default() };
            ((*place).to_owned(), content.find(text).map_or(1, |at| line_of(content, at)))
        }
    };
    Planted { after: (*new != DELETED).then_some(after), expected }
}

/// What was found of a planted fault.
#[derive(Debug)]
pub struct Outcome {
    pub is_caught: bool,
    pub is_on_line: bool,
    pub expected: (String, u32),
    pub findings: Vec<Finding>,
}

/// Plants a fault, and checks what the change adds.
pub fn plant(base: &CheckedTheme, texts: &[(String, String)], fault: &Fault) -> Outcome {
    let Planted { after, expected } = edited(texts, fault);
    let changed = match after {
        Some(after) => base.changed([(fault.path, after.as_str())], &[], Some(&Oxc)),
        None => base.changed(Vec::<(String, String)>::new(), &[fault.path.to_owned()], Some(&Oxc)),
    };
    let findings = changed.added_since(base);
    let is_caught = findings.iter().any(|finding| finding.path == expected.0);
    let is_on_line =
        findings.iter().any(|finding| finding.path == expected.0 && finding.line.abs_diff(expected.1) <= 1);
    Outcome { is_caught, is_on_line, expected, findings }
}
