//! The frontmatter of a document: lines between two lines `---` at its beginning.
//!
//! Three of its keys belong to the platform ([`Marks`]). They are not stored with the text: whoever reads the document sees them as they
//! are now, and what a file says about them is ignored. All other lines belong to the document and are kept as they are.

use jiff::Timestamp;

/// The keys of [`Marks`].
const KEYS: [&str; 3] = ["last_sync", "last_commit", "commits_since_sync"];

/// How far a document is behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// When the document was last synchronised.
    pub last_sync: Option<Timestamp>,
    /// When the newest commit was made.
    pub last_commit: Option<Timestamp>,
    /// How many commits wait for a synchronisation.
    pub commits_since_sync: usize,
}

impl Marks {
    fn lines(self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(at) = self.last_sync {
            lines.push(format!("last_sync: {at:.0}"));
        }
        if let Some(at) = self.last_commit {
            lines.push(format!("last_commit: {at:.0}"));
        }
        lines.push(format!("commits_since_sync: {}", self.commits_since_sync));
        lines
    }
}

/// A text in two parts: the lines of its frontmatter, without the marks, and the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    pub lines: Vec<&'a str>,
    pub body: &'a str,
}

/// Reads the frontmatter of a text. Without a second line `---`, the first one is a rule, and all is the body.
#[must_use]
pub fn parts(text: &str) -> Parts<'_> {
    let is_fence = |line: &str| line.trim_end() == "---";
    let mut rest = text;
    let mut lines = Vec::new();
    let mut is_first = true;
    while let Some((line, after)) = first_line(rest) {
        if is_first && !is_fence(line) {
            break;
        }
        if !is_first && is_fence(line) {
            return Parts { lines, body: after };
        }
        let is_ours = line.split_once(':').is_some_and(|(key, _)| KEYS.contains(&key));
        if !is_first && !is_ours {
            lines.push(line.trim_end_matches('\r'));
        }
        (is_first, rest) = (false, after);
    }
    Parts { lines: Vec::new(), body: text }
}

/// A text without its frontmatter.
pub(super) fn body_of(text: &str) -> &str {
    parts(text).body
}

/// The first line without its end, and what follows it. None if nothing is left.
fn first_line(text: &str) -> Option<(&str, &str)> {
    if text.is_empty() { None } else { Some(text.split_once('\n').unwrap_or((text, ""))) }
}

fn join<'a>(lines: impl Iterator<Item = &'a str>, body: &str) -> String {
    let lines: Vec<&str> = lines.collect();
    if lines.is_empty() {
        return body.to_owned();
    }
    format!("---\n{}\n---\n{body}", lines.join("\n"))
}

/// The text as it is stored: without the marks, and without a frontmatter that has nothing else.
#[must_use]
pub fn without_marks(text: &str) -> String {
    let mut text = text.to_owned();
    loop {
        let Parts { lines, body } = parts(&text);
        let next = join(lines.into_iter(), body);
        // What follows an empty frontmatter may be another one.
        if next == text {
            return text;
        }
        text = next;
    }
}

/// The text as its reader sees it.
#[must_use]
pub fn with_marks(text: &str, marks: Marks) -> String {
    let ours = marks.lines();
    let Parts { lines, body } = parts(text);
    join(lines.into_iter().chain(ours.iter().map(String::as_str)), body)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn marks() -> Marks {
        let at = |text: &str| Some(text.parse().unwrap());
        Marks {
            last_sync: at("2026-01-11T06:19:18Z"),
            last_commit: at("2026-01-12T19:05:43Z"),
            commits_since_sync: 1,
        }
    }

    #[test]
    fn marks_stand_after_the_lines_of_the_document() {
        let ours =
            "last_sync: 2026-01-11T06:19:18Z\nlast_commit: 2026-01-12T19:05:43Z\ncommits_since_sync: 1\n";
        for (stored, shown) in [
            ("# A\n", format!("---\n{ours}---\n# A\n")),
            ("", format!("---\n{ours}---\n")),
            ("---\ntitle: A\n---\n# A\n", format!("---\ntitle: A\n{ours}---\n# A\n")),
            // The first line is a rule.
            ("---\n# A\n", format!("---\n{ours}---\n---\n# A\n")),
        ] {
            assert_eq!(with_marks(stored, marks()), shown);
            assert_eq!(without_marks(&shown), stored, "{shown}");
        }
        assert_eq!(with_marks("# A\n", Marks::default()), "---\ncommits_since_sync: 0\n---\n# A\n");
    }

    #[test]
    fn only_our_own_keys_are_taken_out() {
        for (given, stored) in [
            ("---\nlast_sync: x\ntitle: last_sync: y\n---\nbody", "---\ntitle: last_sync: y\n---\nbody"),
            ("---\r\ntitle: A\r\ncommits_since_sync: 9\r\n---\r\nbody\r\n", "---\ntitle: A\n---\nbody\r\n"),
            // A key of a value, another key, and a text.
            ("---\na:\n  last_sync: x\n---\n", "---\na:\n  last_sync: x\n---\n"),
            ("---\nlast_synchronised: x\n---\n", "---\nlast_synchronised: x\n---\n"),
            ("body\n---\nlast_sync: x\n---\n", "body\n---\nlast_sync: x\n---\n"),
            ("---\n---\nbody", "body"),
            ("---\nlast_sync: x\n---\n---\nlast_sync: y\n---\nbody", "body"),
            ("---", "---"),
        ] {
            assert_eq!(without_marks(given), stored, "{given}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(text in "(---\n|last_sync: x\n|title: A\n|#|\n|é|\r\n){0,12}") {
            let stored = without_marks(&text);
            prop_assert_eq!(&without_marks(&stored), &stored);
            prop_assert_eq!(without_marks(&with_marks(&stored, marks())), stored);
        }
    }
}
