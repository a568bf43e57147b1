//! The edits of a change set: loaded over the theme, and stored again.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use domain::ids::{Owner, ProjectId};
use domain::projects::theme::ThemeFile;
use domain::validate::FieldErrors;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use shared::blobs::{BlobError, BlobKey};
use shared::context::StagedObjects;
use shared::error::{Error, Result};
use theme_edit::diff::{self, Hunk};
use theme_edit::{
    Call, Changes, Compared, Draft, EditError, File, FileChange, LoadError, Outcome, StoredDraft, Tree,
    Version,
};
use uuid::Uuid;

use super::record::{ChangeSetFile, FileChangeKind, Stored};
use super::{Place, Resolve, Side, changes_of, conflicts};
use crate::cache::{ContentCache, Recent, ThemeVersion};
use crate::files;
use crate::{AT_ONCE, state, version};

/// The most bytes that the files of a change set may have together, before and after all edits.
const MAX_BYTES: usize = 16 << 20;

/// The most changed parts of a file that a record names.
const MAX_PARTS: usize = 10;

/// How often a call may ask for more files. Each time, all that it needs so far are loaded.
const MAX_LOADS: usize = 20;

/// The object of a change set.
#[derive(Serialize, Deserialize)]
struct Object {
    draft: StoredDraft,
    /// The contents by their version. What is no text is not in it.
    contents: BTreeMap<Version, String>,
    /// Contents that are no UTF-8, in hexadecimal.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    other_contents: BTreeMap<Version, String>,
}

/// A change set with its edits, over the theme.
pub(super) struct Loaded {
    pub stored: Stored,
    pub draft: Draft,
    /// Whether the theme has changed since the edits were stored. Then the draft is another one than the stored one.
    pub is_rebased: bool,
    /// The theme as it is now. `None`: the draft is over it.
    now: Option<Tree>,
    /// The sizes of the theme's files.
    sizes: BTreeMap<String, u64>,
}

/// The texts that differ from the theme. `None` is a deleted file.
pub(super) type Texts = BTreeMap<String, Option<Bytes>>;

impl Loaded {
    /// Reads the edits of a change set. What only others have changed since is taken over. `None`: the object is gone.
    pub async fn read(place: Place<'_>, stored: Stored) -> Result<Option<Self>> {
        let (now, sizes) = theme_of(place).await?;
        let name = stored.set.change_set_id.to_string();
        let Some(object) = stored.object else {
            let draft = Draft::new(name, now);
            return Ok(Some(Self { stored, draft, is_rebased: false, now: None, sizes }));
        };
        let Some(object) = read_object(place, object).await? else { return Ok(None) };
        let now = object.filled(now);
        let base = base_of(&now, &object);
        let is_current = base == now;
        let mut draft = draft_of(object, base)?;
        let mut behind = None;
        // An applied change set stays as it was applied.
        if stored.is_open() && !is_current && draft.rebase(now.clone(), false).is_err() {
            behind = Some(now);
        }
        let is_rebased = stored.is_open() && !is_current;
        Ok(Some(Self { stored, draft, is_rebased, now: behind, sizes }))
    }

    /// A change set that takes back an applied one. The inner error: the files that somebody has changed since, with three sides.
    pub async fn reverting(
        place: Place<'_>,
        applied: Stored,
        stored: Stored,
    ) -> Result<std::result::Result<Self, Vec<Compared>>> {
        let (now, sizes) = theme_of(place).await?;
        let Some(object) = applied.object else {
            return Err(Error::conflict("nothing_changed", "the change set has no edits"));
        };
        let object = read_object(place, object).await?.ok_or(Error::NotFound("change set"))?;
        let mut now = object.filled(now);
        let base = base_of(&now, &object);
        let before = draft_of(object, base)?;
        // The theme as it was right after the change set was applied, and in it, the files as they were before.
        let mut draft = Draft::new(stored.set.change_set_id.to_string(), before.tree());
        let changes = before.changes().files;
        // What the change set has only renamed or deleted, it never read.
        let unread = changes.iter().filter_map(|file| Some((file.path.clone(), file.before.as_ref()?)));
        let unread: BTreeMap<String, File> = contents_of(place, unread).await?.into_iter().collect();
        for FileChange { path, from, before, .. } in changes {
            let bytes = match before {
                None => None,
                Some(File { bytes: Some(bytes), .. }) => Some(bytes),
                Some(_) => match unread.get(&path) {
                    Some(file) => file.bytes.clone(),
                    None => return Err(Error::internal(format!("{path} has no content from before"))),
                },
            };
            if let Some(from) = from {
                draft.written_by_another("revert", &from, bytes);
                draft.written_by_another("revert", &path, None);
            } else {
                draft.written_by_another("revert", &path, bytes);
            }
        }
        let both: Vec<String> = draft
            .changes()
            .files
            .iter()
            .flat_map(|file| [Some(file.path.clone()), file.from.clone()])
            .flatten()
            .collect();
        load_into(place, &mut now, &both).await?;
        let open = conflicts(draft.compare(&now, true));
        if !open.is_empty() {
            return Ok(Err(open));
        }
        if draft.rebase(now, true).is_err() {
            return Err(Error::internal("a merged change set has conflicts"));
        }
        Ok(Ok(Self { stored, draft, is_rebased: false, now: None, sizes }))
    }

    /// Makes calls. Files that they need are read from the bucket.
    pub async fn apply(
        &mut self,
        place: Place<'_>,
        calls: &[Call],
    ) -> Result<std::result::Result<Outcome, EditError>> {
        // The engine moves and deletes files without their bytes. What is stored must have them: the diff shows them, an undo and a
        // revert bring them back, and the theme below may lose them.
        let named = calls.iter().filter_map(|call| match call {
            Call::RenameFile { path, .. }
            | Call::DeleteFile { path, .. }
            | Call::EditLines { path, .. }
            | Call::SearchReplace { path, .. }
            | Call::WriteFile { path, .. }
            | Call::EditNode { path, .. } => Some(path.clone()),
            Call::CreateFile { .. } | Call::UndoEdit { .. } => None,
        });
        self.load_all(place, &named.collect::<Vec<_>>()).await?;
        let mut asked: Vec<String> = Vec::new();
        for _ in 0..MAX_LOADS {
            let done = match calls {
                [call] => self.draft.apply(call),
                calls => self.draft.apply_all(calls),
            };
            match done.as_ref().err().and_then(not_loaded) {
                Some(paths) if asked == paths => {
                    let told = format!(
                        "the text that {} had before is not kept: take back all edits, or write what you want",
                        paths.join(", ")
                    );
                    return Err(Error::conflict("edit_refused", told));
                }
                Some(paths) => {
                    self.load(place, paths).await?;
                    asked = paths.to_vec();
                }
                None => return Ok(done),
            }
        }
        Err(Error::internal("an edit asks for files without end"))
    }

    /// Reads those of the files into the draft that are not there yet.
    pub async fn load_all(&mut self, place: Place<'_>, paths: &[String]) -> Result<()> {
        let is_missing = |path: &&String| self.draft.file(path).is_some_and(|file| file.bytes.is_none());
        let missing: Vec<String> = paths.iter().filter(is_missing).cloned().collect();
        self.load(place, &missing).await
    }

    /// The size of a file.
    pub fn bytes_of(&self, path: &str) -> Option<u64> {
        let file = self.draft.file(path)?;
        file.bytes.as_ref().map(|bytes| bytes.len() as u64).or_else(|| self.sizes.get(path).copied())
    }

    /// Reads files of the theme into the draft.
    pub async fn load(&mut self, place: Place<'_>, paths: &[String]) -> Result<()> {
        let wanted = paths.iter().filter_map(|path| {
            Some((path.clone(), self.draft.file(path).or_else(|| self.draft.base().get(path))?))
        });
        for (path, file) in contents_of(place, wanted).await? {
            if !self.draft.load_file(&path, file) {
                return Err(files::changed_meanwhile(&path));
            }
        }
        Ok(())
    }

    /// The files that both the change set and others have changed.
    pub async fn conflicts(&self, place: Place<'_>, merging: bool) -> Result<Vec<Compared>> {
        let Some(now) = &self.now else { return Ok(Vec::new()) };
        let mut now = now.clone();
        self.load_changed(place, &mut now).await?;
        Ok(conflicts(self.draft.compare(&now, merging)))
    }

    /// Reads the theme's own contents of the files that the draft changes.
    async fn load_changed(&self, place: Place<'_>, now: &mut Tree) -> Result<()> {
        load_into(place, now, &self.changed_paths()).await
    }

    /// The paths that the draft changes, before and after renames.
    fn changed_paths(&self) -> Vec<String> {
        let changed = self.draft.changes().files.into_iter();
        changed.flat_map(|file| [Some(file.path), file.from]).flatten().collect()
    }

    /// Puts the draft over the theme as it is now. Returns the conflicts that are not decided.
    pub async fn resolve(&mut self, place: Place<'_>, input: &Resolve) -> Result<Vec<Compared>> {
        let Some(mut now) = self.now.take() else { return Ok(Vec::new()) };
        self.load_changed(place, &mut now).await?;
        let open = conflicts(self.draft.compare(&now, input.merge));
        if let Some(path) = input.decisions.keys().find(|path| open.iter().all(|file| file.path != **path)) {
            let path = domain::text::quoting::short_line(path, 200);
            return Err(
                FieldErrors::one("decisions", format!("{path} is no file that both have changed")).into()
            );
        }
        let undecided: Vec<Compared> =
            open.iter().filter(|file| !input.decisions.contains_key(&file.path)).cloned().collect();
        if !undecided.is_empty() {
            return Ok(undecided);
        }
        let mut decisions = BTreeMap::new();
        for Compared { path, .. } in &open {
            let chosen = match input.decisions.get(path) {
                Some(Side::Theirs) => now.get(path),
                _ => self.draft.file(path),
            };
            let bytes = match chosen {
                None => None,
                Some(File { bytes: Some(bytes), .. }) => Some(bytes.clone()),
                Some(_) => return Err(Error::internal(format!("{path} is not loaded"))),
            };
            decisions.insert(path.clone(), bytes);
        }
        // A renamed file whose new path belongs to others stays where it was.
        let is_theirs = |path: &String| input.decisions.get(path) == Some(&Side::Theirs);
        let changed = self.draft.changes().files.into_iter().filter(|file| is_theirs(&file.path));
        let sources: Vec<String> = changed.filter_map(|file| file.from).collect();
        let kept: Vec<(String, theme_edit::Bytes)> = sources
            .into_iter()
            .filter_map(|path| Some((path.clone(), now.get(&path)?.bytes.clone()?)))
            .collect();
        self.draft
            .resolve(now, input.merge, &decisions)
            .map_err(|error| Error::conflict("theme_changed", error.to_string()))?;
        for (path, bytes) in kept {
            if self.draft.file(&path).is_none() {
                self.draft.written_by_another("the theme below", &path, Some(bytes));
            }
        }
        Ok(Vec::new())
    }

    /// The texts that differ from the theme.
    pub fn texts(&self) -> Texts {
        let mut texts = Texts::new();
        for FileChange { path, from, after, .. } in self.draft.changes().files {
            if let Some(from) = from {
                texts.insert(from, None);
            }
            let is_deleted = after.is_none();
            let bytes = after.and_then(|file| file.bytes).map(|bytes| Bytes::copy_from_slice(&bytes));
            if is_deleted || bytes.is_some() {
                texts.insert(path, bytes);
            }
        }
        texts
    }

    /// The changes of files that applying makes.
    pub fn writes(&self) -> Result<Vec<files::FileChange>> {
        let files = self.draft.base().0.iter();
        let sizes = files.filter_map(|(path, file)| Some((file.version, *self.sizes.get(path)?))).collect();
        changes_of(&self.draft, &sizes)
    }

    /// Stores the edits as a new object, and returns the record that names it.
    pub async fn keep(self, place: Place<'_>) -> Result<Stored> {
        // What can't be applied is not kept either.
        self.writes()?;
        let Self { mut stored, draft, .. } = self;
        let (changes, edits) = (draft.changes(), draft.stored());
        let (mut contents, mut other_contents) = (BTreeMap::new(), BTreeMap::new());
        for (version, bytes) in kept_contents(&draft, &changes)? {
            match std::str::from_utf8(&bytes) {
                Ok(text) => _ = contents.insert(version, text.to_owned()),
                Err(_) => _ = other_contents.insert(version, domain::hex(&bytes)),
            }
        }
        stored.set.hash = changes.hash();
        stored.set.files = files_of(&changes);
        stored.set.edits = edits.edits;
        stored.set.updated_at = place.cx.clock.now();
        let object = Object { draft: edits, contents, other_contents };
        let json = serde_json::to_vec(&object).map_err(|error| Error::internal(error.to_string()))?;
        let id = place.cx.clock.uuid();
        let key = BlobKey::change_set(place.owner, place.project, id);
        place.cx.blobs.put_expiring(&key, json, "application/json").await?;
        stored.object = Some(id);
        Ok(stored)
    }
}

/// The contents that are stored: of each changed file before and after all edits, because the theme loses the one before when the change set
/// is applied; and as far as there is room, what stood in between, the newest first. An edit whose content is left out can't be taken back
/// by itself.
///
/// # Errors
/// The changed files are too large.
fn kept_contents(
    draft: &Draft,
    changes: &Changes,
) -> Result<BTreeMap<Version, theme_edit::Bytes>, FieldErrors> {
    let mut kept = BTreeMap::new();
    let mut size = 0;
    for file in &changes.files {
        for File { version, bytes } in [&file.before, &file.after].into_iter().flatten() {
            let Some(bytes) = bytes.clone().or_else(|| draft.content(*version)) else { continue };
            size += if kept.contains_key(version) { 0 } else { bytes.len() };
            kept.insert(*version, bytes);
        }
    }
    if size > MAX_BYTES {
        let told = format!(
            "the files of a change set have at most {MAX_BYTES} bytes, before and after all edits; these have {size}: apply it in parts"
        );
        return Err(FieldErrors::one("files", told));
    }
    let known: BTreeMap<Version, &theme_edit::Bytes> = draft.contents().collect();
    for version in draft.journal().iter().rev().flat_map(|entry| [entry.after, entry.before]).flatten() {
        let Some(bytes) = known.get(&version).filter(|_| !kept.contains_key(&version)) else { continue };
        if size + bytes.len() > MAX_BYTES {
            break;
        }
        size += bytes.len();
        kept.insert(version, (*bytes).clone());
    }
    Ok(kept)
}

/// The files that an edit needs and that are not in memory.
fn not_loaded(error: &EditError) -> Option<&[String]> {
    match error {
        EditError::NotLoaded { paths } => Some(paths),
        EditError::InBatch { error, .. } => not_loaded(error),
        _ => None,
    }
}

/// The theme as it is now, without contents, and the sizes of its files.
async fn theme_of(place: Place<'_>) -> Result<(Tree, BTreeMap<String, u64>)> {
    let Place { cx, owner, project } = place;
    let state = state(cx, owner, project).await?;
    let version = version(owner, project, &state);
    let kept = cx.kept.get::<Listings>();
    let place = (owner.clone(), project);
    if let Some((_, listing)) = kept.get(&place).filter(|(known, _)| *known == version) {
        return Ok(listing);
    }
    let files = cx.store.all_theme_files(owner, project, state.generation).await?;
    let (mut tree, mut sizes) = (Tree::default(), BTreeMap::new());
    for ThemeFile { path, sha256, bytes, .. } in files {
        let version = sha256.parse().map_err(|_| Error::internal(format!("{path} has no SHA-256")))?;
        tree.insert(path.clone(), File::listed(version));
        sizes.insert(path, bytes);
    }
    kept.put(place, (version, (tree.clone(), sizes.clone())));
    Ok((tree, sizes))
}

/// The most themes whose lists of files are kept.
const LISTINGS: usize = 8;

type Listing = (Tree, BTreeMap<String, u64>);

/// The lists of the files of the themes that were edited last, with the version of the theme: most calls find the theme as the call before.
type Listings = Recent<(Owner, ProjectId), (ThemeVersion, Listing), LISTINGS>;

/// The theme that the draft was made for: as it is now, but with the files that the draft knows as they were.
fn base_of(now: &Tree, object: &Object) -> Tree {
    let mut base = now.clone();
    for (path, version) in &object.draft.base {
        match version {
            Some(version) if now.get(path).map(|file| file.version) == Some(*version) => {}
            Some(version) => {
                let file = object.content(*version).map_or_else(|| File::listed(*version), File::new);
                base.insert(path.clone(), file);
            }
            None => _ = base.0.remove(path),
        }
    }
    base
}

impl Object {
    /// A theme with the contents that are at hand.
    fn filled(&self, mut theme: Tree) -> Tree {
        for file in theme.0.values_mut().filter(|file| file.bytes.is_none()) {
            if let Some(bytes) = self.content(file.version) {
                *file = File::new(bytes);
            }
        }
        theme
    }

    fn content(&self, version: Version) -> Option<Arc<[u8]>> {
        let text = self.contents.get(&version).map(|text| text.as_bytes().into());
        text.or_else(|| unhex(self.other_contents.get(&version)?).map(Into::into))
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|digit| Some(digit.to_digit(16)? as u8)).collect();
    Some(digits?.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
}

fn draft_of(object: Object, base: Tree) -> Result<Draft> {
    let contents = |version| object.content(version);
    Draft::load(object.draft.clone(), base, contents)
        .map_err(|error: LoadError| Error::internal(error.to_string()))
}

async fn read_object(place: Place<'_>, id: Uuid) -> Result<Option<Object>> {
    let bytes = match place.cx.blobs.get(&BlobKey::change_set(place.owner, place.project, id)).await {
        Ok(bytes) => bytes,
        // It was replaced, deleted, or is a month old.
        Err(BlobError::Missing { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let object = serde_json::from_slice(&bytes);
    object.map(Some).map_err(|error| Error::internal(format!("a change set can't be read: {error}")))
}

/// The contents of files that are not in memory.
async fn contents_of(
    place: Place<'_>,
    wanted: impl Iterator<Item = (String, &File)>,
) -> Result<Vec<(String, File)>> {
    let kept = place.cx.kept.get::<ContentCache>();
    let reads: Vec<_> = wanted
        .filter(|(_, file)| file.bytes.is_none())
        .map(|(path, file)| {
            let (version, kept) = (file.version, kept.clone());
            async move {
                if let Some(bytes) = kept.get(place.owner, version) {
                    return Ok((path, File { version, bytes: Some(bytes) }));
                }
                let key = BlobKey::theme_file(place.owner, place.project, &version.to_string());
                match place.cx.blobs.get(&key).await {
                    Ok(bytes) => {
                        let bytes = Arc::<[u8]>::from(&bytes[..]);
                        let file = File::new(bytes.clone());
                        if file.version != version {
                            return Err(Error::internal(format!(
                                "the stored content of {path} is another one"
                            )));
                        }
                        kept.put(place.owner, version, bytes);
                        Ok((path, file))
                    }
                    // An import has replaced the theme.
                    Err(BlobError::Missing { .. }) => Err(files::changed_meanwhile(&path)),
                    Err(error) => Err(Error::from(error)),
                }
            }
        })
        .collect();
    stream::iter(reads).buffer_unordered(AT_ONCE).try_collect().await
}

/// Reads files into a tree.
async fn load_into(place: Place<'_>, tree: &mut Tree, paths: &[String]) -> Result<()> {
    let wanted: Vec<_> =
        paths.iter().filter_map(|path| Some((path.clone(), tree.get(path)?.clone()))).collect();
    let wanted = wanted.iter().map(|(path, file)| (path.clone(), file));
    for (path, file) in contents_of(place, wanted).await? {
        tree.insert(path, file);
    }
    Ok(())
}

/// The objects around a write of a change set's record.
pub(super) fn objects(place: Place<'_>, replaced: Option<Uuid>, made: Option<Uuid>) -> StagedObjects {
    let key =
        |object: Option<Uuid>| object.map(|object| BlobKey::change_set(place.owner, place.project, object));
    StagedObjects { made: key(made).into_iter().collect(), replaced: key(replaced).into_iter().collect() }
}

/// The files that differ from the theme, as the record names them.
pub(super) fn files_of(changes: &Changes) -> Vec<ChangeSetFile> {
    changes.files.iter().map(changed_file).collect()
}

fn changed_file(file: &FileChange) -> ChangeSetFile {
    let bytes = |file: &Option<File>| file.as_ref().and_then(|file| file.bytes.clone()).unwrap_or_default();
    let (before, after) = (bytes(&file.before), bytes(&file.after));
    let (old, new): (Vec<&[u8]>, Vec<&[u8]>) = (lines(&before), lines(&after));
    let hunks = diff::hunks(&old, &new);
    let added = hunks.iter().map(|hunk| hunk.new.len()).sum();
    let removed = hunks.iter().map(|hunk| hunk.old.len()).sum();
    let change = match (&file.before, &file.after, &file.from) {
        (_, _, Some(_)) => FileChangeKind::Renamed,
        (None, ..) => FileChangeKind::Created,
        (_, None, _) => FileChangeKind::Deleted,
        _ => FileChangeKind::Edited,
    };
    // A part that was only removed has the line behind it.
    let last = new.len();
    let part = |hunk: &Hunk| {
        [hunk.new.start + 1, hunk.new.end.max(hunk.new.start + 1)].map(|line| line.min(last) as u32)
    };
    let lines = hunks.iter().map(part).filter(|[start, _]| *start > 0).take(MAX_PARTS).collect();
    ChangeSetFile { path: file.path.clone(), change, from: file.from.clone(), added, removed, lines }
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stood_in_between_is_kept_as_far_as_there_is_room() {
        // Eight files of a little more than 1 MB: before and after are one too many for 16 MB.
        let text = |file: usize, n: usize| format!("{}/* {file} {n} */\n", "b{}\n".repeat(1 << 18));
        let path = |file: usize| format!("assets/a{file}.css");
        let base: Tree = (0..8).map(|file| (path(file), text(file, 0).into_bytes())).collect();
        let mut draft = Draft::new("set", base);
        let mut write = |file: usize, n: usize| {
            draft.note_seen(&path(file));
            let (path, content) = (path(file), text(file, n));
            draft.apply(&Call::WriteFile { path, version: None, content, allow_shrink: Vec::new() }).unwrap();
            kept_contents(&draft, &draft.changes()).map(|kept| {
                let has = |file, n| kept.contains_key(&Version::of(text(file, n).as_bytes()));
                assert!((0..=file).all(|file| has(file, 0)), "what the theme has");
                (kept.len(), has(0, 1))
            })
        };
        assert_eq!(write(0, 1), Ok((2, true)));
        assert_eq!(write(0, 2), Ok((3, true)));
        for file in 1..6 {
            write(file, 1).unwrap();
            write(file, 2).unwrap();
        }
        assert_eq!(write(6, 1), Ok((15, false)), "the oldest that is not needed goes first");
        let told = write(7, 1).unwrap_err().to_string();
        assert!(told.starts_with("files: the files of a change set have at most 16777216 bytes"), "{told}");
    }
}
