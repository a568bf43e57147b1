//! What the rules leave open. A rule that fits can be wrong where the message has signs that it does not weigh; these are named here.

use domain::models::routing::TaskTier;
use domain::projects::turn::TurnMode;

use super::text::{Word, find, has};
use super::{Kind, Reading, words};

/// A statement with so many words beside a question tells more than the question.
const STATEMENT_WORDS: usize = 3;

/// A message with fewer words is too short to tell its language.
const LANGUAGE_WORDS: usize = 4;

/// Words that nearly every message in English, German, French or Spanish has some of. Those that other languages share are left out.
const COMMON: &[&str] = &[
    "the", "my", "our", "your", "is", "are", "it", "its", "it's", "this", "that", "these", "them", "when",
    "and", "of", "for", "with", "from", "not", "i", "we", "you", "please", "all", "be", "can", "should",
    "at", "by", "how", "what", "where", "why", "which", "if", "want", "there", "have", "has", "but", "like",
    "just", "doesn't", "don't", "der", "die", "das", "den", "dem", "des", "ein", "eine", "einen", "einer",
    "und", "ist", "sind", "nicht", "wie", "warum", "wo", "ich", "wir", "mein", "meine", "unser", "unsere",
    "bitte", "auf", "im", "am", "mit", "fur", "von", "bei", "wenn", "auch", "kann", "soll", "noch", "man",
    "sich", "mir", "le", "la", "les", "une", "du", "et", "est", "pas", "je", "nous", "mon", "ma", "mes",
    "notre", "pour", "dans", "sur", "avec", "comment", "pourquoi", "au", "aux", "c'est", "el", "los", "las",
    "una", "y", "es", "que", "como", "donde", "por", "para", "con", "en", "mi", "mis", "nuestro", "del",
    "al", "se", "quiero", "cuando", "me",
];

/// Questions whether something can be done. Some who ask so want it done.
const CAN_QUESTIONS: &[&str] = &[
    "can i",
    "can we",
    "can you",
    "can it",
    "could i",
    "could we",
    "could you",
    "could the",
    "can the",
    "is it possible",
    "is there a way",
    "is there any way",
    "any way to",
    "any chance",
    "kann ich",
    "kann man",
    "konnen wir",
    "kannst du",
    "konnt ihr",
    "ist es moglich",
    "geht es",
    "gibt es eine moglichkeit",
    "c'est possible",
    "est ce possible",
    "est il possible",
    "peut on",
    "puis je",
    "on peut",
    "puedo",
    "se puede",
    "es posible",
    "podemos",
];

/// A complaint that counts its points, or adds another one.
const SEVERAL_FAULTS: &[&str] = &[
    "two things",
    "three things",
    "few things",
    "some things",
    "several things",
    "two issues",
    "two problems",
    "several issues",
    "several problems",
    "another thing",
    "another problem",
    "also",
    "as well",
    "zwei dinge",
    "auch",
    "ausserdem",
    "aussi",
    "de plus",
    "dos cosas",
    "tambien",
    "ademas",
];

impl Reading<'_> {
    /// Why the mode is open although a rule has decided it.
    pub(super) fn doubts_mode(&self, mode: TurnMode) -> Option<&'static str> {
        if self.is_foreign() {
            return Some("Few of its words are known, so its language may be another one.");
        }
        if mode != TurnMode::Ask {
            return None;
        }
        if self.sentences(Kind::Asks).any(asks_whether_it_can) {
            return Some("Who asks whether something can be done may want it done.");
        }
        if !self.sentences(Kind::Asks).any(starts_as_question) {
            return Some("It has a question mark, and no word that asks.");
        }
        if self.sentences(Kind::Asks).any(|sentence| has(sentence, words::WHYS)) {
            return Some("Who asks why may tell of a fault.");
        }
        let tells = |words: &[Word]| words.len() >= STATEMENT_WORDS;
        if self.sentences(Kind::States).any(tells) {
            return Some("It asks a question and tells something as well.");
        }
        None
    }

    /// Why the size is open although a rule has decided it.
    pub(super) fn doubts_tier(&self, mode: TurnMode, tier: TaskTier) -> Option<&'static str> {
        if self.is_foreign() {
            return Some("Few of its words are known, so its language may be another one.");
        }
        if mode == TurnMode::Code && tier == TaskTier::Simple && !self.names_a_thing() {
            return Some("It names nothing of a theme.");
        }
        if mode == TurnMode::Plan && tier == TaskTier::Simple {
            return Some("Who wants a plan first may have something large in mind.");
        }
        let faults = || self.sentences(Kind::States).count() > 1 || has(self.words(), SEVERAL_FAULTS);
        if mode == TurnMode::Debug && tier == TaskTier::Simple && faults() {
            return Some("It may tell of several faults.");
        }
        None
    }

    /// Whether a rule sees that the message concerns several files, whatever its mode.
    pub(super) fn sees_several_files(&self) -> bool {
        let code = TurnMode::Code;
        self.is_several().is_some() || self.several(code).is_some() || self.whole(code).is_some()
    }

    /// Whether the message is in a language whose words no list has.
    fn is_foreign(&self) -> bool {
        let words: Vec<&Word> = self.words().iter().filter(|word| word.text != "\"").collect();
        let common = words.iter().filter(|word| COMMON.contains(&word.text.as_str())).count();
        if words.iter().any(|word| has_other_letters(&word.text)) {
            return common * 4 < words.len();
        }
        let is_long = words.len() >= LANGUAGE_WORDS;
        is_long && common * 12 < words.len() && self.verbs.is_empty() && !self.names_a_thing()
    }

    fn names_a_thing(&self) -> bool {
        let lists = [
            words::PARTS,
            words::NEW_PARTS,
            words::SMALL_PARTS,
            words::FEATURES,
            words::SETTINGS,
            words::TEXTS,
            words::COLOURS,
            words::FONTS,
            words::SIZES,
            words::SPACINGS,
            words::LOOKS,
        ];
        !self.text.files.is_empty() || lists.into_iter().any(|list| self.has(list))
    }
}

/// Whether a word has letters that the languages of the lists do not have. Accents are folded before.
fn has_other_letters(word: &str) -> bool {
    word.chars().any(|letter| letter.is_alphabetic() && !letter.is_ascii())
}

/// Whether a sentence has a word that asks, at its start or at the start of a part of it.
fn starts_as_question(sentence: &[Word]) -> bool {
    let asks = |word: &Word| {
        let text = word.text.as_str();
        words::ASKS.contains(&text) || words::ASK_VERBS.contains(&text)
    };
    without_greeting(sentence).first().is_some_and(asks)
        || sentence.iter().any(|word| word.place == super::Place::Clause && asks(word))
}

/// Whether a sentence begins with the question whether something can be done.
fn asks_whether_it_can(sentence: &[Word]) -> bool {
    let sentence = without_greeting(sentence);
    CAN_QUESTIONS.iter().any(|phrase| find(sentence, phrase) == Some(0))
}

fn without_greeting(sentence: &[Word]) -> &[Word] {
    let is_greeting = |word: &&Word| words::GREETINGS.contains(&word.text.as_str());
    &sentence[sentence.iter().take_while(is_greeting).count()..]
}
