//! A parsed request: groups of terms, where each group is one thing that the person said.

use rustc_hash::FxHashMap;

use super::cues::Cues;
use super::index::ThemeIndex;
use super::plain_words::{WordClass, word_class};
use super::record::{NameId, Texts};
use super::scope;
use super::synonyms;
use super::words::{self, TermId};

/// One thing that a request says, with all terms that may mean it.
#[derive(Debug)]
pub struct Group {
    /// The stemmed word.
    pub word: String,
    pub weight: f32,
    /// Terms that mean the word, each with a certainty.
    pub variants: Vec<(TermId, f32)>,
}

#[derive(Debug, Default)]
pub struct Query {
    pub groups: Vec<Group>,
    /// The share of the request's weight in words that the theme does not know.
    pub unknown: f32,
    pub cues: Cues,
    /// Files that the request names.
    pub mentioned: Vec<u32>,
    /// Whether the request could be about a place of a theme at all.
    pub names_a_place: bool,
    /// The stems of the request without stop words, each once.
    pub stems: Vec<String>,
}

/// The weights of words that are not literally in the request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryWeights {
    pub weak: f32,
    pub context: f32,
    pub synonym: f32,
    pub pair: f32,
}

impl Query {
    pub fn parse(index: &ThemeIndex, request: &str, weights: &QueryWeights) -> Self {
        // A request is a sentence or two. If somebody pastes a page, only the beginning is read.
        let mut end = request.len().min(2_000);
        while !request.is_char_boundary(end) {
            end -= 1;
        }
        let request = &request[..end];
        let (raw, words): (Vec<String>, Vec<String>) = words::spoken(request).into_iter().unzip();
        let mut query =
            Self { cues: Cues::of(&raw), mentioned: mentioned(index, request), ..Self::default() };
        let quoted = quoted(request);
        query.names_a_place = !quoted.is_empty() || !query.mentioned.is_empty() || scope::names_a_place(&raw);
        let mut reader = Reader { index, weights, groups: Vec::new(), places: FxHashMap::default() };
        let (mut said, mut unknown) = (0.0, 0.0);
        for (word, raw) in words.iter().zip(&raw) {
            // Quoted text appears in the shop, so every word of it counts.
            let is_quoted = quoted.contains(raw);
            let weight = match word_class(raw) {
                _ if is_quoted => 1.0,
                WordClass::Stop => continue,
                WordClass::Weak => weights.weak,
                WordClass::Context => weights.context,
                WordClass::Full => 1.0,
            };
            said += weight;
            if !reader.word(word, raw, weight) {
                unknown += weight;
            }
        }
        reader.pairs(&words);
        reader.synonyms(&words);
        query.groups = reader.groups;
        query.groups.retain(|group| !group.variants.is_empty());
        for (word, raw) in words.into_iter().zip(&raw) {
            if word_class(raw) != WordClass::Stop && !query.stems.contains(&word) {
                query.stems.push(word);
            }
        }
        query.unknown = if said > 0.0 { unknown / said } else { 1.0 };
        query
    }
}

/// The words between double quotes.
fn quoted(request: &str) -> Vec<String> {
    let parts = request.split(['"', '“', '”', '„', '«', '»']);
    // A quote without a closing quote is ignored.
    let count = parts.clone().count();
    let inside = parts.enumerate().filter(|&(at, _)| at % 2 == 1 && at + 1 < count);
    inside.flat_map(|(_, part)| words::spoken(part)).map(|(raw, _)| raw).collect()
}

/// Files whose path or file name appears in the request.
fn mentioned(index: &ThemeIndex, request: &str) -> Vec<u32> {
    let mut files = Vec::new();
    for word in request.split(|c: char| c.is_whitespace() || matches!(c, '`' | '"' | '\'' | '(' | ')' | ','))
    {
        let word = word.trim_matches(['.', ':', ';', '!', '?']);
        if word.len() < 4 || !word.contains(['.', '/']) {
            continue;
        }
        let names = |path: &str| {
            path.strip_suffix(word).is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
        };
        files.extend((0_u32..).zip(index.paths()).filter(|(_, path)| names(path)).map(|(file, _)| file));
    }
    files.retain(|&file| index.files[file as usize].kind.is_target());
    files.dedup();
    files
}

struct Reader<'a> {
    index: &'a ThemeIndex,
    weights: &'a QueryWeights,
    groups: Vec<Group>,
    places: FxHashMap<String, usize>,
}

impl Reader<'_> {
    fn term(&self, word: &str) -> Option<TermId> {
        let term = self.index.tables.terms.get(word)?;
        (!self.index.postings.files(term).is_empty()).then_some(term)
    }

    /// Adds a word with its meanings in this theme. Returns whether the theme knows the word.
    fn word(&mut self, word: &str, raw: &str, weight: f32) -> bool {
        if let Some(&at) = self.places.get(word) {
            // A repeated word is important.
            self.groups[at].weight += 0.5 * weight;
            return true;
        }
        self.places.insert(word.to_owned(), self.groups.len());
        let mut variants = Vec::new();
        let exact = self.term(word);
        if let Some(term) = exact {
            variants.push((term, 1.0));
        } else {
            variants.extend(self.foreign(raw));
        }
        let known = !variants.is_empty();
        self.groups.push(Group { word: word.to_owned(), weight, variants });
        if !known && weight == 1.0 {
            if let Some((first, second)) = self.split(word) {
                for half in [first, second] {
                    let word = self.index.tables.terms.term(half).to_owned();
                    self.groups.push(Group { word, weight: weight * 0.7, variants: vec![(half, 1.0)] });
                }
                return true;
            }
            if let Some(term) = self.misspelt(word) {
                let at = self.places[word];
                self.groups[at].variants.push((term, 0.8));
                return true;
            }
        }
        known
    }

    /// Splits `megamenu` if the theme uses `mega menu`.
    fn split(&self, word: &str) -> Option<(TermId, TermId)> {
        if !word.is_ascii() {
            return None;
        }
        (3..word.len().saturating_sub(2)).find_map(|at| {
            let (first, second) = word.split_at(at);
            Some((self.term(first)?, self.term(second)?))
        })
    }

    /// The most frequent term that differs by one letter.
    fn misspelt(&self, word: &str) -> Option<TermId> {
        if word.len() < 5 || !word.is_ascii() {
            return None;
        }
        let terms = &self.index.tables.terms;
        let length = word.len() as u32;
        let near = terms.of_length(length - 1..=length + 1);
        let near = near.filter(|&term| is_one_edit_away(word, terms.term(term)));
        near.map(|term| (self.index.postings.files(term).len(), term))
            .filter(|&(files, _)| files > 1)
            .max_by_key(|&(files, term)| (files, std::cmp::Reverse(terms.term(term))))
            .map(|(_, term)| term)
    }

    /// Translates a word of another language: finds the keys whose texts contain it, and takes their words in the
    /// default locale.
    fn foreign(&self, raw: &str) -> Vec<(TermId, f32)> {
        let mut hashes = Vec::new();
        words::hashes(raw, |hash| hashes.push(hash));
        let mut keys: Vec<NameId> = Vec::new();
        for file in &self.index.files {
            let Some(Texts::Foreign(words)) = &file.texts else { continue };
            for &hash in &hashes {
                let start = words.partition_point(|&(other, _)| other < hash);
                keys.extend(words[start..].iter().take_while(|&&(h, _)| h == hash).map(|&(_, key)| key));
            }
        }
        keys.sort_unstable();
        keys.dedup();
        let mut votes: FxHashMap<TermId, f32> = FxHashMap::default();
        let mut texts = 0.0;
        for key in keys {
            let Some(terms) = self.index.texts.terms(&self.index.files, key) else { continue };
            texts += 1.0;
            let mut terms = terms.to_vec();
            terms.sort_unstable();
            terms.dedup();
            for term in terms {
                *votes.entry(term).or_insert(0.0) += 1.0;
            }
        }
        let mut votes: Vec<(TermId, f32)> = votes
            .into_iter()
            .map(|(term, count)| (term, count / texts))
            .filter(|&(term, share)| {
                let word = self.index.tables.terms.term(term);
                share >= 0.4
                    && word_class(word) != WordClass::Stop
                    && !self.index.postings.files(term).is_empty()
            })
            .collect();
        // Among equally frequent words the rarer one is the translation.
        let rarity = |term: TermId| self.index.idf(term);
        votes
            .sort_unstable_by(|a, b| (b.1 * rarity(b.0)).total_cmp(&(a.1 * rarity(a.0))).then(a.0.cmp(&b.0)));
        votes.truncate(2);
        votes
    }

    /// Adjacent words that the theme writes as one word, or uses next to each other in a name.
    fn pairs(&mut self, words: &[String]) {
        for pair in words.windows(2) {
            let Some(joined) = words::join(&pair[0], &pair[1]) else { continue };
            if self.places.contains_key(&joined) {
                continue;
            }
            if let Some(term) = self.term(&joined) {
                self.places.insert(joined, self.groups.len());
                let word = pair.join(" ");
                self.groups.push(Group { word, weight: self.weights.pair, variants: vec![(term, 1.0)] });
            }
        }
    }

    /// Adds the synonyms of words and phrases to the group of their first word that is not a stop word.
    fn synonyms(&mut self, words: &[String]) {
        for length in 1..=synonyms::MAX_PHRASE {
            for phrase in words.windows(length) {
                for (rank, meant) in synonyms::of(phrase).iter().enumerate() {
                    // A word that is in the request itself needs no synonym.
                    if self.places.contains_key(meant) {
                        continue;
                    }
                    let Some(term) = self.term(meant) else { continue };
                    let share = self.weights.synonym / (1.0 + 0.3 * rank as f32);
                    // A phrase adds a new group. Synonyms of a single word join the group of the word.
                    let at = if length == 1 { self.places.get(&phrase[0]).copied() } else { None };
                    match at {
                        Some(at) => {
                            let variants = &mut self.groups[at].variants;
                            if !variants.iter().any(|&(known, _)| known == term) {
                                variants.push((term, share));
                            }
                        }
                        None => {
                            self.places.insert(meant.clone(), self.groups.len());
                            let variants = vec![(term, 1.0)];
                            self.groups.push(Group { word: meant.clone(), weight: share, variants });
                        }
                    }
                }
            }
        }
    }
}

/// Whether two words differ by one extra, missing, different or swapped letter.
fn is_one_edit_away(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len().abs_diff(b.len()) > 1 || a.first() != b.first() {
        return false;
    }
    let same = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[same..], &b[same..]);
    match a.len().cmp(&b.len()) {
        std::cmp::Ordering::Less => *a == b[1..],
        std::cmp::Ordering::Greater => a[1..] == *b,
        std::cmp::Ordering::Equal => {
            !a.is_empty()
                && (a[1..] == b[1..] || (a.len() > 1 && a[0] == b[1] && a[1] == b[0] && a[2..] == b[2..]))
        }
    }
}
