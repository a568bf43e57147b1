//! All segments of a memory, searched as one.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use words::{Lexicon, TermId, fold};

use crate::dates::Days;
use crate::language::Languages;
use crate::segment::{Builder, NewDocument, NewPart, Segment, SegmentError, WriteError};
use crate::tokens::{self, Words};
use crate::vectors;

/// Segments, the oldest first. A part of a newer segment replaces the one with the same key in older segments.
pub struct Index {
    pub(crate) segments: Vec<Loaded>,
    /// The number of sessions.
    pub(crate) sessions: usize,
    /// The number of documents, with replaced ones.
    pub(crate) documents: usize,
    /// The number of terms of each document.
    pub(crate) lens: Vec<u32>,
    /// For each word of a speaker's name, the speakers.
    pub(crate) names: FxHashMap<String, Vec<u32>>,
    /// Names in scripts without spaces, with their speakers.
    pub(crate) names_in_runs: Vec<(String, u32)>,
    /// For each speaker, the parts in which the speaker says something.
    pub(crate) speakers: Vec<Speaker>,
}

pub(crate) struct Loaded {
    pub segment: Arc<Segment>,
    /// The number of its first document in the index.
    pub first: usize,
    pub parts: Vec<LivePart>,
    /// For each name of the segment, the speaker with that name.
    pub speakers: Vec<u32>,
}

pub(crate) struct LivePart {
    pub is_live: bool,
    pub session: u32,
    /// The number of terms, with repetitions.
    pub len: u64,
    pub languages: Languages,
}

pub(crate) struct Speaker {
    pub name: String,
    /// Segment and part.
    pub parts: Vec<(u32, u32)>,
}

/// The number of a name that no speaker has.
pub(crate) const NOBODY: u32 = u32::MAX;

impl Index {
    /// Loads segments, the oldest first.
    pub fn load(segments: Vec<Vec<u8>>) -> Result<Self, SegmentError> {
        let segments: Result<Vec<_>, _> =
            segments.into_iter().map(|bytes| Segment::load(bytes).map(Arc::new)).collect();
        Ok(Self::new(segments?))
    }

    /// Joins loaded segments, the oldest first. A caller that keeps the segments adds one without loading the others
    /// again.
    pub fn new(segments: Vec<Arc<Segment>>) -> Self {
        let mut newest: FxHashMap<&str, usize> = FxHashMap::default();
        for (number, segment) in segments.iter().enumerate() {
            newest.extend(segment.part_keys().map(|key| (key, number)));
        }
        let mut index = Self {
            segments: Vec::with_capacity(segments.len()),
            sessions: 0,
            documents: 0,
            lens: Vec::new(),
            names: FxHashMap::default(),
            names_in_runs: Vec::new(),
            speakers: Vec::new(),
        };
        let mut sessions: FxHashMap<(&str, &str, &str), u32> = FxHashMap::default();
        let mut speakers: FxHashMap<&str, u32> = FxHashMap::default();
        for (number, segment) in segments.iter().enumerate() {
            let mut names = vec![NOBODY; segment.names()];
            let mut parts = Vec::with_capacity(segment.parts.len());
            for (place, part) in segment.parts.iter().enumerate() {
                let key = segment.part_key(part);
                let is_live = newest.get(key) == Some(&number);
                let (mut len, mut languages) = (0, Languages::default());
                let mut session = 0;
                if is_live && !part.documents.is_empty() {
                    // Sessions of different namespaces have nothing in common.
                    let of = segment.part_session(part);
                    let own = if of.is_empty() { key } else { "" };
                    let next = sessions.len() as u32;
                    session = *sessions.entry((segment.part_namespace(part), of, own)).or_insert(next);
                    for row in segment.rows(part) {
                        len += u64::from(row.len);
                        languages = languages.and(Languages::of(row.language));
                        let name = segment.name(row.speaker);
                        if name.is_empty() {
                            continue;
                        }
                        let speaker = &mut names[row.speaker as usize];
                        if *speaker == NOBODY {
                            *speaker = *speakers.entry(name).or_insert_with(|| {
                                index.speakers.push(Speaker { name: name.to_owned(), parts: Vec::new() });
                                index.speakers.len() as u32 - 1
                            });
                        }
                        let said = &mut index.speakers[*speaker as usize].parts;
                        if said.last() != Some(&(number as u32, place as u32)) {
                            said.push((number as u32, place as u32));
                        }
                    }
                }
                parts.push(LivePart { is_live, session, len, languages });
            }
            let first = index.documents;
            index.documents += segment.documents.len();
            index.lens.extend(segment.documents.iter().map(|row| row.len));
            index.segments.push(Loaded { segment: Arc::clone(segment), first, parts, speakers: names });
        }
        index.sessions = sessions.len();
        index.read_names();
        index
    }

    /// Finds the speakers for each word of a name.
    fn read_names(&mut self) {
        let mut words = Words::default();
        for (number, speaker) in (0..).zip(&self.speakers) {
            let name = tokens::normalized(&speaker.name);
            words.read(&name);
            for (word, lower) in words.iter().filter(|(_, lower)| lower.len() >= 2) {
                if word.is_run {
                    self.names_in_runs.push((lower.to_owned(), number));
                    continue;
                }
                let of = self.names.entry(fold(lower)).or_default();
                if of.last() != Some(&number) {
                    of.push(number);
                }
            }
        }
    }

    /// The number of documents that can be found.
    pub fn len(&self) -> usize {
        self.live().map(|(_, segment, part)| segment.parts[part].documents.len()).sum()
    }

    /// The keys of all parts that have documents.
    pub fn part_keys(&self) -> impl Iterator<Item = &str> {
        self.live().map(|(_, segment, part)| segment.part_key(&segment.parts[part]))
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of one segment with all that this index finds. Nothing of replaced and deleted parts is in it. A
    /// writer that gets the live parts gives the same bytes.
    pub fn merge(&self) -> Result<Vec<u8>, WriteError> {
        // Vectors of several models can't be in one segment. The newest model stays.
        let dimension = self.with_vectors().map_or(0, |segment| segment.dimension);
        self.merged(&Vectors::new(self.model(), dimension))
    }

    /// The model of the vectors, the newest one if there are several. Empty if there are no vectors.
    pub fn model(&self) -> &str {
        self.with_vectors().map_or("", |segment| segment.model())
    }

    fn with_vectors(&self) -> Option<&Segment> {
        let segments = self.segments.iter().rev().map(|loaded| &*loaded.segment);
        segments.into_iter().find(|segment| segment.all_vectors().next().is_some())
    }

    /// The texts that have no vector of this model, as [`embedded_text`] writes them, each once.
    pub fn texts_without_vector(&self, model: &str, dimension: usize) -> BTreeSet<String> {
        let mut texts = BTreeSet::new();
        let mut has: Option<(usize, FxHashSet<u32>)> = None;
        for (number, segment, place) in self.live() {
            if has.as_ref().is_none_or(|(of, _)| *of != number) {
                let is_its = segment.model() == model && segment.dimension == dimension;
                let documents = segment.all_vectors().filter(|_| is_its).map(|(document, ..)| document);
                has = Some((number, documents.collect()));
            }
            let (_, known) = has.get_or_insert_default();
            let documents = segment.parts[place].documents.clone();
            for document in documents.filter(|document| !known.contains(document)) {
                let speaker = segment.name(segment.documents[document as usize].speaker);
                texts.insert(embedded_text(speaker, segment.text(document)));
            }
        }
        texts
    }

    /// Like [`Index::merge`], with these vectors for texts that have none. Vectors of other models go.
    pub fn merged(&self, new: &Vectors) -> Result<Vec<u8>, WriteError> {
        let (model, dimension) = (new.model.as_str(), new.dimension);
        let mut sources: Vec<Source<'_>> =
            self.segments.iter().map(|loaded| Source::of(&loaded.segment, model, dimension)).collect();
        let mut live: Vec<(usize, &Segment, usize)> = self.live().collect();
        live.sort_unstable_by_key(|(_, segment, part)| segment.part_key(&segment.parts[*part]));
        let mut builder = Builder::new(model);
        let mut lexicon = Lexicon::default();
        for (number, segment, place) in live {
            let (part, source) = (&segment.parts[place], &mut sources[number]);
            builder.part(&NewPart {
                key: segment.part_key(part),
                session: segment.part_session(part),
                namespace: segment.part_namespace(part),
                kind: part.kind,
                date: part.date,
            });
            for document in part.documents.clone() {
                source.copy(segment, document, new, (&mut builder, &mut lexicon))?;
            }
        }
        builder.finish(&lexicon)
    }

    /// The live parts with documents: the number of the segment, the segment, the place of the part.
    fn live(&self) -> impl Iterator<Item = (usize, &Segment, usize)> {
        self.segments.iter().enumerate().flat_map(|(number, loaded)| {
            let parts = loaded.parts.iter().zip(&loaded.segment.parts).enumerate();
            parts
                .filter(|(_, (live, part))| live.is_live && !part.documents.is_empty())
                .map(move |(place, _)| (number, &*loaded.segment, place))
        })
    }
}

/// Vectors of texts, for documents that have none.
pub struct Vectors {
    model: String,
    dimension: usize,
    /// By [`embedded_text`].
    of: FxHashMap<String, (f32, Vec<i8>)>,
}

impl Vectors {
    /// No vectors yet. `dimension` is the length of each.
    pub fn new(model: &str, dimension: usize) -> Self {
        Self { model: model.to_owned(), dimension, of: FxHashMap::default() }
    }

    /// Adds the vector of a text. One of another length, or without a direction, is left out.
    pub fn add(&mut self, text: String, vector: &[f32]) {
        if vector.len() == self.dimension
            && let Some(quantized) = vectors::quantized(vector)
        {
            self.of.insert(text, quantized);
        }
    }

    /// Whether the text has a vector.
    pub fn has(&self, text: &str) -> bool {
        self.of.contains_key(text)
    }

    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    fn of(&self, speaker: &str, text: &str) -> Option<(f32, Vec<i8>)> {
        if self.of.is_empty() { None } else { self.of.get(&embedded_text(speaker, text)).cloned() }
    }
}

/// The text that a model turns into the vector of a document: who says it, and what.
pub fn embedded_text(speaker: &str, text: &str) -> String {
    if speaker.is_empty() { text.to_owned() } else { format!("{speaker}: {text}") }
}

/// A segment, read document by document.
struct Source<'a> {
    /// For each document, its terms as places in the segment, with counts.
    starts: Vec<u32>,
    terms: Vec<(u32, u8)>,
    /// For each place of a term, its number in the new lexicon.
    numbers: Vec<Option<TermId>>,
    ranges: Vec<Days>,
    range_starts: Vec<u32>,
    vectors: FxHashMap<u32, (f32, &'a [u8])>,
}

impl<'a> Source<'a> {
    fn of(segment: &'a Segment, model: &str, dimension: usize) -> Self {
        let documents = segment.documents.len();
        let places = || {
            (0..segment.terms())
                .flat_map(|place| segment.postings_of(place..place + 1).map(move |of| (place, of)))
        };
        let mut starts = vec![0_u32; documents + 1];
        segment.postings_of(0..segment.terms()).for_each(|(document, _)| starts[document as usize + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut terms = vec![(0, 0); starts[documents] as usize];
        let mut next = starts.clone();
        for (place, (document, count)) in places() {
            let at = &mut next[document as usize];
            terms[*at as usize] = (place as u32, count);
            *at += 1;
        }
        let mut range_starts = vec![0_u32; documents + 1];
        segment.ranges.iter().for_each(|(document, _)| range_starts[*document as usize + 1] += 1);
        for at in 1..range_starts.len() {
            range_starts[at] += range_starts[at - 1];
        }
        let has_vectors = segment.model() == model && segment.dimension == dimension && dimension > 0;
        let vectors = segment.all_vectors().filter(|_| has_vectors);
        Self {
            starts,
            terms,
            numbers: vec![None; segment.terms()],
            ranges: segment.ranges.iter().map(|(_, range)| *range).collect(),
            range_starts,
            vectors: vectors.map(|(document, scale, values)| (document, (scale, values))).collect(),
        }
    }

    fn copy(
        &mut self,
        segment: &Segment,
        document: u32,
        new: &Vectors,
        (builder, lexicon): (&mut Builder, &mut Lexicon),
    ) -> Result<(), WriteError> {
        let at = document as usize;
        let row = segment.documents[at];
        let ranges = &self.ranges[self.range_starts[at] as usize..self.range_starts[at + 1] as usize];
        let values: Option<(f32, Vec<i8>)> = self
            .vectors
            .get(&document)
            .map(|(scale, values)| (*scale, values.iter().map(|value| *value as i8).collect()))
            .or_else(|| new.of(segment.name(row.speaker), segment.text(document)));
        let new = NewDocument {
            key: segment.document_key(document),
            speaker: segment.name(row.speaker),
            time: segment.seconds(document),
            date: segment.date(document),
            date_text: segment.date_text(document),
            text: segment.text(document),
            corrected_until: segment.corrected_until(document),
            len: row.len,
            flags: row.flags,
            language: row.language,
            ranges,
            vector: values.as_ref().map(|(scale, values)| (*scale, values.as_slice())),
        };
        let own = &self.terms[self.starts[at] as usize..self.starts[at + 1] as usize];
        let numbers = &mut self.numbers;
        let terms = own.iter().map(|&(place, count)| {
            let number = numbers[place as usize].get_or_insert_with(|| {
                lexicon.intern(std::str::from_utf8(segment.term(place as usize)).unwrap_or_default())
            });
            (*number, count)
        });
        builder.document(&new, terms)
    }
}
