//! Long documents in parts, so that a synchronisation rewrites only what has changed.
//!
//! A short document is one part. A long one is cut before headings, so that each part has at most [`MAX_PART`] bytes. The parts of a
//! document are always its text: nothing is lost between them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::frontmatter::body_of;
use super::{Doc, DocName};

/// A document of at most this length is one part, in bytes.
pub const MAX_WHOLE: usize = 24 * 1024;

/// The longest part of a longer document, in bytes.
pub const MAX_PART: usize = 12 * 1024;

/// The name of a part: `DESIGN.md`, or `DESIGN.md#2` for the second part of a long document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PartName {
    pub document: DocName,
    /// From 1 on. None: the document has one part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
}

impl fmt::Display for PartName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            None => self.document.fmt(f),
            Some(number) => write!(f, "{}#{number}", self.document),
        }
    }
}

/// A part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    pub name: PartName,
    pub text: &'a str,
}

impl Part<'_> {
    /// The headings of the part on one line.
    #[must_use]
    pub fn outline(&self) -> String {
        let headings: Vec<&str> = self.text.lines().filter(|line| is_heading(line)).collect();
        if headings.is_empty() {
            return self.text.lines().find(|line| !line.trim().is_empty()).unwrap_or("(empty)").to_owned();
        }
        headings.join(" | ")
    }
}

/// The parts of a document, without its frontmatter: no model changes that.
#[must_use]
pub fn split<'a>(document: &Doc<'a>) -> Vec<Part<'a>> {
    let body = body_of(document.text);
    let name = |number| PartName { document: document.name.clone(), number };
    if body.len() <= MAX_WHOLE {
        return vec![Part { name: name(None), text: body }];
    }
    let pieces = pieces(body);
    (1..).zip(pieces).map(|(number, text)| Part { name: name(Some(number)), text }).collect()
}

fn pieces(text: &str) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    let mut in_fence = false;
    while rest.len() > MAX_PART {
        let at = cut(rest, &mut in_fence);
        let (piece, after) = rest.split_at(at);
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

/// Where a text is cut: before the last heading of the first [`MAX_PART`] bytes, or else after the last empty line, or else after the last
/// line. `in_fence` says whether it begins within a block of code, and then whether its rest does.
fn cut(text: &str, in_fence: &mut bool) -> usize {
    let end = text.floor_char_boundary(MAX_PART);
    // What comes too early would make many small parts.
    let earliest = MAX_PART / 3;
    let (mut heading, mut blank, mut line_end) = (None, None, None);
    let (mut at, mut fence) = (0, *in_fence);
    for line in text[..end].split_inclusive('\n') {
        if at >= earliest {
            if !fence && is_heading(line) {
                heading = Some((at, fence));
            }
            line_end = Some((at, fence));
        }
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            fence = !fence;
        }
        at += line.len();
        if line.trim().is_empty() && at >= earliest && at <= end && !fence {
            blank = Some((at, fence));
        }
    }
    let (at, fence) = heading.or(blank).or(line_end).unwrap_or((end, fence));
    *in_fence = fence;
    at
}

fn is_heading(line: &str) -> bool {
    let title = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - title.len())) && title.starts_with(' ')
}

/// The text of a document with new texts of some of its parts. Blank lines at the ends of a part stay as they were.
#[must_use]
pub fn joined(document: &Doc<'_>, new: impl Fn(&PartName) -> Option<String>) -> String {
    let before = &document.text[..document.text.len() - body_of(document.text).len()];
    let mut text = before.to_owned();
    for part in split(document) {
        let Some(new) = new(&part.name) else {
            text.push_str(part.text);
            continue;
        };
        let breaks = ['\n', '\r'];
        let inner = part.text.trim_matches(breaks);
        if inner.is_empty() || part.name.number.is_none() {
            text.push_str(&new);
            continue;
        }
        let (begin, end) = part.text.split_once(inner).unwrap_or(("", "\n"));
        text.push_str(begin);
        text.push_str(new.trim_matches(breaks));
        text.push_str(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn doc(text: &str, run: impl FnOnce(&Doc<'_>)) {
        let name: DocName = "DESIGN.md".parse().unwrap();
        run(&Doc { name: &name, text });
    }

    #[test]
    fn a_short_document_is_one_part_without_its_frontmatter() {
        doc("---\ntitle: A\n---\n# A\n", |document| {
            let parts = split(document);
            assert_eq!(parts.len(), 1);
            assert_eq!((parts[0].name.to_string().as_str(), parts[0].text), ("DESIGN.md", "# A\n"));
            assert_eq!(joined(document, |_| Some("# B\n".to_owned())), "---\ntitle: A\n---\n# B\n");
        });
    }

    #[test]
    fn a_long_document_is_cut_before_headings_and_not_within_code() {
        let section =
            |n: usize| format!("## Part {n}\n\n{}\n\n```sh\n# not a heading\n```\n\n", "word ".repeat(1_000));
        let text: String = (0..20).map(section).collect();
        doc(&text, |document| {
            let parts = split(document);
            assert!(parts.len() > 8, "{}", parts.len());
            for part in &parts {
                assert!(part.text.starts_with("## Part"), "{}", &part.text[..40]);
                assert!(part.text.len() <= MAX_PART);
                assert!(part.outline().contains("## Part"));
            }
            assert_eq!(parts[1].name.to_string(), "DESIGN.md#2");
            let changed =
                joined(document, |name| (name.number == Some(2)).then(|| "## New\n\nShort.\n".to_owned()));
            assert_eq!(changed.matches("## New\n\nShort.\n\n## Part").count(), 1, "{}", &changed[5_000..]);
            assert_eq!(changed.len(), text.len() - parts[1].text.len() + "## New\n\nShort.\n\n".len());
        });
    }

    proptest! {
        #[test]
        fn nothing_is_lost_between_parts(
            text in "(---\n|# a\n|```\n|\n|é|word |[a-z]{0,900}|\r\n){0,120}", times in 1..8_usize,
        ) {
            let text = text.repeat(times);
            doc(&text, |document| {
                let parts = split(document);
                assert_eq!(joined(document, |_| None), text);
                assert!(parts.len() == 1 || parts.iter().all(|part| part.text.len() <= MAX_PART && !part.text.is_empty()));
                // Parts that are written again as they are change nothing but blank lines at the ends of the whole.
                let same = joined(document, |name| {
                    let part = parts.iter().find(|part| part.name == *name).unwrap();
                    Some(part.text.to_owned())
                });
                assert_eq!(same, text);
            });
        }

        #[test]
        fn a_text_without_any_break_is_cut_too(length in 0..90_000_usize) {
            doc(&"é".repeat(length), |document| {
                assert!(split(document).iter().all(|part| part.text.len() <= MAX_WHOLE));
                assert_eq!(joined(document, |_| None).chars().count(), length);
            });
        }
    }
}
