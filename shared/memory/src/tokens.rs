//! From prose to words, and from words to terms.
//!
//! A text is first put in Unicode's form NFKC, so that full-width letters, half-width kana and letters with separate
//! accents equal the usual ones. In scripts with spaces, a term is a stem without accents. In scripts without spaces
//! (Chinese, Japanese, Thai and others) and in Korean, whose particles stick to the words, terms are pairs of
//! neighbouring characters, and each Chinese character is also a term of its own.

use std::borrow::Cow;

use icu_normalizer::{ComposingNormalizer, ComposingNormalizerBorrowed};
use words::{Language, fold, is_letter};

use crate::language::{is_stop_word, stemmer};

/// Longer sequences of letters are data, not words.
pub(crate) const MAX_WORD_BYTES: usize = 64;

/// Only so many words of a document are searched, or characters in scripts without spaces. So one document can't fill an
/// index.
pub(crate) const MAX_WORDS: usize = 20_000;

const NFKC: ComposingNormalizerBorrowed<'static> = ComposingNormalizer::new_nfkc();

pub(crate) fn normalized(text: &str) -> Cow<'_, str> {
    if text.is_ascii() { Cow::Borrowed(text) } else { NFKC.normalize(text) }
}

/// Where a word is, and how its script separates words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub start: usize,
    pub end: usize,
    lower_start: usize,
    lower_end: usize,
    /// A run of a script without spaces, perhaps of many words.
    pub is_run: bool,
}

/// The words of a text, in order, with their forms in lower case.
#[derive(Default)]
pub(crate) struct Words {
    lower: String,
    items: Vec<Word>,
    /// So many words may still be read.
    left: usize,
}

impl Words {
    /// Replaces the words with those of `text`, which is [`normalized`].
    pub fn read(&mut self, text: &str) {
        self.lower.clear();
        self.items.clear();
        let mut at = 0;
        self.left = MAX_WORDS;
        while at < text.len() && self.left > 0 {
            let Some(c) = text[at..].chars().next() else { break };
            match class(c) {
                Class::Letter => at = self.spaced(text, at),
                Class::Unspaced => at = self.run(text, at),
                Class::Mark | Class::Other => at += c.len_utf8(),
            }
        }
    }

    fn spaced(&mut self, text: &str, start: usize) -> usize {
        let lower_start = self.lower.len();
        let mut end = start;
        for c in text[start..].chars() {
            match class(c) {
                Class::Letter if c.is_ascii() => self.lower.push(c.to_ascii_lowercase()),
                Class::Letter => self.lower.extend(c.to_lowercase().filter(|c| class(*c) != Class::Mark)),
                Class::Mark => {}
                Class::Unspaced | Class::Other => break,
            }
            end += c.len_utf8();
        }
        self.push(start, end, lower_start, false);
        self.left -= 1;
        end
    }

    fn run(&mut self, text: &str, start: usize) -> usize {
        let lower_start = self.lower.len();
        let run = text[start..].chars().take_while(|c| class(*c) == Class::Unspaced);
        let mut end = start;
        for c in run.take(self.left) {
            end += c.len_utf8();
            self.left -= 1;
        }
        self.lower.push_str(&text[start..end]);
        self.push(start, end, lower_start, true);
        end
    }

    fn push(&mut self, start: usize, end: usize, lower_start: usize, is_run: bool) {
        self.items.push(Word { start, end, lower_start, lower_end: self.lower.len(), is_run });
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn get(&self, place: usize) -> Option<(Word, &str)> {
        self.items.get(place).map(|word| (*word, &self.lower[word.lower_start..word.lower_end]))
    }

    /// The word's form in lower case, or nothing after the last word.
    pub fn lower(&self, place: usize) -> &str {
        self.get(place).map_or("", |(_, lower)| lower)
    }

    pub fn iter(&self) -> impl Iterator<Item = (Word, &str)> {
        self.items.iter().map(|word| (*word, &self.lower[word.lower_start..word.lower_end]))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Part of a word in a script with spaces.
    Letter,
    /// Part of a run in a script without spaces, or of a Korean word.
    Unspaced,
    /// Belongs to the letter before it and is left out: an accent, a vowel point, an invisible joiner.
    Mark,
    Other,
}

fn class(c: char) -> Class {
    match c {
        '0'..='9' | 'a'..='z' | 'A'..='Z' => Class::Letter,
        '\0'..='\x7F' => Class::Other,
        '\u{AD}' | '\u{200C}' | '\u{200D}' | '\u{FE00}'..='\u{FE0F}' => Class::Mark,
        '\u{300}'..='\u{36F}' | '\u{483}'..='\u{489}' => Class::Mark,
        '\u{591}'..='\u{5BD}' | '\u{5BF}' | '\u{5C1}' | '\u{5C2}' | '\u{5C4}' | '\u{5C5}' | '\u{5C7}' => {
            Class::Mark
        }
        '\u{610}'..='\u{61A}' | '\u{640}' | '\u{64B}'..='\u{65F}' | '\u{670}' | '\u{6D6}'..='\u{6DC}' => {
            Class::Mark
        }
        // The danda is the full stop of many scripts of India. Their other signs belong to words.
        '\u{964}' | '\u{965}' => Class::Other,
        '\u{900}'..='\u{DFF}' => Class::Letter,
        '\u{E2F}' | '\u{E3F}' | '\u{E4F}' | '\u{E5A}' | '\u{E5B}' => Class::Other,
        // Thai, Lao, Burmese, Khmer.
        '\u{E01}'..='\u{EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17D3}' => Class::Unspaced,
        // Kana, without the middle dot.
        '\u{30FB}' => Class::Other,
        '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}' => Class::Unspaced,
        _ if is_han(c) => Class::Unspaced,
        '\u{AC00}'..='\u{D7AF}' => Class::Unspaced,
        _ if is_letter(c) => Class::Letter,
        _ => Class::Other,
    }
}

fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{323AF}')
}

/// What stands before the term of a word that is too frequent in its language to be one of the usual terms, or that is a single letter.
/// So "us" and "US" are found if somebody means them, and no other term changes.
pub(crate) const FREQUENT: char = '=';

/// The same before the term of one that is written like a name.
pub(crate) const LIKE_A_NAME: char = '^';

/// The term of such a word.
pub(crate) fn marked(mark: char, lower: &str) -> String {
    format!("{mark}{}", fold(lower))
}

/// How words are written in a text.
pub(crate) struct Writing<'a> {
    text: &'a str,
    words: &'a Words,
    /// All letters are capital letters, so they say nothing.
    shouts: bool,
}

impl<'a> Writing<'a> {
    pub fn of(text: &'a str, words: &'a Words) -> Self {
        Self { text, words, shouts: !text.chars().any(char::is_lowercase) }
    }

    /// Whether a word is written like a name: `US`, `The Who`, `R`. At the beginning of a sentence, one capital letter says nothing.
    pub fn is_like_a_name(&self, place: usize) -> bool {
        let Some((word, _)) = self.words.get(place) else { return false };
        let written = &self.text[word.start..word.end];
        if self.shouts || !written.starts_with(char::is_uppercase) {
            return false;
        }
        let is_abbreviation = written.chars().nth(1).is_some() && !written.chars().any(char::is_lowercase);
        is_abbreviation || !self.begins_a_sentence(place, word)
    }

    fn begins_a_sentence(&self, place: usize, word: Word) -> bool {
        let before = place.checked_sub(1).and_then(|before| self.words.get(before));
        before.is_none_or(|(before, _)| ends_a_sentence(&self.text[before.end..word.start]))
    }
}

/// The term of a word in a script with spaces. `None` for stop words, single letters and data.
pub(crate) fn term_of(lower: &str, language: Language) -> Option<Cow<'_, str>> {
    let single = lower.len() < 2 && !lower.as_bytes().first().is_some_and(u8::is_ascii_digit);
    if single || lower.len() > MAX_WORD_BYTES || is_stop_word(lower, language) {
        return None;
    }
    Some(stem(lower, language))
}

pub(crate) fn stem(lower: &str, language: Language) -> Cow<'_, str> {
    let stem = stemmer(language).stem(lower);
    if stem.is_ascii() { stem } else { Cow::Owned(fold(&stem)) }
}

/// The terms of a run of a script without spaces.
pub(crate) fn terms_of_run(run: &str, mut each: impl FnMut(&str)) {
    let mut before: Option<(usize, char)> = None;
    let mut pairs = 0;
    for (at, c) in run.char_indices() {
        let end = at + c.len_utf8();
        if let Some((start, first)) = before
            && !(is_kana(first) && is_kana(c) && is_particle(first) && is_particle(c))
        {
            each(&run[start..end]);
            pairs += 1;
        }
        if is_han(c) {
            each(&run[at..end]);
            pairs += 1;
        }
        before = Some((at, c));
    }
    if pairs == 0 {
        each(run);
    }
}

fn is_kana(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30FF}')
}

/// Hiragana that mostly build endings and particles. Pairs of them are in nearly every Japanese sentence.
fn is_particle(c: char) -> bool {
    matches!(
        c,
        'は' | 'が' | 'を' | 'に' | 'の' | 'で' | 'と' | 'も' | 'す' | 'ま' | 'し' | 'た' | 'て' | 'か'
    )
}

/// Whether the signs between two words end a sentence, and whether the sentence is a question.
pub(crate) fn ending(gap: &str) -> Option<bool> {
    if gap == " " {
        return None;
    }
    if gap.contains(['?', '？', '؟']) {
        return Some(true);
    }
    gap.contains(['.', '!', '\n', '。', '！', '।', '…']).then_some(false)
}

/// Whether the signs between two words end a sentence.
fn ends_a_sentence(gap: &str) -> bool {
    ending(gap).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str, language: Language) -> Vec<String> {
        let text = normalized(text);
        let mut words = Words::default();
        words.read(&text);
        let mut terms = Vec::new();
        for (word, lower) in words.iter() {
            if word.is_run {
                terms_of_run(lower, |term| terms.push(term.to_owned()));
            } else {
                terms.extend(term_of(lower, language).map(Cow::into_owned));
            }
        }
        terms
    }

    #[test]
    fn prose_becomes_terms() {
        let check =
            |text: &str, language, expected: &[&str]| assert_eq!(terms(text, language), expected, "{text}");
        check("She's running 3 races, isn’t she?", Language::English, &["run", "3", "race"]);
        check("Die Größe der Häuser", Language::German, &["gross", "haus"]);
        check("l'école d'arts", Language::French, &["ecol", "art"]);
        check("cafe\u{301} ｃａｆｅ", Language::English, &["cafe", "cafe"]);
        check("北京大学", Language::English, &["北", "北京", "京", "京大", "大", "大学", "学"]);
        check("ｶｰﾄを", Language::English, &["カー", "ート", "トを"]);
        check("서울에서", Language::English, &["서울", "울에", "에서"]);
        check("iPhoneを買った", Language::English, &["iphon", "を買", "買", "買っ", "った"]);
        check("हिन्दी में", Language::English, &["हिन्दी", "में"]);
        check("שָׁלוֹם", Language::English, &["שלום"]);
        check("犬", Language::English, &["犬"]);
        check("\0 \u{202E}!?", Language::English, &[]);
    }

    #[test]
    fn the_words_of_a_text_are_bounded() {
        let mut words = Words::default();
        words.read(&"word ".repeat(MAX_WORDS * 3));
        assert_eq!(words.len(), MAX_WORDS);
        words.read(&"北".repeat(MAX_WORDS * 3));
        assert_eq!((words.len(), words.lower(0).chars().count()), (1, MAX_WORDS));
    }
}
