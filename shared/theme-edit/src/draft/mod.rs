//! A theme with the changes of one run over it.

mod apply;
mod plan;
mod refs;
mod undo;

pub use self::undo::Undo;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use theme::text::LineRange;
use utoipa::ToSchema;

use crate::differs::{self, Differs, changed_lines};
use crate::error::{EditError, Mention};
use crate::journal::{Change, Entry, LoadError, StoredDraft, replayed};
use crate::locate::Fit;
use crate::text::Text;
use crate::tree::{Bytes, File, Tree};
use crate::version::Version;

/// The files without which a theme does not work. Shopify's own tools make them up where they are missing.
pub const REQUIRED: [&str; 3] =
    ["config/settings_schema.json", "layout/password.liquid", "layout/theme.liquid"];

/// A theme with the changes of one run over it. The theme below never changes; the draft holds what differs, and a journal.
///
/// - [`Draft::apply`] and [`Draft::apply_all`] edit
/// - [`Draft::open`] and [`Draft::read`] read, and note which version the run knows
/// - [`Draft::changes`] is what differs from the theme below, [`Draft::compare`] what differs from a theme that changed meanwhile
/// - [`Draft::stored`], [`Draft::contents`] and [`Draft::load`] store it
#[derive(Clone, Debug)]
pub struct Draft {
    run: String,
    pub(crate) base: Tree,
    /// What differs from the base. `None` is a deleted file.
    pub(crate) files: BTreeMap<String, Option<File>>,
    /// The path in the base of each file that was renamed.
    pub(crate) origins: BTreeMap<String, String>,
    seen: BTreeMap<String, Version>,
    journal: Vec<Entry>,
    /// The bytes of all versions that the journal names.
    blobs: BTreeMap<Version, Bytes>,
    edits: u64,
}

/// What a call, or a batch of calls, did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = EditOutcome)]
pub struct Outcome {
    /// The number of the edit, for `undo_edit`. `None` if nothing changed.
    pub edit: Option<u64>,
    /// What happened to each file, by path.
    pub files: Vec<FileOutcome>,
    /// What became of each call.
    pub calls: Vec<CallOutcome>,
    /// Where a file that was renamed or deleted is still named.
    pub mentions: Vec<Mention>,
}

/// What happened to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = EditedFile)]
pub struct FileOutcome {
    /// The file.
    pub path: String,
    /// What happened.
    pub change: Change,
    /// The version that the next call gives. `None` if the file is gone.
    #[schema(value_type = Option<String>)]
    pub version: Option<Version>,
    /// The lines of the new file that differ.
    pub lines: Vec<LineRange>,
    /// How many lines the file has.
    pub total_lines: u32,
    /// The bytes before, if there were a file and its bytes.
    #[serde(skip)]
    pub before: Option<Bytes>,
    /// The bytes after.
    #[serde(skip)]
    pub after: Option<Bytes>,
}

/// What became of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = EditCallOutcome)]
pub struct CallOutcome {
    /// Whether nothing had to be done, because the files are already as the call wants them.
    pub already_there: bool,
    /// Where the new text stands already.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub there: Option<LineRange>,
    /// How the old text was found.
    pub fit: Fit,
}

impl Draft {
    /// A draft without changes. `run` is the name under which the journal lists this run's edits.
    #[must_use]
    pub fn new(run: impl Into<String>, base: Tree) -> Self {
        Self {
            run: run.into(),
            base,
            files: BTreeMap::new(),
            origins: BTreeMap::new(),
            seen: BTreeMap::new(),
            journal: Vec::new(),
            blobs: BTreeMap::new(),
            edits: 0,
        }
    }

    /// The name of the run.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The theme below.
    #[must_use]
    pub fn base(&self) -> &Tree {
        &self.base
    }

    /// The file at a path, as it is with the changes.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&File> {
        match self.files.get(path) {
            Some(changed) => changed.as_ref(),
            None => self.base.get(path),
        }
    }

    /// All paths, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let all: BTreeSet<&str> = self.base.0.keys().chain(self.files.keys()).map(String::as_str).collect();
        all.into_iter().filter(|path| self.file(path).is_some())
    }

    /// All files with the changes, as a theme of their own.
    #[must_use]
    pub fn tree(&self) -> Tree {
        Tree(self.paths().filter_map(|path| Some((path.to_owned(), self.file(path)?.clone()))).collect())
    }

    /// What the run did.
    #[must_use]
    pub fn journal(&self) -> &[Entry] {
        &self.journal
    }

    /// The version of a file that the run read or wrote last.
    #[must_use]
    pub fn seen(&self, path: &str) -> Option<Version> {
        self.seen.get(path).copied()
    }

    /// Notes that the run knows the version of a file: it was shown to it outside of [`Draft::read`].
    pub fn note_seen(&mut self, path: &str) {
        if let Some(version) = self.file(path).map(|file| file.version) {
            self.seen.insert(path.to_owned(), version);
        }
    }

    /// Adds the bytes of a file of which only the version was known. The result is whether the file has that version.
    pub fn load_file(&mut self, path: &str, file: File) -> bool {
        let mut fits = false;
        let places = [self.base.0.get_mut(path), self.files.get_mut(path).and_then(Option::as_mut)];
        for place in places.into_iter().flatten().filter(|place| place.version == file.version) {
            *place = file.clone();
            fits = true;
        }
        fits
    }

    /// Somebody else writes a file of the draft, or deletes it. The run learns of it with its next call.
    pub fn written_by_another(&mut self, by: &str, path: &str, bytes: Option<Bytes>) {
        self.write_as(by, path, bytes.map(File::new), Change::Outside);
    }

    /// A change that no call of the run made.
    pub(crate) fn write_as(&mut self, by: &str, path: &str, file: Option<File>, change: Change) {
        if self.file(path).map(|file| file.version) == file.as_ref().map(|file| file.version) {
            return;
        }
        self.edits += 1;
        let edit = self.edits;
        self.set(edit, by, path, file, change, None);
    }

    /// Puts a file at a path, or nothing, and writes it into the journal. `differs` is how it differs, if that is known.
    fn set(
        &mut self,
        edit: u64,
        by: &str,
        path: &str,
        file: Option<File>,
        change: Change,
        differs: Option<Differs>,
    ) -> FileOutcome {
        let before = self.file(path).cloned();
        for known in [&before, &file].into_iter().flatten() {
            if let Some(bytes) = &known.bytes {
                self.blobs.insert(known.version, bytes.clone());
            }
        }
        let bytes_of = |file: &Option<File>| file.as_ref().and_then(|file| file.bytes.clone());
        let (old, new) = (bytes_of(&before), bytes_of(&file));
        let Differs { lines, total } = match (&new, differs) {
            (None, _) => Differs { lines: Vec::new(), total: 0 },
            (Some(_), Some(differs)) => differs,
            (Some(new), None) => differs::differs(old.as_deref().unwrap_or_default(), new),
        };
        let version = file.as_ref().map(|file| file.version);
        self.journal.push(Entry {
            edit,
            by: by.to_owned(),
            path: path.to_owned(),
            change: change.clone(),
            before: before.as_ref().map(|file| file.version),
            after: version,
            lines: lines.clone(),
        });
        self.put(path, file);
        FileOutcome {
            path: path.to_owned(),
            change,
            version,
            lines,
            total_lines: u32::try_from(total).unwrap_or(u32::MAX),
            before: old,
            after: new,
        }
    }

    /// Puts a file at a path. What equals the base is no difference.
    fn put(&mut self, path: &str, file: Option<File>) {
        let is_as_base = match (&file, self.base.get(path)) {
            (Some(file), Some(base)) => file.version == base.version,
            (None, None) => true,
            _ => false,
        };
        if is_as_base {
            self.files.remove(path);
        } else {
            self.files.insert(path.to_owned(), file);
        }
    }

    /// The bytes of a version that the draft knows.
    #[must_use]
    pub fn content(&self, version: Version) -> Option<Bytes> {
        let files = self.files.values().flatten().chain(self.base.0.values());
        let held = || files.into_iter().find(|file| file.version == version)?.bytes.clone();
        self.blobs.get(&version).cloned().or_else(held)
    }

    /// The bytes that must be stored with [`Draft::stored`], by version: all that the journal needs to undo and to show.
    pub fn contents(&self) -> impl Iterator<Item = (Version, &Bytes)> {
        self.blobs.iter().map(|(version, bytes)| (*version, bytes))
    }

    /// The draft without its bytes.
    #[must_use]
    pub fn stored(&self) -> StoredDraft {
        let named = self.journal.iter().map(|entry| &entry.path);
        let paths = self.files.keys().chain(named).chain(self.origins.values()).chain(self.seen.keys());
        let version = |path: &String| self.base.get(path).map(|file| file.version);
        StoredDraft {
            run: self.run.clone(),
            edits: self.edits,
            base: paths.map(|path| (path.clone(), version(path))).collect(),
            files: self
                .files
                .iter()
                .map(|(path, file)| (path.clone(), file.as_ref().map(|file| file.version)))
                .collect(),
            origins: self.origins.clone(),
            seen: self.seen.clone(),
            journal: self.journal.clone(),
        }
    }

    /// A stored draft over the theme that it was made for. `content` finds bytes by their version; what is missing can't be undone, but
    /// the files themselves must be there, unless only their versions were known.
    ///
    /// # Errors
    /// The theme has other versions, bytes are missing, or the journal does not fit.
    pub fn load(
        stored: StoredDraft,
        base: Tree,
        mut content: impl FnMut(Version) -> Option<Bytes>,
    ) -> Result<Self, LoadError> {
        let is_other = |(path, version): &(&String, &Option<Version>)| {
            base.get(path).map(|file| file.version) != **version
        };
        let paths: Vec<String> = stored.base.iter().filter(is_other).map(|(path, _)| path.clone()).collect();
        if !paths.is_empty() {
            return Err(LoadError::BaseChanged { paths });
        }
        let mut known = BTreeMap::new();
        let versions = stored.journal.iter().flat_map(|entry| [entry.before, entry.after]);
        for version in versions.chain(stored.files.values().copied()).flatten() {
            if let Some(bytes) = content(version).filter(|bytes| Version::of(bytes) == version) {
                known.insert(version, bytes);
            }
        }
        let mut draft = Self::new(stored.run, base);
        for (path, version) in stored.files {
            let file = match version {
                None => None,
                Some(version) => {
                    let bytes = known.get(&version).cloned();
                    let is_listed = || draft.base.0.values().any(|file| file.version == version);
                    if bytes.is_none() && !is_listed() {
                        return Err(LoadError::Missing { path, version });
                    }
                    Some(File { version, bytes })
                }
            };
            draft.files.insert(path, file);
        }
        for (path, version) in replayed(&stored.journal)? {
            if draft.file(path).map(|file| file.version) != version {
                return Err(LoadError::Broken { path: path.to_owned() });
            }
        }
        draft.origins = stored.origins;
        draft.seen = stored.seen;
        draft.journal = stored.journal;
        draft.blobs = known;
        draft.edits = stored.edits;
        Ok(draft)
    }

    /// The file that a call names.
    fn existing(&self, path: &str) -> Result<&File, EditError> {
        if let Some(file) = self.file(path) {
            return Ok(file);
        }
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_lowercase();
        let stem = |path: &str| name(path).split('.').next().unwrap_or_default().to_owned();
        let wanted = stem(path);
        let near = self.paths().filter(|other| !wanted.is_empty() && stem(other) == wanted);
        Err(EditError::NoSuchFile { path: path.to_owned(), near: near.take(5).map(str::to_owned).collect() })
    }

    /// The bytes of a text file.
    pub(crate) fn text_of(&self, path: &str) -> Result<(&File, &Bytes), EditError> {
        let file = self.existing(path)?;
        let Some(bytes) = &file.bytes else {
            return Err(EditError::NotLoaded { paths: vec![path.to_owned()] });
        };
        let is_wide = bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]);
        if is_wide || memchr::memchr(0, bytes).is_some() || is_binary(path) {
            return Err(EditError::NotText { path: path.to_owned() });
        }
        Ok((file, bytes))
    }

    /// Compares the version of a call, or the one that the run knows, with that of the file.
    fn check_version(&self, path: &str, given: Option<&str>, must_know: bool) -> Result<(), EditError> {
        let file = self.existing(path)?;
        let known = self.seen.get(path);
        let seen = match (given, known) {
            (Some(given), _) if file.version.is_named(given) => return Ok(()),
            (None, Some(known)) if *known == file.version => return Ok(()),
            (None, None) if !must_know => return Ok(()),
            (None, None) => {
                let lines = file.bytes.as_ref().map_or(0, |bytes| Text::new(bytes).count());
                return Err(EditError::NotRead {
                    path: path.to_owned(),
                    version: file.version.short(),
                    lines: u32::try_from(lines).unwrap_or(u32::MAX),
                });
            }
            (Some(given), _) => given.to_owned(),
            (None, Some(known)) => known.short(),
        };
        let versions = self.blobs.keys().copied().chain(self.base.get(path).map(|file| file.version));
        let old = versions.into_iter().find(|version| version.is_named(&seen));
        let lines = match (old.and_then(|version| self.content(version)), &file.bytes) {
            (Some(old), Some(new)) => changed_lines(&old, new),
            _ => Vec::new(),
        };
        Err(EditError::Changed { path: path.to_owned(), seen, version: file.version.short(), lines })
    }
}

/// Whether the name of a file says that it is no text.
fn is_binary(path: &str) -> bool {
    const ENDINGS: [&str; 14] = [
        "png", "jpg", "jpeg", "gif", "webp", "avif", "ico", "woff", "woff2", "ttf", "otf", "eot", "mp4",
        "pdf",
    ];
    path.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending.to_ascii_lowercase().as_str()))
}
