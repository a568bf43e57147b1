//! How much of each file a briefing shows: the best ones whole, of the others an outline and the lines that the request is about.

use super::briefing::{Body, Lines, Shown};
use crate::limits::WHOLE_FILE_CHARACTERS;

/// How many of the best files are shown whole, if they are not long. Of the others, the lines that the request is about are shown.
const WHOLE_FILES: usize = 2;

/// How many lines around those that a request is about are shown.
const AROUND: u32 = 8;

/// The most lines of a file that is not shown whole, and the most bytes of them.
const MAX_LINES: u32 = 240;
const MAX_PART_BYTES: usize = 12_000;

/// The most named parts of a file in a briefing.
const MAX_OUTLINE: usize = 60;

/// A file that passed the gate.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    pub path: &'a str,
    /// As an edit names it.
    pub version: &'a str,
    pub text: &'a str,
    /// Why it passed, in a few words.
    pub why: &'a str,
    /// The first and the last of the lines that the request is about.
    pub ranges: &'a [[u32; 2]],
    /// What the file defines, if it is too long to be shown whole.
    pub outline: Vec<Row<'a>>,
}

/// A named part of a file.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    pub first: u32,
    pub last: u32,
    pub name: &'a str,
}

/// A file that the model is given ahead.
#[derive(Clone, Debug)]
pub struct Given<'a> {
    pub path: &'a str,
    version: &'a str,
    text: &'a str,
    why: &'a str,
    /// The lines that are shown. `None`: all.
    parts: Option<Vec<Lines<'a>>>,
    outline: String,
}

impl Given<'_> {
    #[must_use]
    pub fn shown(&self) -> Shown<'_> {
        let body = match &self.parts {
            None => Body::Whole(self.text),
            Some(parts) => Body::Outline(&self.outline, parts),
        };
        Shown { path: self.path, version: self.version, body, why: self.why }
    }

    fn bytes(&self) -> usize {
        match &self.parts {
            None => self.text.len(),
            Some(parts) => self.outline.len() + parts.iter().map(|part| part.text.len()).sum::<usize>(),
        }
    }
}

/// How the files are shown, best match first, until they have `most` bytes.
#[must_use]
pub fn given<'a>(files: impl IntoIterator<Item = Candidate<'a>>, most: usize) -> Vec<Given<'a>> {
    let mut all = Vec::new();
    let mut bytes = 0;
    for (at, file) in files.into_iter().enumerate() {
        let Candidate { path, version, text, why, ranges, outline } = file;
        let is_whole = at < WHOLE_FILES && text.chars().count() <= WHOLE_FILE_CHARACTERS;
        let parts = (!is_whole).then(|| parts_of(text, ranges));
        let outline = if is_whole { String::new() } else { listed(&outline) };
        let given = Given { path, version, text, why, parts, outline };
        bytes += given.bytes();
        // One long file must not hide that the others are there.
        if bytes > most && !all.is_empty() {
            break;
        }
        all.push(given);
    }
    all
}

fn listed(rows: &[Row<'_>]) -> String {
    let row = |row: &Row<'_>| format!("{}–{} {}", row.first, row.last, row.name);
    let mut lines: Vec<String> = rows.iter().take(MAX_OUTLINE).map(row).collect();
    if rows.len() > MAX_OUTLINE {
        lines.push(format!("({} more: read_file lists them)", rows.len() - MAX_OUTLINE));
    }
    lines.join("\n")
}

/// The lines that a request is about, with some around them, joined where they meet.
fn parts_of<'a>(text: &'a str, ranges: &[[u32; 2]]) -> Vec<Lines<'a>> {
    let starts: Vec<usize> =
        std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let lines = u32::try_from(starts.len()).unwrap_or(u32::MAX);
    let mut wanted: Vec<[u32; 2]> = ranges
        .iter()
        .map(|[first, last]| [first.saturating_sub(AROUND).max(1), last.saturating_add(AROUND).min(lines)])
        .filter(|[first, last]| first <= last)
        .collect();
    wanted.sort_unstable();
    let mut joined: Vec<[u32; 2]> = Vec::new();
    for [first, last] in wanted {
        match joined.last_mut() {
            Some(before) if first <= before[1].saturating_add(1) => before[1] = before[1].max(last),
            _ => joined.push([first, last]),
        }
    }
    let (mut left, mut bytes) = (MAX_LINES, MAX_PART_BYTES);
    let mut parts = Vec::new();
    for [first, last] in joined {
        if left == 0 || bytes == 0 {
            break;
        }
        let last = last.min(first + left - 1);
        left -= last - first + 1;
        let (from, to) =
            (starts[first as usize - 1], starts.get(last as usize).copied().unwrap_or(text.len()));
        // A file of a tool may have one line of a megabyte.
        let shown = &text[from..text.floor_char_boundary(to.min(from + bytes))];
        bytes -= shown.len();
        if !shown.is_empty() {
            parts.push(Lines { first: first as usize, text: shown });
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_joined_and_bounded() {
        let text: String = (1..=1_000).map(|line| format!("line {line}\n")).collect();
        let shown = |ranges: &[[u32; 2]]| {
            let parts = parts_of(&text, ranges);
            let row = |part: &Lines<'_>| (part.first, part.text.lines().count());
            parts.iter().map(row).collect::<Vec<_>>()
        };
        assert_eq!(shown(&[]), []);
        assert_eq!(shown(&[[1, 3]]), [(1, 11)]);
        assert_eq!(shown(&[[100, 100], [110, 112]]), [(92, 29)]);
        assert_eq!(shown(&[[500, 510], [100, 100]]), [(92, 17), (492, 27)]);
        assert_eq!(shown(&[[1, 1_000]]), [(1, 240)]);
        assert_eq!(shown(&[[1, 100], [300, 900]]), [(1, 108), (292, 132)]);
        assert_eq!(shown(&[[5_000, 6_000]]), []);
        assert_eq!(shown(&[[998, 4_000]]), [(990, 11)]);
        let long = "é".repeat(1_000_000);
        let shown: usize = parts_of(&long, &[[1, 1]]).iter().map(|part| part.text.len()).sum();
        assert_eq!(shown, MAX_PART_BYTES);
        assert!(parts_of("", &[[1, 1]]).iter().all(|part| part.text.is_empty()));
    }

    fn file<'a>(path: &'a str, text: &'a str, ranges: &'a [[u32; 2]]) -> Candidate<'a> {
        Candidate { path, version: "v", text, why: "w", ranges, outline: Vec::new() }
    }

    #[test]
    fn the_best_files_are_shown_whole() {
        let short = "line\n".repeat(100);
        let long = "line\n".repeat(4_000);
        let files = [
            file("a", &short, &[]),
            file("b", &long, &[[50, 50]]),
            file("c", &short, &[[50, 50]]),
            file("d", &short, &[]),
        ];
        let given = given(files, 100_000);
        let sizes: Vec<(&str, usize)> = given.iter().map(|given| (given.path, given.bytes())).collect();
        assert_eq!(sizes, [("a", 500), ("b", 17 * 5), ("c", 17 * 5), ("d", 0)]);
    }

    #[test]
    fn files_are_given_until_there_are_enough() {
        let text = "line\n".repeat(1_000);
        let count = |most| given((0..4).map(|_| file("a", &text, &[[1, 50]])), most).len();
        assert_eq!((count(0), count(5_000), count(10_000), count(10_290), count(10_580)), (1, 1, 2, 3, 4));
        assert!(given([], 1_000).is_empty());
    }

    #[test]
    fn a_long_outline_is_cut() {
        let rows =
            |count: u32| (0..count).map(|at| Row { first: at, last: at, name: "part" }).collect::<Vec<_>>();
        assert_eq!(listed(&rows(2)), "0–0 part\n1–1 part");
        let long = listed(&rows(100));
        assert_eq!(long.lines().count(), MAX_OUTLINE + 1);
        assert!(long.ends_with("(40 more: read_file lists them)"));
    }
}
