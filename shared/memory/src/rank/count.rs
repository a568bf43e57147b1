//! Counts the words of a query in documents, in their neighbours, and in sessions.

use super::Weights;
use super::question::{Group, Question};
use super::scope::Scope;
use crate::document::Kind;
use crate::index::{Index, Loaded};
use crate::segment::flags;

/// The scores of words, each divided by the highest that the query can reach.
pub(super) struct Counted {
    /// For each document of the index, with the words of neighbours.
    pub mix: Vec<f32>,
    /// For each document, without them.
    pub own: Vec<f32>,
    /// For each document, the share of the words, by their rarity, that it or its neighbours have.
    pub cover: Vec<f32>,
    /// For each session.
    pub session: Vec<f32>,
    /// The rarity of a usual word of the query.
    pub usual: f32,
    /// The same of all words.
    pub mass: f32,
    pub has_words: bool,
    /// For each fact and card, whether its text has a name of the query. Empty if the query has none.
    pub named: Vec<bool>,
}

/// In a large memory, a word in more documents than this is so common that neighbours with it say nothing.
const MAX_WINDOWS: u32 = 2000;

/// A document that contains a word.
#[derive(Clone, Copy)]
struct Found {
    document: u32,
    /// How often it contains the word itself, and how often others with the same beginning.
    exact: u32,
    similar: u32,
}

pub(super) fn count(index: &Index, question: &Question, scope: &Scope, weights: &Weights) -> Counted {
    let mut counted = Counted {
        mix: vec![0.0; index.documents],
        own: vec![0.0; index.documents],
        cover: vec![0.0; index.documents],
        session: vec![0.0; index.sessions],
        usual: 1.0,
        mass: 0.0,
        has_words: false,
        named: Vec::new(),
    };
    let (mut mass, mut session_mass, mut words) = (0.0, 0.0, 0);
    let mut found: Vec<Vec<Found>> = index.segments.iter().map(|_| Vec::new()).collect();
    let mut sessions = vec![0.0_f32; index.sessions];
    let mut touched: Vec<u32> = Vec::new();
    for group in &question.groups {
        let (mut exact, mut all) = (0, 0);
        for ((loaded, allowed), found) in index.segments.iter().zip(&scope.allowed).zip(&mut found) {
            find(loaded, allowed, group, found);
            exact += found.iter().filter(|found| found.exact > 0).count() as u32;
            all += found.len() as u32;
        }
        // A word that only occurs in other forms is as rare as these.
        let idf_here = idf(scope.documents, if exact > 0 { exact } else { all }) * group.weight;
        mass += idf_here;
        if !group.is_date {
            words += 1;
            counted.mass += idf_here;
        }
        counted.has_words |= all > 0;
        let with_windows = exact <= MAX_WINDOWS;
        for ((loaded, found), number) in index.segments.iter().zip(&found).zip(0..) {
            add_own(&mut counted.own, loaded, found, idf_here, weights);
            let mut near = Near::of(&mut counted, index, number, scope, weights, (idf_here, group.is_date));
            near.add_all(loaded, found, with_windows);
            let mut parts = loaded.segment.parts.iter().zip(&loaded.parts).peekable();
            for hit in found.iter().filter(|hit| hit.exact > 0) {
                while parts.next_if(|(part, _)| part.documents.end <= hit.document).is_some() {}
                let Some((_, live)) = parts.peek() else { break };
                let session = live.session;
                if sessions[session as usize] == 0.0 {
                    touched.push(session);
                }
                sessions[session as usize] += hit.exact as f32;
            }
        }
        let session_idf = idf(scope.sessions, touched.len() as u32) * group.weight;
        session_mass += session_idf;
        for at in touched.drain(..) {
            let count = std::mem::take(&mut sessions[at as usize]);
            let length = scope.session_lens[at as usize] as f32 / scope.mean_session_len;
            let norm =
                weights.session_saturation * (1.0 - weights.session_length + weights.session_length * length);
            counted.session[at as usize] +=
                session_idf * (weights.session_saturation + 1.0) * count / (count + norm);
        }
    }
    if words > 0 {
        counted.usual = counted.mass / words as f32;
    }
    counted.named = named(index, question, scope);
    let scores = [(&mut counted.mix, mass), (&mut counted.own, mass), (&mut counted.session, session_mass)];
    for (scores, mass) in scores {
        if mass > 0.0 {
            scores.iter_mut().for_each(|score| *score /= mass);
        }
    }
    counted
}

fn named(index: &Index, question: &Question, scope: &Scope) -> Vec<bool> {
    if question.names.is_empty() {
        return Vec::new();
    }
    let mut named = vec![false; index.documents];
    let mut found = Vec::new();
    for (loaded, allowed) in index.segments.iter().zip(&scope.allowed) {
        let segment = &loaded.segment;
        for group in &question.names {
            find(loaded, allowed, group, &mut found);
            for hit in found.iter().filter(|hit| hit.exact > 0) {
                let part = segment.documents[hit.document as usize].part;
                named[loaded.first + hit.document as usize] |= segment.parts[part as usize].kind != Kind::Raw;
            }
        }
    }
    named
}

fn idf(all: u32, having: u32) -> f32 {
    ((all as f32 - having as f32 + 0.5) / (having as f32 + 0.5)).ln_1p()
}

/// The documents of a segment that contain a word or one with the same beginning, in order.
fn find(loaded: &Loaded, allowed: &[bool], group: &Group, found: &mut Vec<Found>) {
    found.clear();
    let segment = &loaded.segment;
    let all = allowed.iter().all(|is_allowed| *is_allowed);
    let is_allowed = |document: u32| all || allowed[segment.documents[document as usize].part as usize];
    let mut exact: Vec<usize> = group.terms.iter().filter_map(|term| segment.find(term)).collect();
    exact.sort_unstable();
    let similar = group.prefix.as_ref().map_or(0..0, |prefix| segment.with_prefix(prefix));
    let others = similar.filter(|place| exact.binary_search(place).is_err());
    let mut lists = 0;
    for (place, is_exact) in
        exact.iter().map(|place| (*place, true)).chain(others.map(|place| (place, false)))
    {
        lists += 1;
        let of = segment.postings_of(place..place + 1).filter(|(document, _)| is_allowed(*document));
        found.extend(of.map(|(document, count)| {
            let count = u32::from(count);
            let (exact, similar) = if is_exact { (count, 0) } else { (0, count) };
            Found { document, exact, similar }
        }));
    }
    if lists > 1 {
        found.sort_by_key(|found| found.document);
        found.dedup_by(|next, first| {
            let is_same = next.document == first.document;
            if is_same {
                first.exact += next.exact;
                first.similar += next.similar;
            }
            is_same
        });
    }
}

fn add_own(own: &mut [f32], loaded: &Loaded, found: &[Found], idf: f32, weights: &Weights) {
    let score =
        |count: u32| idf * (weights.saturation + 1.0) * count as f32 / (count as f32 + weights.saturation);
    // Most counts are small.
    let small: [f32; 8] = std::array::from_fn(|count| score(count as u32));
    for hit in found {
        let count = hit.exact + hit.similar;
        own[loaded.first + hit.document as usize] +=
            small.get(count as usize).copied().unwrap_or_else(|| score(count));
    }
}

/// Adds the score of one word to documents and their neighbours. Documents come in order, so only five of them are
/// unfinished at any time.
struct Near<'a> {
    mix: &'a mut [f32],
    cover: &'a mut [f32],
    /// What the word adds to the cover.
    of_cover: f32,
    lens: &'a [u32],
    /// The document of the first slot, and the counts of it and the four after it.
    from: usize,
    slots: [f32; 5],
    /// The score is `factor * count / (count + base + slope * length)`.
    factor: f32,
    base: f32,
    slope: f32,
    weights: &'a Weights,
}

impl<'a> Near<'a> {
    fn of(
        counted: &'a mut Counted,
        index: &'a Index,
        number: usize,
        scope: &Scope,
        weights: &'a Weights,
        (idf, is_date): (f32, bool),
    ) -> Self {
        let first = index.segments[number].first;
        let count = index.segments[number].segment.documents.len();
        Self {
            mix: &mut counted.mix[first..first + count],
            cover: &mut counted.cover[first..first + count],
            of_cover: if is_date { 0.0 } else { idf },
            lens: &index.lens[first..first + count],
            from: 0,
            slots: [0.0; 5],
            factor: idf * (weights.saturation + 1.0),
            base: weights.saturation * (1.0 - weights.length),
            slope: weights.saturation * weights.length / scope.mean_len,
            weights,
        }
    }

    fn add_all(&mut self, loaded: &Loaded, found: &[Found], with_windows: bool) {
        let segment = &loaded.segment;
        for hit in found {
            let at = hit.document as usize;
            self.advance(at.saturating_sub(2));
            let place = at - self.from;
            let exact = hit.exact as f32;
            self.slots[place] += exact + self.weights.similar * hit.similar as f32;
            if hit.exact == 0 || !with_windows {
                continue;
            }
            let row = segment.documents[at];
            let part = &segment.parts[row.part as usize];
            if part.kind != Kind::Raw {
                continue;
            }
            let before = hit.document - part.documents.start;
            let after = part.documents.end - hit.document - 1;
            if before >= 2 {
                self.slots[place - 2] += exact * self.weights.two_after;
            }
            if before >= 1 {
                self.slots[place - 1] += exact * self.weights.next;
            }
            if after >= 1 {
                let is_answer =
                    row.flags & flags::QUESTION != 0 && segment.documents[at + 1].speaker != row.speaker;
                let question = if is_answer { self.weights.question } else { 0.0 };
                self.slots[place + 1] += exact * (self.weights.previous + question);
            }
            if after >= 2 {
                self.slots[place + 2] += exact * self.weights.two_before;
            }
        }
        self.advance(usize::MAX);
    }

    /// Finishes the documents before `to`.
    fn advance(&mut self, to: usize) {
        let steps = to.saturating_sub(self.from).min(5);
        for slot in 0..steps {
            let count = self.slots[slot];
            if count > 0.0 {
                let at = self.from + slot;
                let norm = self.base + self.slope * self.lens[at] as f32;
                self.mix[at] += self.factor * count / (count + norm);
                self.cover[at] += self.of_cover * count.min(1.0);
            }
        }
        self.slots.copy_within(steps.., 0);
        self.slots[5 - steps..].fill(0.0);
        self.from = to.max(self.from);
    }
}
