//! Ranking: how well each document answers a query.
//!
//! A document counts the words of its neighbours too, because an answer often lies beside the words of the question.
//! All scores of words are divided by the highest that the query's words can reach. So they can be added to the other
//! features, which are between 0 and about 1.

use std::cmp::Ordering;

use jiff::Timestamp;
use words::{Language, fold};

use crate::analysis::language_of;
use crate::cues::{self, Asked};
use crate::dates::{self, Day, Days, date_of, day_of};
use crate::document::Kind;
use crate::index::{Index, Loaded, NOBODY};
use crate::language::{Languages, is_stop_word};
use crate::search::{Answer, Hit, Layer, Query};
use crate::segment::{DocumentRow, flags};
use crate::tokens::{self, Words};
use crate::vectors;

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
    pub range: f32,
    pub time: f32,
    pub number: f32,
    pub name: f32,
    pub size: f32,
    pub pure_question: f32,
    pub prefix: f32,
    pub corrected: f32,
    pub vector: f32,
}

impl Weights {
    pub const TUNED: Self = Self {
        previous: 0.35,
        next: 0.25,
        two_before: 0.3,
        two_after: 0.15,
        question: 0.55,
        saturation: 1.0,
        length: 0.3,
        session: 0.35,
        session_saturation: 1.2,
        session_length: 0.75,
        speaker: 0.2,
        speaker_words: 0.1,
        party: 0.6,
        session_date: 1.1,
        range: 0.6,
        time: 0.4,
        number: 0.25,
        name: 0.45,
        size: 0.3,
        pure_question: 0.16,
        prefix: 0.8,
        corrected: 0.5,
        vector: 0.5,
    };
}

/// Terms with this many bytes or more are also compared by their first [`PREFIX_BYTES`].
const PREFIX_BYTES: usize = 5;
/// Only so many different words of a query count.
const MAX_GROUPS: usize = 64;
/// Years without a number are tried for so many years back.
const MAX_YEARS: i32 = 20;
/// Longer documents gain nothing more from their size.
const MAX_SIZE: u32 = 64;

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
        let mut ranker = Ranker {
            index: self,
            weights,
            scope: &scope,
            mix: vec![0.0; self.documents],
            prefix: vec![0.0; self.documents],
            session: vec![0.0; self.sessions],
        };
        ranker.words(&question);
        ranker.answer(query, &question)
    }
}

/// The parts that a query may see. All statistics are of these documents alone, so what is in other namespaces changes
/// nothing.
struct Scope {
    /// For each segment, for each part.
    allowed: Vec<Vec<bool>>,
    documents: u32,
    mean_len: f32,
    sessions: u32,
    /// For each session, its number of terms. 0 for sessions that the query may not see.
    session_lens: Vec<u64>,
    mean_session_len: f32,
    languages: Languages,
    first_day: Day,
}

impl Scope {
    fn of(index: &Index, query: &Query<'_>) -> Self {
        let (mut documents, mut len) = (0, 0);
        let mut is_session = vec![false; index.sessions];
        let mut session_lens = vec![0; index.sessions];
        let mut languages = Languages::default();
        let mut first_day = Day::MAX;
        let mut allowed = Vec::with_capacity(index.segments.len());
        for Loaded { segment, parts, .. } in &index.segments {
            let may = |(live, part): (&crate::index::LivePart, &crate::segment::PartRow)| {
                let is_kind = query.kinds.is_empty() || query.kinds.contains(&part.kind);
                let is_place =
                    query.namespace.is_none_or(|namespace| segment.part_namespace(part) == namespace);
                if !live.is_live || !is_kind || !is_place || part.documents.is_empty() {
                    return false;
                }
                documents += part.documents.len() as u32;
                len += live.len;
                is_session[live.session as usize] = true;
                session_lens[live.session as usize] += live.len;
                languages = languages.and(live.languages);
                first_day = first_day.min(part.date.unwrap_or(Day::MAX));
                true
            };
            allowed.push(parts.iter().zip(&segment.parts).map(may).collect());
        }
        let sessions = is_session.iter().filter(|is| **is).count() as u32;
        let mean = |count: u32| (len as f32 / count.max(1) as f32).max(1.0);
        Self {
            allowed,
            documents,
            mean_len: mean(documents),
            sessions,
            session_lens,
            mean_session_len: mean(sessions),
            languages,
            first_day,
        }
    }
}

/// A word of the query: the terms that it may be in the index.
struct Group {
    terms: Vec<Vec<u8>>,
    prefix: Option<Vec<u8>>,
}

struct Question {
    groups: Vec<Group>,
    /// For each speaker, whether the query names them. Empty if it names none.
    speakers: Vec<bool>,
    ranges: Vec<Days>,
    asked: Asked,
}

impl Question {
    fn of(index: &Index, query: &Query<'_>, scope: &Scope) -> Self {
        let text = tokens::normalized(query.text);
        let mut words = Words::default();
        words.read(&text);
        let language = language_of(&words);
        let asked = cues::asked(&text, &words, language);
        let mut speakers = Vec::new();
        let mut groups: Vec<Group> = Vec::new();
        let languages = scope.languages.and(Languages::of(language)).and(Languages::of(Language::English));
        for (word, lower) in words.iter() {
            if groups.len() >= MAX_GROUPS {
                break;
            }
            if word.is_run {
                tokens::terms_of_run(lower, |term| {
                    let terms = vec![term.as_bytes().to_vec()];
                    if groups.len() < MAX_GROUPS && groups.iter().all(|group| group.terms != terms) {
                        groups.push(Group { terms, prefix: None });
                    }
                });
                continue;
            }
            if is_stop_word(lower, language) {
                continue;
            }
            if name(index, scope, lower, &mut speakers) {
                continue;
            }
            if let Some(group) = group(lower, language, languages)
                && groups.iter().all(|other| other.terms != group.terms)
            {
                groups.push(group);
            }
        }
        for (is_meant, who) in [(asked.me, query.me), (asked.you, query.you)] {
            let Some(who) = who.filter(|_| is_meant) else { continue };
            if let Some(number) = index.speakers.iter().position(|speaker| speaker.name == who)
                && is_visible(index, scope, number as u32)
            {
                mark(&mut speakers, index, number as u32);
            }
        }
        let today = day_of(query.zone.to_datetime(query.now).date());
        let times = dates::read(&text, &words, language, Some(today));
        let mut ranges = times.ranges;
        // A day without a year may be of any year that the index has.
        let year = |day: Day| date_of(day).map_or(0, |date| i32::from(date.year()));
        for day in times.yearless {
            let last = year(today) + 1;
            let first = year(scope.first_day.min(today)).max(last - MAX_YEARS);
            for range in (first..=last).filter_map(|year| day.in_year(year)) {
                if !ranges.contains(&range) {
                    ranges.push(range);
                }
            }
        }
        Self { groups, speakers, ranges, asked }
    }
}

impl Question {
    /// Whether the query names the speaker of a document.
    fn names(&self, loaded: &Loaded, row: &DocumentRow) -> bool {
        let speaker = loaded.speakers.get(row.speaker as usize).copied().unwrap_or(NOBODY);
        self.speakers.get(speaker as usize) == Some(&true)
    }
}

fn is_visible(index: &Index, scope: &Scope, speaker: u32) -> bool {
    let Some(speaker) = index.speakers.get(speaker as usize) else { return false };
    speaker.parts.iter().any(|&(segment, part)| scope.allowed[segment as usize][part as usize])
}

fn mark(speakers: &mut Vec<bool>, index: &Index, number: u32) {
    speakers.resize(index.speakers.len(), false);
    if let Some(is_named) = speakers.get_mut(number as usize) {
        *is_named = true;
    }
}

/// Marks the speakers with a name. Returns whether there are any.
fn name(index: &Index, scope: &Scope, lower: &str, speakers: &mut Vec<bool>) -> bool {
    let folded = fold(lower);
    let mut found = false;
    for &number in index.names.get(&folded).into_iter().flatten() {
        if is_visible(index, scope, number) {
            mark(speakers, index, number);
            found = true;
        }
    }
    found
}

/// The terms that a word may be: its stem in each language of the index.
fn group(lower: &str, language: Language, languages: Languages) -> Option<Group> {
    let own = tokens::term_of(lower, language)?;
    let mut terms = vec![own.as_bytes().to_vec()];
    let mut add = |term: &str| {
        if terms.iter().all(|known| known != term.as_bytes()) {
            terms.push(term.as_bytes().to_vec());
        }
    };
    for other in languages.iter().filter(|other| *other != language) {
        add(&tokens::stem(lower, other));
    }
    // People also write umlauts as two letters, or without dots.
    if languages.contains(Language::German)
        && lower.is_ascii()
        && ["ae", "oe", "ue"].iter().any(|two| lower.contains(two))
    {
        let dotted = lower.replace("ae", "ä").replace("oe", "ö").replace("ue", "ü");
        add(&tokens::stem(&dotted, Language::German));
    }
    let prefix =
        (own.len() >= PREFIX_BYTES && own.is_ascii()).then(|| own.as_bytes()[..PREFIX_BYTES].to_vec());
    Some(Group { terms, prefix })
}

struct Ranker<'a, 'b> {
    index: &'a Index,
    weights: &'b Weights,
    scope: &'b Scope,
    /// For each document of the index, the score of the words.
    mix: Vec<f32>,
    prefix: Vec<f32>,
    session: Vec<f32>,
}

/// Counts of one word, for each document or session, and which of them are not zero.
struct Counts {
    counts: Vec<f32>,
    touched: Vec<u32>,
}

impl Counts {
    fn of(len: usize) -> Self {
        Self { counts: vec![0.0; len], touched: Vec::new() }
    }

    fn add(&mut self, at: usize, count: f32) {
        if self.counts[at] == 0.0 {
            self.touched.push(at as u32);
        }
        self.counts[at] += count;
    }

    /// Takes all counts that are not zero.
    fn drain(&mut self, mut each: impl FnMut(usize, f32)) {
        for at in self.touched.drain(..) {
            let count = std::mem::take(&mut self.counts[at as usize]);
            each(at as usize, count);
        }
    }
}

fn idf(all: u32, having: u32) -> f32 {
    ((all as f32 - having as f32 + 0.5) / (having as f32 + 0.5)).ln_1p()
}

impl<'a> Ranker<'a, '_> {
    fn row(&self, segment: &Loaded, document: u32) -> DocumentRow {
        segment.segment.documents[document as usize]
    }

    /// Adds the scores of the query's words, each divided by the highest possible sum.
    fn words(&mut self, question: &Question) {
        let weights = self.weights;
        let mut own = Counts::of(self.index.documents);
        let mut near = Counts::of(self.index.documents);
        let mut sessions = Counts::of(self.index.sessions);
        let (mut mass, mut prefix_mass, mut session_mass) = (0.0, 0.0, 0.0);
        for group in &question.groups {
            for (number, loaded) in self.index.segments.iter().enumerate() {
                for term in &group.terms {
                    if let Some(place) = loaded.segment.find(term) {
                        self.count(number, place, &mut own, &mut near, &mut sessions);
                    }
                }
            }
            let idf_here = idf(self.scope.documents, own.touched.len() as u32);
            mass += idf_here;
            own.drain(|_, _| {});
            let (mix, index, scope) = (&mut self.mix, self.index, self.scope);
            near.drain(|at, count| {
                let length = index.len_of(at) as f32 / scope.mean_len;
                let norm = weights.saturation * (1.0 - weights.length + weights.length * length);
                mix[at] += idf_here * (weights.saturation + 1.0) * count / (count + norm);
            });
            let session_idf = idf(scope.sessions, sessions.touched.len() as u32);
            session_mass += session_idf;
            let session = &mut self.session;
            sessions.drain(|at, count| {
                let length = scope.session_lens[at] as f32 / scope.mean_session_len;
                let norm = weights.session_saturation
                    * (1.0 - weights.session_length + weights.session_length * length);
                session[at] += session_idf * (weights.session_saturation + 1.0) * count / (count + norm);
            });
            if let Some(prefix) = &group.prefix {
                for (number, loaded) in self.index.segments.iter().enumerate() {
                    let allowed = &scope.allowed[number];
                    for (document, count) in loaded.segment.postings_of(loaded.segment.with_prefix(prefix)) {
                        if allowed[loaded.segment.documents[document as usize].part as usize] {
                            own.add(loaded.first + document as usize, f32::from(count));
                        }
                    }
                }
                let prefix_idf = idf(scope.documents, own.touched.len() as u32);
                prefix_mass += prefix_idf;
                let prefix = &mut self.prefix;
                own.drain(|at, count| {
                    prefix[at] +=
                        prefix_idf * (weights.saturation + 1.0) * count / (count + weights.saturation);
                });
            }
        }
        let _ = prefix_mass;
        for (scores, mass) in
            [(&mut self.mix, mass), (&mut self.prefix, mass), (&mut self.session, session_mass)]
        {
            if mass > 0.0 {
                scores.iter_mut().for_each(|score| *score /= mass);
            }
        }
    }

    /// Counts a term in the documents that contain it, in their neighbours, and in their sessions.
    fn count(&self, number: usize, place: usize, own: &mut Counts, near: &mut Counts, sessions: &mut Counts) {
        let weights = self.weights;
        let loaded = &self.index.segments[number];
        let segment = &loaded.segment;
        let allowed = &self.scope.allowed[number];
        for (document, count) in segment.postings_of(place..place + 1) {
            let row = self.row(loaded, document);
            if !allowed[row.part as usize] {
                continue;
            }
            let count = f32::from(count);
            let at = loaded.first + document as usize;
            own.add(at, count);
            near.add(at, count);
            sessions.add(loaded.parts[row.part as usize].session as usize, count);
            let part = &segment.parts[row.part as usize];
            if part.kind != Kind::Raw {
                continue;
            }
            let before = document - part.documents.start;
            let after = part.documents.end - document - 1;
            if after >= 1 {
                let is_answer =
                    row.flags & flags::QUESTION != 0 && self.row(loaded, document + 1).speaker != row.speaker;
                let question = if is_answer { weights.question } else { 0.0 };
                near.add(at + 1, count * (weights.previous + question));
            }
            if after >= 2 {
                near.add(at + 2, count * weights.two_before);
            }
            if before >= 1 {
                near.add(at - 1, count * weights.next);
            }
            if before >= 2 {
                near.add(at - 2, count * weights.two_after);
            }
        }
    }

    fn answer(&self, query: &Query<'_>, question: &Question) -> Answer<'a> {
        let mut layers = Vec::new();
        let mut ranked: Vec<Ranked> = Vec::new();
        let has_dates = !question.ranges.is_empty();
        for (number, loaded) in self.index.segments.iter().enumerate() {
            let segment = &loaded.segment;
            let mut ranges = segment.ranges.as_slice();
            for (place, part) in segment.parts.iter().enumerate() {
                if !self.scope.allowed[number][place] {
                    continue;
                }
                let session = self.session[loaded.parts[place].session as usize];
                let has_party = question.speakers.contains(&true)
                    && segment.rows(part).iter().any(|row| question.names(loaded, row));
                let in_session =
                    part.date.is_some_and(|date| question.ranges.iter().any(|range| range.contains(date)));
                for document in part.documents.clone() {
                    let at = loaded.first + document as usize;
                    let row = segment.documents[document as usize];
                    let mut score = self.score(at, &row, session, in_session, question, &loaded);
                    if has_party {
                        score += self.weights.party;
                    }
                    if has_dates {
                        ranges = &ranges[ranges.partition_point(|(of, _)| *of < document)..];
                        let own = ranges.iter().take_while(|(of, _)| *of == document);
                        let share = |range: &Days| {
                            question.ranges.iter().map(|asked| range.share_in(*asked)).fold(0.0, f32::max)
                        };
                        score += self.weights.range * own.map(|(_, range)| share(range)).fold(0.0, f32::max);
                    }
                    if !question.asked.past && segment.corrected_until(document).is_some() {
                        score *= self.weights.corrected;
                    }
                    ranked.push(Ranked { score, segment: number as u32, document });
                }
            }
        }
        let order = |a: &Ranked, b: &Ranked| self.order(a, b);
        if ranked.len() > query.limit {
            ranked.select_nth_unstable_by(query.limit, order);
            ranked.truncate(query.limit);
        }
        ranked.sort_unstable_by(order);
        layers.push(Layer::Words);
        if question.speakers.contains(&true) {
            layers.push(Layer::Speakers);
        }
        if has_dates {
            layers.push(Layer::Dates);
        }
        if question.asked.time || question.asked.number || question.asked.name {
            layers.push(Layer::Cues);
        }
        Answer { hits: ranked.iter().map(|hit| self.hit(hit)).collect(), layers }
    }

    fn score(
        &self,
        at: usize,
        row: &DocumentRow,
        session: f32,
        in_session: bool,
        question: &Question,
        loaded: &Loaded,
    ) -> f32 {
        let (w, mix) = (self.weights, self.mix[at]);
        let has = |flag: u8| row.flags & flag != 0;
        let mut score = mix + w.session * session + w.prefix * self.prefix[at];
        if question.names(loaded, row) {
            score += w.speaker + w.speaker_words * mix;
        }
        if in_session {
            score += w.session_date;
        }
        if question.asked.time && has(flags::TIME) {
            score += w.time;
        }
        if question.asked.number && has(flags::NUMBER) {
            score += w.number;
        }
        if question.asked.name && has(flags::NAME) {
            score += w.name;
        }
        score += w.size * ((1 + row.len.min(MAX_SIZE)) as f32).ln() / 4.0;
        if has(flags::PURE_QUESTION) {
            score -= w.pure_question;
        }
        score.max(0.0)
    }

    /// The best first. Equal scores are in the order of the parts.
    fn order(&self, a: &Ranked, b: &Ranked) -> Ordering {
        b.score.total_cmp(&a.score).then_with(|| {
            let key = |ranked: &Ranked| {
                let segment = &self.index.segments[ranked.segment as usize].segment;
                let part = &segment.parts[segment.documents[ranked.document as usize].part as usize];
                (segment.part_key(part), ranked.document - part.documents.start)
            };
            key(a).cmp(&key(b))
        })
    }

    fn hit(&self, ranked: &Ranked) -> Hit<'a> {
        let loaded = &self.index.segments[ranked.segment as usize];
        let segment = &*loaded.segment;
        let document = ranked.document;
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
            match_share: (self.mix[loaded.first + document as usize] / 2.0).clamp(0.0, 1.0),
        }
    }
}

#[derive(Clone, Copy)]
struct Ranked {
    score: f32,
    segment: u32,
    document: u32,
}

impl Index {
    /// The number of terms of a document of the index.
    fn len_of(&self, at: usize) -> u32 {
        let number = self.segments.partition_point(|loaded| loaded.first <= at) - 1;
        let loaded = &self.segments[number];
        loaded.segment.documents[at - loaded.first].len
    }
}
