//! Words that tell of a fact: few other texts of a memory have them.
//!
//! They are kept as hashes, for callers that no longer have the fact.

use std::borrow::Cow;
use std::collections::BTreeSet;

use words::Language;

use crate::analysis::language_of;
use crate::cues;
use crate::fingerprint::{hash, mixed, share_of_words};
use crate::index::Index;
use crate::rank::few;
use crate::tokens::{self, Words, Writing};

/// So many words of a fact and its messages are kept at most.
const MAX_TELLING: usize = 64;

/// The terms that a word may be: in the language of its text and in English, because nobody can tell the language of a short text.
struct Terms {
    /// Empty for a word that is frequent in the language of its text, unless it is written like a name: `US`, `IT`.
    meant: Vec<String>,
    /// What the word is in English, if that may be something else.
    english: Option<String>,
}

/// The words of a text, in their order.
fn words_of(text: &str) -> Vec<Terms> {
    let text = tokens::normalized(text);
    let mut words = Words::default();
    words.read(&text);
    let language = language_of(&words);
    let writing = Writing::of(&text, &words);
    let mut all = Vec::new();
    for (place, (word, lower)) in words.iter().enumerate() {
        if word.is_run {
            tokens::terms_of_run(lower, |term| {
                all.push(Terms { meant: vec![term.to_owned()], english: None });
            });
            continue;
        }
        let own = tokens::term_of(lower, language).map(Cow::into_owned);
        let is_name = || {
            lower.len() <= tokens::MAX_WORD_BYTES
                && writing.is_like_a_name(place)
                && !cues::is_person(lower, language)
        };
        let meant = match own {
            // A fact says "the user" where a message says "I".
            Some(own) if own == "user" => continue,
            Some(own) => vec![own],
            None if is_name() => vec![tokens::marked(tokens::LIKE_A_NAME, lower)],
            None => Vec::new(),
        };
        let english = tokens::term_of(lower, Language::English).map(Cow::into_owned);
        let english = english.filter(|english| english != "user" && !meant.contains(english));
        all.push(Terms { meant, english });
    }
    all
}

/// Callers store these hashes, so this must never change.
fn hash_of(term: &str) -> u32 {
    mixed(hash(term), 0)
}

/// The words of a text as hashes, in ascending order, each once. They have each word that [`Index::telling_words`] says of the same or a
/// similar text, in any of its forms.
pub fn word_hashes(text: &str) -> Vec<u32> {
    let terms = words_of(text).into_iter().flat_map(|word| word.meant.into_iter().chain(word.english));
    let hashes: BTreeSet<u32> = terms.map(|term| hash_of(&term)).collect();
    hashes.into_iter().collect()
}

impl Index {
    /// The hashes of the words that tell of a fact and of the messages that it comes from, in ascending order: no word that is frequent in
    /// its language, and none that many other texts of this memory have. `is_of_it` says which documents are no other texts, by their keys.
    /// Of many words, those of the fact and of the sentences that say most of it are kept. Empty if the fact itself has no such word.
    pub fn telling_words(
        &self,
        fact: &str,
        messages: &[String],
        is_of_it: impl Fn(&str) -> bool,
    ) -> Vec<u32> {
        let most = few(u32::try_from(self.len()).unwrap_or(u32::MAX));
        let mut kept: BTreeSet<u32> = BTreeSet::new();
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let mut keep = |text: &str| {
            for Terms { mut meant, english } in words_of(text) {
                if meant.is_empty() || kept.len() >= MAX_TELLING || !seen.insert(meant[0].clone()) {
                    continue;
                }
                meant.extend(english);
                if self.others_with(&meant, most, &is_of_it) <= most {
                    kept.extend(meant.iter().map(|term| hash_of(term)));
                }
            }
            !kept.is_empty()
        };
        if keep(fact) {
            let mut sentences: Vec<&str> = messages.iter().flat_map(|text| sentences(text)).collect();
            // The most similar first. A stable sort, so that equal ones stay in their order.
            sentences.sort_by(|a, b| share_of_words(fact, b).total_cmp(&share_of_words(fact, a)));
            sentences.into_iter().for_each(|sentence| {
                keep(sentence);
            });
        }
        kept.into_iter().collect()
    }

    /// How many documents have one of these terms, without those of the fact. It stops to count after `most`.
    fn others_with(&self, terms: &[String], most: u32, is_of_it: impl Fn(&str) -> bool) -> u32 {
        let mut count = 0;
        for loaded in &self.segments {
            let segment = &loaded.segment;
            let mut documents: BTreeSet<u32> = BTreeSet::new();
            for place in terms.iter().filter_map(|term| segment.find(term.as_bytes())) {
                documents.extend(segment.postings_of(place..place + 1).map(|(document, _)| document));
            }
            for document in documents {
                let part = segment.documents[document as usize].part as usize;
                if loaded.parts[part].is_live && !is_of_it(segment.document_key(document)) {
                    count += 1;
                    if count > most {
                        return count;
                    }
                }
            }
        }
        count
    }
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(['.', '!', '?', '\n', '。', '！', '？'])
        .filter(|sentence| !sentence.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, Kind, Part, Writer};

    fn memory(texts: &[(&str, &str)]) -> Index {
        let mut writer = Writer::new();
        for (key, text) in texts {
            let document =
                Document { key: (*key).to_owned(), text: (*text).to_owned(), ..Document::default() };
            let part = Part {
                key: format!("part {key}"),
                documents: vec![document],
                kind: Kind::Raw,
                ..Part::deletion("")
            };
            writer.add(part);
        }
        Index::load(vec![writer.finish().unwrap()]).unwrap()
    }

    /// Whether a reply has one of the telling words.
    fn tells(of: &[u32], reply: &str) -> bool {
        word_hashes(reply).iter().any(|word| of.binary_search(word).is_ok())
    }

    const EVERYDAY: &[(&str, &str)] = &[
        ("a", "I like green tea in the morning."),
        ("b", "My sister likes black tea."),
        ("c", "We had tea with the neighbours."),
        ("d", "Is there any tea left?"),
        ("e", "The train to Porto was late."),
    ];

    #[test]
    fn the_words_of_a_fact_that_few_other_texts_have_tell_of_it() {
        let index = memory(EVERYDAY);
        let fact = "The user is allergic to hazelnuts and drinks tea";
        let telling = index.telling_words(fact, &[], |_| false);
        for (reply, expected) in [
            ("No cake with a hazelnut for you.", true),
            ("HAZELNUTS!", true),
            ("Because of your allergic reaction", true),
            ("Green tea would be fine.", false),
            ("The user is late for the train.", false),
            ("", false),
        ] {
            assert_eq!(tells(&telling, reply), expected, "{reply}");
        }
    }

    #[test]
    fn words_of_its_messages_tell_of_it_too() {
        let index = memory(EVERYDAY);
        let messages = ["I can't have hazelnuts. My doctor Ruiz found it out in Porto.".to_owned()];
        let telling = index.telling_words("The user is allergic to hazelnuts", &messages, |_| false);
        assert!(tells(&telling, "Ask Ruiz first.") && !tells(&telling, "Green tea then."));
    }

    #[test]
    fn texts_of_the_fact_itself_do_not_count() {
        let mut texts = EVERYDAY.to_vec();
        texts.extend(["1", "2", "3", "4", "5"].map(|key| (key, "No hazelnuts in this one.")));
        let index = memory(&texts);
        let fact = "The user is allergic to hazelnuts";
        let with_all = index.telling_words(fact, &[], |_| false);
        assert!(!tells(&with_all, "a hazelnut") && tells(&with_all, "allergic"));
        let without = index.telling_words(fact, &[], |key| key.parse::<u32>().is_ok());
        assert!(tells(&without, "a hazelnut"));
    }

    #[test]
    fn a_fact_of_frequent_words_has_no_telling_word() {
        let index = memory(EVERYDAY);
        let messages = ["It is the tea from Porto.".to_owned()];
        for fact in ["The user has tea", "The user was there before", "The user", ""] {
            assert_eq!(index.telling_words(fact, &messages, |_| false), [0; 0], "{fact}");
        }
        // A frequent word that is written like a name is meant.
        let telling = index.telling_words("The user works in IT", &[], |_| false);
        assert!(tells(&telling, "You asked about IT before.") && !tells(&telling, "How is it?"));
    }

    #[test]
    fn other_languages_have_telling_words() {
        let index = memory(EVERYDAY);
        for (fact, reply, other) in [
            ("Der Nutzer hat zwei Katzen", "Wie geht es der Katze?", "Wie geht es dem Hund?"),
            ("El usuario vive en Sevilla", "En Sevilla hace calor.", "En casa hace calor."),
            ("用户对榛子过敏", "不要榛子", "今天天气很好"),
        ] {
            let telling = index.telling_words(fact, &[], |_| false);
            assert!(tells(&telling, reply) && !tells(&telling, other), "{fact}");
        }
    }

    #[test]
    fn a_long_message_keeps_the_sentences_that_say_the_fact() {
        let index = memory(EVERYDAY);
        let filler: String = (0..500).map(|n| format!("Filler word{n}. ")).collect();
        let messages = [format!("{filler}The hazelnuts made Marguerite ill.")];
        let telling = index.telling_words("The user is allergic to hazelnuts", &messages, |_| false);
        assert!(telling.len() <= MAX_TELLING + 1, "{}", telling.len());
        assert!(tells(&telling, "Marguerite") && telling.is_sorted());
    }

    #[test]
    fn hashes_of_words_never_change() {
        assert_eq!(word_hashes("green teas"), word_hashes("The tea is GREEN"));
        assert_eq!(word_hashes("the"), [0; 0]);
        assert_eq!(word_hashes("tea"), [1_217_143_921]);
    }
}
