//! The basic operations of the store.
//!
//! Each item has a version `_v`, which an edit must name, and `_w`, the id of the write that made it. If the answer to
//! a write is lost, the SDK sends the write again, and its condition fails because the first try succeeded. `_w`
//! distinguishes this case from a lost race. Transactions have a client token for the same reason.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, Delete, DeleteRequest, KeysAndAttributes, Put, PutRequest,
    ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update, WriteRequest,
};
use domain::ids::RunId;
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::Timestamp;
use rand::Rng;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::idempotency::Claimed;
use super::keys::{self, Guard, Key, Range};
use crate::aws;
use crate::problem::StorageFailure;

type Attributes = HashMap<String, AttributeValue>;

const VERSION: &str = "_v";
const WRITE: &str = "_w";

/// The AWS limit of writes in one batch.
const BATCH: usize = 25;

/// How many batches are sent concurrently.
const BATCHES_AT_ONCE: usize = 4;

/// How often a transaction is retried after a conflict with another transaction.
const CONFLICT_TRIES: u32 = 12;

/// Why the table could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("too many concurrent writes to one item")]
    Contended,
    #[error("DynamoDB did not answer: {cause}")]
    Unavailable { cause: String },
    #[error(
        "the table cannot be used with this deployment (see LAMPLIGHTER_TABLE and the function's role): {cause}"
    )]
    Misconfigured { cause: String },
    /// This program made the request wrongly, so that trying again does not help.
    #[error("DynamoDB refused the request as invalid: {cause}")]
    Invalid { cause: String },
    #[error("the storage fails: {0}")]
    Storage(StorageFailure),
    #[error("the item {key} cannot be read: {cause}")]
    Corrupt { key: String, cause: String },
    #[error("the record is larger than the maximum item size")]
    TooLarge,
    #[error("another request has claimed the Idempotency-Key")]
    TakenOver,
}

/// A record with the version at which it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned<T> {
    pub value: T,
    pub version: u64,
}

impl<T> Versioned<T> {
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Versioned<U> {
        Versioned { value: f(self.value), version: self.version }
    }
}

/// The attributes of an item besides its record.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// DynamoDB deletes the item some time after this.
    pub expires: Option<Timestamp>,
    /// Its entry in the `due` index.
    pub due: Option<(String, Timestamp)>,
}

impl Extras {
    #[must_use]
    pub fn expiring(at: Timestamp) -> Self {
        Self { expires: Some(at), due: None }
    }
}

/// Whether a conditional write succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Written {
    Yes,
    /// A condition failed: the first of the transaction, by the item that it is about.
    Refused(Guard),
}

impl Written {
    #[must_use]
    pub fn done(self) -> bool {
        self == Self::Yes
    }
}

/// One write of a transaction.
pub enum Write {
    /// The item must not exist.
    Create {
        key: Key,
        item: Attributes,
    },
    /// The item must exist at this version.
    Replace {
        key: Key,
        version: u64,
        item: Attributes,
    },
    /// Replaces whatever exists.
    Put {
        key: Key,
        item: Attributes,
    },
    /// The item must exist.
    Exists {
        key: Key,
    },
    /// The item must not exist.
    Absent {
        key: Key,
    },
    Delete {
        key: Key,
        must_exist: bool,
    },
    /// Adds to numbers of an item that must exist (with `upsert` it is created if it does not).
    Add {
        key: Key,
        numbers: Vec<(&'static str, i64)>,
        upsert: bool,
        expires: Option<Timestamp>,
    },
    /// The item must exist at this version. It is deleted.
    Remove {
        key: Key,
        version: u64,
    },
    /// Adds to numbers of an item whose text `attribute` is `value`. With `or_missing` the attribute, or the whole
    /// item, may also be missing.
    AddWhile {
        key: Key,
        numbers: Vec<(&'static str, i64)>,
        attribute: &'static str,
        value: String,
        or_missing: bool,
    },
    /// Says in the record of an `Idempotency-Key`, which must be at this version, that it is done; with `run`, that it
    /// began this run, whose result can be replayed until then.
    Done {
        key: Key,
        version: u64,
        run: Option<(String, Timestamp)>,
    },
    /// Adds `amount` to `number` if the sum stays within `ceiling`.
    Reserve {
        key: Key,
        number: &'static str,
        amount: i64,
        ceiling: i64,
        expires: Option<Timestamp>,
    },
}

impl Write {
    fn guard(&self) -> Guard {
        match self {
            Self::Create { key, .. }
            | Self::Replace { key, .. }
            | Self::Put { key, .. }
            | Self::Exists { key }
            | Self::Absent { key }
            | Self::Delete { key, .. }
            | Self::Add { key, .. }
            | Self::Remove { key, .. }
            | Self::AddWhile { key, .. }
            | Self::Done { key, .. }
            | Self::Reserve { key, .. } => key.guard(),
        }
    }

    /// Writes an item over the one that was read at `version`. 0 means that the item did not exist.
    #[must_use]
    pub fn over(key: Key, version: u64, item: Attributes) -> Self {
        match version {
            0 => Self::Create { key, item },
            version => Self::Replace { key, version, item },
        }
    }
}

/// The order of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Oldest,
    Newest,
}

/// The result of a query: pairs of sort key and record.
#[derive(Debug)]
pub struct Found<T> {
    pub items: Vec<(String, Versioned<T>)>,
    /// Where to continue. `None` at the end.
    pub last: Option<String>,
}

/// The table of this installation.
#[derive(Clone, Debug)]
pub struct Store {
    pub(super) client: Client,
    pub(super) table: Arc<str>,
}

/// The record and its extras as an item, without its key, version and write id.
///
/// # Errors
/// If the record cannot be represented as an item. This is a bug.
pub fn item<T: Serialize>(record: &T, extras: &Extras) -> Result<Attributes, StoreError> {
    let mut item: Attributes = serde_dynamo::to_item(record)
        .map_err(|error| StoreError::Corrupt { key: "(new)".to_owned(), cause: error.to_string() })?;
    if let Some(expires) = extras.expires {
        item.insert("ttl".to_owned(), number(expires.as_second()));
    }
    if let Some((shard, at)) = &extras.due {
        item.insert("shard".to_owned(), AttributeValue::S(shard.clone()));
        item.insert("due_at".to_owned(), AttributeValue::S(keys::sortable(*at)));
    }
    Ok(item)
}

pub(super) fn number(n: impl ToString) -> AttributeValue {
    AttributeValue::N(n.to_string())
}

pub(super) fn text(s: &str) -> AttributeValue {
    AttributeValue::S(s.to_owned())
}

fn key_of(key: &Key) -> Attributes {
    HashMap::from([("pk".to_owned(), text(&key.pk)), ("sk".to_owned(), text(&key.sk))])
}

fn marked(key: &Key, version: u64, write: &str, mut item: Attributes) -> Attributes {
    item.extend(key_of(key));
    item.insert(VERSION.to_owned(), number(version));
    item.insert(WRITE.to_owned(), text(write));
    item
}

fn version_of(item: &Attributes) -> u64 {
    item.get(VERSION).and_then(|value| value.as_n().ok()).and_then(|n| n.parse().ok()).unwrap_or(0)
}

fn read<T: DeserializeOwned>(item: Attributes) -> Result<(String, Versioned<T>), StoreError> {
    let part = |name: &str| item.get(name).and_then(|v| v.as_s().ok()).cloned().unwrap_or_default();
    let (pk, sk, version) = (part("pk"), part("sk"), version_of(&item));
    let value = serde_dynamo::from_item(item)
        .map_err(|error| StoreError::Corrupt { key: format!("{pk} {sk}"), cause: error.to_string() })?;
    Ok((sk, Versioned { value, version }))
}

fn new_write_id() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}

pub(super) fn unavailable<E>(error: &SdkError<E>) -> StoreError
where
    E: std::error::Error + ProvideErrorMetadata + 'static,
{
    if let Some(failure) = StorageFailure::of(error) {
        return StoreError::Storage(failure);
    }
    let metadata = error.as_service_error().map(ProvideErrorMetadata::meta);
    if metadata.and_then(|meta| meta.message()).is_some_and(|message| message.contains("size")) {
        return StoreError::TooLarge;
    }
    if metadata.and_then(|meta| meta.code()) == Some("TransactionConflictException") {
        return StoreError::Contended;
    }
    if aws::is_misconfigured(error) {
        return StoreError::Misconfigured { cause: aws::cause(error) };
    }
    if metadata.and_then(|meta| meta.code()) == Some("ValidationException") {
        return StoreError::Invalid { cause: aws::cause(error) };
    }
    StoreError::Unavailable { cause: aws::cause(error) }
}

/// Sleeps before a retry. The time grows with each attempt and is random, so that rivals do not wait equally long.
pub(crate) async fn back_off(attempt: u32) {
    let ceiling = 10u64 << attempt.min(6);
    let millis = rand::rng().random_range(1..=ceiling);
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

impl Store {
    #[must_use]
    pub fn new(client: Client, table: impl Into<Arc<str>>) -> Self {
        Self { client, table: table.into() }
    }

    /// The client and the table's name, for what moves whole tables: tests of stored formats, an export. Nothing that serves a
    /// request reads or writes past the store.
    #[must_use]
    pub fn raw(&self) -> (&Client, &str) {
        (&self.client, &self.table)
    }

    /// Reads an item that never exists, once. This opens a connection and completes its TLS handshake.
    pub async fn warm(&self) {
        let nothing = Key::new("U##KEY".to_owned(), "-");
        let once = aws_sdk_dynamodb::Config::builder()
            .retry_config(aws_sdk_dynamodb::config::retry::RetryConfig::disabled());
        let request = self.client.get_item().table_name(&*self.table).set_key(Some(key_of(&nothing)));
        if let Err(error) = request.customize().config_override(once).send().await {
            tracing::debug!(cause = %aws::cause(&error), "the table is not warm");
        }
    }

    /// Reads the current version of one record (a consistent read).
    ///
    /// # Errors
    /// If the table does not answer, or if the item is not such a record.
    pub async fn get<T: DeserializeOwned>(&self, key: &Key) -> Result<Option<Versioned<T>>, StoreError> {
        let output = self
            .client
            .get_item()
            .table_name(&*self.table)
            .set_key(Some(key_of(key)))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| unavailable(&error))?;
        output.item.map(|item| read(item).map(|(_, record)| record)).transpose()
    }

    /// Reads many records, in the order of `keys`. Missing records are left out.
    ///
    /// # Errors
    /// As [`Store::get`].
    async fn get_many_keyed<T: DeserializeOwned>(
        &self,
        keys: &[Key],
    ) -> Result<Vec<(Key, Versioned<T>)>, StoreError> {
        let mut found: HashMap<Key, Versioned<T>> = HashMap::with_capacity(keys.len());
        for chunk in keys.chunks(100) {
            let mut wanted: Vec<Attributes> = chunk.iter().map(key_of).collect();
            for attempt in 0.. {
                let request = KeysAndAttributes::builder()
                    .set_keys(Some(wanted))
                    .consistent_read(true)
                    .build()
                    .map_err(|error| StoreError::Unavailable { cause: error.to_string() })?;
                let output = self
                    .client
                    .batch_get_item()
                    .request_items(&*self.table, request)
                    .send()
                    .await
                    .map_err(|error| unavailable(&error))?;
                for item in output.responses.unwrap_or_default().remove(&*self.table).unwrap_or_default() {
                    let pk = item.get("pk").and_then(|v| v.as_s().ok()).cloned().unwrap_or_default();
                    let (sk, record) = read(item)?;
                    found.insert(Key::new(pk, sk), record);
                }
                let rest = output.unprocessed_keys.unwrap_or_default().remove(&*self.table);
                match rest.map(|rest| rest.keys).filter(|keys| !keys.is_empty()) {
                    None => break,
                    Some(_) if attempt >= CONFLICT_TRIES => return Err(StoreError::Contended),
                    Some(rest) => wanted = rest,
                }
                back_off(attempt).await;
            }
        }
        Ok(keys.iter().filter_map(|key| found.remove_entry(key)).collect())
    }

    /// Creates an item that must not exist yet.
    ///
    /// # Errors
    /// If the table does not answer.
    pub async fn create(&self, key: &Key, item: Attributes) -> Result<Written, StoreError> {
        self.put_if(key, item, 1, "attribute_not_exists(pk)", None).await
    }

    /// Writes an item over the one that was read at `version`.
    ///
    /// # Errors
    /// If the table does not answer.
    pub async fn replace(&self, key: &Key, version: u64, item: Attributes) -> Result<Written, StoreError> {
        self.put_if(key, item, version + 1, "#v = :v", Some(version)).await
    }

    async fn put_if(
        &self,
        key: &Key,
        item: Attributes,
        new_version: u64,
        condition: &str,
        expected: Option<u64>,
    ) -> Result<Written, StoreError> {
        let write = new_write_id();
        let mut request = self
            .client
            .put_item()
            .table_name(&*self.table)
            .set_item(Some(marked(key, new_version, &write, item)))
            .condition_expression(condition)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        if let Some(version) = expected {
            request = request
                .expression_attribute_names("#v", VERSION)
                .expression_attribute_values(":v", number(version));
        }
        for attempt in 0..CONFLICT_TRIES {
            let error = match request.clone().send().await {
                Ok(_) => return Ok(Written::Yes),
                Err(error) => error,
            };
            match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(failed)) => {
                    let stored = failed.item().and_then(|item| item.get(WRITE)).and_then(|w| w.as_s().ok());
                    let ours = stored == Some(&write);
                    return Ok(if ours { Written::Yes } else { Written::Refused(key.guard()) });
                }
                Some(PutItemError::TransactionConflictException(_)) => back_off(attempt).await,
                _ => return Err(unavailable(&error)),
            }
        }
        Err(StoreError::Contended)
    }

    /// Writes an item and replaces whatever exists.
    ///
    /// # Errors
    /// If the table does not answer.
    pub async fn put(&self, key: &Key, item: Attributes) -> Result<(), StoreError> {
        self.transact(vec![Write::Put { key: key.clone(), item }]).await.map(|_| ())
    }

    /// Deletes an item. It is not an error if the item does not exist.
    ///
    /// # Errors
    /// If the table does not answer.
    pub async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        self.transact(vec![Write::Delete { key: key.clone(), must_exist: false }]).await.map(|_| ())
    }

    /// Commits the work of a request: all of the writes or none. If the request has an `Idempotency-Key`, the same
    /// transaction marks the key as done, so the work is never done again under that key. Writes before this call must
    /// be safe to repeat.
    ///
    /// # Errors
    /// As [`Store::transact`]; and where another request has taken the key over.
    pub async fn commit(&self, writes: Vec<Write>) -> Result<Written, StoreError> {
        self.commit_marked(writes, None).await
    }

    /// Like [`Store::commit`], for a request that begins a run: from then on the key answers with the run.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub async fn commit_run(
        &self,
        writes: Vec<Write>,
        run: RunId,
        now: Timestamp,
    ) -> Result<Written, StoreError> {
        self.commit_marked(writes, Some((run, now))).await
    }

    async fn commit_marked(
        &self,
        mut writes: Vec<Write>,
        run: Option<(RunId, Timestamp)>,
    ) -> Result<Written, StoreError> {
        let Some(claimed) = Claimed::current() else { return self.transact(writes).await };
        writes.push(claimed.mark(run));
        match self.transact(writes).await? {
            Written::Yes => {
                claimed.marked();
                Ok(Written::Yes)
            }
            Written::Refused(Guard::Idempotency) => Err(StoreError::TakenOver),
            refused => Ok(refused),
        }
    }

    /// Executes all of the writes or none.
    ///
    /// # Errors
    /// If the table does not answer, or if the transaction had too many conflicts.
    pub async fn transact(&self, writes: Vec<Write>) -> Result<Written, StoreError> {
        let writes = match <[Write; 1]>::try_from(writes) {
            // A single item needs no transaction, which costs twice as much.
            Ok([Write::Create { key, item }]) => return self.create(&key, item).await,
            Ok([Write::Replace { key, version, item }]) => return self.replace(&key, version, item).await,
            Ok([other]) => vec![other],
            Err(writes) => writes,
        };
        let write = new_write_id();
        let guards: Vec<Guard> = writes.iter().map(Write::guard).collect();
        let items: Vec<TransactWriteItem> =
            writes.into_iter().map(|w| self.transact_item(w, &write)).collect::<Result<_, _>>()?;
        for attempt in 0..CONFLICT_TRIES {
            let sent = self
                .client
                .transact_write_items()
                .set_transact_items(Some(items.clone()))
                .client_request_token(&write)
                .send()
                .await;
            let error = match sent {
                Ok(_) => return Ok(Written::Yes),
                Err(error) => error,
            };
            match error.as_service_error() {
                Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
                    let codes =
                        || cancelled.cancellation_reasons().iter().map(|r| r.code().unwrap_or("None"));
                    if let Some(first) = codes().position(|code| code == "ConditionalCheckFailed") {
                        return Ok(Written::Refused(guards[first]));
                    }
                    if codes().any(|code| code == "ValidationError") {
                        return Err(StoreError::TooLarge);
                    }
                    back_off(attempt).await;
                }
                Some(TransactWriteItemsError::TransactionInProgressException(_)) => back_off(attempt).await,
                _ => return Err(unavailable(&error)),
            }
        }
        Err(StoreError::Contended)
    }

    fn transact_item(&self, write: Write, id: &str) -> Result<TransactWriteItem, StoreError> {
        let table = &*self.table;
        let incomplete =
            |error: aws_sdk_dynamodb::error::BuildError| StoreError::Unavailable { cause: error.to_string() };
        let put = |key: &Key, version, item| {
            Put::builder().table_name(table).set_item(Some(marked(key, version, id, item)))
        };
        let check = |key: &Key, condition: &str| {
            ConditionCheck::builder()
                .table_name(table)
                .set_key(Some(key_of(key)))
                .condition_expression(condition)
                .build()
        };
        let builder = TransactWriteItem::builder();
        let builder = match write {
            Write::Create { key, item } => {
                let put = put(&key, 1, item).condition_expression("attribute_not_exists(pk)");
                builder.put(put.build().map_err(incomplete)?)
            }
            Write::Replace { key, version, item } => {
                let put = put(&key, version + 1, item)
                    .condition_expression("#v = :v")
                    .expression_attribute_names("#v", VERSION)
                    .expression_attribute_values(":v", number(version));
                builder.put(put.build().map_err(incomplete)?)
            }
            Write::Put { key, item } => builder.put(put(&key, 1, item).build().map_err(incomplete)?),
            Write::Exists { key } => {
                builder.condition_check(check(&key, "attribute_exists(pk)").map_err(incomplete)?)
            }
            Write::Absent { key } => {
                builder.condition_check(check(&key, "attribute_not_exists(pk)").map_err(incomplete)?)
            }
            Write::Delete { key, must_exist } => {
                let condition = must_exist.then(|| "attribute_exists(pk)".to_owned());
                let delete = Delete::builder()
                    .table_name(table)
                    .set_key(Some(key_of(&key)))
                    .set_condition_expression(condition);
                builder.delete(delete.build().map_err(incomplete)?)
            }
            Write::Remove { key, version } => {
                let delete = Delete::builder()
                    .table_name(table)
                    .set_key(Some(key_of(&key)))
                    .condition_expression("#v = :v")
                    .expression_attribute_names("#v", VERSION)
                    .expression_attribute_values(":v", number(version));
                builder.delete(delete.build().map_err(incomplete)?)
            }
            Write::AddWhile { key, numbers, attribute, value, or_missing } => {
                let mut update = self.add(&key, &numbers, true, None).map_err(incomplete)?;
                let condition = if or_missing { "attribute_not_exists(#a) OR #a = :a" } else { "#a = :a" };
                update.condition_expression = Some(condition.to_owned());
                update
                    .expression_attribute_names
                    .get_or_insert_default()
                    .insert("#a".to_owned(), attribute.to_owned());
                update
                    .expression_attribute_values
                    .get_or_insert_default()
                    .insert(":a".to_owned(), text(&value));
                builder.update(update)
            }
            Write::Add { key, numbers, upsert, expires } => {
                builder.update(self.add(&key, &numbers, upsert, expires).map_err(incomplete)?)
            }
            Write::Done { key, version, run } => {
                let update = Update::builder()
                    .table_name(table)
                    .set_key(Some(key_of(&key)))
                    .condition_expression("#v = :v")
                    .expression_attribute_names("#state", "state")
                    .expression_attribute_names("#v", VERSION)
                    .expression_attribute_values(":one", number(1))
                    .expression_attribute_values(":v", number(version));
                let update = match run {
                    None => update
                        .update_expression("SET outcome.#state = :done ADD #v :one")
                        .expression_attribute_values(":done", text("done")),
                    Some((run, until)) => update
                        .update_expression(
                            "SET outcome.#state = :run, outcome.run_id = :id, expires_at = :until ADD #v :one",
                        )
                        .expression_attribute_values(":run", text("run"))
                        .expression_attribute_values(":id", text(&run))
                        .expression_attribute_values(":until", text(&until.to_string())),
                };
                builder.update(update.build().map_err(incomplete)?)
            }
            Write::Reserve { key, number: name, amount, ceiling, expires } => {
                let room = ceiling.saturating_sub(amount);
                let update = self.add(&key, &[(name, amount)], true, expires).map_err(incomplete)?;
                // A new item has spent nothing, so only the ceiling decides.
                let condition =
                    if room >= 0 { "attribute_not_exists(#n0) OR #n0 <= :room" } else { "#n0 <= :room" };
                let mut update = update;
                update.condition_expression = Some(condition.to_owned());
                update
                    .expression_attribute_values
                    .get_or_insert_default()
                    .insert(":room".to_owned(), number(room));
                builder.update(update)
            }
        };
        Ok(builder.build())
    }

    fn add(
        &self,
        key: &Key,
        numbers: &[(&'static str, i64)],
        upsert: bool,
        expires: Option<Timestamp>,
    ) -> Result<Update, aws_sdk_dynamodb::error::BuildError> {
        let mut update = Update::builder().table_name(&*self.table).set_key(Some(key_of(key)));
        // The version changes too, so an edit of the whole item that has not seen the new number is refused.
        let mut adds = vec!["#v :one".to_owned()];
        update =
            update.expression_attribute_names("#v", VERSION).expression_attribute_values(":one", number(1));
        for (i, (name, amount)) in numbers.iter().enumerate() {
            adds.push(format!("#n{i} :n{i}"));
            update = update
                .expression_attribute_names(format!("#n{i}"), *name)
                .expression_attribute_values(format!(":n{i}"), number(amount));
        }
        let mut expression = format!("ADD {}", adds.join(", "));
        if let Some(expires) = expires {
            expression.push_str(" SET #ttl = :ttl");
            update = update
                .expression_attribute_names("#ttl", "ttl")
                .expression_attribute_values(":ttl", number(expires.as_second()));
        }
        if !upsert {
            update = update.condition_expression("attribute_exists(pk)");
        }
        update.update_expression(expression).build()
    }

    /// Reads a part of a partition, after the sort key `after`.
    ///
    /// # Errors
    /// If the table does not answer, or if an item is not such a record.
    pub async fn query<T: DeserializeOwned>(
        &self,
        range: &Range,
        after: Option<&str>,
        limit: usize,
        order: Order,
    ) -> Result<Found<T>, StoreError> {
        let mut request = self
            .client
            .query()
            .table_name(&*self.table)
            .consistent_read(true)
            .scan_index_forward(order == Order::Oldest)
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .expression_attribute_values(":pk", text(&range.pk));
        request = if range.prefix.is_empty() {
            request.key_condition_expression("pk = :pk")
        } else {
            request
                .key_condition_expression("pk = :pk AND begins_with(sk, :prefix)")
                .expression_attribute_values(":prefix", text(range.prefix))
        };
        if let Some(after) = after {
            let start = Key::new(range.pk.clone(), after);
            request = request.set_exclusive_start_key(Some(key_of(&start)));
        }
        let output = request.send().await.map_err(|error| unavailable(&error))?;
        let last = output.last_evaluated_key.as_ref().and_then(|key| key.get("sk")?.as_s().ok().cloned());
        let items = output.items.unwrap_or_default().into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(Found { items, last })
    }

    /// The records that the marks refer to. [`Store::agent_children`] finds the marks.
    pub(super) async fn resolve<T: DeserializeOwned, I: std::str::FromStr + Copy>(
        &self,
        marks: Found<serde::de::IgnoredAny>,
        key: impl Fn(I) -> Key,
    ) -> Result<Found<T>, StoreError> {
        let ids: Vec<(String, I)> =
            marks.items.into_iter().filter_map(|(sk, _)| sk.parse().ok().map(|id| (sk, id))).collect();
        let wanted: Vec<Key> = ids.iter().map(|(_, id)| key(*id)).collect();
        let items = self.get_many_keyed(&wanted).await?;
        let items = items.into_iter().map(|(key, record)| (key.sk, record)).collect();
        Ok(Found { items, last: marks.last })
    }

    /// Writes many items and replaces whatever exists. Each item is written independently.
    ///
    /// # Errors
    /// If the table does not answer. Some items may already be written; the call can be repeated.
    pub async fn put_many(&self, items: Vec<(Key, Attributes)>) -> Result<(), StoreError> {
        let write = new_write_id();
        let mut requests = Vec::with_capacity(items.len());
        for (key, item) in items {
            let put = PutRequest::builder().set_item(Some(marked(&key, 1, &write, item))).build();
            let put = put.map_err(|e| StoreError::Unavailable { cause: e.to_string() })?;
            requests.push(WriteRequest::builder().put_request(put).build());
        }
        stream::iter(requests.chunks(BATCH).map(<[WriteRequest]>::to_vec))
            .map(Ok)
            .try_for_each_concurrent(BATCHES_AT_ONCE, |batch| self.write_batch(batch))
            .await
    }

    /// Deletes all items of a range.
    ///
    /// # Errors
    /// If the table does not answer. Some items may already be deleted; the call can be repeated.
    pub async fn delete_range(&self, range: &Range) -> Result<(), StoreError> {
        loop {
            let found: Found<serde::de::IgnoredAny> = self.query(range, None, BATCH, Order::Oldest).await?;
            if found.items.is_empty() {
                return Ok(());
            }
            let mut requests = Vec::with_capacity(found.items.len());
            for (sk, _) in found.items {
                let delete = DeleteRequest::builder().set_key(Some(key_of(&Key::new(range.pk.clone(), sk))));
                let delete = delete.build().map_err(|e| StoreError::Unavailable { cause: e.to_string() })?;
                requests.push(WriteRequest::builder().delete_request(delete).build());
            }
            self.write_batch(requests).await?;
        }
    }

    async fn write_batch(&self, mut requests: Vec<WriteRequest>) -> Result<(), StoreError> {
        for attempt in 0..=CONFLICT_TRIES {
            let output = self
                .client
                .batch_write_item()
                .request_items(&*self.table, requests)
                .send()
                .await
                .map_err(|error| unavailable(&error))?;
            let rest = output.unprocessed_items.unwrap_or_default().remove(&*self.table);
            match rest.filter(|rest| !rest.is_empty()) {
                None => return Ok(()),
                Some(rest) => requests = rest,
            }
            back_off(attempt).await;
        }
        Err(StoreError::Contended)
    }
}
