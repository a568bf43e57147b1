//! From text to terms. A term is a stemmed word; postings are indexed by term.

use rustc_hash::FxHashMap;
use words::{Language, Stemmer, fold, fold_each, forms, split_foreign};
pub use words::{Lexicon, TermId};

/// Longer sequences of letters are data, not words.
const MAX_WORD_BYTES: usize = 40;

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
            stemmer: Stemmer::of(Language::English),
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
    let stemmer = Stemmer::of(Language::English);
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
