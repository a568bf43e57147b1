//! What a change must not leave behind, whatever tool made it.

use rustc_hash::FxHashMap;
use theme::check;
use theme::path::FileKind;
use theme::scan::liquid::{TokenKind, tokens};
use theme::text::LineRange;

use crate::diff::{Hunk, hunks};
use crate::differs::Differs;
use crate::error::EditError;
use crate::text::{Text, excerpt, line_range};

/// The largest file that an edit may make, in bytes. Shopify takes less of each kind of text.
pub const MAX_TEXT: usize = 2 * 1024 * 1024;

/// A file that has less is not guarded against losing half, in bytes without the blanks around it.
const LEAST_GUARDED: usize = 400;

/// Compares a file before and after an edit. `before` is `None` for a new file. The result is how they differ.
pub(crate) fn check(
    path: &str,
    before: Option<&[u8]>,
    after: &[u8],
    allowed: &[LineRange],
) -> Result<Differs, EditError> {
    if after.len() > MAX_TEXT {
        return Err(EditError::TooLarge { path: path.to_owned(), bytes: after.len(), limit: MAX_TEXT });
    }
    let (old, new) = (Text::new(before.unwrap_or_default()), Text::new(after));
    let changed = hunks(&old.lines(), &new.lines());
    if before.is_some() {
        shrinks(path, &old, after, &changed, allowed)?;
    }
    artefacts(path, &old, &new, &changed)?;
    Ok(Differs::of(&changed, &new))
}

fn shrinks(
    path: &str,
    old: &Text,
    after: &[u8],
    changed: &[Hunk],
    allowed: &[LineRange],
) -> Result<(), EditError> {
    let (was, is) = (old.bytes.trim_ascii().len(), after.trim_ascii().len());
    let is_emptied = is == 0 && was > 0;
    if !is_emptied && (was < LEAST_GUARDED || is * 2 >= was) {
        return Ok(());
    }
    let removed: Vec<LineRange> = changed
        .iter()
        .filter(|hunk| hunk.old.len() > hunk.new.len())
        .map(|hunk| line_range(hunk.old.start, hunk.old.end))
        .collect();
    let mut ranges: Vec<LineRange> = allowed.to_vec();
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<LineRange> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(1) => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    let is_named = |lost: &LineRange| {
        let index = joined.partition_point(|range| range.start <= lost.start);
        index.checked_sub(1).is_some_and(|index| lost.end <= joined[index].end)
    };
    if !allowed.is_empty() && removed.iter().all(is_named) {
        return Ok(());
    }
    Err(EditError::Shrinks {
        path: path.to_owned(),
        bytes_before: old.bytes.len(),
        bytes_after: after.len(),
        removed,
    })
}

/// Lines of one side of a change, as a text of their own.
struct Lines<'a> {
    text: Vec<u8>,
    /// The number of each line in its file, from 0.
    numbers: Vec<usize>,
    file: &'a Text<'a>,
}

impl<'a> Lines<'a> {
    fn of(file: &'a Text<'a>, ranges: impl Iterator<Item = std::ops::Range<usize>>) -> Self {
        let mut lines = Self { text: Vec::new(), numbers: Vec::new(), file };
        for line in ranges.flatten().filter(|line| *line < file.count()) {
            lines.text.extend_from_slice(&file.bytes[file.content(line)]);
            lines.text.push(b'\n');
            lines.numbers.push(line);
        }
        lines
    }
}

fn artefacts(path: &str, old: &Text, new: &Text, changed: &[Hunk]) -> Result<(), EditError> {
    let refused = |line: usize, what: &str| EditError::Artefact {
        path: path.to_owned(),
        line: line_range(line, line + 1).start,
        text: if line < new.count() { excerpt(&new.bytes[new.content(line)]) } else { String::new() },
        what: what.to_owned(),
    };
    let removed = Lines::of(old, changed.iter().map(|hunk| hunk.old.clone()));
    let added = Lines::of(new, changed.iter().map(|hunk| hunk.new.clone()));
    if let Some(at) = memchr::memchr(0, &added.text)
        && memchr::memchr(0, old.bytes).is_none()
    {
        let line = added.numbers[Text::new(&added.text).line_of(at)];
        return Err(refused(line, "a NUL character stands in the new text"));
    }
    // What is wrong with the whole file counts if it is wrong with more places than before, or if it is in the changed lines.
    type Key = (&'static str, String);
    let counts = |bytes: &[u8]| -> FxHashMap<Key, i64> {
        let mut counts = FxHashMap::default();
        for damage in check::damage(path, bytes) {
            *counts.entry((damage.code, damage.message)).or_default() += 1;
        }
        counts
    };
    let whole = check::damage(path, new.bytes);
    // Most files have none, and the others need not be read then.
    let (mut left, lost) = match &whole[..] {
        [] => Default::default(),
        _ => (counts(old.bytes), counts(&removed.text)),
    };
    for damage in &whole {
        let key = (damage.code, damage.message.clone());
        let known = left.entry(key).or_default();
        *known -= 1;
        if *known < 0 {
            return Err(refused(new.line_of(damage.at), &damage.message));
        }
    }
    let mut left = lost;
    let in_added = Text::new(&added.text);
    let in_changes = if whole.is_empty() { Vec::new() } else { check::damage(path, &added.text) };
    for damage in in_changes {
        if !whole.iter().any(|found| found.code == damage.code && found.message == damage.message) {
            continue;
        }
        let known = left.entry((damage.code, damage.message.clone())).or_default();
        *known -= 1;
        if *known < 0 {
            let line = added.numbers.get(in_added.line_of(damage.at)).copied().unwrap_or(0);
            return Err(refused(line, &damage.message));
        }
    }
    if let Some(line) = listed_numbers(path, &added) {
        return Err(refused(line, "the new lines begin with the line numbers of a listing"));
    }
    if let Some(line) = curly_quote(path, old, new) {
        return Err(refused(line, "a curly quote stands in Liquid: use a straight one"));
    }
    Ok(())
}

/// The first of at least two new lines in a row that begin with numbers in a row, as listings print them.
fn listed_numbers(path: &str, added: &Lines) -> Option<usize> {
    let is_markup = path.ends_with(".liquid") && !path.starts_with("assets/");
    let number = |line: usize| -> Option<u64> {
        let content = added.file.content(line);
        let text = added.file.bytes[content].trim_ascii_start();
        let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
        let rest = &text[digits..];
        let has_mark = [&b"|"[..], b" |", b"\t", "→".as_bytes()].iter().any(|mark| rest.starts_with(mark))
            || is_markup && rest.starts_with(b": ");
        (has_mark && (1..=6).contains(&digits))
            .then(|| std::str::from_utf8(&text[..digits]).ok()?.parse().ok())?
    };
    added.numbers.windows(2).find_map(|pair| {
        let (first, second) = (number(pair[0])?, number(pair[1])?);
        (second == first + 1).then_some(pair[0])
    })
}

/// The line of a curly quote that stands for a straight one in a tag, if the file has more of them than before.
fn curly_quote(path: &str, old: &Text, new: &Text) -> Option<usize> {
    let may_have_liquid = path.ends_with(".liquid") && FileKind::of(path) != FileKind::Other;
    let new_text = std::str::from_utf8(new.bytes).ok().filter(|text| may_have_liquid && !text.is_ascii())?;
    let (before, _) = curly(std::str::from_utf8(old.bytes).unwrap_or_default());
    let (after, places) = curly(new_text);
    (after > before).then(|| new.line_of(places.last().copied().unwrap_or(0)))
}

fn curly(text: &str) -> (usize, Vec<usize>) {
    let mut places = Vec::new();
    if text.is_ascii() {
        return (0, places);
    }
    for token in tokens(text).0 {
        let (TokenKind::Output { markup } | TokenKind::Tag { markup, .. }) = token.kind else { continue };
        let mut open = None;
        for (at, c) in markup.of(text).char_indices() {
            match (c, open) {
                ('"' | '\'', None) => open = Some(c),
                (c, Some(quote)) if c == quote => open = None,
                ('“' | '”' | '‘' | '’', None) => places.push(markup.start as usize + at),
                _ => {}
            }
        }
    }
    (places.len(), places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &str, before: &str, after: &str) -> Option<String> {
        check(path, Some(before.as_bytes()), after.as_bytes(), &[]).err().map(|error| error.to_string())
    }

    #[test]
    fn only_new_marks_are_refused() {
        let fenced = "```liquid\n<p>a</p>\n```\n";
        assert!(refused("snippets/a.liquid", "<p>a</p>\n", fenced).unwrap().contains("fence"));
        assert_eq!(refused("snippets/a.liquid", fenced, &fenced.replace("<p>a", "<p>b")), None);
        assert!(refused("snippets/a.liquid", fenced, &format!("{fenced}```\n")).unwrap().contains("fence"));
        let doc = "{% doc %}\n  @example\n";
        let end = "{% enddoc %}\n";
        assert_eq!(
            refused(
                "snippets/a.liquid",
                &format!("{doc}{end}"),
                &format!("{doc}```liquid\n{{% render 'a' %}}\n```\n{end}")
            ),
            None,
            "an example in a doc tag may have fences"
        );
    }

    #[test]
    fn each_mark_is_named_with_its_line() {
        let base = "<div>\n  <p>{{ a }}</p>\n</div>\n";
        for (after, part) in [
            ("<div>\n  <!-- rest of the code -->\n</div>\n", "line 2"),
            ("<div>\n<<<<<<< SEARCH\n</div>\n", "marker"),
            ("<div>\n2|  <p>{{ a }}</p>\n3|</div>\n</div>\n", "line numbers"),
            ("<div>\n+  <p>{{ b }}</p>\n</div>\n", "diff"),
            ("<div>\n  &lt;p&gt;&lt;span&gt;{{ a }}&lt;/p&gt;\n</div>\n", "escaped"),
            ("<div>\\n  <p>{{ a }}</p>\\n</div>\\n", "escaped"),
            ("<div>\n  <p>{{ “a” | t }}</p>\n</div>\n", "curly"),
            ("<div>\n  <p>{{ a }} cafÃ©</p>\n</div>\n", "encoding"),
            ("<div>\n  <p>{{ a }}\0</p>\n</div>\n", "NUL"),
        ] {
            let message = refused("snippets/a.liquid", base, after).unwrap_or_else(|| panic!("{after:?}"));
            assert!(message.contains(part), "{message}");
        }
        assert_eq!(
            refused("snippets/a.liquid", base, "<div>\n  <p>{{ a | append: '’' }}</p>\n</div>\n"),
            None
        );
        assert_eq!(refused("assets/a.js", "x({\n});\n", "x({\n  1: 'a',\n  2: 'b',\n});\n"), None);
    }

    #[test]
    fn half_of_a_file_goes_only_if_its_lines_are_named() {
        let before: String = (1..=40).map(|n| format!("<p>paragraph {n}</p>\n")).collect();
        let after: String = before.lines().take(10).map(|line| format!("{line}\n")).collect();
        let check = |allowed: &[LineRange]| {
            check("snippets/a.liquid", Some(before.as_bytes()), after.as_bytes(), allowed)
        };
        let Err(EditError::Shrinks { removed, .. }) = check(&[]) else { panic!("it was not refused") };
        assert_eq!(removed, [LineRange { start: 11, end: 40 }]);
        assert!(check(&[LineRange { start: 11, end: 30 }]).is_err());
        assert_eq!(
            check(&[LineRange { start: 11, end: 30 }, LineRange { start: 31, end: 40 }]).map(drop),
            Ok(())
        );
    }
}
