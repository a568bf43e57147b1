//! The index of due actions: the one thing that is read across owners.

use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use jiff::Timestamp;

use super::keys::{self, DUE_INDEX, Key};
use super::table::{Store, StoreError, Written, text, unavailable};

/// An action that has a time to be looked at, and that time as the index has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueEntry {
    pub key: Key,
    pub due_at: String,
}

impl Store {
    /// Up to `limit` entries of one shard that are due, earliest first.
    pub async fn due(&self, shard: u32, now: Timestamp, limit: usize) -> Result<Vec<DueEntry>, StoreError> {
        let output = self
            .client
            .query()
            .table_name(&*self.table)
            .index_name(DUE_INDEX)
            .key_condition_expression("#shard = :shard AND due_at <= :now")
            .expression_attribute_names("#shard", "shard")
            .expression_attribute_values(":shard", text(&keys::shard_name(shard)))
            .expression_attribute_values(":now", text(&keys::sortable(now)))
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .send()
            .await
            .map_err(|error| unavailable(&error))?;
        let entry = |item: std::collections::HashMap<String, aws_sdk_dynamodb::types::AttributeValue>| {
            let part = |name: &str| item.get(name).and_then(|v| v.as_s().ok()).cloned();
            Some(DueEntry { key: Key { pk: part("pk")?, sk: part("sk")? }, due_at: part("due_at")? })
        };
        Ok(output.items.unwrap_or_default().into_iter().filter_map(entry).collect())
    }

    /// Moves an entry on to `until`, where it still is what was read: of two sweeps that met, one goes on with it.
    /// The action's version does not change, so nobody's edit is disturbed.
    pub async fn lease_due(&self, entry: &DueEntry, until: Timestamp) -> Result<Written, StoreError> {
        let sent = self
            .client
            .update_item()
            .table_name(&*self.table)
            .key("pk", text(&entry.key.pk))
            .key("sk", text(&entry.key.sk))
            .update_expression("SET due_at = :until")
            .condition_expression("due_at = :seen")
            .expression_attribute_values(":until", text(&keys::sortable(until)))
            .expression_attribute_values(":seen", text(&entry.due_at))
            .send()
            .await;
        let Err(error) = sent else { return Ok(Written::Yes) };
        match error.as_service_error() {
            // Also where the answer to our own first try was lost: then the entry comes back when the lease is over.
            Some(UpdateItemError::ConditionalCheckFailedException(_)) => Ok(Written::Refused { first: 0 }),
            _ => Err(unavailable(&error)),
        }
    }
}
