//! The fields of a file in which a term can occur.

/// Where in a file a term was found. The order is stored in the blob: only append new fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Path,
    /// Names of classes, elements, functions, settings and blocks.
    Identifier,
    Comment,
    /// Text that the theme editor shows.
    Label,
    /// Text that the shop's customers read, from the default locale.
    Text,
    Body,
}

pub const FIELDS: usize = 6;

/// How often a term occurs in each field. 255 means 255 or more.
pub type Counts = [u8; FIELDS];

/// A term of a file with its counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    pub term: u32,
    pub counts: Counts,
}

/// Counts terms field by field. It is reused from file to file, so most files need no new allocation.
#[derive(Default)]
pub struct FieldCounter {
    /// Indexed by term. All zero except for the touched terms.
    counts: Vec<Counts>,
    touched: Vec<u32>,
}

impl FieldCounter {
    pub fn add(&mut self, term: u32, field: Field, times: u8) {
        let place = term as usize;
        if place >= self.counts.len() {
            self.counts.resize(place + 1 + place / 2, Counts::default());
        }
        let counts = &mut self.counts[place];
        if *counts == Counts::default() {
            self.touched.push(term);
        }
        counts[field as usize] = counts[field as usize].saturating_add(times);
    }

    /// Returns the terms of one file, sorted by number, and resets the counter.
    pub fn take(&mut self) -> Vec<FieldTerm> {
        self.touched.sort_unstable();
        let counts = &mut self.counts;
        let take = |term: u32| FieldTerm { term, counts: std::mem::take(&mut counts[term as usize]) };
        self.touched.drain(..).map(take).collect()
    }
}
