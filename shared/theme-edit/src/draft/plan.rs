//! What a call would do, found out before anything changes.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use theme::path::check_path;
use theme::text::LineRange;

use super::{CallOutcome, Draft, REQUIRED, refs};
use crate::call::{Call, LineEdit, Replacement};
use crate::diff::hunks;
use crate::error::{EditError, Mention};
use crate::locate::{self, Fit, Lost};
use crate::node;
use crate::text::{Splice, Text, bom_len, line_range, plain, usual_end};

/// What happens to one file.
pub(super) enum Work {
    /// Parts of its text change.
    Splices {
        splices: Vec<Splice>,
        allowed: Vec<LineRange>,
    },
    /// Its whole text changes.
    Whole {
        bytes: Vec<u8>,
        allowed: Vec<LineRange>,
    },
    Create {
        bytes: Vec<u8>,
    },
    Delete,
    /// It leaves this path.
    MoveTo {
        to: String,
    },
    /// It comes to this path.
    MoveFrom {
        from: String,
    },
}

/// What a batch of calls would do.
#[derive(Default)]
pub(super) struct Plan {
    pub works: BTreeMap<String, Work>,
    pub calls: Vec<CallOutcome>,
    pub mentions: Vec<Mention>,
}

impl Plan {
    fn add(&mut self, path: &str, work: Work) -> Result<(), EditError> {
        use std::collections::btree_map::Entry;
        match (self.works.entry(path.to_owned()), work) {
            (Entry::Vacant(place), work) => {
                place.insert(work);
            }
            (Entry::Occupied(mut place), Work::Splices { splices: more, allowed: also }) => {
                match place.get_mut() {
                    Work::Splices { splices, allowed } => {
                        splices.extend(more);
                        allowed.extend(also);
                    }
                    _ => return Err(EditError::MixedBatch { path: path.to_owned() }),
                }
            }
            _ => return Err(EditError::MixedBatch { path: path.to_owned() }),
        }
        Ok(())
    }

    fn splices(&mut self, path: &str, splices: Vec<Splice>, allowed: &[LineRange]) -> Result<(), EditError> {
        let splices: Vec<Splice> = splices.into_iter().filter(|splice| !splice.is_nothing()).collect();
        if splices.is_empty() {
            return Ok(());
        }
        self.add(path, Work::Splices { splices, allowed: allowed.to_vec() })
    }
}

impl Draft {
    /// Adds what a call would do to the plan of its batch.
    pub(super) fn plan(&self, call: &Call, plan: &mut Plan) -> Result<(), EditError> {
        let outcome = match call {
            Call::EditLines { path, version, edits, allow_shrink } => {
                self.check_version(path, version.as_deref(), true)?;
                let text = Text::new(self.text_of(path)?.1);
                let splices = edited_lines(path, &text, edits)?;
                let already_there = splices.iter().all(Splice::is_nothing);
                plan.splices(path, splices, allow_shrink)?;
                CallOutcome { already_there, ..CallOutcome::default() }
            }
            Call::SearchReplace { path, version, replacements, allow_shrink } => {
                self.check_version(path, version.as_deref(), true)?;
                let text = Text::new(self.text_of(path)?.1);
                let (splices, outcome) = replaced(path, &text, replacements, version.is_some())?;
                plan.splices(path, splices, allow_shrink)?;
                outcome
            }
            Call::WriteFile { path, version, content, allow_shrink } => {
                self.check_version(path, version.as_deref(), true)?;
                let (_, bytes) = self.text_of(path)?;
                let new = rewritten(bytes, content);
                let already_there = new[..] == bytes[..];
                if !already_there {
                    plan.add(path, Work::Whole { bytes: new, allowed: allow_shrink.clone() })?;
                }
                CallOutcome { already_there, ..CallOutcome::default() }
            }
            Call::EditNode { path, version, node, content, allow_shrink } => {
                self.check_version(path, version.as_deref(), true)?;
                let (_, bytes) = self.text_of(path)?;
                let text =
                    std::str::from_utf8(bytes).map_err(|_| EditError::NotText { path: path.clone() })?;
                let found = node::find(path, text, node)?;
                let splice = node::replaced(path, text, &found, &plain(content))?;
                let splice = with_ends(&Text::new(bytes), splice).trimmed(bytes);
                let already_there = splice.is_nothing();
                plan.splices(path, vec![splice], allow_shrink)?;
                CallOutcome { already_there, ..CallOutcome::default() }
            }
            Call::CreateFile { path, content } => {
                let bytes = content.strip_prefix('\u{feff}').unwrap_or(content).as_bytes().to_vec();
                match self.file(path) {
                    Some(file) if file.version == crate::Version::of(&bytes) => {
                        CallOutcome { already_there: true, ..CallOutcome::default() }
                    }
                    Some(_) => return Err(EditError::FileExists { path: path.clone() }),
                    None => {
                        self.check_free(path)?;
                        plan.add(path, Work::Create { bytes })?;
                        CallOutcome::default()
                    }
                }
            }
            Call::DeleteFile { path, version, force } => {
                self.check_version(path, version.as_deref(), false)?;
                if !force && REQUIRED.contains(&path.as_str()) {
                    return Err(EditError::Required { path: path.clone() });
                }
                let by = match refs::mentions(self, path) {
                    Ok(by) => by,
                    // Where not all files are loaded, it is not known who names the file.
                    Err(EditError::NotLoaded { .. }) if *force => Vec::new(),
                    Err(error) => return Err(error),
                };
                if !force && !by.is_empty() {
                    return Err(EditError::Referenced { path: path.clone(), by });
                }
                plan.mentions.extend(by);
                plan.add(path, Work::Delete)?;
                CallOutcome::default()
            }
            Call::RenameFile { path, to, version, update_references } => {
                self.renamed(path, to, version.as_deref(), *update_references, plan)?
            }
            Call::UndoEdit { .. } => {
                return Err(EditError::BadCall {
                    reason: "undo_edit is no part of a batch: call it alone".to_owned(),
                });
            }
        };
        plan.calls.push(outcome);
        Ok(())
    }

    fn renamed(
        &self,
        path: &str,
        to: &str,
        version: Option<&str>,
        update: bool,
        plan: &mut Plan,
    ) -> Result<CallOutcome, EditError> {
        self.check_version(path, version, false)?;
        if path == to {
            return Ok(CallOutcome { already_there: true, ..CallOutcome::default() });
        }
        if self.file(to).is_some() {
            return Err(EditError::FileExists { path: to.to_owned() });
        }
        self.check_free(to)?;
        if REQUIRED.contains(&path) {
            return Err(EditError::Required { path: path.to_owned() });
        }
        if update {
            let (splices, left) = refs::updates(self, path, to)?;
            for (path, splices) in splices {
                plan.splices(&path, splices, &[])?;
            }
            plan.mentions.extend(left);
        } else {
            match refs::mentions(self, path) {
                Ok(mentions) => plan.mentions.extend(mentions),
                // The rename itself needs no other file.
                Err(EditError::NotLoaded { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        plan.add(path, Work::MoveTo { to: to.to_owned() })?;
        plan.add(to, Work::MoveFrom { from: path.to_owned() })?;
        Ok(CallOutcome::default())
    }

    /// Whether a new file can have a path: a theme's path, and no folder or file of the theme is in its way.
    fn check_free(&self, path: &str) -> Result<(), EditError> {
        let bad = |reason: String| EditError::BadPath { path: path.to_owned(), reason };
        check_path(path).map_err(|error| bad(error.to_string()))?;
        let folder = format!("{path}/");
        if self.paths().any(|other| other.starts_with(&folder)) {
            return Err(bad("it is a folder of the theme".to_owned()));
        }
        let above = path.match_indices('/').map(|(at, _)| &path[..at]);
        match above.into_iter().find(|above| self.file(above).is_some()) {
            Some(file) => Err(bad(format!("{file} is a file, and not a folder"))),
            None => Ok(()),
        }
    }
}

/// The lines of a call's content. A newline at its end ends the last line and does not begin another.
fn content_lines(content: &str) -> Vec<&str> {
    if content.is_empty() {
        return Vec::new();
    }
    content.strip_suffix('\n').unwrap_or(content).split('\n').collect()
}

fn edited_lines(path: &str, text: &Text, edits: &[LineEdit]) -> Result<Vec<Splice>, EditError> {
    check_count("edits", edits.len())?;
    let total = text.count();
    if edits.is_empty() {
        return Err(EditError::BadCall { reason: "edits is empty: give at least one edit".to_owned() });
    }
    // The lines of each edit, from 0; an insertion has none.
    let mut places: Vec<(Range<usize>, usize)> = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        let range = match edit {
            LineEdit::Replace { start, end, .. } => (*start as usize).wrapping_sub(1)..*end as usize,
            LineEdit::Insert { after, .. } => *after as usize..*after as usize,
        };
        let is_insert = matches!(edit, LineEdit::Insert { .. });
        if range.end > total || range.start > range.end || (range.is_empty() && !is_insert) {
            let (start, end) = match edit {
                LineEdit::Replace { start, end, .. } => (*start, *end),
                LineEdit::Insert { after, .. } => (*after, *after),
            };
            let total = u32::try_from(total).unwrap_or(u32::MAX);
            return Err(EditError::NoSuchLines { path: path.to_owned(), start, end, total });
        }
        places.push((range, index));
    }
    places.sort_by_key(|(range, index)| (range.start, range.end, *index));
    for pair in places.windows(2) {
        let ((first, _), (second, _)) = (&pair[0], &pair[1]);
        if second.start < first.end || first == second {
            return Err(EditError::Overlap {
                path: path.to_owned(),
                first: line_range(first.start, first.end),
                second: line_range(second.start, second.end),
            });
        }
    }
    let mut splices = Vec::new();
    let mut start_of = text.starts_in_order();
    for (range, index) in places {
        let place = start_of(range.start)..start_of(range.end);
        match &edits[index] {
            LineEdit::Replace { content, old, .. } => {
                if let Some(old) = old {
                    has_text(path, text, &range, &place, &plain(old))?;
                }
                let splice = locate::replace_lines(text, place, &content_lines(&plain(content)));
                splices.push(splice.trimmed(text.bytes));
            }
            LineEdit::Insert { after, content } => {
                let content = plain(content);
                let lines = content_lines(&content);
                splices.push(locate::insert_lines(text, *after as usize, place.start, &lines));
            }
        }
    }
    Ok(splices)
}

/// Compares lines with the text that a call says they have, apart from blanks at their ends. `place` is where they stand.
fn has_text(
    path: &str,
    text: &Text,
    range: &Range<usize>,
    place: &Range<usize>,
    old: &str,
) -> Result<(), EditError> {
    let found: Vec<&[u8]> =
        text.contents_in(place).into_iter().map(|line| text.bytes[line].trim_ascii_end()).collect();
    let wanted: Vec<&[u8]> =
        content_lines(old).into_iter().map(|line| line.as_bytes().trim_ascii_end()).collect();
    if found == wanted {
        return Ok(());
    }
    let at = (0..found.len().max(wanted.len())).find(|&at| found.get(at) != wanted.get(at)).unwrap_or(0);
    let nearest = locate::Nearest {
        lines: line_range(range.start, range.end),
        line: line_range(range.start + at, range.start + at + 1).start,
        found: crate::text::excerpt(found.get(at).copied().unwrap_or_default()),
        wanted: crate::text::excerpt(wanted.get(at).copied().unwrap_or_default()),
    };
    let elsewhere = match locate::replace(text, &content_lines(old).join("\n"), "", 1, true) {
        Ok((splices, _)) => splices.iter().map(|splice| text.lines_of(&splice.range)).collect(),
        Err(Lost::Several { lines, .. }) => lines,
        Err(_) => Vec::new(),
    };
    let lines = line_range(range.start, range.end);
    Err(EditError::OtherText { path: path.to_owned(), lines, nearest: Some(nearest), elsewhere })
}

/// The most changes of one call.
const MOST_CHANGES: usize = 200;

fn check_count(field: &str, count: usize) -> Result<(), EditError> {
    match count <= MOST_CHANGES {
        true => Ok(()),
        false => {
            let reason =
                format!("{field} has {count} entries: give at most {MOST_CHANGES}, in several calls");
            Err(EditError::BadCall { reason })
        }
    }
}

fn replaced(
    path: &str,
    text: &Text,
    replacements: &[Replacement],
    is_seen: bool,
) -> Result<(Vec<Splice>, CallOutcome), EditError> {
    check_count("replacements", replacements.len())?;
    if replacements.is_empty() {
        return Err(EditError::BadCall {
            reason: "replacements is empty: give at least one replacement".to_owned(),
        });
    }
    let (mut all, mut there, mut best) = (Vec::new(), None, Fit::Exact);
    // How often a replacement is given. Where it is given as often as its text stands in the file, each has its place.
    let mut times: FxHashMap<&Replacement, usize> = FxHashMap::default();
    if replacements.len() > 1 {
        for replacement in replacements.iter().filter(|one| one.expected_matches.is_none()) {
            *times.entry(replacement).or_default() += 1;
        }
    }
    let mut done: FxHashSet<&Replacement> = FxHashSet::default();
    for (index, replacement) in (1..).zip(replacements) {
        if done.contains(replacement) {
            continue;
        }
        let (old, new) = (plain(&replacement.old), plain(&replacement.new));
        if old.is_empty() {
            return Err(EditError::EmptySearch { index });
        }
        let expected = replacement.expected_matches.unwrap_or(1);
        if expected == 0 {
            let reason = format!("replacement {index}: expected_matches must be at least 1");
            return Err(EditError::BadCall { reason });
        }
        let together = times.get(replacement).filter(|times| **times > 1);
        let together = together.map(|times| locate::replace(text, &old, &new, *times, is_seen));
        let found = match together {
            Some(found @ (Ok(_) | Err(Lost::There(_)))) => {
                done.insert(replacement);
                found
            }
            _ => locate::replace(text, &old, &new, expected, is_seen),
        };
        match found {
            Ok((splices, fit)) => {
                best = best.max(fit);
                all.extend(splices);
            }
            Err(Lost::There(lines)) => there = Some(lines),
            Err(Lost::Nowhere(nearest)) => {
                return Err(EditError::NotFound { path: path.to_owned(), index, nearest });
            }
            Err(Lost::Several { lines, count: found }) => {
                return Err(EditError::Ambiguous { path: path.to_owned(), index, expected, found, lines });
            }
        }
    }
    let already_there = all.iter().all(Splice::is_nothing);
    Ok((all, CallOutcome { already_there, there, fit: best }))
}

/// A new text with the line ends of the file around it.
fn with_ends(text: &Text, splice: Splice) -> Splice {
    let end = text.end_near(splice.range.start);
    if end != b"\r\n" {
        return splice;
    }
    let mut new = Vec::with_capacity(splice.new.len() + splice.new.len() / 16);
    for line in splice.new.split_inclusive(|b| *b == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(line) => new.extend([line, end].concat()),
            None => new.extend_from_slice(line),
        }
    }
    Splice { range: splice.range, new }
}

/// The bytes of a file whose whole text is replaced: lines that stay keep their bytes, new ones take the line end of their neighbours,
/// and the byte order mark and the newline at the end, or their absence, stay.
fn rewritten(bytes: &[u8], content: &str) -> Vec<u8> {
    let text = Text::new(bytes);
    let content = plain(content);
    let lines: Vec<&[u8]> = content_lines(&content).into_iter().map(str::as_bytes).collect();
    let mut made = bytes[..bom_len(bytes)].to_vec();
    if lines.is_empty() {
        return made;
    }
    let changed = hunks(&text.contents(), &lines);
    let mut hunk = changed.iter().peekable();
    let mut old = 0;
    let usual = usual_end(bytes);
    for (index, line) in lines.iter().enumerate() {
        while let Some(past) = hunk.next_if(|hunk| hunk.new.end <= index) {
            old = past.old.end;
        }
        let mut near = old;
        match hunk.peek().filter(|hunk| hunk.new.contains(&index)) {
            Some(hunk) if !hunk.old.is_empty() => {
                near = (hunk.old.start + (index - hunk.new.start)).min(hunk.old.end - 1);
            }
            Some(_) => near = old.saturating_sub(1),
            None => old += 1,
        }
        made.extend_from_slice(line);
        if index + 1 < lines.len() {
            let end = if near < text.count() { text.end(near) } else { b"" };
            let before =
                near.checked_sub(1).map_or(&b""[..], |before| text.end(before.min(text.count() - 1)));
            made.extend_from_slice(
                [end, before, usual].into_iter().find(|end| !end.is_empty()).unwrap_or(b"\n"),
            );
        }
    }
    // An empty file says nothing about its end, so the content does.
    let has_end =
        if bytes.len() == bom_len(bytes) { content.ends_with('\n') } else { bytes.ends_with(b"\n") };
    if has_end {
        let last = text.end(text.count() - 1);
        made.extend_from_slice(if last.is_empty() { usual } else { last });
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rewritten_file_keeps_its_line_ends_and_its_end() {
        let check = |file: &str, content: &str, expected: &str| {
            assert_eq!(String::from_utf8(rewritten(file.as_bytes(), content)).unwrap(), expected, "{file:?}");
        };
        check("a\r\nb\r\n", "a\nx\nb\n", "a\r\nx\r\nb\r\n");
        check("a\r\nb\nc\r\n", "a\nx\nc\nd\n", "a\r\nx\nc\r\nd\r\n");
        check("a\nb", "a\nc\n", "a\nc");
        check("a\nb\n", "a\nc", "a\nc\n");
        check("\u{feff}a\n", "b\n", "\u{feff}b\n");
        check("", "a\n", "a\n");
        check("a\r\nb", "a\nb\nc", "a\r\nb\r\nc");
        check("a\n", "", "");
    }
}
