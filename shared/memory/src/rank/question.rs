//! What a query says: words, speakers, dates and cues.

use rustc_hash::FxHashSet;
use words::{Language, fold};

use super::scope::Scope;
use crate::analysis::language_of;
use crate::cues::{self, Asked};
use crate::dates::{self, Day, Days, date_of, day_of};
use crate::index::{Index, Loaded, NOBODY};
use crate::language::{Languages, is_stop_word};
use crate::search::Query;
use crate::segment::DocumentRow;
use crate::tokens::{self, Words, Writing};

/// Terms with this many letters or more are also compared by their beginning.
const PREFIX: usize = 5;
/// Only so many bytes of a query are read.
const MAX_BYTES: usize = 8192;
/// Only so many different words of a query count.
const MAX_GROUPS: usize = 64;
/// Days without a year are tried for so many years back.
const MAX_YEARS: i32 = 20;

/// A word of the query: the terms that it may be in the index.
pub(super) struct Group {
    pub terms: Vec<Vec<u8>>,
    pub prefix: Option<Vec<u8>>,
    /// It is part of a date, which counts by itself.
    pub is_date: bool,
    /// How much it counts: 1 for usual words.
    pub weight: f32,
}

/// A frequent word counts this much if it is only rare in this memory, and nothing else says that it is meant.
const ONLY_RARE: f32 = 0.3;

/// A frequent word is rare in a memory if at most this part of the documents has it.
const RARE: u32 = 100;
/// The same for one that is written like a name, or that another language has as a usual word. In a small memory,
/// [`FEW`] documents may have it.
const RARE_NAME: u32 = 20;
const FEW: u32 = 3;

pub(super) struct Question {
    pub groups: Vec<Group>,
    /// Words that are names of speakers. Facts and cards have them in their texts.
    pub names: Vec<Group>,
    /// For each speaker, whether the query names them. Empty if it names none.
    pub speakers: Vec<bool>,
    pub ranges: Vec<Days>,
    pub asked: Asked,
}

impl Question {
    pub fn of(index: &Index, query: &Query<'_>, scope: &Scope) -> Self {
        let text = tokens::normalized(beginning(query.text));
        let mut words = Words::default();
        words.read(&text);
        let language = language_of(&words);
        let asked = cues::asked(&text, &words, language);
        let today = day_of(query.zone.to_datetime(query.now).date());
        let times = dates::read(&text, &words, language, Some(today));
        let mut ranges = times.ranges;
        let mut speakers = Vec::new();
        let (mut groups, mut names): (Vec<Group>, Vec<Group>) = (Vec::new(), Vec::new());
        let mut seen = FxHashSet::default();
        // Words that are frequent in the language of the query, or single letters, and whether they are written like names.
        let mut frequent: Vec<(&str, bool)> = Vec::new();
        let writing = Writing::of(&text, &words);
        let languages = scope.languages.and(Languages::of(language)).and(Languages::of(Language::English));
        for (place, (word, lower)) in words.iter().enumerate() {
            if groups.len() + names.len() >= MAX_GROUPS {
                break;
            }
            if !seen.insert(lower) {
                continue;
            }
            if word.is_run {
                // A name is a part of the run, so its characters stay words.
                for (name, number) in &index.names_in_runs {
                    if lower.contains(name.as_str()) && is_visible(index, scope, *number) {
                        mark(&mut speakers, index, *number);
                    }
                }
                tokens::terms_of_run(lower, |term| {
                    let terms = vec![term.as_bytes().to_vec()];
                    if groups.len() < MAX_GROUPS && groups.iter().all(|group| group.terms != terms) {
                        groups.push(Group { terms, prefix: None, is_date: false, weight: 1.0 });
                    }
                });
                continue;
            }
            // "Yesterday" in a text is another day than in the query. Other words of dates are also searched.
            let is_date = times.places.iter().any(|places| places.contains(&place));
            // "Will" and "May" are also names.
            let is_capital = place > 0 && text[word.start..].starts_with(char::is_uppercase);
            let is_word = !is_stop_word(lower, language) || (is_capital && index.names.contains_key(lower));
            if is_date && dates::is_relative_day(lower, language) {
                continue;
            }
            if !is_word || is_single_letter(lower) {
                if frequent.len() < MAX_GROUPS && !is_date && !cues::is_person(lower, language) {
                    frequent.push((lower, writing.is_like_a_name(place)));
                }
                continue;
            }
            let is_name = name(index, scope, lower, &mut speakers);
            let into = if is_name { &mut names } else { &mut groups };
            if let Some(group) = group(lower, language, languages, is_date)
                && into.iter().all(|other| other.terms != group.terms)
            {
                into.push(group);
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
        let says_nothing_else = groups.is_empty() && names.is_empty() && ranges.is_empty();
        let others = scope.languages.and(Languages::of(Language::English));
        // In "the US", only one of the two is meant.
        let any_may_be_meant =
            says_nothing_else && !frequent.iter().any(|(_, is_like_a_name)| *is_like_a_name);
        for (lower, is_like_a_name) in frequent {
            let is_meant = any_may_be_meant || is_like_a_name;
            let rare_counts = speakers.is_empty() || !says_nothing_else;
            if groups.len() + names.len() < MAX_GROUPS
                && let Some(group) = frequent_group((index, scope), lower, others, (is_meant, rare_counts))
            {
                groups.push(group);
            }
        }
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
        Self { groups, names, speakers, ranges, asked }
    }

    pub fn has_speakers(&self) -> bool {
        !self.speakers.is_empty()
    }

    /// Whether the query names the speaker of a document.
    pub fn names(&self, loaded: &Loaded, row: &DocumentRow) -> bool {
        let speaker = loaded.speakers.get(row.speaker as usize).copied().unwrap_or(NOBODY);
        self.speakers.get(speaker as usize) == Some(&true)
    }
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_BYTES)]
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
fn group(lower: &str, language: Language, languages: Languages, is_date: bool) -> Option<Group> {
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
        own.char_indices().nth(PREFIX - 1).map(|(at, last)| own.as_bytes()[..at + last.len_utf8()].to_vec());
    Some(Group { terms, prefix, is_date, weight: 1.0 })
}

fn is_single_letter(lower: &str) -> bool {
    lower.len() < 2 && !lower.as_bytes().first().is_some_and(u8::is_ascii_digit)
}

/// A word that is frequent in the language of the query, or a single letter, if it is rare in what the query may see. `is_meant`: it is
/// written like a name, or the query has nothing else. Then it also counts where others have written it like a name, and where another
/// language has it as a usual word: `NAS` is no "nas", and nobody can tell the language of one word.
fn frequent_group(
    (index, scope): (&Index, &Scope),
    lower: &str,
    languages: Languages,
    (is_meant, rare_counts): (bool, bool),
) -> Option<Group> {
    let is_rare = |term: &[u8], most: u32| (1..=most).contains(&having(index, scope, term, most));
    let most_of_names = few(scope.documents);
    let mut terms: Vec<Vec<u8>> = Vec::new();
    if is_meant {
        let like_a_name = tokens::marked(tokens::LIKE_A_NAME, lower).into_bytes();
        let usual = languages.iter().filter_map(|language| tokens::term_of(lower, language));
        for term in [like_a_name].into_iter().chain(usual.map(|term| term.as_bytes().to_vec())) {
            if !terms.contains(&term) && is_rare(&term, most_of_names) {
                terms.push(term);
            }
        }
    }
    let weight = if terms.is_empty() { ONLY_RARE } else { 1.0 };
    let frequent = tokens::marked(tokens::FREQUENT, lower).into_bytes();
    if rare_counts && is_rare(&frequent, scope.documents / RARE) {
        terms.push(frequent);
    }
    (!terms.is_empty()).then_some(Group { terms, prefix: None, is_date: false, weight })
}

/// A word in at most so many of these documents is rare: a name, or a word that tells of something.
pub(crate) fn few(documents: u32) -> u32 {
    (documents / RARE_NAME).max(FEW)
}

/// How many documents that the query may see have a term. It stops to count after `most`.
fn having(index: &Index, scope: &Scope, term: &[u8], most: u32) -> u32 {
    let mut count = 0;
    for (loaded, allowed) in index.segments.iter().zip(&scope.allowed) {
        let segment = &loaded.segment;
        let Some(place) = segment.find(term) else { continue };
        for (document, _) in segment.postings_of(place..place + 1) {
            if allowed[segment.documents[document as usize].part as usize] {
                count += 1;
                if count > most {
                    return count;
                }
            }
        }
    }
    count
}
