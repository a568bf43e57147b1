//! What was asked about a theme before, and which files were edited for it.
//!
//! A person seldom asks about a file once. The next request is often about the file of the last one, or says the same as
//! an earlier one. So the changes of a theme are an argument of a lookup, as the open file is; the index itself stays a
//! function of the theme's files.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::index::{ThemeIndex, hash_of_path};
use super::plain_words::{WordClass, word_class};
use super::text::LineRange;
use super::words;

/// Older changes are left out.
pub const MAX_CHANGES: usize = 100;
/// A change of more files is an import or a clean-up, and says nothing about a single file.
pub const MAX_FILES: usize = 60;
/// Of a longer request only the beginning is kept, in bytes.
pub const MAX_REQUEST_BYTES: usize = 500;
/// The most ranges that are kept per edited file.
pub const MAX_RANGES: usize = 40;

/// Changes of more files than this do not say which file is edited again.
const MAX_RECENT_FILES: usize = 15;
/// The changes and files by which [`Recalled::stick`] is measured, and how far back an edit counts as recent.
const STICK_CHANGES: usize = 60;
const STICK_FILES: usize = 10;
const STICK_DISTANCE: usize = 8;
/// Ranges with at most this many lines between them are joined.
const JOINED_LINES: u32 = 2;

/// How much each place in a history counts, and how much of a change's meaning falls to each of its files.
static CURVES: LazyLock<Curves> = LazyLock::new(|| Curves {
    recent: std::array::from_fn(|at| 1.0 / (1.0 + (1.0 + at as f32).log2())),
    busy: std::array::from_fn(|at| (-(at as f32) / 40.0).exp()),
    shared: std::array::from_fn(|files| 1.0 / (files.max(1) as f32).sqrt()),
});

struct Curves {
    recent: [f32; MAX_CHANGES],
    busy: [f32; MAX_CHANGES],
    shared: [f32; MAX_FILES + 1],
}

/// One request, and what was edited for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    pub request: String,
    pub files: Vec<EditedFile>,
    /// How long ago the change was made.
    pub hours: f32,
}

/// A file that a change edited or added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditedFile {
    pub path: String,
    /// The edited lines, in the file as it was after the change. May be empty.
    pub lines: Vec<LineRange>,
}

/// The last changes of a theme, read once per conversation and used by every lookup.
///
/// It holds words and paths, not numbers of files, so it stays valid while the theme's index changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct History {
    /// Each path once.
    paths: Vec<Box<str>>,
    /// Their hashes, see [`super::index::hash_of_path`].
    hashes: Vec<u64>,
    /// The newest first.
    changes: Vec<Past>,
    /// The stems of all requests, with their numbers.
    stems: FxHashMap<Box<str>, u32>,
    /// For each stem, its weight and the changes that have it.
    said: Vec<(f32, Vec<u8>)>,
    /// The weight of a stem that no change has.
    unsaid: f32,
    /// For each path, the changes that edited it, newest first, each with the place among the change's files.
    edits: Vec<Vec<(u8, u8)>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Past {
    request: Box<str>,
    hours: f32,
    /// Numbers of paths, each once, with the edited lines, sorted and apart.
    files: Vec<(u32, Box<[LineRange]>)>,
    /// The length of the vector of the request's stems.
    length: f32,
}

/// The stored form: the paths, and for each change the request, the hours, and for each file the number of its path
/// followed by the first and last lines of its ranges.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Written {
    paths: Vec<String>,
    changes: Vec<(String, f32, Vec<Vec<u32>>)>,
}

/// Why stored data is not a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    #[error("a file of the history has no number of a path")]
    NoPath,
    #[error("the history has no path with the number {0}")]
    UnknownPath(u32),
    #[error("a range of lines of the history has no end, begins at 0 or ends before it begins")]
    Lines,
}

impl History {
    /// Reads the changes, newest first. Of more than [`MAX_CHANGES`] only the newest are read.
    pub fn new(changes: impl IntoIterator<Item = Change>) -> Self {
        let mut history = Self::default();
        let mut numbers: FxHashMap<Box<str>, u32> = FxHashMap::default();
        for change in changes.into_iter().take(MAX_CHANGES) {
            let mut files: Vec<(u32, Box<[LineRange]>)> = Vec::new();
            // A change of too many files keeps its place and its words.
            let edited = if change.files.len() > MAX_FILES { Vec::new() } else { change.files };
            for file in edited {
                let paths = &mut history.paths;
                let number = *numbers.entry(file.path.into()).or_insert_with_key(|path| {
                    paths.push(path.clone());
                    history.hashes.push(hash_of_path(path));
                    paths.len() as u32 - 1
                });
                if files.iter().all(|&(other, _)| other != number) {
                    files.push((number, joined(file.lines)));
                }
            }
            let hours = rounded(change.hours);
            let request = beginning(&change.request, MAX_REQUEST_BYTES).into();
            history.changes.push(Past { request, hours, files, length: 0.0 });
        }
        history.edits = vec![Vec::new(); history.paths.len()];
        for (at, change) in history.changes.iter().enumerate() {
            for (place, (path, _)) in change.files.iter().enumerate() {
                history.edits[*path as usize].push((at as u8, place as u8));
            }
        }
        history.read_requests();
        history
    }

    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The number of changes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    fn read_requests(&mut self) {
        let mut stems_of = Vec::with_capacity(self.changes.len());
        for (at, change) in self.changes.iter().enumerate() {
            let mut own: Vec<u32> = Vec::new();
            for (raw, stem) in words::spoken(&change.request) {
                if word_class(&raw) == WordClass::Stop {
                    continue;
                }
                let next = self.stems.len() as u32;
                let number = *self.stems.entry(stem.into()).or_insert(next);
                if number == next {
                    self.said.push((0.0, Vec::new()));
                }
                let changes = &mut self.said[number as usize].1;
                if changes.last() != Some(&(at as u8)) {
                    changes.push(at as u8);
                    own.push(number);
                }
            }
            stems_of.push(own);
        }
        let all = self.changes.len() as f32;
        let weight = |having: f32| (1.0 + (all - having + 0.5) / (having + 0.5)).ln();
        self.unsaid = weight(0.0);
        for (own, changes) in &mut self.said {
            *own = weight(changes.len() as f32);
        }
        for (change, stems) in self.changes.iter_mut().zip(stems_of) {
            let squares = stems.iter().map(|&stem| self.said[stem as usize].0.powi(2));
            change.length = squares.sum::<f32>().sqrt();
        }
    }

    /// For each change, how much its request says the same as this one, from 0 to 1. `stems` are those of the request
    /// without stop words, each once.
    fn similarities<'a>(&self, stems: impl Iterator<Item = &'a str>) -> Vec<f32> {
        let mut similar = vec![0.0_f32; self.changes.len()];
        let mut squares = 0.0;
        for stem in stems {
            let said = self.stems.get(stem).map(|&stem| &self.said[stem as usize]);
            let (weight, changes) =
                said.map_or((self.unsaid, &[][..]), |(weight, changes)| (*weight, changes));
            squares += weight * weight;
            for &change in changes {
                similar[change as usize] += weight * weight;
            }
        }
        for (similar, change) in similar.iter_mut().zip(&self.changes) {
            if *similar > 0.0 {
                *similar /= squares.sqrt() * change.length;
            }
        }
        similar
    }

    /// What the history says about the files of a theme.
    pub(super) fn recall(&self, index: &ThemeIndex, stems: &[String]) -> Recalled {
        let files: Vec<Option<u32>> = self
            .paths
            .iter()
            .zip(&self.hashes)
            .map(|(path, &hash)| {
                index.file_of_hash(path, hash).filter(|&file| index.files[file as usize].kind.is_target())
            })
            .collect();
        let similar = self.similarities(stems.iter().map(String::as_str));
        let mut found: Vec<RecalledFile> = files
            .iter()
            .zip(0_u32..)
            .map(|(&file, path)| RecalledFile {
                file: file.unwrap_or(u32::MAX),
                path,
                ..RecalledFile::default()
            })
            .collect();
        for (at, (change, &similar)) in self.changes.iter().zip(&similar).enumerate() {
            let existing = change.files.iter().filter(|(path, _)| files[*path as usize].is_some()).count();
            if existing == 0 {
                continue;
            }
            let recent = if existing <= MAX_RECENT_FILES {
                CURVES.shared[existing].sqrt() * CURVES.recent[at]
            } else {
                0.0
            };
            let busy = CURVES.busy[at] * CURVES.shared[existing];
            for (path, _) in &change.files {
                let found = &mut found[*path as usize];
                found.recent = found.recent.max(recent);
                found.busy += busy;
                found.asked = found.asked.max(similar);
            }
        }
        found.retain(|found| found.file != u32::MAX);
        for found in &mut found {
            found.busy = found.busy.ln_1p() / 2.0;
        }
        found.sort_unstable_by_key(|found| found.file);
        Recalled { files: found, stick: self.stick(&files), fade: self.fade() }
    }

    /// The mean share of a change's files that one of the changes shortly before it edited, too.
    fn stick(&self, files: &[Option<u32>]) -> f32 {
        let mut last_edit = vec![usize::MAX; files.len()];
        let (mut sum, mut count) = (0.0, 0.0);
        for (at, change) in self.changes.iter().enumerate().rev() {
            let existing = || change.files.iter().filter(|(path, _)| files[*path as usize].is_some());
            let size = existing().count();
            if size == 0 {
                continue;
            }
            if at < STICK_CHANGES && size <= STICK_FILES {
                let again = existing()
                    .map(|(path, _)| last_edit[*path as usize])
                    .filter(|&before| before != usize::MAX && before - at <= STICK_DISTANCE);
                sum += again.count() as f32 / size as f32;
                count += 1.0;
            }
            existing().for_each(|(path, _)| last_edit[*path as usize] = at);
        }
        (sum + 1.5) / (count + 5.0)
    }

    /// An old history says less.
    fn fade(&self) -> f32 {
        let hours = self.changes.first().map_or(f32::MAX, |change| change.hours);
        0.3 + 0.7 * (-hours / 72.0).exp()
    }

    /// The lines that each change edited in the file with this number of a path, newest first.
    pub(super) fn edits(&self, path: u32) -> impl Iterator<Item = &[LineRange]> + Clone {
        let edits = self.edits[path as usize].iter();
        edits.map(|&(change, place)| &*self.changes[change as usize].files[place as usize].1)
    }
}

/// What a history says about the files of a theme and a request.
#[derive(Debug, Default)]
pub(super) struct Recalled {
    /// The edited files that the theme has, sorted.
    pub files: Vec<RecalledFile>,
    /// How often the files of a change were edited shortly before. Each theme sets its own weight of recency.
    pub stick: f32,
    /// How much the time since the last change leaves of the history, from 0.3 to 1.
    pub fade: f32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RecalledFile {
    pub file: u32,
    /// The number of its path in the history.
    pub path: u32,
    /// Whether one of the last changes edited it.
    pub recent: f32,
    /// How many of the last changes edited it.
    pub busy: f32,
    /// How much one of the requests for which it was edited says the same as the request.
    pub asked: f32,
}

impl Recalled {
    pub fn of(&self, file: u32) -> Option<&RecalledFile> {
        self.files.binary_search_by_key(&file, |found| found.file).ok().map(|at| &self.files[at])
    }
}

/// Sorts the ranges and joins those that are close to each other.
fn joined(mut lines: Vec<LineRange>) -> Box<[LineRange]> {
    lines.retain(|range| 1 <= range.start && range.start <= range.end);
    lines.sort_unstable();
    let mut apart: Vec<LineRange> = Vec::new();
    for range in lines {
        let has_room = apart.len() < MAX_RANGES;
        match apart.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(JOINED_LINES + 1) => {
                last.end = last.end.max(range.end);
            }
            _ if has_room => apart.push(range),
            _ => break,
        }
    }
    apart.into()
}

/// Hours without the digits that nobody reads, so that the stored form is short. Rounding twice changes nothing. Data
/// without a time is old.
fn rounded(hours: f32) -> f32 {
    const OLDEST: f32 = 1e6;
    if hours.is_nan() || hours > OLDEST {
        OLDEST
    } else if hours > 1_000.0 {
        hours.round()
    } else {
        ((f64::from(hours.max(0.0)) * 100.0).round() / 100.0) as f32
    }
}

fn beginning(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl From<History> for Written {
    fn from(history: History) -> Self {
        let file = |(path, lines): (u32, Box<[LineRange]>)| {
            std::iter::once(path).chain(lines.iter().flat_map(|range| [range.start, range.end])).collect()
        };
        let change = |change: Past| {
            (change.request.into(), change.hours, change.files.into_iter().map(file).collect())
        };
        Self {
            paths: history.paths.into_iter().map(String::from).collect(),
            changes: history.changes.into_iter().map(change).collect(),
        }
    }
}

impl TryFrom<Written> for History {
    type Error = HistoryError;

    fn try_from(written: Written) -> Result<Self, HistoryError> {
        let file = |numbers: Vec<u32>| {
            let (&path, lines) = numbers.split_first().ok_or(HistoryError::NoPath)?;
            let path = written.paths.get(path as usize).ok_or(HistoryError::UnknownPath(path))?;
            let lines = lines.chunks(2).map(|range| match *range {
                [start, end] if 1 <= start && start <= end => Ok(LineRange { start, end }),
                _ => Err(HistoryError::Lines),
            });
            Ok(EditedFile { path: path.clone(), lines: lines.collect::<Result<_, _>>()? })
        };
        let changes = written.changes.into_iter().take(MAX_CHANGES).map(|(request, hours, files)| {
            // The files of a change that is too large are not read.
            let files = if files.len() > MAX_FILES { Vec::new() } else { files };
            let files = files.into_iter().map(file).collect::<Result<_, _>>()?;
            Ok(Change { request, files, hours })
        });
        Ok(Self::new(changes.collect::<Result<Vec<_>, _>>()?))
    }
}
