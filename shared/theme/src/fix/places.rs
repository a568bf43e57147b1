//! The smallest edits that turn one markup into another: the words that both have stay, with the blanks between them.

use crate::strict::{is_blank, is_word, lex};
use crate::text::Span;

/// The most pairs of words that are compared. Beyond it, all between the first and the last difference is replaced.
const MAX_PAIRS: usize = 250_000;

/// A part of a text, and what takes its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub span: Span,
    pub new: String,
}

/// The text after the edits, which are in order.
pub fn applied(text: &str, edits: &[Edit]) -> String {
    let added: usize = edits.iter().map(|edit| edit.new.len()).sum();
    let mut new = String::with_capacity(text.len() + added);
    let mut at = 0;
    for edit in edits {
        new.push_str(text.get(at..edit.span.start as usize).unwrap_or_default());
        new.push_str(&edit.new);
        at = edit.span.end as usize;
    }
    new.push_str(text.get(at..).unwrap_or_default());
    new
}

/// The edits in a file that put a new markup in the place of an old one.
pub fn in_place(text: &str, place: Span, new: &str) -> Vec<Edit> {
    let old = place.of(text);
    let mut edits = between(old, new);
    for edit in &mut edits {
        edit.span = edit.span.shifted(place.start as usize);
    }
    let markup = applied_at(text, place, &edits);
    let before = text.get(..place.start as usize).unwrap_or_default();
    let first = markup.bytes().next();
    // The markup must not become a part of the tag's name, and a minus not the sign that deletes blanks.
    let is_joined = before.bytes().next_back().is_some_and(is_word) && first.is_some_and(is_word);
    if is_joined || (first == Some(b'-') && before.ends_with("{{")) {
        match edits.first_mut().filter(|edit| edit.span.start == place.start) {
            Some(edit) => edit.new.insert(0, ' '),
            None => {
                let span = Span { start: place.start, end: place.start };
                edits.insert(0, Edit { span, new: " ".to_owned() });
            }
        }
    }
    if markup.ends_with('-') {
        match edits.last_mut().filter(|edit| edit.span.end == place.end) {
            Some(edit) => edit.new.push(' '),
            None => edits.push(Edit { span: Span { start: place.end, end: place.end }, new: " ".to_owned() }),
        }
    }
    edits
}

/// A part of a text after edits in it.
pub fn applied_at(text: &str, place: Span, edits: &[Edit]) -> String {
    let moved: Vec<Edit> = edits
        .iter()
        .map(|edit| Edit {
            span: Span { start: edit.span.start - place.start, end: edit.span.end - place.start },
            new: edit.new.clone(),
        })
        .collect();
    applied(place.of(text), &moved)
}

/// The edits that turn the words of `old` into those of `new`.
fn between(old: &str, new: &str) -> Vec<Edit> {
    let (olds, news) = (words(old), words(new));
    let edits = by_words(old, new, &olds, &news);
    let result = applied(old, &edits);
    let same = words(&result).iter().map(|word| word.of(&result)).eq(news.iter().map(|word| word.of(new)));
    if same {
        return edits;
    }
    let span = match (olds.first(), olds.last()) {
        (Some(first), Some(last)) => Span { start: first.start, end: last.end },
        _ => Span::default(),
    };
    vec![Edit { span, new: new.trim().to_owned() }]
}

fn by_words(old: &str, new: &str, olds: &[Span], news: &[Span]) -> Vec<Edit> {
    let old_at = |index: usize| olds.get(index).copied().unwrap_or_default();
    let new_at = |index: usize| news.get(index).copied().unwrap_or_default();
    let mut edits = Vec::new();
    // The first words behind the last pair.
    let (mut i, mut j) = (0, 0);
    let mut pairs = pairs(old, new, olds, news);
    pairs.push((olds.len(), news.len()));
    for (next_i, next_j) in pairs {
        let (is_first, is_last) = (i == 0, next_i == olds.len());
        let (is_deleted, is_added) = (next_i > i, next_j > j);
        let end_before = if is_first { 0 } else { old_at(i - 1).end };
        let added = if is_added {
            new.get(new_at(j).start as usize..new_at(next_j - 1).end as usize).unwrap_or_default()
        } else {
            ""
        };
        match (is_deleted, is_added) {
            (false, false) => {}
            (true, true) => {
                // Without a blank, two words can become one.
                let (first, last) = (old_at(i).start, old_at(next_i - 1).end);
                let is_joined =
                    |text: &str, at: u32| text.as_bytes().get(at as usize).copied().is_some_and(clings);
                let parts_before = !is_first
                    && first == end_before
                    && is_joined(old, first.saturating_sub(1))
                    && added.bytes().next().is_some_and(clings);
                let parts_after = !is_last
                    && old_at(next_i).start == last
                    && is_joined(old, last)
                    && added.bytes().next_back().is_some_and(clings);
                let lead = if parts_before { " " } else { "" };
                let trail = if parts_after { " " } else { "" };
                // A comma stands at the word before it.
                let start = if added.starts_with(',') && !is_first { end_before } else { first };
                edits.push(Edit { span: Span { start, end: last }, new: format!("{lead}{added}{trail}") });
            }
            (true, false) => {
                let last = old_at(next_i - 1).end;
                // A blank goes, too.
                let clings_next = matches!(old.as_bytes().get(last as usize), Some(b',' | b')' | b']'));
                let goes_before = !is_first && (is_last || old_at(next_i).start > last || clings_next);
                let span = if goes_before || (is_first && is_last) {
                    Span { start: if is_first { old_at(i).start } else { end_before }, end: last }
                } else {
                    Span { start: old_at(i).start, end: old_at(next_i).start }
                };
                let parts = !is_first
                    && !is_last
                    && old_at(i).start == end_before
                    && old_at(next_i).start == last
                    && new_at(j).start > new_at(j - 1).end
                    && !clings_next;
                edits.push(Edit { span, new: if parts { " ".to_owned() } else { String::new() } });
            }
            (false, true) => {
                let blank_before = j > 0 && new_at(j).start > new_at(j - 1).end;
                let blank_after = next_j < news.len() && new_at(next_j).start > new_at(next_j - 1).end;
                if is_last {
                    let lead = if blank_before { " " } else { "" };
                    let span = Span { start: end_before, end: end_before };
                    edits.push(Edit { span, new: format!("{lead}{added}") });
                } else {
                    let at = old_at(next_i).start;
                    let lead = if blank_before && at == end_before { " " } else { "" };
                    let trail = if blank_after { " " } else { "" };
                    // What clings to the word before, such as a colon, stands there.
                    let at = if !blank_before && !is_first { end_before } else { at };
                    let trail = if at == end_before && old_at(next_i).start > at { "" } else { trail };
                    edits.push(Edit {
                        span: Span { start: at, end: at },
                        new: format!("{lead}{added}{trail}"),
                    });
                }
            }
        }
        (i, j) = (next_i + 1, next_j + 1);
    }
    edits
}

/// The words and signs of a markup. What begins no word is one by itself.
pub fn words(markup: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < markup.len() {
        let rest = markup.get(at..).unwrap_or_default();
        match lex(rest, at) {
            Ok(lexed) => {
                found.extend(lexed.iter().map(|word| word.span).filter(|span| !span.is_empty()));
                break;
            }
            Err(wrong) => {
                let before = markup.get(at..wrong).unwrap_or_default();
                let lexed = lex(before, at).unwrap_or_default();
                found.extend(lexed.iter().map(|word| word.span).filter(|span| !span.is_empty()));
                let length =
                    markup.get(wrong..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
                found.push(Span::new(wrong, wrong + length));
                at = wrong + length;
            }
        }
    }
    found
}

/// The longest row of words that both have, as pairs of their numbers.
fn pairs(old: &str, new: &str, olds: &[Span], news: &[Span]) -> Vec<(usize, usize)> {
    let is_same = |i: usize, j: usize| {
        olds.get(i).zip(news.get(j)).is_some_and(|(first, second)| first.of(old) == second.of(new))
    };
    let least = olds.len().min(news.len());
    let head = (0..least).take_while(|&index| is_same(index, index)).count();
    let tail =
        (0..least - head).take_while(|back| is_same(olds.len() - 1 - back, news.len() - 1 - back)).count();
    let (rows, columns) = (olds.len() - head - tail, news.len() - head - tail);
    let mut found: Vec<(usize, usize)> = (0..head).map(|index| (index, index)).collect();
    if rows.saturating_mul(columns) <= MAX_PAIRS {
        // The length of the longest row behind each pair of places.
        let width = columns + 1;
        let mut lengths = vec![0_u32; (rows + 1) * width];
        let length = |lengths: &[u32], i: usize, j: usize| lengths.get(i * width + j).copied().unwrap_or(0);
        for i in (0..rows).rev() {
            for j in (0..columns).rev() {
                let best = if is_same(head + i, head + j) {
                    length(&lengths, i + 1, j + 1) + 1
                } else {
                    length(&lengths, i + 1, j).max(length(&lengths, i, j + 1))
                };
                if let Some(place) = lengths.get_mut(i * width + j) {
                    *place = best;
                }
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < rows && j < columns {
            if is_same(head + i, head + j) {
                found.push((head + i, head + j));
                (i, j) = (i + 1, j + 1);
            } else if length(&lengths, i + 1, j) >= length(&lengths, i, j + 1) {
                i += 1;
            } else {
                j += 1;
            }
        }
    }
    found.extend((0..tail).rev().map(|back| (olds.len() - 1 - back, news.len() - 1 - back)));
    found
}

/// Whether a character can belong to a name.
const fn clings(byte: u8) -> bool {
    is_word(byte) || matches!(byte, b'-' | b'?')
}

/// Whether a text has only blanks.
pub fn is_all_blank(text: &str) -> bool {
    text.bytes().all(is_blank)
}
