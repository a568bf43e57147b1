//! What a question asks for, and what a text offers: times, numbers, names.

use words::Language;

use crate::tokens::{Words, ending};

/// What a question asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// A time: "when".
    pub time: bool,
    /// A count or an amount: "how many".
    pub number: bool,
    /// A person, a place or a thing with a name: "who", "where", "which".
    pub name: bool,
    /// What was true before: "used to", "before".
    pub past: bool,
    /// The asking person: "I", "my".
    pub me: bool,
    /// The one who is asked: "you", "your".
    pub you: bool,
}

const TIME: &[&str] = &[
    "when",
    "wann",
    "quand",
    "cuándo",
    "quando",
    "wanneer",
    "när",
    "hvornår",
    "når",
    "milloin",
    "mikor",
    "când",
    "когда",
    "πότε",
    "متى",
];
const NAME: &[&str] = &[
    "who",
    "whom",
    "whose",
    "where",
    "which",
    "wer",
    "wen",
    "wem",
    "wo",
    "woher",
    "wohin",
    "welche",
    "welcher",
    "welches",
    "welchen",
    "qui",
    "où",
    "quel",
    "quelle",
    "quels",
    "quelles",
    "quién",
    "quiénes",
    "dónde",
    "cuál",
    "cuáles",
    "chi",
    "dove",
    "quale",
    "quem",
    "onde",
    "qual",
    "waar",
    "welk",
    "welke",
    "vem",
    "vilken",
    "vilket",
    "hvem",
    "hvor",
    "hvilken",
    "kuka",
    "missä",
    "mikä",
    "ki",
    "hol",
    "cine",
    "unde",
    "kim",
    "nerede",
    "hangi",
    "кто",
    "где",
    "куда",
    "какой",
    "какая",
    "ποιος",
    "πού",
    "أين",
    "من",
];
const NUMBER: &[&str] = &[
    "wieviel",
    "wieviele",
    "combien",
    "cuánto",
    "cuánta",
    "cuántos",
    "cuántas",
    "quanti",
    "quante",
    "quanto",
    "quanta",
    "quantos",
    "quantas",
    "hoeveel",
    "kaç",
    "сколько",
    "πόσο",
    "πόσα",
    "πόσες",
    "كم",
    "hány",
    "câți",
    "câte",
    "montako",
];
const PAST: &[&str] = &[
    "before",
    "previously",
    "formerly",
    "former",
    "earlier",
    "originally",
    "früher",
    "vorher",
    "damals",
    "ursprünglich",
    "avant",
    "auparavant",
    "autrefois",
    "antes",
    "anteriormente",
    "prima",
    "eerder",
    "vroeger",
    "tidigare",
    "tidligere",
    "раньше",
    "прежде",
];
/// Words for the one who asks, by language: many of them are other words in other languages.
const ME: &[(Language, &str)] = &[
    (Language::English, "i me my mine myself"),
    (Language::German, "ich mich mir mein meine meinen meinem meiner meines"),
    (Language::French, "je j me m moi mon ma mes"),
    (Language::Spanish, "yo me mi mí mis"),
    (Language::Italian, "io mi me mio mia miei mie"),
    (Language::Portuguese, "eu me meu minha meus minhas"),
    (Language::Dutch, "ik mij me mijn"),
    (Language::Swedish, "jag mig min mitt mina"),
    (Language::Danish, "jeg mig min mit mine"),
    (Language::Norwegian, "jeg meg min mitt mine"),
    (Language::Turkish, "ben beni bana benim"),
    (Language::Russian, "я меня мне мной мой моя моё мое мои моего моей мою"),
];
const YOU: &[(Language, &str)] = &[
    (Language::English, "you your yours yourself"),
    (Language::German, "du dich dir dein deine deinen deinem deiner"),
    (Language::French, "tu te t toi ton ta tes vous votre vos"),
    (Language::Spanish, "tú te ti tu tus usted"),
    (Language::Italian, "tu ti te tuo tua tuoi tue"),
    (Language::Portuguese, "tu você te ti teu tua"),
    (Language::Dutch, "jij je jou jouw"),
    (Language::Swedish, "du dig din ditt dina"),
    (Language::Danish, "du dig din dit dine"),
    (Language::Norwegian, "du deg din ditt dine"),
    (Language::Turkish, "sen seni sana senin"),
    (Language::Russian, "ты тебя тебе твой твоя вы вас вам ваш"),
];

fn says(table: &[(Language, &str)], word: &str, language: Language) -> bool {
    let of = table.iter().filter(|(of, _)| *of == language);
    of.flat_map(|(_, words)| words.split(' ')).any(|known| known == word)
}

/// Whether a word means the one who speaks or the one who is asked. Such a word is no name, however it is written.
pub(crate) fn is_person(word: &str, language: Language) -> bool {
    says(ME, word, language) || says(YOU, word, language)
}

/// Signs of a question in scripts without spaces.
const TIME_IN_RUNS: &[&str] =
    &["什么时候", "何时", "几号", "哪天", "いつ", "何時", "何日", "언제", "เมื่อไหร่", "เมื่อไร"];
const NUMBER_IN_RUNS: &[&str] =
    &["多少", "几个", "几次", "几", "いくつ", "いくら", "何人", "何回", "몇", "얼마", "กี่", "เท่าไหร่"];
const NAME_IN_RUNS: &[&str] =
    &["谁", "哪里", "哪儿", "哪个", "誰", "どこ", "누구", "누가", "어디", "ใคร", "ที่ไหน"];
const PAST_IN_RUNS: &[&str] = &["以前", "之前", "前は", "예전", "전에는", "เมื่อก่อน"];
const ME_IN_RUNS: &[&str] = &["我", "私", "僕", "나는", "내가", "제가", "나의", "ผม", "ฉัน"];
const YOU_IN_RUNS: &[&str] = &["你", "您", "あなた", "너는", "네가", "당신", "คุณ"];

/// `text` is the question, and `words` are its words.
pub(crate) fn asked(text: &str, words: &Words, language: Language) -> Asked {
    let mut asked = Asked::default();
    for (place, (_, word)) in words.iter().enumerate() {
        let next = words.lower(place + 1);
        asked.time |= TIME.contains(&word)
            || (matches!(word, "what" | "which")
                && matches!(next, "day" | "date" | "time" | "month" | "year" | "week"))
            || (word == "how" && (next == "long" || next == "recently"))
            || (word == "ne" && next == "zaman")
            || (word == "seit" && next == "wann");
        asked.number |= NUMBER.contains(&word)
            || (word == "how" && matches!(next, "many" | "much" | "often" | "old"))
            || (word == "wie" && matches!(next, "viel" | "viele" | "vielen" | "oft" | "alt"))
            || (matches!(word, "hur" | "hvor")
                && matches!(next, "många" | "mycket" | "mange" | "meget" | "mye"));
        asked.name |= NAME.contains(&word);
        asked.past |= PAST.contains(&word) || (word == "used" && next == "to");
        asked.me |= says(ME, word, language);
        asked.you |= says(YOU, word, language);
    }
    if !text.is_ascii() {
        let has = |signs: &[&str]| signs.iter().any(|sign| text.contains(sign));
        asked.time |= has(TIME_IN_RUNS);
        asked.number |= has(NUMBER_IN_RUNS);
        asked.name |= has(NAME_IN_RUNS);
        asked.past |= has(PAST_IN_RUNS);
        asked.me |= has(ME_IN_RUNS);
        asked.you |= has(YOU_IN_RUNS);
    }
    asked
}

/// What a document offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offered {
    pub number: bool,
    pub name: bool,
    /// It ends with a question.
    pub question: bool,
    /// It hardly says anything besides a question.
    pub pure_question: bool,
}

/// A greeting before a question has at most so many words.
const MAX_GREETING: usize = 4;

pub(crate) fn offered(text: &str, words: &Words) -> Offered {
    let mut offered = Offered::default();
    let (mut statements, mut sentence) = (0, 0);
    let mut is_first = true;
    for (place, (word, lower)) in words.iter().enumerate() {
        let c = text[word.start..].chars().next().unwrap_or_default();
        offered.number |= c.is_ascii_digit() || is_number_word(lower);
        offered.name |= c.is_uppercase() && !is_first && lower.len() > 1;
        is_first = false;
        sentence += 1;
        let next = words.get(place + 1).map_or(text.len(), |(next, _)| next.start);
        match ending(&text[word.end..next]) {
            Some(true) => (sentence, is_first, offered.question) = (0, true, true),
            Some(false) => {
                statements += sentence;
                (sentence, is_first, offered.question) = (0, true, false);
            }
            None => {}
        }
    }
    statements += sentence;
    if sentence > 0 {
        offered.question = false;
    }
    offered.pure_question = offered.question && statements <= MAX_GREETING;
    offered
}

fn is_number_word(word: &str) -> bool {
    matches!(
        word,
        "two"
            | "three"
            | "four"
            | "five"
            | "six"
            | "seven"
            | "eight"
            | "nine"
            | "ten"
            | "eleven"
            | "twelve"
            | "dozen"
            | "twenty"
            | "thirty"
            | "hundred"
            | "thousand"
            | "couple"
            | "once"
            | "twice"
            | "both"
            | "several"
            | "few"
            | "zwei"
            | "drei"
            | "vier"
            | "fünf"
            | "sechs"
            | "sieben"
            | "acht"
            | "neun"
            | "zehn"
            | "zwölf"
            | "hundert"
            | "beide"
            | "zweimal"
            | "deux"
            | "trois"
            | "quatre"
            | "cinq"
            | "sept"
            | "huit"
            | "neuf"
            | "dix"
            | "cent"
            | "dos"
            | "tres"
            | "cuatro"
            | "cinco"
            | "seis"
            | "siete"
            | "ocho"
            | "nueve"
            | "diez"
            | "cien"
            | "due"
            | "tre"
            | "quattro"
            | "cinque"
            | "sei"
            | "sette"
            | "otto"
            | "dieci"
            | "dois"
            | "duas"
            | "três"
            | "quatro"
            | "twee"
            | "drie"
            | "vijf"
            | "två"
            | "fyra"
            | "fem"
            | "iki"
            | "üç"
            | "два"
            | "две"
            | "три"
            | "четыре"
            | "пять"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(text: &str) -> Words {
        let mut words = Words::default();
        words.read(text);
        words
    }

    #[test]
    fn questions_tell_what_they_ask_for() {
        let check = |text: &str, language, expected: &str| {
            let asked = asked(text, &words_of(text), language);
            let flags = [
                (asked.time, 't'),
                (asked.number, '#'),
                (asked.name, 'n'),
                (asked.past, 'p'),
                (asked.me, 'm'),
                (asked.you, 'y'),
            ];
            let found: String = flags.iter().filter(|(is, _)| *is).map(|(_, sign)| *sign).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("When did Ada move?", Language::English, "t");
        check("How many cats do I have?", Language::English, "#m");
        check("What did you tell me before?", Language::English, "pmy");
        check("Where is the key?", Language::English, "n");
        check("In what year was it?", Language::English, "t");
        check("Wie viele Kinder hat sie?", Language::German, "#");
        check("Wann fahre ich nach Rom?", Language::German, "tm");
        check("¿Dónde está mi coche?", Language::Spanish, "nm");
        check("Combien de tes amis ?", Language::French, "#y");
        check("A ton of mina", Language::English, "");
        check("我什么时候去北京？", Language::English, "tm");
        check("誰が来ますか", Language::English, "n");
        check("몇 명이 왔어요?", Language::English, "#");
    }

    #[test]
    fn texts_tell_what_they_offer() {
        let check = |text: &str, expected: &str| {
            let offered = offered(text, &words_of(text));
            let flags = [
                (offered.number, '#'),
                (offered.name, 'n'),
                (offered.question, '?'),
                (offered.pure_question, 'p'),
            ];
            let found: String = flags.iter().filter(|(is, _)| *is).map(|(_, sign)| *sign).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("We moved to Rome. It is great.", "n");
        check("Hey Mel! How are you?", "n?p");
        check("I ran a race with my two sons on Sunday. And you?", "#n?");
        check("Is it so? I think it is", "");
        check("你去哪里？", "?p");
        check("", "");
    }
}
