//! Stems: one form for the inflections of a word.

use std::borrow::Cow;

use rust_stemmers::Algorithm;

/// The languages whose words can be stemmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Language {
    English,
    Arabic,
    Danish,
    Dutch,
    Finnish,
    French,
    German,
    Greek,
    Hungarian,
    Italian,
    Norwegian,
    Portuguese,
    Romanian,
    Russian,
    Spanish,
    Swedish,
    Tamil,
    Turkish,
}

impl Language {
    /// In the order of their numbers. Indexes store the numbers, so the order must never change.
    pub const ALL: [Self; 18] = [
        Self::English,
        Self::Arabic,
        Self::Danish,
        Self::Dutch,
        Self::Finnish,
        Self::French,
        Self::German,
        Self::Greek,
        Self::Hungarian,
        Self::Italian,
        Self::Norwegian,
        Self::Portuguese,
        Self::Romanian,
        Self::Russian,
        Self::Spanish,
        Self::Swedish,
        Self::Tamil,
        Self::Turkish,
    ];
}

/// Stems the words of one language.
pub struct Stemmer(rust_stemmers::Stemmer);

impl Stemmer {
    pub fn of(language: Language) -> Self {
        Self(rust_stemmers::Stemmer::create(match language {
            Language::English => Algorithm::English,
            Language::Arabic => Algorithm::Arabic,
            Language::Danish => Algorithm::Danish,
            Language::Dutch => Algorithm::Dutch,
            Language::Finnish => Algorithm::Finnish,
            Language::French => Algorithm::French,
            Language::German => Algorithm::German,
            Language::Greek => Algorithm::Greek,
            Language::Hungarian => Algorithm::Hungarian,
            Language::Italian => Algorithm::Italian,
            Language::Norwegian => Algorithm::Norwegian,
            Language::Portuguese => Algorithm::Portuguese,
            Language::Romanian => Algorithm::Romanian,
            Language::Russian => Algorithm::Russian,
            Language::Spanish => Algorithm::Spanish,
            Language::Swedish => Algorithm::Swedish,
            Language::Tamil => Algorithm::Tamil,
            Language::Turkish => Algorithm::Turkish,
        }))
    }

    /// `word` is in lower case.
    pub fn stem<'a>(&self, word: &'a str) -> Cow<'a, str> {
        self.0.stem(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inflections_have_one_stem() {
        let check = |language, a: &str, b: &str| {
            let stemmer = Stemmer::of(language);
            assert_eq!(stemmer.stem(a), stemmer.stem(b), "{a} and {b}");
        };
        check(Language::English, "running", "runs");
        check(Language::German, "häuser", "hauses");
        check(Language::French, "chansons", "chanson");
        check(Language::Russian, "книги", "книгу");
    }

    #[test]
    fn numbers_of_languages_are_their_places() {
        for (place, language) in Language::ALL.into_iter().enumerate() {
            assert_eq!(language as usize, place);
        }
    }
}
