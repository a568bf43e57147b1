//! The serialized index. It is kept in storage, and a cold function loads it instead of reading the whole theme.
//!
//! Layout: magic `LLTI`, version (u16), the first half of the SHA-256 of the rest, then the rest: the used terms and
//! names, sorted, and the files in the order of their paths. Numbers are LEB128; sorted numbers are stored as
//! differences. The derived parts (postings, graph) are not stored, because computing them takes a millisecond or two.
//!
//! Terms and names are renumbered in sorted order, so the bytes depend only on the theme's files and not on the edits
//! that led to them.

mod read;
mod write;

use sha2::{Digest, Sha256};

use super::index::ThemeIndex;
use super::record::Texts;
use read::Reader;
use write::Writer;

const MAGIC: [u8; 4] = *b"LLTI";
/// Increment this with every change of the layout, the tokenizer or the scanners. Themes with an older blob are indexed
/// again. The state of a theme names the version that it expects, so increment that one too.
pub const VERSION: u16 = 4;
const HEADER_BYTES: usize = 4 + 2 + 16;

/// Why bytes are not a valid index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    #[error("the bytes are not a theme index")]
    NotAnIndex,
    #[error("the index has version {0}; this program reads version {VERSION}")]
    Version(u16),
    #[error("the index is damaged: its checksum differs")]
    Checksum,
    #[error("the index is damaged: its content is not valid")]
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
        let (tables, files) = Reader::new(body).theme().ok_or(BlobError::Content)?;
        Ok(Self::assemble(tables, files))
    }

    /// Which terms and names at least one file has.
    fn used(&self) -> (Vec<bool>, Vec<bool>) {
        let mut terms = vec![false; self.tables.terms.len()];
        let mut names = vec![false; self.tables.names.len()];
        for file in &self.files {
            file.terms.iter().for_each(|entry| terms[entry.term as usize] = true);
            file.symbols.iter().for_each(|symbol| names[symbol.name as usize] = true);
            file.references.iter().for_each(|reference| names[reference.name as usize] = true);
            file.hints.iter().for_each(|&(_, name)| names[name as usize] = true);
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
