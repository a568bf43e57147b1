//! The index as bytes: what is kept in storage, and what a cold function loads instead of a theme.
//!
//! Layout: magic `LLTI`, version (u16), the first half of the SHA-256 of the rest, then the rest: the terms and names
//! in use, sorted, and the files in the order of their paths. Numbers are LEB128; sorted numbers are stored as
//! differences. The derived parts (postings, graph) are not stored: deriving them takes a millisecond or two.
//!
//! Terms and names are numbered anew by their order, so the bytes depend on the theme's files only and not on the
//! edits that led to them.

use sha2::{Digest, Sha256};

use super::chunks::Unit;
use super::fields::{Counts, FIELDS, FieldTerm};
use super::index::{MAX_FILES, ThemeIndex};
use super::path::FileKind;
use super::record::{DefaultText, FileRecord, ReferenceRecord, SymbolRecord, Tables, Texts, own_name};
use super::scan::{DegradedReason, EdgeKind, EdgeNature, SymbolKind};
use super::text::LineRange;
use super::words::Lexicon;

const MAGIC: [u8; 4] = *b"LLTI";
/// Grows with every change of the layout, the tokenizer or the scanners: an older blob is indexed anew.
pub const VERSION: u16 = 1;
const HEADER_BYTES: usize = 4 + 2 + 16;

/// Why bytes are no index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    #[error("the bytes are no theme index")]
    NotAnIndex,
    #[error("the index has version {0}, this program reads {VERSION}")]
    Version(u16),
    #[error("the index is damaged: its checksum differs")]
    Checksum,
    #[error("the index is damaged: its content makes no sense")]
    Content,
}

impl ThemeIndex {
    pub fn to_blob(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        let (terms, names) = self.used();
        let term_places = writer.lexicon(&self.tables.terms, &terms);
        let name_places = writer.lexicon(&self.tables.names, &names);
        writer.number(self.files.len());
        for file in &self.files {
            writer.file(file, &term_places, &name_places);
        }
        let mut blob = Vec::with_capacity(HEADER_BYTES + writer.bytes.len());
        blob.extend(MAGIC);
        blob.extend(VERSION.to_le_bytes());
        blob.extend(&Sha256::digest(&writer.bytes)[..16]);
        blob.extend(writer.bytes);
        blob
    }

    pub fn from_blob(blob: &[u8]) -> Result<Self, BlobError> {
        let (header, body) = blob.split_at_checked(HEADER_BYTES).ok_or(BlobError::NotAnIndex)?;
        if header[..4] != MAGIC {
            return Err(BlobError::NotAnIndex);
        }
        let version = u16::from_le_bytes([header[4], header[5]]);
        if version != VERSION {
            return Err(BlobError::Version(version));
        }
        if Sha256::digest(body)[..16] != header[6..] {
            return Err(BlobError::Checksum);
        }
        let mut reader = Reader { bytes: body };
        let (tables, files) = reader.theme().ok_or(BlobError::Content)?;
        Ok(Self::assemble(tables, files))
    }

    /// Which terms and names any file has.
    fn used(&self) -> (Vec<bool>, Vec<bool>) {
        let mut terms = vec![false; self.tables.terms.len()];
        let mut names = vec![false; self.tables.names.len()];
        for file in &self.files {
            file.terms.iter().for_each(|entry| terms[entry.term as usize] = true);
            file.symbols.iter().for_each(|symbol| names[symbol.name as usize] = true);
            file.references.iter().for_each(|reference| names[reference.name as usize] = true);
            file.label_keys.iter().for_each(|&key| names[key as usize] = true);
            match &file.texts {
                Some(Texts::Default(texts)) => {
                    for text in texts {
                        names[text.key as usize] = true;
                        text.terms.iter().for_each(|&term| terms[term as usize] = true);
                    }
                }
                Some(Texts::Foreign(words)) => words.iter().for_each(|&(_, key)| names[key as usize] = true),
                None => {}
            }
        }
        (terms, names)
    }
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn number(&mut self, number: usize) {
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

    /// Writes the used words, sorted, each without the beginning that it shares with the one before; returns where
    /// each word went.
    fn lexicon(&mut self, lexicon: &Lexicon, used: &[bool]) -> Vec<u32> {
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

    fn file(&mut self, file: &FileRecord, terms: &[u32], names: &[u32]) {
        let term = |id: u32| terms[id as usize];
        let name = |id: u32| names[id as usize] as usize;
        self.text(&file.path);
        self.bytes.extend(file.hash);
        self.number(file.bytes as usize);
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
                // Most terms stand once in a unit: that is one bit.
                self.number((place - before) << 1 | usize::from(count > 1));
                if count > 1 {
                    self.bytes.push(count);
                }
                before = place;
            }
        }
        self.texts(file.texts.as_ref(), terms, names);
    }

    /// A byte says which fields have a count.
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

/// Reads without trusting: every answer is nothing when the bytes make no sense.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<usize> {
        let mut number = 0_u64;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return usize::try_from(number).ok();
            }
        }
        None
    }

    fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    /// A number of things that take a byte or more each.
    fn count(&mut self) -> Option<usize> {
        self.number().filter(|&count| count <= self.bytes.len())
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.count()?;
        std::str::from_utf8(self.take(length)?).ok()
    }

    fn variant<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        all.get(usize::from(self.byte()?)).copied()
    }

    fn lexicon(&mut self) -> Option<Lexicon> {
        let count = self.count()?;
        let mut lexicon = Lexicon::default();
        let mut word = String::new();
        for place in 0..count {
            let shared = self.number()?;
            if !word.is_char_boundary(shared) {
                return None;
            }
            word.truncate(shared);
            word.push_str(self.text()?);
            // A word twice would shift all that follow.
            if lexicon.intern(&word) as usize != place {
                return None;
            }
        }
        Some(lexicon)
    }

    fn theme(&mut self) -> Option<(Tables, Vec<FileRecord>)> {
        let tables = Tables { terms: self.lexicon()?, names: self.lexicon()? };
        let count = self.count().filter(|&count| count <= MAX_FILES)?;
        let mut files: Vec<FileRecord> = Vec::with_capacity(count);
        for _ in 0..count {
            let mut file = self.file(tables.terms.len(), tables.names.len())?;
            if !file.units.is_empty() {
                file.own_name = own_name(&file.path, &tables.terms);
            }
            if files.last().is_some_and(|last| last.path >= file.path) {
                return None;
            }
            files.push(file);
        }
        self.bytes.is_empty().then_some((tables, files))
    }

    fn lines(&mut self) -> Option<LineRange> {
        let (start, count) = (self.small()?, self.small()?);
        let end = start.checked_add(count.checked_sub(1)?)?;
        (start > 0).then_some(LineRange { start, end })
    }

    fn id(&mut self, below: usize) -> Option<u32> {
        self.small().filter(|&id| (id as usize) < below)
    }

    fn file(&mut self, terms: usize, names: usize) -> Option<FileRecord> {
        let path: Box<str> = self.text()?.into();
        let kind = FileKind::of(&path);
        let hash = self.take(16)?.try_into().ok()?;
        let (bytes, lines) = (self.small()?, self.small()?);
        let headline = Some(self.text()?).filter(|text| !text.is_empty()).map(Into::into);
        let degraded = self.many(|r| Some((r.small()?, r.variant(&DegradedReason::ALL)?)))?;
        let symbols = self.many(|r| {
            let kind = r.variant(&SymbolKind::ALL)?;
            Some(SymbolRecord { kind, name: r.id(names)?, lines: r.lines()? })
        })?;
        let references = self.many(|r| {
            let both = usize::from(r.byte()?);
            let (kind, nature) = (*EdgeKind::ALL.get(both / 4)?, *EdgeNature::ALL.get(both % 4)?);
            Some(ReferenceRecord { kind, nature, name: r.id(names)?, lines: r.lines()? })
        })?;
        let mut before = 0;
        let label_keys = self.many(|r| r.next(&mut before, names))?;
        let mut before = 0;
        let entries = self.many(|r| {
            let term = r.next(&mut before, terms)?;
            Some(FieldTerm { term, counts: r.counts()? })
        })?;
        let mut record = FileRecord {
            path,
            kind,
            hash,
            bytes,
            lines,
            degraded,
            symbols,
            references,
            label_keys,
            terms: entries,
            units: Vec::new(),
            unit_terms: Vec::new(),
            unit_ends: Vec::new(),
            texts: None,
            own_name: Vec::new(),
            headline,
        };
        self.units(&mut record)?;
        record.texts = self.texts(terms, names)?;
        Some(record)
    }

    fn many<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.count()?;
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            all.push(one(self)?);
        }
        Some(all)
    }

    /// The next of sorted numbers.
    fn next(&mut self, before: &mut u32, below: usize) -> Option<u32> {
        *before = before.checked_add(self.small()?)?;
        ((*before as usize) < below).then_some(*before)
    }

    fn counts(&mut self) -> Option<Counts> {
        let mask = self.byte()?;
        let mut counts = Counts::default();
        for (at, count) in counts.iter_mut().enumerate().take(FIELDS) {
            if mask & 1 << at != 0 {
                *count = self.byte()?;
            }
        }
        Some(counts)
    }

    fn units(&mut self, record: &mut FileRecord) -> Option<()> {
        let mut next_line = 1;
        let mut chunk_before = 0;
        for _ in 0..self.count()? {
            let lines =
                LineRange { start: next_line, end: next_line.checked_add(self.small()?)?.checked_sub(1)? };
            let chunk = self.small()?;
            if lines.end < lines.start || chunk < chunk_before || chunk > chunk_before + 1 {
                return None;
            }
            (next_line, chunk_before) = (lines.end + 1, chunk);
            record.units.push(Unit { lines, chunk });
            let mut place = 0;
            for _ in 0..self.count()? {
                let step = self.number()?;
                place += step >> 1;
                let count = if step & 1 == 1 { self.byte()? } else { 1 };
                record.unit_terms.push((record.terms.get(place)?.term, count));
            }
            record.unit_ends.push(record.unit_terms.len() as u32);
        }
        Some(())
    }

    fn texts(&mut self, terms: usize, names: usize) -> Option<Option<Texts>> {
        Some(match self.byte()? {
            0 => None,
            1 => Some(Texts::Default(self.many(|r| {
                let key = r.id(names)?;
                Some(DefaultText { key, terms: r.many(|r| r.id(terms))? })
            })?)),
            2 => {
                let mut before = 0;
                Some(Texts::Foreign(self.many(|r| Some((r.next(&mut before, usize::MAX)?, r.id(names)?)))?))
            }
            _ => return None,
        })
    }
}
