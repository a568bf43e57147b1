//! Reads zip archives from outside within limits, and writes archives.
//!
//! Nothing that an archive says about itself is trusted. The directory is read entry by entry, and the number of
//! entries is limited before the first one is read. Sizes are counted while inflating. So reading stops at the limit
//! even if an entry is larger than it claims, or if many entries share the same data.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use domain::validate::FieldErrors;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use zip::read::{Config, ZipFile};
use zip::result::ZipError;
use zip::write::{SimpleFileOptions, StreamWriter};
// This reader of `zip` builds no index of its own. Its module has no stable API, but the lock file pins the version.
use zip::unstable::read::ZipIterable;
use zip::{CompressionMethod, ZipReadOptions, ZipWriter};

use crate::error::Error;

/// The approximate size of a piece of an archive that is sent while it is written, in bytes.
const PIECE: usize = 64 * 1024;

/// The fewest bytes of the header before an entry's data.
const LOCAL_HEADER: u64 = 30;

/// The limits of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// Including folders.
    pub entries: usize,
    /// Bytes of one entry, inflated.
    pub entry_bytes: u64,
    /// Bytes of all entries together, inflated.
    pub total_bytes: u64,
    /// Bytes of one entry's path.
    pub path_bytes: usize,
    /// How much larger the inflated bytes may be than the compressed ones. `None`: the limits of bytes suffice.
    pub ratio: Option<Ratio>,
}

/// The most inflated bytes for each compressed byte. Small entries and archives may have more: their bytes do no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// Of an entry with more than [`Ratio::SMALL_ENTRY`] bytes.
    pub entry: u64,
    /// Of all entries together, after [`Ratio::SMALL_ARCHIVE`] bytes.
    pub archive: u64,
}

impl Ratio {
    /// In bytes, inflated.
    pub const SMALL_ENTRY: u64 = 4 * 1024 * 1024;
    /// In bytes, inflated.
    pub const SMALL_ARCHIVE: u64 = 64 * 1024 * 1024;
    /// The highest ratio of a whole file that is written here. Less than any limit of a reader.
    pub const WRITTEN: u64 = 50;
}

/// A file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveFile {
    /// A relative path with plain parts: no `..`, no `.`, no empty part, no backslash, no control character.
    pub path: String,
    pub bytes: Vec<u8>,
}

/// Why an archive cannot be read. The message follows "failed to read the archive: …".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    #[error("it is not a zip archive, or it is damaged: {0}")]
    NotAnArchive(String),
    #[error("it has {count} entries; the limit is {limit}")]
    TooManyEntries { count: usize, limit: usize },
    #[error("its files have more than {limit} bytes in total, inflated")]
    TooLarge { limit: u64 },
    #[error("the entry {path:?} has more than {limit} bytes, inflated")]
    EntryTooLarge { path: String, limit: u64 },
    #[error("the entry {path:?} has a path that {problem}")]
    Path { path: String, problem: PathProblem },
    #[error("the entry {path:?} has more than {limit} times as many bytes inflated as compressed")]
    EntryTooDense { path: String, limit: u64 },
    #[error(
        "up to the entry {path:?}, the archive has more than {limit} times as many bytes inflated as compressed"
    )]
    TooDense { path: String, limit: u64 },
    #[error(
        "the entry {path:?} has the same bytes of the archive as another entry, or is not inside the archive"
    )]
    Overlap { path: String },
    #[error("the entry {path:?} occurs twice")]
    Duplicate { path: String },
    #[error("the entry {path:?} is {what}, which is not supported")]
    Unsupported { path: String, what: &'static str },
    #[error("the entry {path:?} can't be read: {cause}")]
    Damaged { path: String, cause: String },
}

/// What is wrong with a path. The message follows "a path that …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathProblem {
    #[error("is empty")]
    Empty,
    #[error("has more than {limit} bytes")]
    TooLong { limit: usize },
    #[error("begins with a slash")]
    Absolute,
    #[error("has an empty part, `.` or `..`")]
    Escapes,
    #[error("has a backslash or a control character")]
    Unprintable,
    #[error("is not UTF-8")]
    NotText,
}

impl ArchiveError {
    /// Converts the error to an error of the input field `field`.
    #[must_use]
    pub fn of_field(&self, field: &str) -> FieldErrors {
        FieldErrors::one(field, self.to_string())
    }
}

/// Reads all files of an archive, in its order. Folders are left out.
///
/// # Errors
/// The first broken limit or unreadable entry, with the entry and the limit.
pub fn read(archive: &[u8], limits: &ArchiveLimits) -> Result<Vec<ArchiveFile>, ArchiveError> {
    let mut entries = Vec::new();
    walk(archive, limits, |_| true, |entry| entries.push(entry))?;
    Ok(entries)
}

/// Reads the `wanted` files of an archive, in its order. Only one file is in memory at a time. Other files are not
/// inflated, and their bytes do not count towards the limits.
///
/// # Errors
/// As [`read`]. The entries that were visited before the error were valid.
pub fn walk(
    archive: &[u8],
    limits: &ArchiveLimits,
    mut wanted: impl FnMut(&str) -> bool,
    mut visit: impl FnMut(ArchiveFile),
) -> Result<(), ArchiveError> {
    let mut left = limits.total_bytes;
    stream(Cursor::new(archive), limits, |path, file| {
        if !wanted(path) {
            return Ok(());
        }
        let bytes = read_within(path, file, limits.entry_bytes.min(left))?;
        let size = bytes.len() as u64;
        if size > limits.entry_bytes {
            return Err(ArchiveError::EntryTooLarge { path: path.to_owned(), limit: limits.entry_bytes });
        }
        left = left.checked_sub(size).ok_or(ArchiveError::TooLarge { limit: limits.total_bytes })?;
        visit(ArchiveFile { path: path.to_owned(), bytes });
        Ok(())
    })
}

/// Reads a file, and at most one byte more than `most`, to tell a file that just fits from one that is too large.
///
/// # Errors
/// If the file is damaged.
pub fn read_within(path: &str, file: &mut dyn Read, most: u64) -> Result<Vec<u8>, ArchiveError> {
    let mut bytes = Vec::new();
    match file.take(most.saturating_add(1)).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(ArchiveError::reading(path, error)),
    }
}

impl ArchiveError {
    /// Why an entry can't be read to its end.
    #[must_use]
    pub fn reading(path: &str, error: io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(limit) => limit,
            Err(error) => Self::Damaged { path: path.to_owned(), cause: error.to_string() },
        }
    }
}

/// The bytes that the entries of an archive occupy. No two entries may have a byte in common, otherwise a small archive can have
/// the same data many times.
struct Occupied {
    /// The first byte of each entry and the byte after its last one.
    ranges: BTreeMap<u64, u64>,
    /// The size of the archive.
    size: u64,
}

impl Occupied {
    /// Adds an entry. `false` if another entry has one of its bytes, or if it is not inside the archive.
    fn add(&mut self, begin: u64, end: u64) -> bool {
        let is_free = begin < end
            && end <= self.size
            && self.ranges.range(..end).next_back().is_none_or(|(_, last)| *last <= begin);
        if is_free {
            self.ranges.insert(begin, end);
        }
        is_free
    }
}

/// Counts bytes while they are inflated, and stops at the limits of [`Ratio`].
struct Counted<'a, R> {
    file: R,
    path: &'a str,
    ratio: Option<Ratio>,
    compressed: u64,
    inflated: u64,
    /// Of all entries up to this one.
    all_compressed: u64,
    all_inflated: &'a mut u64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.inflated = self.inflated.saturating_add(count as u64);
        *self.all_inflated = self.all_inflated.saturating_add(count as u64);
        let Some(ratio) = self.ratio else { return Ok(count) };
        let path = || self.path.to_owned();
        if self.inflated > Ratio::SMALL_ENTRY && self.inflated / ratio.entry > self.compressed {
            return Err(io::Error::other(ArchiveError::EntryTooDense { path: path(), limit: ratio.entry }));
        }
        if *self.all_inflated > Ratio::SMALL_ARCHIVE
            && *self.all_inflated / ratio.archive > self.all_compressed
        {
            return Err(io::Error::other(ArchiveError::TooDense { path: path(), limit: ratio.archive }));
        }
        Ok(count)
    }
}

/// Visits all files of an archive, in its order. Files that `visit` does not read are not inflated. The limits of bytes are
/// up to `visit`.
///
/// # Errors
/// The first broken limit or unreadable entry, and the errors of `visit`.
pub fn stream<R, E>(
    archive: R,
    limits: &ArchiveLimits,
    mut visit: impl FnMut(&str, &mut dyn Read) -> Result<(), E>,
) -> Result<(), E>
where
    R: Read + Seek + Clone,
    E: From<ArchiveError>,
{
    let broken = |error: ZipError| ArchiveError::NotAnArchive(error.to_string());
    let size = archive.clone().seek(SeekFrom::End(0)).map_err(|error| broken(ZipError::Io(error)))?;
    let mut zip = ZipIterable::try_new(archive, Config::default()).map_err(broken)?;
    if zip.len() > limits.entries {
        return Err(ArchiveError::TooManyEntries { count: zip.len(), limit: limits.entries }.into());
    }
    let mut files = zip.files_with_cloned_reader(ZipReadOptions::new()).map_err(broken)?;
    let mut seen = HashSet::new();
    let mut occupied = Occupied { ranges: BTreeMap::new(), size };
    let (mut all_compressed, mut all_inflated) = (0_u64, 0_u64);
    while let Some(file) = files.next() {
        let file = file.map_err(broken)?;
        let compressed = file.compressed_size();
        let begin = file.header_start();
        let end = file.data_start().unwrap_or(begin.saturating_add(LOCAL_HEADER)).checked_add(compressed);
        if !end.is_some_and(|end| occupied.add(begin, end)) {
            let path = String::from_utf8_lossy(file.name_raw()).into_owned();
            return Err(ArchiveError::Overlap { path }.into());
        }
        all_compressed = all_compressed.saturating_add(compressed);
        let Some(path) = path_of(&file, limits)? else { continue };
        if seen.contains(&path) {
            return Err(ArchiveError::Duplicate { path }.into());
        }
        let mut counted = Counted {
            file,
            path: &path,
            ratio: limits.ratio,
            compressed,
            inflated: 0,
            all_compressed,
            all_inflated: &mut all_inflated,
        };
        visit(&path, &mut counted)?;
        seen.insert(path);
    }
    Ok(())
}

/// The path of a file. `None` for a folder.
fn path_of<R: Read>(file: &ZipFile<'_, R>, limits: &ArchiveLimits) -> Result<Option<String>, ArchiveError> {
    let refused = |path: &str, problem| ArchiveError::Path { path: path.to_owned(), problem };
    let Ok(name) = file.name() else {
        return Err(refused(&String::from_utf8_lossy(file.name_raw()), PathProblem::NotText));
    };
    let is_folder = name.ends_with('/');
    let path = name.strip_suffix('/').unwrap_or(&name);
    check_path(path, limits.path_bytes).map_err(|problem| refused(path, problem))?;
    let unsupported = |what| ArchiveError::Unsupported { path: path.to_owned(), what };
    if file.is_symlink() {
        return Err(unsupported("a symbolic link"));
    }
    if file.encrypted() {
        return Err(unsupported("encrypted"));
    }
    Ok((!is_folder).then(|| path.to_owned()))
}

/// Accepts relative paths with plain parts.
///
/// # Errors
/// What is wrong with the path.
pub fn check_path(path: &str, most_bytes: usize) -> Result<(), PathProblem> {
    if path.is_empty() {
        return Err(PathProblem::Empty);
    }
    if path.len() > most_bytes {
        return Err(PathProblem::TooLong { limit: most_bytes });
    }
    if path.chars().any(|c| c.is_control() || c == '\\') {
        return Err(PathProblem::Unprintable);
    }
    if path.starts_with('/') {
        return Err(PathProblem::Absolute);
    }
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(PathProblem::Escapes);
    }
    Ok(())
}

/// Writes an archive. It contains no times, so the same files always give the same bytes.
///
/// # Errors
/// If two files have the same path, or if a file is larger than a plain zip allows (4 GiB).
pub fn write<P, B>(files: impl IntoIterator<Item = (P, B)>) -> Result<Vec<u8>, ArchiveError>
where
    P: AsRef<str>,
    B: AsRef<[u8]>,
{
    let broken = |error: ZipError| ArchiveError::NotAnArchive(error.to_string());
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let mut seen = HashSet::new();
    for (path, bytes) in files {
        let path = path.as_ref().to_owned();
        if seen.contains(&path) {
            return Err(ArchiveError::Duplicate { path });
        }
        writer.start_file(path.as_str(), SimpleFileOptions::default()).map_err(broken)?;
        writer
            .write_all(bytes.as_ref())
            .map_err(|error| ArchiveError::Damaged { path: path.clone(), cause: error.to_string() })?;
        seen.insert(path);
    }
    Ok(writer.finish().map_err(broken)?.into_inner())
}

/// An archive that is passed on while it is written, so that only a part of it is in memory.
#[derive(Default)]
pub struct Growing {
    zip: Option<ZipWriter<StreamWriter<Waiting>>>,
    waiting: Waiting,
}

/// A zip could not be written.
#[derive(Debug, thiserror::Error)]
#[error("a zip could not be written: {0}")]
pub struct NotWritten(String);

impl From<NotWritten> for Error {
    fn from(error: NotWritten) -> Self {
        Self::Internal(error.to_string())
    }
}

/// What the writer of the zip has written and nobody has taken.
#[derive(Clone, Default)]
struct Waiting(Arc<Mutex<Vec<u8>>>);

impl Waiting {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Waiting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Growing {
    fn zip(&mut self) -> &mut ZipWriter<StreamWriter<Waiting>> {
        self.zip.get_or_insert_with(|| ZipWriter::new_stream(self.waiting.clone()))
    }

    /// Begins a file. It may have any size.
    ///
    /// # Errors
    /// If the path can't be in a zip.
    pub fn file(&mut self, path: &str) -> Result<(), NotWritten> {
        self.begin(path, CompressionMethod::Deflated)
    }

    /// Adds a whole file. It is not compressed if it would be smaller than [`Ratio::WRITTEN`] allows, so that readers with a limit
    /// on the ratio read every archive that is written here.
    ///
    /// # Errors
    /// If the path can't be in a zip.
    pub fn whole_file(&mut self, path: &str, bytes: &[u8]) -> Result<(), NotWritten> {
        let compressed = write([(path, bytes)]).map_err(|error| NotWritten(error.to_string()))?.len() as u64;
        let is_dense = bytes.len() as u64 / Ratio::WRITTEN > compressed;
        self.begin(path, if is_dense { CompressionMethod::Stored } else { CompressionMethod::Deflated })?;
        self.write(bytes)
    }

    fn begin(&mut self, path: &str, method: CompressionMethod) -> Result<(), NotWritten> {
        // The writer must know in advance that a file may be large.
        let options = SimpleFileOptions::default().compression_method(method).large_file(true);
        self.zip().start_file(path, options).map_err(|error| NotWritten(error.to_string()))
    }

    /// Adds to the file.
    ///
    /// # Errors
    /// If no file has begun.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), NotWritten> {
        self.zip().write_all(bytes).map_err(|error| NotWritten(error.to_string()))
    }

    /// Ends the archive. What it has written last must still be taken.
    ///
    /// # Errors
    /// If the last file can't be ended.
    pub fn finish(&mut self) -> Result<(), NotWritten> {
        self.zip();
        let zip = self.zip.take().map(ZipWriter::finish);
        zip.transpose().map_err(|error| NotWritten(error.to_string()))?;
        Ok(())
    }

    /// How many bytes can be taken.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.bytes().len()
    }

    /// Takes what has been written since the last call.
    #[must_use]
    pub fn take(&mut self) -> Bytes {
        std::mem::take(&mut *self.waiting.bytes()).into()
    }
}

/// A zip that is sent while it is written, so only a little of it is in memory.
pub struct Sent {
    zip: Growing,
    out: mpsc::Sender<Result<Bytes, Error>>,
}

/// Why the writing of such a zip ended early.
#[derive(Debug)]
pub enum Stopped {
    /// The client has disconnected.
    Disconnected,
    Failed(Error),
}

impl<E: Into<Error>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// The archive that `write` writes, piece by piece. It ends with an error if something could not be read.
pub fn sent<W>(write: impl FnOnce(Sent) -> W) -> ReceiverStream<Result<Bytes, Error>>
where
    W: Future<Output = Result<(), Stopped>> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(2);
    let written = write(Sent { zip: Growing::default(), out: sender.clone() });
    tokio::spawn(async move {
        if let Err(Stopped::Failed(error)) = written.await {
            tracing::error!(cause = %error.causes(), "an export ended early");
            let _ = sender.send(Err(error)).await;
        }
    });
    ReceiverStream::new(receiver)
}

impl Sent {
    /// Begins a file.
    ///
    /// # Errors
    /// If the path can't be in a zip.
    pub fn file(&mut self, path: &str) -> Result<(), Stopped> {
        Ok(self.zip.file(path)?)
    }

    /// Adds to the file.
    ///
    /// # Errors
    /// If the client has disconnected, or if no file has begun.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Stopped> {
        for bytes in bytes.chunks(PIECE) {
            self.zip.write(bytes)?;
            if self.zip.waiting() >= PIECE {
                self.send().await?;
            }
        }
        Ok(())
    }

    /// Adds a whole file.
    ///
    /// # Errors
    /// As [`Self::file`] and [`Self::write`].
    pub async fn whole_file(&mut self, path: &str, text: &str) -> Result<(), Stopped> {
        self.file(path)?;
        self.write(text.as_bytes()).await
    }

    /// Ends the archive.
    ///
    /// # Errors
    /// If the client has disconnected, or if the last file can't be ended.
    pub async fn finish(mut self) -> Result<(), Stopped> {
        self.zip.finish()?;
        self.send().await
    }

    async fn send(&mut self) -> Result<(), Stopped> {
        self.out.send(Ok(self.zip.take())).await.map_err(|_| Stopped::Disconnected)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: ArchiveLimits =
        ArchiveLimits { entries: 8, entry_bytes: 1_000, total_bytes: 2_000, path_bytes: 40, ratio: None };

    /// A zip with paths that `write` would refuse.
    fn raw(files: &[(&str, &[u8])]) -> Vec<u8> {
        // The writer checks names, so placeholders of the same length are written and patched afterwards.
        let place = |n: usize, path: &str| format!("{n}").repeat(path.len());
        let mut archive =
            write(files.iter().enumerate().map(|(n, (path, bytes))| (place(n, path), bytes))).unwrap();
        for (n, (path, _)) in files.iter().enumerate() {
            let placed = place(n, path);
            let ends: Vec<usize> = (0..archive.len().saturating_sub(placed.len()))
                .filter(|&at| archive[at..].starts_with(placed.as_bytes()))
                .collect();
            for at in ends {
                archive[at..at + path.len()].copy_from_slice(path.as_bytes());
            }
        }
        archive
    }

    #[test]
    fn broken_rules_are_reported_with_the_limit() {
        let check = |files: &[(&str, &[u8])], expected: &str| {
            assert_eq!(read(&raw(files), &LIMITS).unwrap_err().to_string(), expected);
        };
        let path = |path: &str, problem: &str| (path.to_owned(), problem.to_owned());
        for (path, problem) in [
            path("../x", "has an empty part, `.` or `..`"),
            path("a/../../x", "has an empty part, `.` or `..`"),
            path("a//x", "has an empty part, `.` or `..`"),
            path("a/./x", "has an empty part, `.` or `..`"),
            path("/etc/passwd", "begins with a slash"),
            path("a\\..\\x", "has a backslash or a control character"),
            path("a\0b", "has a backslash or a control character"),
            path(&"p".repeat(41), "has more than 40 bytes"),
        ] {
            check(&[(&path, b"x")], &format!("the entry {path:?} has a path that {problem}"));
        }
        check(&[("aa", b"x"), ("aa", b"y")], "the entry \"aa\" occurs twice");
        check(&[("big.css", &[b' '; 1_001])], "the entry \"big.css\" has more than 1000 bytes, inflated");
        let full: &[u8] = &[b' '; 1_000];
        check(
            &[("aaa", full), ("bbb", full), ("ccc", b"x")],
            "its files have more than 2000 bytes in total, inflated",
        );
        assert_eq!(read(&raw(&[("aaa", full), ("bbb", full)]), &LIMITS).unwrap().len(), 2);
        let many: Vec<(String, &str)> = (0..9).map(|n| (format!("f{n}"), "")).collect();
        assert_eq!(
            read(&write(many).unwrap(), &LIMITS).unwrap_err().to_string(),
            "it has 9 entries; the limit is 8"
        );
        assert!(matches!(read(b"", &LIMITS), Err(ArchiveError::NotAnArchive(_))));
        assert!(matches!(read(b"PK\x03\x04 and nothing", &LIMITS), Err(ArchiveError::NotAnArchive(_))));
    }

    #[test]
    fn a_bomb_ends_at_the_limit() {
        // A ratio of a thousand to one: 4 MB of blanks in 4 KB. At most one byte more than the limit is inflated.
        let archive = write([("bomb.css", vec![b' '; 4 << 20])]).unwrap();
        assert!(archive.len() < 8 << 10);
        let expected = ArchiveError::EntryTooLarge { path: "bomb.css".into(), limit: 1_000 };
        assert_eq!(read(&archive, &LIMITS), Err(expected));
    }

    #[test]
    fn the_ratio_of_an_entry_and_of_all_entries_is_limited() {
        let limits = ArchiveLimits {
            entries: 100,
            entry_bytes: u64::MAX,
            total_bytes: u64::MAX,
            ratio: Some(Ratio { entry: 250, archive: 100 }),
            ..LIMITS
        };
        let blanks = |bytes: u64| vec![b' '; usize::try_from(bytes).unwrap()];
        let small = |n: usize| (format!("{n}.css"), blanks(Ratio::SMALL_ENTRY));
        // Small entries may have any ratio, but not too many of them.
        assert_eq!(read(&write((0..16).map(small)).unwrap(), &limits).unwrap().len(), 16);
        let expected = ArchiveError::TooDense { path: "16.css".into(), limit: 100 };
        assert_eq!(read(&write((0..17).map(small)).unwrap(), &limits), Err(expected.clone()));
        let large = write([("large.css", blanks(Ratio::SMALL_ENTRY + 1))]).unwrap();
        let dense = ArchiveError::EntryTooDense { path: "large.css".into(), limit: 250 };
        assert_eq!(read(&large, &limits), Err(dense));
        assert_eq!(read(&large, &ArchiveLimits { ratio: None, ..limits }).unwrap().len(), 1);
        // A ratio that real texts have.
        let lines = (0..600_000_u64).map(|n| (n * 7_919 % 100_003).to_string());
        let text = lines.collect::<Vec<_>>().join("\n");
        let text = write([("text.jsonl", text)]).unwrap();
        assert_eq!(read(&text, &limits).unwrap().len(), 1);
        assert_eq!(
            expected.to_string(),
            "up to the entry \"16.css\", the archive has more than 100 times as many bytes inflated as compressed"
        );
    }

    #[test]
    fn a_dense_file_that_was_written_here_is_within_the_ratio() {
        let limits = ArchiveLimits {
            entry_bytes: u64::MAX,
            total_bytes: u64::MAX,
            ratio: Some(Ratio { entry: 250, archive: 100 }),
            ..LIMITS
        };
        let dense = vec![b' '; usize::try_from(Ratio::SMALL_ENTRY).unwrap() + 1];
        let text = "h1 { color: red }\n".repeat(200);
        let mut growing = Growing::default();
        growing.whole_file("dense.css", &dense).unwrap();
        growing.whole_file("text.css", text.as_bytes()).unwrap();
        growing.finish().unwrap();
        let archive = growing.take();
        let files = read(&archive, &limits).unwrap();
        assert!(files.iter().map(|file| &file.bytes[..]).eq([&dense[..], text.as_bytes()]));
        // The other file is compressed.
        assert!(archive.len() < dense.len() + text.len(), "{}", archive.len());
    }

    #[test]
    fn no_two_entries_have_the_same_data() {
        let archive = write([("a.css", "a {}"), ("b.css", "b {}")]).unwrap();
        // The directory is at the end. The fixed part of its entries has 46 bytes, and the offset of the data is the last part.
        let offset = |name: &[u8]| archive.windows(5).rposition(|part| part == name).unwrap() - 4;
        let (first, second) = (offset(b"a.css"), offset(b"b.css"));
        let mut same = archive.clone();
        same.copy_within(first..first + 4, second);
        let overlap = Err(ArchiveError::Overlap { path: "b.css".into() });
        assert_eq!(read(&same, &LIMITS), overlap);
        // An entry that claims the bytes of the next one.
        let mut long = archive.clone();
        let size = offset(b"a.css") - 42 + 20;
        long[size..size + 4].copy_from_slice(&40_u32.to_le_bytes());
        assert_eq!(read(&long, &LIMITS), overlap);
        // An entry that claims bytes after the end.
        let mut outside = archive.clone();
        let size = offset(b"b.css") - 42 + 20;
        outside[size..size + 4].copy_from_slice(&40_000_u32.to_le_bytes());
        assert_eq!(read(&outside, &LIMITS), overlap);
        assert_eq!(read(&archive, &LIMITS).unwrap().len(), 2);
    }

    #[test]
    fn folders_are_left_out_and_links_refused() {
        let options = SimpleFileOptions::default();
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        writer.add_directory("assets/", options).unwrap();
        writer.start_file("assets/a.css", options).unwrap();
        writer.write_all(b"a {}").unwrap();
        let archive = writer.finish().unwrap().into_inner();
        let entry = ArchiveFile { path: "assets/a.css".into(), bytes: b"a {}".to_vec() };
        assert_eq!(read(&archive, &LIMITS), Ok(vec![entry]));

        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        writer.add_symlink("link", "/etc/passwd", options).unwrap();
        let archive = writer.finish().unwrap().into_inner();
        assert_eq!(
            read(&archive, &LIMITS).unwrap_err().to_string(),
            "the entry \"link\" is a symbolic link, which is not supported"
        );
    }

    #[test]
    fn unwanted_entries_are_not_inflated() {
        let archive = write([("big.css", vec![b' '; 5_000]), ("a.css", b"a {}".to_vec())]).unwrap();
        let (mut names, mut read) = (Vec::new(), Vec::new());
        let wanted = |path: &str| {
            names.push(path.to_owned());
            path == "a.css"
        };
        walk(&archive, &LIMITS, wanted, |entry| read.push(entry)).unwrap();
        assert_eq!(names, ["big.css", "a.css"]);
        assert_eq!(read, [ArchiveFile { path: "a.css".into(), bytes: b"a {}".to_vec() }]);
    }

    proptest! {
        #[test]
        fn archives_round_trip(
            files in proptest::collection::btree_map("[a-z]{1,8}(/[a-z]{1,8})?", proptest::collection::vec(any::<u8>(), 0..200), 0..8)
        ) {
            let archive = write(files.clone()).unwrap();
            prop_assert_eq!(&write(files.clone()).unwrap(), &archive);
            let entries: Vec<ArchiveFile> = files.into_iter().map(|(path, bytes)| ArchiveFile { path, bytes }).collect();
            prop_assert_eq!(read(&archive, &LIMITS).unwrap(), entries);
        }

        #[test]
        fn no_damage_panics_or_passes_the_limits(at in 0_usize..400, flip in 1_u8..=255, cut in 0_usize..400) {
            let mut archive = write([("a/b.css", vec![b' '; 900]), ("c.js", b"x".to_vec())]).unwrap();
            let at = at % archive.len();
            archive[at] ^= flip;
            for archive in [&archive[..], &archive[..archive.len() - cut % archive.len()]] {
                if let Ok(entries) = read(archive, &LIMITS) {
                    prop_assert!(entries.iter().map(|entry| entry.bytes.len()).sum::<usize>() <= 2_000);
                }
            }
        }
    }
}
