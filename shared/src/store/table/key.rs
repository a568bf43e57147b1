//! Keys of the table, and what a failed condition on an item means.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use jiff::Timestamp;
use sha2::{Digest, Sha256};

/// The key of one item.
#[derive(Clone, Debug)]
pub struct Key {
    pub pk: String,
    pub sk: String,
    /// The meaning of a failed condition on this item. It is ignored when two keys are compared.
    guard: Guard,
}

/// The item whose condition failed in a transaction. Items that callers need not distinguish are `Other`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    Agent,
    Chat,
    /// The mark of the live turn of a conversation.
    Conversation,
    Document,
    Enrichment,
    ModelSettings,
    /// The record of an `Idempotency-Key`.
    Idempotency,
    LogHead,
    /// The mark of an unfinished import of logs.
    LogImport,
    LoggedOnce,
    /// A version of a notebook.
    Notebook,
    Occurrence,
    Project,
    Proposal,
    /// The requests of a month.
    Quota,
    Run,
    RunEvent,
    /// A stored reply of a run, or the result of one of its calls.
    RunStep,
    /// The spending of a day or a month.
    Spend,
    /// The summary of the oldest messages of a conversation.
    Summary,
    Theme,
    Other,
}

impl Key {
    #[must_use]
    pub fn new(pk: String, sk: impl ToString) -> Self {
        Self { pk, sk: sk.to_string(), guard: Guard::Other }
    }

    #[must_use]
    pub fn guard(&self) -> Guard {
        self.guard
    }

    pub(in crate::store) fn guards(self, guard: Guard) -> Self {
        Self { guard, ..self }
    }

    fn parts(&self) -> (&str, &str) {
        (&self.pk, &self.sk)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

/// A partition, limited to the sort keys that begin with `prefix`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    pub pk: String,
    pub prefix: &'static str,
}

/// A time as text of fixed width, which sorts like the time.
#[must_use]
pub fn sortable(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// The SHA-256 of a text that may contain anything, in hexadecimal.
pub(in crate::store) fn hash(text: &str) -> String {
    domain::hex(&Sha256::digest(text.as_bytes()))
}

/// Stands where a key has no agent, no action or no provider.
pub(in crate::store) const NONE: &str = "-";

/// The text of a part, or of its absence.
pub(in crate::store) fn or_none(part: Option<impl std::fmt::Display>) -> String {
    part.map_or_else(|| NONE.to_owned(), |part| part.to_string())
}
