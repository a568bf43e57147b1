//! Writing a segment.

use rustc_hash::FxHashMap;
use words::{Language, Lexicon, TermId};

use super::{
    HEADER_BYTES, MAGIC, MAX_DIMENSION, MAX_DOCUMENTS, NO_DAY, NO_TIME, NONE, SECTIONS, Section, VERSION,
    WriteError,
};
use crate::dates::{Day, Days};
use crate::document::Kind;

pub(crate) struct NewPart<'a> {
    pub key: &'a str,
    pub session: &'a str,
    pub namespace: &'a str,
    pub kind: Kind,
    pub date: Option<Day>,
}

pub(crate) struct NewDocument<'a> {
    pub key: &'a str,
    pub speaker: &'a str,
    /// Seconds since 1970.
    pub time: Option<i64>,
    pub date: Option<Day>,
    pub date_text: &'a str,
    pub text: &'a str,
    pub corrected_until: Option<Day>,
    pub len: u32,
    pub flags: u8,
    pub language: Language,
    pub ranges: &'a [Days],
    /// The scale and the values.
    pub vector: Option<(f32, &'a [i8])>,
}

/// A column of strings.
#[derive(Default)]
struct Strings {
    ends: Vec<u8>,
    bytes: Vec<u8>,
}

impl Strings {
    fn push(&mut self, text: &str) {
        self.bytes.extend(text.as_bytes());
        // A longer column is refused at the end.
        self.ends.extend((self.bytes.len().min(u32::MAX as usize) as u32).to_le_bytes());
    }
}

/// Numbers names in the order in which they come.
#[derive(Default)]
struct Names {
    all: Vec<String>,
    numbers: FxHashMap<String, u32>,
}

impl Names {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.all.len() as u32;
        self.all.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

/// Takes parts in the order of their keys, each followed by its documents.
#[derive(Default)]
pub(crate) struct Builder {
    names: Names,
    parts: Vec<[u32; 6]>,
    keys: Strings,
    texts: Strings,
    speakers: Vec<u32>,
    times: Vec<u8>,
    dates: Vec<u8>,
    date_texts: Vec<u32>,
    corrected: Vec<u8>,
    lengths: Vec<u8>,
    flags: Vec<u8>,
    terms: Vec<(TermId, u8)>,
    term_ends: Vec<usize>,
    ranges: Vec<u8>,
    model: String,
    dimension: usize,
    vector_documents: Vec<u8>,
    vector_scales: Vec<u8>,
    vector_values: Vec<u8>,
}

impl Builder {
    pub fn new(model: &str) -> Self {
        Self { model: model.to_owned(), ..Self::default() }
    }

    pub fn part(&mut self, part: &NewPart<'_>) {
        let row = [
            self.names.number(part.key),
            self.names.number(part.session),
            self.names.number(part.namespace),
            part.kind as u32,
            part.date.unwrap_or(NO_DAY) as u32,
            self.term_ends.len() as u32,
        ];
        self.parts.push(row);
    }

    pub fn document(
        &mut self,
        document: &NewDocument<'_>,
        terms: impl Iterator<Item = (TermId, u8)>,
    ) -> Result<(), WriteError> {
        let number = self.term_ends.len();
        if number >= MAX_DOCUMENTS {
            return Err(WriteError::TooManyDocuments);
        }
        self.keys.push(document.key);
        self.texts.push(document.text);
        self.speakers.push(self.names.number(document.speaker));
        self.times.extend(document.time.unwrap_or(NO_TIME).to_le_bytes());
        self.dates.extend(document.date.unwrap_or(NO_DAY).to_le_bytes());
        let date_text = match document.date_text {
            "" => NONE,
            text => self.names.number(text),
        };
        self.date_texts.push(date_text);
        self.corrected.extend(document.corrected_until.unwrap_or(NO_DAY).to_le_bytes());
        self.lengths.extend(document.len.to_le_bytes());
        self.flags.extend([document.flags, document.language as u8]);
        self.terms.extend(terms);
        self.term_ends.push(self.terms.len());
        for range in document.ranges {
            self.ranges.extend((number as u32).to_le_bytes());
            self.ranges.extend(range.start.to_le_bytes());
            self.ranges.extend(range.end.to_le_bytes());
        }
        if let Some((scale, values)) = document.vector {
            if self.dimension == 0 {
                self.dimension = values.len();
            }
            if values.len() != self.dimension || values.len() > MAX_DIMENSION {
                return Err(WriteError::Dimension);
            }
            self.vector_documents.extend((number as u32).to_le_bytes());
            self.vector_scales.extend(scale.to_le_bytes());
            self.vector_values.extend(values.iter().map(|value| *value as u8));
        }
        Ok(())
    }

    /// The bytes of the segment. `lexicon` has the terms of the documents.
    pub fn finish(self, lexicon: &Lexicon) -> Result<Vec<u8>, WriteError> {
        let mut order: Vec<u32> = (0..self.names.all.len() as u32).collect();
        order.sort_unstable_by_key(|&number| &self.names.all[number as usize]);
        let mut names = Strings::default();
        let mut places = vec![NONE; order.len()];
        for (place, &number) in (0..).zip(&order) {
            names.push(&self.names.all[number as usize]);
            places[number as usize] = place;
        }
        let name = |number: u32| places.get(number as usize).copied().unwrap_or(NONE);
        let named =
            |numbers: &[u32]| numbers.iter().flat_map(|&n| name(n).to_le_bytes()).collect::<Vec<u8>>();
        let part = |row: &[u32; 6]| [name(row[0]), name(row[1]), name(row[2]), row[3], row[4], row[5]];
        let parts: Vec<u8> = self.parts.iter().flat_map(part).flat_map(u32::to_le_bytes).collect();
        let (terms, starts, postings) = self.postings(lexicon);
        let model = if self.dimension == 0 { "" } else { &self.model };
        let sections: [&[u8]; SECTIONS] = [
            &names.ends,
            &names.bytes,
            &parts,
            &self.keys.ends,
            &self.keys.bytes,
            &self.texts.ends,
            &self.texts.bytes,
            &named(&self.speakers),
            &self.times,
            &self.dates,
            &named(&self.date_texts),
            &self.corrected,
            &self.lengths,
            &self.flags,
            &terms.ends,
            &terms.bytes,
            &starts,
            &postings,
            &self.ranges,
            model.as_bytes(),
            &(self.dimension as u32).to_le_bytes(),
            &self.vector_documents,
            &self.vector_scales,
            &self.vector_values,
        ];
        debug_assert_eq!(sections[Section::Model as usize], model.as_bytes());
        let size = HEADER_BYTES + sections.iter().map(|section| section.len() + 4).sum::<usize>();
        if u32::try_from(size).is_err() {
            return Err(WriteError::TooLarge);
        }
        let mut bytes = Vec::with_capacity(size);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([0; 6]);
        for section in sections {
            bytes.extend((section.len() as u32).to_le_bytes());
            bytes.extend(section);
        }
        let sum = crc32fast::hash(&bytes[HEADER_BYTES..]);
        bytes[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
        Ok(bytes)
    }

    /// The used terms in sorted order, where the postings of each begin, and the postings.
    fn postings(&self, lexicon: &Lexicon) -> (Strings, Vec<u8>, Vec<u8>) {
        let mut counts = vec![0_u32; lexicon.len()];
        self.terms.iter().for_each(|(term, _)| counts[*term as usize] += 1);
        let mut order: Vec<TermId> =
            (0..lexicon.len() as u32).filter(|term| counts[*term as usize] > 0).collect();
        order.sort_unstable_by_key(|&term| lexicon.term(term));
        let mut terms = Strings::default();
        let mut starts = Vec::with_capacity(order.len() * 4 + 4);
        let mut next = counts;
        let mut start = 0_u32;
        for &term in &order {
            terms.push(lexicon.term(term));
            starts.extend(start.to_le_bytes());
            start += std::mem::replace(&mut next[term as usize], start);
        }
        starts.extend(start.to_le_bytes());
        let mut postings = vec![0; self.terms.len()];
        let mut from = 0;
        for (document, &end) in (0_u32..).zip(&self.term_ends) {
            for &(term, count) in &self.terms[from..end] {
                let at = &mut next[term as usize];
                postings[*at as usize] = document << 8 | u32::from(count);
                *at += 1;
            }
            from = end;
        }
        (terms, starts, postings.into_iter().flat_map(u32::to_le_bytes).collect())
    }
}
