//! Reads one text: its terms, its language, its dates and its cues.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use words::{Language, Lexicon, TermId};

use crate::cues::{self, Offered};
use crate::dates::{self, Day, Times};
use crate::language::Guess;
use crate::tokens::{self, Words, Writing};

/// What the index knows of a text.
pub(crate) struct Analysis {
    /// Each term once, with its count, in the order of the terms' numbers.
    pub terms: Vec<(TermId, u8)>,
    /// The number of terms, with repetitions and without frequent words.
    pub len: u32,
    pub language: Language,
    pub times: Times,
    pub offered: Offered,
}

/// Reads many texts into one lexicon. It remembers every word form.
#[derive(Default)]
pub(crate) struct Analyser {
    pub lexicon: Lexicon,
    words: Words,
    /// Per language.
    seen: [FxHashMap<Box<str>, Option<TermId>>; Language::ALL.len()],
    found: Vec<TermId>,
    /// The terms of frequent words.
    marked: Vec<TermId>,
}

/// Word forms that are longer or more than this are not remembered.
const MAX_SEEN: usize = 200_000;

impl Analyser {
    /// `anchor` is the day on which the text was written.
    pub fn read(&mut self, text: &str, anchor: Option<Day>) -> Analysis {
        let text = tokens::normalized(text);
        self.words.read(&text);
        let language = language_of(&self.words);
        self.found.clear();
        self.marked.clear();
        let writing = Writing::of(&text, &self.words);
        for (place, (word, lower)) in self.words.iter().enumerate() {
            if word.is_run {
                let (lexicon, found) = (&mut self.lexicon, &mut self.found);
                tokens::terms_of_run(lower, |term| found.push(lexicon.intern(term)));
                continue;
            }
            let seen = &mut self.seen[language as usize];
            let term = match seen.get(lower) {
                Some(term) => *term,
                None => {
                    let term = tokens::term_of(lower, language).map(|term| self.lexicon.intern(&term));
                    if seen.len() < MAX_SEEN && lower.len() <= tokens::MAX_WORD_BYTES {
                        seen.insert(lower.into(), term);
                    }
                    term
                }
            };
            if term.is_none() && lower.len() <= tokens::MAX_WORD_BYTES {
                self.marked.push(self.lexicon.intern(&tokens::marked(tokens::FREQUENT, lower)));
                if writing.is_like_a_name(place) && !cues::is_person(lower, language) {
                    self.marked.push(self.lexicon.intern(&tokens::marked(tokens::LIKE_A_NAME, lower)));
                }
            }
            self.found.extend(term);
        }
        // Words that say little make no text longer.
        let len = self.found.len() as u32;
        self.found.append(&mut self.marked);
        self.found.sort_unstable();
        let mut terms: Vec<(TermId, u8)> = Vec::with_capacity(self.found.len());
        for &term in &self.found {
            match terms.last_mut() {
                Some((last, count)) if *last == term => *count = count.saturating_add(1),
                _ => terms.push((term, 1)),
            }
        }
        let times = dates::read(&text, &self.words, language, anchor);
        let offered = cues::offered(&text, &self.words);
        Analysis { terms, len, language, times, offered }
    }
}

/// The language of a text, from its first words.
pub(crate) fn language_of(words: &Words) -> Language {
    let mut guess = Guess::default();
    words.iter().filter(|(word, _)| !word.is_run).take(200).for_each(|(_, lower)| guess.add(lower));
    guess.language()
}

/// The stems of a text, each once, in its own language.
pub(crate) fn stems(text: &str) -> Vec<String> {
    let text = tokens::normalized(text);
    let mut words = Words::default();
    words.read(&text);
    let language = language_of(&words);
    let mut stems = Vec::new();
    for (word, lower) in words.iter() {
        if word.is_run {
            tokens::terms_of_run(lower, |term| stems.push(term.to_owned()));
        } else {
            stems.extend(tokens::term_of(lower, language).map(Cow::into_owned));
        }
    }
    stems.sort_unstable();
    stems.dedup();
    stems
}
