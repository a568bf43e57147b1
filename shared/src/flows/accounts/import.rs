//! The import of an account's export into an empty account.
//!
//! The client uploads the archive to a presigned address. An executor first reads all of it: nothing is written if anything is
//! invalid. Then it writes the objects, and then the records, which name them. It creates records and never replaces one, so
//! what exists here stays, and another executor can continue at any time.
//!
//! The files of OpenClaw come the same way; `openclaw` reads them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufRead, BufReader, Read};

use domain::accounts::import::{
    AccountImport, AccountImportState, ImportFormat, MAX_ARCHIVE, Position, UPLOAD_WITHIN, most_inflated,
};
use domain::background::dispatch::SWEEP_EVERY;
use domain::background::jobs::{JobKind, Outcome};
use domain::chats::conversation::check_images;
use domain::ids::{MessageId, Owner, ProjectId, RunId};
use domain::log::{Entry, InstanceId, SessionId};
use domain::models::Block;
use domain::validate::FieldErrors;
use futures::future::try_join_all;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use utoipa::ToSchema;

use super::openclaw;
use super::stopped::{Stop, Unreadable};
use crate::agent_loop::journal;
use crate::area::{self, AllRules};
use crate::blobs::{BlobKey, BlobReader};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::archive::{self, ArchiveError, ArchiveLimits, Ratio};
use crate::flows::background::due;
use crate::flows::background::jobs::{self, Due};
use crate::flows::background::lease::{ClaimedJob, Interrupted};
use crate::flows::uploads::{self, NewUpload, UploadTarget};
use crate::money::plans;
use crate::stopped;
use crate::store::partitions::Partition;
use crate::store::restore::{Line, Named, Restore, Restored, restore};
use crate::store::{DueItem, Job, Once, StoreError, Versioned, Walk};

/// When a sweep looks for the archive first.
const FIRST_LOOK: SignedDuration = SignedDuration::from_secs(10);

/// What an archive may have. The bytes are counted here, because records are read line by line.
const LIMITS: ArchiveLimits = ArchiveLimits {
    entries: MAX_ENTRIES,
    entry_bytes: u64::MAX,
    total_bytes: u64::MAX,
    path_bytes: 1_000,
    ratio: Some(Ratio { entry: 250, archive: 100 }),
};

/// The most files of an archive, and the most objects that its records name.
const MAX_ENTRIES: usize = 500_000;

/// The most bytes of one object.
const MAX_OBJECT: u64 = 32 * 1024 * 1024;

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
const README: &str = "README.md";
const READABLE: &str = "readable/";

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
    /// What the archive is. `account` (the default) needs an empty account. `openclaw` adds to what there is.
    #[serde(default)]
    pub format: ImportFormat,
}

/// An import as its owner sees it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AccountImportView {
    /// What the archive is.
    pub format: ImportFormat,
    /// How far the import has come.
    pub state: AccountImportState,
    /// When the import was requested.
    pub requested_at: Timestamp,
    /// When the import was done, or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The size of the archive in bytes.
    pub bytes: u64,
    /// How many things were written, by kind, such as `agents` and `messages`. What the platform stores for itself is not counted.
    pub records: BTreeMap<String, u64>,
    /// How many objects were written.
    pub objects: u64,
    /// How many things were left out, by kind: what had not ended, what only mattered to the other deployment, what needs an
    /// object that the archive does not have, and what exists here already. Objects that no record names are `objects`.
    pub left_out: BTreeMap<String, u64>,
    /// What was left out and why, with the name of the file: at most 50 sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
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
            format,
            state,
            requested_at,
            finished_at,
            bytes,
            records,
            objects,
            left_out,
            notes,
            error,
            ..
        } = import;
        Self {
            format,
            state,
            requested_at,
            finished_at,
            bytes,
            records,
            objects,
            left_out,
            notes,
            error,
            upload,
        }
    }
}

/// Requests an import. The archive must then be uploaded.
///
/// # Errors
/// 409 if an import is running, or if the account has contents.
pub async fn request(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    input: &NewAccountImport,
) -> Result<AccountImportView> {
    let new = NewUpload { bytes: input.bytes, sha256: input.sha256.clone() };
    let plan = plans::plan_of(cx, owner).await?;
    let sha256 = new.check(MAX_ARCHIVE.min(most_inflated(plan)))?;
    let found = cx.store.account_import(owner).await?;
    let version = found.as_ref().map_or(0, |found| found.version);
    let mut must_be_empty_now = input.format == ImportFormat::Account;
    if let Some(Versioned { value: earlier, .. }) = found {
        if earlier.state == AccountImportState::Running {
            let view = AccountImportView::of(earlier, None);
            return Err(Error::conflict_with("import_running", "an import is running", &view));
        }
        // What a failed import has written is no obstacle to the next one: nothing is written twice.
        let has_begun = earlier.format == ImportFormat::Account && earlier.position != Position::default();
        must_be_empty_now &= !(earlier.state == AccountImportState::Failed && has_begun);
    }
    if must_be_empty_now {
        must_be_empty(cx, owner).await?;
    }
    // The record of a stopped account exists, and an import only creates records. So it would leave out the settings.
    stopped::check(cx, owner).await?;
    let now = cx.clock.now();
    let import = AccountImport { format: input.format, ..AccountImport::new(input.bytes, now) };
    let write = import.write(owner, version, now + FIRST_LOOK)?;
    if !cx.store.commit(once, vec![write]).await?.done() {
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
        if !partition.is_setting() {
            let told = format!("the account has {}; an import needs an empty account", partition.kind());
            return Err(Error::conflict("account_not_empty", told));
        }
    }
    Ok(())
}

/// Reads the newest import, if there was one.
///
/// # Errors
/// If the table does not answer.
pub async fn read(cx: &Cx, owner: &Owner) -> Result<Option<AccountImportView>> {
    let found = cx.store.account_import(owner).await?;
    Ok(found.map(|found| AccountImportView::of(found.value, None)))
}

/// Begins or continues an import whose archive was uploaded.
///
/// # Errors
/// If the table or the bucket does not answer. A sweep continues it.
pub(crate) async fn write(cx: &Cx, owner: &Owner, deadline: Timestamp) -> Result<()> {
    let Some(mut found) = cx.store.account_import(owner).await? else { return Ok(()) };
    if found.value.has_ended() {
        return Ok(());
    }
    let key = BlobKey::account_archive(owner);
    let Some(size) = cx.blobs.size(&key).await? else {
        let (now, import) = (cx.clock.now(), &mut found.value);
        if now >= import.requested_at + UPLOAD_WITHIN || import.state == AccountImportState::Running {
            import.fail("the archive was not uploaded, or was deleted", now);
        }
        // The next sweep looks again.
        let _ = cx.store.save_job(owner, import, found.version, now + SWEEP_EVERY).await?;
        return Ok(());
    };
    let Some(claimed) = ClaimedJob::claim(cx, owner, found, deadline).await? else { return Ok(()) };
    // There is one import at a time, so it has no id. Its due time tells it from others.
    let due = Due::At(claimed.job.requested_at);
    let record = jobs::begin(cx, owner, JobKind::AccountImport, "", due).await;
    match bring_in(cx, owner, claimed, (&key, size)).await {
        Ok(Some(import)) => {
            let artefacts = import.records.values().sum::<u64>() + import.objects;
            let work_found = artefacts + import.left_out.values().sum::<u64>();
            record.end(Outcome { work_found, artefacts, error: import.error, ..Outcome::default() }).await;
            Ok(())
        }
        Ok(None) => Ok(()),
        Err(error) => {
            record.fail(Outcome::default(), &error).await;
            Err(error)
        }
    }
}

/// Does the work of a claimed import. `None` if another executor goes on.
async fn bring_in(
    cx: &Cx,
    owner: &Owner,
    claimed: ClaimedJob<'_, AccountImport>,
    (key, size): (&BlobKey, u64),
) -> Result<Option<AccountImport>> {
    let reader = BlobReader::new(&cx.blobs, key, size, Handle::current());
    let most_bytes = most_inflated(plans::plan_of(cx, owner).await?);
    let (mut claimed, ended) = match claimed.job.format {
        ImportFormat::Account => {
            let mut work = Work {
                cx,
                owner,
                claimed,
                reader,
                rules: cx.data_rules(),
                unfinished: HashSet::new(),
                most_bytes,
                named: HashMap::new(),
                logs: HashMap::new(),
                found: HashMap::new(),
                projects: 0,
                counted: BTreeMap::new(),
            };
            let ended = work.everything().await;
            (work.claimed, ended)
        }
        ImportFormat::OpenClaw => {
            let mut work = openclaw::Work { cx, owner, claimed, reader, most_bytes };
            let ended = work.everything().await;
            (work.claimed, ended)
        }
    };
    let now = cx.clock.now();
    match ended {
        Ok(()) => claimed.job.finish(now),
        Err(Stop::Invalid(told)) => claimed.job.fail(&told, now),
        Err(Stop::Interrupted(Interrupted::Lost)) => return Ok(None),
        // Another executor continues after what is written.
        Err(Stop::Interrupted(Interrupted::TimeUp | Interrupted::Stopping)) => {
            if claimed.give_back().await? {
                due::dispatch(cx, &DueItem::import(owner)).await;
            }
            return Ok(None);
        }
        Err(Stop::Interrupted(Interrupted::Failed(error))) => return Err(error),
    }
    if !claimed.give_back().await? {
        return Ok(None);
    }
    cx.blobs.delete(key).await?;
    tracing::info!(state = ?claimed.job.state, objects = claimed.job.objects, "an account was imported");
    Ok(Some(claimed.job))
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
    /// An object. `None`: it stays behind whatever the records say.
    Object(String, Option<Object>),
    Manifest(Vec<u8>),
}

/// An object of an archive, without `objects/` in its path.
struct Object {
    bytes: u64,
    lines: u64,
    /// The objects that its content names.
    names: Vec<String>,
    /// Empty in the check.
    content: Vec<u8>,
}

/// Identifies a path of an object: a part of its SHA-256. An archive has too many paths to keep all of them in memory.
type PathHash = u128;

fn path_hash(path: &str) -> PathHash {
    let hash: [u8; 32] = Sha256::digest(path).into();
    hash[..16].iter().fold(0, |all, byte| (all << 8) | PathHash::from(*byte))
}

fn log_hash(session: &SessionId, agent: &InstanceId) -> PathHash {
    path_hash(&format!("{session}/{agent}"))
}

/// The log whose head this record is.
fn log_of_head(restored: &Restored) -> Option<PathHash> {
    let Partition::Session(session) = &restored.partition else { return None };
    let agent = restored.key.sk.strip_prefix("HEAD#")?.parse().ok()?;
    Some(log_hash(session, &agent))
}

/// What the records say about an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Expected {
    /// The line that names it first.
    line: u64,
    bytes: Option<u64>,
    lines: Option<u64>,
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
    claimed: ClaimedJob<'a, AccountImport>,
    reader: BlobReader,
    /// What the areas above this crate know about their data.
    rules: AllRules,
    /// Runs that have not ended. All of them stays behind.
    unfinished: HashSet<RunId>,
    /// The most bytes of the whole archive, inflated.
    most_bytes: u64,
    /// The objects that records and contents name.
    named: HashMap<PathHash, Expected>,
    /// How many lines each log has, by the hash of its session and agent.
    logs: HashMap<PathHash, u64>,
    /// The bytes and lines of the objects that the archive has.
    found: HashMap<PathHash, (u64, u64)>,
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
                Piece::Object(path, object) => {
                    objects += 1;
                    let Some(object) = object else { continue };
                    for name in object.names {
                        self.name(path_hash(&name), Expected::default())?;
                    }
                    self.found.insert(path_hash(&path), (object.bytes, object.lines));
                }
                Piece::Manifest(bytes) => {
                    let read: Manifest = serde_json::from_slice(&bytes)
                        .map_err(|error| Stop::Invalid(format!("{MANIFEST} can't be read: {error}")))?;
                    manifest = Some(read);
                }
            }
            self.claimed.keep().await?;
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
        self.check_named()?;
        let plan = plans::plan_of(self.cx, self.owner).await?;
        match plan.terms().projects {
            Some(most) if self.projects > u64::from(most) => Err(Stop::Invalid(format!(
                "the archive has {} projects; the plan allows {most}",
                self.projects
            ))),
            _ => Ok(()),
        }
    }

    /// Notes that an object is named.
    fn name(&mut self, path: PathHash, expected: Expected) -> Result<(), Stop> {
        let known = *self.named.entry(path).or_insert(expected);
        let differs = |was: Option<u64>, is: Option<u64>| was.zip(is).is_some_and(|(was, is)| was != is);
        if differs(known.bytes, expected.bytes) || differs(known.lines, expected.lines) {
            let told = format!(
                "line {} of {RECORDS}: `bytes` or `last`: line {} says another size of the same object",
                expected.line, known.line
            );
            return Err(Stop::Invalid(told));
        }
        if self.named.len() > MAX_ENTRIES {
            return Err(Stop::Invalid(format!("the records name more than {MAX_ENTRIES} objects")));
        }
        Ok(())
    }

    /// Checks that the named objects have the sizes that the records say.
    fn check_named(&self) -> Result<(), Stop> {
        for (path, expected) in &self.named {
            let Some((bytes, lines)) = self.found.get(path) else { continue };
            let differs = [("bytes", expected.bytes, bytes), ("lines", expected.lines, lines)];
            for (what, said, has) in differs {
                if let Some(said) = said.filter(|said| said != has) {
                    let told = format!(
                        "line {} of {RECORDS}: `bytes` or `last`: its object has {has} {what}, and the record says {said}",
                        expected.line
                    );
                    return Err(Stop::Invalid(told));
                }
            }
        }
        Ok(())
    }

    /// The path of an object without its owner.
    fn path_of<'k>(&self, key: &'k BlobKey) -> &'k str {
        key.as_str().strip_prefix(BlobKey::everything(self.owner).as_str()).unwrap_or_default()
    }

    fn check_line(&mut self, (number, line): (u64, Vec<u8>)) -> Result<(), Stop> {
        let partition = match self.read_line(number, &line)? {
            Restore::Item(restored) => {
                if let (Some(log), Some(line)) = (log_of_head(&restored), restored.line) {
                    self.logs.insert(log, line);
                }
                for Named { key, bytes, lines } in restored.objects {
                    let hash = path_hash(self.path_of(&key));
                    self.name(hash, Expected { line: number, bytes, lines })?;
                }
                restored.partition
            }
            Restore::LeftOut { partition, .. } => partition,
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
        restore(self.owner, line, &self.rules, self.cx.clock.now()).map_err(told)
    }

    async fn objects(&mut self) -> Result<(), Stop> {
        let (mut pieces, reading) = self.begin(Pass::Objects(self.claimed.job.position.objects));
        let (mut waiting, mut bytes) = (Vec::new(), 0);
        loop {
            let piece = pieces.recv().await;
            let is_last = piece.is_none();
            if let Some(Piece::Object(path, object)) = piece {
                let content = object.filter(|_| self.is_kept(&path)).map(|object| object.content);
                bytes += content.as_ref().map_or(0, Vec::len);
                waiting.push((path, content));
            }
            if is_last || waiting.len() >= AT_ONCE || bytes >= WRITTEN_AT {
                bytes = 0;
                self.write_objects(std::mem::take(&mut waiting)).await?;
                self.claimed.keep().await?;
            }
            if is_last {
                return self.end(reading).await;
            }
        }
    }

    /// Whether a record that comes along names the object.
    fn is_kept(&self, path: &str) -> bool {
        let run = path.strip_prefix("runs/").and_then(|rest| rest.split('/').next()?.parse().ok());
        self.named.contains_key(&path_hash(path)) && !run.is_some_and(|run| self.unfinished.contains(&run))
    }

    /// Writes objects. Those without a content stay behind.
    async fn write_objects(&mut self, objects: Vec<(String, Option<Vec<u8>>)>) -> Result<(), Stop> {
        let count = objects.len() as u64;
        let put = async |(path, content): (String, Option<Vec<u8>>)| {
            let key = object_key(self.owner, &path).map_err(Stop::Invalid)?;
            let Some((key, content)) = key.zip(content) else { return Ok(0) };
            self.cx.blobs.put(&key, content, "application/octet-stream").await?;
            Ok::<u64, Stop>(1)
        };
        let written: u64 = try_join_all(objects.into_iter().map(put)).await?.into_iter().sum();
        self.claimed.job.objects = self.claimed.job.objects.saturating_add(written);
        if written < count {
            *self.claimed.job.left_out.entry("objects".to_owned()).or_default() += count - written;
        }
        self.claimed.job.advance(count, 0);
        Ok(())
    }

    async fn records(&mut self) -> Result<(), Stop> {
        let (mut pieces, reading) = self.begin(Pass::Records(self.claimed.job.position.lines));
        while let Some(piece) = pieces.recv().await {
            if let Piece::Lines(lines) = piece {
                self.write_lines(lines).await?;
                self.claimed.keep().await?;
            }
        }
        self.end(reading).await
    }

    async fn write_lines(&mut self, lines: Vec<(u64, Vec<u8>)>) -> Result<(), Stop> {
        let count = lines.len() as u64;
        let mut items = Vec::new();
        for (number, line) in lines {
            match self.read_line(number, &line)? {
                Restore::Item(mut restored) => {
                    if !self.belongs_to_unfinished(&restored)
                        && self.is_in_its_log(&restored)
                        && self.has_objects(&mut restored)
                    {
                        items.push((number, restored));
                    } else {
                        self.leave_out(restored.thing);
                    }
                }
                Restore::LeftOut { thing, .. } => self.leave_out(thing),
                Restore::Unfinished(_) => self.leave_out(Some("runs")),
            }
        }
        let create = async |(number, restored): (u64, Box<Restored>)| {
            let Restored { partition, key, version, item, thing, noted, .. } = *restored;
            // Before the record: if the process dies between the two, both are created when the line is read again.
            if let Some((key, item)) = noted {
                let _ = self.cx.store.create_at(&key, 1, item).await?;
            }
            match self.cx.store.create_at(&key, version, item).await {
                Ok(written) => Ok((partition, key, thing, written.done())),
                Err(error @ (StoreError::Invalid { .. } | StoreError::TooLarge)) => {
                    Err(Stop::Invalid(format!("line {number} of {RECORDS}: {error}")))
                }
                Err(error) => Err(error.into()),
            }
        };
        for (partition, key, thing, is_new) in try_join_all(items.into_iter().map(create)).await? {
            if let (Partition::Project(project), "THEME") = (&partition, key.sk.as_str()) {
                self.index(*project).await?;
            }
            match thing {
                Some(thing) if is_new => *self.claimed.job.records.entry(thing.to_owned()).or_default() += 1,
                _ if is_new => {}
                _ => self.leave_out(thing),
            }
        }
        self.claimed.job.advance(0, count);
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

    fn leave_out(&mut self, thing: Option<&'static str>) {
        if let Some(thing) = thing {
            *self.claimed.job.left_out.entry(thing.to_owned()).or_default() += 1;
        }
    }

    /// Whether the head of its log counts the lines of the record. An export of an account that changes meanwhile may have newer
    /// lines. They would prevent that lines with the same numbers are added here.
    fn is_in_its_log(&self, restored: &Restored) -> bool {
        let Partition::Log(session, agent) = &restored.partition else { return true };
        let lines = self.logs.get(&log_hash(session, agent)).copied().unwrap_or_default();
        restored.line.is_none_or(|line| line <= lines)
    }

    /// Whether the archive has the objects that the record names. An export of an account that changes meanwhile may lack some. A
    /// record that can do without its object comes along without it.
    fn has_objects(&self, restored: &mut Restored) -> bool {
        let has_all = restored
            .objects
            .iter()
            .all(|Named { key, .. }| self.found.contains_key(&path_hash(self.path_of(key))));
        match restored.without {
            Some(attribute) if !has_all => {
                restored.item.remove(attribute);
                true
            }
            _ => has_all,
        }
    }

    /// Reads the archive on a thread that may block.
    fn begin(&self, pass: Pass) -> (mpsc::Receiver<Piece>, tokio::task::JoinHandle<Result<(), Unreadable>>) {
        let (sender, pieces) = mpsc::channel(1);
        let (reader, owner, most) = (self.reader.clone(), self.owner.clone(), self.most_bytes);
        let rules = self.rules.clone();
        (
            pieces,
            tokio::task::spawn_blocking(move || read_pieces(reader, (&owner, &rules), most, pass, &sender)),
        )
    }

    async fn end(&self, reading: tokio::task::JoinHandle<Result<(), Unreadable>>) -> Result<(), Stop> {
        let ended = reading.await.map_err(|error| Error::internal(error.to_string()))?;
        if let Some(failure) = self.reader.failure() {
            return Err(failure.into());
        }
        ended.map_err(Unreadable::stop)
    }
}

/// Where an object belongs. `None` if it stays behind: what expires soon, and what would begin work if it were written.
fn object_key(owner: &Owner, rest: &str) -> Result<Option<BlobKey>, String> {
    let key = BlobKey::listed(owner, rest);
    // Change sets stay behind, as proposals do.
    if let ["projects", _, "changes", _] = rest.split('/').collect::<Vec<_>>()[..] {
        return Ok(None);
    }
    match rest.split('/').next().unwrap_or_default() {
        "actions" | "assets" | "chats" | "logs" | "projects" | "runs" => {
            Ok(Some(key).filter(|key| BlobKey::parse_upload(key.as_str()).is_none()))
        }
        "exports" | "imports" | "proposals" => Ok(None),
        _ => Err(format!("the object {rest:?} is unknown")),
    }
}

fn read_pieces(
    reader: BlobReader,
    (owner, rules): (&Owner, &AllRules),
    most_bytes: u64,
    pass: Pass,
    pieces: &mpsc::Sender<Piece>,
) -> Result<(), Unreadable> {
    let send = |piece| pieces.blocking_send(piece).map_err(|_| Unreadable::Unwanted);
    let (mut objects, mut left) = (0, most_bytes);
    let too_large = || ArchiveError::TooLarge { limit: most_bytes };
    archive::stream(reader, &LIMITS, |path, file| match (path, path.strip_prefix(OBJECTS)) {
        (RECORDS, _) => match pass {
            Pass::Check => {
                // One more byte than is left tells a file that just fits from one that is too large.
                let mut limited = file.take(left.saturating_add(1));
                read_lines(&mut limited, 0, send)?;
                left = limited.limit().checked_sub(1).ok_or_else(too_large)?;
                Ok(())
            }
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
                    let content = read_whole(path, file, MAX_OBJECT)?;
                    left = left.checked_sub(content.len() as u64).ok_or_else(too_large)?;
                    let object = read_object((owner, rules), rest, content)?;
                    let object = object.map(|object| Object { content: Vec::new(), ..object });
                    send(Piece::Object(rest.to_owned(), object))
                }
                // The content is checked again: its owner may have uploaded another archive meanwhile.
                Pass::Objects(done) if objects > done => {
                    let content = read_whole(path, file, MAX_OBJECT)?;
                    send(Piece::Object(rest.to_owned(), read_object((owner, rules), rest, content)?))
                }
                Pass::Objects(_) | Pass::Records(_) => Ok(()),
            }
        }
        // They are for people.
        (README, None) => Ok(()),
        (other, None) if other.starts_with(READABLE) => Ok(()),
        (other, None) => Err(Unreadable::Content(format!("the archive has an unknown file {other:?}"))),
    })
}

/// Checks an object. `None` if it stays behind.
fn read_object(
    (owner, rules): (&Owner, &AllRules),
    path: &str,
    content: Vec<u8>,
) -> Result<Option<Object>, Unreadable> {
    let told = |told: String| Unreadable::Content(format!("the object {path:?} {told}"));
    if object_key(owner, path).map_err(Unreadable::Content)?.is_none() {
        return Ok(None);
    }
    let (mut lines, mut names) = (0, Vec::new());
    let parts: Vec<&str> = path.split('/').collect();
    area::check_object(rules, &parts, &content).map_err(told)?;
    match parts[..] {
        ["assets", _, sha256] => {
            check_hash(sha256, &content).map_err(told)?;
            std::str::from_utf8(&content).map_err(|_| told("is not UTF-8".to_owned()))?;
        }
        ["projects", _, "files" | "maps", sha256] => check_hash(sha256, &content).map_err(told)?,
        ["chats" | "actions", thread, name] if let Ok(message) = name.parse::<MessageId>() => {
            let blocks: Vec<Block> = serde_json::from_slice(&content)
                .map_err(|error| told(format!("has no valid content of a message: {error}")))?;
            let mut errors = FieldErrors::default();
            check_images(&mut errors, message, &blocks);
            errors.into_result(()).map_err(|errors| told(format!("is invalid: {errors}")))?;
            let images = blocks.iter().filter_map(|block| match block {
                Block::Image(image) => Some(format!("{}/{thread}/{}", parts[0], image.object)),
                _ => None,
            });
            names = images.collect();
        }
        ["runs", _, _] => journal::check_stored(&content)
            .map_err(|error| told(format!("has no valid part of a step: {error}")))?,
        ["logs", session, agent, "lines", _] => {
            lines = check_lines(session, agent, &[&content[..], b"\n"].concat()).map_err(told)?;
        }
        ["logs", session, agent, "segments", _] | ["logs", ".imports", _, session, agent, _] => {
            lines = check_lines(session, agent, &content).map_err(told)?;
        }
        _ => {}
    }
    Ok(Some(Object { bytes: content.len() as u64, lines, names, content }))
}

/// Checks that a content is the one that its name says.
fn check_hash(sha256: &str, content: &[u8]) -> Result<(), String> {
    let is = domain::hex(&Sha256::digest(content));
    if is == sha256 { Ok(()) } else { Err(format!("has the SHA-256 {is}, and not the one of its name")) }
}

/// Checks lines of a log, each with its newline, and counts them.
fn check_lines(session: &str, agent: &str, text: &[u8]) -> Result<u64, String> {
    let session = session.parse().map_err(|error| format!("has an invalid session: {error}"))?;
    let agent = agent.parse().map_err(|error| format!("has an invalid agent: {error}"))?;
    let text = text.strip_suffix(b"\n").ok_or("does not end with a newline")?;
    let mut lines = 0;
    for line in text.split(|byte| *byte == b'\n') {
        lines += 1;
        Entry::from_line(line, &session, &agent)
            .map_err(|error| format!("has an invalid line {lines}: {error}"))?;
    }
    Ok(lines)
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
        let read = read.map_err(|error| ArchiveError::reading(RECORDS, error))?;
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
