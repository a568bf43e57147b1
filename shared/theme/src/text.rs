//! Positions in a file: byte spans, line ranges, and the table that converts between them.

use memchr::memchr_iter;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Bytes `start..end` of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// Offsets beyond 4 GiB cannot occur, because such files are rejected before.
    pub fn new(start: usize, end: usize) -> Self {
        debug_assert!(start <= end);
        Self { start: start as u32, end: end as u32 }
    }

    pub fn of(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    pub fn shifted(self, by: usize) -> Self {
        Self { start: self.start + by as u32, end: self.end + by as u32 }
    }

    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// Lines `start..=end` of a file. The first line is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub struct LineRange {
    /// The first line.
    pub start: u32,
    /// The last line.
    pub end: u32,
}

impl LineRange {
    pub fn new(start: u32, end: u32) -> Self {
        debug_assert!(1 <= start && start <= end);
        Self { start, end }
    }

    pub fn count(self) -> u32 {
        self.end - self.start + 1
    }
}

/// The position where each line of a text begins.
pub struct Lines {
    starts: Vec<u32>,
    len: u32,
}

impl Lines {
    pub fn new(text: &str) -> Self {
        let mut starts = Vec::with_capacity(text.len() / 24 + 1);
        starts.push(0);
        starts.extend(memchr_iter(b'\n', text.as_bytes()).map(|at| at as u32 + 1));
        if starts.len() > 1 && starts.last() == Some(&(text.len() as u32)) {
            starts.pop(); // a newline at the end closes the last line and does not open another
        }
        Self { starts, len: text.len() as u32 }
    }

    /// Gives back the memory for more lines.
    pub fn shrink(&mut self) {
        self.starts.shrink_to_fit();
    }

    /// The number of lines. An empty text has one line.
    pub fn count(&self) -> u32 {
        self.starts.len() as u32
    }

    /// The line of a byte, from 1. A byte past the end is on the last line.
    pub fn line_of(&self, offset: u32) -> u32 {
        self.starts.partition_point(|&start| start <= offset) as u32
    }

    /// The lines that a span touches. An empty span touches the line of its position.
    pub fn range_of(&self, span: Span) -> LineRange {
        let start = self.line_of(span.start.min(self.len));
        let last_byte = if span.end > span.start { span.end - 1 } else { span.end };
        LineRange::new(start, self.line_of(last_byte).max(start))
    }

    /// The bytes of line `line`, including its newline.
    pub fn span_of(&self, line: u32) -> Span {
        let start = self.starts[line as usize - 1];
        Span { start, end: self.starts.get(line as usize).copied().unwrap_or(self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_fall_on_their_lines() {
        let check = |text: &str, count: u32, places: &[(u32, u32)]| {
            let lines = Lines::new(text);
            assert_eq!(lines.count(), count, "{text:?}");
            for &(offset, line) in places {
                assert_eq!(lines.line_of(offset), line, "byte {offset} of {text:?}");
            }
        };
        check("", 1, &[(0, 1), (9, 1)]);
        check("a", 1, &[(0, 1), (1, 1)]);
        check("a\n", 1, &[(1, 1), (2, 1)]);
        check("a\nb", 2, &[(0, 1), (1, 1), (2, 2), (3, 2)]);
        check("\n\n\n", 3, &[(0, 1), (1, 2), (2, 3)]);
        check("a\r\nb\r\n", 2, &[(2, 1), (3, 2)]);
    }

    #[test]
    fn a_span_touches_the_lines_it_has_bytes_on() {
        let lines = Lines::new("one\ntwo\nthree\n");
        assert_eq!(lines.range_of(Span::new(0, 4)), LineRange::new(1, 1));
        assert_eq!(lines.range_of(Span::new(0, 5)), LineRange::new(1, 2));
        assert_eq!(lines.range_of(Span::new(4, 4)), LineRange::new(2, 2));
        assert_eq!(lines.span_of(2), Span::new(4, 8));
    }
}
