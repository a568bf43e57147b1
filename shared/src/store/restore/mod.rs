//! Records of an exported account as items of another account.
//!
//! An archive comes from outside, so a record is accepted only if the platform can read it and if its key is the key that
//! the platform would give it. What has not ended is left out, because nobody continues it here.

mod accounts;
mod actions;
mod agents;
mod assets;
mod chats;
mod check_item;
mod logs;
mod memory;
mod practices;
mod projects;
mod runs;
mod watched;

use domain::history::{Change, ChangeCommand, ChangedBy, Effect};
use domain::ids::{Owner, RunId};
use domain::runs::Run;
use domain::validate::FieldErrors;
use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::agents::history::{Ledger, change_item};
use super::keys::{Key, RecordKind};
use super::partitions::Partition;
use super::record_kinds::{is_kind, records};
use super::table::{Attributes, Extras, item};
use crate::area::{self, AllRules};
use crate::blobs::BlobKey;

/// The longest sort key that DynamoDB accepts, in bytes.
const LONGEST_KEY: usize = 1_024;

/// A line of an export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    pub partition: String,
    pub key: String,
    #[serde(default)]
    pub version: Option<u64>,
    pub record: Value,
}

/// A record as an item of its new owner.
#[derive(Clone, Debug)]
pub struct Restored {
    pub partition: Partition,
    pub key: Key,
    pub version: u64,
    pub item: Attributes,
    /// The number of the newest line that it belongs to, or has, if it is of a log.
    pub line: Option<u64>,
    /// What it is for people, if it is a thing of its own and not a part of one.
    pub thing: Option<&'static str>,
    /// The objects that the record names.
    pub objects: Vec<Named>,
    /// If an object is missing, the record comes without this attribute. `None`: then the record stays behind.
    pub without: Option<&'static str>,
    /// What else is created, before the record: the entry of the import in its ledger.
    pub noted: Option<(Key, Attributes)>,
}

/// An object that a record names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub key: BlobKey,
    /// Its size, if the record says it.
    pub bytes: Option<u64>,
    /// How many lines it has, if the record says it.
    pub lines: Option<u64>,
}

impl From<BlobKey> for Named {
    fn from(key: BlobKey) -> Self {
        Self { key, bytes: None, lines: None }
    }
}

/// What becomes of a line.
#[derive(Clone, Debug)]
pub enum Restore {
    Item(Box<Restored>),
    /// It stays behind.
    LeftOut {
        partition: Partition,
        thing: Option<&'static str>,
    },
    /// The record of a run that has not ended. All of the run stays behind.
    Unfinished(RunId),
}

/// What a record becomes.
struct Kept {
    key: Key,
    item: Attributes,
    objects: Vec<Named>,
    without: Option<&'static str>,
    line: Option<u64>,
    /// The ledger that notes the import, and what the import did.
    noted: Option<(Ledger, Vec<Effect>)>,
}

/// `None` if the record stays behind.
type KeptOrNot = Result<Option<Kept>, String>;

/// Reads a line as an item of `owner`.
///
/// # Errors
/// What is wrong with the line.
pub fn restore(owner: &Owner, line: Line, rules: &AllRules, now: Timestamp) -> Result<Restore, String> {
    let Line { partition: place, key: sk, version, record } = line;
    let partition = Partition::parse(&place).filter(|found| found.of(owner) == format!("U#{owner}#{place}"));
    let partition = partition.ok_or_else(|| format!("the partition {place:?} is unknown"))?;
    if sk.is_empty() || sk.len() > LONGEST_KEY {
        return Err(format!("the key must have 1 to {LONGEST_KEY} bytes, has {}", sk.len()));
    }
    // Item versions count changes. Nobody has made so many.
    let version = version.unwrap_or(1);
    if !(1..=u64::from(u32::MAX)).contains(&version) {
        return Err(format!("the version must be 1 to {}, is {version}", u32::MAX));
    }
    if let Partition::Run(id) = partition
        && sk == "META"
        && !read::<Run>(&record)?.state.has_ended()
    {
        return Ok(Restore::Unfinished(id));
    }
    let place = Location { owner, partition: &partition, sk: &sk, now };
    let told = |told: String| format!("the record {sk:?} of {:?} {told}", partition.kind());
    let kept = kept(&place, &record).map_err(told)?;
    let kind = RecordKind::of(&partition.of(owner), &sk);
    area::check_record(rules, kind.map_or("", |kind| kind.name), &record).map_err(told)?;
    let thing = kind.and_then(|kind| kind.thing);
    let Some(Kept { key, item, objects, without, line, noted }) = kept else {
        return Ok(Restore::LeftOut { partition, thing });
    };
    if key.pk != partition.of(owner) || key.sk != sk {
        return Err(told("does not belong to its key".to_owned()));
    }
    check_item::item(&partition, &item).map_err(told)?;
    // The import is a change, so it has a version of its own.
    let version = version + u64::from(noted.is_some());
    let note = |(ledger, effects)| {
        let change = Change {
            version,
            at: now,
            by: ChangedBy::Import,
            command: ChangeCommand::Import,
            changes: Vec::new(),
            effects,
        };
        change_item(owner, ledger, &change).map_err(|error| error.to_string())
    };
    let noted = noted.map(note).transpose()?;
    let restored = Restored { partition, key, version, item, line, thing, objects, without, noted };
    Ok(Restore::Item(Box::new(restored)))
}

fn read<T: DeserializeOwned>(record: &Value) -> Result<T, String> {
    T::deserialize(record).map_err(|error| format!("can't be read: {error}"))
}

/// Where a record is stored.
struct Location<'a> {
    owner: &'a Owner,
    partition: &'a Partition,
    sk: &'a str,
    now: Timestamp,
}

impl Location<'_> {
    /// The key that the line says.
    fn key(&self) -> Key {
        Key::new(self.partition.of(self.owner), self.sk)
    }

    fn plain<T: Serialize>(&self, record: &T) -> KeptOrNot {
        keep(self.key(), record)
    }

    fn expiring<T: Serialize>(
        &self,
        key: Key,
        record: &T,
        from: Timestamp,
        lifetime: SignedDuration,
    ) -> KeptOrNot {
        let expires = from.checked_add(lifetime).map_err(|_| "has an impossible time".to_owned())?;
        let item = item(record, &Extras::expiring(expires)).map_err(|error| error.to_string())?;
        Ok(Some(Kept { key, item, objects: Vec::new(), without: None, line: None, noted: None }))
    }
}

fn keep<T: Serialize>(key: Key, record: &T) -> KeptOrNot {
    let item = item(record, &Extras::default()).map_err(|error| error.to_string())?;
    Ok(Some(Kept { key, item, objects: Vec::new(), without: None, line: None, noted: None }))
}

/// Adds the objects that a record names.
fn naming(kept: KeptOrNot, objects: Vec<Named>) -> KeptOrNot {
    Ok(kept?.map(|kept| Kept { objects, ..kept }))
}

/// A record about the lines of a log up to this one.
fn of_line(kept: KeptOrNot, line: u64) -> KeptOrNot {
    Ok(kept?.map(|kept| Kept { line: Some(line), ..kept }))
}

/// A record whose ledger notes the import.
fn noted(kept: KeptOrNot, ledger: Ledger, effects: Vec<Effect>) -> KeptOrNot {
    Ok(kept?.map(|kept| Kept { noted: Some((ledger, effects)), ..kept }))
}

/// A record that can do without this attribute.
fn without(kept: KeptOrNot, attribute: &'static str) -> KeptOrNot {
    Ok(kept?.map(|kept| Kept { without: Some(attribute), ..kept }))
}

fn valid<T>(checked: Result<T, FieldErrors>) -> Result<T, String> {
    checked.map_err(|errors| format!("is invalid: {errors}"))
}

fn is_number(sk: &str, prefix: &str) -> bool {
    sk.strip_prefix(prefix).is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The function that restores a record, by the list of records.
macro_rules! restore_with {
    ($(
        $(#[$doc:meta])*
        $partition:ident $(($($fields:tt)*))? = $pk:literal $about:tt $records:tt
    )*) => {
        /// What a record becomes. A record of no known kind stays behind.
        fn kept(place: &Location<'_>, record: &Value) -> KeptOrNot {
            $(restore_in!(place record [$partition $(($($fields)*))?] $records);)*
            Ok(None)
        }
    };
}

macro_rules! restore_in {
    ($place:ident $record:ident $partition:tt {$(
        $(#[doc = $doc:literal])+
        $key:ident $arguments:tt = $sk:literal $(with $with:tt)? $(guards $guard:ident)?
            $(lists $list:ident($prefix:expr))? $(deleted $deleted:literal)? => $fate:tt $(as $thing:literal)?;
    )*}) => {
        $(restore_one!($place $record $partition $sk $fate);)*
    };
}

macro_rules! restore_one {
    (
        $place:ident $record:ident [$partition:ident $(($($field:ident: $type:ty $(as $by:tt)?),+))?]
        $sk:literal [restored by $restore:path]
    ) => {
        if let Partition::$partition $(($($field),+))? = $place.partition
            && is_kind($sk, $place.sk)
        {
            return $restore($place, $($($field,)+)? $record);
        }
    };
    ($place:ident $record:ident [$partition:ident $($fields:tt)?] $sk:literal [left out]) => {
        if matches!($place.partition, Partition::$partition { .. }) && is_kind($sk, $place.sk) {
            return Ok(None);
        }
    };
}

records!(restore_with);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_only_the_word_of_its_kind_is_no_record() {
        let owner = Owner::new("me").unwrap();
        for (partition, key) in [
            ("CHAT#cht_00000000000000000000000000000001", "GEN"),
            ("LOG#session#agent", "LINE"),
            ("RUN#run_00000000000000000000000000000001", "OUT"),
        ] {
            let (partition, key) = (partition.to_owned(), key.to_owned());
            let line = Line { partition, key, version: None, record: Value::default() };
            let restored = restore(&owner, line, &Vec::new(), Timestamp::UNIX_EPOCH);
            assert!(matches!(restored, Ok(Restore::LeftOut { .. })), "{restored:?}");
        }
    }
}
