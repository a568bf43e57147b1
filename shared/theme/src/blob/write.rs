//! Writing the body of a blob.

use crate::fields::Counts;
use crate::record::{FileRecord, Texts};
use crate::scan::hints::HintKind;
use crate::text::LineRange;
use crate::words::Lexicon;

/// Appends to the bytes.
#[derive(Default)]
pub struct Writer {
    pub bytes: Vec<u8>,
}

impl Writer {
    pub fn number(&mut self, number: usize) {
        let mut number = number as u64;
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn text(&mut self, text: &str) {
        self.number(text.len());
        self.bytes.extend(text.as_bytes());
    }

    /// Writes the used words in sorted order. Each word omits the prefix that it shares with the previous word. Returns
    /// the new number of each word.
    pub fn lexicon(&mut self, lexicon: &Lexicon, used: &[bool]) -> Vec<u32> {
        let mut order: Vec<u32> = (0_u32..).zip(used).filter(|(_, used)| **used).map(|(id, _)| id).collect();
        order.sort_unstable_by_key(|&id| lexicon.term(id));
        let mut places = vec![u32::MAX; lexicon.len()];
        self.number(order.len());
        let mut before = "";
        for (place, &id) in (0_u32..).zip(&order) {
            let word = lexicon.term(id);
            let mut shared = word.bytes().zip(before.bytes()).take_while(|(a, b)| a == b).count();
            while !word.is_char_boundary(shared) {
                shared -= 1;
            }
            self.number(shared);
            self.text(&word[shared..]);
            places[id as usize] = place;
            before = word;
        }
        places
    }

    fn lines(&mut self, lines: LineRange) {
        self.number(lines.start as usize);
        self.number(lines.count() as usize);
    }

    pub fn file(&mut self, file: &FileRecord, terms: &[u32], names: &[u32]) {
        let term = |id: u32| terms[id as usize];
        let name = |id: u32| names[id as usize] as usize;
        self.text(&file.path);
        self.bytes.extend(file.hash);
        self.number(file.bytes as usize);
        self.number(file.characters as usize);
        self.number(file.lines as usize);
        self.text(file.headline.as_deref().unwrap_or_default());
        self.number(file.degraded.len());
        for &(line, reason) in &file.degraded {
            self.number(line as usize);
            self.bytes.push(reason as u8);
        }
        self.number(file.symbols.len());
        for symbol in &file.symbols {
            self.bytes.push(symbol.kind as u8);
            self.number(name(symbol.name));
            self.lines(symbol.lines);
        }
        self.number(file.references.len());
        for reference in &file.references {
            self.bytes.push(reference.kind as u8 * 4 + reference.nature as u8);
            self.number(name(reference.name));
            self.lines(reference.lines);
        }
        let mut hints: Vec<(u8, usize)> =
            file.hints.iter().map(|&(kind, of)| (kind as u8, name(of))).collect();
        hints.sort_unstable();
        for kind in HintKind::ALL {
            let own = hints.iter().filter(|hint| hint.0 == kind as u8).map(|hint| hint.1);
            self.sorted(own.collect::<Vec<_>>().into_iter());
        }
        let mut keys: Vec<usize> = file.label_keys.iter().map(|&key| name(key)).collect();
        keys.sort_unstable();
        self.sorted(keys.into_iter());

        let mut entries: Vec<(u32, Counts)> =
            file.terms.iter().map(|entry| (term(entry.term), entry.counts)).collect();
        entries.sort_unstable_by_key(|entry| entry.0);
        let local = |id: u32| {
            entries.binary_search_by_key(&term(id), |entry| entry.0).expect("a unit's term is the file's")
        };
        self.number(entries.len());
        let mut before = 0;
        for (id, counts) in &entries {
            self.number((id - before) as usize);
            before = *id;
            self.counts(*counts);
        }
        self.number(file.units.len());
        let mut start = 0;
        for (unit, &end) in file.units.iter().zip(&file.unit_ends) {
            self.number(unit.lines.count() as usize);
            self.number(unit.chunk as usize);
            let mut own: Vec<(usize, u8)> =
                file.unit_terms[start..end as usize].iter().map(|&(id, count)| (local(id), count)).collect();
            own.sort_unstable();
            start = end as usize;
            self.number(own.len());
            let mut before = 0;
            for (place, count) in own {
                // Most terms occur once in a unit. One bit marks this case.
                self.number((place - before) << 1 | usize::from(count > 1));
                if count > 1 {
                    self.bytes.push(count);
                }
                before = place;
            }
        }
        self.texts(file.texts.as_ref(), terms, names);
    }

    /// Writes one byte that says which fields have a count, then the counts.
    fn counts(&mut self, counts: Counts) {
        let mask = counts.iter().enumerate().fold(0, |mask, (at, &count)| mask | u8::from(count > 0) << at);
        self.bytes.push(mask);
        self.bytes.extend(counts.iter().filter(|count| **count > 0));
    }

    fn sorted(&mut self, numbers: impl ExactSizeIterator<Item = usize>) {
        self.number(numbers.len());
        let mut before = 0;
        for number in numbers {
            self.number(number - before);
            before = number;
        }
    }

    fn texts(&mut self, texts: Option<&Texts>, terms: &[u32], names: &[u32]) {
        match texts {
            None => self.bytes.push(0),
            Some(Texts::Default(texts)) => {
                self.bytes.push(1);
                self.number(texts.len());
                for text in texts {
                    self.number(names[text.key as usize] as usize);
                    self.number(text.terms.len());
                    text.terms.iter().for_each(|&id| self.number(terms[id as usize] as usize));
                }
            }
            Some(Texts::Foreign(words)) => {
                self.bytes.push(2);
                let mut words: Vec<(u32, u32)> =
                    words.iter().map(|&(hash, key)| (hash, names[key as usize])).collect();
                words.sort_unstable();
                self.number(words.len());
                let mut before = 0;
                for (hash, key) in words {
                    self.number((hash - before) as usize);
                    before = hash;
                    self.number(key as usize);
                }
            }
        }
    }
}
