//! The language of a short text, from its letters and its most frequent words.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;
use words::{Language, Stemmer, fold};

use crate::stop_words::STOP_WORDS;

/// A set of languages. Bit `n` is the language with the number `n`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Languages(u32);

impl Languages {
    pub fn of(language: Language) -> Self {
        Self(1 << language as u32)
    }

    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn contains(self, language: Language) -> bool {
        self.0 & 1 << language as u32 != 0
    }

    pub fn iter(self) -> impl Iterator<Item = Language> {
        Language::ALL.into_iter().filter(move |&language| self.contains(language))
    }
}

/// The languages in which each word is a stop word. Words that people often type without accents are there in both
/// forms.
static IN_LANGUAGES: LazyLock<FxHashMap<String, Languages>> = LazyLock::new(|| {
    let mut map: FxHashMap<String, Languages> = FxHashMap::default();
    for (language, words) in STOP_WORDS {
        for word in words.split_ascii_whitespace() {
            for form in [word.to_owned(), fold(word)] {
                let languages = map.entry(form).or_default();
                *languages = languages.and(Languages::of(language));
            }
        }
    }
    map
});

/// All stemmers, indexed by language. Creating one only chooses a function.
static STEMMERS: LazyLock<Vec<Stemmer>> =
    LazyLock::new(|| Language::ALL.map(Stemmer::of).into_iter().collect());

pub(crate) fn stemmer(language: Language) -> &'static Stemmer {
    &STEMMERS[language as usize]
}

/// `word` is in lower case.
pub(crate) fn is_stop_word(word: &str, language: Language) -> bool {
    IN_LANGUAGES.get(word).is_some_and(|languages| languages.contains(language))
}

/// Counts evidence for each language, word by word.
#[derive(Default)]
pub(crate) struct Guess {
    counts: [u32; Language::ALL.len()],
}

impl Guess {
    /// `word` is in lower case.
    pub fn add(&mut self, word: &str) {
        if let Some(languages) = IN_LANGUAGES.get(word) {
            languages.iter().for_each(|language| self.counts[language as usize] += 2);
        }
        if word.is_ascii() {
            return;
        }
        for c in word.chars() {
            for &language in hints(c) {
                self.counts[language as usize] += 1;
            }
        }
    }

    /// The most probable language. English if nothing tells.
    pub fn language(&self) -> Language {
        let mut best = Language::English;
        for language in Language::ALL {
            if self.counts[language as usize] > self.counts[best as usize] {
                best = language;
            }
        }
        best
    }
}

/// The languages in whose texts a letter is common.
fn hints(c: char) -> &'static [Language] {
    match c {
        'ß' => &[Language::German],
        'ä' | 'ö' => &[Language::German, Language::Swedish, Language::Finnish],
        'ü' => &[Language::German, Language::Turkish],
        'ñ' => &[Language::Spanish],
        'ã' | 'õ' => &[Language::Portuguese],
        'å' => &[Language::Swedish, Language::Danish, Language::Norwegian],
        'ø' | 'æ' => &[Language::Danish, Language::Norwegian],
        'ı' | 'ğ' | 'ş' => &[Language::Turkish],
        'ő' | 'ű' => &[Language::Hungarian],
        'ă' | 'ț' | 'ș' => &[Language::Romanian],
        'è' | 'ê' | 'œ' => &[Language::French],
        'ò' | 'ì' => &[Language::Italian],
        '\u{370}'..='\u{3FF}' => &[Language::Greek],
        '\u{400}'..='\u{4FF}' => &[Language::Russian],
        '\u{600}'..='\u{6FF}' => &[Language::Arabic],
        '\u{B80}'..='\u{BFF}' => &[Language::Tamil],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts_tell_their_language() {
        let check = |text: &str, language: Language| {
            let mut guess = Guess::default();
            text.split_whitespace().for_each(|word| guess.add(&word.to_lowercase()));
            assert_eq!(guess.language(), language, "{text}");
        };
        check("", Language::English);
        check("Pizza Napoli", Language::English);
        check("I will be there in a minute", Language::English);
        check("Ich bin um drei in der Stadt", Language::German);
        check("Je ne sais pas où il est", Language::French);
        check("No sé dónde está mi llave", Language::Spanish);
        check("Non so dove sono le mie chiavi", Language::Italian);
        check("Não sei onde estão as chaves", Language::Portuguese);
        check("Ik weet niet waar hij is", Language::Dutch);
        check("Jag vet inte var den är", Language::Swedish);
        check("Завтра еду в Москву", Language::Russian);
        check("Το σπίτι μου είναι μεγάλο", Language::Greek);
        check("Bu akşam nerede yemek yiyoruz", Language::Turkish);
        check("أين مفاتيح السيارة", Language::Arabic);
    }
}
