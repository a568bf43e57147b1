//! Reading the body of a blob.

use crate::chunks::Unit;
use crate::fields::{Counts, FIELDS, FieldTerm};
use crate::index::MAX_FILES;
use crate::path::FileKind;
use crate::record::{DefaultText, FileRecord, ReferenceRecord, SymbolRecord, Tables, Texts, own_name};
use crate::scan::hints::HintKind;
use crate::scan::{DegradedReason, EdgeKind, EdgeNature, SymbolKind};
use crate::text::LineRange;
use crate::words::Lexicon;

/// Reads untrusted bytes. Every method returns `None` if the bytes are not valid.
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

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

    /// The length of a list whose entries take one byte or more each.
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
        let mut lexicon = Lexicon::with_capacity(count);
        let mut word = String::new();
        for place in 0..count {
            let shared = self.number()?;
            if !word.is_char_boundary(shared) {
                return None;
            }
            word.truncate(shared);
            word.push_str(self.text()?);
            // A duplicate word would shift the numbers of all later words.
            if lexicon.intern(&word) as usize != place {
                return None;
            }
        }
        Some(lexicon)
    }

    /// The whole body. `None` if bytes are left over.
    pub fn theme(mut self) -> Option<(Tables, Vec<FileRecord>)> {
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
        let (bytes, characters, lines) = (self.small()?, self.small()?, self.small()?);
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
        let mut hints = Vec::new();
        for kind in HintKind::ALL {
            let mut before = 0;
            hints.extend(self.many(|r| Some((kind, r.next(&mut before, names)?)))?);
        }
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
            characters,
            lines,
            degraded,
            symbols,
            references,
            hints,
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

    /// The next number of a sorted list.
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
