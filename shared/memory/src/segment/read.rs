//! Reading a segment.

use std::ops::Range;

use jiff::Timestamp;
use words::Language;

use super::{
    DAYS, HEADER_BYTES, MAGIC, MAX_DIMENSION, MAX_DOCUMENTS, NO_DAY, NO_TIME, NONE, SECTIONS, Section,
    SegmentError, VERSION,
};
use crate::dates::{Day, Days};
use crate::document::Kind;

/// A loaded segment.
pub struct Segment {
    bytes: Vec<u8>,
    sections: [Range<usize>; SECTIONS],
    pub(crate) parts: Vec<PartRow>,
    pub(crate) documents: Vec<DocumentRow>,
    pub(crate) ranges: Vec<(u32, Days)>,
    pub(crate) dimension: usize,
}

pub(crate) struct PartRow {
    key: u32,
    session: u32,
    namespace: u32,
    pub kind: Kind,
    pub date: Option<Day>,
    pub documents: Range<u32>,
}

/// What every search reads of a document.
#[derive(Clone, Copy)]
pub(crate) struct DocumentRow {
    pub part: u32,
    pub speaker: u32,
    pub len: u32,
    pub flags: u8,
    pub language: Language,
}

impl Segment {
    /// Checks the bytes completely. They may come from anywhere: wrong ones give an error, and take no more memory than a
    /// few times their own size.
    pub fn load(bytes: Vec<u8>) -> Result<Self, SegmentError> {
        if bytes.len() < HEADER_BYTES || bytes[..4] != MAGIC {
            return Err(SegmentError::NotASegment);
        }
        let version = u16::from_le_bytes([bytes[4], bytes[5]]);
        if version != VERSION {
            return Err(SegmentError::Version(version));
        }
        let sum = u32_of(&bytes[HEADER_BYTES - 4..HEADER_BYTES]);
        if bytes[6..8] != [0, 0] || crc32fast::hash(&bytes[HEADER_BYTES..]) != sum {
            return Err(SegmentError::Damaged);
        }
        Self::check(bytes).ok_or(SegmentError::Damaged)
    }

    fn check(bytes: Vec<u8>) -> Option<Self> {
        let mut sections: [Range<usize>; SECTIONS] = std::array::from_fn(|_| 0..0);
        let mut at = HEADER_BYTES;
        for section in &mut sections {
            let start = at.checked_add(4)?;
            let len = u32_of(bytes.get(at..start)?) as usize;
            at = start.checked_add(len)?;
            *section = start..at;
        }
        if at != bytes.len() {
            return None;
        }
        let mut segment = Self {
            bytes,
            sections,
            parts: Vec::new(),
            documents: Vec::new(),
            ranges: Vec::new(),
            dimension: 0,
        };
        let names = segment.strings(Section::NameEnds, Section::Names)?;
        segment.parts(names)?;
        segment.documents(names)?;
        segment.postings()?;
        segment.ranges()?;
        segment.vectors()?;
        Some(segment)
    }

    /// Checks a column of strings. Returns their number.
    fn strings(&self, ends: Section, bytes: Section) -> Option<usize> {
        let text = std::str::from_utf8(self.section(bytes)).ok()?;
        let mut before = 0;
        for end in self.numbers(ends)? {
            let end = end as usize;
            if end < before || !text.is_char_boundary(end) {
                return None;
            }
            before = end;
        }
        (before == text.len()).then_some(self.section(ends).len() / 4)
    }

    fn parts(&mut self, names: usize) -> Option<()> {
        let rows = self.section(Section::Parts);
        let documents = self.section(Section::Flags).len() / 2;
        if !rows.len().is_multiple_of(24) || documents > MAX_DOCUMENTS {
            return None;
        }
        let mut parts: Vec<PartRow> = Vec::with_capacity(rows.len() / 24);
        for row in rows.chunks_exact(24) {
            let field = |place: usize| u32_of(&row[place * 4..]);
            let (key, session, namespace) = (field(0), field(1), field(2));
            if [key, session, namespace].into_iter().any(|name| name as usize >= names) {
                return None;
            }
            // Names are unique and sorted, so keys ascend if their numbers do.
            if parts.last().is_some_and(|before| before.key >= key) {
                return None;
            }
            let kind = *Kind::ALL.get(field(3) as usize)?;
            let date = day(field(4) as i32)?;
            let first = field(5);
            if let Some(before) = parts.last_mut() {
                before.documents.end = first;
            }
            parts.push(PartRow { key, session, namespace, kind, date, documents: first..documents as u32 });
        }
        let starts_at_zero = parts.first().map_or(documents == 0, |part| part.documents.start == 0);
        if !starts_at_zero || parts.iter().any(|part| part.documents.start > part.documents.end) {
            return None;
        }
        self.parts = parts;
        Some(())
    }

    fn documents(&mut self, names: usize) -> Option<()> {
        let flags = self.section(Section::Flags);
        let count = flags.len() / 2;
        let keys = self.strings(Section::KeyEnds, Section::Keys)?;
        let texts = self.strings(Section::TextEnds, Section::Texts)?;
        let has_all = flags.len().is_multiple_of(2)
            && keys == count
            && texts == count
            && self.section(Section::Times).len() == count * 8
            && [Section::Speakers, Section::Dates, Section::DateTexts, Section::Corrected, Section::Lengths]
                .into_iter()
                .all(|column| self.section(column).len() == count * 4);
        if !has_all {
            return None;
        }
        for date_text in self.numbers(Section::DateTexts)? {
            if date_text != NONE && date_text as usize >= names {
                return None;
            }
        }
        for column in [Section::Dates, Section::Corrected] {
            for value in self.numbers(column)? {
                day(value as i32)?;
            }
        }
        for time in self.section(Section::Times).chunks_exact(8) {
            let time = i64::from_le_bytes(time.try_into().ok()?);
            if time != NO_TIME && Timestamp::from_second(time).is_err() {
                return None;
            }
        }
        let mut documents = Vec::with_capacity(count);
        let parts =
            (0_u32..).zip(&self.parts).flat_map(|(part, row)| row.documents.clone().map(move |_| part));
        let columns = self.numbers(Section::Speakers)?.zip(self.numbers(Section::Lengths)?);
        for ((part, (speaker, len)), flags) in parts.zip(columns).zip(flags.chunks_exact(2)) {
            let language = *Language::ALL.get(usize::from(flags[1]))?;
            if speaker as usize >= names {
                return None;
            }
            documents.push(DocumentRow { part, speaker, len, flags: flags[0], language });
        }
        if documents.len() != count {
            return None;
        }
        self.documents = documents;
        Some(())
    }

    fn postings(&self) -> Option<()> {
        let terms = self.strings(Section::TermEnds, Section::Terms)?;
        for place in 1..terms {
            if self.term(place - 1) >= self.term(place) {
                return None;
            }
        }
        let names = self.section(Section::NameEnds).len() / 4;
        for place in 1..names {
            if self.name_bytes(place - 1) >= self.name_bytes(place) {
                return None;
            }
        }
        let postings = self.section(Section::Postings);
        let starts = self.section(Section::PostingStarts);
        if !postings.len().is_multiple_of(4) || starts.len() != terms * 4 + 4 {
            return None;
        }
        let mut start = 0;
        for (place, next) in self.numbers(Section::PostingStarts)?.enumerate() {
            let next = next as usize;
            if (place == 0 && next != 0) || next < start || next * 4 > postings.len() {
                return None;
            }
            let mut before = None;
            for posting in postings[start * 4..next * 4].chunks_exact(4) {
                let document = u32_of(posting) >> 8;
                if before.is_some_and(|before| before >= document)
                    || document as usize >= self.documents.len()
                {
                    return None;
                }
                before = Some(document);
            }
            start = next;
        }
        (start * 4 == postings.len()).then_some(())
    }

    fn ranges(&mut self) -> Option<()> {
        let rows = self.section(Section::Ranges);
        if !rows.len().is_multiple_of(12) {
            return None;
        }
        let mut ranges: Vec<(u32, Days)> = Vec::with_capacity(rows.len() / 12);
        for row in rows.chunks_exact(12) {
            let document = u32_of(row);
            let range = Days { start: u32_of(&row[4..]) as i32, end: u32_of(&row[8..]) as i32 };
            let is_sorted = ranges.last().is_none_or(|(before, _)| *before <= document);
            let is_range =
                range.start <= range.end && DAYS.contains(&range.start) && DAYS.contains(&range.end);
            if !is_sorted || !is_range || document as usize >= self.documents.len() {
                return None;
            }
            ranges.push((document, range));
        }
        self.ranges = ranges;
        Some(())
    }

    fn vectors(&mut self) -> Option<()> {
        std::str::from_utf8(self.section(Section::Model)).ok()?;
        let dimension = self.section(Section::Dimension);
        if dimension.len() != 4 {
            return None;
        }
        let dimension = u32_of(dimension) as usize;
        let mut before = None;
        let mut count = 0;
        for document in self.numbers(Section::VectorDocuments)? {
            if before.is_some_and(|before| before >= document) || document as usize >= self.documents.len() {
                return None;
            }
            before = Some(document);
            count += 1;
        }
        let has_all = dimension <= MAX_DIMENSION
            && self.section(Section::VectorScales).len() == count * 4
            && self.section(Section::VectorValues).len() == count * dimension;
        if !has_all {
            return None;
        }
        self.dimension = dimension;
        Some(())
    }

    fn section(&self, section: Section) -> &[u8] {
        &self.bytes[self.sections[section as usize].clone()]
    }

    fn numbers(&self, section: Section) -> Option<impl Iterator<Item = u32>> {
        let bytes = self.section(section);
        bytes.len().is_multiple_of(4).then(|| bytes.chunks_exact(4).map(u32_of))
    }

    fn number(&self, section: Section, place: usize) -> u32 {
        self.section(section).get(place * 4..place * 4 + 4).map_or(NONE, u32_of)
    }

    fn string_bytes(&self, ends: Section, bytes: Section, place: usize) -> &[u8] {
        let start = if place == 0 { 0 } else { self.number(ends, place - 1) };
        let end = self.number(ends, place);
        self.section(bytes).get(start as usize..end as usize).unwrap_or_default()
    }

    fn string(&self, ends: Section, bytes: Section, place: usize) -> &str {
        std::str::from_utf8(self.string_bytes(ends, bytes, place)).unwrap_or_default()
    }

    fn name_bytes(&self, place: usize) -> &[u8] {
        self.string_bytes(Section::NameEnds, Section::Names, place)
    }

    /// The bytes, as they were loaded.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The keys of the parts that this segment has or deletes.
    pub fn part_keys(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| self.part_key(part))
    }

    /// The number of names.
    pub(crate) fn names(&self) -> usize {
        self.section(Section::NameEnds).len() / 4
    }

    pub(crate) fn rows(&self, part: &PartRow) -> &[DocumentRow] {
        self.documents.get(part.documents.start as usize..part.documents.end as usize).unwrap_or_default()
    }

    pub(crate) fn name(&self, number: u32) -> &str {
        self.string(Section::NameEnds, Section::Names, number as usize)
    }

    pub(crate) fn part_key(&self, part: &PartRow) -> &str {
        self.name(part.key)
    }

    pub(crate) fn part_session(&self, part: &PartRow) -> &str {
        self.name(part.session)
    }

    pub(crate) fn part_namespace(&self, part: &PartRow) -> &str {
        self.name(part.namespace)
    }

    pub(crate) fn document_key(&self, document: u32) -> &str {
        self.string(Section::KeyEnds, Section::Keys, document as usize)
    }

    pub(crate) fn text(&self, document: u32) -> &str {
        self.string(Section::TextEnds, Section::Texts, document as usize)
    }

    pub(crate) fn seconds(&self, document: u32) -> Option<i64> {
        let place = document as usize * 8;
        let bytes = self.section(Section::Times).get(place..place + 8)?;
        Some(i64::from_le_bytes(bytes.try_into().ok()?)).filter(|time| *time != NO_TIME)
    }

    pub(crate) fn date(&self, document: u32) -> Option<Day> {
        day(self.number(Section::Dates, document as usize) as i32).flatten()
    }

    pub(crate) fn date_text(&self, document: u32) -> &str {
        match self.number(Section::DateTexts, document as usize) {
            NONE => "",
            number => self.name(number),
        }
    }

    pub(crate) fn corrected_until(&self, document: u32) -> Option<Day> {
        day(self.number(Section::Corrected, document as usize) as i32).flatten()
    }

    pub(crate) fn terms(&self) -> usize {
        self.section(Section::TermEnds).len() / 4
    }

    pub(crate) fn term(&self, place: usize) -> &[u8] {
        self.string_bytes(Section::TermEnds, Section::Terms, place)
    }

    /// The first term that is not before `term`.
    fn first_from(&self, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.terms());
        while low < high {
            let middle = (low + high) / 2;
            if is_before(self.term(middle)) { low = middle + 1 } else { high = middle }
        }
        low
    }

    pub(crate) fn find(&self, term: &[u8]) -> Option<usize> {
        let place = self.first_from(|other| other < term);
        (place < self.terms() && self.term(place) == term).then_some(place)
    }

    /// The terms that begin with `prefix`.
    pub(crate) fn with_prefix(&self, prefix: &[u8]) -> Range<usize> {
        let start = self.first_from(|other| other < prefix);
        let end = self.first_from(|other| other < prefix || other.starts_with(prefix));
        start..end.max(start)
    }

    /// The documents that contain one of some neighbouring terms, with their counts, term by term.
    pub(crate) fn postings_of(&self, terms: Range<usize>) -> impl Iterator<Item = (u32, u8)> {
        let start = self.number(Section::PostingStarts, terms.start) as usize;
        let end = self.number(Section::PostingStarts, terms.end) as usize;
        let bytes = self.section(Section::Postings).get(start * 4..end * 4).unwrap_or_default();
        bytes.chunks_exact(4).map(u32_of).map(|posting| (posting >> 8, posting as u8))
    }

    pub(crate) fn model(&self) -> &str {
        std::str::from_utf8(self.section(Section::Model)).unwrap_or_default()
    }

    /// The vectors: document, scale, values.
    pub(crate) fn all_vectors(&self) -> impl Iterator<Item = (u32, f32, &[u8])> {
        let documents = self.section(Section::VectorDocuments).chunks_exact(4).map(u32_of);
        let scales =
            self.section(Section::VectorScales).chunks_exact(4).map(|bytes| f32::from_bits(u32_of(bytes)));
        let values = self.section(Section::VectorValues).chunks_exact(self.dimension.max(1));
        documents.zip(scales).zip(values).map(|((document, scale), values)| (document, scale, values))
    }
}

fn u32_of(bytes: &[u8]) -> u32 {
    match bytes {
        [a, b, c, d, ..] => u32::from_le_bytes([*a, *b, *c, *d]),
        _ => NONE,
    }
}

/// `None` for a number that is not a day.
fn day(number: i32) -> Option<Option<Day>> {
    match number {
        NO_DAY => Some(None),
        _ => DAYS.contains(&number).then_some(Some(number)),
    }
}
