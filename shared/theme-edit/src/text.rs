//! The lines of a file as bytes, each with the line end that it has.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;

use memchr::{memchr, memchr_iter, memmem, memrchr};
use theme::text::LineRange;

const BOM: &[u8] = "\u{feff}".as_bytes();

/// The length of the byte order mark at the beginning: 0 or 3.
pub(crate) fn bom_len(bytes: &[u8]) -> usize {
    if bytes.starts_with(BOM) { BOM.len() } else { 0 }
}

/// The line end that most lines have, or LF.
pub(crate) fn usual_end(bytes: &[u8]) -> &'static [u8] {
    let all = memchr_iter(b'\n', bytes).count();
    let crlf = memmem::find_iter(bytes, b"\r\n").count();
    if crlf * 2 > all { b"\r\n" } else { b"\n" }
}

/// A text with LF for each CRLF, and without a byte order mark: the form in which texts of calls are compared and spliced.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.contains('\r') { text.replace("\r\n", "\n").into() } else { text.into() }
}

/// A short part of a line, for messages.
pub(crate) fn excerpt(line: &[u8]) -> String {
    const MOST: usize = 120;
    let text = String::from_utf8_lossy(line.get(..line.len().min(MOST * 4)).unwrap_or_default());
    let text = text.trim();
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A line without its end.
pub(crate) fn without_end(line: &[u8]) -> &[u8] {
    match line {
        [line @ .., b'\r', b'\n'] | [line @ .., b'\n'] => line,
        _ => line,
    }
}

/// The lines of a file. As in the crate `theme`, an empty text has one line, and a newline at the end opens no other line.
pub(crate) struct Text<'a> {
    pub bytes: &'a [u8],
    /// Where each line begins, once it was asked for. The first begins behind a byte order mark.
    starts: OnceCell<Vec<usize>>,
    /// The line end that most lines have, once it was asked for.
    usual: OnceCell<&'static [u8]>,
    view: OnceCell<View<'a>>,
}

impl<'a> Text<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, starts: OnceCell::new(), usual: OnceCell::new(), view: OnceCell::new() }
    }

    /// Where each line begins. With it, lines are found at once, but it takes a reading of the whole file.
    pub fn starts(&self) -> &[usize] {
        self.starts.get_or_init(|| {
            let (bytes, first) = (self.bytes, bom_len(self.bytes));
            // Lines of a theme have some 32 bytes.
            let mut starts = Vec::with_capacity(bytes.len() / 32 + 1);
            starts.push(first);
            starts.extend(memchr_iter(b'\n', &bytes[first..]).map(|at| first + at + 1));
            if starts.len() > 1 && starts.last() == Some(&bytes.len()) {
                starts.pop();
            }
            starts
        })
    }

    /// The file as texts are searched in it.
    pub fn view(&self) -> &View<'a> {
        self.view.get_or_init(|| View::of(self.bytes))
    }

    pub fn count(&self) -> usize {
        match self.starts.get() {
            Some(starts) => starts.len(),
            None => memchr_iter(b'\n', self.bytes).count() + usize::from(!self.bytes.ends_with(b"\n")),
        }
    }

    /// Where lines begin that are asked for in order, from 0. Behind the last line, it is the end of the file. To count what is before a
    /// line takes less time than to note where each line begins.
    pub fn starts_in_order(&self) -> impl FnMut(usize) -> usize + use<'a> {
        const BLOCK: usize = 512;
        let bytes = self.bytes;
        let (mut line, mut at) = (0, bom_len(bytes));
        move |wanted| {
            while line < wanted {
                let block = &bytes[at..bytes.len().min(at + BLOCK)];
                let count = memchr_iter(b'\n', block).count();
                if block.is_empty() || line + count >= wanted {
                    let last = memchr_iter(b'\n', block).nth((wanted - line).saturating_sub(1));
                    (line, at) = (wanted, last.map_or(bytes.len(), |end| at + end + 1));
                } else {
                    (line, at) = (line + count, at + block.len());
                }
            }
            at
        }
    }

    /// The bytes of a line, from 0, with its end.
    pub fn line(&self, index: usize) -> Range<usize> {
        let starts = self.starts();
        starts[index]..starts.get(index + 1).copied().unwrap_or(self.bytes.len())
    }

    /// The bytes of a line without its end.
    pub fn content(&self, index: usize) -> Range<usize> {
        let line = self.line(index);
        line.start..line.start + without_end(&self.bytes[line]).len()
    }

    /// The end of a line: CRLF, LF or nothing.
    pub fn end(&self, index: usize) -> &'a [u8] {
        end_of(&self.bytes[self.line(index)])
    }

    /// The line of a byte, from 0.
    pub fn line_of(&self, at: usize) -> usize {
        self.starts().partition_point(|&start| start <= at).saturating_sub(1)
    }

    /// The bytes of the line of a byte, with its end. Unless the lines are known, only this line is read.
    fn line_around(&self, at: usize) -> Range<usize> {
        if self.starts.get().is_some() {
            return self.line(self.line_of(at));
        }
        let first = bom_len(self.bytes);
        let end = self.bytes.len() - usize::from(self.bytes.ends_with(b"\n"));
        let at = at.min(end).max(first);
        let start = memrchr(b'\n', &self.bytes[first..at]).map_or(first, |end| first + end + 1);
        start..memchr(b'\n', &self.bytes[at..]).map_or(self.bytes.len(), |end| at + end + 1)
    }

    /// The lines, from 1, that a range of bytes touches.
    pub fn lines_of(&self, range: &Range<usize>) -> LineRange {
        let first = self.line_of(range.start);
        let last = if range.end > range.start { self.line_of(range.end - 1) } else { first };
        line_range(first, last.max(first) + 1)
    }

    /// The end of the line of a byte.
    pub fn end_around(&self, at: usize) -> &'a [u8] {
        end_of(&self.bytes[self.line_around(at)])
    }

    /// The line end that a new line at a place takes: that of its line, of the line before, or the usual one.
    pub fn end_near(&self, at: usize) -> &'a [u8] {
        let line = self.line_around(at);
        let own = end_of(&self.bytes[line.clone()]);
        if !own.is_empty() {
            return own;
        }
        // Only the last line has no end, so the one before has one.
        match end_of(&self.bytes[..line.start]) {
            [] => self.usual.get_or_init(|| usual_end(self.bytes)),
            before => before,
        }
    }

    /// The lines of a range of whole lines, without their ends.
    pub fn contents_in(&self, range: &Range<usize>) -> Vec<Range<usize>> {
        let mut at = range.start;
        // Lines of a theme have some 32 bytes.
        let mut lines = Vec::with_capacity(range.len() / 32 + 1);
        for end in memchr_iter(b'\n', &self.bytes[range.clone()]).map(|end| range.start + end + 1) {
            lines.push(at..at + without_end(&self.bytes[at..end]).len());
            at = end;
        }
        // The last line of a file can have no end, and no byte.
        if at < range.end || range.is_empty() {
            lines.push(at..range.end);
        }
        lines
    }

    /// All lines with their ends.
    pub fn lines(&self) -> Vec<&'a [u8]> {
        (0..self.count()).map(|index| &self.bytes[self.line(index)]).collect()
    }

    /// All lines without their ends.
    pub fn contents(&self) -> Vec<&'a [u8]> {
        (0..self.count()).map(|index| &self.bytes[self.content(index)]).collect()
    }
}

/// The line end with which bytes end, or nothing.
fn end_of(bytes: &[u8]) -> &[u8] {
    &bytes[without_end(bytes).len()..]
}

/// Lines `first..end`, from 0, as the lines that people count from 1.
pub(crate) fn line_range(first: usize, end: usize) -> LineRange {
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    LineRange { start: number(first + 1), end: number(end.max(first + 1)) }
}

/// A file without byte order mark and with LF for each CRLF, so that texts can be searched in it.
pub(crate) struct View<'a> {
    pub bytes: Cow<'a, [u8]>,
    /// The positions in the view behind which a CR is left out.
    pub gaps: Vec<usize>,
    pub base: usize,
}

impl<'a> View<'a> {
    fn of(file: &'a [u8]) -> Self {
        let base = bom_len(file);
        let rest = &file[base..];
        if memchr(b'\r', rest).is_none() {
            return Self { bytes: rest.into(), gaps: Vec::new(), base };
        }
        let mut bytes = Vec::with_capacity(rest.len());
        let mut gaps = Vec::new();
        let mut at = 0;
        for cr in memmem::find_iter(rest, b"\r\n") {
            bytes.extend_from_slice(&rest[at..cr]);
            gaps.push(bytes.len());
            at = cr + 1;
        }
        bytes.extend_from_slice(&rest[at..]);
        Self { bytes: bytes.into(), gaps, base }
    }

    /// The place in the file of a position in the view. Before a line end, it is the place before the CR.
    pub fn place(&self, at: usize) -> usize {
        self.base + at + self.gaps.partition_point(|&gap| gap < at)
    }
}

/// A part of a file, and what takes its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Splice {
    pub range: Range<usize>,
    pub new: Vec<u8>,
}

impl Splice {
    /// The same change without the bytes that stay at both ends.
    pub fn trimmed(mut self, bytes: &[u8]) -> Self {
        let old = &bytes[self.range.clone()];
        let head = old.iter().zip(&self.new).take_while(|(a, b)| a == b).count();
        let most = old.len().min(self.new.len()) - head;
        let tail = old.iter().rev().zip(self.new.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
        self.range = self.range.start + head..self.range.end - tail;
        self.new.truncate(self.new.len() - tail);
        self.new.drain(..head);
        self
    }

    pub fn is_nothing(&self) -> bool {
        self.range.is_empty() && self.new.is_empty()
    }
}

/// The file after the splices, which are in order and do not overlap.
pub(crate) fn spliced(bytes: &[u8], splices: &[Splice]) -> Vec<u8> {
    let added: usize = splices.iter().map(|splice| splice.new.len()).sum();
    let mut new = Vec::with_capacity(bytes.len() + added);
    let mut at = 0;
    for splice in splices {
        new.extend_from_slice(&bytes[at..splice.range.start]);
        new.extend_from_slice(&splice.new);
        at = splice.range.end;
    }
    new.extend_from_slice(&bytes[at..]);
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_ends_and_the_mark_is_no_part_of_the_first() {
        let text = Text::new("\u{feff}a\r\nb\nc".as_bytes());
        let shown: Vec<(&[u8], &[u8])> =
            (0..text.count()).map(|line| (&text.bytes[text.content(line)], text.end(line))).collect();
        assert_eq!(shown, [(&b"a"[..], &b"\r\n"[..]), (b"b", b"\n"), (b"c", b"")]);
        assert_eq!(text.end_near(8), b"\n", "the last line takes the end of the line before");
        assert_eq!(Text::new(b"").count(), 1);
        assert_eq!(Text::new(b"a\n").count(), 1);
        assert_eq!(Text::new(b"a\n\n").count(), 2);
    }

    #[test]
    fn the_usual_end_is_that_of_most_lines() {
        assert_eq!(usual_end(b"a\r\nb\r\nc\n"), b"\r\n");
        assert_eq!(usual_end(b"a\r\nb\n"), b"\n");
        assert_eq!(usual_end(b""), b"\n");
    }

    #[test]
    fn a_trimmed_splice_makes_the_same_file() {
        let bytes = b"one two three";
        let splice = Splice { range: 0..13, new: b"one 2 three".to_vec() };
        let trimmed = splice.clone().trimmed(bytes);
        assert_eq!(trimmed, Splice { range: 4..7, new: b"2".to_vec() });
        assert_eq!(spliced(bytes, &[trimmed]), spliced(bytes, &[splice]));
    }
}
