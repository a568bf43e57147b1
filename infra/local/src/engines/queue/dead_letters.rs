//! The dead letters of one queue. They are JSON lines, and are on disk before they leave the queue.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Mutex;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A message that was received too often without success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    pub message_id: Uuid,
    pub body: String,
    /// How often it was delivered.
    pub receives: u32,
    pub sent_at: Timestamp,
    pub buried_at: Timestamp,
}

#[derive(Debug, thiserror::Error)]
pub enum DeadLetterError {
    #[error("keep dead letters in {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("read line {line} of the dead letters in {}: {source}", path.display())]
    Line { path: PathBuf, line: usize, source: serde_json::Error },
}

#[derive(Debug)]
pub(super) struct DeadLetters {
    path: PathBuf,
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    count: usize,
}

impl DeadLetters {
    pub(super) fn open(path: PathBuf) -> Result<Self, DeadLetterError> {
        let open = || -> io::Result<Open> {
            let text = match fs::read(&path) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                Err(error) => return Err(error),
            };
            let file = OpenOptions::new().create(true).append(true).open(&path)?;
            // A line without its end was being written when the process was killed. Its message was still in the queue.
            let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            file.set_len(whole as u64)?;
            Ok(Open { file, count: text.iter().filter(|byte| **byte == b'\n').count() })
        };
        match open() {
            Ok(open) => Ok(Self { path, open: Mutex::new(open) }),
            Err(source) => Err(DeadLetterError::File { path, source }),
        }
    }

    pub(super) fn append(&self, letter: &DeadLetter) -> io::Result<()> {
        let mut line = serde_json::to_vec(letter)?;
        line.push(b'\n');
        let mut open = self.open.lock().expect("no code panics while it holds the file");
        open.file.write_all(&line)?;
        open.file.sync_data()?;
        open.count += 1;
        Ok(())
    }

    /// Hands each of them over, and forgets all. New ones wait meanwhile.
    pub(super) fn drain(&self, take: impl FnMut(DeadLetter)) -> Result<(), DeadLetterError> {
        let mut open = self.open.lock().expect("no code panics while it holds the file");
        self.read()?.into_iter().for_each(take);
        open.count = 0;
        let emptied = open.file.set_len(0).and_then(|()| open.file.sync_data());
        emptied.map_err(|source| DeadLetterError::File { path: self.path.clone(), source })
    }

    pub(super) fn count(&self) -> usize {
        self.open.lock().expect("no code panics while it holds the file").count
    }

    pub(super) fn read(&self) -> Result<Vec<DeadLetter>, DeadLetterError> {
        let text = fs::read_to_string(&self.path)
            .map_err(|source| DeadLetterError::File { path: self.path.clone(), source })?;
        (text.lines().enumerate())
            .map(|(index, line)| {
                serde_json::from_str(line).map_err(|source| DeadLetterError::Line {
                    path: self.path.clone(),
                    line: index + 1,
                    source,
                })
            })
            .collect()
    }
}
