//! How a file differs from the one before.

use std::ops::Range;

use theme::check::ChangedLines;
use theme::text::LineRange;

use crate::diff::{Hunk, hunks};
use crate::text::{Splice, bom_len, line_range};

/// How a new file differs from the old one.
pub(crate) struct Differs {
    /// The lines of the new file. Where lines were only removed, the line behind them.
    pub lines: Vec<LineRange>,
    /// How many lines the new file has.
    pub total: usize,
}

/// The lines of two files that differ. Only the parts that differ are split into lines: most edits change few of them.
#[derive(Default)]
pub(crate) struct Changed<'a> {
    /// The lines that differ. Numbers are those of the files.
    pub hunks: Vec<Hunk>,
    /// The old lines that differ, with their numbers from 0.
    pub removed: Vec<(usize, &'a [u8])>,
    /// The new lines that differ, with their numbers from 0.
    pub added: Vec<(usize, &'a [u8])>,
    /// Where the lines of each hunk stand in the files.
    pub places: Vec<ChangedLines>,
    /// How many lines the new file has.
    total: usize,
}

impl<'a> Changed<'a> {
    /// Compares two files.
    pub fn of(before: &'a [u8], after: &'a [u8]) -> Self {
        let marks = (bom_len(before), bom_len(after));
        let (old, new) = (&before[marks.0..], &after[marks.1..]);
        // Without a byte, a file has one line all the same.
        let part =
            if old.is_empty() || new.is_empty() { (0..old.len(), 0..new.len()) } else { different(old, new) };
        Self::within(old, new, marks, [part])
    }

    /// Compares two files, of which the second one is the first one after these splices.
    pub fn by(before: &'a [u8], after: &'a [u8], splices: &[Splice]) -> Self {
        let mark = bom_len(before);
        let is_mark_changed =
            mark != bom_len(after) || splices.first().is_some_and(|first| first.range.start < mark);
        if is_mark_changed || mark == before.len() || mark == after.len() {
            return Self::of(before, after);
        }
        let (old, new) = (&before[mark..], &after[mark..]);
        Self::within(old, new, (mark, mark), spliced_parts(old, new, mark, splices))
    }

    /// Compares parts of two files, which lack their byte order marks. The parts are whole lines and in order, and what is between them is
    /// equal. `marks` are the lengths of the byte order marks.
    fn within(
        old: &'a [u8],
        new: &'a [u8],
        marks: (usize, usize),
        parts: impl IntoIterator<Item = (Range<usize>, Range<usize>)>,
    ) -> Self {
        let newlines = |bytes: &[u8]| memchr::memchr_iter(b'\n', bytes).count();
        let mut changed = Self::default();
        // The lines and the bytes behind the last part, and whether the last line of the new file is before them.
        let (mut old_line, mut new_line, mut old_at, mut new_at) = (0, 0, 0, 0);
        let mut has_last = false;
        for (old_part, new_part) in parts {
            let between = newlines(&old[old_at..old_part.start]);
            (old_line, new_line) = (old_line + between, new_line + between);
            (old_at, new_at) = (old_part.end, new_part.end);
            let (mut old_place, mut new_place) = (marks.0 + old_part.start, marks.1 + new_part.start);
            let (mut old_from, mut new_from) = (0, 0);
            let (olds, news) = (lines(old, old_part), lines(new, new_part));
            for Hunk { old, new } in hunks(&olds, &news) {
                changed.places.push(ChangedLines {
                    old: place(&olds, &old, &mut old_from, &mut old_place),
                    new: place(&news, &new, &mut new_from, &mut new_place),
                });
                changed.removed.extend(old.clone().map(|line| (old_line + line, olds[line])));
                changed.added.extend(new.clone().map(|line| (new_line + line, news[line])));
                changed.hunks.push(Hunk {
                    old: old_line + old.start..old_line + old.end,
                    new: new_line + new.start..new_line + new.end,
                });
            }
            (old_line, new_line) = (old_line + olds.len(), new_line + news.len());
            has_last = new_at == new.len() && !news.is_empty();
        }
        let is_unended = !has_last && !new.ends_with(b"\n");
        changed.total = new_line + newlines(&new[new_at..]) + usize::from(is_unended);
        changed
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

/// The bytes of a file that some of its lines take. `place` is where the line `from` begins. Both go on behind the lines.
fn place(lines: &[&[u8]], wanted: &Range<usize>, from: &mut usize, place: &mut usize) -> Range<usize> {
    let length = |lines: &[&[u8]]| lines.iter().map(|line| line.len()).sum::<usize>();
    let start = *place + length(&lines[*from..wanted.start]);
    (*from, *place) = (wanted.end, start + length(&lines[wanted.clone()]));
    start..*place
}

/// The lines of a part of a file, with their ends.
fn lines(file: &[u8], part: Range<usize>) -> Vec<&[u8]> {
    let mut at = part.start;
    let ends = memchr::memchr_iter(b'\n', &file[part.clone()]).map(|end| part.start + end + 1);
    // Lines of a theme have some 32 bytes.
    let mut lines: Vec<&[u8]> = Vec::with_capacity(part.len() / 32 + 1);
    lines.extend(ends.map(|end| &file[std::mem::replace(&mut at, end)..end]));
    if at < part.end || file.is_empty() {
        lines.push(&file[at..part.end]);
    }
    lines
}

/// The parts of two files that splices change, as whole lines. Between two parts there is at least one line. `mark` is the length of the
/// byte order mark, which `old` and `new` lack.
fn spliced_parts(
    old: &[u8],
    new: &[u8],
    mark: usize,
    splices: &[Splice],
) -> Vec<(Range<usize>, Range<usize>)> {
    let mut parts: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    // The places behind the last splice.
    let (mut old_at, mut new_at) = (0, 0);
    for at in 0..=splices.len() {
        let next = splices.get(at).map(|splice| splice.range.start - mark..splice.range.end - mark);
        // What both files have between two splices.
        let between = &old[old_at..next.as_ref().map_or(old.len(), |next| next.start)];
        // How much of it belongs to the lines before, and where the lines behind it begin.
        let is_line = |part: &[u8]| matches!(part, [] | [.., b'\n']);
        let rest = match is_line(&old[..old_at]) && is_line(&new[..new_at]) {
            true => 0,
            false => memchr::memchr(b'\n', between).map_or(between.len(), |end| end + 1),
        };
        let line = memchr::memrchr(b'\n', between).map_or(0, |end| end + 1);
        let is_apart = next.is_none() || rest < line;
        if let (true, Some((old_part, new_part))) = (is_apart, parts.last_mut()) {
            (old_part.end, new_part.end) = (old_at + rest, new_at + rest);
        }
        let Some(next) = next else { break };
        if is_apart || parts.is_empty() {
            let (old_start, new_start) = (old_at + line, new_at + line);
            parts.push((old_start..old_start, new_start..new_start));
        }
        new_at += between.len() + splices[at].new.len();
        old_at = next.end;
        if let Some((old_part, new_part)) = parts.last_mut() {
            (old_part.end, new_part.end) = (old_at, new_at);
        }
    }
    parts
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
    use crate::text::{Text, spliced};

    /// The places are those of the lines that differ.
    fn assert_places(changed: &Changed, old: &[u8], new: &[u8]) {
        let (a, b) = (Text::new(old), Text::new(new));
        let bytes = |text: &Text, lines: &Range<usize>| -> Range<usize> {
            let start = |line| if line < text.count() { text.line(line).start } else { text.bytes.len() };
            start(lines.start)..start(lines.end)
        };
        let of = |hunk: &Hunk| ChangedLines { old: bytes(&a, &hunk.old), new: bytes(&b, &hunk.new) };
        let places: Vec<ChangedLines> = changed.hunks.iter().map(of).collect();
        assert_eq!(changed.places, places, "{old:?} {new:?}");
    }

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
                    assert!(changed.removed.iter().all(|(line, text)| *text == a.lines()[*line]));
                    assert!(changed.added.iter().all(|(line, text)| *text == b.lines()[*line]));
                    assert_places(&changed, old.as_bytes(), new.as_bytes());
                }
            }
        }
    }

    #[test]
    fn what_splices_change_is_what_turns_one_file_into_the_other() {
        let texts = ["", "a", "a\n", "\n", "b\r\nc", "a\nb\n", "\u{feff}"];
        let files = ["", "\u{feff}", "a\nb\nc\nd\na\n", "\u{feff}a\r\nb\n\na", "\n\n", "a\na\na\nb"];
        let mut compared = 0;
        for file in files.map(str::as_bytes) {
            let ranges: Vec<Range<usize>> =
                (0..=file.len()).flat_map(|start| (start..=file.len()).map(move |end| start..end)).collect();
            for first in &ranges {
                // The texts take turns, so that not all pairs of them are needed.
                for second in ranges.iter().filter(|second| second.start >= first.end && *second != first) {
                    let (at, other) = (compared % texts.len(), compared / texts.len() % texts.len());
                    let splice = |range: &Range<usize>, text: &str| Splice {
                        range: range.clone(),
                        new: text.as_bytes().to_vec(),
                    };
                    let splices = [splice(first, texts[at]), splice(second, texts[other])];
                    let new = spliced(file, &splices);
                    let changed = Changed::by(file, &new, &splices);
                    let (a, b) = (Text::new(file), Text::new(&new));
                    let (olds, news) = (a.lines(), b.lines());
                    let (mut made, mut from): (Vec<&[u8]>, usize) = (Vec::new(), 0);
                    for hunk in &changed.hunks {
                        assert!(hunk.old.start > from || from == 0, "{splices:?}");
                        made.extend(&olds[from..hunk.old.start]);
                        assert_eq!(made.len(), hunk.new.start, "{splices:?}");
                        made.extend(&news[hunk.new.clone()]);
                        from = hunk.old.end;
                    }
                    made.extend(&olds[from..]);
                    assert_eq!(made, news, "{splices:?}");
                    assert_eq!(changed.total, b.count(), "{splices:?}");
                    let numbers = |lines: &[(usize, &[u8])], of: &[&[u8]]| -> Vec<usize> {
                        assert!(lines.iter().all(|(line, text)| of[*line] == *text), "{splices:?}");
                        lines.iter().map(|(line, _)| *line).collect()
                    };
                    let hunks = || changed.hunks.iter().cloned();
                    let removed: Vec<usize> = hunks().flat_map(|hunk| hunk.old).collect();
                    let added: Vec<usize> = hunks().flat_map(|hunk| hunk.new).collect();
                    assert_eq!(numbers(&changed.removed, &olds), removed);
                    assert_eq!(numbers(&changed.added, &news), added);
                    assert_places(&changed, file, &new);
                    compared += 1;
                }
            }
        }
        assert!(compared > 2_000, "{compared}");
    }
}
