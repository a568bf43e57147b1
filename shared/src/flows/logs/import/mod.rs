//! Imports a folder of log files, as a zip.
//!
//! The imported lines are history, so they are sealed at once. A log that already exists is not changed. Each import
//! has a record, and its archive stays in the bucket until the end. Either the client has uploaded the archive, or the
//! request contained it. In both cases the upload wakes the indexer. If the request contained the archive, the request
//! does the work itself, and the indexer waits for it. If the request is interrupted, the indexer takes over.
//!
//! An interrupted import can be continued from the same event at any point. The import recognises a log that it has
//! made by the log's first segment, and it stores a segment again under the same name. So nothing is doubled. Objects
//! that no log names are deleted at the end, either by the import itself or, if nobody retries it any more, by the
//! owner's next import.

mod files;
mod importer;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bytes::Bytes;
use domain::background::jobs::{JobKind, Outcome};
use domain::ids::{ImportId, Owner, ProjectId};
use domain::log::import::{HELD, ImportReport, LogImport, LogImportState, MAX_ARCHIVE_BYTES};
use domain::validate::FieldErrors;
use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::mpsc;
use utoipa::ToSchema;

use self::importer::{LogImporter, Stop};
use crate::blobs::BlobKey;
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::background::jobs::{self, Due};
use crate::flows::background::lease;
use crate::flows::existing;
use crate::flows::uploads::{self, NewUpload, UploadTarget};
use crate::store::{Tries, Versioned};

/// How often the record is updated with the progress.
const NOTED_EVERY: Duration = Duration::from_secs(2);

/// How often the indexer checks whether the request still works on the import.
const HOLDER_ASKED_EVERY: Duration = Duration::from_millis(500);

/// The code of the error if the next try must continue.
const OUT_OF_TIME: &str = "out_of_time";

/// How many abandoned imports one call cleans up.
const CLEANED: usize = 5;

/// An import as clients see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LogImportView {
    pub import_id: ImportId,
    /// The project of new sessions.
    pub project_id: ProjectId,
    pub state: LogImportState,
    #[serde(flatten)]
    pub report: ImportReport,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The size of the archive.
    pub archive_bytes: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Where to upload the archive, if the import was requested without one.
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

/// Imports the archive of the request. If the request is interrupted, the indexer continues the import.
///
/// # Errors
/// 400 if the archive is invalid or breaks a limit; the logs before the error are imported then. 404 if the project
/// does not exist.
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

/// Begins an import and returns where to upload its archive.
///
/// # Errors
/// 404 if the project does not exist, 400 if the announced size is not allowed.
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
    existing::project(cx, owner, project).await?;
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

/// An import and its state.
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

/// Handles the upload of an archive.
///
/// # Errors
/// If the table or the bucket does not answer, or the time is over. The event must then be delivered again.
pub async fn uploaded(cx: &Cx, owner: &Owner, id: ImportId, deadline: Timestamp) -> Result<()> {
    while cx.store.log_import(owner, id).await?.is_some_and(|import| import.value.is_held(cx.clock.now())) {
        in_time(cx, deadline)?;
        tokio::time::sleep(HOLDER_ASKED_EVERY).await;
    }
    // An archive may take much of the memory, so only one is processed at a time.
    let _turn = cx.imports.acquire().await;
    in_time(cx, deadline)?;
    let key = BlobKey::log_archive(owner, id);
    let found = cx.store.log_import(owner, id).await?;
    let Some(mut import) = found.filter(|import| !import.value.state.is_final()) else {
        // The archive was uploaded again after the end, or the end was interrupted.
        return Ok(cx.blobs.delete(&key).await?);
    };
    // The request that held the import is gone, or was slower.
    import.value.held_until = None;
    let due = Due::At(import.value.created_at);
    let record = jobs::begin(cx, owner, JobKind::LogsImport, &id.to_string(), due).await;
    let work = async {
        match uploads::archive(cx, &key, import.value.archive_bytes).await? {
            Ok(archive) => take_over(cx, owner, import, archive, deadline).await,
            Err(reason) => finish(cx, owner, import, Some(reason)).await,
        }
    };
    match work.await {
        Ok(import) => {
            let ImportReport { logs, skipped_logs, .. } = import.report;
            let (work_found, artefacts) = (logs + skipped_logs, logs);
            // Logs that exist already are left as they are.
            let skipped = logs == 0 && import.reason.is_none();
            let error = import.reason;
            record.end(Outcome { work_found, artefacts, error, skipped, ..Outcome::default() }).await;
            Ok(())
        }
        Err(error @ Error::Conflict { code: OUT_OF_TIME, .. }) => Err(error),
        Err(error) => {
            record.fail(Outcome::default(), &error).await;
            Err(error)
        }
    }
}

/// Makes logs of an archive until it is complete or the time is over.
async fn take_over(
    cx: &Cx,
    owner: &Owner,
    mut import: Versioned<LogImport>,
    archive: Bytes,
    deadline: Timestamp,
) -> Result<LogImport> {
    let again = import.value.state == LogImportState::Running;
    import.value.state = LogImportState::Running;
    let mut importer = LogImporter::new(cx, owner, &import.value, again);
    let (sender, mut pieces) = mpsc::channel(1);
    // Inflating and parsing would block other requests of this process.
    let reader = tokio::task::spawn_blocking(move || files::read(&archive, &sender));
    let mut noted: Option<Instant> = None;
    let mut refused = None;
    while let Some(piece) = pieces.recv().await {
        in_time(cx, deadline)?;
        if noted.is_none_or(|noted| noted.elapsed() > NOTED_EVERY) {
            import.value.report.clone_from(&importer.report);
            note(cx, owner, &mut import).await?;
            if import.value.state.is_final() {
                return Ok(import.value);
            }
            noted = Some(Instant::now());
        }
        match importer.take(piece).await {
            Ok(()) => {}
            Err(Stop::Ours(error)) => return Err(error),
            Err(Stop::Ended) => {
                importer.discard().await?;
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
    importer.discard().await?;
    import.value.report = importer.report;
    match read {
        Ok(ignored) => import.value.report.ignored_files = ignored,
        Err(error) => refused = refused.or(Some(error.to_string())),
    }
    finish(cx, owner, import, refused).await
}

/// # Errors
/// If the time is over.
fn in_time(cx: &Cx, deadline: Timestamp) -> Result<()> {
    if lease::is_time_up(cx, deadline) {
        return Err(Error::conflict(OUT_OF_TIME, "the import continues with the next try"));
    }
    Ok(())
}

async fn current(cx: &Cx, owner: &Owner, id: ImportId) -> Result<LogImport> {
    Ok(cx.store.log_import(owner, id).await?.ok_or(Error::NotFound("import"))?.value)
}

/// Stores the progress of an import. If two processes do the same work, the first end stays.
async fn note(cx: &Cx, owner: &Owner, import: &mut Versioned<LogImport>) -> Result<()> {
    import.value.updated_at = cx.clock.now();
    if import.value.held_until.is_some() {
        import.value.held_until = Some(import.value.updated_at + HELD);
    }
    let mut tries = Tries::default();
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
        // If another process took the import over, it keeps it.
        import.value.held_until = import.value.held_until.and(found.value.held_until);
        import.version = found.version;
    }
}

/// Stores how an import ended, and deletes its archive.
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

/// Ends abandoned imports, and deletes what they have left.
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
        _ => "the import was interrupted",
    };
    // First mark the import, so that no more logs are made. Then delete what no log names.
    cx.store.mark_left_log_import(owner, id).await?;
    let import = finish(cx, owner, import, Some(reason.to_owned())).await?;
    delete_unnamed(cx, owner, id).await?;
    cx.store.forget_left_log_import(owner, id).await?;
    Ok(import)
}

/// Deletes the segments of an ended import that no log names.
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
            if !importer::is_of(cx, owner, id, &log).await? {
                cx.blobs.delete_prefix(&BlobKey::imported_log(owner, id, &log.0, &log.1)).await?;
            }
        }
    }
}
