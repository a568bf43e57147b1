//! Finds what people have said: an index over messages, facts and cards.
//!
//! Everything here is a pure function or a plain type, as in the crate `domain`. Time is an argument.
//!
//! - [`Writer`]: from [`Part`]s to the bytes of a [`Segment`]
//! - [`Index`]: segments that are searched as one, and merged into one
//! - [`Query`], [`Answer`]: a search; [`rank`] holds all weights
//! - [`fingerprint`], [`similarity`]: comparison of texts that are no longer there
//! - [`Index::telling_words`], [`word_hashes`]: whether a text speaks of a fact that is no longer there

mod analysis;
mod cues;
mod dates;
mod document;
mod fingerprint;
mod index;
mod language;
pub mod rank;
mod search;
mod segment;
mod stop_words;
mod telling;
mod tokens;
mod vectors;
mod writer;

pub use document::{Document, Kind, Part};
pub use fingerprint::{FINGERPRINT, SAYS, fingerprint, says, share_of_words, similarity};
pub use index::{Index, Vectors, embedded_text};
pub use search::{Answer, Hit, Layer, Query, Vector};
pub use segment::{Segment, SegmentError, VERSION, WriteError};
pub use telling::word_hashes;
pub use writer::Writer;

#[cfg(test)]
mod tests;
