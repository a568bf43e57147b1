//! What a change must not leave behind, whatever tool made it.

use rustc_hash::FxHashMap;
use theme::check;
use theme::path::FileKind;
use theme::scan::liquid::{TokenKind, tokens};
use theme::text::LineRange;

use crate::diff::Hunk;
use crate::differs::{Changed, Differs};
use crate::error::EditError;
use crate::text::{Splice, Text, excerpt, line_range, without_end};

/// The largest file that an edit may make, in bytes. Shopify takes less of each kind of text.
pub const MAX_TEXT: usize = 2 * 1024 * 1024;

/// A file that has less is not guarded against losing half, in bytes without the blanks around it.
const LEAST_GUARDED: usize = 400;

/// Compares a file before and after an edit. `before` is `None` for a new file. `splices` made
/// the one of the other, if they are known. The result is how they differ.
pub(crate) fn check(
    path: &str,
    before: Option<&[u8]>,
    after: &[u8],
    splices: Option<&[Splice]>,
    allowed: &[LineRange],
) -> Result<Differs, EditError> {
    if after.len() > MAX_TEXT {
        return Err(EditError::TooLarge { path: path.to_owned(), bytes: after.len(), limit: MAX_TEXT });
    }
    let old = before.unwrap_or_default();
    let changed = match splices {
        Some(splices) => Changed::by(old, after, splices),
        None => Changed::of(old, after),
    };
    if let Some(before) = before {
        shrinks(path, before, after, &changed.hunks, allowed)?;
    }
    artefacts(path, old, after, &changed)?;
    Ok(changed.differs())
}

fn shrinks(
    path: &str,
    before: &[u8],
    after: &[u8],
    changed: &[Hunk],
    allowed: &[LineRange],
) -> Result<(), EditError> {
    let (was, is) = (before.trim_ascii().len(), after.trim_ascii().len());
    let is_emptied = is == 0 && was > 0;
    if !is_emptied && (was < LEAST_GUARDED || is * 2 >= was) {
        return Ok(());
    }
    let loses_lines = |hunk: &Hunk| hunk.old.len() > hunk.new.len();
    // If no line goes, those that get shorter are named.
    let is_any_lost = changed.iter().any(loses_lines);
    let removed: Vec<LineRange> = changed
        .iter()
        .filter(|hunk| if is_any_lost { loses_lines(hunk) } else { !hunk.old.is_empty() })
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
        bytes_before: before.len(),
        bytes_after: after.len(),
        removed,
    })
}

/// Lines of one side of a change, as a text of their own.
struct Lines<'a> {
    text: Vec<u8>,
    /// The number of each line in its file, from 0, and the line without its end.
    lines: Vec<(usize, &'a [u8])>,
}

impl<'a> Lines<'a> {
    fn of(lines: &[(usize, &'a [u8])]) -> Self {
        let lines: Vec<(usize, &[u8])> =
            lines.iter().map(|(number, line)| (*number, without_end(line))).collect();
        let mut text = Vec::with_capacity(lines.iter().map(|(_, line)| line.len() + 1).sum());
        for (_, line) in &lines {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        Self { text, lines }
    }
}

fn artefacts(path: &str, old: &[u8], new: &[u8], changed: &Changed) -> Result<(), EditError> {
    let refused = |line: usize, what: &str| {
        let text = Text::new(new);
        EditError::Artefact {
            path: path.to_owned(),
            line: line_range(line, line + 1).start,
            text: if line < text.count() { excerpt(&new[text.content(line)]) } else { String::new() },
            what: what.to_owned(),
        }
    };
    let (removed, added) = (Lines::of(&changed.removed), Lines::of(&changed.added));
    if let Some(at) = memchr::memchr(0, &added.text)
        && memchr::memchr(0, old).is_none()
    {
        let (line, _) = added.lines[Text::new(&added.text).line_of(at)];
        return Err(refused(line, "a NUL character stands in the new text"));
    }
    if check::may_have_new_damage(path, old, new, &changed.places, &added.text) {
        damaged(path, old, new, &removed, &added, &refused)?;
    }
    if let Some(line) = listed_numbers(path, &added) {
        return Err(refused(line, "the new lines begin with the line numbers of a listing"));
    }
    if let Some(line) = curly_quote(path, old, new) {
        return Err(refused(line, "a curly quote stands in Liquid: use a straight one"));
    }
    Ok(())
}

/// Compares the damage of the whole files and of the lines that differ.
fn damaged(
    path: &str,
    old: &[u8],
    new: &[u8],
    removed: &Lines,
    added: &Lines,
    refused: &dyn Fn(usize, &str) -> EditError,
) -> Result<(), EditError> {
    // What is wrong with the whole file counts if it is wrong with more places than before, or if it is in the changed lines.
    type Key = (&'static str, String);
    let counts = |bytes: &[u8]| -> FxHashMap<Key, i64> {
        let mut counts = FxHashMap::default();
        for damage in check::damage(path, bytes) {
            *counts.entry((damage.code, damage.message)).or_default() += 1;
        }
        counts
    };
    let whole = check::damage(path, new);
    // Most files have none, and the others need not be read then.
    let (mut left, lost) = match &whole[..] {
        [] => Default::default(),
        _ => (counts(old), counts(&removed.text)),
    };
    for damage in &whole {
        let key = (damage.code, damage.message.clone());
        let known = left.entry(key).or_default();
        *known -= 1;
        if *known < 0 {
            return Err(refused(Text::new(new).line_of(damage.at), &damage.message));
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
            let line = added.lines.get(in_added.line_of(damage.at)).map_or(0, |(line, _)| *line);
            return Err(refused(line, &damage.message));
        }
    }
    Ok(())
}

/// The first of at least two new lines in a row that begin with numbers in a row, as listings print them.
fn listed_numbers(path: &str, added: &Lines) -> Option<usize> {
    let is_markup = path.ends_with(".liquid") && !path.starts_with("assets/");
    let number = |line: &[u8]| -> Option<u64> {
        let text = line.trim_ascii_start();
        let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
        let rest = &text[digits..];
        let has_mark = [&b"|"[..], b" |", b"\t", "→".as_bytes()].iter().any(|mark| rest.starts_with(mark))
            || is_markup && rest.starts_with(b": ");
        (has_mark && (1..=6).contains(&digits))
            .then(|| std::str::from_utf8(&text[..digits]).ok()?.parse().ok())?
    };
    added.lines.windows(2).find_map(|pair| {
        let (first, second) = (number(pair[0].1)?, number(pair[1].1)?);
        (second == first + 1).then_some(pair[0].0)
    })
}

/// The line of a curly quote that stands for a straight one in a tag, if the file has more of them than before.
fn curly_quote(path: &str, old: &[u8], new: &[u8]) -> Option<usize> {
    let may_have_liquid = path.ends_with(".liquid") && FileKind::of(path) != FileKind::Other;
    // All of them begin with these bytes.
    let begins = |text: &[u8], at: usize| text[at..].starts_with(&[0xE2, 0x80]);
    let has_any =
        |text: &&[u8]| may_have_liquid && memchr::memchr_iter(0xE2, text).any(|at| begins(text, at));
    let new_text = std::str::from_utf8(Some(new).filter(has_any)?).ok()?;
    let (before, _) = curly(std::str::from_utf8(old).unwrap_or_default());
    let (after, places) = curly(new_text);
    (after > before).then(|| Text::new(new).line_of(places.last().copied().unwrap_or(0)))
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
        check(path, Some(before.as_bytes()), after.as_bytes(), None, &[]).err().map(|error| error.to_string())
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
            check("snippets/a.liquid", Some(before.as_bytes()), after.as_bytes(), None, allowed)
        };
        let Err(EditError::Shrinks { removed, .. }) = check(&[]) else { panic!("it was not refused") };
        assert_eq!(removed, [LineRange { start: 11, end: 40 }]);
        assert!(check(&[LineRange { start: 11, end: 30 }]).is_err());
        assert_eq!(
            check(&[LineRange { start: 11, end: 30 }, LineRange { start: 31, end: 40 }]).map(drop),
            Ok(())
        );
    }

    /// What the quick look lets pass, the comparison of all damage lets pass, too.
    #[test]
    fn the_quick_look_passes_nothing_that_is_refused() {
        const LINES: [&str; 80] = [
            "",
            "  ",
            "a",
            "<p>",
            "</p>",
            "{% if a %}",
            "}",
            "...",
            "  ...",
            "[...]",
            "…",
            "{% comment %}",
            "{% endcomment %}",
            "{% comment %} ... {% endcomment %}",
            "{% endcomment %}{% comment %}",
            "comment",
            "endcomment",
            "<!--",
            "-->",
            "--> a <!--",
            "<!-- rest of the code -->",
            "/*",
            "*/",
            "/*/",
            "/* a */",
            "*/ /*",
            "  /* b",
            "// ...",
            "// rest of the code",
            "existing code ... //",
            "{% raw %}",
            "{%- endraw -%}",
            "{% doc %}",
            "{%doc%}",
            "{%doc%} //",
            "{% enddoc %}",
            "```",
            "```liquid",
            "~~~",
            "+ a;",
            "- a;",
            "+ 'b';",
            "-{ b }",
            "-%}",
            "-webkit-a: b;",
            "'a'",
            "1|",
            "2|",
            "3",
            "4: 5",
            ">>>>",
            "<<<<<<<",
            "<<<<<<< HEAD",
            "=======",
            "EOF",
            "// a",
            "a\\nb\\n<c",
            "a\\nb",
            "<a b=\\\"c\\\">",
            "<script>",
            "</script>",
            "\\{{ a }}",
            "&lt;p&gt;&lt;p&gt;",
            "&lt;p&gt;",
            "<pre>",
            "</pre>",
            "{&#37; a &#37;}",
            "{{&quot;a&quot;}}",
            "Ã©",
            "\u{fffd}",
            "\u{200b}",
            "a=“b”",
            "{{ “",
            "}}",
            "Here is the updated file",
            "<new_str>",
            "@@ -1 +1 @@",
            "--- a/b",
            "*** Begin Patch",
            "{",
        ];
        let long = "x".repeat(2_001);
        // Lines that count only beside each other, with the kind of file in which they do.
        let groups: [(&str, &[&str]); 11] = [
            ("snippets/a.liquid", &["...", "<p>", "</p>", "", "a"]),
            ("snippets/a.liquid", &["a=“b”", "{{", "}}", "{%", "a"]),
            ("snippets/a.liquid", &["<a b=\\\">", "\\\"", "<script>", "a"]),
            ("snippets/a.liquid", &["<a b=\\\"c\\\">", "<script>", "a"]),
            ("snippets/a.liquid", &["a\\nb\\nc\\nd", "a", "a\\nb\\n<c"]),
            ("snippets/a.liquid", &["{{&quot;a", "}}", "&lt;p>", "<pre>", "</pre>", "a"]),
            ("snippets/a.liquid", &["{%doc%}", "{%doc%} //", "{% enddoc %}", "```", "// ...", "a"]),
            ("snippets/a.liquid", &["{% comment %}", "{% endcomment %}", "<!--", "-->", "```"]),
            ("assets/a.css", &["/*", "*/", "/*/", "```", "+ a;"]),
            ("assets/a.js", &["\u{200b}", &long, "a"]),
            ("assets/a.js", &["a;\\n  b;\\n  c;\\n  d;\\n  e;\\n", "a", "b"]),
        ];
        let mut seed = 7_u32;
        let mut next = |most: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as usize % most
        };
        const PATHS: [&str; 8] = [
            "snippets/a.liquid",
            "sections/a.liquid",
            "snippets/a.liquid",
            "assets/a.css",
            "assets/a.js",
            "locales/en.json",
            "templates/a.json",
            "other/a.txt",
        ];
        let (mut passed, mut refused, mut read_again) = (0, 0, 0);
        for round in 0..60_000 {
            // Few kinds of lines, so that their effects on each other show.
            let (path, kinds) = if next(2) == 0 {
                let (path, lines) = groups[next(groups.len())];
                (path, lines.to_vec())
            } else {
                (PATHS[next(PATHS.len())], (0..5).map(|_| LINES[next(LINES.len())]).collect())
            };
            let end = if next(8) == 0 { "\r\n" } else { "\n" };
            let mut line = || format!("{}{end}", kinds[next(kinds.len())]);
            let count = [1, 3, 8, 12][round / 10 % 4];
            let before: Vec<String> = (0..count).map(|_| line()).collect();
            let mut after = before.clone();
            for change in 0..=round % 3 {
                let start = (round / 4 + change * 3) % after.len().max(1);
                let end = (start + (round / 2 + change) % 4).min(after.len());
                after.splice(start.min(end)..end, (0..(round / 3 + change) % 4).map(|_| line()));
            }
            let (mut before, mut after) = (before.concat(), after.concat());
            for text in [&mut before, &mut after] {
                match next(40) {
                    0 => text.insert(0, '\u{feff}'),
                    1 => text.truncate(text.trim_end().len()),
                    _ => {}
                }
            }
            let (old, new) = (before.as_bytes(), after.as_bytes());
            let changed = Changed::of(old, new);
            let (removed, added) = (Lines::of(&changed.removed), Lines::of(&changed.added));
            let error = |_: usize, what: &str| EditError::BadCall { reason: what.to_owned() };
            let all = damaged(path, old, new, &removed, &added, &error);
            let may_be_damaged = check::may_have_new_damage(path, old, new, &changed.places, &added.text);
            passed += usize::from(!may_be_damaged);
            refused += usize::from(all.is_err());
            read_again += usize::from(may_be_damaged && all.is_ok());
            assert!(may_be_damaged || all.is_ok(), "{path}: {all:?}\n{before}\n--\n{after}");
        }
        assert!(
            passed > 10_000 && refused > 10_000,
            "{passed} passed, {refused} refused, {read_again} read again"
        );
    }
}
