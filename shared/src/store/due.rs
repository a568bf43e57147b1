//! The index of due items. It is the only data that is read across owners.

use std::collections::HashMap;

use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;

use super::due_item::DueItem;
use super::keys::{self, DUE_INDEX, Key};
use super::table::{Store, StoreError, Written, text, unavailable};

/// An entry of the index, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueEntry {
    pub key: Key,
    pub due_at: String,
}

/// What a sweep knew when it leased an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    pub at: Timestamp,
    /// The time up to which the sweep has looked ahead.
    pub until: Timestamp,
    /// Whether the sweeps had no gap since the entry became due.
    pub without_break: bool,
}

/// What an update does with the sighting in an action.
enum Found {
    Keep,
    Saw(Sighting),
    Forget,
}

impl DueEntry {
    /// `None` if the key is not the key of a due item.
    #[must_use]
    pub fn item(&self) -> Option<DueItem> {
        keys::parse_due(&self.key)
    }
}

impl Store {
    /// Up to `limit` due entries of one shard, earliest first.
    pub async fn due(&self, shard: u32, now: Timestamp, limit: usize) -> Result<Vec<DueEntry>, StoreError> {
        Ok(self.due_after(shard, now, limit, None).await?.0)
    }

    /// Like [`Store::due`], after an entry. Also returns the entry to continue from, or `None` at the end.
    pub async fn due_after(
        &self,
        shard: u32,
        now: Timestamp,
        limit: usize,
        after: Option<&DueEntry>,
    ) -> Result<(Vec<DueEntry>, Option<DueEntry>), StoreError> {
        self.index_page(&keys::shard_name(shard), now, limit, after).await
    }

    /// The entries of a partition of the index up to a time, earliest first. Also returns the entry to continue from.
    pub(super) async fn index_page(
        &self,
        shard: &str,
        until: Timestamp,
        limit: usize,
        after: Option<&DueEntry>,
    ) -> Result<(Vec<DueEntry>, Option<DueEntry>), StoreError> {
        let start = after.map(|entry| {
            HashMap::from([
                ("pk".to_owned(), text(&entry.key.pk)),
                ("sk".to_owned(), text(&entry.key.sk)),
                ("shard".to_owned(), text(shard)),
                ("due_at".to_owned(), text(&entry.due_at)),
            ])
        });
        let output = self
            .client
            .query()
            .table_name(&*self.table)
            .index_name(DUE_INDEX)
            .key_condition_expression("#shard = :shard AND due_at <= :now")
            .expression_attribute_names("#shard", "shard")
            .expression_attribute_values(":shard", text(shard))
            .expression_attribute_values(":now", text(&keys::sortable(until)))
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .set_exclusive_start_key(start)
            .send()
            .await
            .map_err(|error| unavailable(&error))?;
        let entry = |item: HashMap<String, AttributeValue>| {
            let part = |name: &str| item.get(name).and_then(|v| v.as_s().ok()).cloned();
            Some(DueEntry { key: Key::new(part("pk")?, part("sk")?), due_at: part("due_at")? })
        };
        let next = output.last_evaluated_key.and_then(entry);
        Ok((output.items.unwrap_or_default().into_iter().filter_map(entry).collect(), next))
    }

    /// Moves an entry to `until` if it has not changed since it was read. If two sweeps do this at once, one of them
    /// succeeds. The item's version does not change, so this does not disturb edits.
    ///
    /// `found` records in an action what the sweep knew: see
    /// [`Action::decided_as_of`](domain::actions::Action::decided_as_of).
    pub async fn lease_due(
        &self,
        entry: &DueEntry,
        until: Timestamp,
        found: Option<Sighting>,
    ) -> Result<Written, StoreError> {
        let found = found.map_or(Found::Keep, Found::Saw);
        self.move_due(entry, until, found).await
    }

    /// Moves an entry that a process left behind to `until`, if it has not changed since it was read. Forgets what sweeps have
    /// found there, because nobody watched for due times since.
    pub async fn release_due(&self, entry: &DueEntry, until: Timestamp) -> Result<Written, StoreError> {
        self.move_due(entry, until, Found::Forget).await
    }

    async fn move_due(
        &self,
        entry: &DueEntry,
        until: Timestamp,
        found: Found,
    ) -> Result<Written, StoreError> {
        let update = match found {
            Found::Forget => "SET due_at = :until REMOVE found_at, found_until",
            Found::Keep => "SET due_at = :until",
            Found::Saw(Sighting { without_break: true, .. }) => {
                "SET due_at = :until, found_at = if_not_exists(found_at, :found_at), found_until = :found_until"
            }
            Found::Saw(_) => {
                "SET due_at = :until, found_at = if_not_exists(found_at, :found_at), \
                 found_until = if_not_exists(found_until, :found_until)"
            }
        };
        let mut request = self
            .client
            .update_item()
            .table_name(&*self.table)
            .key("pk", text(&entry.key.pk))
            .key("sk", text(&entry.key.sk))
            .update_expression(update)
            .condition_expression("due_at = :seen")
            .expression_attribute_values(":until", text(&keys::sortable(until)))
            .expression_attribute_values(":seen", text(&entry.due_at));
        if let Found::Saw(found) = found {
            request = request
                .expression_attribute_values(":found_at", text(&found.at.to_string()))
                .expression_attribute_values(":found_until", text(&found.until.to_string()));
        }
        let sent = request.send().await;
        let Err(error) = sent else { return Ok(Written::Yes) };
        match error.as_service_error() {
            // This also happens if the answer to our own first try was lost. Then the entry comes back when the lease
            // ends.
            Some(UpdateItemError::ConditionalCheckFailedException(_)) => {
                Ok(Written::Refused(entry.key.guard()))
            }
            _ => Err(unavailable(&error)),
        }
    }
}
