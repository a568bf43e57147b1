//! The lines of a file as bytes, each with the line end that it has.

use std::cell::OnceCell;
use std::ops::Range;

use memchr::{memchr_iter, memmem};
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
pub(crate) fn plain(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.contains('\r') { text.replace("\r\n", "\n") } else { text.to_owned() }
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

/// The lines of a file. As in the crate `theme`, an empty text has one line, and a newline at the end opens no other line.
pub(crate) struct Text<'a> {
    pub bytes: &'a [u8],
    /// Where each line begins. The first begins behind a byte order mark.
    starts: Vec<usize>,
    /// The line end that most lines have, once it was asked for.
    usual: OnceCell<&'static [u8]>,
}

impl<'a> Text<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        let first = bom_len(bytes);
        // Lines of a theme have some 32 bytes.
        let mut starts = Vec::with_capacity(bytes.len() / 32 + 1);
        starts.push(first);
        starts.extend(memchr_iter(b'\n', &bytes[first..]).map(|at| first + at + 1));
        if starts.len() > 1 && starts.last() == Some(&bytes.len()) {
            starts.pop();
        }
        Self { bytes, starts, usual: OnceCell::new() }
    }

    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// The bytes of a line, from 0, with its end.
    pub fn line(&self, index: usize) -> Range<usize> {
        self.starts[index]..self.starts.get(index + 1).copied().unwrap_or(self.bytes.len())
    }

    /// The bytes of a line without its end.
    pub fn content(&self, index: usize) -> Range<usize> {
        let Range { start, end } = self.line(index);
        let line = &self.bytes[start..end];
        let len = match line {
            [.., b'\r', b'\n'] => line.len() - 2,
            [.., b'\n'] => line.len() - 1,
            _ => line.len(),
        };
        start..start + len
    }

    /// The end of a line: CRLF, LF or nothing.
    pub fn end(&self, index: usize) -> &'a [u8] {
        &self.bytes[self.content(index).end..self.line(index).end]
    }

    /// The line of a byte, from 0.
    pub fn line_of(&self, at: usize) -> usize {
        self.starts.partition_point(|&start| start <= at).saturating_sub(1)
    }

    /// The lines, from 1, that a range of bytes touches.
    pub fn lines_of(&self, range: &Range<usize>) -> LineRange {
        let first = self.line_of(range.start);
        let last = if range.end > range.start { self.line_of(range.end - 1) } else { first };
        line_range(first, last.max(first) + 1)
    }

    /// The line end that a new line at a place takes: that of its line, of the line before, or the usual one.
    pub fn end_near(&self, at: usize) -> &'a [u8] {
        let line = self.line_of(at);
        let own = self.end(line);
        if !own.is_empty() {
            return own;
        }
        match line.checked_sub(1) {
            Some(before) => self.end(before),
            None => self.usual.get_or_init(|| usual_end(self.bytes)),
        }
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

/// Lines `first..end`, from 0, as the lines that people count from 1.
pub(crate) fn line_range(first: usize, end: usize) -> LineRange {
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    LineRange { start: number(first + 1), end: number(end.max(first + 1)) }
}

/// A part of a file, and what takes its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Splice {
    pub range: Range<usize>,
    pub new: Vec<u8>,
}

impl Splice {
    /// The same change without the bytes that stay at both ends.
    pub fn trimmed(self, bytes: &[u8]) -> Self {
        let old = &bytes[self.range.clone()];
        let head = old.iter().zip(&self.new).take_while(|(a, b)| a == b).count();
        let most = old.len().min(self.new.len()) - head;
        let tail = old.iter().rev().zip(self.new.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
        Self {
            range: self.range.start + head..self.range.end - tail,
            new: self.new[head..self.new.len() - tail].to_vec(),
        }
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
