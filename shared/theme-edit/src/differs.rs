//! How a file differs from the one before.

use std::ops::Range;

use theme::text::LineRange;

use crate::diff::{Hunk, hunks};
use crate::text::{bom_len, line_range};

/// How a new file differs from the old one.
pub(crate) struct Differs {
    /// The lines of the new file. Where lines were only removed, the line behind them.
    pub lines: Vec<LineRange>,
    /// How many lines the new file has.
    pub total: usize,
}

/// The part of two files that differs, and how. Only its lines are split and compared: most edits change few of them.
pub(crate) struct Changed<'a> {
    /// The lines that differ. Numbers are those of the files.
    pub hunks: Vec<Hunk>,
    /// How many lines both files have before that part.
    first: usize,
    /// The lines of that part.
    old: Vec<&'a [u8]>,
    new: Vec<&'a [u8]>,
    /// How many lines the new file has.
    total: usize,
}

impl<'a> Changed<'a> {
    pub fn of(before: &'a [u8], after: &'a [u8]) -> Self {
        let (old, new) = (&before[bom_len(before)..], &after[bom_len(after)..]);
        let newlines = |bytes: &[u8]| memchr::memchr_iter(b'\n', bytes).count();
        let total = newlines(new) + usize::from(!new.ends_with(b"\n"));
        // Without a byte, a file has one line all the same.
        let (old_part, new_part) =
            if old.is_empty() || new.is_empty() { (0..old.len(), 0..new.len()) } else { different(old, new) };
        let first = newlines(&old[..old_part.start]);
        let lines = |file: &'a [u8], part: Range<usize>| -> Vec<&'a [u8]> {
            let mut at = part.start;
            let ends = memchr::memchr_iter(b'\n', &file[part.clone()]).map(|end| part.start + end + 1);
            // Lines of a theme have some 32 bytes.
            let mut lines: Vec<&[u8]> = Vec::with_capacity(part.len() / 32 + 1);
            lines.extend(ends.map(|end| &file[std::mem::replace(&mut at, end)..end]));
            if at < part.end || file.is_empty() {
                lines.push(&file[at..part.end]);
            }
            lines
        };
        let (old, new) = (lines(old, old_part), lines(new, new_part));
        let mut hunks = hunks(&old, &new);
        for side in hunks.iter_mut().flat_map(|hunk| [&mut hunk.old, &mut hunk.new]) {
            *side = side.start + first..side.end + first;
        }
        Self { hunks, first, old, new, total }
    }

    /// The old lines that differ, with their numbers from 0.
    pub fn removed(&self) -> impl Iterator<Item = (usize, &'a [u8])> {
        self.hunks.iter().flat_map(|hunk| hunk.old.clone()).map(|line| (line, self.old[line - self.first]))
    }

    /// The new lines that differ, with their numbers from 0.
    pub fn added(&self) -> impl Iterator<Item = (usize, &'a [u8])> {
        self.hunks.iter().flat_map(|hunk| hunk.new.clone()).map(|line| (line, self.new[line - self.first]))
    }

    pub fn differs(&self) -> Differs {
        let range = |hunk: &Hunk| {
            if hunk.new.is_empty() {
                let line = hunk.new.start.min(self.total.saturating_sub(1));
                line_range(line, line + 1)
            } else {
                line_range(hunk.new.start, hunk.new.end)
            }
        };
        Differs { lines: self.hunks.iter().map(range).collect(), total: self.total }
    }
}

/// The parts of two files without the whole lines that are equal at both ends.
fn different(old: &[u8], new: &[u8]) -> (Range<usize>, Range<usize>) {
    let same = |old: &[u8], new: &[u8]| old.iter().zip(new).take_while(|(a, b)| a == b).count();
    // Blocks are compared faster than bytes.
    const BLOCK: usize = 128;
    let blocks = old.chunks_exact(BLOCK).zip(new.chunks_exact(BLOCK));
    let mut head = blocks.take_while(|(a, b)| a == b).count() * BLOCK;
    head += same(&old[head..], &new[head..]);
    if head < old.len().max(new.len()) {
        head = memchr::memrchr(b'\n', &old[..head]).map_or(0, |end| end + 1);
    }
    let (a, b) = (&old[head..], &new[head..]);
    let blocks = a.rchunks_exact(BLOCK).zip(b.rchunks_exact(BLOCK));
    let mut tail = blocks.take_while(|(a, b)| a == b).count() * BLOCK;
    let (rest_a, rest_b) = (&a[..a.len() - tail], &b[..b.len() - tail]);
    tail += rest_a.iter().rev().zip(rest_b.iter().rev()).take_while(|(a, b)| a == b).count();
    let is_line = |part: &[u8]| matches!(part[..part.len() - tail], [] | [.., b'\n']);
    if !(is_line(a) && is_line(b)) {
        let from = &a[a.len() - tail..];
        tail = memchr::memchr(b'\n', from).map_or(0, |end| from.len() - end - 1);
    }
    (head..old.len() - tail, head..new.len() - tail)
}

/// How a new file differs from the old one.
pub(crate) fn differs(before: &[u8], after: &[u8]) -> Differs {
    Changed::of(before, after).differs()
}

/// The lines of the new file that differ from the old one.
pub(crate) fn changed_lines(before: &[u8], after: &[u8]) -> Vec<LineRange> {
    differs(before, after).lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Text;

    #[test]
    fn it_is_what_a_comparison_of_all_lines_finds() {
        let parts = ["", "a", "b", "a\n", "b\n", "\n", "\r\n", "\u{feff}", "aaaa\n"];
        let texts: Vec<String> =
            parts.iter().flat_map(|a| parts.iter().map(move |b| format!("{a}{b}"))).collect();
        let long: String = (0..40).map(|n| format!("line {n}\n")).collect();
        for old in &texts {
            for new in &texts {
                for (old, new) in [
                    (old.clone(), new.clone()),
                    (format!("{old}{long}{new}"), format!("{new}{long}{old}")),
                    (format!("{long}{old}{long}"), format!("{long}{new}{long}")),
                ] {
                    let (a, b) = (Text::new(old.as_bytes()), Text::new(new.as_bytes()));
                    let changed = Changed::of(old.as_bytes(), new.as_bytes());
                    assert_eq!(changed.hunks, hunks(&a.lines(), &b.lines()), "{old:?} {new:?}");
                    assert_eq!(changed.total, b.count(), "{new:?}");
                    assert!(changed.removed().all(|(line, text)| text == a.lines()[line]));
                    assert!(changed.added().all(|(line, text)| text == b.lines()[line]));
                }
            }
        }
    }
}
