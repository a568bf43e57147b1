//! Reading: a file whole, its outline, or a window of its lines with true line numbers.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::draft::Draft;
use crate::error::EditError;
use crate::kind::NodeKind;
use crate::node::{Node, nodes};
use crate::text::Text;
use crate::version::Version;

/// A file with more characters is shown as an outline.
pub const WHOLE_CHARACTERS: usize = 16_000;
/// The most characters of a window. About 25,000 tokens.
pub const WINDOW_CHARACTERS: usize = 100_000;
/// The most characters of a line that a window shows. A minified file is one line.
pub const LINE_CHARACTERS: usize = 2_000;
/// The most parts that an outline lists. The smallest ones are left out.
pub const OUTLINE_NODES: usize = 300;

/// A file, or its outline if it is long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "shown", rename_all = "snake_case")]
pub enum Opened {
    /// All lines.
    Whole(Window),
    /// The parts of the file with their lines. [`Draft::read`] reads them.
    Outline(Outline),
}

/// Some lines of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Window {
    /// The file.
    pub path: String,
    /// Its version, for the next call.
    #[schema(value_type = String)]
    pub version: Version,
    /// The first line, from 1.
    pub first: u32,
    /// The last line.
    pub last: u32,
    /// How many lines the file has.
    pub total_lines: u32,
    /// The line where the next window begins. `None` at the end of the file.
    pub next: Option<u32>,
    /// Whether lines were too long to be shown whole.
    pub has_cut_lines: bool,
    /// The lines, each with its number, a tab, and its text.
    pub text: String,
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} version {} lines {}–{} of {}",
            self.path,
            self.version.short(),
            self.first,
            self.last,
            self.total_lines
        )?;
        f.write_str(&self.text)?;
        match self.next {
            Some(next) => write!(f, "(the next line is {next})"),
            None => Ok(()),
        }
    }
}

/// The parts of a file with their lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Outline {
    /// The file.
    pub path: String,
    /// Its version, for the next call.
    #[schema(value_type = String)]
    pub version: Version,
    /// How many lines it has.
    pub total_lines: u32,
    /// How many characters it has.
    pub characters: u32,
    /// The parts, by line.
    pub nodes: Vec<Node>,
    /// How many smaller parts are not listed.
    pub left_out: u32,
}

impl Outline {
    /// The outline of a file with this content.
    #[must_use]
    pub fn of(path: &str, bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (nodes, left_out) = outline(path, &text, OUTLINE_NODES);
        Self {
            path: path.to_owned(),
            version: Version::of(bytes),
            total_lines: number(Text::new(bytes).count()),
            characters: number(text.chars().count()),
            nodes,
            left_out: number(left_out),
        }
    }
}

impl fmt::Display for Outline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} version {}: {} lines, {} characters",
            self.path,
            self.version.short(),
            self.total_lines,
            self.characters
        )?;
        for node in &self.nodes {
            let lines = node.lines;
            writeln!(f, "{}–{} {} {}", lines.start, lines.end, node.kind, shortened(&node.name))?;
        }
        if self.left_out > 0 {
            writeln!(f, "({} smaller parts are not listed)", self.left_out)?;
        }
        write!(f, "Read the lines that you need before you edit them.")
    }
}

fn shortened(name: &str) -> String {
    match name.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// The parts of a file that an outline lists: of elements only those with an id, and of Liquid only blocks of several lines. If there
/// are more than `most`, the longest ones; the second value is how many others there are.
#[must_use]
pub fn outline(path: &str, text: &str, most: usize) -> (Vec<Node>, usize) {
    let is_listed = |node: &Node| match node.kind {
        NodeKind::HtmlElement => node.name.contains('#'),
        NodeKind::LiquidBlock => node.lines.end > node.lines.start,
        _ => true,
    };
    let mut listed: Vec<Node> = nodes(path, text).into_iter().filter(is_listed).collect();
    let left_out = listed.len().saturating_sub(most);
    if left_out > 0 {
        listed.sort_by_key(|node| (std::cmp::Reverse(node.lines.end - node.lines.start), node.span.start));
        listed.truncate(most);
        listed.sort_by_key(|node| (node.span.start, std::cmp::Reverse(node.span.end)));
    }
    (listed, left_out)
}

/// The lines `first` to `last`, from 1, as far as they have no more than `most` characters; at least one line.
fn window(
    path: &str,
    version: Version,
    bytes: &[u8],
    first: u32,
    last: u32,
    most: usize,
) -> Result<Window, EditError> {
    let text = Text::new(bytes);
    let total = text.count();
    let (start, end) = ((first as usize).saturating_sub(1), (last as usize).min(total));
    if first == 0 || start >= total || end <= start {
        return Err(EditError::NoSuchLines {
            path: path.to_owned(),
            start: first,
            end: last,
            total: number(total),
        });
    }
    let (mut shown, mut characters, mut has_cut_lines, mut at) = (String::new(), 0, false, start);
    while at < end {
        let content = &bytes[text.content(at)];
        let line = String::from_utf8_lossy(content);
        let cut = line.char_indices().nth(LINE_CHARACTERS).map(|(end, _)| end);
        let kept = &line[..cut.unwrap_or(line.len())];
        characters += kept.chars().count() + 8;
        if characters > most && at > start {
            break;
        }
        shown.push_str(&format!("{}\t{kept}", at + 1));
        if cut.is_some() {
            has_cut_lines = true;
            shown.push_str(&format!("… ({} more bytes)", line.len() - kept.len()));
        }
        shown.push('\n');
        at += 1;
    }
    Ok(Window {
        path: path.to_owned(),
        version,
        first,
        last: number(at),
        total_lines: number(total),
        next: (at < total).then(|| number(at + 1)),
        has_cut_lines,
        text: shown,
    })
}

impl Draft {
    /// Reads a file for the run: whole up to [`WHOLE_CHARACTERS`], else its outline. The run then knows its version.
    ///
    /// # Errors
    /// The file is missing, not loaded, or no text.
    pub fn open(&mut self, path: &str) -> Result<Opened, EditError> {
        let (file, bytes) = self.text_of(path)?;
        let (version, bytes) = (file.version, bytes.clone());
        let text = String::from_utf8_lossy(&bytes);
        let characters = text.chars().count();
        let opened = if characters <= WHOLE_CHARACTERS {
            Opened::Whole(window(path, version, &bytes, 1, u32::MAX, usize::MAX)?)
        } else {
            Opened::Outline(Outline::of(path, &bytes))
        };
        // An outline shows no text, so it is no reading.
        if let Opened::Whole(_) = opened {
            self.note_seen(path);
        }
        Ok(opened)
    }

    /// Reads the lines `first` to `last`, from 1, for the run. The run then knows the file's version.
    ///
    /// # Errors
    /// The file is missing, not loaded, or no text, or has no such lines.
    pub fn read(&mut self, path: &str, first: u32, last: u32) -> Result<Window, EditError> {
        let (file, bytes) = self.text_of(path)?;
        let window = window(path, file.version, bytes, first, last, WINDOW_CHARACTERS)?;
        self.note_seen(path);
        Ok(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[test]
    fn a_long_file_is_outlined_and_read_in_windows() {
        let rules: String = (1..=900).map(|n| format!(".pier-{n} {{\n  top: {n}px;\n}}\n")).collect();
        let tree: Tree = [("assets/pier.css", rules.as_bytes()), ("snippets/a.liquid", b"one\r\ntwo")]
            .into_iter()
            .collect();
        let mut draft = Draft::new("run", tree);
        let Ok(Opened::Outline(outline)) = draft.open("assets/pier.css") else { panic!("it is long") };
        assert_eq!((outline.total_lines, outline.nodes.len(), outline.left_out), (2700, OUTLINE_NODES, 600));
        assert_eq!(draft.seen("assets/pier.css"), None, "an outline is no reading");
        let window = draft.read("assets/pier.css", 4, 6).unwrap();
        assert_eq!(window.text, "4\t.pier-2 {\n5\t  top: 2px;\n6\t}\n");
        assert_eq!((window.next, window.total_lines), (Some(7), 2700));
        assert_eq!(draft.seen("assets/pier.css"), Some(window.version));
        let Ok(Opened::Whole(window)) = draft.open("snippets/a.liquid") else { panic!("it is short") };
        assert_eq!((&window.text[..], window.next), ("1\tone\n2\ttwo\n", None));
        assert!(matches!(
            draft.read("snippets/a.liquid", 3, 9),
            Err(EditError::NoSuchLines { total: 2, .. })
        ));
    }

    #[test]
    fn long_lines_are_cut_and_windows_end_before_they_are_too_long() {
        let text = format!("{}\n", "x".repeat(3_000)).repeat(100);
        let window =
            window("assets/a.js", Version::of(text.as_bytes()), text.as_bytes(), 1, 100, 10_000).unwrap();
        assert!(window.has_cut_lines);
        assert_eq!((window.last, window.next), (4, Some(5)));
    }
}
