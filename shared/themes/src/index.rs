//! Updates the map of a theme after its files have changed.
//!
//! Each wake-up checks whether the map is out of date, takes the lease, and waits for five seconds, so that a burst of changes is
//! indexed once. While another process holds the lease, a wake-up waits until the map includes its change, or until the lease has
//! ended and it can take over. So a message is acknowledged only when the map includes its change, even if some processes die.
//!
//! The invocation itself waits. With a delayed queue, imports would wait too, and the messages of a burst would still arrive
//! separately. Five idle seconds of one small function per burst cost less than timers.
//!
//! Two processes never write the same map: each lease has a number, and only the holder of the current number can write a map. The
//! write that completes the map also ends the lease. A change before that write raises the revision, so the write notices it. A
//! change after that write finds no lease, so its own wake-up updates the map.

use std::time::{Duration, Instant};

use domain::background::jobs::{JobKind, Outcome};
use domain::ids::{Owner, ProjectId};
use domain::projects::enrichment::{Enrichment, EnrichmentStatus};
use domain::projects::theme::{DEBOUNCE, LEASE, MAP_LAYOUT, StoredMap, ThemeState};
use domain::projects::theme::{Import, ImportState, MapPhase};
use jiff::Timestamp;
use serde::Serialize;
use theme::answers::Source;
use theme::blob;
use theme::index::DegradedFile;
use utoipa::ToSchema;

use super::{current, hex_sha256, newest_import, read, themes_of};
use crate::cache::Warm;
use shared::aws::bus::{Event, IndexCompleted};
use shared::blobs::BlobKey;
use shared::context::Cx;
use shared::error::{Error, Result};
use shared::flows::background::jobs::{self, Due};
use shared::flows::background::lease;
use shared::flows::projects::indexing;
use shared::flows::{existing, uploads};
use shared::store::Tries;
use shared::store::keys::Guard;
use shared::store::table::Written;

/// The index writes the layout that the state of a theme expects.
const _: () = assert!(blob::VERSION == MAP_LAYOUT);

/// How often a process that waits for another one checks the lease. The interval starts with `POLL` and grows to `POLL_AT_MOST`.
const POLL: Duration = Duration::from_millis(500);
const POLL_AT_MOST: Duration = Duration::from_secs(5);

/// The code of the error if another indexer has taken the lease.
pub(super) const LEASE_LOST: &str = "lease_lost";

/// The largest number of degraded places that a status names.
const MAX_DEGRADED: usize = 200;

/// The state of the map.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct MapStatus {
    pub state: MapPhase,
    /// How many files the theme has.
    pub files: u64,
    /// How many bytes they have together.
    pub bytes: u64,
    /// Grows with each change of a file.
    pub revision: u64,
    /// Places that could not be understood. The rest of their files is indexed.
    pub degraded: Vec<DegradedFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indexed_at: Option<Timestamp>,
    /// How long it took to make the newest map, in milliseconds: to read the changed files, to index them and to store the map.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// Why there is no map.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The newest import.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub import: Option<Import>,
    /// The state of the enrichment. The map is complete without it.
    pub enrichment: EnrichmentStatus,
}

/// The state of the map of a project.
///
/// # Errors
/// 404 if the project does not exist.
pub async fn status(cx: &Cx, owner: &Owner, project: ProjectId) -> Result<MapStatus> {
    let now = cx.clock.now();
    let theme = async { Ok(cx.store.theme(owner, project).await?.value) };
    let enrichment = async { Ok(cx.store.enrichment(owner, project).await?.value) };
    let (wants, state, enrichment) =
        futures::try_join!(existing::project(cx, owner, project), theme, enrichment)?;
    let enrichment = Some(enrichment).filter(|_| wants.value.enrichment);
    let is_behind = !state.is_settled() && !state.is_leased(now);
    if is_behind || enrichment.as_ref().is_some_and(|enrichment| enrichment.is_due(&state, now)) {
        indexing::announce(cx, owner, project).await;
    }
    let import = newest_import(cx, owner, project).await?;
    let is_coming =
        |import: &Import| import.state == ImportState::Waiting && now < import.created_at + uploads::WINDOW;
    let degraded = match &state.map {
        Some(map) if map.degraded > 0 && state.is_current() => {
            let mut degraded = current(cx, owner, project).await?.index.degraded();
            degraded.truncate(MAX_DEGRADED);
            degraded
        }
        _ => Vec::new(),
    };
    let phase = state.phase(now);
    let enrichment = Enrichment::status(enrichment.as_ref(), &state, now);
    Ok(MapStatus {
        state: match phase {
            MapPhase::Empty | MapPhase::Ready if import.as_ref().is_some_and(is_coming) => MapPhase::Pending,
            phase => phase,
        },
        files: state.files,
        bytes: state.bytes,
        revision: state.revision,
        degraded,
        indexed_at: state.map.as_ref().map(|map| map.indexed_at),
        took_ms: state.map.as_ref().map(|map| map.took_ms),
        reason: state.failure.filter(|_| phase == MapPhase::Failed).map(|failure| failure.reason),
        import,
        enrichment,
    })
}

/// Updates the map, or waits until another process has updated it.
///
/// # Errors
/// If the table or the bucket does not answer, or the time is up. Then the message must be delivered again.
pub async fn catch_up(cx: &Cx, owner: &Owner, project: ProjectId, deadline: Timestamp) -> Result<()> {
    let is_settled = |state: &ThemeState| state.is_settled();
    let Some(fence) = take(cx, owner, project, deadline, is_settled).await? else { return Ok(()) };
    let record = jobs::begin(cx, owner, JobKind::ThemeIndex, &project.to_string(), Due::Changed).await;
    let mut tally = Outcome::default();
    let done = holding(cx, owner, project, fence, async {
        loop {
            cx.clock.sleep(window()).await;
            if !index(cx, owner, project, fence, &mut tally).await? {
                return Ok(true);
            }
            if lease::is_time_up(cx, deadline - DEBOUNCE) {
                release(cx, owner, project, fence).await;
                indexing::announce(cx, owner, project).await;
                return Ok(false);
            }
        }
    })
    .await;
    match done {
        Ok(true) => record.end(tally).await,
        Ok(false) => record.cut_off(&tally).await,
        // Another indexer has taken over, and goes on in the record; or the project was deleted.
        Err(Error::Conflict { code: LEASE_LOST, .. }) => {
            if cx.store.theme(owner, project).await?.value.is_settled() {
                return Ok(());
            }
        }
        Err(ref error) => record.fail(tally, error).await,
    }
    done.map(drop)
}

fn window() -> Duration {
    Duration::try_from(DEBOUNCE).unwrap_or_default()
}

/// Takes the lease of a theme. If another process holds it, waits. `None` if there is nothing left to do: `is_done` returns true,
/// or the project was deleted.
pub(super) async fn take(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    deadline: Timestamp,
    is_done: impl Fn(&ThemeState) -> bool,
) -> Result<Option<u64>> {
    let (mut poll, mut tries) = (POLL, Tries::default());
    loop {
        let found = cx.store.theme(owner, project).await?;
        let now = cx.clock.now();
        if is_done(&found.value) {
            return Ok(None);
        }
        if found.value.is_leased(now) {
            if lease::is_time_up(cx, deadline) {
                return Err(Error::conflict("theme_busy", "another indexer holds the lease"));
            }
            cx.clock.sleep(poll).await;
            poll = (poll * 2).min(POLL_AT_MOST);
            continue;
        }
        let (state, fence) = found.value.leased(None, now);
        match cx.store.replace_theme(owner, project, &state, found.version).await? {
            Written::Yes => return Ok(Some(fence)),
            Written::Refused(Guard::Theme) => tries.next().await?,
            Written::Refused(_) => return Ok(None),
        }
    }
}

/// Does `work` and renews the lease of the theme until the lease is released or lost. If the work fails, releases the lease.
pub(super) async fn holding<T>(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    fence: u64,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let renew = || async {
        let renewed =
            edit_held(cx, owner, project, fence, |state| state.leased(Some(fence), cx.clock.now()).0);
        renewed.await.map(drop)
    };
    let done = lease::renewing(cx, LEASE, renew, work).await;
    if done.is_err() {
        release(cx, owner, project, fence).await;
    }
    done
}

/// Changes a theme's state, if the lease with this fence is still valid.
async fn edit_held(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    fence: u64,
    edit: impl Fn(ThemeState) -> ThemeState,
) -> Result<ThemeState> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let found = cx.store.theme(owner, project).await?;
        if !found.value.is_held_by(fence) {
            return Err(Error::conflict(LEASE_LOST, "another indexer has taken over"));
        }
        let state = edit(found.value);
        if cx.store.replace_theme(owner, project, &state, found.version).await?.done() {
            return Ok(state);
        }
    }
}

/// Releases the lease. If that fails, the lease ends by itself.
pub(super) async fn release(cx: &Cx, owner: &Owner, project: ProjectId, fence: u64) {
    if let Err(error) = edit_held(cx, owner, project, fence, ThemeState::released).await {
        tracing::info!(cause = %error.causes(), "a lease could not be released; it will end by itself");
    }
}

/// Makes a map of the current files and makes it the theme's map. Returns whether files have changed meanwhile; then the lease
/// continues.
async fn index(cx: &Cx, owner: &Owner, project: ProjectId, fence: u64, tally: &mut Outcome) -> Result<bool> {
    let started = Instant::now();
    let state = cx.store.theme(owner, project).await?.value;
    let warm = match read(cx, owner, project, &state).await {
        Ok(warm) => warm,
        Err(Error::Conflict { code: "theme_not_indexable", message, .. }) => {
            let fail = |now: ThemeState| now.failed(state.revision, message.clone());
            edit_held(cx, owner, project, fence, fail).await?;
            tally.error = Some(message);
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    let (map, warm) = store(cx, owner, project, warm, started).await?;
    let now = edit_held(cx, owner, project, fence, |state| state.mapped(map.clone())).await?;
    if let Some(old) = state.map.filter(|old| old.sha256 != map.sha256) {
        cx.blobs.delete_prefix(&BlobKey::theme_map(owner, project, &old.sha256)).await?;
    }
    completed(cx, owner, project, &map, warm).await?;
    (tally.work_found, tally.artefacts) = (map.files, tally.artefacts + 1);
    Ok(now.is_held_by(fence))
}

/// Stores the map of an index under its hash.
pub(super) async fn store(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    warm: Warm,
    started: Instant,
) -> Result<(StoredMap, Warm)> {
    let index = warm.index.clone();
    let written = cx.compute.builds.run(move |_| {
        let blob = index.to_blob();
        Ok((hex_sha256(&blob), blob))
    });
    let (sha256, blob) = written.await?;
    cx.blobs.put(&BlobKey::theme_map(owner, project, &sha256), blob, "application/octet-stream").await?;
    let map = StoredMap {
        revision: warm.version.revision,
        sha256,
        layout: blob::VERSION,
        files: warm.index.len() as u64,
        degraded: warm.index.degraded().len() as u64,
        indexed_at: cx.clock.now(),
        took_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    Ok((map, Warm { source: Source::Map, ..warm }))
}

/// Publishes that a map is ready.
pub(super) async fn completed(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    map: &StoredMap,
    warm: Warm,
) -> Result<()> {
    themes_of(cx).put(warm);
    let event = Event::IndexCompleted(IndexCompleted {
        owner: owner.clone(),
        project_id: project,
        revision: map.revision,
        files: map.files,
        degraded: map.degraded,
        took_ms: map.took_ms,
    });
    tracing::info!(files = map.files, degraded = map.degraded, took_ms = map.took_ms, "a theme is indexed");
    Ok(cx.bus.publish(&[event]).await?)
}
