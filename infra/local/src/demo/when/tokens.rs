//! The words of a sentence, and what a single word can mean.

/// A word without the punctuation around it.
#[derive(Debug)]
pub struct Token<'a> {
    pub raw: &'a str,
    /// In lower case.
    pub word: String,
    /// Whether a sentence ends after it.
    pub is_last: bool,
}

pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let parts = text.split(|c: char| c.is_whitespace() || c == ',').filter(|part| !part.is_empty());
    let tokens = parts.filter_map(|part| {
        let raw = part.trim_matches(|c: char| !c.is_alphanumeric());
        let word = match part {
            "@" => "at".to_owned(),
            "&" => "and".to_owned(),
            "-" | "–" => "to".to_owned(),
            _ => {
                let word = raw.to_lowercase().replace('’', "'");
                let english = GERMAN.iter().find(|(german, _)| *german == word);
                english.map_or(word, |(_, english)| (*english).to_owned())
            }
        };
        let is_last = part.ends_with(['.', '!', '?', ';']) && !word.ends_with(".m");
        (!word.is_empty()).then_some(Token { raw, word, is_last })
    });
    tokens.collect()
}

/// The commonest words for times in German, so that the demo understands "jeden Montag um 9 Uhr".
const GERMAN: [(&str, &str); 21] = [
    ("um", "at"),
    ("uhr", "o'clock"),
    ("jeden", "every"),
    ("jede", "every"),
    ("jedes", "every"),
    ("alle", "every"),
    ("tag", "day"),
    ("tage", "days"),
    ("stunde", "hour"),
    ("stunden", "hours"),
    ("minuten", "minutes"),
    ("woche", "week"),
    ("wochen", "weeks"),
    ("monat", "month"),
    ("montag", "monday"),
    ("dienstag", "tuesday"),
    ("mittwoch", "wednesday"),
    ("donnerstag", "thursday"),
    ("freitag", "friday"),
    ("samstag", "saturday"),
    ("sonntag", "sunday"),
];

const NUMBERS: [&str; 13] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
];

/// A number in digits, or a word up to twelve. A number that is too large is the largest.
pub fn number(word: &str) -> Option<u64> {
    if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(word.parse().unwrap_or(u64::MAX));
    }
    NUMBERS.iter().zip(0..).find(|(name, _)| **name == word).map(|(_, number)| number)
}

const ORDINALS: [&str; 10] =
    ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];

/// A day of a month: "first" or "15th".
pub fn ordinal(word: &str) -> Option<i8> {
    if let Some((_, day)) = ORDINALS.iter().zip(1..).find(|(name, _)| **name == word) {
        return Some(day);
    }
    let (digits, suffix) = glued(word)?;
    let day = i8::try_from(digits).ok().filter(|day| (1..=31).contains(day))?;
    ["st", "nd", "rd", "th"].contains(&suffix).then_some(day)
}

/// A number and the letters after it: "15min", "5pm", "1st".
pub fn glued(word: &str) -> Option<(u64, &str)> {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, suffix) = word.split_at(digits);
    let is_word = !suffix.is_empty() && suffix.chars().all(char::is_alphabetic);
    if is_word { Some((number(digits)?, suffix)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_one_by_one() {
        let said = tokens("Every Monday, at 5 p.m.! (Europe/Berlin) – 🦀 x@y @ 9");
        let words: Vec<&str> = said.iter().map(|token| token.word.as_str()).collect();
        assert_eq!(words, ["every", "monday", "at", "5", "p.m", "europe/berlin", "to", "x@y", "at", "9"]);
        assert!(tokens("").is_empty() && tokens(" ,,, !! ").is_empty());
        assert_eq!(
            (number("12"), number("twelve"), number("x"), number("")),
            (Some(12), Some(12), None, None)
        );
        assert_eq!(number("99999999999999999999999"), Some(u64::MAX));
        assert_eq!(
            (ordinal("31st"), ordinal("32nd"), ordinal("third"), ordinal("3x")),
            (Some(31), None, Some(3), None)
        );
        assert_eq!(
            (glued("15min"), glued("15"), glued("min"), glued("1é")),
            (Some((15, "min")), None, None, Some((1, "é")))
        );
    }
}
