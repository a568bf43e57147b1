//! Many items at once: read by their keys, written, deleted. Each item is written independently.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{DeleteRequest, KeysAndAttributes, PutRequest, WriteRequest};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::de::DeserializeOwned;

use super::item::{Attributes, key_of, marked, read};
use super::key::{Key, Range};
use super::{
    CONFLICT_TRIES, Order, QueryPage, Store, StoreError, Versioned, back_off, new_write_id, unavailable,
};

/// The AWS limit of reads in one batch.
const READS: usize = 100;

/// The AWS limit of writes in one batch.
const WRITES: usize = 25;

/// How many batches are sent concurrently.
const BATCHES_AT_ONCE: usize = 4;

impl Store {
    /// Reads many records, in the order of `keys`. Missing records are left out.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub(in crate::store) async fn get_many_keyed<T: DeserializeOwned>(
        &self,
        keys: &[Key],
    ) -> Result<Vec<(Key, Versioned<T>)>, StoreError> {
        let mut found = self.get_items(keys).await?;
        let found = keys.iter().filter_map(|key| found.remove_entry(key));
        found.map(|(key, item)| Ok((key, read(item)?.1))).collect()
    }

    /// Reads many items. Missing items are left out.
    pub(super) async fn get_items(&self, keys: &[Key]) -> Result<HashMap<Key, Attributes>, StoreError> {
        let mut found: HashMap<Key, Attributes> = HashMap::with_capacity(keys.len());
        for chunk in keys.chunks(READS) {
            let mut wanted: Vec<Attributes> = chunk.iter().map(key_of).collect();
            for attempt in 0.. {
                let request = KeysAndAttributes::builder()
                    .set_keys(Some(wanted))
                    .consistent_read(self.consistent)
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
                    let part = |name| item.get(name).and_then(|v| v.as_s().ok()).cloned().unwrap_or_default();
                    found.insert(Key::new(part("pk"), part("sk")), item);
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
        Ok(found)
    }

    /// Reads many records, in the order of `keys`. Missing records are left out.
    pub(in crate::store) async fn get_many<T: DeserializeOwned>(
        &self,
        keys: &[Key],
    ) -> Result<Vec<T>, StoreError> {
        let found = self.get_many_keyed(keys).await?;
        Ok(found.into_iter().map(|(_, record)| record.value).collect())
    }

    /// The records that the marks refer to. [`Store::agent_children`] finds the marks.
    pub(in crate::store) async fn resolve<T: DeserializeOwned, I: std::str::FromStr + Copy>(
        &self,
        marks: QueryPage<serde::de::IgnoredAny>,
        key: impl Fn(I) -> Key,
    ) -> Result<QueryPage<T>, StoreError> {
        let ids: Vec<(String, I)> =
            marks.items.into_iter().filter_map(|(sk, _)| sk.parse().ok().map(|id| (sk, id))).collect();
        let wanted: Vec<Key> = ids.iter().map(|(_, id)| key(*id)).collect();
        let items = self.get_many_keyed(&wanted).await?;
        let items = items.into_iter().map(|(key, record)| (key.sk, record)).collect();
        Ok(QueryPage { items, last: marks.last })
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
        stream::iter(requests.chunks(WRITES).map(<[WriteRequest]>::to_vec))
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
            let found: QueryPage<serde::de::IgnoredAny> =
                self.query(range, None, WRITES, Order::Oldest).await?;
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

    async fn write_batch(&self, requests: Vec<WriteRequest>) -> Result<(), StoreError> {
        let written = self.write_independently(requests).await;
        if let Some(memo) = &self.memo {
            memo.forget_all();
        }
        written
    }

    async fn write_independently(&self, mut requests: Vec<WriteRequest>) -> Result<(), StoreError> {
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
