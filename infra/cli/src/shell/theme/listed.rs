//! The files of a folder before they are read.

use std::path::PathBuf;

use fs_err as fs;

use crate::Failure;

/// A file that is not read yet.
pub struct Listed {
    /// Its path in the theme.
    pub path: String,
    pub file: PathBuf,
    pub bytes: u64,
}

impl Listed {
    /// # Errors
    /// If it can't be read.
    pub fn read(&self) -> Result<Vec<u8>, Failure> {
        Ok(fs::read(&self.file)?)
    }
}

/// # Errors
/// If the files together are larger than `most`.
pub fn bounded<'a>(
    files: impl IntoIterator<Item = &'a Listed>,
    most: u64,
    what: &str,
) -> Result<(), Failure> {
    let bytes = files.into_iter().fold(0, |bytes: u64, file| bytes.saturating_add(file.bytes));
    if bytes > most {
        return Err(Failure::Message(format!("{what} may have at most {most} bytes, this has {bytes}")));
    }
    Ok(())
}
