//! Edits as a unified diff.

use std::fmt::Write;

use super::places::{self, Edit};
use crate::text::{Lines, Span};

/// How many lines around a change are shown.
const CONTEXT: u32 = 3;

/// Lines of the old text that become other ones.
struct Hunk {
    /// The first and the last line, from 1.
    first: u32,
    last: u32,
    edits: Vec<Edit>,
}

/// A diff for `patch` and `git apply`. It is empty without edits.
pub fn unified(path: &str, old: &str, edits: &[Edit]) -> String {
    if edits.is_empty() {
        return String::new();
    }
    let lines = Lines::new(old);
    let mut diff = format!("--- a/{path}\n+++ b/{path}\n");
    let mut moved: i64 = 0;
    for group in grouped(changed(&lines, edits)) {
        let (Some(top), Some(bottom)) = (group.first(), group.last()) else { continue };
        let start = top.first.saturating_sub(CONTEXT).max(1);
        let end = (bottom.last + CONTEXT).min(lines.count());
        let mut body = String::new();
        let (mut at, mut removed, mut added) = (start, 0, 0);
        for hunk in &group {
            shown(&mut body, ' ', old, &lines, at, hunk.first);
            let span = of_lines(&lines, hunk.first, hunk.last + 1);
            removed += i64::from(shown(&mut body, '-', old, &lines, hunk.first, hunk.last + 1));
            let inner: Vec<Edit> = hunk
                .edits
                .iter()
                .map(|edit| Edit {
                    span: Span { start: edit.span.start - span.start, end: edit.span.end - span.start },
                    new: edit.new.clone(),
                })
                .collect();
            let new = places::applied(span.of(old), &inner);
            for line in new.split_inclusive('\n') {
                write_line(&mut body, '+', line);
                added += 1;
            }
            at = hunk.last + 1;
        }
        shown(&mut body, ' ', old, &lines, at, end + 1);
        let count = i64::from(end + 1 - start);
        let new_count = count - removed + added;
        let _ = writeln!(diff, "@@ -{start},{count} +{},{new_count} @@", i64::from(start) + moved);
        diff.push_str(&body);
        moved += added - removed;
    }
    diff
}

/// The lines that the edits touch.
fn changed(lines: &Lines, edits: &[Edit]) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for edit in edits {
        let first = lines.line_of(edit.span.start);
        let last = lines.line_of(edit.span.end).max(first);
        match hunks.last_mut() {
            Some(hunk) if first <= hunk.last + 1 => {
                hunk.last = hunk.last.max(last);
                hunk.edits.push(edit.clone());
            }
            _ => hunks.push(Hunk { first, last, edits: vec![edit.clone()] }),
        }
    }
    hunks
}

/// Changes whose surrounding lines touch each other.
fn grouped(hunks: Vec<Hunk>) -> Vec<Vec<Hunk>> {
    let mut groups: Vec<Vec<Hunk>> = Vec::new();
    for hunk in hunks {
        match groups.last_mut() {
            Some(group) if group.last().is_some_and(|last| hunk.first <= last.last + 2 * CONTEXT + 1) => {
                group.push(hunk);
            }
            _ => groups.push(vec![hunk]),
        }
    }
    groups
}

/// The bytes of the lines from `first` to before `end`.
fn of_lines(lines: &Lines, first: u32, end: u32) -> Span {
    let last = end.saturating_sub(1).clamp(first, lines.count());
    Span { start: lines.span_of(first.min(lines.count())).start, end: lines.span_of(last).end }
}

/// Writes the lines from `first` to before `end`, and says how many they are.
fn shown(body: &mut String, sign: char, old: &str, lines: &Lines, first: u32, end: u32) -> u32 {
    for line in first..end {
        write_line(body, sign, lines.span_of(line).of(old));
    }
    end.saturating_sub(first)
}

fn write_line(body: &mut String, sign: char, line: &str) {
    body.push(sign);
    body.push_str(line);
    if !line.ends_with('\n') {
        body.push_str("\n\\ No newline at end of file\n");
    }
}
