//! The words and numbers of a text, in a form in which the texts of people and of models can be compared.

/// A word or a number of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// As it is written.
    pub text: String,
    /// In lower case, without accents.
    pub lower: String,
    /// Its place in the [`plain`] text, in bytes.
    pub begin: usize,
    pub end: usize,
    pub is_number: bool,
}

/// A text with one form of digits, dashes, apostrophes and blanks, and without characters that nobody sees.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|c| !is_hidden(*c)).map(plain_char).collect()
}

/// Characters that hide or reverse text, or that change the letter before them.
pub(super) const fn is_hidden(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{300}'..='\u{36F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{E0000}'..='\u{E01EF}')
}

fn plain_char(c: char) -> char {
    let digit = |zero: char| char::from_digit(u32::from(c) - u32::from(zero), 10).unwrap_or(c);
    match c {
        '\u{2018}' | '\u{2019}' | '\u{2BC}' | '`' | '\u{B4}' => '\'',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{3000}' => ' ',
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(c) - 0xFEE0).unwrap_or(c),
        '\u{660}'..='\u{669}' => digit('\u{660}'),
        '\u{6F0}'..='\u{6F9}' => digit('\u{6F0}'),
        '\u{966}'..='\u{96F}' => digit('\u{966}'),
        _ => c,
    }
}

/// A word in lower case, without the accents of Latin letters.
pub(super) fn lower(word: &str) -> String {
    let letter = |c: char| match c {
        'à'..='å' | 'ā' | 'ă' | 'ą' => 'a',
        'ç' | 'ć' | 'č' => 'c',
        'ď' | 'đ' => 'd',
        'è'..='ë' | 'ē' | 'ė' | 'ę' | 'ě' => 'e',
        'ğ' => 'g',
        'ì'..='ï' | 'ī' | 'į' | 'ı' => 'i',
        'ł' | 'ľ' => 'l',
        'ñ' | 'ń' | 'ň' => 'n',
        'ò'..='ö' | 'ø' | 'ō' | 'ő' => 'o',
        'ŕ' | 'ř' => 'r',
        'ś' | 'š' | 'ş' | 'ș' => 's',
        'ť' | 'ţ' | 'ț' => 't',
        'ù'..='ü' | 'ū' | 'ů' | 'ű' => 'u',
        'ý' | 'ÿ' => 'y',
        'ź' | 'ż' | 'ž' => 'z',
        _ => c,
    };
    word.chars().flat_map(char::to_lowercase).filter(|c| !is_hidden(*c)).map(letter).collect()
}

/// The words and numbers of a [`plain`] text. A word ends where a number begins: `3rd` is two of them.
pub(super) fn tokens(plain: &str) -> Vec<Token> {
    #[derive(Clone, Copy, PartialEq)]
    enum Kind {
        Number,
        Word,
        Other,
    }
    let kind = |c: char| match c {
        _ if c.is_ascii_digit() => Kind::Number,
        _ if c.is_alphanumeric() => Kind::Word,
        _ => Kind::Other,
    };
    let mut found = Vec::new();
    let mut open: Option<(usize, Kind)> = None;
    for (at, c) in plain.char_indices().chain([(plain.len(), ' ')]) {
        let kind = kind(c);
        if let Some((begin, of)) = open.filter(|(_, of)| *of != kind) {
            let text = plain[begin..at].to_owned();
            found.push(Token { lower: lower(&text), text, begin, end: at, is_number: of == Kind::Number });
            open = None;
        }
        if kind != Kind::Other && open.is_none() {
            open = Some((at, kind));
        }
    }
    found
}

/// A number in digits, and the forms that it may be written in: `1,500` is 1500 or 1.5.
pub(super) struct Number {
    pub begin: usize,
    pub forms: Vec<String>,
}

/// The numbers of a [`plain`] text that are written in digits.
pub(super) fn numbers(plain: &str) -> Vec<Number> {
    let bytes = plain.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        if !is_digit(at) {
            at += 1;
            continue;
        }
        let begin = at;
        while is_digit(at) || (matches!(bytes.get(at), Some(b'.' | b',' | b'\'')) && is_digit(at + 1)) {
            at += 1;
        }
        found.push(Number { begin, forms: forms(&plain[begin..at]) });
        // `1 500` may be one number, or two.
        let mut end = at;
        while bytes.get(end) == Some(&b' ') && (end + 1..end + 4).all(is_digit) && !is_digit(end + 4) {
            end += 4;
        }
        if end > at && at - begin <= 3 {
            found.push(Number { begin, forms: vec![whole(&plain[begin..end].replace(' ', ""))] });
        }
    }
    found
}

fn whole(digits: &str) -> String {
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() { "0".to_owned() } else { digits.to_owned() }
}

fn forms(raw: &str) -> Vec<String> {
    let parts: Vec<&str> = raw.split(['.', ',', '\'']).collect();
    let Some((last, before)) = parts.split_last() else { return Vec::new() };
    if before.is_empty() {
        return vec![whole(raw)];
    }
    let in_groups = |parts: &[&str]| {
        parts[0].len() <= 3 && parts[1..].iter().all(|part| part.len() == 3) || parts.len() == 1
    };
    let mut forms = vec![raw.to_owned()];
    if in_groups(&parts) {
        forms.push(whole(&parts.concat()));
    }
    if in_groups(before) {
        let (number, rest) = (whole(&before.concat()), last.trim_end_matches('0'));
        forms.push(if rest.is_empty() { number } else { format!("{number}.{rest}") });
    }
    forms
}

/// The value of a number word in English or German. Words that are also articles are none.
pub(super) fn number_word(lower: &str) -> Option<u32> {
    Some(match lower {
        "two" | "twice" | "zwei" => 2,
        "three" | "drei" => 3,
        "four" | "vier" => 4,
        "five" | "funf" => 5,
        "six" | "sechs" => 6,
        "seven" | "sieben" => 7,
        "eight" | "acht" => 8,
        "nine" | "neun" => 9,
        "ten" | "zehn" => 10,
        "eleven" => 11,
        "twelve" | "zwolf" => 12,
        "thirteen" => 13,
        "fourteen" => 14,
        "fifteen" => 15,
        "sixteen" => 16,
        "seventeen" => 17,
        "eighteen" => 18,
        "nineteen" => 19,
        "twenty" | "zwanzig" => 20,
        "thirty" | "dreissig" => 30,
        "forty" => 40,
        "fifty" => 50,
        "sixty" => 60,
        "seventy" => 70,
        "eighty" => 80,
        "ninety" => 90,
        "hundred" => 100,
        "thousand" => 1_000,
        "million" => 1_000_000,
        _ => return None,
    })
}

/// The number words of tokens, with the place of the first: `twenty-three` is 23.
pub(super) fn worded_numbers(tokens: &[Token]) -> Vec<(usize, u32)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let (first, second) = (number_word(&tokens[at].lower), tokens.get(at + 1));
        let unit = second.filter(|second| second.begin == tokens[at].end + 1);
        let unit = unit.and_then(|second| number_word_or_one(&second.lower)).filter(|unit| *unit < 10);
        match (first, unit) {
            (Some(tens), Some(unit)) if (20..100).contains(&tens) => {
                found.push((at, tens + unit));
                at += 2;
            }
            (Some(number), _) => {
                found.push((at, number));
                at += 1;
            }
            _ => at += 1,
        }
    }
    found
}

/// The value of a number word that counts something: `a week`, `one week`, `two weeks`.
pub(super) fn number_word_or_one(lower: &str) -> Option<u32> {
    match lower {
        "a" | "an" | "one" | "ein" | "eine" | "einem" | "einer" | "un" | "una" | "une" => Some(1),
        "couple" | "paar" | "deux" | "dos" => Some(2),
        "trois" | "tres" => Some(3),
        _ => number_word(lower),
    }
}

/// Whether two words have the same beginning, so that they may be forms of one word: `moved`, `moving`.
pub(super) fn are_alike(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    let shorter = a.chars().count().min(b.chars().count());
    let common = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    common >= 3.max(shorter.saturating_sub(2))
}

/// Whether words in this script are written without blanks between them.
pub(super) const fn has_no_blanks(c: char) -> bool {
    matches!(c, '\u{E00}'..='\u{EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{3040}'..='\u{30FF}'
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_read_in_the_forms_of_people() {
        for (text, expected) in [
            ("7 007 0", "7|7007|7|0"),
            ("1,500", "1,500 1500 1.5"),
            ("1.5", "1.5 1.5"),
            ("9.00", "9.00 9"),
            ("1,234.50", "1,234.50 1234.5"),
            ("1'234'567", "1'234'567 1234567 1234.567"),
            ("1.2.3", "1.2.3"),
            ("1 500 000 km", "1|1500000|500|500000|0"),
            ("2026-06-14", "2026|6|14"),
            ("٣ and ３", "3|3"),
            ("no", ""),
        ] {
            let found = numbers(&plain(text));
            let forms: Vec<String> = found.iter().map(|number| number.forms.join(" ")).collect();
            assert_eq!(forms.join("|"), expected, "{text}");
        }
        let worded = |text: &str| -> Vec<u32> {
            worded_numbers(&tokens(text)).into_iter().map(|(_, number)| number).collect()
        };
        assert_eq!(worded("twenty-three cats, seven dogs and one bird"), [23, 7]);
        assert_eq!(worded("ten two hundred"), [10, 2, 100]);
    }

    #[test]
    fn words_are_compared_without_accents_and_hidden_characters() {
        let words = |text: &str| {
            let tokens = tokens(&plain(text));
            tokens.into_iter().map(|token| token.lower).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words("José\u{200b} JOSE\u{301}’s 3rd RTX4090"), "jose jose s 3 rd rtx 4090");
        assert_eq!(words("Łódź Çelik Иван 東京タワー"), "lodz celik иван 東京タワー");
        for (a, b, expected) in [
            ("moved", "moving", true),
            ("live", "lives", true),
            ("cat", "cats", true),
            ("cat", "car", false),
            ("like", "lime", false),
            ("", "", true),
            ("", "abc", false),
        ] {
            assert_eq!(are_alike(a, b), expected, "{a} {b}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in any::<String>()) {
            let plain = plain(&text);
            for token in tokens(&plain) {
                prop_assert_eq!(&plain[token.begin..token.end], &token.text);
                prop_assert!(!token.text.is_empty());
            }
            worded_numbers(&tokens(&plain));
            prop_assert!(numbers(&plain).iter().all(|number| !number.forms.is_empty()));
        }
    }
}
