//! From text to terms. A term is a stemmed word; postings are indexed by term.

use std::hash::BuildHasher;
use std::ops::RangeInclusive;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rust_stemmers::{Algorithm, Stemmer};
use rustc_hash::{FxBuildHasher, FxHashMap};

/// A term's number in its [`Lexicon`].
pub type TermId = u32;

/// Longer sequences of letters are data, not words.
const MAX_WORD_BYTES: usize = 40;

/// The terms of a theme. It only grows; a term that no file contains any more has no postings.
///
/// A theme has tens of thousands of terms, and each change of a file copies them all. So they are stored in one string.
#[derive(Clone, Default)]
pub struct Lexicon {
    text: String,
    /// Where each term ends in `text`.
    ends: Vec<u32>,
    ids: HashTable<TermId>,
}

impl Lexicon {
    pub fn with_capacity(terms: usize) -> Self {
        Self { text: String::new(), ends: Vec::with_capacity(terms), ids: HashTable::with_capacity(terms) }
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn term(&self, id: TermId) -> &str {
        slice(&self.text, &self.ends, id)
    }

    /// The terms with a length in `lengths`, in bytes.
    pub fn of_length(&self, lengths: RangeInclusive<u32>) -> impl Iterator<Item = TermId> {
        let starts = std::iter::once(&0).chain(&self.ends);
        let terms = (0..).zip(starts.zip(&self.ends));
        terms.filter(move |(_, (start, end))| lengths.contains(&(*end - *start))).map(|(term, _)| term)
    }

    pub fn get(&self, term: &str) -> Option<TermId> {
        self.ids.find(hash(term), |&id| self.term(id) == term).copied()
    }

    pub fn intern(&mut self, term: &str) -> TermId {
        let Self { text, ends, ids } = self;
        let of = |id: TermId| slice(text, ends, id);
        let id = ends.len() as TermId;
        match ids.entry(hash(term), |&id| of(id) == term, |&id| hash(of(id))) {
            Entry::Occupied(known) => return *known.get(),
            Entry::Vacant(free) => free.insert(id),
        };
        text.push_str(term);
        ends.push(text.len() as u32);
        id
    }
}

fn slice<'a>(text: &'a str, ends: &[u32], id: TermId) -> &'a str {
    let id = id as usize;
    let start = if id == 0 { 0 } else { ends[id - 1] };
    &text[start as usize..ends[id] as usize]
}

fn hash(term: &str) -> u64 {
    FxBuildHasher.hash_one(term)
}

/// Splits text into terms. It remembers every word form, because a theme repeats the same words often.
pub struct Tokenizer<'a> {
    lexicon: &'a mut Lexicon,
    stemmer: Stemmer,
    seen: FxHashMap<Box<str>, (u32, u32)>,
    pool: Vec<TermId>,
}

impl<'a> Tokenizer<'a> {
    pub fn new(lexicon: &'a mut Lexicon) -> Self {
        Self {
            lexicon,
            stemmer: Stemmer::create(Algorithm::English),
            seen: FxHashMap::default(),
            pool: Vec::new(),
        }
    }

    /// The terms of `text`, in order. `each` also gets the byte position of the word form.
    pub fn terms(&mut self, text: &str, mut each: impl FnMut(usize, TermId)) {
        for (at, form) in forms(text) {
            let (start, end) = self.form(form);
            for &term in &self.pool[start as usize..end as usize] {
                each(at, term);
            }
        }
    }

    fn form(&mut self, form: &str) -> (u32, u32) {
        if let Some(&known) = self.seen.get(form) {
            return known;
        }
        let start = self.pool.len() as u32;
        let (stemmer, lexicon, pool) = (&self.stemmer, &mut *self.lexicon, &mut self.pool);
        split_form(form, |word| {
            if let Some(term) = normalize(stemmer, word) {
                pool.push(lexicon.intern(&term));
            }
        });
        let range = (start, self.pool.len() as u32);
        self.seen.insert(form.into(), range);
        range
    }

    /// A name's terms, and its neighbouring parts joined: `mega-menu` has `mega`, `menu` and `megamenu`.
    pub fn name(&mut self, name: &str, mut each: impl FnMut(TermId)) {
        let mut before: Option<TermId> = None;
        for (_, form) in forms(name) {
            let (start, end) = self.form(form);
            for place in start..end {
                let term = self.pool[place as usize];
                each(term);
                if let Some(before) = before
                    && let Some(joined) = join(self.lexicon.term(before), self.lexicon.term(term))
                {
                    each(self.lexicon.intern(&joined));
                }
                before = Some(term);
            }
        }
    }

    pub fn lexicon(&self) -> &Lexicon {
        self.lexicon
    }
}

/// Two words written as one. People and file names often differ in this.
pub fn join(first: &str, second: &str) -> Option<String> {
    (first.len() + second.len() <= MAX_WORD_BYTES).then(|| format!("{first}{second}"))
}

/// The normalised words of a text, in order.
pub fn words(text: &str) -> Vec<String> {
    spoken(text).into_iter().map(|(_, word)| word).collect()
}

/// The original words of a text in lower case, each with its normalised form.
pub fn spoken(text: &str) -> Vec<(String, String)> {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut words = Vec::new();
    for (_, form) in forms(text) {
        split_form(form, |word| {
            if let Some(stem) = normalize(&stemmer, word) {
                words.push((fold(word), stem));
            }
        });
    }
    words
}

/// Sequences of letters and digits, with their positions. A word ends at an apostrophe, and the ending is dropped:
/// `doesn't` is `doesn`.
fn forms(text: &str) -> impl Iterator<Item = (usize, &str)> {
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

fn is_word_byte(b: u8) -> bool {
    IS_WORD_BYTE[b as usize]
}

/// Splits `CartDrawer2` into its words, and text in scripts without spaces into pairs of characters.
fn split_form(form: &str, mut each: impl FnMut(&str)) {
    if form.len() > MAX_WORD_BYTES * 2 {
        return;
    }
    if !form.is_ascii() {
        return split_foreign(form, each);
    }
    let bytes = form.as_bytes();
    let mut start = 0;
    for at in 1..bytes.len() {
        let (before, here) = (bytes[at - 1], bytes[at]);
        let hump = before.is_ascii_lowercase() && here.is_ascii_uppercase();
        // Splits `HTMLElement` into `HTML` and `Element`.
        let acronym = before.is_ascii_uppercase()
            && here.is_ascii_uppercase()
            && bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        if hump || acronym {
            each(&form[start..at]);
            start = at;
        }
    }
    each(&form[start..]);
}

fn split_foreign(form: &str, mut each: impl FnMut(&str)) {
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
fn is_letter(c: char) -> bool {
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
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0E00}'..='\u{0E7F}' | '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}')
}

/// Hashes of the words of a text in another language than English: not stemmed, without accents. The hashes are stored,
/// so the function must never change.
pub fn hashes(text: &str, mut each: impl FnMut(u32)) {
    for (_, form) in forms(text) {
        if form.is_ascii() {
            if form.len() > 1 {
                each(form.bytes().fold(FNV_START, |hash, b| fnv(hash, b.to_ascii_lowercase())));
            }
        } else {
            split_foreign(form, |word| {
                let mut hash = FNV_START;
                fold_each(word, |part| hash = part.bytes().fold(hash, fnv));
                each(hash);
            });
        }
    }
}

const FNV_START: u32 = 0x811C_9DC5;

fn fnv(hash: u32, b: u8) -> u32 {
    (hash ^ u32::from(b)).wrapping_mul(0x0100_0193)
}

/// Lower case, without accents, stemmed as English. `None` for text that is not a word: single letters, numbers,
/// hashes.
fn normalize(stemmer: &Stemmer, word: &str) -> Option<String> {
    if !word.is_ascii() {
        return Some(fold(word));
    }
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    // 404 is the only number that is a name: the template of the error page.
    let is_number = digits == word.len() && word != "404";
    if word.len() < 2 || word.len() > MAX_WORD_BYTES || digits > 4 || is_number {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    Some(stemmer.stem(&lower).into_owned())
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
fn fold_each(word: &str, mut each: impl FnMut(&str)) {
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
    fn text_becomes_stemmed_words() {
        let check = |text: &str, expected: &[&str]| assert_eq!(words(text), expected, "{text:?}");
        check("Cart drawers, closing", &["cart", "drawer", "close"]);
        check(
            "CartDrawer.onClose product__media-item",
            &["cart", "drawer", "on", "close", "product", "media", "item"],
        );
        check("HTMLElement h2 x 12 a1b2c3d4e5", &["html", "element", "h2"]);
        check("Größe déjà", &["groesse", "deja"]);
        check("カート追加", &["カー", "ート", "ト追", "追加"]);
        check("“drawer” doesn’t", &["drawer", "doesn"]);
        check("", &[]);
    }

    #[test]
    fn letters_match_unicode() {
        let differs = |c: &char| is_letter(*c) != c.is_alphanumeric();
        assert_eq!(('\0'..=char::MAX).find(differs), None);
        let changes = |c: &char| is_unspaced(*c) && c.to_lowercase().next() != Some(*c);
        assert_eq!(('\0'..=char::MAX).find(changes), None);
    }

    #[test]
    fn a_name_also_has_its_parts_joined() {
        let mut lexicon = Lexicon::default();
        let mut terms = Vec::new();
        Tokenizer::new(&mut lexicon).name("mega-menu.liquid", |term| terms.push(term));
        let terms: Vec<_> = terms.iter().map(|&term| lexicon.term(term)).collect();
        assert_eq!(terms, ["mega", "menu", "megamenu", "liquid", "menuliquid"]);
    }

    #[test]
    fn a_form_is_split_the_same_way_every_time() {
        let mut lexicon = Lexicon::default();
        let mut tokenizer = Tokenizer::new(&mut lexicon);
        let mut terms = Vec::new();
        tokenizer.terms("addToCart x addToCart", |at, term| terms.push((at, term)));
        assert_eq!(terms, [(0, 0), (0, 1), (0, 2), (12, 0), (12, 1), (12, 2)]);
    }
}
