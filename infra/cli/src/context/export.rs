//! `context export`: all agent logs as files: `{session}/{agent}.jsonl`, `{session}/main.jsonl`,
//! `{session}/agent-instructions.jsonl` and `all-agent-instructions.jsonl`.
//!
//! If a folder already has an export, its files only grow. A file whose lines differ from the server's is not changed,
//! because it may be the only copy.

use std::fs::{File, Permissions};
use std::io::{self, Read, Seek};
use std::path::Path;

use fs_err as fs;
use zip::ZipArchive;
use zip::read::ZipFile;
use zip::result::ZipError;

use crate::Failure;
use crate::config::Places;
use crate::output::{self, shown};
use crate::server::{Patience, Server};

/// Writes the files.
///
/// # Errors
/// If the server does not answer, or a file would lose lines.
pub fn run(dir: &Path, force: bool) -> Result<(), Failure> {
    let settings = Places::look().read()?;
    output::warn(&settings.warnings);
    let mut archive = tempfile::tempfile()?;
    let server = Server::new(&settings, Patience::PERSON);
    io::copy(&mut server.get_stream("/context/export")?, &mut archive)?;
    archive.rewind()?;
    let written = unpack(archive, dir, force)?;
    Ok(output::print(format!("{written} files written, in {}\n", shown(dir)))?)
}

/// Returns how many files were new or longer.
fn unpack(archive: File, dir: &Path, force: bool) -> Result<usize, Failure> {
    let mut zip = ZipArchive::new(archive).map_err(broken)?;
    let (mut written, mut kept) = (0, Vec::new());
    fs::create_dir_all(dir)?;
    for index in 0..zip.len() {
        let mut file = zip.by_index(index).map_err(broken)?;
        let Some(inside) = file.enclosed_name().filter(|_| !file.is_symlink()) else {
            return Err(Failure::Message("the archive names a file outside of the folder".to_owned()));
        };
        let path = dir.join(inside);
        if file.is_dir() {
            fs::create_dir_all(&path)?;
        } else {
            match write(&mut file, &path, force)? {
                FileWrite::Written => written += 1,
                FileWrite::Same => {}
                FileWrite::Kept => kept.push(path),
            }
        }
    }
    if kept.is_empty() {
        return Ok(written);
    }
    let names: Vec<_> = kept.iter().map(|path| format!("\n  {}", shown(path))).collect();
    Err(Failure::Message(format!(
        "{written} files written; these differ from the server's logs and were not changed (--force replaces them):{}",
        names.concat()
    )))
}

enum FileWrite {
    Written,
    Same,
    Kept,
}

fn write(new: &mut ZipFile<'_, File>, path: &Path, force: bool) -> Result<FileWrite, Failure> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    // A concurrent reader sees either the old file or the new one.
    let mut temporary = tempfile::Builder::new().prefix(".export-").tempfile_in(folder)?;
    let size = io::copy(new, &mut temporary)?;
    match fs::File::open(path) {
        Ok(old) => match (is_beginning(&old, temporary.path())?, force) {
            (true, _) if old.metadata()?.len() == size => return Ok(FileWrite::Same),
            (false, false) => return Ok(FileWrite::Kept),
            _ => {}
        },
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        Err(_) => {}
    }
    fs::set_permissions(temporary.path(), permissions())?;
    temporary.persist(path).map_err(|error| error.error)?;
    Ok(FileWrite::Written)
}

/// Whether the new file begins with all of the old one.
fn is_beginning(mut old: &fs::File, new: &Path) -> io::Result<bool> {
    let mut new = fs::File::open(new)?;
    let (mut ours, mut theirs) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let read = old.read(&mut ours)?;
        if read == 0 {
            return Ok(true);
        }
        match new.read_exact(&mut theirs[..read]) {
            Ok(()) if ours[..read] == theirs[..read] => {}
            Ok(()) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

/// The permissions that other programs would use. Temporary files are only accessible to the owner.
fn permissions() -> Permissions {
    use std::os::unix::fs::PermissionsExt;
    Permissions::from_mode(0o644)
}

fn broken(error: ZipError) -> Failure {
    Failure::Message(format!("failed to read the archive that the server gave: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_beginning_of_another() {
        let dir = tempfile::tempdir().unwrap();
        let long = "x".repeat(200_000);
        // old, new, whether the new one only grew
        for (old, new, expected) in [
            ("", "", true),
            ("", "a\n", true),
            ("a\n", "a\nb\n", true),
            ("a\nb\n", "a\n", false),
            ("a\n", "b\n", false),
            (long.as_str(), long.as_str(), true),
        ] {
            let paths = ["old", "new"].map(|name| dir.path().join(name));
            fs::write(&paths[0], old).unwrap();
            fs::write(&paths[1], new).unwrap();
            assert_eq!(is_beginning(&fs::File::open(&paths[0]).unwrap(), &paths[1]).unwrap(), expected);
        }
    }
}
