//! DynamoDB: dynoxide (based on SQLite), called within this process. A table in a file has its own thread, because
//! SQLite waits for the disk. A table in memory never waits, so the caller uses it directly. A change of threads could
//! take longer than the answer.
//!
//! The thread does all requests that wait, then writes SQLite's log to the disk once, and only then answers them. So an answer means
//! that its write is on the disk, and that nobody has read what is not.
//!
//! It differs from AWS in these ways: signatures are not verified, indexes are consistent at once, and there is no
//! throttling and no conflict. [`super::faults`] adds these.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::Bytes;
use dynoxide::Database;
use dynoxide::actions::list_tags_of_resource::ListTagsOfResourceRequest;
use dynoxide::actions::tag_resource::TagResourceRequest;
use dynoxide::errors::DynoxideError;
use dynoxide::types::Tag;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use shared::aws::storage::StorageFailure;
use shared::store::keys;

use super::compact::{self, CompactError};
use super::storage::{self, Storage};
use super::transport::json_answer;
use super::{ACCOUNT, REGION};
use crate::handler::{Handler, Hangup};

/// DynamoDB's own limit for a request, in bytes.
const MAX_BODY: usize = 16 * 1024 * 1024;

/// How many requests are answered together at most, and for how long a group gathers them after its first write.
const GROUP: usize = 128;
const GATHERS: Duration = Duration::from_millis(5);

const JSON: &str = "application/x-amz-json-1.0";

/// The tag that stores the identity of the platform in the table.
const IDENTITY: &str = "lamplighter:identity";

/// Why the table engine did not start. Messages follow "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum DynamoError {
    #[error(
        "read the table's file {path}: {source}. If it is damaged, restore the data folder from a backup, as a whole; or choose another folder"
    )]
    Open { path: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("read or write the table's identity: {0}")]
    Identity(#[source] DynoxideError),
    #[error("delete expired items: {0}")]
    Sweep(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("write the table's identity to the disk: {0}")]
    Sync(#[source] std::io::Error),
    #[error("start the table's thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// A table engine. Dropping it closes its file, even if handlers still exist.
pub(super) struct Dynamo(Arc<Table>);

/// The state that the handlers share.
pub(super) struct Table {
    /// `None` after the stop. The file is closed when the last handle is dropped.
    open: Mutex<Option<Open>>,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
    name: String,
    file: Option<PathBuf>,
    storage: OnceLock<Storage>,
    /// Part of the file can't be read. Nothing is written any more, because a write may destroy what is left.
    is_damaged: AtomicBool,
}

struct Open {
    db: Database,
    /// Sends jobs to the thread of a table in a file.
    jobs: Option<mpsc::UnboundedSender<Job>>,
}

enum Job {
    Answer { operation: String, body: Bytes, answer: oneshot::Sender<Done> },
    Compact { answer: oneshot::Sender<Result<(), CompactError>> },
}

type TableResponse = (StatusCode, String);

/// Requests that are done, and are answered together.
struct Group {
    /// SQLite's log. It is opened once: only a descriptor that was open before an error of the disk is told of it, whoever else has seen it.
    log: File,
    done: Vec<(oneshot::Sender<Done>, Done)>,
    /// When the first write of the group was done.
    wrote: Option<Instant>,
    /// Why nobody knows what is on the disk. From then on, nothing is written: a later write would be lost with what is missing before it.
    failed: Option<String>,
}

impl Group {
    const fn new(log: File) -> Self {
        Self { log, done: Vec::new(), wrote: None, failed: None }
    }

    /// Does a request. A read that has no write before it is answered at once: what it has read is on the disk.
    fn take(&mut self, is_write: bool, run: impl FnOnce() -> Done, answer: oneshot::Sender<Done>) {
        let done = match &self.failed {
            Some(cause) if is_write => damaged(cause.clone()),
            _ => run(),
        };
        if self.wrote.is_none() && (!is_write || self.failed.is_some()) {
            // The caller may have left meanwhile.
            drop(answer.send(done));
            return;
        }
        self.wrote.get_or_insert_with(Instant::now);
        self.done.push((answer, done));
    }

    fn is_full(&self) -> bool {
        self.done.len() >= GROUP || self.wrote.is_some_and(|at| at.elapsed() >= GATHERS)
    }

    /// Answers all, after what they have written is on the disk.
    fn answer(&mut self) {
        if self.wrote.take().is_some()
            && let Err(error) = self.log.sync_data()
        {
            self.failed = Some(format!("the log of the table could not be written to the disk: {error}"));
        }
        for (answer, done) in self.done.drain(..) {
            drop(answer.send(self.failed.clone().map_or(done, damaged)));
        }
    }
}

fn damaged(cause: String) -> Done {
    Done::Failed { failure: Some(StorageFailure::Damaged), cause }
}

/// SQLite's write-ahead log of the table's file. It exists as long as the file is open.
fn log_of(table: &Path) -> std::io::Result<File> {
    let mut log = table.as_os_str().to_owned();
    log.push("-wal");
    OpenOptions::new().read(true).write(true).open(log)
}

/// The result of a request.
enum Done {
    Answered(TableResponse),
    /// The engine itself failed.
    Failed {
        failure: Option<StorageFailure>,
        cause: String,
    },
}

impl Done {
    fn into_answer(self) -> TableResponse {
        match self {
            Self::Answered(answer) => answer,
            Self::Failed { failure: Some(failure), .. } => refused(failure),
            // The SDK tries again.
            Self::Failed { failure: None, .. } => {
                let body = json!({ "__type": "InternalServerError", "message": "The table is busy." });
                (StatusCode::INTERNAL_SERVER_ERROR, body.to_string())
            }
        }
    }
}

/// The status is one after which the SDK does not retry.
fn refused(failure: StorageFailure) -> TableResponse {
    let body = json!({ "__type": failure.aws_code(), "message": failure.to_string() });
    (StatusCode::BAD_REQUEST, body.to_string())
}

fn is_write(operation: &str) -> bool {
    !matches!(operation, "BatchGetItem" | "GetItem" | "Query" | "Scan" | "TransactGetItems")
        && !operation.starts_with("Describe")
}

impl Dynamo {
    /// Opens the file (`None`: in memory) and creates the table if it does not exist.
    pub(super) fn start(file: Option<&Path>, table: &str) -> Result<Self, DynamoError> {
        let db = match file {
            Some(file) => Database::new(&file.to_string_lossy()),
            None => Database::memory(),
        }
        .map_err(Into::into);
        let unreadable = |source| DynamoError::Open {
            path: file.map_or_else(|| "in memory".to_owned(), |file| file.display().to_string()),
            source,
        };
        let db = db.map_err(unreadable)?;
        prepare(&db, table).map_err(unreadable)?;
        let (mut jobs, mut thread) = (None, None);
        if let Some(path) = file.map(Path::to_owned) {
            let (sender, mut receiver) = mpsc::unbounded_channel::<Job>();
            let db = db.clone();
            jobs = Some(sender);
            // dynoxide has no other call that lets SQLite commit without waiting for the disk. The group does that.
            db.disable_bulk_loading().map_err(|error| unreadable(error.into()))?;
            let log = log_of(&path).map_err(|error| unreadable(error.into()))?;
            thread = Some(thread::Builder::new().name("dynamo".into()).spawn(move || {
                let mut group = Group::new(log);
                while let Some(job) = receiver.blocking_recv() {
                    let mut next = Some(job);
                    while let Some(job) = next {
                        match job {
                            Job::Answer { operation, body, answer } => {
                                let run = || answered(&db, &operation, &body);
                                group.take(is_write(&operation), run, answer);
                            }
                            Job::Compact { answer } => {
                                group.answer();
                                // The caller may have left meanwhile.
                                drop(answer.send(compact::compact(&path)));
                            }
                        }
                        next = if group.is_full() { None } else { receiver.try_recv().ok() };
                    }
                    group.answer();
                }
            })?);
        }
        let open = Mutex::new(Some(Open { db, jobs }));
        let (thread, name, file) = (Mutex::new(thread), table.to_owned(), file.map(Path::to_owned));
        let (storage, is_damaged) = (OnceLock::new(), AtomicBool::new(false));
        Ok(Self(Arc::new(Table { open, thread, name, file, storage, is_damaged })))
    }

    /// From now on, writes are refused if the storage is gone, and failures are reported to it.
    pub(super) fn watch(&self, storage: Storage) {
        let _ = self.0.storage.set(storage);
    }

    /// Whether the table holds no item.
    pub(super) fn is_empty(&self) -> Result<bool, DynamoError> {
        let look = json!({ "TableName": self.0.name, "Limit": 1 }).to_string();
        let found = self.0.with_arn(|db, _| done(look.as_bytes(), |request| db.scan(request)))?;
        Ok(found.is_none_or(|(_, found)| found.contains("\"Count\":0")))
    }

    /// The identity of the platform that the table belongs to.
    pub(super) fn identity(&self) -> Result<Option<String>, DynamoError> {
        let tags = self.0.with_arn(|db, arn| {
            db.list_tags_of_resource(ListTagsOfResourceRequest { resource_arn: Some(arn) })
        })?;
        let tags = tags.map(|listed| listed.tags).unwrap_or_default();
        Ok(tags.into_iter().find(|tag| tag.key == IDENTITY).map(|tag| tag.value))
    }

    pub(super) fn set_identity(&self, value: &str) -> Result<(), DynamoError> {
        let tag = Tag { key: IDENTITY.to_owned(), value: value.to_owned() };
        self.0.with_arn(|db, arn| {
            db.tag_resource(TagResourceRequest { resource_arn: Some(arn), tags: vec![tag] })
        })?;
        // The bucket is marked after it.
        let synced = self.0.file.as_deref().map(|file| log_of(file).and_then(|log| log.sync_data()));
        synced.transpose().map_err(DynamoError::Sync)?;
        Ok(())
    }

    /// Answers requests in DynamoDB's JSON protocol.
    pub(super) fn handler(&self) -> Handler {
        let table = self.table();
        Handler::new(move |request| {
            let table = table.clone();
            async move {
                let (operation, body) = read(request).await?;
                let (status, body) = table.answer(operation, body).await.ok_or(Hangup)?;
                Ok(json_answer(status, JSON, body))
            }
        })
    }

    pub(super) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.0)
    }

    /// Closes the file after all earlier requests are answered, and waits for that.
    pub(super) async fn stop(self) {
        let _ = tokio::task::spawn_blocking(|| drop(self)).await;
    }
}

impl Drop for Dynamo {
    /// Blocks until the file is closed.
    fn drop(&mut self) {
        drop(self.0.open().take());
        let thread = self.0.thread.lock().expect("no code panics while it holds the thread").take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the table engine had panicked");
        }
    }
}

impl Table {
    /// `None` after the stop.
    async fn answer(&self, operation: String, body: Bytes) -> Option<TableResponse> {
        let in_memory = match &*self.open() {
            Some(Open { db, jobs: None }) => Some(db.clone()),
            Some(Open { jobs: Some(_), .. }) => None,
            None => return None,
        };
        if let Some(db) = in_memory {
            return Some(answered(&db, &operation, &body).into_answer());
        }
        let storage = self.storage.get();
        if is_write(&operation)
            && let Some(storage) = storage
        {
            if self.is_damaged.load(Ordering::Acquire) {
                return Some(refused(StorageFailure::Damaged));
            }
            let admitted = storage.check().and_then(|()| storage.admit(|| is_of_a_deletion(&body)));
            if let Err(failure) = admitted {
                return Some(refused(failure));
            }
        }
        let mut done = self.done(&operation, &body).await?;
        if let (Done::Failed { failure: Some(failure), cause }, Some(storage)) = (&done, storage) {
            storage.report(*failure, cause);
            self.note(*failure);
            if *failure == StorageFailure::Full && is_of_a_deletion(&body) && storage.lend() {
                done = self.done(&operation, &body).await?;
            }
        }
        Some(done.into_answer())
    }

    /// Removes everything from the file that is not an item any more. Requests wait meanwhile. In memory, there is no file.
    pub(super) async fn compact(&self) -> Result<(), CompactError> {
        let Some(file) = &self.file else { return Ok(()) };
        let storage = self.storage.get();
        let mut done = self.compacted().await;
        if matches!(done, Err(CompactError::NoRoom { .. })) && storage.is_some_and(Storage::lend) {
            done = self.compacted().await;
        }
        if let Err(CompactError::Sqlite(error)) = &done {
            let cause = format!("{} could not be compacted: {error}", file.display());
            if let (Some(failure), Some(storage)) = (storage::of_sqlite(&error.to_string()), storage) {
                storage.report(failure, &cause);
                self.note(failure);
            }
        }
        done
    }

    fn note(&self, failure: StorageFailure) {
        if failure == StorageFailure::Damaged {
            self.is_damaged.store(true, Ordering::Release);
        }
    }

    /// Lets the table's thread answer. `None` after the stop.
    async fn done(&self, operation: &str, body: &Bytes) -> Option<Done> {
        let (answer, done) = oneshot::channel();
        let job = Job::Answer { operation: operation.to_owned(), body: body.clone(), answer };
        // Nobody may hold a sender while waiting: the stop waits, perhaps on this thread, until there is none.
        self.open().as_ref()?.jobs.as_ref()?.send(job).ok()?;
        done.await.ok()
    }

    async fn compacted(&self) -> Result<(), CompactError> {
        let jobs = self.open().as_ref().and_then(|open| open.jobs.clone());
        let (answer, done) = oneshot::channel();
        jobs.and_then(|jobs| jobs.send(Job::Compact { answer }).ok()).ok_or(CompactError::Stopped)?;
        done.await.map_err(|_| CompactError::Stopped)?
    }

    /// Uses the table with its ARN. `None` after the stop.
    fn with_arn<T>(
        &self,
        work: impl FnOnce(&Database, String) -> Result<T, DynoxideError>,
    ) -> Result<Option<T>, DynamoError> {
        let arn = format!("arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{}", self.name);
        let open = self.open();
        open.as_ref().map(|open| work(&open.db, arn)).transpose().map_err(DynamoError::Identity)
    }

    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().expect("no code panics while it holds the table")
    }

    /// Deletes the items whose `ttl` has passed, and returns their number.
    pub(super) async fn sweep_expired(&self) -> Result<usize, DynamoError> {
        let Some(db) = self.open().as_ref().map(|open| open.db.clone()) else { return Ok(0) };
        if self.is_damaged.load(Ordering::Acquire) {
            return Ok(0);
        }
        // This does not run on the table's thread: between its pages, the sweep lets requests through.
        match tokio::task::spawn_blocking(move || db.sweep_ttl()).await {
            Ok(Ok(swept)) => Ok(swept),
            Ok(Err(error)) => {
                // It reads the whole table, so it is often the first that finds damage.
                if let Some(failure) = storage::of_sqlite(&error.to_string()) {
                    self.note(failure);
                    if let Some(storage) = self.storage.get() {
                        storage.report(failure, &error.to_string());
                    }
                }
                Err(DynamoError::Sweep(error.into()))
            }
            Err(panicked) => Err(DynamoError::Sweep(panicked.into())),
        }
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Dynamo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dynamo").finish_non_exhaustive()
    }
}

/// Whether a write belongs to the deletion of an account.
fn is_of_a_deletion(body: &[u8]) -> bool {
    let Ok(request) = serde_json::from_slice::<Value>(body) else { return false };
    let key = |item: &Value| item["pk"]["S"].as_str().is_some_and(keys::is_of_a_deletion);
    let write = |write: &Value| key(&write["Key"]) || key(&write["Item"]);
    let in_transaction = |step: &Value| step.as_object().is_some_and(|step| step.values().any(write));
    write(&request)
        || request["TransactItems"].as_array().is_some_and(|steps| steps.iter().any(in_transaction))
}

/// Reads the operation and the body of a request.
async fn read(request: Request<Body>) -> Result<(String, Bytes), Hangup> {
    let operation = operation(request.headers());
    let body = http_body_util::Limited::new(request.into_body(), MAX_BODY).collect().await;
    Ok((operation, body.map_err(|_| Hangup)?.to_bytes()))
}

/// The table's operation: `PutItem` of `DynamoDB_20120810.PutItem`.
pub(super) fn operation(headers: &HeaderMap) -> String {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default();
    target.strip_prefix("DynamoDB_20120810.").unwrap_or_default().to_owned()
}

fn answered(db: &Database, operation: &str, body: &[u8]) -> Done {
    let done = match operation {
        "BatchGetItem" => done(body, |request| db.batch_get_item(request)),
        "BatchWriteItem" => done(body, |request| db.batch_write_item(request)),
        "DeleteItem" => done(body, |request| db.delete_item(request)),
        "DescribeTable" => done(body, |request| db.describe_table(request)),
        "DescribeTimeToLive" => done(body, |request| db.describe_time_to_live(request)),
        "GetItem" => done(body, |request| db.get_item(request)),
        "PutItem" => done(body, |request| db.put_item(request)),
        "Query" => done(body, |request| db.query(request)),
        "Scan" => done(body, |request| db.scan(request)),
        "TransactGetItems" => done(body, |request| db.transact_get_items(request)),
        "TransactWriteItems" => done(body, |request| db.transact_write_items(request)),
        "UpdateItem" => done(body, |request| db.update_item(request)),
        _ => {
            let kind = "com.amazon.coral.service#UnknownOperationException";
            return Done::Answered((StatusCode::BAD_REQUEST, json!({ "__type": kind }).to_string()));
        }
    };
    match done {
        Ok(answer) => Done::Answered(answer),
        Err(error) => {
            let status =
                StatusCode::from_u16(error.status_code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            if status.is_server_error() {
                let cause = error.to_string();
                Done::Failed { failure: storage::of_sqlite(&cause), cause }
            } else {
                Done::Answered((status, error.to_json()))
            }
        }
    }
}

fn done<T: DeserializeOwned, R: Serialize>(
    body: &[u8],
    run: impl FnOnce(T) -> Result<R, DynoxideError>,
) -> Result<TableResponse, DynoxideError> {
    let request = serde_json::from_slice(body).map_err(|error| unreadable(&error.to_string()))?;
    let answer = serde_json::to_string(&run(request)?);
    answer
        .map(|answer| (StatusCode::OK, answer))
        .map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

/// The error for an unreadable request. dynoxide reports the kind at the beginning of its own message.
fn unreadable(message: &str) -> DynoxideError {
    let plain = message.rsplit_once(" at line ").map_or(message, |(message, _)| message);
    if let Some((_, message)) = plain.split_once("VALIDATION:").or(plain.split_once("VALIDATION_REQUEST:")) {
        return DynoxideError::ValidationException(message.to_owned());
    }
    match plain.split_once("SERIALIZATION:") {
        Some((_, message)) => DynoxideError::SerializationException(message.to_owned()),
        None => DynoxideError::SerializationException(plain.to_owned()),
    }
}

/// Creates the same table as the deployed template: `pk`, `sk`, the sparse index `due`, and `ttl`.
fn prepare(db: &Database, table: &str) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    if db.get_table_metadata(table)?.is_some() {
        return Ok(());
    }
    let string = |name| json!({"AttributeName": name, "AttributeType": "S"});
    let key = |hash, range| {
        json!([
            {"AttributeName": hash, "KeyType": "HASH"},
            {"AttributeName": range, "KeyType": "RANGE"},
        ])
    };
    db.create_table(serde_json::from_value(json!({
        "TableName": table,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [string("pk"), string("sk"), string("shard"), string("due_at")],
        "KeySchema": key("pk", "sk"),
        "GlobalSecondaryIndexes": [{
            "IndexName": "due",
            "KeySchema": key("shard", "due_at"),
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }],
    }))?)?;
    db.update_time_to_live(serde_json::from_value(json!({
        "TableName": table,
        "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": true},
    }))?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_of_a_deletion_are_recognised_by_their_keys() {
        let key = json!({"pk": {"S": "DELETION#me"}, "sk": {"S": "STATE"}});
        let other = json!({"pk": {"S": "U#DELETION#me"}, "name": {"S": "DELETION#me"}, "x": {"M": {"pk": {"S": "DELETION#me"}}}});
        let cases = [
            (json!({"TableName": "t", "Key": key}), true),
            (json!({"TableName": "t", "Item": key}), true),
            (json!({"TransactItems": [{"Delete": {"Key": other}}, {"Put": {"Item": key}}]}), true),
            (json!({"TransactItems": [{"Delete": {"Key": key}}]}), true),
            (json!({"TableName": "t", "Item": other}), false),
            (json!({"TransactItems": [{"Put": {"Item": other}}]}), false),
            (json!({"TransactItems": "DELETION#me"}), false),
        ];
        for (request, expected) in cases {
            assert_eq!(is_of_a_deletion(request.to_string().as_bytes()), expected, "{request}");
        }
        assert!(!is_of_a_deletion(b"DELETION#"));
    }

    /// The stop may run on the only thread of a runtime, so a request that waits there can't go on.
    #[test]
    fn a_request_that_waits_does_not_hold_up_the_stop() {
        let (ended, end) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let folder = tempfile::tempdir().unwrap();
            let dynamo = Dynamo::start(Some(&folder.path().join("table.db")), "things").unwrap();
            let table = dynamo.table();
            let body =
                json!({"TableName": "things", "Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}}).to_string();
            let mut waiting = Box::pin(table.answer("GetItem".to_owned(), body.into()));
            let mut nobody = std::task::Context::from_waker(std::task::Waker::noop());
            let _ = waiting.as_mut().poll(&mut nobody);
            drop(dynamo);
            ended.send(()).unwrap();
        });
        end.recv_timeout(std::time::Duration::from_secs(60)).expect("the stop ends");
    }

    fn answers(group: &mut Group, writes: &[bool]) -> Vec<Done> {
        let take = |is_write: &bool| {
            let (sender, receiver) = oneshot::channel();
            group.take(*is_write, || Done::Answered((StatusCode::OK, "{}".to_owned())), sender);
            receiver
        };
        let receivers: Vec<_> = writes.iter().map(take).collect();
        group.answer();
        receivers.into_iter().map(|mut receiver| receiver.try_recv().unwrap()).collect()
    }

    const fn is_ok(done: &Done) -> bool {
        matches!(done, Done::Answered((StatusCode::OK, _)))
    }

    #[test]
    fn a_read_before_the_first_write_of_a_group_does_not_wait_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut group = Group::new(File::create(folder.path().join("log")).unwrap());
        let mut take = |is_write: bool| {
            let (sender, receiver) = oneshot::channel();
            group.take(is_write, || Done::Answered((StatusCode::OK, "{}".to_owned())), sender);
            receiver
        };
        let (mut before, mut write, mut after) = (take(false), take(true), take(false));
        assert!(before.try_recv().is_ok() && write.try_recv().is_err() && after.try_recv().is_err());
        group.answer();
        assert!(is_ok(&write.try_recv().unwrap()) && is_ok(&after.try_recv().unwrap()));
    }

    /// After the disk has failed once, nobody is told that something is stored, also if the next attempt would work.
    #[test]
    fn what_is_not_on_the_disk_is_not_answered_with_success() {
        // A pipe can't be written to the disk.
        let (log, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut group = Group::new(std::os::fd::OwnedFd::from(log).into());
        assert!(answers(&mut group, &[false, false]).iter().all(is_ok));
        let failed = answers(&mut group, &[false, true, false]);
        assert!(is_ok(&failed[0]));
        for done in &failed[1..] {
            assert!(matches!(done, Done::Failed { failure: Some(StorageFailure::Damaged), .. }));
        }
        let folder = tempfile::tempdir().unwrap();
        group.log = File::create(folder.path().join("log")).unwrap();
        let later = answers(&mut group, &[true, false]);
        assert!(!is_ok(&later[0]) && is_ok(&later[1]));
    }
}
