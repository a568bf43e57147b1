//! The fields that a term of a file can stand in.

/// Where in a file a term was found. The order is that of the blob: append only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Path,
    /// Names of things: classes, elements, functions, settings, blocks.
    Identifier,
    Comment,
    /// What the theme editor shows.
    Label,
    /// What the shop's customers read, from the default locale.
    Text,
    Body,
}

pub const FIELDS: usize = 6;

/// How often a term stands in each field; 255 stands for more.
pub type Counts = [u8; FIELDS];

/// A term of a file with its counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    pub term: u32,
    pub counts: Counts,
}

/// Adds up terms, field by field. It is used for one file after the other, so that nothing is allocated for most.
#[derive(Default)]
pub struct FieldCounter {
    /// By term; all zero but for the terms that were touched.
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

    /// The terms of one file in the order of their numbers; the next file begins anew.
    pub fn take(&mut self) -> Vec<FieldTerm> {
        self.touched.sort_unstable();
        let counts = &mut self.counts;
        let take = |term: u32| FieldTerm { term, counts: std::mem::take(&mut counts[term as usize]) };
        self.touched.drain(..).map(take).collect()
    }
}
