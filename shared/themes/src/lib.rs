//! Themes: files, imports, the map that follows them, and queries of the map.
//!
//! The stored files are the source of truth. A change of a file also increases the theme's revision in the same
//! transaction. Then it writes a note into the bucket ([`BlobKey::theme_change`]). The note's upload wakes the indexer.
//! The note says only that something has changed. The indexer finds the changes by comparing the hashes of the files
//! with the map. So repeated, late or reordered notes do no harm. If a note is lost because its writer died, the next
//! change or question finds the map out of date.
//!
//! - [`files`]: read, write, delete, rename, list; [`grep`]: search in them
//! - [`check`]: what is wrong with them, or what a change would add; [`fix`]: mends what strict Liquid refuses
//! - [`changes`]: edits that nobody else sees until they are applied
//! - [`import`]: a whole theme from an archive
//! - [`index`]: brings the map up to date
//! - [`enrich`]: what a model adds to the map afterwards
//! - [`history`]: what was asked and edited before, which lookups know
//! - [`turn`]: a person says what should change, and the theme agent changes it
//! - [`answers`]: lookup, scout, repo map, map, graph, gate

pub mod answers;
pub mod area;
mod cache;
pub mod changes;
pub mod check;
pub mod enrich;
mod expression;
pub mod files;
pub mod fix;
mod glob;
pub mod grep;
#[cfg(test)]
mod growth_tests;
mod helpers;
pub mod history;
pub mod import;
pub mod index;
pub mod projects;
pub mod tools;
pub mod turn;

use std::sync::Arc;

use bytes::Bytes;
use domain::ids::{ImportId, Owner, ProjectId};
use domain::projects::theme::{Import, ThemeFile, ThemeState};
use futures::stream::{self, StreamExt, TryStreamExt};
use sha2::{Digest, Sha256};
use theme::ThemeIndex;
use theme::answers::Source;

use cache::{ThemeCache, ThemeVersion, Warm};

use shared::blobs::{BlobError, BlobKey};
use shared::context::Cx;
use shared::error::{Error, Result};
use shared::flows::existing;
use shared::flows::projects::indexing;
use shared::store::keys;
use shared::store::table::{Extras, item};

/// How many contents are read or written at once.
const AT_ONCE: usize = 32;

/// The state of a theme whose project exists.
///
/// # Errors
/// 404 if the project does not exist.
pub async fn state(cx: &Cx, owner: &Owner, project: ProjectId) -> Result<ThemeState> {
    let theme = async { Ok(cx.store.theme(owner, project).await?.value) };
    let (_, state) = futures::try_join!(existing::project(cx, owner, project), theme)?;
    Ok(state)
}

/// The indexes that this process keeps.
fn themes_of(cx: &Cx) -> Arc<ThemeCache> {
    cx.kept.get()
}

/// The index of a theme's current files. If the stored map is out of date, the files that differ are read.
///
/// # Errors
/// 404 if the project does not exist.
pub async fn current(cx: &Cx, owner: &Owner, project: ProjectId) -> Result<Warm> {
    let state = state(cx, owner, project).await?;
    if !state.is_settled() && !state.is_leased(cx.clock.now()) {
        indexing::announce(cx, owner, project).await;
    }
    let version = version(owner, project, &state);
    let warm = || {
        let mut warm = themes_of(cx).get(owner, project).filter(|warm| warm.version == version)?;
        if state.is_current() {
            warm.source = Source::Map;
        }
        Some(warm)
    };
    if let Some(warm) = warm() {
        return Ok(warm);
    }
    // If many callers ask at once, one of them reads the files and builds the index. The others then find it in memory.
    let _lock = cx.locks.lock(&keys::theme(owner, project)).await;
    if let Some(warm) = warm() {
        return Ok(warm);
    }
    let stored = if state.is_current() { stored_map(cx, owner, project, &state).await? } else { None };
    let warm = match stored {
        Some(index) => Warm { version, source: Source::Map, index },
        None => read(cx, owner, project, &state).await?,
    };
    themes_of(cx).put(warm.clone());
    Ok(warm)
}

fn version(owner: &Owner, project: ProjectId, state: &ThemeState) -> ThemeVersion {
    ThemeVersion { owner: owner.clone(), project, generation: state.generation, revision: state.revision }
}

/// The stored map, of any revision. `None` if there is none, or none that this version can read.
async fn stored_map(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    state: &ThemeState,
) -> Result<Option<Arc<ThemeIndex>>> {
    let Some(map) = &state.map else { return Ok(None) };
    let blob = match cx.blobs.get(&BlobKey::theme_map(owner, project, &map.sha256)).await {
        Ok(blob) => blob,
        // Replaced after the state was read.
        Err(BlobError::Missing { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match cx.compute.builds.run(move |_| Ok(ThemeIndex::from_blob(&blob))).await? {
        Ok(index) => Ok(Some(Arc::new(index))),
        Err(error) => {
            tracing::warn!(%error, "a stored map is not used");
            Ok(None)
        }
    }
}

/// The index of the current files. It starts from the best known index and reads only the files that differ.
async fn read(cx: &Cx, owner: &Owner, project: ProjectId, state: &ThemeState) -> Result<Warm> {
    let files = cx.store.all_theme_files(owner, project, state.generation).await?;
    let base = match themes_of(cx).get(owner, project) {
        Some(warm) => warm.index,
        None => match stored_map(cx, owner, project, state).await? {
            Some(index) => index,
            None => Arc::new(ThemeIndex::build(std::iter::empty::<(&str, &[u8])>()).map_err(unfit)?),
        },
    };
    let difference = base.difference(files.iter().map(|file| (file.path.as_str(), file.half_hash())));
    let index = if difference.is_empty() {
        base
    } else {
        let wanted = files.iter().filter(|file| difference.changed.binary_search(&file.path).is_ok());
        let contents = contents(cx, owner, project, wanted).await?;
        let updated = cx.compute.builds.run(move |stop| {
            let changed = contents.iter().map(|(path, content)| (path.as_str(), content.as_ref()));
            let updated = base.updated(changed.take_while(|_| !stop.is_set()), &difference.removed);
            stop.check().map(|()| updated)
        });
        Arc::new(updated.await?.map_err(unfit)?)
    };
    Ok(Warm { version: version(owner, project, state), source: Source::Scout, index })
}

/// Deletes the records of all files of a theme, in all generations.
async fn delete_files(cx: &Cx, owner: &Owner, project: ProjectId) -> Result<()> {
    let generation = cx.store.theme(owner, project).await?.value.generation;
    let mut after: Option<String> = None;
    loop {
        let found = cx.store.imports(owner, project, after.as_deref(), 100).await?;
        for (_, import) in &found.items {
            cx.store.delete_theme_files(owner, project, import.value.import_id).await?;
        }
        after = found.last;
        if after.is_none() {
            break;
        }
    }
    for generation in [generation, ImportId::NONE] {
        cx.store.delete_theme_files(owner, project, generation).await?;
    }
    Ok(())
}

/// Gives an emptied project a new generation. Imports that were requested earlier are then too old for it, and indexes
/// that processes hold in memory belong to another theme.
async fn start_new_generation(cx: &Cx, owner: &Owner, project: ProjectId) -> Result<()> {
    let state = ThemeState { generation: ImportId::from_uuid(cx.clock.uuid()), ..ThemeState::default() };
    Ok(cx.store.put(&keys::theme(owner, project), item(&state, &Extras::default())?).await?)
}

/// The newest import of a project. `None` if there is none.
async fn newest_import(cx: &Cx, owner: &Owner, project: ProjectId) -> Result<Option<Import>> {
    let found = cx.store.imports(owner, project, None, 1).await?;
    Ok(found.items.into_iter().next().map(|(_, import)| import.value))
}

fn unfit(error: theme::index::ThemeError) -> Error {
    Error::conflict("theme_not_indexable", format!("the theme can't be indexed: {error}"))
}

/// The contents of some files.
async fn contents<'a>(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    files: impl Iterator<Item = &'a ThemeFile>,
) -> Result<Vec<(String, Bytes)>> {
    let reads: Vec<_> = files
        .map(|file| {
            let (key, path) = (BlobKey::theme_file(owner, project, &file.sha256), file.path.clone());
            async move { Ok::<_, Error>((path, cx.blobs.get(&key).await?)) }
        })
        .collect();
    stream::iter(reads).buffer_unordered(AT_ONCE).try_collect().await
}

fn hex_sha256(bytes: &[u8]) -> String {
    domain::hex(&Sha256::digest(bytes))
}
