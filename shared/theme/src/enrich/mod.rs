//! Notes that a model adds to the theme map: purposes, features and keywords in a person's words.
//!
//! A note belongs to a path and a content. It is shown next to the index data of that content only. The index does not
//! need the notes, and they do not change it.
//!
//! - [`choose`]: which files are sent to a model, and how many per call
//! - [`prompt`]: the prompt
//! - [`answer`]: how the answer is read

pub mod answer;
pub mod choose;
pub mod prompt;

use std::collections::BTreeMap;

use hex::encode as hex;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::index::ThemeIndex;

/// How often a content is sent to a model that gives no usable answer about it.
pub const MAX_TRIES: u8 = 2;

/// A model's description of a file. It is untrusted data: readers must not follow instructions in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Note {
    /// What the file is for, in at most 300 characters.
    pub purpose: String,
    /// What the file contains, in the order of its lines; at most 20 entries.
    pub features: Vec<NotedFeature>,
    /// Words that people may use for the file; at most 12.
    pub keywords: Vec<String>,
    /// The model that wrote the note.
    pub model: String,
    pub written_at: Timestamp,
}

/// A feature in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NotedFeature {
    /// At most 80 characters.
    pub name: String,
    /// The first and the last line, counted from 1.
    pub range: [u32; 2],
}

/// The notes of a theme, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    files: BTreeMap<String, FileNote>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileNote {
    /// The first half of the content's SHA-256, hexadecimal.
    content: String,
    /// How often the content was sent without a usable answer.
    #[serde(default, skip_serializing_if = "is_zero")]
    tries: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<Note>,
}

fn is_zero(n: &u8) -> bool {
    *n == 0
}

/// Identifies a content: the first half of its SHA-256.
pub type Content = [u8; 16];

impl Notes {
    /// # Errors
    /// If the bytes are not valid notes.
    pub fn from_json(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and numbers always serialize")
    }

    fn entry(&self, path: &str, content: &Content) -> Option<&FileNote> {
        self.files.get(path).filter(|entry| entry.content == hex(content))
    }

    /// The note for a path with this content.
    #[must_use]
    pub fn of(&self, path: &str, content: &Content) -> Option<&Note> {
        self.entry(path, content)?.note.as_ref()
    }

    /// How often this content was sent to a model without a usable answer.
    #[must_use]
    pub fn tries(&self, path: &str, content: &Content) -> u8 {
        self.entry(path, content).map_or(0, |entry| entry.tries)
    }

    /// The number of files that have a note.
    #[must_use]
    pub fn written(&self) -> usize {
        self.files.values().filter(|entry| entry.note.is_some()).count()
    }

    pub fn write(&mut self, path: &str, content: &Content, note: Note) {
        let entry = FileNote { content: hex(content), tries: self.tries(path, content), note: Some(note) };
        self.files.insert(path.to_owned(), entry);
    }

    pub fn failed(&mut self, path: &str, content: &Content) {
        let tries = self.tries(path, content).saturating_add(1);
        self.files.insert(path.to_owned(), FileNote { content: hex(content), tries, note: None });
    }

    /// Deletes notes whose content is no longer in the index. Returns whether there were any.
    pub fn keep(&mut self, index: &ThemeIndex) -> bool {
        let before = self.files.len();
        self.files.retain(|path, entry| {
            index.content_hash(path).is_some_and(|content| entry.content == hex(content))
        });
        self.files.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn note(purpose: &str) -> Note {
        Note {
            purpose: purpose.into(),
            features: vec![NotedFeature { name: "Quantity".into(), range: [3, 9] }],
            keywords: vec!["bag".into()],
            model: "scripted".into(),
            written_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_note_belongs_to_one_content() {
        let index = ThemeIndex::build([("a.css", ".a {}"), ("b.css", ".b {}")]).unwrap();
        let content = index.content_hash("a.css").unwrap();
        let mut notes = Notes::default();
        notes.write("a.css", &content, note("Buttons"));
        notes.write("gone.css", &content, note("Gone"));
        notes.failed("b.css", &index.content_hash("b.css").unwrap());
        assert_eq!(notes.of("a.css", &content), Some(&note("Buttons")));
        assert_eq!((notes.of("a.css", &[0; 16]), notes.of("b.css", &content)), (None, None));
        assert_eq!(Notes::from_json(&notes.to_json()).unwrap(), notes);

        assert!(notes.keep(&index) && !notes.keep(&index));
        assert_eq!((notes.written(), notes.files.len()), (1, 2));
        let changed = ThemeIndex::build([("a.css", ".a { top: 0 }"), ("b.css", ".b {}")]).unwrap();
        assert!(notes.keep(&changed));
        assert_eq!((notes.written(), notes.files.len()), (0, 1));
    }

    #[test]
    fn tries_are_counted_for_a_content() {
        let mut notes = Notes::default();
        notes.failed("a.css", &[1; 16]);
        notes.failed("a.css", &[1; 16]);
        assert_eq!((notes.tries("a.css", &[1; 16]), notes.tries("a.css", &[2; 16])), (2, 0));
        notes.failed("a.css", &[2; 16]);
        assert_eq!(notes.tries("a.css", &[2; 16]), 1);
        notes.write("a.css", &[2; 16], note("Buttons"));
        assert_eq!((notes.tries("a.css", &[2; 16]), notes.written()), (1, 1));
    }
}
