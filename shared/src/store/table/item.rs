//! Records as items, and items as records.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::StoreError;
use super::key::{Key, sortable};

/// An item as DynamoDB has it.
pub type Attributes = HashMap<String, AttributeValue>;

pub(super) const VERSION: &str = "_v";
pub(super) const WRITE: &str = "_w";

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
        item.insert("due_at".to_owned(), AttributeValue::S(sortable(*at)));
    }
    Ok(item)
}

pub(in crate::store) fn number(n: impl ToString) -> AttributeValue {
    AttributeValue::N(n.to_string())
}

pub(in crate::store) fn text(s: &str) -> AttributeValue {
    AttributeValue::S(s.to_owned())
}

pub(in crate::store) fn key_of(key: &Key) -> Attributes {
    HashMap::from([("pk".to_owned(), text(&key.pk)), ("sk".to_owned(), text(&key.sk))])
}

/// Adds the key, the version and the write id.
pub(super) fn marked(key: &Key, version: u64, write: &str, mut item: Attributes) -> Attributes {
    item.extend(key_of(key));
    item.insert(VERSION.to_owned(), number(version));
    item.insert(WRITE.to_owned(), text(write));
    item
}

fn version_of(item: &Attributes) -> u64 {
    item.get(VERSION).and_then(|value| value.as_n().ok()).and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// The sort key and the record of an item.
pub(super) fn read<T: DeserializeOwned>(item: Attributes) -> Result<(String, Versioned<T>), StoreError> {
    let part = |name: &str| item.get(name).and_then(|v| v.as_s().ok()).cloned().unwrap_or_default();
    let (pk, sk, version) = (part("pk"), part("sk"), version_of(&item));
    let value = serde_dynamo::from_item(item)
        .map_err(|error| StoreError::Corrupt { key: format!("{pk} {sk}"), cause: error.to_string() })?;
    Ok((sk, Versioned { value, version }))
}
