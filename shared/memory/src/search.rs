//! What a search asks, and what it answers.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::document::Kind;

#[derive(Clone, Debug)]
pub struct Query<'a> {
    /// Only the first 8 KiB are read, and of them the first 64 different words.
    pub text: &'a str,
    /// At most so many hits.
    pub limit: usize,
    /// Only parts of these kinds. Empty: all kinds.
    pub kinds: &'a [Kind],
    /// Only parts of this namespace. `None`: parts of all namespaces. `Some("")`: parts without one.
    pub namespace: Option<&'a str>,
    /// The time and the zone of the question. "Yesterday" is the day before.
    pub now: Timestamp,
    pub zone: TimeZone,
    /// The speaker that "I" and "my" mean.
    pub me: Option<&'a str>,
    /// The speaker that "you" and "your" mean.
    pub you: Option<&'a str>,
    pub vector: Option<Vector<'a>>,
}

impl<'a> Query<'a> {
    /// A query for ten hits of all kinds and namespaces, without a vector.
    pub fn new(text: &'a str, now: Timestamp, zone: TimeZone) -> Self {
        Self { text, limit: 10, kinds: &[], namespace: None, now, zone, me: None, you: None, vector: None }
    }
}

/// The embedding of a query's text.
#[derive(Clone, Copy, Debug)]
pub struct Vector<'a> {
    /// Segments with vectors of another model are searched without vectors.
    pub model: &'a str,
    pub values: &'a [f32],
}

/// What took part in a ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    Words,
    Speakers,
    Dates,
    /// What the question asks for: "when", "how many", "who".
    Cues,
    Vectors,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Answer<'a> {
    /// The best first.
    pub hits: Vec<Hit<'a>>,
    pub layers: Vec<Layer>,
}

/// A document that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit<'a> {
    pub part: &'a str,
    pub session: &'a str,
    pub namespace: &'a str,
    /// The document's key.
    pub document: &'a str,
    pub kind: Kind,
    pub speaker: &'a str,
    pub time: Option<Timestamp>,
    /// The day on which it was written.
    pub date: Option<Date>,
    /// The date as it was given, if it was given as text.
    pub date_text: &'a str,
    pub text: &'a str,
    pub is_question: bool,
    pub corrected_until: Option<Date>,
    /// From 0. Scores of different queries can't be compared.
    pub score: f32,
    /// From 0 to 1: how much of what the query says was found in the document and beside it. Rare words count more. A
    /// named speaker and a date count like a word each. It can be compared between queries.
    pub match_share: f32,
}
