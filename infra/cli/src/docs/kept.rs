//! Small JSON files in the folder of git, which are never committed.

use std::io::Write;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Failure;

/// The content of a file. One that does not exist or is damaged counts as empty: both are files of what was seen before, and without
/// them less is taken for known.
#[must_use]
pub fn read<T: DeserializeOwned + Default>(path: &Path) -> T {
    let bytes = std::fs::read(path).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Writes a file. A reader sees the old one or the new one.
///
/// # Errors
/// If it can't be written.
pub fn write(path: &Path, content: &impl Serialize) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer_pretty(&mut new, content).map_err(std::io::Error::from)?;
    new.write_all(b"\n")?;
    // Otherwise a power failure may leave an empty file.
    new.as_file().sync_all()?;
    new.persist(path).map_err(|error| error.error)?;
    Ok(())
}
