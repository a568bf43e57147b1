//! A folder of log files, as a zip, into logs.
//!
//! Its lines are history and are sealed at once. A log that is there already is left as it is. There is a record of each import,
//! and its archive lies in the bucket until the end: a client has put it there, or the request that has brought it did. The
//! upload wakes the indexer either way. A request that has brought an archive does the work itself, and the indexer waits for
//! it; if the request is cut off, the indexer takes over.
//!
//! Wherever an import is cut off, the same event takes it up again: a log that it has made is known by its first segment,
//! and a segment that it has stored is stored again under the same name. Nothing is doubled, and what no log names in the
//! end is deleted: by the import itself, or, where nobody tries it any more, by the owner's next one.

mod files;
mod taking;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bytes::Bytes;
use domain::ids::{ImportId, Owner, ProjectId};
use domain::log::import::{HELD, ImportReport, LogImport, LogImportState, MAX_ARCHIVE_BYTES};
use domain::validate::FieldErrors;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use tokio::sync::mpsc;
use utoipa::ToSchema;

use self::taking::{Stop, Taking};
use crate::blobs::{BlobError, BlobKey};
use crate::context::Cx;
use crate::flows::uploads::{self, NewUpload, UploadTarget};
use crate::flows::{edit, projects};
use crate::problem::{Error, Result};
use crate::store::Versioned;

/// How often the record says how far an import is.
const NOTED_EVERY: Duration = Duration::from_secs(2);

/// How often an upload asks whether the request that has brought it still works.
const HOLDER_ASKED_EVERY: Duration = Duration::from_millis(500);

/// So long before the end of its time an import stops, and is taken up again.
const RESERVE: SignedDuration = SignedDuration::from_secs(20);

/// How many imports that were given up one call cleans up after.
const CLEANED: usize = 5;

/// An import as clients see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LogImportView {
    pub import_id: ImportId,
    /// That of sessions which are new.
    pub project_id: ProjectId,
    pub state: LogImportState,
    #[serde(flatten)]
    pub report: ImportReport,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Size of the archive.
    pub archive_bytes: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Where the archive is to be put, for an import that was begun without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload: Option<UploadTarget>,
}

impl From<LogImport> for LogImportView {
    fn from(import: LogImport) -> Self {
        let LogImport { import_id, project_id, state, archive_bytes, report, reason, .. } = import;
        let LogImport { created_at, updated_at, .. } = import;
        let upload = None;
        Self { import_id, project_id, state, report, reason, archive_bytes, created_at, updated_at, upload }
    }
}

/// Imports an archive that the request has brought. If the request is cut off, the indexer goes on with the import.
///
/// # Errors
/// 400 for what is no archive or breaks a limit; the logs before it in the archive have been taken then. 404 where there
/// is no such project.
pub async fn inline(cx: &Cx, owner: &Owner, project: ProjectId, archive: Bytes) -> Result<LogImportView> {
    let _turn = cx.imports.acquire().await;
    let held_until = Some(cx.clock.now() + HELD);
    let import = begin(cx, owner, project, archive.len() as u64, held_until).await?;
    cx.blobs.put(&BlobKey::log_archive(owner, import.import_id), archive.clone(), "application/zip").await?;
    let import =
        take_over(cx, owner, Versioned { value: import, version: 1 }, archive, Timestamp::MAX).await?;
    match &import.reason {
        None => Ok(import.into()),
        Some(reason) => Err(FieldErrors::one("archive", reason).into()),
    }
}

/// Begins an import and says where its archive is to be put.
///
/// # Errors
/// 404 if the project does not exist, 400 for a size that is not taken.
pub async fn upload(cx: &Cx, owner: &Owner, project: ProjectId, new: NewUpload) -> Result<LogImportView> {
    let sha256 = new.check(MAX_ARCHIVE_BYTES)?;
    let import = begin(cx, owner, project, new.bytes, None).await?;
    let key = BlobKey::log_archive(owner, import.import_id);
    let upload = uploads::target(cx, &key, new.bytes, sha256, import.created_at).await?;
    Ok(LogImportView { upload: Some(upload), ..import.into() })
}

async fn begin(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    archive_bytes: u64,
    held_until: Option<Timestamp>,
) -> Result<LogImport> {
    projects::load(cx, owner, project).await?;
    if let Err(error) = clean_up(cx, owner).await {
        tracing::warn!(cause = %error.causes(), "could not clean up after imports; the next one tries again");
    }
    let now = cx.clock.now();
    let import = LogImport {
        import_id: ImportId::from_uuid(cx.clock.uuid()),
        project_id: project,
        state: LogImportState::Waiting,
        archive_bytes,
        report: ImportReport::default(),
        reason: None,
        created_at: now,
        updated_at: now,
        held_until,
    };
    if cx.store.begin_log_import(owner, &import).await?.done() {
        Ok(import)
    } else {
        Err(Error::NotFound("project"))
    }
}

/// What has become of an import.
///
/// # Errors
/// 404 if it does not exist.
pub async fn read(cx: &Cx, owner: &Owner, id: ImportId) -> Result<LogImportView> {
    let import = cx.store.log_import(owner, id).await?.ok_or(Error::NotFound("import"))?;
    if import.value.is_given_up(cx.clock.now()) {
        return give_up(cx, owner, import).await.map(LogImportView::from);
    }
    Ok(import.value.into())
}

/// Does what the upload of an archive asks for.
///
/// # Errors
/// If the table or the bucket does not answer, or the time is up: the event is to come again.
pub async fn uploaded(cx: &Cx, owner: &Owner, id: ImportId, deadline: Timestamp) -> Result<()> {
    while cx.store.log_import(owner, id).await?.is_some_and(|import| import.value.is_held(cx.clock.now())) {
        in_time(cx, deadline)?;
        tokio::time::sleep(HOLDER_ASKED_EVERY).await;
    }
    // An archive may take much of the memory: one at a time.
    let _turn = cx.imports.acquire().await;
    in_time(cx, deadline)?;
    let key = BlobKey::log_archive(owner, id);
    let found = cx.store.log_import(owner, id).await?;
    let Some(mut import) = found.filter(|import| !import.value.state.is_final()) else {
        // It was put again after the end, or the end was cut off.
        return Ok(cx.blobs.delete(&key).await?);
    };
    // The request that held it is gone, or comes second.
    import.value.held_until = None;
    // What was signed is checked again: the size before anything is read.
    let expected = import.value.archive_bytes;
    let refused = match cx.blobs.size(&key).await? {
        Some(bytes) if bytes == expected => match cx.blobs.get(&key).await {
            Ok(archive) => {
                take_over(cx, owner, import, archive, deadline).await?;
                return Ok(());
            }
            Err(BlobError::Missing { .. }) => "the archive is gone".to_owned(),
            Err(error) => return Err(error.into()),
        },
        Some(bytes) => format!("the archive has {bytes} bytes, {expected} were announced"),
        None => "the archive is gone".to_owned(),
    };
    finish(cx, owner, import, Some(refused)).await.map(|_| ())
}

/// Makes logs of an archive until it ends or the time is up.
async fn take_over(
    cx: &Cx,
    owner: &Owner,
    mut import: Versioned<LogImport>,
    archive: Bytes,
    deadline: Timestamp,
) -> Result<LogImport> {
    let again = import.value.state == LogImportState::Running;
    import.value.state = LogImportState::Running;
    let mut taking = Taking::new(cx, owner, &import.value, again);
    let (sender, mut pieces) = mpsc::channel(1);
    // Inflating and parsing would keep other requests of this process waiting.
    let reader = tokio::task::spawn_blocking(move || files::read(&archive, &sender));
    let mut noted: Option<Instant> = None;
    let mut refused = None;
    while let Some(piece) = pieces.recv().await {
        in_time(cx, deadline)?;
        if noted.is_none_or(|noted| noted.elapsed() > NOTED_EVERY) {
            import.value.report.clone_from(&taking.report);
            note(cx, owner, &mut import).await?;
            if import.value.state.is_final() {
                return Ok(import.value);
            }
            noted = Some(Instant::now());
        }
        match taking.take(piece).await {
            Ok(()) => {}
            Err(Stop::Ours(error)) => return Err(error),
            Err(Stop::Ended) => {
                taking.discard().await?;
                return current(cx, owner, import.value.import_id).await;
            }
            Err(Stop::Refused(reason)) => {
                refused = Some(reason);
                break;
            }
        }
    }
    drop(pieces);
    let read = reader.await.map_err(|error| Error::internal(error.to_string()))?;
    taking.discard().await?;
    import.value.report = taking.report;
    match read {
        Ok(ignored) => import.value.report.ignored_files = ignored,
        Err(error) => refused = refused.or(Some(error.to_string())),
    }
    finish(cx, owner, import, refused).await
}

/// # Errors
/// When the time is up.
fn in_time(cx: &Cx, deadline: Timestamp) -> Result<()> {
    if cx.clock.now() + RESERVE > deadline {
        return Err(Error::conflict("out_of_time", "the import goes on with the next try"));
    }
    Ok(())
}

async fn current(cx: &Cx, owner: &Owner, id: ImportId) -> Result<LogImport> {
    Ok(cx.store.log_import(owner, id).await?.ok_or(Error::NotFound("import"))?.value)
}

/// Writes how far an import is. Of two that do the same work, the end that comes first stays.
async fn note(cx: &Cx, owner: &Owner, import: &mut Versioned<LogImport>) -> Result<()> {
    import.value.updated_at = cx.clock.now();
    if import.value.held_until.is_some() {
        import.value.held_until = Some(import.value.updated_at + HELD);
    }
    let mut tries = edit::Tries::default();
    loop {
        tries.next().await?;
        if cx.store.write_log_import(owner, &import.value, import.version).await?.done() {
            import.version += 1;
            return Ok(());
        }
        let id = import.value.import_id;
        let found = cx.store.log_import(owner, id).await?.ok_or(Error::NotFound("import"))?;
        if found.value.state.is_final() {
            *import = found;
            return Ok(());
        }
        // Whoever took the import over keeps it.
        import.value.held_until = import.value.held_until.and(found.value.held_until);
        import.version = found.version;
    }
}

/// Writes how an import has ended, and lets its archive go.
async fn finish(
    cx: &Cx,
    owner: &Owner,
    mut import: Versioned<LogImport>,
    refused: Option<String>,
) -> Result<LogImport> {
    import.value = import.value.ended(refused);
    note(cx, owner, &mut import).await?;
    cx.blobs.delete(&BlobKey::log_archive(owner, import.value.import_id)).await?;
    Ok(import.value)
}

/// Ends imports that nobody works on any more, and deletes what they have left.
///
/// # Errors
/// If the table or the bucket does not answer; the call can be repeated.
pub async fn clean_up(cx: &Cx, owner: &Owner) -> Result<()> {
    for id in cx.store.open_log_imports(owner, CLEANED).await? {
        let Some(import) = cx.store.log_import(owner, id).await? else { continue };
        if import.value.is_given_up(cx.clock.now()) {
            give_up(cx, owner, import).await?;
        }
    }
    for id in cx.store.left_log_imports(owner, CLEANED).await? {
        let import = cx.store.log_import(owner, id).await?;
        if import.is_none_or(|import| import.value.state.is_final()) {
            delete_unnamed(cx, owner, id).await?;
            cx.store.forget_left_log_import(owner, id).await?;
        }
    }
    Ok(())
}

async fn give_up(cx: &Cx, owner: &Owner, import: Versioned<LogImport>) -> Result<LogImport> {
    let id = import.value.import_id;
    let reason = match import.value.state {
        LogImportState::Waiting => "nothing was uploaded in time",
        _ => "it was cut off",
    };
    // First no more logs are made, then what no log names is deleted.
    cx.store.mark_left_log_import(owner, id).await?;
    let import = finish(cx, owner, import, Some(reason.to_owned())).await?;
    delete_unnamed(cx, owner, id).await?;
    cx.store.forget_left_log_import(owner, id).await?;
    Ok(import)
}

/// Deletes the segments of an import that has ended which no log names.
async fn delete_unnamed(cx: &Cx, owner: &Owner, id: ImportId) -> Result<()> {
    let prefix = BlobKey::imported_logs(owner, id);
    let mut after: Option<String> = None;
    loop {
        let keys = cx.blobs.list(&prefix, after.as_deref()).await?;
        let Some(last) = keys.last() else { return Ok(()) };
        after = Some(last.clone());
        let logs: BTreeSet<(&str, &str)> = keys
            .iter()
            .filter_map(|key| key.split_once('/'))
            .filter_map(|(session, rest)| Some((session, rest.split_once('/')?.0)))
            .collect();
        for (session, agent) in logs {
            let (Ok(session), Ok(agent)) = (session.parse(), agent.parse()) else { continue };
            let log = (session, agent);
            if !taking::is_of(cx, owner, id, &log).await? {
                cx.blobs.delete_prefix(&BlobKey::imported_log(owner, id, &log.0, &log.1)).await?;
            }
        }
    }
}
