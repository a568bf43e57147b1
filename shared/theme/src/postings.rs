//! Postings: for every term the files and the units that contain it, in flat arrays.

use rustc_hash::FxHashMap;

use super::fields::{Counts, FIELDS, Field, FieldTerm};
use super::record::{FileRecord, NameId, Tables, Texts};
use super::words::TermId;

/// A file that contains a term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilePosting {
    pub file: u32,
    pub counts: Counts,
}

/// A unit that contains a term: the unit's number in the theme and the count, packed into one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitPosting(u32);

impl UnitPosting {
    fn new(unit: u32, count: u8) -> Self {
        Self(unit << 8 | u32::from(count))
    }

    pub fn unit(self) -> usize {
        (self.0 >> 8) as usize
    }

    pub fn count(self) -> u8 {
        self.0 as u8
    }
}

/// Lists of `T`, indexed by term.
struct Lists<T> {
    starts: Vec<u32>,
    items: Vec<T>,
}

impl<T: Copy + Default> Lists<T> {
    /// Builds from pairs. Each list keeps the order of the pairs.
    fn build(terms: usize, pairs: impl Iterator<Item = (TermId, T)> + Clone) -> Self {
        let mut starts = vec![0_u32; terms + 1];
        // `for_each` instead of `for`: chained iterators run several times faster with internal iteration.
        pairs.clone().for_each(|(term, _)| starts[term as usize + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut items = vec![T::default(); starts[terms] as usize];
        let mut next = starts.clone();
        pairs.for_each(|(term, item)| {
            let at = &mut next[term as usize];
            items[*at as usize] = item;
            *at += 1;
        });
        Self { starts, items }
    }

    fn of(&self, term: TermId) -> &[T] {
        let term = term as usize;
        match self.starts.get(term..term + 2) {
            Some(range) => &self.items[range[0] as usize..range[1] as usize],
            None => &[],
        }
    }
}

/// All data that ranking reads.
pub struct Postings {
    files: Lists<FilePosting>,
    units: Lists<UnitPosting>,
    /// The length of each field of each file, relative to the field's mean over the theme's files.
    pub lengths: Vec<[f32; FIELDS]>,
    /// The number of files that can be targets.
    pub targets: u32,
    /// For each term, how many files have it in their paths.
    pub path_counts: Vec<u32>,
    /// The first unit of each file, plus one final entry.
    pub unit_starts: Vec<u32>,
    /// The chunk of each unit, counted over the theme, and the file of each chunk.
    pub unit_chunks: Vec<u32>,
    pub chunk_files: Vec<u32>,
}

impl Postings {
    /// `files` are sorted by path, and so are the postings.
    pub fn build(files: &[FileRecord], tables: &Tables) -> Self {
        let texts = DefaultTexts::of(files);
        let mut merged: Vec<FieldTerm> = Vec::with_capacity(files.iter().map(|f| f.terms.len()).sum());
        let mut ends = Vec::with_capacity(files.len());
        for file in files {
            merge(&mut merged, &file.terms, texts.resolve(file));
            ends.push(merged.len());
        }
        let starts = || std::iter::once(0).chain(ends.iter().copied());
        let of_file = |(file, (start, end)): (usize, (usize, usize))| {
            merged[start..end]
                .iter()
                .map(move |entry| (entry.term, FilePosting { file: file as u32, counts: entry.counts }))
        };
        let pairs = starts().zip(ends.iter().copied()).enumerate().flat_map(of_file);
        let file_lists = Lists::build(tables.terms.len(), pairs);
        let (lengths, targets) = lengths(files, &merged, &ends);
        let mut path_counts = vec![0; tables.terms.len()];
        for entry in merged.iter().filter(|entry| entry.counts[Field::Path as usize] > 0) {
            path_counts[entry.term as usize] += 1;
        }

        let mut unit_starts = Vec::with_capacity(files.len() + 1);
        let (mut unit_chunks, mut chunk_files) = (Vec::new(), Vec::new());
        for (index, file) in files.iter().enumerate() {
            unit_starts.push(unit_chunks.len() as u32);
            let first_chunk = chunk_files.len() as u32;
            unit_chunks.extend(file.units.iter().map(|unit| first_chunk + unit.chunk));
            let chunks = file.units.last().map_or(0, |unit| unit.chunk as usize + 1);
            chunk_files.resize(chunk_files.len() + chunks, index as u32);
        }
        unit_starts.push(unit_chunks.len() as u32);
        let unit_pairs = files.iter().zip(unit_starts.iter()).flat_map(|(file, &first)| {
            (0..file.units.len()).flat_map(move |unit| {
                let start = if unit == 0 { 0 } else { file.unit_ends[unit - 1] as usize };
                let end = file.unit_ends[unit] as usize;
                file.unit_terms[start..end]
                    .iter()
                    .map(move |&(term, count)| (term, UnitPosting::new(first + unit as u32, count)))
            })
        });
        let unit_lists = Lists::build(tables.terms.len(), unit_pairs);
        Self {
            files: file_lists,
            units: unit_lists,
            lengths,
            targets,
            path_counts,
            unit_starts,
            unit_chunks,
            chunk_files,
        }
    }

    pub fn files(&self, term: TermId) -> &[FilePosting] {
        self.files.of(term)
    }

    pub fn units(&self, term: TermId) -> &[UnitPosting] {
        self.units.of(term)
    }
}

/// Appends a file's own terms and the terms of the texts it shows to `merged`. Both inputs are sorted by term number.
fn merge(merged: &mut Vec<FieldTerm>, own: &[FieldTerm], shown: Vec<FieldTerm>) {
    let mut shown = shown.into_iter().peekable();
    for entry in own {
        while let Some(before) = shown.next_if(|other| other.term < entry.term) {
            merged.push(before);
        }
        let mut entry = *entry;
        if let Some(same) = shown.next_if(|other| other.term == entry.term) {
            for (count, more) in entry.counts.iter_mut().zip(same.counts) {
                *count = count.saturating_add(more);
            }
        }
        merged.push(entry);
    }
    merged.extend(shown);
}

fn lengths(files: &[FileRecord], merged: &[FieldTerm], ends: &[usize]) -> (Vec<[f32; FIELDS]>, u32) {
    let mut lengths = vec![[0_f32; FIELDS]; files.len()];
    let mut sums = [0_f64; FIELDS];
    let mut start = 0;
    let mut targets = 0;
    for (index, &end) in ends.iter().enumerate() {
        let mut sum = [0_u32; FIELDS];
        for entry in &merged[start..end] {
            for (total, count) in sum.iter_mut().zip(entry.counts) {
                *total += u32::from(count);
            }
        }
        start = end;
        if files[index].kind.is_target() {
            targets += 1;
            for field in 0..FIELDS {
                lengths[index][field] = sum[field] as f32;
                sums[field] += f64::from(sum[field]);
            }
        }
    }
    for length in &mut lengths {
        for field in 0..FIELDS {
            let mean = sums[field] / f64::from(targets.max(1));
            length[field] /= mean.max(1.0) as f32;
        }
    }
    (lengths, targets)
}

/// The texts of the default locales, by key.
struct DefaultTexts<'a> {
    texts: FxHashMap<NameId, &'a [TermId]>,
    labels: FxHashMap<NameId, &'a [TermId]>,
}

impl<'a> DefaultTexts<'a> {
    fn of(files: &'a [FileRecord]) -> Self {
        let mut all = Self { texts: FxHashMap::default(), labels: FxHashMap::default() };
        for file in files {
            let Some(Texts::Default(texts)) = &file.texts else { continue };
            let is_schema = file.kind == super::path::FileKind::SchemaLocale;
            let map = if is_schema { &mut all.labels } else { &mut all.texts };
            map.extend(texts.iter().map(|text| (text.key, text.terms.as_slice())));
        }
        all
    }

    /// The terms of the texts and labels that a file shows.
    fn resolve(&self, file: &FileRecord) -> Vec<FieldTerm> {
        let mut terms: Vec<(TermId, Field)> = Vec::new();
        for reference in &file.references {
            if reference.kind == super::scan::EdgeKind::Translation
                && let Some(words) = self.texts.get(&reference.name)
            {
                terms.extend(words.iter().map(|&term| (term, Field::Text)));
            }
        }
        for key in &file.label_keys {
            if let Some(words) = self.labels.get(key) {
                terms.extend(words.iter().map(|&term| (term, Field::Label)));
            }
        }
        terms.sort_unstable_by_key(|&(term, _)| term);
        let mut shown: Vec<FieldTerm> = Vec::new();
        for (term, field) in terms {
            if shown.last().is_none_or(|last| last.term != term) {
                shown.push(FieldTerm { term, counts: Counts::default() });
            }
            let last = shown.last_mut().expect("one was just pushed");
            let count = &mut last.counts[field as usize];
            *count = count.saturating_add(1);
        }
        shown
    }
}
