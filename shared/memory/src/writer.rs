//! From parts to a segment.

use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::analysis::{Analyser, language_of};
use crate::dates::{self, Day, day_of};
use crate::document::{Document, Part};
use crate::segment::{Builder, DAYS, NewDocument, NewPart, WriteError, flags};
use crate::tokens::{self, Words};
use crate::vectors;

/// Collects parts and writes a segment.
#[derive(Default)]
pub struct Writer {
    parts: Vec<Part>,
    model: String,
}

impl Writer {
    pub fn new() -> Self {
        Self::default()
    }

    /// For documents with vectors of a model.
    pub fn with_model(model: impl Into<String>) -> Self {
        Self { parts: Vec::new(), model: model.into() }
    }

    /// A later part replaces an earlier one with the same key.
    pub fn add(&mut self, part: Part) {
        self.parts.push(part);
    }

    /// The segment's bytes. They depend on the parts alone, not on the order in which they were added.
    pub fn finish(mut self) -> Result<Vec<u8>, WriteError> {
        // The last of several parts with one key comes first, and is kept.
        self.parts.reverse();
        self.parts.sort_by(|a, b| a.key.cmp(&b.key));
        self.parts.dedup_by(|later, first| later.key == first.key);
        let mut builder = Builder::new(&self.model);
        let mut analyser = Analyser::default();
        let mut words = Words::default();
        for part in &self.parts {
            let days: Vec<Option<Day>> =
                part.documents.iter().map(|document| day(document, &part.zone, &mut words)).collect();
            let date = part.date.map(day_of).or_else(|| days.iter().find_map(|day| *day));
            builder.part(&NewPart {
                key: &part.key,
                session: &part.session,
                namespace: &part.namespace,
                kind: part.kind,
                date,
            });
            for (document, day) in part.documents.iter().zip(days) {
                let day = day.or(date);
                let mut read = analyser.read(&document.text, day);
                read.times.ranges.retain(|range| DAYS.contains(&range.start) && DAYS.contains(&range.end));
                let offered = read.offered;
                let all = [
                    (read.times.has_time, flags::TIME),
                    (offered.number, flags::NUMBER),
                    (offered.name, flags::NAME),
                    (offered.question, flags::QUESTION),
                    (offered.pure_question, flags::PURE_QUESTION),
                    (document.corrected_until.is_some(), flags::CORRECTED),
                ];
                let vector = document.vector.as_deref().and_then(vectors::quantized);
                let new = NewDocument {
                    key: &document.key,
                    speaker: &document.speaker,
                    time: document.time.map(jiff::Timestamp::as_second),
                    date: day,
                    date_text: &document.date_text,
                    text: &document.text,
                    corrected_until: document.corrected_until.map(day_of),
                    len: read.len,
                    flags: all.iter().filter(|(is, _)| *is).map(|(_, flag)| flag).sum(),
                    language: read.language,
                    ranges: &read.times.ranges,
                    vector: vector.as_ref().map(|(scale, values)| (*scale, values.as_slice())),
                };
                builder.document(&new, read.terms.into_iter())?;
            }
        }
        builder.finish(&analyser.lexicon)
    }
}

/// The day on which a document was written.
fn day(document: &Document, zone: &TimeZone, words: &mut Words) -> Option<Day> {
    if let Some(time) = document.time {
        let date: Date = zone.to_datetime(time).date();
        return Some(day_of(date));
    }
    if document.date_text.is_empty() {
        return None;
    }
    let text = tokens::normalized(&document.date_text);
    words.read(&text);
    let times = dates::read(&text, words, language_of(words), None);
    times.ranges.first().map(|range| range.start)
}
