//! The import of an account's export into an empty account.
//!
//! The client uploads the archive to a presigned address. An executor first reads all of it: nothing is written if anything is
//! invalid. Then it writes the objects, and then the records, which name them. It creates records and never replaces one, so
//! what exists here stays, and another executor can continue at any time.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader, Read};

use domain::accounts::import::{AccountImport, AccountImportState, MAX_ARCHIVE, Position, UPLOAD_WITHIN};
use domain::dispatch::{LEASE, SWEEP_EVERY};
use domain::ids::{Owner, ProjectId, RunId};
use futures::future::try_join_all;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use utoipa::ToSchema;

use super::uploads::{self, NewUpload, UploadTarget};
use super::{accounts, due};
use crate::archive::{self, ArchiveError, Limits};
use crate::blobs::{BlobError, BlobKey, BlobReader};
use crate::context::Cx;
use crate::problem::{Error, Result};
use crate::store::partitions::Partition;
use crate::store::restore::{Line, Restore, Restored, restore};
use crate::store::{DueItem, StoreError, Versioned, Walk};

/// An executor saves how far it has come when this time has passed.
const SAVED_EVERY: SignedDuration = SignedDuration::from_secs(30);

/// An executor stops this long before its deadline.
const RESERVE: SignedDuration = SignedDuration::from_secs(20);

/// When a sweep looks for the archive first.
const FIRST_LOOK: SignedDuration = SignedDuration::from_secs(10);

/// What an archive may have. The bytes are counted here, because records are read line by line.
const LIMITS: Limits =
    Limits { entries: 500_000, entry_bytes: u64::MAX, total_bytes: u64::MAX, path_bytes: 1_000 };

/// The most bytes of one object.
const MAX_OBJECT: u64 = 32 * 1024 * 1024;

/// The most bytes of all objects together.
const MAX_OBJECTS: u64 = 50_000_000_000;

/// The longest line, in bytes. An item of the table has at most 400 KB.
const MAX_LINE: u64 = 2_000_000;

/// The most lines.
const MAX_LINES: u64 = 20_000_000;

/// How many lines or objects are written at once.
const AT_ONCE: usize = 25;

/// Objects are written as soon as they have this many bytes together.
const WRITTEN_AT: usize = 8 * 1024 * 1024;

const RECORDS: &str = "records.jsonl";
const MANIFEST: &str = "manifest.json";
const OBJECTS: &str = "objects/";

/// The request for an import.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(example = json!({ "bytes": 9_437_184 }))]
pub struct NewAccountImport {
    /// The size of the archive, 1 to 5,000,000,000 bytes. The upload must have exactly this size.
    #[schema(minimum = 1, maximum = 5_000_000_000_u64)]
    pub bytes: u64,
    /// SHA-256 of the archive, 64 hexadecimal digits. An upload with another hash is refused.
    #[serde(default)]
    #[schema(pattern = "^[0-9a-fA-F]{64}$")]
    pub sha256: Option<String>,
}

/// An import as its owner sees it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AccountImportView {
    /// How far the import has come.
    pub state: AccountImportState,
    /// When the import was requested.
    pub requested_at: Timestamp,
    /// When the import was done, or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The size of the archive in bytes.
    pub bytes: u64,
    /// How many records were written, by kind.
    pub records: BTreeMap<String, u64>,
    /// How many objects were written.
    pub objects: u64,
    /// How many records were left out, by kind: what had not ended, what only mattered to the other deployment, and what exists
    /// here already.
    pub left_out: BTreeMap<String, u64>,
    /// Why the import failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Where to upload the archive. Only the answer to the request has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload: Option<UploadTarget>,
}

impl AccountImportView {
    fn of(import: AccountImport, upload: Option<UploadTarget>) -> Self {
        let AccountImport {
            state, requested_at, finished_at, bytes, records, objects, left_out, error, ..
        } = import;
        Self { state, requested_at, finished_at, bytes, records, objects, left_out, error, upload }
    }
}

/// Requests an import. The archive must then be uploaded.
///
/// # Errors
/// 409 if an import is running, or if the account has contents.
pub async fn request(cx: &Cx, owner: &Owner, input: &NewAccountImport) -> Result<AccountImportView> {
    let new = NewUpload { bytes: input.bytes, sha256: input.sha256.clone() };
    let sha256 = new.check(MAX_ARCHIVE)?;
    let found = cx.store.account_import(owner).await?;
    let version = found.as_ref().map_or(0, |found| found.version);
    if let Some(Versioned { value: earlier, .. }) = found {
        if earlier.state == AccountImportState::Running {
            let view = AccountImportView::of(earlier, None);
            return Err(Error::conflict_with("import_running", "an import is running", &view));
        }
        // What a failed import has written is no obstacle to the next one: nothing is written twice.
        let has_begun = earlier.position != Position::default();
        if !(earlier.state == AccountImportState::Failed && has_begun) {
            must_be_empty(cx, owner).await?;
        }
    } else {
        must_be_empty(cx, owner).await?;
    }
    let now = cx.clock.now();
    let import = AccountImport::new(input.bytes, now);
    if !cx.store.save_account_import(owner, &import, version, now + FIRST_LOOK).await?.done() {
        return Err(Error::conflict("import_running", "another import was requested at the same time"));
    }
    // An archive of an earlier request must not be taken for this one. Not before the record is saved: an executor may have begun to
    // read that archive.
    cx.blobs.delete(&BlobKey::account_archive(owner)).await?;
    let upload = uploads::target(cx, &BlobKey::account_archive(owner), input.bytes, sha256, now).await?;
    Ok(AccountImportView::of(import, Some(upload)))
}

/// An account is empty if nobody has made anything in it. Settings, keys and counts may exist.
async fn must_be_empty(cx: &Cx, owner: &Owner) -> Result<()> {
    let mut walk = Walk::new(owner, cx.clock.now());
    while let Some((partition, _)) = walk.next(&cx.store).await? {
        let is_setting = matches!(
            partition,
            Partition::Account
                | Partition::ApiKeys
                | Partition::Exports
                | Partition::Idempotency
                | Partition::Models
                | Partition::Places
                | Partition::ProviderKeys
                | Partition::Quota
                | Partition::Spend
                | Partition::Usage(_)
        );
        if !is_setting {
            let told = format!("the account has {}; an import needs an empty account", partition.kind());
            return Err(Error::conflict("account_not_empty", told));
        }
    }
    Ok(())
}

/// Reads the newest import.
///
/// # Errors
/// 404 if there was none.
pub async fn read(cx: &Cx, owner: &Owner) -> Result<AccountImportView> {
    let found = cx.store.account_import(owner).await?.ok_or(Error::NotFound("import"))?;
    Ok(AccountImportView::of(found.value, None))
}

/// Begins or continues an import whose archive was uploaded.
///
/// # Errors
/// If the table or the bucket does not answer. A sweep continues it.
pub(super) async fn write(cx: &Cx, owner: &Owner, deadline: Timestamp) -> Result<()> {
    let Some(Versioned { value: mut import, version }) = cx.store.account_import(owner).await? else {
        return Ok(());
    };
    if import.has_ended() {
        return Ok(());
    }
    let (now, key) = (cx.clock.now(), BlobKey::account_archive(owner));
    let Some(size) = cx.blobs.size(&key).await? else {
        if now >= import.requested_at + UPLOAD_WITHIN || import.state == AccountImportState::Running {
            import.fail("the archive was not uploaded, or was deleted", now);
        }
        // The next sweep looks again.
        let _ = cx.store.save_account_import(owner, &import, version, now + SWEEP_EVERY).await?;
        return Ok(());
    };
    let begins = import.begin(now);
    // The version says which executor writes. One whose lease has ended stops when it renews it.
    let saved = cx.store.save_account_import(owner, &import, version, now + LEASE).await?.done();
    if !begins || !saved {
        return Ok(());
    }
    let mut work = Work {
        cx,
        owner,
        reader: BlobReader::new(&cx.blobs, &key, size, Handle::current()),
        import,
        version: version + 1,
        saved_at: now,
        deadline,
        unfinished: HashSet::new(),
        projects: 0,
        counted: BTreeMap::new(),
    };
    let ended = work.everything().await;
    let Work { mut import, version, .. } = work;
    let now = cx.clock.now();
    match ended {
        Ok(()) => import.finish(now),
        Err(Stop::Invalid(told)) => import.fail(&told, now),
        Err(Stop::Lost) => return Ok(()),
        Err(Stop::OutOfTime) => {
            if cx.store.save_account_import(owner, &import, version, now).await?.done() {
                due::dispatch(cx, &DueItem::import(owner)).await;
            }
            return Ok(());
        }
        Err(Stop::Failed(error)) => return Err(error),
    }
    if cx.store.save_account_import(owner, &import, version, now).await?.done() {
        cx.blobs.delete(&key).await?;
        tracing::info!(state = ?import.state, objects = import.objects, "an account was imported");
    }
    Ok(())
}

/// Why the work ends before everything is written.
enum Stop {
    /// The archive is not valid.
    Invalid(String),
    /// Another executor does it.
    Lost,
    OutOfTime,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<BlobError> for Stop {
    fn from(error: BlobError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

/// What a pass over the archive is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Check,
    /// Without this many objects, which are written.
    Objects(u64),
    /// Without this many lines, which are written.
    Records(u64),
}

/// A part of the archive.
enum Piece {
    /// Lines with their numbers, from 1.
    Lines(Vec<(u64, Vec<u8>)>),
    /// An object without `objects/`. In the check it has no bytes.
    Object(String, Vec<u8>),
    Manifest(Vec<u8>),
}

/// What the platform must know from the manifest.
#[derive(Deserialize)]
struct Manifest {
    format: String,
    version: u32,
    records: BTreeMap<String, u64>,
    objects: u64,
}

/// The work of one executor.
struct Work<'a> {
    cx: &'a Cx,
    owner: &'a Owner,
    reader: BlobReader,
    import: AccountImport,
    version: u64,
    saved_at: Timestamp,
    deadline: Timestamp,
    /// Runs that have not ended. All of them stays behind.
    unfinished: HashSet<RunId>,
    projects: u64,
    /// How many records of each kind the check has found.
    counted: BTreeMap<String, u64>,
}

impl Work<'_> {
    async fn everything(&mut self) -> Result<(), Stop> {
        self.check().await?;
        self.objects().await?;
        self.records().await
    }

    /// Reads everything and writes nothing.
    async fn check(&mut self) -> Result<(), Stop> {
        let (mut pieces, reading) = self.begin(Pass::Check);
        let (mut manifest, mut objects) = (None, 0_u64);
        while let Some(piece) = pieces.recv().await {
            match piece {
                Piece::Lines(lines) => {
                    for line in lines {
                        self.check_line(line)?;
                    }
                }
                Piece::Object(path, _) => {
                    objects += 1;
                    object_key(self.owner, &path).map_err(Stop::Invalid)?;
                }
                Piece::Manifest(bytes) => {
                    let read: Manifest = serde_json::from_slice(&bytes)
                        .map_err(|error| Stop::Invalid(format!("{MANIFEST} can't be read: {error}")))?;
                    manifest = Some(read);
                }
            }
            self.pause().await?;
        }
        self.end(reading).await?;
        let manifest = manifest.ok_or_else(|| Stop::Invalid(format!("the archive has no {MANIFEST}")))?;
        if (manifest.format.as_str(), manifest.version) != ("lamplighter-account", 1) {
            let told = format!("{MANIFEST} must say format `lamplighter-account` and version 1");
            return Err(Stop::Invalid(told));
        }
        if manifest.records != self.counted || manifest.objects != objects {
            let told = "the archive has not as many records and objects as its manifest says";
            return Err(Stop::Invalid(told.to_owned()));
        }
        let plan = accounts::plan_of(self.cx, self.owner).await?;
        match plan.terms().projects {
            Some(most) if self.projects > u64::from(most) => Err(Stop::Invalid(format!(
                "the archive has {} projects; the plan allows {most}",
                self.projects
            ))),
            _ => Ok(()),
        }
    }

    fn check_line(&mut self, (number, line): (u64, Vec<u8>)) -> Result<(), Stop> {
        let partition = match self.read_line(number, &line)? {
            Restore::Item(restored) => restored.partition,
            Restore::LeftOut(partition) => partition,
            Restore::Unfinished(run) => {
                self.unfinished.insert(run);
                Partition::Run(run)
            }
        };
        // The default project exists everywhere.
        self.projects += u64::from(partition == Partition::Projects);
        *self.counted.entry(partition.kind().to_owned()).or_default() += 1;
        Ok(())
    }

    fn read_line(&self, number: u64, line: &[u8]) -> Result<Restore, Stop> {
        let told = |told: String| Stop::Invalid(format!("line {number} of {RECORDS}: {told}"));
        let line: Line = serde_json::from_slice(line).map_err(|error| told(error.to_string()))?;
        restore(self.owner, line, self.cx.clock.now()).map_err(told)
    }

    async fn objects(&mut self) -> Result<(), Stop> {
        let (mut pieces, reading) = self.begin(Pass::Objects(self.import.position.objects));
        let (mut waiting, mut bytes) = (Vec::new(), 0);
        loop {
            let piece = pieces.recv().await;
            let is_last = piece.is_none();
            if let Some(Piece::Object(path, content)) = piece {
                bytes += content.len();
                waiting.push((path, content));
            }
            if is_last || waiting.len() >= AT_ONCE || bytes >= WRITTEN_AT {
                bytes = 0;
                self.write_objects(std::mem::take(&mut waiting)).await?;
                self.pause().await?;
            }
            if is_last {
                return self.end(reading).await;
            }
        }
    }

    async fn write_objects(&mut self, objects: Vec<(String, Vec<u8>)>) -> Result<(), Stop> {
        let count = objects.len() as u64;
        let put = async |(path, content): (String, Vec<u8>)| {
            let Some(key) = object_key(self.owner, &path).map_err(Stop::Invalid)? else { return Ok(0) };
            self.cx.blobs.put(&key, content, "application/octet-stream").await?;
            Ok::<u64, Stop>(1)
        };
        let written: u64 = try_join_all(objects.into_iter().map(put)).await?.into_iter().sum();
        self.import.objects += written;
        self.import.advance(count, 0);
        Ok(())
    }

    async fn records(&mut self) -> Result<(), Stop> {
        let (mut pieces, reading) = self.begin(Pass::Records(self.import.position.lines));
        while let Some(piece) = pieces.recv().await {
            if let Piece::Lines(lines) = piece {
                self.write_lines(lines).await?;
                self.pause().await?;
            }
        }
        self.end(reading).await
    }

    async fn write_lines(&mut self, lines: Vec<(u64, Vec<u8>)>) -> Result<(), Stop> {
        let count = lines.len() as u64;
        let mut items = Vec::new();
        for (number, line) in lines {
            match self.read_line(number, &line)? {
                Restore::Item(restored) if !self.belongs_to_unfinished(&restored) => {
                    items.push((number, restored));
                }
                Restore::Item(restored) => self.leave_out(&restored.partition),
                Restore::LeftOut(partition) => self.leave_out(&partition),
                Restore::Unfinished(run) => self.leave_out(&Partition::Run(run)),
            }
        }
        let create = async |(number, restored): (u64, Box<Restored>)| {
            let Restored { partition, key, version, item } = *restored;
            match self.cx.store.create_at(&key, version, item).await {
                Ok(written) => Ok((partition, key, written.done())),
                Err(error @ (StoreError::Invalid { .. } | StoreError::TooLarge)) => {
                    Err(Stop::Invalid(format!("line {number} of {RECORDS}: {error}")))
                }
                Err(error) => Err(error.into()),
            }
        };
        for (partition, key, is_new) in try_join_all(items.into_iter().map(create)).await? {
            if let (Partition::Project(project), "THEME") = (&partition, key.sk.as_str()) {
                self.index(*project).await?;
            }
            if is_new {
                *self.import.records.entry(partition.kind().to_owned()).or_default() += 1;
            } else {
                self.leave_out(&partition);
            }
        }
        self.import.advance(0, count);
        Ok(())
    }

    /// Lets the indexer look at a theme, in case its map was not current.
    async fn index(&self, project: ProjectId) -> Result<(), Stop> {
        let key = BlobKey::theme_change(self.owner, project);
        Ok(self.cx.blobs.put(&key, Vec::new(), "application/octet-stream").await?)
    }

    fn belongs_to_unfinished(&self, restored: &Restored) -> bool {
        match restored.partition {
            Partition::Run(run) => self.unfinished.contains(&run),
            Partition::Runs => restored.key.sk.parse().is_ok_and(|run| self.unfinished.contains(&run)),
            _ => false,
        }
    }

    fn leave_out(&mut self, partition: &Partition) {
        *self.import.left_out.entry(partition.kind().to_owned()).or_default() += 1;
    }

    /// Reads the archive on a thread that may block.
    fn begin(&self, pass: Pass) -> (mpsc::Receiver<Piece>, tokio::task::JoinHandle<Result<(), Unreadable>>) {
        let (sender, pieces) = mpsc::channel(1);
        let reader = self.reader.clone();
        (pieces, tokio::task::spawn_blocking(move || read_pieces(reader, pass, &sender)))
    }

    async fn end(&self, reading: tokio::task::JoinHandle<Result<(), Unreadable>>) -> Result<(), Stop> {
        let ended = reading.await.map_err(|error| Error::internal(error.to_string()))?;
        if let Some(failure) = self.reader.failure() {
            return Err(failure.into());
        }
        match ended {
            Ok(()) => Ok(()),
            Err(Unreadable::Archive(error)) => Err(Stop::Invalid(error.to_string())),
            Err(Unreadable::Content(told)) => Err(Stop::Invalid(told)),
            Err(Unreadable::Unwanted) => Err(Stop::Lost),
        }
    }

    /// Saves how far the import has come, and says whether the work must end.
    async fn pause(&mut self) -> Result<(), Stop> {
        let now = self.cx.clock.now();
        if self.cx.stopping.is_set() {
            return Err(Stop::OutOfTime);
        }
        if now + RESERVE >= self.deadline {
            return Err(Stop::OutOfTime);
        }
        if now.duration_since(self.saved_at) >= SAVED_EVERY {
            let saved =
                self.cx.store.save_account_import(self.owner, &self.import, self.version, now + LEASE);
            if !saved.await?.done() {
                return Err(Stop::Lost);
            }
            self.version += 1;
            self.saved_at = now;
        }
        Ok(())
    }
}

/// Where an object belongs. `None` if it stays behind: what expires soon, and what would begin work if it were written.
fn object_key(owner: &Owner, rest: &str) -> Result<Option<BlobKey>, String> {
    let key = BlobKey::listed(owner, rest);
    match rest.split('/').next().unwrap_or_default() {
        "actions" | "assets" | "chats" | "logs" | "projects" | "runs" => {
            Ok(Some(key).filter(|key| BlobKey::parse_upload(key.as_str()).is_none()))
        }
        "exports" | "imports" | "proposals" => Ok(None),
        _ => Err(format!("the object {rest:?} is unknown")),
    }
}

/// Why an archive was not read to its end.
enum Unreadable {
    Archive(ArchiveError),
    Content(String),
    /// Nobody receives what is read.
    Unwanted,
}

impl From<ArchiveError> for Unreadable {
    fn from(error: ArchiveError) -> Self {
        Self::Archive(error)
    }
}

fn read_pieces(reader: BlobReader, pass: Pass, pieces: &mpsc::Sender<Piece>) -> Result<(), Unreadable> {
    let send = |piece| pieces.blocking_send(piece).map_err(|_| Unreadable::Unwanted);
    let (mut objects, mut left) = (0, MAX_OBJECTS);
    archive::stream(reader, &LIMITS, |path, file| match (path, path.strip_prefix(OBJECTS)) {
        (RECORDS, _) => match pass {
            Pass::Check => read_lines(file, 0, send),
            Pass::Records(done) => read_lines(file, done, send),
            Pass::Objects(_) => Ok(()),
        },
        (MANIFEST, _) if pass == Pass::Check => send(Piece::Manifest(read_whole(path, file, MAX_LINE)?)),
        (MANIFEST, _) => Ok(()),
        (_, Some(rest)) => {
            objects += 1;
            match pass {
                // The bytes are read, so that a damaged archive is found before anything is written.
                Pass::Check => {
                    let bytes = read_whole(path, file, MAX_OBJECT)?.len() as u64;
                    left = left.checked_sub(bytes).ok_or(ArchiveError::TooLarge { limit: MAX_OBJECTS })?;
                    send(Piece::Object(rest.to_owned(), Vec::new()))
                }
                Pass::Objects(done) if objects > done => {
                    send(Piece::Object(rest.to_owned(), read_whole(path, file, MAX_OBJECT)?))
                }
                Pass::Objects(_) | Pass::Records(_) => Ok(()),
            }
        }
        (other, None) => Err(Unreadable::Content(format!("the archive has an unknown file {other:?}"))),
    })
}

fn read_whole(path: &str, file: &mut dyn Read, limit: u64) -> Result<Vec<u8>, Unreadable> {
    let bytes = archive::read_within(path, file, limit)?;
    if bytes.len() as u64 > limit {
        return Err(ArchiveError::EntryTooLarge { path: path.to_owned(), limit }.into());
    }
    Ok(bytes)
}

/// Sends the lines after the first `done`.
fn read_lines(
    file: &mut dyn Read,
    done: u64,
    mut send: impl FnMut(Piece) -> Result<(), Unreadable>,
) -> Result<(), Unreadable> {
    let mut file = BufReader::new(file);
    let mut lines = Vec::new();
    for number in 1.. {
        let mut line = Vec::new();
        let read = (&mut file).take(MAX_LINE + 1).read_until(b'\n', &mut line);
        let read = read
            .map_err(|error| ArchiveError::Damaged { path: RECORDS.to_owned(), cause: error.to_string() })?;
        if line.len() as u64 > MAX_LINE || number > MAX_LINES {
            let told = format!(
                "line {number} of {RECORDS}: there are at most {MAX_LINES} lines of {MAX_LINE} bytes"
            );
            return Err(Unreadable::Content(told));
        }
        if read > 0 && number > done {
            lines.push((number, line));
        }
        if read == 0 || lines.len() >= AT_ONCE {
            send(Piece::Lines(std::mem::take(&mut lines)))?;
        }
        if read == 0 {
            break;
        }
    }
    Ok(())
}
