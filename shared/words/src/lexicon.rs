//! Terms and their numbers.

use std::hash::BuildHasher;
use std::ops::RangeInclusive;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxBuildHasher;

/// A term's number in its [`Lexicon`].
pub type TermId = u32;

/// Numbers terms in the order in which they come. It only grows.
///
/// An index has tens of thousands of terms, and a change may copy them all. So they are stored in one string.
#[derive(Clone, Default)]
pub struct Lexicon {
    text: String,
    /// Where each term ends in `text`.
    ends: Vec<u32>,
    ids: HashTable<TermId>,
}

impl Lexicon {
    pub fn with_capacity(terms: usize) -> Self {
        Self { text: String::new(), ends: Vec::with_capacity(terms), ids: HashTable::with_capacity(terms) }
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The term of a number that [`Lexicon::intern`] gave.
    pub fn term(&self, id: TermId) -> &str {
        slice(&self.text, &self.ends, id)
    }

    /// The terms with a length in `lengths`, in bytes.
    pub fn of_length(&self, lengths: RangeInclusive<u32>) -> impl Iterator<Item = TermId> {
        let starts = std::iter::once(&0).chain(&self.ends);
        let terms = (0..).zip(starts.zip(&self.ends));
        terms.filter(move |(_, (start, end))| lengths.contains(&(*end - *start))).map(|(term, _)| term)
    }

    pub fn get(&self, term: &str) -> Option<TermId> {
        self.ids.find(hash(term), |&id| self.term(id) == term).copied()
    }

    /// The term's number. A new term gets the next one.
    pub fn intern(&mut self, term: &str) -> TermId {
        let Self { text, ends, ids } = self;
        let of = |id: TermId| slice(text, ends, id);
        let id = ends.len() as TermId;
        match ids.entry(hash(term), |&id| of(id) == term, |&id| hash(of(id))) {
            Entry::Occupied(known) => return *known.get(),
            Entry::Vacant(free) => free.insert(id),
        };
        text.push_str(term);
        ends.push(text.len() as u32);
        id
    }
}

fn slice<'a>(text: &'a str, ends: &[u32], id: TermId) -> &'a str {
    let id = id as usize;
    let start = if id == 0 { 0 } else { ends[id - 1] };
    &text[start as usize..ends[id] as usize]
}

fn hash(term: &str) -> u64 {
    FxBuildHasher.hash_one(term)
}
