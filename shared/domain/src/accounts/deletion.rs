//! The deletion of an account: everything is removed, then removed again when nothing that had begun before can still
//! write, and then a receipt says that nothing is left but a few counts.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::ReceiptId;

/// After this time, everything that began before the deletion has ended: an invocation lasts at most 15 minutes, the address
/// of an upload is valid for 5, and another process may learn of the deletion 30 seconds late.
pub const SETTLED_AFTER: SignedDuration = SignedDuration::from_mins(18);

/// How long a receipt can be read after the end of the deletion.
pub const RECEIPT_KEPT: SignedDuration = SignedDuration::from_hours(24 * 90);

/// If something is left, the deletion is repeated after this time.
pub const REPEATED_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// How far the deletion of an account has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeletionState {
    /// Everything is being removed.
    Removing,
    /// Everything was removed. It is removed again at `confirms_at`.
    Waiting,
    /// Nothing is left but what `kept` names.
    Done,
}

/// A count that a deletion keeps, so that a deletion does not begin a day's ceiling or a month's quota again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeptCount {
    /// What the account has spent on this day, in UTC.
    DaySpending,
    /// What the account has spent in this month, in UTC.
    MonthSpending,
    /// How many requests the account has made in this month, in UTC.
    MonthRequests,
}

/// A record that a deletion keeps. It has numbers only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Kept {
    /// What it counts.
    pub what: KeptCount,
    /// When the record expires. DynamoDB deletes expired records within a few days.
    pub until: Timestamp,
}

/// What was found when everything had been removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Left {
    /// Records in the table, besides those in `kept`.
    pub records: u64,
    /// Objects in the bucket, with all their versions.
    pub objects: u64,
    /// When the search ended.
    pub checked_at: Timestamp,
}

impl Left {
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.records == 0 && self.objects == 0
    }
}

/// How long the backups of the table can be restored.
const TABLE_BACKUPS: SignedDuration = SignedDuration::from_hours(24 * 35);

/// How long an upload in parts can stay incomplete: the bucket's lifecycle removes it two days after its begin, and S3 rounds
/// up to the end of the day.
const INCOMPLETE_UPLOADS: SignedDuration = SignedDuration::from_hours(24 * 3);

/// A place outside the live data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Place)]
pub enum CopyPlace {
    /// On AWS: the backups of the table, from which it can be restored to any second of the last 35 days.
    TableBackups,
    /// On AWS: parts of an export whose upload was cut off. S3 deletes them once a day.
    IncompleteUploads,
    /// On one machine: unused pages of the table's file.
    TableFile,
}

/// A place that may still have a copy of what was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeptCopy {
    /// Where the copy is.
    pub place: CopyPlace,
    /// When the copy expires. Without it, the platform itself still has to erase the copy, and the deletion is not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl KeptCopy {
    /// The copies that AWS keeps after a removal that ended `now`.
    #[must_use]
    pub fn on_aws(now: Timestamp) -> Vec<Self> {
        let copy = |place, kept| Self { place, until: now.checked_add(kept).ok() };
        vec![
            copy(CopyPlace::IncompleteUploads, INCOMPLETE_UPLOADS),
            copy(CopyPlace::TableBackups, TABLE_BACKUPS),
        ]
    }

    /// A copy in the table's file that could not be erased.
    #[must_use]
    pub fn in_the_table_file() -> Self {
        Self { place: CopyPlace::TableFile, until: None }
    }
}

/// The receipt of a deletion. It has no data of the person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Receipt {
    pub receipt_id: ReceiptId,
    /// How far the deletion has come.
    pub state: DeletionState,
    /// When the deletion was accepted.
    pub requested_at: Timestamp,
    /// When everything is removed for the second time. Everything that had begun before the deletion has ended then.
    pub confirms_at: Timestamp,
    /// When it was known that nothing is left but what `kept` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// How many records were removed, by kind.
    pub removed_records: BTreeMap<String, u64>,
    /// How many versions of objects were removed.
    pub removed_objects: u64,
    /// The records that stay until the day or the month ends. Known when everything was removed for the first time.
    #[serde(default)]
    pub kept: Vec<Kept>,
    /// What a search for the account's data found after the last removal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
    /// The places that may still have copies of what was removed. Known when everything was removed for the last time.
    #[serde(default)]
    pub copies: Vec<KeptCopy>,
    /// Until when an executor works. It is not in the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub leased_until: Option<Timestamp>,
}

impl Receipt {
    #[must_use]
    pub fn new(receipt_id: ReceiptId, now: Timestamp) -> Self {
        Self {
            receipt_id,
            state: DeletionState::Removing,
            requested_at: now,
            confirms_at: now.checked_add(SETTLED_AFTER).unwrap_or(Timestamp::MAX),
            finished_at: None,
            removed_records: BTreeMap::new(),
            removed_objects: 0,
            kept: Vec::new(),
            left: None,
            copies: Vec::new(),
            leased_until: None,
        }
    }

    /// Whether an executor works.
    #[must_use]
    pub fn is_leased(&self, now: Timestamp) -> bool {
        self.leased_until.is_some_and(|until| now < until)
    }

    /// Whether a removal that begins `now` is the last one.
    #[must_use]
    pub fn confirms(&self, now: Timestamp) -> bool {
        now >= self.confirms_at
    }

    pub fn count_records(&mut self, kind: &str, records: u64) {
        if records > 0 {
            *self.removed_records.entry(kind.to_owned()).or_default() += records;
        }
    }

    /// Everything was removed before the time of the last removal. Returns when to continue.
    pub fn wait(&mut self) -> Timestamp {
        self.state = DeletionState::Waiting;
        self.confirms_at
    }

    /// Notes what the search after the last removal found, and which places have copies. `None` if nothing is left, and every copy
    /// expires; otherwise when to remove again.
    pub fn checked(&mut self, left: Left, copies: Vec<KeptCopy>) -> Option<Timestamp> {
        let all_expire = copies.iter().all(|copy| copy.until.is_some());
        self.left = Some(left);
        self.copies = copies;
        if left.is_nothing() && all_expire {
            self.state = DeletionState::Done;
            self.finished_at = Some(left.checked_at);
            return None;
        }
        self.state = DeletionState::Waiting;
        Some(left.checked_at.checked_add(REPEATED_AFTER).unwrap_or(Timestamp::MAX))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn a_deletion_ends_only_when_nothing_is_left_after_the_last_removal() {
        let mut receipt = Receipt::new(ReceiptId::from_uuid(Uuid::from_u128(7)), at(0));
        receipt.count_records("runs", 2);
        receipt.count_records("runs", 3);
        receipt.count_records("agents", 0);
        assert_eq!(receipt.removed_records, BTreeMap::from([("runs".to_owned(), 5)]));
        assert!(!receipt.confirms(at(17 * 60)));
        assert_eq!(receipt.wait(), at(18 * 60));
        assert!(receipt.confirms(at(18 * 60)));
        let left = |records, objects, second| Left { records, objects, checked_at: at(second) };
        assert_eq!(receipt.checked(left(1, 0, 1_100), Vec::new()), Some(at(1_160)));
        assert_eq!((receipt.state, receipt.finished_at), (DeletionState::Waiting, None));
        assert_eq!(receipt.checked(left(0, 1, 1_200), Vec::new()), Some(at(1_260)));
        // A copy that nothing but the platform erases.
        let in_the_file = vec![KeptCopy::in_the_table_file()];
        assert_eq!(receipt.checked(left(0, 0, 1_250), in_the_file.clone()), Some(at(1_310)));
        assert_eq!((receipt.state, &receipt.copies), (DeletionState::Waiting, &in_the_file));
        let on_aws = KeptCopy::on_aws(at(1_300));
        assert_eq!(receipt.checked(left(0, 0, 1_300), on_aws.clone()), None);
        assert_eq!(receipt.copies, on_aws);
        assert_eq!((receipt.state, receipt.finished_at), (DeletionState::Done, Some(at(1_300))));
    }
}
