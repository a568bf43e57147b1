//! Ranking: how well each document answers a query.
//!
//! A document counts the words of its neighbours too, because an answer often lies beside the words of the question.
//! All scores of words are divided by the highest that the query's words can reach. So they can be added to the other
//! features, which are between 0 and about 1.

mod alike;
mod count;
mod question;
mod scope;

use std::cmp::Ordering;
use std::sync::LazyLock;

use jiff::Timestamp;

use crate::dates::{Days, date_of};
use crate::document::Kind;
use crate::index::{Index, Loaded};
use crate::search::{Answer, Hit, Layer, Query};
use crate::segment::{DocumentRow, flags};
use count::Counted;
use question::Question;
pub(crate) use question::few;
use scope::Scope;

/// All parameters of ranking. Searches use [`Weights::TUNED`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// How much a document counts the words of its neighbours.
    pub previous: f32,
    pub next: f32,
    pub two_before: f32,
    pub two_after: f32,
    /// The words of a question by another speaker, in the answer.
    pub question: f32,
    /// BM25: how slowly repetitions stop to count, and how much length lowers the score.
    pub saturation: f32,
    pub length: f32,
    pub session: f32,
    pub session_saturation: f32,
    pub session_length: f32,
    pub speaker: f32,
    /// Multiplied with the score of the words.
    pub speaker_words: f32,
    /// For all documents of a part in which a named speaker says something.
    pub party: f32,
    pub session_date: f32,
    /// For what the text says about time.
    pub range: f32,
    /// The same if the date of the session already fits.
    pub range_again: f32,
    pub time: f32,
    pub number: f32,
    pub name: f32,
    pub size: f32,
    pub pure_question: f32,
    /// For words that the document itself has.
    pub own: f32,
    /// How much a word with the same beginning counts.
    pub similar: f32,
    pub corrected: f32,
    pub vector: f32,
    /// How many standard deviations of similarity give the full weight.
    pub vector_spread: f32,
    /// How much the similarity of direct neighbours and of the ones after them counts.
    pub vector_near: f32,
    pub vector_further: f32,
}

impl Weights {
    pub const TUNED: Self = Self {
        previous: 0.35,
        next: 0.25,
        two_before: 0.35,
        two_after: 0.15,
        question: 0.9,
        saturation: 0.7,
        length: 0.3,
        session: 0.35,
        session_saturation: 1.5,
        session_length: 0.75,
        speaker: 0.2,
        speaker_words: 0.1,
        party: 0.6,
        session_date: 0.5,
        range: 0.6,
        range_again: 0.1,
        time: 0.3,
        number: 0.15,
        name: 0.25,
        size: 0.3,
        pure_question: 0.16,
        own: 0.3,
        similar: 0.3,
        corrected: 0.5,
        vector: 0.5,
        vector_spread: 6.0,
        vector_near: 0.3,
        vector_further: 0.2,
    };
}

/// Longer documents gain nothing more from their size.
const MAX_SIZE: usize = 64;

/// What a document gains from its size.
static SIZES: LazyLock<[f32; MAX_SIZE + 1]> =
    LazyLock::new(|| std::array::from_fn(|len| (1.0 + len as f32).ln() / 4.0));

impl Index {
    pub fn search(&self, query: &Query<'_>) -> Answer<'_> {
        self.search_with(query, &Weights::TUNED)
    }

    /// For measurements.
    pub fn search_with(&self, query: &Query<'_>, weights: &Weights) -> Answer<'_> {
        let scope = Scope::of(self, query);
        if scope.documents == 0 || query.limit == 0 {
            return Answer { hits: Vec::new(), layers: Vec::new() };
        }
        let question = Question::of(self, query, &scope);
        let counted = count::count(self, &question, &scope, weights);
        let alike = alike::scores(self, query, &scope, weights, &counted.own);
        let ranker =
            Ranker { index: self, weights, question: &question, counted: &counted, alike: alike.as_deref() };
        let hits = ranker.best(&scope, query.limit).iter().map(|hit| ranker.hit(hit)).collect();
        let asked = question.asked;
        let layers = [
            (counted.has_words, Layer::Words),
            (question.has_speakers(), Layer::Speakers),
            (!question.ranges.is_empty(), Layer::Dates),
            (asked.time || asked.number || asked.name, Layer::Cues),
            (alike.is_some(), Layer::Vectors),
        ];
        Answer { hits, layers: layers.into_iter().filter(|(is, _)| *is).map(|(_, layer)| layer).collect() }
    }
}

struct Ranker<'a, 'b> {
    index: &'a Index,
    weights: &'b Weights,
    question: &'b Question,
    counted: &'b Counted,
    /// For each document, what its embedding adds.
    alike: Option<&'b [f32]>,
}

#[derive(Clone, Copy)]
struct Ranked {
    score: f32,
    segment: u32,
    document: u32,
}

impl<'a> Ranker<'a, '_> {
    /// The best documents, in order. Only those that have something of the query: a word in them or in their session, a
    /// date, or an embedding. If the query only names a speaker, that is enough.
    fn best(&self, scope: &Scope, limit: usize) -> Vec<Ranked> {
        let (question, counted) = (self.question, self.counted);
        let has_dates = !question.ranges.is_empty();
        let speaker_is_enough = !counted.has_words && !has_dates;
        let mut best: Vec<Ranked> = Vec::new();
        let mut floor = 0.0;
        let most_of_cues = self.most_of_cues();
        let room = limit.saturating_mul(2).saturating_add(64);
        for ((loaded, allowed), number) in self.index.segments.iter().zip(&scope.allowed).zip(0..) {
            let segment = &loaded.segment;
            let mut ranges = if has_dates { segment.ranges.as_slice() } else { &[] };
            for ((part, live), _) in
                segment.parts.iter().zip(&loaded.parts).zip(allowed).filter(|(_, is)| **is)
            {
                let session = counted.session[live.session as usize];
                let rows = segment.rows(part);
                let has_party = question.has_speakers() && rows.iter().any(|row| question.names(loaded, row));
                let in_session =
                    part.date.is_some_and(|date| question.ranges.iter().any(|range| range.contains(date)));
                let of_part = self.weights.session * session
                    + if has_party { self.weights.party } else { 0.0 }
                    + if in_session { self.weights.session_date } else { 0.0 };
                let is_searched = session > 0.0 || in_session;
                let of_name = match (has_party, part.kind) {
                    (true, _) => self.weights.speaker,
                    (false, Kind::Raw) => 0.0,
                    (false, _) => self.weights.speaker + self.weights.party,
                };
                let most_of_part = of_part + of_name + most_of_cues;
                for (document, row) in part.documents.clone().zip(rows) {
                    let at = loaded.first + document as usize;
                    while ranges.first().is_some_and(|(of, _)| *of < document) {
                        ranges = &ranges[1..];
                    }
                    let has_range = ranges.first().is_some_and(|(of, _)| *of == document);
                    let most =
                        most_of_part + self.of_words(at) + if has_range { self.weights.range } else { 0.0 };
                    if most < floor {
                        continue;
                    }
                    let in_text = counted.named.get(at) == Some(&true);
                    let is_named = in_text || (has_party && question.names(loaded, row));
                    let range = if has_range { self.range(ranges, document) } else { 0.0 };
                    let alike = self.alike.map_or(0.0, |scores| scores[at]);
                    let is_found = is_searched
                        || counted.mix[at] > 0.0
                        || range > 0.0
                        || alike > 0.0
                        || (is_named && speaker_is_enough);
                    if !is_found {
                        continue;
                    }
                    let of_party = if in_text && !has_party { self.weights.party } else { 0.0 };
                    let of_range = if in_session { self.weights.range_again } else { self.weights.range };
                    let mut score =
                        of_part + of_party + self.score(at, row, is_named) + of_range * range + alike;
                    if row.flags & flags::CORRECTED != 0 && !question.asked.past {
                        score *= self.weights.corrected;
                    }
                    let score = score.max(0.0);
                    if score >= floor {
                        best.push(Ranked { score, segment: number, document });
                    }
                    if best.len() >= room {
                        self.keep(&mut best, limit);
                        floor = best.iter().map(|hit| hit.score).fold(f32::INFINITY, f32::min);
                    }
                }
            }
        }
        self.keep(&mut best, limit);
        best.sort_unstable_by(|a, b| self.order(a, b));
        best
    }

    fn keep(&self, best: &mut Vec<Ranked>, limit: usize) {
        if best.len() > limit {
            best.select_nth_unstable_by(limit, |a, b| self.order(a, b));
            best.truncate(limit);
        }
    }

    /// What words and embeddings give a document, at most.
    fn of_words(&self, at: usize) -> f32 {
        let words = self.counted.mix[at] * (1.0 + self.weights.speaker_words)
            + self.counted.own[at] * self.weights.own;
        words + self.alike.map_or(0.0, |scores| scores[at])
    }

    /// What cues and the size give a document, at most. It is a little too high, so rounding does no harm.
    fn most_of_cues(&self) -> f32 {
        let (w, asked) = (self.weights, self.question.asked);
        let cues = [(asked.time, w.time), (asked.number, w.number), (asked.name, w.name)];
        let cues: f32 = cues.iter().filter(|(may, _)| *may).map(|(_, weight)| weight).sum();
        cues + w.size * SIZES[MAX_SIZE] + 1e-3
    }

    /// How much of what a document says about time is what the query asks for. `ranges` are those of this document and of
    /// later ones.
    fn range(&self, ranges: &[(u32, Days)], document: u32) -> f32 {
        let own = ranges.iter().take_while(|(of, _)| *of == document);
        let share = |range: &Days| {
            self.question.ranges.iter().map(|asked| range.share_in(*asked)).fold(0.0, f32::max)
        };
        own.map(|(_, range)| share(range)).fold(0.0, f32::max)
    }

    fn score(&self, at: usize, row: &DocumentRow, is_named: bool) -> f32 {
        let (w, asked, mix) = (self.weights, self.question.asked, self.counted.mix[at]);
        let has = |flag: u8| row.flags & flag != 0;
        let mut score = mix + w.own * self.counted.own[at] + w.size * SIZES[(row.len as usize).min(MAX_SIZE)];
        if is_named {
            score += w.speaker + w.speaker_words * mix;
        }
        if asked.time && has(flags::TIME) {
            score += w.time;
        }
        if asked.number && has(flags::NUMBER) {
            score += w.number;
        }
        if asked.name && has(flags::NAME) {
            score += w.name;
        }
        if has(flags::PURE_QUESTION) {
            score -= w.pure_question;
        }
        score
    }

    /// The best first. Equal scores are in the order of the parts.
    fn order(&self, a: &Ranked, b: &Ranked) -> Ordering {
        b.score.total_cmp(&a.score).then_with(|| {
            let key = |ranked: &Ranked| {
                let segment = &self.loaded(ranked).segment;
                let part = &segment.parts[segment.documents[ranked.document as usize].part as usize];
                (segment.part_key(part), ranked.document - part.documents.start)
            };
            key(a).cmp(&key(b))
        })
    }

    fn loaded(&self, ranked: &Ranked) -> &'a Loaded {
        &self.index.segments[ranked.segment as usize]
    }

    /// A named speaker and a date of the query count like a word each.
    fn match_share(&self, ranked: &Ranked) -> f32 {
        let (question, counted) = (self.question, self.counted);
        let loaded = self.loaded(ranked);
        let segment = &loaded.segment;
        let at = loaded.first + ranked.document as usize;
        let row = &segment.documents[ranked.document as usize];
        let (mut matched, mut all) = (counted.cover[at], counted.mass);
        if question.has_speakers() {
            all += counted.usual;
            let is_named = question.names(loaded, row) || counted.named.get(at) == Some(&true);
            matched += if is_named { counted.usual } else { 0.0 };
        }
        if !question.ranges.is_empty() {
            all += counted.usual;
            let date = segment.date(ranked.document);
            let in_range = date.is_some_and(|date| question.ranges.iter().any(|range| range.contains(date)));
            let from = segment.ranges.partition_point(|(of, _)| *of < ranked.document);
            let range = self.range(&segment.ranges[from..], ranked.document);
            matched += counted.usual * if in_range { 1.0 } else { range };
        }
        if all > 0.0 { (matched / all).clamp(0.0, 1.0) } else { 0.0 }
    }

    fn hit(&self, ranked: &Ranked) -> Hit<'a> {
        let loaded = self.loaded(ranked);
        let (segment, document) = (&*loaded.segment, ranked.document);
        let row = segment.documents[document as usize];
        let part = &segment.parts[row.part as usize];
        Hit {
            part: segment.part_key(part),
            session: segment.part_session(part),
            namespace: segment.part_namespace(part),
            document: segment.document_key(document),
            kind: part.kind,
            speaker: segment.name(row.speaker),
            time: segment.seconds(document).and_then(|seconds| Timestamp::from_second(seconds).ok()),
            date: segment.date(document).and_then(date_of),
            date_text: segment.date_text(document),
            text: segment.text(document),
            is_question: row.flags & flags::QUESTION != 0,
            corrected_until: segment.corrected_until(document).and_then(date_of),
            score: ranked.score,
            match_share: self.match_share(ranked),
        }
    }
}
