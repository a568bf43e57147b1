//! Letters: where words begin and end, and letters without case and accents.

/// Sequences of letters and digits, with their positions. A word ends at an apostrophe, and the ending is dropped:
/// `doesn't` is `doesn`.
pub fn forms(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() && !is_word_byte(bytes[at]) {
            at += 1;
        }
        let start = at;
        while at < bytes.len() && is_word_byte(bytes[at]) {
            at += 1;
        }
        (start < at).then(|| (start, &text[start..at]))
    })
}

/// For each byte, whether it can be part of a word. All bytes beyond ASCII count as letters: punctuation beyond ASCII
/// is rare and is dropped later.
static IS_WORD_BYTE: [bool; 256] = {
    let mut is_word_byte = [false; 256];
    let mut b = 0;
    while b < 256 {
        is_word_byte[b] = b >= 0x80 || (b as u8).is_ascii_alphanumeric();
        b += 1;
    }
    is_word_byte
};

pub fn is_word_byte(b: u8) -> bool {
    IS_WORD_BYTE[b as usize]
}

/// Splits a sequence of [`forms`] at punctuation beyond ASCII, and text in scripts without spaces into pairs of
/// characters.
pub fn split_foreign(form: &str, mut each: impl FnMut(&str)) {
    for part in form.split(|c| !is_letter(c)) {
        if part.chars().next().is_some_and(is_unspaced) {
            let starts = part.char_indices().map(|(at, _)| at);
            let ends = part.char_indices().map(|(at, c)| at + c.len_utf8());
            starts.zip(ends.skip(1)).for_each(|(start, end)| each(&part[start..end]));
        } else if !part.is_empty() {
            each(part);
        }
    }
}

/// `char::is_alphanumeric`, with a fast path for the letters of most languages. The standard function searches its
/// tables for every character beyond ASCII.
pub fn is_letter(c: char) -> bool {
    match c {
        // Latin, Cyrillic, Vietnamese, Thai, kana, Han and Hangul.
        '×' | '÷' => false,
        '\u{C0}'..='\u{24F}'
        | '\u{400}'..='\u{481}'
        | '\u{E01}'..='\u{E3A}'
        | '\u{E40}'..='\u{E46}'
        | '\u{1E00}'..='\u{1EFF}'
        | '\u{3041}'..='\u{3096}'
        | '\u{30A1}'..='\u{30FA}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7A3}' => true,
        _ => c.is_alphanumeric(),
    }
}

/// Characters of scripts that are written without spaces between words.
pub fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0E00}'..='\u{0E7F}' | '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}')
}

/// Lower case, without the accents of Latin letters.
pub fn fold(word: &str) -> String {
    if word.is_ascii() {
        return word.to_ascii_lowercase();
    }
    let mut folded = String::with_capacity(word.len());
    fold_each(word, |part| folded.push_str(part));
    folded
}

/// [`fold`], letter by letter.
pub fn fold_each(word: &str, mut each: impl FnMut(&str)) {
    for c in word.chars() {
        if let Some(plain) = without_accent(c) {
            each(plain);
        } else if is_unspaced(c) {
            each(c.encode_utf8(&mut [0; 4])); // scripts without lower case
        } else {
            for lower in c.to_lowercase() {
                each(without_accent(lower).unwrap_or(lower.encode_utf8(&mut [0; 4])));
            }
        }
    }
}

/// A lower-case letter without its accent.
fn without_accent(c: char) -> Option<&'static str> {
    Some(match c {
        'à' | 'á' | 'â' | 'ã' | 'å' | 'ā' | 'ă' | 'ą' => "a",
        'ä' | 'æ' => "ae",
        'ç' | 'ć' | 'č' => "c",
        'ď' | 'đ' | 'ð' => "d",
        'è' | 'é' | 'ê' | 'ë' | 'ē' | 'ę' | 'ě' => "e",
        'ğ' => "g",
        'ì' | 'í' | 'î' | 'ï' | 'ī' | 'į' | 'ı' => "i",
        'ł' | 'ľ' => "l",
        'ñ' | 'ń' | 'ň' => "n",
        'ò' | 'ó' | 'ô' | 'õ' | 'ø' | 'ō' | 'ő' => "o",
        'ö' | 'œ' => "oe",
        'ř' => "r",
        'ś' | 'š' | 'ş' | 'ș' => "s",
        'ß' => "ss",
        'ť' | 'ţ' | 'ț' => "t",
        'ù' | 'ú' | 'û' | 'ū' | 'ů' | 'ű' => "u",
        'ü' => "ue",
        'ý' | 'ÿ' => "y",
        'ź' | 'ž' | 'ż' => "z",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_match_unicode() {
        let differs = |c: &char| is_letter(*c) != c.is_alphanumeric();
        assert_eq!(('\0'..=char::MAX).find(differs), None);
        let changes = |c: &char| is_unspaced(*c) && c.to_lowercase().next() != Some(*c);
        assert_eq!(('\0'..=char::MAX).find(changes), None);
    }

    #[test]
    fn words_lose_case_and_accents() {
        let check = |word: &str, folded: &str| assert_eq!(fold(word), folded, "{word}");
        check("Größe", "groesse");
        check("DÉJÀ", "deja");
        check("Łódź", "lodz");
        check("МОСКВА", "москва");
        check("カート", "カート");
    }
}
