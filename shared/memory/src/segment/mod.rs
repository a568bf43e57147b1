//! A segment: an immutable sequence of bytes that holds parts, their documents and their postings.
//!
//! Layout: magic `LLMI`, version (u16), two zero bytes, CRC-32 of the rest (u32), then the sections in the order of
//! [`Section`]. Each begins with its length in bytes (u32). All numbers are little-endian. Names (keys of parts,
//! sessions, speakers) and terms are stored once, in sorted order, so the bytes depend only on the parts.
//!
//! A segment is checked completely when it is loaded. Then it is read in place, except the small columns that every
//! search needs.

mod read;
mod write;

pub use read::Segment;
pub(crate) use read::{DocumentRow, PartRow};
pub(crate) use write::{Builder, NewDocument, NewPart};

pub(crate) const MAGIC: [u8; 4] = *b"LLMI";
/// Increment this with every change of the layout or of the tokenizer. Older segments are built again.
pub const VERSION: u16 = 2;
pub(crate) const HEADER_BYTES: usize = 12;

/// A posting holds a document's number in 24 bits.
pub(crate) const MAX_DOCUMENTS: usize = 1 << 24;
pub(crate) const MAX_DIMENSION: usize = 4096;

/// No number, no date.
pub(crate) const NONE: u32 = u32::MAX;
pub(crate) const NO_DAY: i32 = i32::MIN;
pub(crate) const NO_TIME: i64 = i64::MIN;
/// Days between the years -9999 and 9999.
pub(crate) const DAYS: std::ops::RangeInclusive<i32> = -4_371_587..=2_932_896;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    NameEnds,
    Names,
    /// Six numbers per part: key, session, namespace, kind, date, first document.
    Parts,
    KeyEnds,
    Keys,
    TextEnds,
    Texts,
    Speakers,
    Times,
    Dates,
    DateTexts,
    Corrected,
    Lengths,
    /// Two bytes per document: flags and language.
    Flags,
    TermEnds,
    Terms,
    PostingStarts,
    /// The document's number in the upper 24 bits, the count in the lower 8.
    Postings,
    /// Three numbers per range: document, first day, last day.
    Ranges,
    Model,
    /// The dimension.
    Dimension,
    /// The documents that have vectors.
    VectorDocuments,
    VectorScales,
    VectorValues,
}

pub(crate) const SECTIONS: usize = Section::VectorValues as usize + 1;

pub(crate) mod flags {
    pub const TIME: u8 = 1;
    pub const NUMBER: u8 = 2;
    pub const NAME: u8 = 4;
    pub const QUESTION: u8 = 8;
    pub const PURE_QUESTION: u8 = 16;
    /// The text is no longer true.
    pub const CORRECTED: u8 = 32;
}

/// Why bytes are not a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    #[error("the bytes are not a segment of memory")]
    NotASegment,
    #[error("the segment has version {0}, and this program reads version {VERSION}")]
    Version(u16),
    #[error("the segment is damaged")]
    Damaged,
}

/// Why parts can't become a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    #[error("a segment has at most {MAX_DOCUMENTS} documents")]
    TooManyDocuments,
    #[error("a segment has at most 4 GiB")]
    TooLarge,
    #[error("a vector has at most {MAX_DIMENSION} values, and all vectors of a segment have the same number")]
    Dimension,
}
