//! What goes into memory: parts, each with its documents.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// What a part holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Summaries of sessions.
    Card,
    /// Facts.
    Memory,
    /// Messages as people wrote them. Only here do neighbouring documents belong together.
    Raw,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Card, Self::Memory, Self::Raw];
}

/// The unit of change: a part in a newer segment replaces the part with the same key in older ones. A part without
/// documents deletes it.
#[derive(Clone, Debug)]
pub struct Part {
    /// For example `cht_…/2026-11-26`.
    pub key: String,
    /// Parts of one session are one text for the words that only the session has in common. May be empty: then the
    /// part is its own session.
    pub session: String,
    /// May be empty.
    pub namespace: String,
    pub kind: Kind,
    /// The day of the session. Without it, the day of the first document that has one.
    pub date: Option<Date>,
    /// The zone in which "yesterday" is meant.
    pub zone: TimeZone,
    /// In their order.
    pub documents: Vec<Document>,
}

impl Part {
    /// A part that deletes the one with the same key.
    pub fn deletion(key: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            session: String::new(),
            namespace: String::new(),
            kind: Kind::Raw,
            date: None,
            zone: TimeZone::UTC,
            documents: Vec::new(),
        }
    }
}

/// A message, a fact or a card.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The id of the message, fact or card.
    pub key: String,
    /// Who says it; of a fact, whom it is about. May be empty.
    pub speaker: String,
    pub time: Option<Timestamp>,
    /// A date as free text, such as "1:56 pm on 8 May, 2023". It counts if there is no `time`.
    pub date_text: String,
    /// Only the first 20,000 words are searched. The text is kept whole.
    pub text: String,
    /// The last day on which the text was true. Such a document is found behind the current ones, unless the query asks
    /// for the past.
    pub corrected_until: Option<Date>,
    pub vector: Option<Vec<f32>>,
}
