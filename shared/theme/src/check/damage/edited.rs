//! Whether an edit can have left damage, found out without reading again what the edit did not touch.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::{self, Finder};

use super::{
    Block, DOT_FINDERS, MARK_FINDERS, Next, characters, diff_sign, end_of_file, escaped_text, is_ellipsis,
    is_liquid, numbered_line, repeated,
};
use crate::check::{Notes, damage, script};
use crate::path::FileKind;

/// Whole lines that an edit replaced, as bytes of the files before and after it. One of the ranges can be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedLines {
    /// The bytes in the file before the edit.
    pub old: Range<usize>,
    /// The bytes in the file after the edit.
    pub new: Range<usize>,
}

/// What each line has that begins or ends a comment or a block that is no code.
const BORDERS: [&str; 7] = ["/*", "*/", "<!--", "-->", "comment", "raw", "doc"];
static BORDER_FINDERS: LazyLock<[Finder; 7]> = LazyLock::new(|| BORDERS.map(Finder::new));
/// What a line has that ends one.
const ENDS: [&str; 5] = ["*/", "-->", "endcomment", "endraw", "enddoc"];

/// All that can be open before a line.
const STATES: [Option<Block>; 6] = [
    None,
    Some(Block::Comment("*/")),
    Some(Block::Comment("-->")),
    Some(Block::Comment("endcomment")),
    Some(Block::Shown("endraw")),
    Some(Block::Shown("enddoc")),
];

/// The byte order mark of a file.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The lines of a text, as `memchr` finds them: most texts have short lines, and for them it is faster than [`str::lines`].
fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    let mut at = 0;
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).chain([text.len()]);
    ends.map(move |end| &text[std::mem::replace(&mut at, end + 1)..end])
}

/// The lines of a text, with their ends, in which one of the marks begins.
fn lines_with<'t>(
    text: &'t str,
    marks: &'static [Finder<'static>],
) -> impl Iterator<Item = Range<usize>> + use<'t> {
    let bytes = text.as_bytes();
    let mut nexts: [Option<Next>; 7] = std::array::from_fn(|index| Some(Next::new(text, marks.get(index)?)));
    let mut from = 0;
    std::iter::from_fn(move || {
        let at =
            nexts.iter_mut().flatten().map(|next| next.from(from)).min().filter(|at| *at < bytes.len())?;
        let start = memchr::memrchr(b'\n', &bytes[from..at]).map_or(from, |end| from + end + 1);
        from = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end + 1);
        Some(start..from)
    })
}

fn is_numbered(line: &str) -> bool {
    let line = line.trim_start();
    line.as_bytes().first().is_some_and(u8::is_ascii_digit) && numbered_line(line.trim_end())
}

/// Whether the text after an edit may have damage that the text before it lacks. `changes` are the lines that differ, in order and
/// apart from each other. `added` are the new ones, each with LF. If the answer is no, it is certain.
///
/// Lines that stay are damage only for what stands around them. So this reads the lines that differ and the next lines around them. It reads the
/// whole text only for signs that few texts have, and only as fast as a byte is found.
pub fn may_have_new(path: &str, before: &[u8], after: &[u8], changes: &[ChangedLines], added: &[u8]) -> bool {
    let removed: Option<Vec<&str>> =
        changes.iter().map(|lines| std::str::from_utf8(before.get(lines.old.clone())?).ok()).collect();
    let (Some(removed), Ok(text), Ok(added)) =
        (removed, std::str::from_utf8(after), std::str::from_utf8(added))
    else {
        return true;
    };
    // Behind a byte order mark, the first line is another one.
    let has_mark = after.starts_with(BYTE_ORDER_MARK);
    if has_mark != before.starts_with(BYTE_ORDER_MARK)
        || has_mark && changes.first().is_some_and(|lines| lines.new.start <= BYTE_ORDER_MARK.len())
    {
        return true;
    }
    let kind = FileKind::of(path);
    if kind == FileKind::Other {
        return memchr::memchr(0, added.as_bytes()).is_some();
    }
    let edit = Edit { kind, is_liquid: is_liquid(kind), text, changes, removed, added };
    edit.has_line_beside_others()
        || edit.may_be_listing()
        || edit.may_be_escaped(path.ends_with(".json"))
        || edit.may_have_wrong_characters(path)
        || edit.ends_wrongly()
        || edit.changes_blocks()
        || edit.unbordered(added).any(|lines| !damage(path, lines.as_bytes()).is_empty())
}

struct Edit<'a> {
    kind: FileKind,
    is_liquid: bool,
    /// The file after the edit.
    text: &'a str,
    changes: &'a [ChangedLines],
    /// The old lines of each change.
    removed: Vec<&'a str>,
    /// All new lines.
    added: &'a str,
}

impl<'a> Edit<'a> {
    /// Signs of diffs and dots count beside other lines: whether one of them is new, or the next line around a change.
    fn has_line_beside_others(&self) -> bool {
        let is_one = |line: &str| diff_sign(line) || is_ellipsis(line.trim());
        let has_dots = DOT_FINDERS.iter().any(|dots| dots.find(self.added.as_bytes()).is_some());
        if lines_of(self.added).any(|line| diff_sign(line) || has_dots && is_ellipsis(line.trim())) {
            return true;
        }
        let is_filled = |line: &&str| !line.trim().is_empty();
        let mut from = 0;
        self.changes.iter().enumerate().any(|(index, change)| {
            let above = &self.text[std::mem::replace(&mut from, change.new.end)..change.new.start];
            let end = self.changes.get(index + 1).map_or(self.text.len(), |next| next.new.start);
            let below = &self.text[change.new.end..end];
            above.rsplit('\n').find(is_filled).is_some_and(|line| is_ellipsis(line.trim()))
                || lines_of(below).find(is_filled).is_some_and(is_one)
        })
    }

    /// Of the lines of a listing, four in five have numbers, so the first fifth of them has one. A file becomes a listing only if it gets lines
    /// with numbers or loses other lines.
    fn may_be_listing(&self) -> bool {
        // Blanks of Unicode can be taken for a text in lines that go, and texts of it for blanks in those that come.
        let lost = |line: &&str| !line.trim_ascii_start().is_empty();
        let come = |line: &&str| line.trim_ascii_start().as_bytes().first().is_some_and(u8::is_ascii);
        let lost: usize = self.removed.iter().map(|lines| lines_of(lines).filter(lost).count()).sum();
        if lost <= lines_of(self.added).filter(come).count() && !lines_of(self.added).any(is_numbered) {
            return false;
        }
        let fifth = memchr::memchr_iter(b'\n', self.text.as_bytes()).count() / 5 + 1;
        lines_of(self.text).filter(|line| !line.trim().is_empty()).take(fifth).any(is_numbered)
    }

    fn has_changed(&self, byte: u8) -> bool {
        let has = |text: &str| memchr::memchr(byte, text.as_bytes()).is_some();
        has(self.added) || self.removed.iter().any(|lines| has(lines))
    }

    /// Whether the text has escaped line ends, quotes or markup that may be new.
    fn may_be_escaped(&self, is_json: bool) -> bool {
        let is_suspect = match self.kind {
            // Only a script with at most two line ends is one that was escaped.
            FileKind::Script => memchr::memchr_iter(b'\n', self.text.as_bytes()).nth(2).is_none(),
            _ => self.has_suspect_backslash(is_json) || self.is_liquid && self.has_suspect_entities(),
        };
        let mut notes = Notes::default();
        if is_suspect {
            escaped_text(self.kind, self.text, is_json, &mut notes);
        }
        !notes.list.is_empty()
    }

    fn has_suspect_backslash(&self, is_json: bool) -> bool {
        let bytes = self.text.as_bytes();
        let Some(first) = memchr::memchr(b'\\', bytes) else { return false };
        // Escaped line ends are compared with the number of lines. Escaped quotes count if no script stands before them.
        self.has_changed(b'\\')
            || !is_json && memmem::find_iter(&bytes[first..], b"\\n").nth(1).is_some()
            || self.is_liquid && self.removed.iter().any(|lines| lines.contains("<script"))
    }

    /// Whether markup or Liquid is escaped somewhere. What stands around it can be anywhere before.
    fn has_suspect_entities(&self) -> bool {
        let bytes = self.text.as_bytes();
        let mut elements = 0;
        memchr::memchr_iter(b'&', bytes).any(|at| {
            let rest = &bytes[at + 1..];
            elements += usize::from(rest.starts_with(b"lt;"));
            elements > 1
                || match rest.first() {
                    Some(b'#') => {
                        ["#37;", "#123;", "#x7B;"].iter().any(|mark| rest.starts_with(mark.as_bytes()))
                    }
                    Some(b'q') => bytes[..at].ends_with(b"{{"),
                    Some(b'g') => bytes[..at].ends_with(b"{% if a "),
                    _ => false,
                }
        })
    }

    /// Wrong characters stand in the new lines, or nowhere that is new. Only a curly quote depends on what is before it, and an invisible
    /// character on how long the lines of a script are.
    fn may_have_wrong_characters(&self, path: &str) -> bool {
        let bytes = self.text.as_bytes();
        if self.text.is_ascii() {
            return false;
        }
        let has_quote = || memchr::memchr_iter(0xE2, bytes).any(|at| bytes[..at].last() == Some(&b'='));
        let has_long = || self.removed.iter().any(|lines| script::is_library("", lines));
        let mut notes = Notes::default();
        if has_quote() || self.kind == FileKind::Script && has_long() {
            let is_library = self.kind == FileKind::Script && script::is_library(path, self.text);
            characters(self.kind, is_library, self.text, &mut notes);
        }
        !notes.list.is_empty()
    }

    fn ends_wrongly(&self) -> bool {
        let mut notes = Notes::default();
        let last = self.text.trim_end();
        let start = memchr::memrchr(b'\n', last.as_bytes()).map_or(0, |end| end + 1);
        let line = last[start..].trim_start();
        end_of_file(self.is_liquid, self.text, (line, last.len() - line.len()), &mut notes);
        repeated(self.text, &mut notes);
        !notes.list.is_empty()
    }

    fn is_border(&self, line: &str) -> bool {
        Block::after(None, line.trim(), self.is_liquid).is_some() || ENDS.iter().any(|end| line.contains(end))
    }

    /// The lines in which a comment, or a block that is no code, begins or ends.
    fn borders<'t>(&self, text: &'t str) -> impl Iterator<Item = Range<usize>> + use<'_, 't, 'a> {
        lines_with(text, &BORDER_FINDERS[..]).filter(|line| self.is_border(&text[line.clone()]))
    }

    /// The parts of a text between the lines in which a block begins or ends, and these lines, each as if it were alone. In a file, a
    /// comment hides what stands behind its beginning.
    fn unbordered<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> + use<'_, 't, 'a> {
        let mut from = 0;
        let ends = self.borders(text).flat_map(|line| [line.start, line.end]).chain([text.len()]);
        ends.map(move |end| &text[std::mem::replace(&mut from, end)..end]).filter(|part| !part.is_empty())
    }

    /// Whether one of the changes opens or closes a block for the lines behind it.
    fn changes_blocks(&self) -> bool {
        let mut blocks = None;
        self.changes.iter().zip(&self.removed).any(|(change, removed)| {
            let (was, is) = (self.effect(removed), self.effect(&self.text[change.new.clone()]));
            // What is open before the change matters only if the lines do not do the same to all.
            was != is && {
                let blocks = blocks.get_or_insert_with(|| Blocks::new(self.text, self.is_liquid));
                let open = blocks.go_to(change.new.start);
                STATES.iter().zip(was.iter().zip(&is)).any(|(state, (was, is))| *state == open && was != is)
            }
        })
    }

    /// What is open behind lines, for each of the states before them.
    fn effect(&self, lines: &str) -> [Option<Block>; 6] {
        let mut states = STATES;
        for line in self.borders(lines) {
            let line = &lines[line];
            let trimmed = line.trim();
            let has_mark = MARK_FINDERS.iter().any(|mark| mark.find(line.as_bytes()).is_some());
            for state in states.iter_mut().filter(|state| has_mark || state.is_some()) {
                *state = Block::after(*state, trimmed, self.is_liquid);
            }
        }
        states
    }
}

/// Finds what is open before a line, without a look at each line before.
struct Blocks<'a> {
    text: &'a str,
    is_liquid: bool,
    marks: Vec<Next<'a>>,
    /// The line that was reached, and what is open before it.
    at: usize,
    open: Option<Block>,
}

impl<'a> Blocks<'a> {
    fn new(text: &'a str, is_liquid: bool) -> Self {
        let is_needed = |mark: &&Finder| is_liquid || mark.needle() == b"/*";
        let marks = MARK_FINDERS.iter().filter(is_needed).map(|mark| Next::new(text, mark)).collect();
        Self { text, is_liquid, marks, at: 0, open: None }
    }

    /// What is open before a line. Each line must be at or behind the one before.
    fn go_to(&mut self, line: usize) -> Option<Block> {
        let bytes = self.text.as_bytes();
        let behind = |at: usize| memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end + 1);
        while self.at < line {
            if let Some(Block::Comment(end) | Block::Shown(end)) = self.open {
                let Some(at) = memmem::find(&bytes[self.at..line], end.as_bytes()) else { break };
                (self.at, self.open) = (behind(self.at + at), None);
                continue;
            }
            let from = self.at;
            let Some(at) = self.marks.iter_mut().map(|mark| mark.from(from)).min().filter(|at| *at < line)
            else {
                break;
            };
            let start = memchr::memrchr(b'\n', &bytes[from..at]).map_or(from, |end| from + end + 1);
            self.at = behind(at);
            self.open = Block::after(None, self.text[start..self.at].trim(), self.is_liquid);
        }
        self.at = self.at.max(line);
        self.open
    }
}
