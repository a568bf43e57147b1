mod damage;
mod hostile;
mod languages;
mod questions;
mod segments;
mod vectors;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::{Document, Index, Kind, Part, Query, Writer};

/// 2026-03-10, a Tuesday.
fn now() -> Timestamp {
    "2026-03-10T12:00:00Z".parse().unwrap()
}

fn query(text: &str) -> Query<'_> {
    Query::new(text, now(), TimeZone::UTC)
}

/// A document with the key `key` that a speaker says at a time.
fn said(key: &str, speaker: &str, time: &str, text: &str) -> Document {
    Document {
        key: key.to_owned(),
        speaker: speaker.to_owned(),
        time: (!time.is_empty()).then(|| time.parse().unwrap()),
        text: text.to_owned(),
        ..Document::default()
    }
}

fn part(key: &str, documents: Vec<Document>) -> Part {
    Part { key: key.to_owned(), documents, kind: Kind::Raw, ..Part::deletion("") }
}

fn segment(parts: impl IntoIterator<Item = Part>) -> Vec<u8> {
    let mut writer = Writer::with_model("model");
    parts.into_iter().for_each(|part| writer.add(part));
    writer.finish().unwrap()
}

fn index(parts: impl IntoIterator<Item = Part>) -> Index {
    Index::load(vec![segment(parts)]).unwrap()
}

/// The keys of the documents that a search finds, the best first.
fn found(index: &Index, query: &Query<'_>) -> Vec<String> {
    index.search(query).hits.iter().map(|hit| hit.document.to_owned()).collect()
}
