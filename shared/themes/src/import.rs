//! Imports a whole theme from an archive.
//!
//! Every import works the same way. The archive is put into the bucket, either by the caller's request or by the caller
//! at a presigned address. Its upload wakes the indexer. The indexer writes the files into a new generation and builds
//! their map. Then a single write switches the theme to both.
//!
//! An import that dies before that write has changed nothing and starts over from the beginning. An import that is
//! older than the theme's current generation is not applied. So uploads may be reported in any order: the import that
//! was requested last wins.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use domain::background::jobs::{JobKind, Outcome};
use domain::ids::{ImportId, Owner, ProjectId};
use domain::projects::theme::{
    Import, ImportState, MAX_ARCHIVE_BYTES, MAX_FILE_BYTES, ThemeFile, ThemeState,
};
use domain::validate::FieldErrors;
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::Timestamp;
use serde::Serialize;
use theme::ThemeIndex;
use theme::answers::Source;
use theme::archive::{LAYOUT, theme_paths};
use theme::index::{MAX_FILES, MAX_THEME_BYTES};
use theme::path::MAX_PATH_BYTES;
use utoipa::ToSchema;

use super::index::LEASE_LOST;
use super::{AT_ONCE, hex_sha256, index, unfit, version};
use crate::cache::Warm;
use shared::blobs::BlobKey;
use shared::context::Cx;
use shared::error::{Error, Result};
use shared::flows::archive::{self, ArchiveLimits};
use shared::flows::background::jobs::{self, Due};
use shared::flows::existing;
use shared::flows::uploads::{self, NewUpload, UploadTarget};
use shared::process::compute::{Stop, Stopped};
use shared::store::keys::Guard;
use shared::store::table::Written;
use shared::store::{Tries, Versioned};

/// The limits of a theme's archive. Paths may be longer than in a theme, because the archive may have a folder around
/// all files.
const LIMITS: ArchiveLimits = ArchiveLimits {
    entries: MAX_FILES,
    entry_bytes: MAX_FILE_BYTES as u64,
    total_bytes: MAX_THEME_BYTES as u64,
    path_bytes: 2 * MAX_PATH_BYTES,
    ratio: None,
};

/// How long a request waits for its import before it returns the import as it is then.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// How often it checks the import.
const POLL: Duration = Duration::from_millis(100);

/// An import as clients see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ImportView {
    #[serde(flatten)]
    pub import: Import,
    /// Where to put the archive, if the import was requested without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload: Option<UploadTarget>,
}

/// Imports the archive of the request, and waits for a limited time until the import is done.
///
/// # Errors
/// 404 if the project does not exist, 400 if the archive can't be a theme.
pub async fn inline(cx: &Cx, owner: &Owner, project: ProjectId, archive: Bytes) -> Result<ImportView> {
    existing::project(cx, owner, project).await?;
    // Checks the archive before anything is stored, so that the caller learns at once what is wrong with it.
    let copy = archive.clone();
    let prepared = cx.compute.builds.run(move |stop| prepare(&copy, stop)).await?;
    let refused = |reason: String| FieldErrors::one("archive", reason);
    let prepared = prepared.map_err(refused)?;
    let generation = cx.store.theme(owner, project).await?.value.generation;
    if let Some(reason) = would_break(cx, owner, project, generation, &prepared.files).await? {
        return Err(refused(reason).into());
    }
    drop(prepared);
    let import = begin(cx, owner, project, archive.len() as u64).await?;
    let id = import.import_id;
    cx.blobs.put(&BlobKey::theme_archive(owner, project, id), archive, "application/zip").await?;
    let started = Instant::now();
    loop {
        let import = read(cx, owner, project, id).await?;
        if import.import.state.is_final() || started.elapsed() > MAX_WAIT {
            return Ok(import);
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Starts an import and returns where to put its archive.
///
/// # Errors
/// 404 if the project does not exist, 400 if the announced size is not allowed.
pub async fn upload(cx: &Cx, owner: &Owner, project: ProjectId, new: NewUpload) -> Result<ImportView> {
    existing::project(cx, owner, project).await?;
    let sha256 = new.check(MAX_ARCHIVE_BYTES)?;
    let import = begin(cx, owner, project, new.bytes).await?;
    let key = BlobKey::theme_archive(owner, project, import.import_id);
    let upload = uploads::target(cx, &key, new.bytes, sha256, import.created_at).await?;
    Ok(ImportView { import, upload: Some(upload) })
}

async fn begin(cx: &Cx, owner: &Owner, project: ProjectId, archive_bytes: u64) -> Result<Import> {
    let now = cx.clock.now();
    let import = Import {
        import_id: ImportId::from_uuid(cx.clock.uuid()),
        state: ImportState::Waiting,
        archive_bytes,
        files: None,
        left_out: None,
        reason: None,
        created_at: now,
        updated_at: now,
    };
    match cx.store.write_import(owner, project, &import, 0, now).await? {
        Written::Yes => Ok(import),
        Written::Refused(_) => Err(Error::NotFound("project")),
    }
}

/// An import and its state.
///
/// # Errors
/// 404 if it does not exist.
pub async fn read(cx: &Cx, owner: &Owner, project: ProjectId, id: ImportId) -> Result<ImportView> {
    let import = cx.store.import(owner, project, id).await?.ok_or(Error::NotFound("import"))?;
    Ok(ImportView { import: import.value, upload: None })
}

/// Handles the upload of an archive.
///
/// # Errors
/// If the table or the bucket does not answer, or the deadline is reached. The event must then be delivered again.
pub async fn uploaded(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    id: ImportId,
    deadline: Timestamp,
) -> Result<()> {
    let waiting = |found: Option<Versioned<Import>>| found.filter(|import| !import.value.state.is_final());
    let Some(import) = waiting(cx.store.import(owner, project, id).await?) else { return Ok(()) };
    let is_behind = |state: &ThemeState| state.generation >= id;
    let Some(fence) = index::take(cx, owner, project, deadline, is_behind).await? else {
        return superseded(cx, owner, project, import).await;
    };
    let due = Due::At(import.value.created_at);
    let record = jobs::begin(cx, owner, JobKind::ThemeImport, &id.to_string(), due).await;
    let work = take_over(cx, owner, project, &import, fence);
    let mut tally = Outcome::default();
    let done = match index::holding(cx, owner, project, fence, work).await {
        Ok(Ended::Done(counts)) => {
            (tally.work_found, tally.artefacts) = (counts.files + counts.left_out, counts.files);
            finish(cx, owner, project, import, Some(counts)).await
        }
        Ok(Ended::Refused(reason)) => {
            index::release(cx, owner, project, fence).await;
            tally.error = Some(reason.clone());
            let failed = Import { state: ImportState::Failed, reason: Some(reason), ..import.value };
            finish(cx, owner, project, Versioned { value: failed, version: import.version }, None).await
        }
        Err(error) => Err(error),
    };
    match &done {
        Ok(()) => record.end(tally).await,
        // Another indexer has taken over. It goes on in the record.
        Err(Error::Conflict { code: LEASE_LOST, .. }) => {}
        Err(error) => record.fail(tally, error).await,
    }
    done
}

enum Ended {
    /// The theme now has the archive's files.
    Done(Counts),
    /// The archive can't be a theme, for this reason.
    Refused(String),
}

struct Counts {
    files: u64,
    left_out: u64,
}

/// Ends an import that found its generation taken. Either the theme already has this import (its end was interrupted),
/// or it has a newer one.
async fn superseded(cx: &Cx, owner: &Owner, project: ProjectId, import: Versioned<Import>) -> Result<()> {
    let state = cx.store.theme(owner, project).await?.value;
    let ended = if state.generation == import.value.import_id {
        Import { state: ImportState::Done, files: Some(state.files), ..import.value }
    } else {
        Import { state: ImportState::Superseded, ..import.value }
    };
    finish(cx, owner, project, Versioned { value: ended, version: import.version }, None).await
}

/// Stores how an import ended, and deletes its archive.
async fn finish(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    import: Versioned<Import>,
    done: Option<Counts>,
) -> Result<()> {
    let (now, version) = (cx.clock.now(), import.version);
    let mut import = Import { updated_at: now, ..import.value };
    if let Some(Counts { files, left_out }) = done {
        import = Import { state: ImportState::Done, files: Some(files), left_out: Some(left_out), ..import };
    }
    // The write is refused if the same event was handled twice at once, or if the project was deleted. Both are fine.
    let _ = cx.store.write_import(owner, project, &import, version, now).await?;
    Ok(cx.blobs.delete_prefix(&BlobKey::theme_archive(owner, project, import.import_id)).await?)
}

async fn take_over(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    import: &Versioned<Import>,
    fence: u64,
) -> Result<Ended> {
    let started = Instant::now();
    let (id, key) = (import.value.import_id, BlobKey::theme_archive(owner, project, import.value.import_id));
    let archive = match uploads::archive(cx, &key, import.value.archive_bytes).await? {
        Ok(archive) => archive,
        Err(reason) => return Ok(Ended::Refused(reason)),
    };
    let prepared = cx.compute.builds.run(move |stop| prepare(&archive, stop)).await?;
    let Prepared { files, left_out } = match prepared {
        Ok(prepared) => prepared,
        Err(reason) => return Ok(Ended::Refused(reason)),
    };
    let counts = Counts { files: files.len() as u64, left_out };
    let contents = files.clone();
    let built = cx.compute.builds.run(move |stop| {
        let files = contents.iter().map(|file| (&file.path, &file.bytes));
        let built = ThemeIndex::build(files.take_while(|_| !stop.is_set()));
        stop.check().map(|()| built)
    });
    let index = Arc::new(built.await?.map_err(unfit)?);

    // An earlier try may have stored files of another archive.
    cx.store.delete_theme_files(owner, project, id).await?;
    let mut uploaded = BTreeSet::new();
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let found = cx.store.theme(owner, project).await?;
        if !found.value.is_held_by(fence) {
            return Err(Error::conflict(LEASE_LOST, "another indexer has taken over"));
        }
        if let Some(reason) = would_break(cx, owner, project, found.value.generation, &files).await? {
            cx.store.delete_theme_files(owner, project, id).await?;
            return Ok(Ended::Refused(reason));
        }
        let old = cx.store.all_theme_files(owner, project, found.value.generation).await?;
        put_contents(cx, owner, project, &files, &old, &mut uploaded).await?;
        let records = records(&files, &old, &found.value, cx.clock.now());
        cx.store.put_theme_files(owner, project, id, &records).await?;

        let revision = found.value.revision.saturating_add(1);
        let turned = ThemeState {
            generation: id,
            revision,
            files: counts.files,
            bytes: records.iter().map(|file| file.bytes).sum(),
            ..found.value.clone()
        };
        let version = version(owner, project, &turned);
        let warm = Warm { version, source: Source::Map, index: index.clone() };
        let (map, warm) = index::store(cx, owner, project, warm, started).await?;
        let turned = turned.mapped(map.clone());
        match cx.store.replace_theme(owner, project, &turned, found.version).await? {
            Written::Yes => {
                index::completed(cx, owner, project, &map, warm).await?;
                cx.store.delete_theme_files(owner, project, found.value.generation).await?;
                sweep(cx, owner, project, &records, &map.sha256).await?;
                return Ok(Ended::Done(counts));
            }
            // A file was written meanwhile, so the files need new version numbers.
            Written::Refused(Guard::Theme) => {}
            Written::Refused(_) => return Err(Error::NotFound("project")),
        }
    }
}

/// Deletes the contents and maps that nothing refers to any more. It keeps recent ones, because a content is stored
/// before the record that refers to it.
async fn sweep(cx: &Cx, owner: &Owner, project: ProjectId, files: &[ThemeFile], map: &str) -> Result<()> {
    const YOUNG: Duration = Duration::from_secs(3_600);
    let used: BTreeSet<&str> = files.iter().map(|file| file.sha256.as_str()).collect();
    cx.blobs.sweep(&BlobKey::theme_files(owner, project), YOUNG, |sha256| used.contains(sha256)).await?;
    Ok(cx.blobs.sweep(&BlobKey::theme_maps(owner, project), YOUNG, |sha256| sha256 == map).await?)
}

/// A file of the archive that becomes a file of the theme.
#[derive(Clone)]
struct NewFile {
    path: String,
    sha256: String,
    bytes: Bytes,
}

struct Prepared {
    files: Vec<NewFile>,
    left_out: u64,
}

/// Reads an archive as the files of a theme. The inner error says why the archive can't be a theme.
fn prepare(archive: &[u8], stop: &Stop) -> Result<Result<Prepared, String>, Stopped> {
    let mut entries = Vec::new();
    // Once stopped, the walk inflates no further entries, so it ends soon.
    let read = archive::walk(archive, &LIMITS, |_| !stop.is_set(), |entry| entries.push(entry));
    stop.check()?;
    if let Err(error) = read {
        return Ok(Err(error.to_string()));
    }
    let names: Vec<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
    let paths: Vec<Option<String>> = match theme_paths(&names) {
        Ok(paths) => paths.into_iter().map(|path| path.map(str::to_owned)).collect(),
        Err(error) => {
            // If no theme was found, an invalid path may be the reason.
            let long = names.iter().find_map(|path| Some((path, theme::path::check_path(path).err()?)));
            return Ok(Err(match long {
                Some((path, error)) => format!("the entry {path:?}: {error}"),
                None => format!("the archive {error}"),
            }));
        }
    };
    let all = entries.len();
    let mut files = Vec::with_capacity(all);
    for (entry, path) in entries.into_iter().zip(paths) {
        let Some(path) = path else { continue };
        stop.check()?;
        if let Err(error) = theme::path::check_path(&path) {
            return Ok(Err(format!("the entry {path:?}: {error}")));
        }
        files.push(NewFile { sha256: hex_sha256(&entry.bytes), path, bytes: entry.bytes.into() });
    }
    let left_out = (all - files.len()) as u64;
    Ok(Ok(Prepared { files, left_out }))
}

/// Why these files may not replace the present ones. `None` if they may. An import must not turn a theme that can show
/// pages into one that can't.
async fn would_break(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    generation: ImportId,
    files: &[NewFile],
) -> Result<Option<String>> {
    if files.iter().any(|file| file.path == LAYOUT) {
        return Ok(None);
    }
    let there = cx.store.theme_file(owner, project, generation, LAYOUT).await?;
    Ok(there.map(|_| {
        let count = files.len();
        format!(
            "the archive has no {LAYOUT}, which the theme of this project has: an import replaces all files, and these \
             {count} alone show no page; import the whole theme, or write single files with PUT"
        )
    }))
}

/// The records of the new files. A file with unchanged content keeps its version.
fn records(files: &[NewFile], old: &[ThemeFile], state: &ThemeState, now: Timestamp) -> Vec<ThemeFile> {
    let record = |file: &NewFile| {
        let old = old.binary_search_by(|old| old.path.as_str().cmp(&file.path)).ok().map(|at| &old[at]);
        let unchanged = old.filter(|old| old.sha256 == file.sha256);
        ThemeFile {
            path: file.path.clone(),
            sha256: file.sha256.clone(),
            bytes: file.bytes.len() as u64,
            version: unchanged.map_or_else(
                || old.map_or(state.revision, |old| old.version).saturating_add(1),
                |same| same.version,
            ),
            updated_at: unchanged.map_or(now, |same| same.updated_at),
        }
    };
    files.iter().map(record).collect()
}

/// Stores the contents that are not stored yet.
async fn put_contents(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    files: &[NewFile],
    old: &[ThemeFile],
    uploaded: &mut BTreeSet<String>,
) -> Result<()> {
    let mut known: BTreeSet<&str> = old.iter().map(|file| file.sha256.as_str()).collect();
    known.extend(uploaded.iter().map(String::as_str));
    let new: Vec<(String, Bytes)> = files
        .iter()
        .filter(|file| known.insert(&file.sha256))
        .map(|file| (file.sha256.clone(), file.bytes.clone()))
        .collect();
    drop(known);
    uploaded.extend(new.iter().map(|(sha256, _)| sha256.clone()));
    let puts: Vec<_> = new
        .into_iter()
        .map(|(sha256, bytes)| async move {
            let key = BlobKey::theme_file(owner, project, &sha256);
            cx.blobs.put(&key, bytes, "application/octet-stream").await
        })
        .collect();
    Ok(stream::iter(puts).buffer_unordered(AT_ONCE).try_collect::<()>().await?)
}
