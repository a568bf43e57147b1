//! Finds the place of a text in a file, and writes another text there.
//!
//! Three forms are tried, one after the other: the text itself, the same lines with other blanks at their ends, and the same lines
//! with another indentation. The last two count only if one place has them. They only *locate*: what both the old and the new text of
//! a call have stays as the file has it, with its blanks and line ends.
//!
//! Each search takes linear time, whatever the texts are.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;

use memchr::{memchr_iter, memmem};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use theme::text::LineRange;
use utoipa::ToSchema;

use crate::diff;
use crate::text::{Splice, Text, View, bom_len, excerpt, without_end};

/// How the text of a call was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = EditFit)]
pub enum Fit {
    /// Byte by byte, apart from line ends.
    #[default]
    Exact,
    /// The blanks at the ends of lines differ.
    TrailingBlanks,
    /// The indentation of all lines differs in the same way. The new text was shifted.
    Indentation,
}

/// The text nearest to one that a file does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Nearest {
    /// Its lines.
    pub lines: LineRange,
    /// The first line of it that differs from the text of the call.
    pub line: u32,
    /// What that line is.
    pub found: String,
    /// What the call has there.
    pub wanted: String,
}

/// Why a text has no place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    Nowhere(Option<Nearest>),
    /// The lines of the places: not as many as expected, or places that overlap.
    Several {
        lines: Vec<LineRange>,
        count: usize,
    },
    /// The new text stands there already.
    There(LineRange),
}

/// A place: the lines of the text, without their ends, and the ends between them.
struct Place {
    pieces: Vec<Range<usize>>,
    fit: Fit,
    /// The indentation that all lines of the call have, and the one that the file has there.
    indents: (Vec<u8>, Vec<u8>),
    /// Whether the call ends with a newline, and the place is the end of a file that has none.
    is_unended: bool,
}

impl Place {
    fn range(&self) -> Range<usize> {
        let start = self.pieces.first().map_or(0, |piece| piece.start);
        start..self.pieces.last().map_or(start, |piece| piece.end)
    }
}

/// The most places that a message lists.
const MOST_LISTED: usize = 20;

/// The splices that put `new` where `old` stands. Both texts have only LF as line ends. `is_seen`: the caller names the version of the text,
/// so it has seen whether the new text stands there already, and means what it says.
pub(crate) fn replace(
    text: &Text,
    old: &str,
    new: &str,
    expected: usize,
    is_seen: bool,
) -> Result<(Vec<Splice>, Fit), Lost> {
    let view = text.view();
    let finder = Search::new(old.as_bytes());
    let places = match exact(text, view, &finder, old, new, expected) {
        Found::Places(places) => places,
        Found::Several(lines, count) => return Err(Lost::Several { lines, count }),
        Found::Nowhere if expected == 1 => vec![tolerant(text, old, new, view)?],
        Found::Nowhere => return Err(nowhere(text, view, old, new)),
    };
    // A line around each of many places would be read again and again.
    if places.len() > 1 {
        text.starts();
    }
    // With many places this would take long, and few calls have them.
    if !is_seen && places.len() <= MOST_LISTED {
        let there = places.iter().map(|place| already_there(text, view, &finder, place, old, new));
        if let Some(lines) = there.collect::<Option<Vec<_>>>() {
            return Err(Lost::There(lines[0]));
        }
    }
    let (mut old, mut new) = (old, new);
    if places[0].is_unended {
        (old, new) = (old.strip_suffix('\n').unwrap_or(old), new.strip_suffix('\n').unwrap_or(new));
    }
    let (olds, news) = (pieces_of(old), pieces_of(new));
    let hunks = diff::hunks(&olds, &news);
    let fit = places.iter().map(|place| place.fit).max().unwrap_or_default();
    let splices = places.iter().map(|place| written(text, place, &news, &hunks)).collect();
    Ok((splices, fit))
}

/// The splice that puts new lines in the place of whole lines. Without new lines, the old ones go with their ends.
pub(crate) fn replace_lines(text: &Text, range: Range<usize>, new: &[&str]) -> Splice {
    if new.is_empty() {
        let mut range = range;
        // The end of the line before goes with a last line that has none.
        if !text.bytes[range.clone()].ends_with(b"\n") {
            range.start = bom_len(text.bytes).max(without_end(&text.bytes[..range.start]).len());
        }
        return Splice { range, new: Vec::new() };
    }
    let pieces = text.contents_in(&range);
    let olds: Vec<&[u8]> = pieces.iter().map(|piece| &text.bytes[piece.clone()]).collect();
    let news: Vec<&[u8]> = new.iter().map(|line| line.as_bytes()).collect();
    let hunks = diff::hunks(&olds, &news);
    written(
        text,
        &Place { pieces, fit: Fit::Exact, indents: Default::default(), is_unended: false },
        &news,
        &hunks,
    )
}

/// The splice that puts new lines behind `after` lines, which end at a place.
pub(crate) fn insert_lines(text: &Text, after: usize, at: usize, new: &[&str]) -> Splice {
    let mut bytes = Vec::new();
    let is_unended = after > 0 && !text.bytes[..at].ends_with(b"\n");
    let end = text.end_near(if after == 0 { at } else { at.saturating_sub(1) });
    for line in new {
        if is_unended {
            bytes.extend_from_slice(end);
        }
        bytes.extend_from_slice(line.as_bytes());
        if !is_unended {
            bytes.extend_from_slice(end);
        }
    }
    Splice { range: at..at, new: bytes }
}

/// The lines of a text of a call, without their ends.
fn pieces_of(text: &str) -> Vec<&[u8]> {
    let text = text.as_bytes();
    let mut pieces = Vec::with_capacity(memchr_iter(b'\n', text).count() + 1);
    let mut at = 0;
    for end in memchr_iter(b'\n', text).chain([text.len()]) {
        pieces.push(&text[at..end]);
        at = end + 1;
    }
    pieces
}

/// Writes the new lines at a place. Lines that the call has both before and after stay as the file has them.
fn written(text: &Text, place: &Place, news: &[&[u8]], hunks: &[diff::Hunk]) -> Splice {
    let last_end = place.pieces.last().map_or(&b""[..], |last| text.end_around(last.start));
    // What follows an old line: its end, also that of the last one, which stays behind the place.
    let between = |piece: usize| -> Option<&[u8]> {
        let this = place.pieces.get(piece)?;
        let end = match place.pieces.get(piece + 1) {
            Some(next) => &text.bytes[this.end..next.start],
            None => last_end,
        };
        (!end.is_empty()).then_some(end)
    };
    let near = text.end_near(place.range().start);
    let mut made: Vec<u8> = Vec::with_capacity(news.iter().map(|line| line.len() + 2).sum());
    let (mut old, mut hunk) = (0, hunks.iter().peekable());
    for (index, line) in news.iter().enumerate() {
        while let Some(past) = hunk.next_if(|hunk| hunk.new.end <= index) {
            old = past.old.end;
        }
        let inside = hunk.peek().filter(|hunk| hunk.new.contains(&index));
        let end = if let Some(hunk) = inside {
            made.extend_from_slice(&shifted(line, place));
            let same = hunk.old.start + (index - hunk.new.start);
            let same = if hunk.old.contains(&same) { same } else { hunk.old.end.saturating_sub(1) };
            between(same).or_else(|| between(same.wrapping_sub(1)))
        } else {
            made.extend_from_slice(&text.bytes[place.pieces[old].clone()]);
            old += 1;
            between(old - 1)
        };
        if index + 1 < news.len() {
            made.extend_from_slice(end.unwrap_or(near));
        }
    }
    Splice { range: place.range(), new: made }.trimmed(text.bytes)
}

/// A new line with the indentation of the file.
fn shifted<'a>(line: &'a [u8], place: &Place) -> Cow<'a, [u8]> {
    let (call, file) = (&place.indents.0[..], &place.indents.1[..]);
    if place.fit != Fit::Indentation || line.iter().all(u8::is_ascii_whitespace) {
        return line.into();
    }
    if let Some(rest) = line.strip_prefix(call) {
        return [file, rest].concat().into();
    }
    // The line stands further left than all lines that were found.
    if let Some(more) = file.strip_suffix(call) {
        return [more, line].concat().into();
    }
    let less = call.len().saturating_sub(file.len());
    let own = line.iter().take_while(|b| is_blank(**b)).count();
    Cow::Borrowed(&line[less.min(own)..])
}

/// A search for a text. To prepare the search for a long text takes longer than most files take to be searched for a short one. So a part
/// of it is searched for first, and compared where it stands.
struct Search<'a> {
    text: &'a [u8],
    part: memmem::Finder<'a>,
    /// Where the part stands in the text.
    offset: usize,
    whole: OnceCell<memmem::Finder<'a>>,
}

impl<'a> Search<'a> {
    /// The longest part that is searched for without much preparation.
    const PART: usize = 32;
    /// How often the part may stand elsewhere, so that hostile texts take linear time.
    const MOST_PARTS: usize = 16;

    fn new(text: &'a [u8]) -> Self {
        // The end of the longest line stands in few other places.
        let (mut at, mut longest) = (0, 0..0);
        for end in memchr_iter(b'\n', text).chain([text.len()]) {
            if end - at > longest.len() {
                longest = at..end;
            }
            at = end + 1;
        }
        let offset = longest.start.max(longest.end.saturating_sub(Self::PART));
        let part = if text.len() <= Self::PART { 0..text.len() } else { offset..longest.end };
        let (offset, part) = (part.start, memmem::Finder::new(&text[part]));
        Self { text, part, offset, whole: OnceCell::new() }
    }

    fn whole(&self) -> &memmem::Finder<'a> {
        self.whole.get_or_init(|| memmem::Finder::new(self.text))
    }

    /// The first place of the text.
    fn find(&self, bytes: &[u8]) -> Option<usize> {
        let mut start = 0;
        for _ in 0..Self::MOST_PARTS {
            start += self.part.find(bytes.get(start + self.offset..)?)?;
            if bytes[start..].starts_with(self.text) {
                return Some(start);
            }
            start += 1;
        }
        Some(start + self.whole().find(bytes.get(start..)?)?)
    }
}

enum Found {
    Places(Vec<Place>),
    Several(Vec<LineRange>, usize),
    Nowhere,
}

fn exact(text: &Text, view: &View, finder: &Search, old: &str, new: &str, expected: usize) -> Found {
    let mut starts: Vec<usize> = Vec::new();
    let mut overlaps = false;
    let mut from = 0;
    // The search goes on one byte behind each start, so that places that overlap are seen. It ends at the first of them.
    while let Some(found) = view.bytes.get(from..).and_then(|rest| finder.find(rest)) {
        let start = from + found;
        if starts.last().is_some_and(|last| start < last + old.len()) {
            overlaps = true;
            break;
        }
        starts.push(start);
        from = start + 1;
    }
    if starts.is_empty() {
        return Found::Nowhere;
    }
    // The end of a file without a final newline is a place of whole lines, too.
    let unended = old.strip_suffix('\n').filter(|old| !old.is_empty() && !view.bytes.ends_with(b"\n"));
    let unended =
        unended.and_then(|old| view.bytes.ends_with(old.as_bytes()).then(|| view.bytes.len() - old.len()));
    let unended = unended.filter(|at| !overlaps && starts.last().is_some_and(|last| last + old.len() <= *at));
    starts.extend(unended);
    if !overlaps
        && starts.len() > expected
        && let Some(whole) = whole_lines(&view.bytes, old, &starts).filter(|whole| whole.len() == expected)
    {
        starts = whole;
    }
    let is_unended = unended.is_some() && starts.last() == unended.as_ref();
    if overlaps || starts.len() != expected || is_unended && !new.ends_with('\n') {
        let (mut count, mut listed) = (starts.len(), starts);
        if overlaps {
            count = finder.whole().find_iter(&view.bytes).count().max(2);
            listed = finder.whole().find_iter(&view.bytes).take(MOST_LISTED).collect();
            if listed.len() < 2 {
                listed.push(from + finder.find(&view.bytes[from..]).unwrap_or(0));
            }
        }
        let lines = listed.iter().take(MOST_LISTED);
        let end = |at: usize| view.place((at + old.len()).min(view.bytes.len()));
        let lines = lines.map(|&at| text.lines_of(&(view.place(at)..end(at)))).collect();
        return Found::Several(lines, count);
    }
    let old = if is_unended { old.strip_suffix('\n').unwrap_or(old) } else { old };
    let lines = pieces_of(old);
    let places = starts.into_iter().map(|start| {
        let mut at = start;
        let pieces = lines.iter().map(|piece| {
            let range = view.place(at)..view.place(at + piece.len());
            at += piece.len() + 1;
            range
        });
        Place { pieces: pieces.collect(), fit: Fit::Exact, indents: Default::default(), is_unended }
    });
    Found::Places(places.collect())
}

/// The places that begin where a line does, if the text is whole lines and all other places are the same lines with more indentation.
/// A text without a newline at its end may have lost its first blanks on the way, so it says nothing about indentation.
fn whole_lines(bytes: &[u8], old: &str, starts: &[usize]) -> Option<Vec<usize>> {
    if !old.ends_with('\n') {
        return None;
    }
    let mut whole = Vec::new();
    for &start in starts {
        // Places that do not overlap and end with a newline begin in different lines, so this reads each line once.
        let indent = bytes[..start].iter().rev().take_while(|b| **b != b'\n');
        match indent.copied().try_fold(0_usize, |len, b| is_blank(b).then_some(len + 1)) {
            Some(0) => whole.push(start),
            Some(1..) => {}
            None => return None,
        }
    }
    Some(whole)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn without_end_blanks(line: &[u8]) -> &[u8] {
    let len = line.iter().rposition(|b| !is_blank(*b) && *b != b'\r').map_or(0, |last| last + 1);
    &line[..len]
}

fn split_indent(line: &[u8]) -> (&[u8], &[u8]) {
    line.split_at(line.iter().take_while(|b| is_blank(**b)).count())
}

/// The only place whose lines differ from those of the call in blanks.
fn tolerant(text: &Text, old: &str, new: &str, view: &View) -> Result<Place, Lost> {
    let mut wanted = pieces_of(old);
    // A newline at the end of the call asks for whole lines, as this search does.
    let ends_with_newline = wanted.len() > 1 && wanted.last().is_some_and(|last| last.is_empty());
    if ends_with_newline {
        wanted.pop();
    }
    if wanted.iter().all(|line| line.iter().all(|b| is_blank(*b))) {
        return Err(nowhere(text, view, old, new));
    }
    let lines = text.contents();
    for (fit, starts) in [
        (Fit::TrailingBlanks, same_but_ends(&lines, &wanted)),
        (Fit::Indentation, same_but_indents(&lines, &wanted)),
    ] {
        match &starts[..] {
            [] => {}
            [start] => {
                let mut pieces: Vec<Range<usize>> =
                    (*start..start + wanted.len()).map(|line| text.content(line)).collect();
                let last = start + wanted.len() - 1;
                let is_unended = ends_with_newline && text.end(last).is_empty();
                if ends_with_newline && !is_unended {
                    let end = text.line(last).end;
                    pieces.push(end..end);
                }
                let indents = (common_indent(&wanted), common_indent(&lines[*start..start + wanted.len()]));
                return Ok(Place { pieces, fit, indents, is_unended });
            }
            _ => {
                let count = starts.len();
                let lines = starts.iter().take(MOST_LISTED);
                let lines =
                    lines.map(|&start| crate::text::line_range(start, start + wanted.len())).collect();
                return Err(Lost::Several { lines, count });
            }
        }
    }
    Err(nowhere(text, view, old, new))
}

fn common_indent(lines: &[&[u8]]) -> Vec<u8> {
    let mut indents =
        lines.iter().filter(|line| !without_end_blanks(line).is_empty()).map(|line| split_indent(line).0);
    let Some(first) = indents.next() else { return Vec::new() };
    let len = indents
        .fold(first.len(), |len, indent| first[..len].iter().zip(indent).take_while(|(a, b)| a == b).count());
    first[..len].to_vec()
}

/// The first lines of all places that have the wanted lines, apart from blanks at their ends.
fn same_but_ends<'a>(lines: &[&'a [u8]], wanted: &[&'a [u8]]) -> Vec<usize> {
    let mut ids: FxHashMap<&'a [u8], u32> = FxHashMap::default();
    let mut numbers = |lines: &[&'a [u8]]| -> Vec<u32> {
        let keys = lines.iter().map(|line| without_end_blanks(line));
        keys.map(|key| numbered(&mut ids, key)).collect()
    };
    let (text, pattern) = (numbers(lines), numbers(wanted));
    runs(&text, &pattern)
}

fn numbered<K: Eq + std::hash::Hash>(ids: &mut FxHashMap<K, u32>, key: K) -> u32 {
    let next = ids.len() as u32;
    *ids.entry(key).or_insert(next)
}

/// What a line is, whatever the indentation of all lines is: its content, and what it takes from and adds to the indentation of the
/// line before it.
type Shape<'a> = (&'a [u8], &'a [u8], &'a [u8]);

fn shapes<'a>(lines: &[&'a [u8]]) -> Vec<Shape<'a>> {
    let mut before: &[u8] = b"";
    let shape = |line: &&'a [u8]| -> Shape<'a> {
        let (indent, content) = split_indent(without_end_blanks(line));
        if content.is_empty() {
            return (b"", b"", b"");
        }
        let same = before.iter().zip(indent).take_while(|(a, b)| a == b).count();
        let shape = (content, &before[same..], &indent[same..]);
        before = indent;
        shape
    };
    lines.iter().map(shape).collect()
}

/// The first lines of all places that have the wanted lines with another indentation, the same for all lines.
fn same_but_indents<'a>(lines: &[&'a [u8]], wanted: &[&'a [u8]]) -> Vec<usize> {
    let content = |line: &'a [u8]| split_indent(without_end_blanks(line)).1;
    let Some(first) = wanted.first().map(|line| content(line)).filter(|content| !content.is_empty()) else {
        return Vec::new();
    };
    let has_first = |start: &usize| content(lines[*start]) == first;
    // The first line has nothing before it to be compared with.
    let starts: Vec<usize> = if wanted.len() == 1 {
        (0..lines.len()).filter(has_first).collect()
    } else {
        let mut ids: FxHashMap<Shape<'a>, u32> = FxHashMap::default();
        let text: Vec<u32> = shapes(lines).into_iter().map(|shape| numbered(&mut ids, shape)).collect();
        let pattern: Vec<u32> = shapes(wanted).into_iter().map(|shape| numbered(&mut ids, shape)).collect();
        let rest = runs(&text, &pattern[1..]).into_iter();
        rest.filter_map(|at| at.checked_sub(1)).filter(has_first).collect()
    };
    // Equal steps do not say that all lines share the same part. For the one place, this is compared.
    if let [start] = starts[..] {
        let there = &lines[start..start + wanted.len()];
        let (call, file) = (common_indent(wanted), common_indent(there));
        let is_shifted = wanted.iter().zip(there).all(|(want, have)| {
            let (want, have) = (without_end_blanks(want), without_end_blanks(have));
            content(want).is_empty() && content(have).is_empty()
                || want.get(call.len()..) == have.get(file.len()..)
        });
        if !is_shifted {
            return Vec::new();
        }
    }
    starts
}

/// All places of a pattern in a text, also those that overlap, by the algorithm of Knuth, Morris and Pratt.
fn runs(text: &[u32], pattern: &[u32]) -> Vec<usize> {
    if pattern.is_empty() {
        return Vec::new();
    }
    let mut back = vec![0; pattern.len()];
    let mut len = 0;
    for at in 1..pattern.len() {
        while len > 0 && pattern[at] != pattern[len] {
            len = back[len - 1];
        }
        len += usize::from(pattern[at] == pattern[len]);
        back[at] = len;
    }
    let mut found = Vec::new();
    let mut len = 0;
    for (at, id) in text.iter().enumerate() {
        while len > 0 && (len == pattern.len() || *id != pattern[len]) {
            len = back[len - 1];
        }
        len += usize::from(*id == pattern[len]);
        if len == pattern.len() {
            found.push(at + 1 - len);
        }
    }
    found
}

/// Whether the new text, which contains the old one, already stands at the place.
fn already_there(
    text: &Text,
    view: &View,
    finder: &Search,
    place: &Place,
    old: &str,
    new: &str,
) -> Option<LineRange> {
    if place.fit != Fit::Exact || new.len() <= old.len() {
        return None;
    }
    let file_start = place.range().start;
    // Only the first and the last place of the old text within the new one are likely, so only they are tried.
    let (whole, part) = (new.as_bytes(), old.as_bytes());
    let first = finder.find(whole)?;
    for inner in [Some(first), memmem::rfind(whole, part)].into_iter().flatten() {
        let at = file_start - view.base;
        let at = at - view.gaps.partition_point(|&gap| view.place(gap) < file_start);
        let Some(start) = at.checked_sub(inner) else { continue };
        let rest = view.bytes.get(start..).unwrap_or_default();
        // At the end of a file without a final newline, the new text has none either.
        let unended = new.strip_suffix('\n').filter(|_| !rest.ends_with(b"\n"));
        if rest.starts_with(new.as_bytes()) || unended.is_some_and(|new| rest == new.as_bytes()) {
            let end = view.place(view.bytes.len().min(start + new.len()));
            return Some(text.lines_of(&(view.place(start)..end)));
        }
    }
    None
}

/// The old text is not there. Perhaps the new one is.
fn nowhere(text: &Text, view: &View, old: &str, new: &str) -> Lost {
    let finder = memmem::Finder::new(new.as_bytes());
    let mut places = finder.find_iter(&view.bytes);
    // Only whole lines say that the edit was done before. A word can stand anywhere.
    if new.trim().len() >= 3
        && let (Some(at), None) = (places.next(), places.next())
        && let range = (view.place(at)..view.place(at + new.len()))
        && text.bytes[text.line(text.line_of(range.start)).start..range.start].iter().all(|b| is_blank(*b))
        && (new.ends_with('\n') || text.content(text.line_of(range.end)).end <= range.end)
    {
        return Lost::There(text.lines_of(&range));
    }
    Lost::Nowhere(nearest(text, old))
}

/// The most places of one line that are counted.
const MOST_VOTES: usize = 32;

/// The lines that have most lines of the wanted text at the right distances, or else the line that has most of its words.
fn nearest(text: &Text, old: &str) -> Option<Nearest> {
    let lines = text.contents();
    let wanted: Vec<&[u8]> = old.trim_end_matches('\n').split('\n').map(str::as_bytes).collect();
    let bare = |line: &[u8]| split_indent(without_end_blanks(line)).1.to_vec();
    let mut by_line: FxHashMap<Vec<u8>, Vec<usize>> = FxHashMap::default();
    for (index, line) in lines.iter().enumerate() {
        let line = bare(line);
        if line.len() >= 3 {
            let places = by_line.entry(line).or_default();
            if places.len() < MOST_VOTES {
                places.push(index);
            }
        }
    }
    let mut votes: FxHashMap<usize, usize> = FxHashMap::default();
    for (offset, line) in wanted.iter().enumerate() {
        for start in
            by_line.get(&bare(line)).into_iter().flatten().filter_map(|place| place.checked_sub(offset))
        {
            *votes.entry(start).or_default() += 1;
        }
    }
    let best = votes.into_iter().max_by_key(|(start, count)| (*count, std::cmp::Reverse(*start)));
    let start = match best {
        Some((start, _)) => start,
        None => by_words(&lines, &wanted)?,
    };
    let end = (start + wanted.len()).min(lines.len());
    let differs = (start..end)
        .find(|&line| without_end_blanks(lines[line]) != without_end_blanks(wanted[line - start]))
        .unwrap_or(end - 1);
    let range = crate::text::line_range(start, end);
    Some(Nearest {
        lines: range,
        line: crate::text::line_range(differs, differs + 1).start,
        found: excerpt(lines[differs]),
        wanted: excerpt(wanted[differs - start]),
    })
}

/// The line that has most of the words of the longest wanted line, if it has half of them. The result is where the text would begin.
fn by_words(lines: &[&[u8]], wanted: &[&[u8]]) -> Option<usize> {
    fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
        line.split(|b| !b.is_ascii_alphanumeric() && *b < 0x80).filter(|word| word.len() > 1)
    }
    let (offset, longest) = wanted.iter().enumerate().max_by_key(|(_, line)| line.len())?;
    let set: FxHashSet<&[u8]> = words(longest).collect();
    let count = |line: &&[u8]| words(line).filter(|word| set.contains(word)).collect::<FxHashSet<_>>().len();
    let (line, most) =
        lines.iter().map(count).enumerate().max_by_key(|(line, count)| (*count, std::cmp::Reverse(*line)))?;
    (most > 0 && most * 2 >= set.len()).then(|| line.saturating_sub(offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::spliced;

    fn done(file: &str, old: &str, new: &str) -> (String, Fit) {
        let text = Text::new(file.as_bytes());
        let (splices, fit) = replace(&text, old, new, 1, false).unwrap_or_else(|lost| panic!("{lost:?}"));
        (String::from_utf8(spliced(file.as_bytes(), &splices)).unwrap(), fit)
    }

    fn lost(file: &str, old: &str, new: &str, expected: usize) -> Lost {
        replace(&Text::new(file.as_bytes()), old, new, expected, false).unwrap_err()
    }

    #[test]
    fn the_bytes_of_lines_that_stay_are_the_files() {
        let check = |file: &str, old: &str, new: &str, expected: &str, fit: Fit| {
            assert_eq!(done(file, old, new), (expected.to_owned(), fit), "{file:?} {old:?} {new:?}");
        };
        check("a b c", "b", "x", "a x c", Fit::Exact);
        check("a\r\nb\r\nc\r\n", "a\nb\n", "a\nx\ny\n", "a\r\nx\r\ny\r\nc\r\n", Fit::Exact);
        check("a\r\nb\nc\r\n", "a\nb\nc", "a\nx\nc", "a\r\nx\nc\r\n", Fit::Exact);
        check("a \nb\t\nc\n", "a\nb\nc", "a\nb\nx", "a \nb\t\nx\n", Fit::TrailingBlanks);
        check("a\nb", "b\n", "c\n", "a\nc", Fit::TrailingBlanks);
        check("a\nb", "b\n", "b\nc\n", "a\nb\nc", Fit::TrailingBlanks);
        check(
            "<p>\n    a\n      b\n</p>\n",
            "a\n  b\n",
            "a\n  b\n  c\nd\n",
            "<p>\n    a\n      b\n      c\n    d\n</p>\n",
            Fit::Indentation,
        );
        check("\t\ta\n\t\t\tb\n", "  a\n  \tb", "  x\n  \tb", "\t\tx\n\t\t\tb\n", Fit::Indentation);
        check("\u{feff}a\nb\n", "a\nb", "x\nb", "\u{feff}x\nb\n", Fit::Exact);
        check("  a\n  b\n", "      a\n      b", "      a\n    c\n      b", "  a\nc\n  b\n", Fit::Indentation);
        check("  a\r\na\r\n\ta\r\n", "a\n", "x\n", "  a\r\nx\r\n\ta\r\n", Fit::Exact);
    }

    #[test]
    fn two_places_are_named() {
        let range = |start, end| LineRange { start, end };
        assert_eq!(
            lost("a\nb\na\n", "a", "x", 1),
            Lost::Several { lines: vec![range(1, 1), range(3, 3)], count: 2 }
        );
        assert_eq!(
            lost("  a\n  b\n    a\n    b\n", "a\nb", "x", 1),
            Lost::Several { lines: vec![range(1, 2), range(3, 4)], count: 2 }
        );
        for (file, old) in
            [("  a\na\n", "a"), ("b a\na\n", "a\n"), ("a\n  a\na\n", "a\n"), (" a\n  a\n", "a\n")]
        {
            assert!(matches!(lost(file, old, "x", 1), Lost::Several { .. }), "{file:?} {old:?}");
        }
        assert_eq!(
            replace(&Text::new(b"a\n  a\na\n"), "a\n", "x\n", 2, false).map(|found| found.0.len()),
            Ok(2)
        );
        assert!(
            matches!(lost("a\nb\na", "a\n", "x\n", 1), Lost::Several { count: 2, .. }),
            "the end is a place"
        );
        assert!(matches!(lost("a\nb\na", "a\n", "", 2), Lost::Several { count: 2, .. }));
        assert!(matches!(lost("h\nadded", "h\n", "h\nadded\n", 1), Lost::There(_)));
        assert_eq!(done("h\na\n", "a\n", "a\n\n").0, "h\na\n\n");
        let twice = replace(&Text::new(b"a\r\nb\r\na"), "a\n", "x\ny\n", 2, false).map(|found| found.0);
        assert_eq!(twice.map(|all| spliced(b"a\r\nb\r\na", &all)), Ok(b"x\r\ny\r\nb\r\nx\r\ny".to_vec()));
        assert!(matches!(lost("aaa", "aa", "b", 1), Lost::Several { count: 2, .. }), "places may overlap");
        assert!(matches!(lost("a b a", "a", "x", 3), Lost::Several { count: 2, .. }));
    }

    #[test]
    fn the_nearest_text_and_the_done_edit_are_told() {
        let Lost::Nowhere(Some(near)) =
            lost("one\ntwo words\nthree\nfour\n", "two words\nthreee\nfour", "x", 1)
        else {
            panic!("something is near")
        };
        assert_eq!(
            (near.lines, near.line, &near.found[..], &near.wanted[..]),
            (LineRange { start: 2, end: 4 }, 3, "three", "threee")
        );
        let Lost::Nowhere(Some(near)) =
            lost("a\n<p class=\"price big\">\n", "<p class=\"price small\">", "x", 1)
        else {
            panic!("a line has the words")
        };
        assert_eq!(near.line, 2);
        assert_eq!(lost("a\n", "zzz", "yyy", 1), Lost::Nowhere(None));
        assert_eq!(
            lost("head\nnew line\n", "old line", "new line", 1),
            Lost::There(LineRange { start: 2, end: 2 })
        );
        assert_eq!(lost("h\nadded\nx\n", "h", "h\nadded", 1), Lost::There(LineRange { start: 1, end: 2 }));
        assert_eq!(
            lost("h\r\nadded\r\nx\r\n", "added", "h\nadded", 1),
            Lost::There(LineRange { start: 1, end: 2 })
        );
    }

    #[test]
    fn lines_are_replaced_deleted_and_inserted() {
        let check = |file: &str, splice: &dyn Fn(&Text) -> Splice, expected: &str| {
            let made = spliced(file.as_bytes(), &[splice(&Text::new(file.as_bytes()))]);
            assert_eq!(String::from_utf8(made).unwrap(), expected, "{file:?}");
        };
        let replace = |text: &Text, first: usize, end: usize, new: &[&str]| {
            replace_lines(text, text.line(first).start..text.line(end - 1).end, new)
        };
        let insert = |text: &Text, after: usize, new: &[&str]| {
            let at = after.checked_sub(1).map_or(text.line(0).start, |last| text.line(last).end);
            insert_lines(text, after, at, new)
        };
        check("a\r\nb\nc\n", &|text| replace(text, 0, 2, &["x", "y", "z"]), "x\r\ny\nz\nc\n");
        check("a\nb", &|text| replace(text, 1, 2, &[]), "a");
        check("a\nb\nc\n", &|text| replace(text, 1, 2, &[]), "a\nc\n");
        check("a\r\nb", &|text| insert(text, 2, &["c"]), "a\r\nb\r\nc");
        check("a\r\nb\n", &|text| insert(text, 1, &["c"]), "a\r\nc\r\nb\n");
        check("\u{feff}a\n", &|text| insert(text, 0, &["c"]), "\u{feff}c\na\n");
        check("", &|text| replace(text, 0, 1, &["c"]), "c");
    }

    #[test]
    fn a_search_finds_the_first_place() {
        let mut seed = 7_u32;
        let mut next = |most: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) % most
        };
        let (mut found, mut missed) = (0, 0);
        for round in 0..4_000 {
            // Long runs of few bytes have the part of a text more often than the text.
            let mut text = |most: u32| -> Vec<u8> {
                let mut text = Vec::new();
                for _ in 0..next(most) {
                    let byte = [b'a', b'b', b'\n'][next(3) as usize];
                    text.extend(std::iter::repeat_n(byte, [1, 2, 40][next(3) as usize]));
                }
                text
            };
            let (file, mut wanted) = (text(60), text(8));
            if round % 2 == 0 && !file.is_empty() {
                let start = next(file.len() as u32) as usize;
                wanted = file[start..(start + next(120) as usize).min(file.len())].to_vec();
            }
            let place = Search::new(&wanted).find(&file);
            assert_eq!(place, memmem::find(&file, &wanted), "{wanted:?} in {file:?}");
            found += usize::from(place.is_some());
            missed += usize::from(place.is_none());
        }
        assert!(found > 500 && missed > 500, "{found} found, {missed} missed");
    }
}
