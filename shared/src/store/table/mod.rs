//! The basic operations of the store.
//!
//! Each item has a version `_v`, which an edit must name, and `_w`, the id of the write that made it. If the answer to
//! a write is lost, the SDK sends the write again, and its condition fails because the first try succeeded. `_w`
//! distinguishes this case from a lost race. Transactions have a client token for the same reason.

//!
//! - [`item`]: records as items
//! - [`Write`]: a write of a transaction
//! - `write_all`, `batch`: many writes at once, either all or none, or each independently

mod batch;
mod item;
pub mod key;
mod memo;
mod transact;
mod write;

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;
use futures::FutureExt;
use rand::Rng;
use serde::de::DeserializeOwned;

use crate::aws;
use crate::aws::storage::StorageFailure;
use key::{Key, Range};
use memo::{Memo, Page, PageKey};

pub use item::{Extras, Versioned, item};
pub use write::{Condition, Write, Written};

pub use item::Attributes;
use item::{VERSION, WRITE, marked, read};
pub(super) use item::{key_of, number, text};

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
    /// This program made an invalid request, so a retry does not help.
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

/// The order of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Oldest,
    Newest,
}

/// The result of a query: pairs of sort key and record.
#[derive(Debug)]
pub struct QueryPage<T> {
    pub items: Vec<(String, Versioned<T>)>,
    /// Where to continue. `None` at the end.
    pub last: Option<String>,
}

/// The table of this installation.
#[derive(Clone, Debug)]
pub struct Store {
    pub(super) client: Client,
    pub(super) table: Arc<str>,
    /// Whether a read sees everything that was written before it.
    consistent: bool,
    memo: Option<Arc<Memo>>,
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
        Self { client, table: table.into(), consistent: true, memo: None }
    }

    /// The client and the table's name, for code that copies whole tables: tests of stored formats, an export. Code
    /// that serves requests always uses the store.
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

    /// The same table. Its reads cost half and may miss what was written in the last second.
    #[must_use]
    pub fn eventually_consistent(&self) -> Self {
        Self { consistent: false, memo: None, ..self.clone() }
    }

    /// The same table for one short piece of work, which reads each item and each part of a partition once, and the items that it wants
    /// at the same time with one request. What it has written itself, it
    /// reads again. What others write meanwhile, it does not see, so it must not wait for anybody. A part of such a piece of work remembers
    /// what the whole does.
    #[must_use]
    pub fn remembering(&self) -> Self {
        Self { memo: Some(self.memo.clone().unwrap_or_default()), ..self.clone() }
    }

    /// The same table, and each read reads it.
    #[must_use]
    pub fn direct(&self) -> Self {
        Self { memo: None, ..self.clone() }
    }

    /// Forgets what these writes may change, if anything was remembered.
    fn forget<'a>(&self, keys: impl Iterator<Item = &'a Key>) {
        if let Some(memo) = &self.memo {
            memo.forget(keys);
        }
    }

    /// Like [`Store::forget`], after the writes. If they were not done, somebody else has changed something, so all is read again.
    fn forget_written<'a>(&self, written: &Result<Written, StoreError>, keys: impl Iterator<Item = &'a Key>) {
        match (&self.memo, written) {
            (Some(memo), Ok(Written::Yes)) => memo.forget(keys),
            (Some(memo), _) => memo.forget_all(),
            (None, _) => {}
        }
    }

    /// Reads the current version of one record.
    ///
    /// # Errors
    /// If the table does not answer, or if the item is not such a record.
    pub async fn get<T: DeserializeOwned>(&self, key: &Key) -> Result<Option<Versioned<T>>, StoreError> {
        let item = match &self.memo {
            Some(memo) => memo.item(key, |keys| self.read_together(keys).boxed()).await?,
            None => self.get_item(key).boxed().await?,
        };
        item.map(|item| read(item).map(|(_, record)| record)).transpose()
    }

    /// Reads what a piece of work wants at the same time, with one request.
    async fn read_together(&self, keys: Vec<Key>) -> Result<Vec<Option<Attributes>>, StoreError> {
        if let [key] = keys.as_slice() {
            return Ok(vec![self.get_item(key).await?]);
        }
        let mut found = self.get_items(&keys).await?;
        Ok(keys.iter().map(|key| found.remove(key)).collect())
    }

    async fn get_item(&self, key: &Key) -> Result<Option<Attributes>, StoreError> {
        let output = self
            .client
            .get_item()
            .table_name(&*self.table)
            .set_key(Some(key_of(key)))
            .consistent_read(self.consistent)
            .send()
            .await
            .map_err(|error| unavailable(&error))?;
        Ok(output.item)
    }

    /// Creates an item that must not exist yet.
    ///
    /// # Errors
    /// If the table does not answer.
    pub async fn create(&self, key: &Key, item: Attributes) -> Result<Written, StoreError> {
        self.create_at(key, 1, item).await
    }

    /// Creates an item that must not exist yet, at a version.
    ///
    /// # Errors
    /// If the table does not answer.
    pub async fn create_at(&self, key: &Key, version: u64, item: Attributes) -> Result<Written, StoreError> {
        self.put_if(key, item, version, "attribute_not_exists(pk)", None).await
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
        self.forget(std::iter::once(key));
        let written = self.put_item_if(key, item, new_version, condition, expected).boxed().await;
        self.forget_written(&written, std::iter::once(key));
        written
    }

    async fn put_item_if(
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
        self.write_all(vec![Write::Put { key: key.clone(), item }]).await.map(|_| ())
    }

    /// Deletes an item. It is not an error if the item does not exist.
    ///
    /// # Errors
    /// If the table does not answer.
    pub async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        self.write_all(vec![Write::Delete { key: key.clone(), must_exist: false }]).await.map(|_| ())
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
    ) -> Result<QueryPage<T>, StoreError> {
        let (items, last) = self.query_items(range, after, limit, order).await?;
        let items = items.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(QueryPage { items, last })
    }

    /// Reads a part of a partition as items, after the sort key `after`. Also returns where to continue.
    pub(super) async fn query_items(
        &self,
        range: &Range,
        after: Option<&str>,
        limit: usize,
        order: Order,
    ) -> Result<Page, StoreError> {
        let read_it = self.query_page(range, after, limit, order).boxed();
        match &self.memo {
            Some(memo) => memo.page(PageKey::new(range, after, limit, order), read_it).await,
            None => read_it.await,
        }
    }

    async fn query_page(
        &self,
        range: &Range,
        after: Option<&str>,
        limit: usize,
        order: Order,
    ) -> Result<Page, StoreError> {
        let mut request = self
            .client
            .query()
            .table_name(&*self.table)
            .consistent_read(self.consistent)
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
        Ok((output.items.unwrap_or_default(), last))
    }
}
