//! The files of a theme: read, write, delete, rename, list.
//!
//! A content is stored under its hash before the record that refers to it. The record is written in one transaction
//! with the increase of the theme's revision. That transaction is refused if an import has replaced the generation
//! meanwhile, so no write gets lost in files that nobody reads any more.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use domain::ids::{ImportId, Owner, ProjectId};
use domain::projects::theme::{MAX_FILE_BYTES, ThemeFile, ThemeState};
use domain::validate::FieldErrors;
use futures::FutureExt;
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use theme::index::{MAX_FILES, MAX_THEME_BYTES};
use theme::path::{FileKind, check_path};
pub use theme_edit::Outline;
use utoipa::ToSchema;

use super::glob::Glob;
use super::{AT_ONCE, hex_sha256, state};
use shared::blobs::{BlobError, BlobKey};
use shared::context::Cx;
use shared::error::{Error, Result};
use shared::flows::page::{self, Page, PageQuery, Record};
use shared::flows::projects::indexing;
use shared::flows::{edit, existing};
use shared::process::compute::Stop;
use shared::request::caller::IfMatch;
use shared::store::table::Write;
use shared::store::{Once, Store, Tries, Versioned, keys};

/// A file as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FileView {
    #[schema(example = "sections/header.liquid")]
    pub path: String,
    pub kind: FileKind,
    pub bytes: u64,
    /// SHA-256 of the content, in hexadecimal.
    pub sha256: String,
    pub updated_at: Timestamp,
    /// Send it in `If-Match`.
    pub version: u64,
}

impl From<ThemeFile> for FileView {
    fn from(file: ThemeFile) -> Self {
        Self {
            kind: FileKind::of(&file.path),
            path: file.path,
            bytes: file.bytes,
            sha256: file.sha256,
            updated_at: file.updated_at,
            version: file.version,
        }
    }
}

/// A file with its content.
#[derive(Clone, Debug)]
pub struct FileContent {
    pub file: FileView,
    pub bytes: Bytes,
}

/// The new path of a file.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[schema(example = json!({ "path": "snippets/cart-notice.liquid" }))]
pub struct Rename {
    /// The new path. No file may exist there.
    #[schema(min_length = 1, max_length = 256)]
    pub path: String,
}

/// What a write did.
#[derive(Clone, Debug)]
pub struct Stored {
    pub file: FileView,
    pub is_new: bool,
}

/// The state of a theme, and a file of its current generation.
struct ThemeAndFile {
    state: ThemeState,
    file: Option<Versioned<ThemeFile>>,
}

async fn find(cx: &Cx, owner: &Owner, project: ProjectId, path: &str) -> Result<ThemeAndFile> {
    let state = state(cx, owner, project).await?;
    // No theme has a file at an invalid path, and a path that is too long can't be a key of the table.
    let file = match check_path(path) {
        Ok(()) => cx.store.theme_file(owner, project, state.generation, path).await?,
        Err(_) => None,
    };
    Ok(ThemeAndFile { state, file })
}

fn checked(field: &str, path: &str) -> Result<(), FieldErrors> {
    check_path(path).map_err(|error| FieldErrors::one(field, error.to_string()))
}

fn check_version(if_match: Option<IfMatch>, file: Option<&ThemeFile>) -> Result<()> {
    let view = file.cloned().map(FileView::from);
    edit::check(if_match, file.map_or(0, |file| file.version), &view)
}

/// Writes a file, and replaces the present one. Writing the same content again changes nothing.
///
/// # Errors
/// 404 if the project does not exist, 400 if the path or the size breaks a limit, 409 if `If-Match` is not the current
/// version.
pub async fn put(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    path: &str,
    if_match: Option<IfMatch>,
    content: Bytes,
) -> Result<Stored> {
    checked("path", path)?;
    if content.len() > MAX_FILE_BYTES {
        let message = format!("must be at most {MAX_FILE_BYTES} bytes, is {}", content.len());
        return Err(FieldErrors::one("content", message).into());
    }
    let (hashed, bytes) = (content.clone(), content.len() as u64);
    let sha256 = cx.compute.on_body(content.len(), move || Ok(hex_sha256(&hashed))).await?;
    let mut uploaded = false;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let ThemeAndFile { state, file: old } = match find(cx, owner, project, path).await {
            Err(gone @ Error::NotFound(_)) if uploaded => {
                cx.blobs.delete_prefix(&BlobKey::project_prefix(owner, project)).await?;
                return Err(gone);
            }
            found => found?,
        };
        check_version(if_match, old.as_ref().map(|old| &old.value))?;
        if let Some(old) = old.as_ref().filter(|old| old.value.sha256 == sha256) {
            if !state.is_settled() {
                indexing::announce(cx, owner, project).await;
            }
            return Ok(Stored { file: old.value.clone().into(), is_new: false });
        }
        let before = old.as_ref().map_or(0, |old| old.value.bytes);
        check_room(&state, old.is_none(), before, bytes)?;
        if !uploaded {
            let key = BlobKey::theme_file(owner, project, &sha256);
            cx.blobs.put(&key, content.clone(), "application/octet-stream").await?;
            uploaded = true;
        }
        let file = ThemeFile {
            path: path.to_owned(),
            sha256: sha256.clone(),
            bytes,
            version: old.as_ref().map_or(state.revision, |old| old.value.version).saturating_add(1),
            updated_at: cx.clock.now(),
        };
        let record = old.as_ref().map_or(0, |old| old.version);
        let write = Store::theme_file_write(owner, project, state.generation, &file, record)?;
        let files = i64::from(old.is_none());
        if change(
            cx,
            owner,
            project,
            state.generation,
            (&Once::none(), vec![write]),
            files,
            grown(before, bytes),
        )
        .await?
        {
            return Ok(Stored { file: file.into(), is_new: old.is_none() });
        }
    }
}

/// A change of one file.
#[derive(Clone, Debug)]
pub struct FileChange {
    pub path: String,
    /// The SHA-256 of the content as it was read. `None`: there was no file.
    pub before: Option<String>,
    /// `None`: the file is deleted.
    pub after: Option<After>,
}

/// The content of a file after a change.
#[derive(Clone, Debug)]
pub enum After {
    Content(Bytes),
    /// The bucket has it, because another file of the theme has the same content.
    Stored {
        sha256: String,
        bytes: u64,
    },
}

/// The most changes of files that are stored at once: what a transaction of DynamoDB holds, beside the records of the theme and of what
/// asks for the change.
pub const MAX_WRITTEN: usize = 90;

/// Changes files of a theme in one transaction: all of them or none. `also` is written in the same transaction, and `once` is the request
/// that asks for it. Returns `false` if another writer was faster.
///
/// # Errors
/// 409 if one of the files is not as it was read; 400 if a file or the theme becomes too large.
pub async fn write(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    files: Vec<FileChange>,
    (once, also): (&Once, Vec<Write>),
) -> Result<bool> {
    let theme = state(cx, owner, project).await?;
    let generation = theme.generation;
    let reads = files.into_iter().map(|file| async move {
        let current = cx.store.theme_file(owner, project, generation, &file.path).await?;
        if current.as_ref().map(|current| &current.value.sha256) != file.before.as_ref() {
            return Err(changed_meanwhile(&file.path));
        }
        let after = match file.after {
            Some(After::Content(content)) => Some(upload(cx, owner, project, &file.path, content).await?),
            Some(After::Stored { sha256, bytes }) => Some((sha256, bytes)),
            None => None,
        };
        Ok::<_, Error>((file.path, current, after))
    });
    let changes: Vec<_> = stream::iter(reads).buffer_unordered(AT_ONCE).try_collect().await?;
    let (mut writes, mut count, mut growth) = (also, 0, 0);
    for (path, current, after) in changes {
        let (record, before) = current.map_or((0, None), |found| (found.version, Some(found.value)));
        count += i64::from(after.is_some()) - i64::from(before.is_some());
        let bytes = after.as_ref().map_or(0, |(_, bytes)| *bytes);
        growth += grown(before.as_ref().map_or(0, |before| before.bytes), bytes);
        writes.push(match after {
            Some((sha256, bytes)) => {
                let version = before.map_or(theme.revision, |before| before.version).saturating_add(1);
                let file = ThemeFile { path, sha256, bytes, version, updated_at: cx.clock.now() };
                Store::theme_file_write(owner, project, generation, &file, record)?
            }
            None => {
                Write::Remove { key: keys::theme_file(owner, project, generation, &path), version: record }
            }
        });
    }
    let (files, size) = (theme.files.saturating_add_signed(count), theme.bytes.saturating_add_signed(growth));
    let too_much = |told| Err(FieldErrors::one("files", told).into());
    if count > 0 && files > MAX_FILES as u64 {
        return too_much(format!("the theme would have {files} files, and has at most {MAX_FILES}"));
    }
    if growth > 0 && size > MAX_THEME_BYTES as u64 {
        return too_much(format!(
            "the theme would have {size} bytes of files, and has at most {MAX_THEME_BYTES}"
        ));
    }
    change(cx, owner, project, generation, (once, writes), count, growth).await
}

/// Stores the content of a file. Returns its hash and its size.
async fn upload(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    path: &str,
    content: Bytes,
) -> Result<(String, u64)> {
    let bytes = content.len();
    if bytes > MAX_FILE_BYTES {
        let told = format!("{path} would have {bytes} bytes, and a file has at most {MAX_FILE_BYTES}");
        return Err(FieldErrors::one("files", told).into());
    }
    let hashed = content.clone();
    let sha256 = cx.compute.on_body(bytes, move || Ok(hex_sha256(&hashed))).await?;
    let key = BlobKey::theme_file(owner, project, &sha256);
    cx.blobs.put(&key, content, "application/octet-stream").await?;
    Ok((sha256, bytes as u64))
}

/// The code of the error if a file is another one than the caller has read.
pub(crate) const CHANGED_MEANWHILE: &str = "version_conflict";

pub(crate) fn changed_meanwhile(what: &str) -> Error {
    Error::conflict(CHANGED_MEANWHILE, format!("{what} has changed since it was read: nothing was stored"))
}

fn check_room(state: &ThemeState, is_new: bool, before: u64, bytes: u64) -> Result<(), FieldErrors> {
    if is_new && state.files >= MAX_FILES as u64 {
        return Err(FieldErrors::one("path", format!("a theme has at most {MAX_FILES} files")));
    }
    if state.bytes.saturating_add(bytes).saturating_sub(before) > MAX_THEME_BYTES as u64 {
        let message =
            format!("a theme has at most {MAX_THEME_BYTES} bytes of files, this has {}", state.bytes);
        return Err(FieldErrors::one("content", message));
    }
    Ok(())
}

fn grown(before: u64, after: u64) -> i64 {
    i64::try_from(after).unwrap_or(i64::MAX) - i64::try_from(before).unwrap_or(i64::MAX)
}

/// Writes files, increases the theme's revision and announces the change. Returns `false` if another writer was faster.
async fn change(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    generation: ImportId,
    (once, mut writes): (&Once, Vec<Write>),
    files: i64,
    bytes: i64,
) -> Result<bool> {
    writes.push(Store::theme_change(owner, project, generation, files, bytes));
    writes.extend(Store::project_exists(owner, project));
    let done = cx.store.commit(once, writes).await?.done();
    if done {
        indexing::announce(cx, owner, project).await;
    }
    Ok(done)
}

/// Deletes a file.
///
/// # Errors
/// 404 if it does not exist, 409 if `If-Match` is not the current version.
pub async fn delete(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    path: &str,
    if_match: Option<IfMatch>,
) -> Result<()> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let ThemeAndFile { state, file } = find(cx, owner, project, path).await?;
        let file = file.ok_or(Error::NotFound("file"))?;
        check_version(if_match, Some(&file.value))?;
        let key = keys::theme_file(owner, project, state.generation, path);
        let write = Write::Remove { key, version: file.version };
        let bytes = grown(file.value.bytes, 0);
        if change(cx, owner, project, state.generation, (&Once::none(), vec![write]), -1, bytes).await? {
            return Ok(());
        }
    }
}

/// Moves a file to a free path.
///
/// # Errors
/// 404 if it does not exist, 400 if the new path breaks a limit, 409 if `If-Match` is not the current version or a file
/// exists at the new path.
pub async fn rename(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    path: &str,
    if_match: Option<IfMatch>,
    to: &str,
) -> Result<FileView> {
    checked("path", to)?;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let ThemeAndFile { state, file } = find(cx, owner, project, path).await?;
        let file = file.ok_or(Error::NotFound("file"))?;
        check_version(if_match, Some(&file.value))?;
        // The file's own path counts as taken: one transaction may not write the same item twice.
        let there = match to == path {
            true => Some(file.value.clone()),
            false => {
                cx.store.theme_file(owner, project, state.generation, to).await?.map(|there| there.value)
            }
        };
        if let Some(there) = there {
            let there = FileView::from(there);
            return Err(Error::conflict_with("path_taken", format!("there is a file at {to}"), &there));
        }
        let moved = ThemeFile {
            path: to.to_owned(),
            version: state.revision.saturating_add(1),
            updated_at: cx.clock.now(),
            ..file.value
        };
        let key = keys::theme_file(owner, project, state.generation, path);
        let writes = vec![
            Write::Remove { key, version: file.version },
            Store::theme_file_write(owner, project, state.generation, &moved, 0)?,
        ];
        if change(cx, owner, project, state.generation, (&Once::none(), writes), 0, 0).await? {
            return Ok(moved.into());
        }
    }
}

/// Reads a file.
///
/// # Errors
/// 404 if it does not exist.
pub async fn read(cx: &Cx, owner: &Owner, project: ProjectId, path: &str) -> Result<FileContent> {
    let file = find(cx, owner, project, path).await?.file.ok_or(Error::NotFound("file"))?.value;
    match cx.blobs.get(&BlobKey::theme_file(owner, project, &file.sha256)).await {
        Ok(bytes) => Ok(FileContent { file: file.into(), bytes }),
        Err(missing @ BlobError::Missing { .. }) => {
            // The file or the project was deleted after the record was read, or the stored data is damaged.
            existing::project(cx, owner, project).await?;
            Err(missing.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// The named parts of a file with their lines.
///
/// # Errors
/// 404 if the project or the file does not exist, 400 if the file is no text.
pub async fn outline(cx: &Cx, owner: &Owner, project: ProjectId, path: &str) -> Result<Outline> {
    let FileContent { file, bytes } = read(cx, owner, project, path).await?;
    if std::str::from_utf8(&bytes).is_err() {
        return Err(FieldErrors::one("path", "must name a file of text").into());
    }
    let find = move |_: &Stop| Ok(Outline::of(&file.path, &bytes));
    cx.compute.answers.run(find).await
}

/// The files of a theme that match a pattern, ordered by path.
///
/// # Errors
/// 404 if the project does not exist, 400 if the pattern, `limit` or `cursor` is invalid, 503 if the matching takes too
/// long.
pub async fn list(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    pattern: Option<&str>,
    query: &PageQuery,
) -> Result<Page<FileView>> {
    let glob = match pattern.map(str::to_owned) {
        None => None,
        Some(pattern) => Some(cx.compute.searches.run(move |_| Ok(Glob::new("glob", &pattern))).await??),
    };
    let glob = Arc::new(Mutex::new(glob));
    let generation = state(cx, owner, project).await?.generation;
    let list = format!("files of {project}");
    let by_path = |after: Option<String>, limit| {
        async move { cx.store.theme_files(owner, project, generation, after.as_deref(), limit).await }.boxed()
    };
    let matching = |files| matching(cx, glob.clone(), files).boxed();
    Ok(page::sifted(owner, &list, query, by_path, matching).await?.map(|file| file.value.into()))
}

/// The files whose paths match the pattern. All files if there is no pattern.
async fn matching(
    cx: &Cx,
    glob: Arc<Mutex<Option<Glob>>>,
    files: Vec<Record<ThemeFile>>,
) -> Result<Vec<Record<ThemeFile>>> {
    if glob.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
        return Ok(files);
    }
    cx.compute
        .searches
        .run(move |stop| {
            let mut glob = glob.lock().unwrap_or_else(PoisonError::into_inner);
            let mut kept = Vec::with_capacity(files.len());
            for file in files {
                let is_match = match glob.as_mut() {
                    Some(glob) => glob.is_match(&file.1.value.path, stop)?,
                    None => true,
                };
                if is_match {
                    kept.push(file);
                }
            }
            Ok(kept)
        })
        .await
}
