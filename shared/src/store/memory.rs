//! Memory: facts and what is built from them, outside sessions, and what keeps the index and the synchronisation up to date.
//!
//! A change of anything that memory shows writes a mark of the changed part in the same transaction ([`Store::memory_marks`]). So the
//! search index can always tell which parts it must read again, and a conversation is never forgotten by the synchronisation.

use std::collections::BTreeSet;

use domain::accounts::profile::MemoryVectors;
use domain::ids::{BlockId, CardId, FactId, Owner, TidyId};
use domain::log::SessionId;
use domain::memory::part::{Collection, MemoryPart, ids_of};
use domain::memory::session::Said;
use domain::memory::tombstone::Tombstone;
use domain::memory::{Block, Card, Fact, LongTerm, Source, Week};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::keys::{self, Range};
use super::runs::jobs::Job;
use super::table::{Extras, Order, QueryPage, Store, StoreError, Versioned, Write, Written, item};

/// When memory is looked at first after something new: the look finds out when the day of its owner ends.
const FIRST_LOOK: SignedDuration = SignedDuration::from_mins(1);

/// How many messages of an outside session one transaction stores: DynamoDB accepts a hundred writes of 4 MB together.
pub const OUTSIDE_AT_ONCE: usize = 20;

/// How many records a query reads at once.
const PAGE: usize = 500;

/// The mark of a part that has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryMark {
    pub part: MemoryPart,
    /// When it changed last.
    pub at: Timestamp,
    /// It is another one after each change.
    pub stamp: Uuid,
}

/// The objects of the search index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexHead {
    pub base: Option<Uuid>,
    /// The bytes of the base.
    #[serde(default)]
    pub base_bytes: u64,
    /// Oldest first.
    #[serde(default)]
    pub increments: Vec<Uuid>,
    /// The bytes of all increments.
    #[serde(default)]
    pub increment_bytes: u64,
}

impl IndexHead {
    /// All objects, oldest first.
    pub fn objects(&self) -> impl Iterator<Item = Uuid> {
        self.base.into_iter().chain(self.increments.iter().copied())
    }
}

/// What was synchronised and tidied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryKept {
    /// The latest day that was synchronised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daily: Option<Date>,
    /// When that began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synced_at: Option<Timestamp>,
    /// The Monday of the latest week that was tidied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weekly: Option<Date>,
    /// Why the last synchronisation or clean-up has failed. `None` if it has succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// How often it has failed since the last success.
    #[serde(default)]
    pub failures: u32,
    /// The provider whose vectors the index has, or should have had: it was asked.
    #[serde(default, skip_serializing_if = "MemoryVectors::is_off")]
    pub vectors: MemoryVectors,
}

/// The executor that works on a memory is the one that has written this record last.
impl Job for MemoryKept {
    fn begin(&mut self, _: Timestamp) -> bool {
        true
    }

    fn write(&self, owner: &Owner, version: u64, _: Timestamp) -> Result<Write, StoreError> {
        Ok(Write::over(keys::memory_kept(owner), version, item(self, &Extras::default())?))
    }
}

/// The mark that memory has something to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryDue {
    pub since: Timestamp,
}

/// The state of a conversation that was synchronised last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    pub source: Source,
    pub fingerprint: String,
    pub at: Timestamp,
    /// The block of that state.
    pub block_id: BlockId,
}

/// Unconfirmed copies that the person's own words replace, as they were read, and the blocks that they were in, without them.
#[derive(Debug, Default)]
pub struct Replaced {
    pub facts: Vec<Versioned<Fact>>,
    pub blocks: Vec<Versioned<Block>>,
}

/// Who has changed the long-term memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LongTermBy {
    Person,
    Tidy,
    Rollback,
    /// A fact was deleted or corrected.
    Forgetting,
}

/// A version of the long-term memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongTermRecord {
    pub memory: LongTerm,
    pub by: LongTermBy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tidy_id: Option<TidyId>,
    pub at: Timestamp,
}

/// A clean-up of a week.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TidyRecord {
    pub tidy_id: TidyId,
    pub monday: Date,
    pub at: Timestamp,
    /// The version of the long-term memory before it. 0: there was none.
    pub before: u64,
    /// The version after it.
    pub after: u64,
    /// How many blocks it has archived.
    pub blocks: u64,
    /// How many lines the program has rejected or dropped.
    #[serde(default)]
    pub rejected: u64,
    /// What the models have cost.
    #[serde(default)]
    pub cost_micros: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back_at: Option<Timestamp>,
}

/// An outside session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideSession {
    pub session_id: SessionId,
    /// Empty for the person's own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub created_at: Timestamp,
    pub last_at: Timestamp,
    /// A schedule has begun it.
    #[serde(default)]
    pub by_schedule: bool,
}

/// A message of an outside session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideMessage {
    pub arrived: Uuid,
    #[serde(flatten)]
    pub said: Said,
}

/// The mark that a message of an outside session is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideOnce {
    pub id: String,
    pub arrived: Uuid,
}

impl Store {
    /// The writes that mark parts as changed, for the transaction that changes them. The parts must differ.
    pub fn memory_marks(
        owner: &Owner,
        parts: impl IntoIterator<Item = MemoryPart>,
        stamp: Uuid,
        now: Timestamp,
    ) -> Result<Vec<Write>, StoreError> {
        let mut writes = Vec::new();
        let mut is_active = false;
        for part in parts {
            let mark = item(&MemoryMark { part: part.clone(), at: now, stamp }, &Extras::default())?;
            if matches!(part, MemoryPart { of: Collection::Messages(_), day: Some(_) }) {
                writes.push(Write::Put { key: keys::memory_active(owner, &part), item: mark.clone() });
                is_active = true;
            }
            writes.push(Write::Put { key: keys::memory_changed(owner, &part), item: mark });
        }
        if is_active {
            writes.push(Self::memory_wakes_up(owner, now)?);
        }
        Ok(writes)
    }

    /// The write that makes memory look whether something is to do.
    pub fn memory_wakes_up(owner: &Owner, now: Timestamp) -> Result<Write, StoreError> {
        let due = Some((keys::shard_of_owner(owner), now + FIRST_LOOK));
        // An item that exists keeps its time: it may be due already.
        let item = item(&MemoryDue { since: now }, &Extras { due, ..Extras::default() })?;
        Ok(Write::Fill { key: keys::memory_due(owner), item })
    }

    /// The writes that mark parts as changed, because something in them is hidden or deleted. No conversation counts as active for that.
    pub fn hidden_marks(
        owner: &Owner,
        parts: impl IntoIterator<Item = MemoryPart>,
        stamp: Uuid,
        now: Timestamp,
    ) -> Result<Vec<Write>, StoreError> {
        let put = |part: MemoryPart| {
            let key = keys::memory_changed(owner, &part);
            Ok(Write::Put { key, item: item(&MemoryMark { part, at: now, stamp }, &Extras::default())? })
        };
        parts.into_iter().map(put).collect()
    }

    /// The parts that have changed since they were indexed.
    pub async fn memory_changes(&self, owner: &Owner) -> Result<Vec<MemoryMark>, StoreError> {
        Ok(self
            .all_of(&keys::all_memory_changed(owner))
            .await?
            .into_iter()
            .map(|found| found.value)
            .collect())
    }

    /// The conversations with messages since they were synchronised, by day.
    pub async fn active_conversations(&self, owner: &Owner) -> Result<Vec<MemoryMark>, StoreError> {
        Ok(self.all_of(&keys::all_memory_active(owner)).await?.into_iter().map(|found| found.value).collect())
    }

    /// Deletes the mark that a part has changed, unless it has changed again.
    pub async fn unmark_changed(&self, owner: &Owner, mark: &MemoryMark) -> Result<(), StoreError> {
        self.unmark(keys::memory_changed(owner, &mark.part), mark).await
    }

    /// Deletes the mark that a conversation was active, unless it was active again.
    pub async fn unmark_active(&self, owner: &Owner, mark: &MemoryMark) -> Result<(), StoreError> {
        self.unmark(keys::memory_active(owner, &mark.part), mark).await
    }

    async fn unmark(&self, key: keys::Key, mark: &MemoryMark) -> Result<(), StoreError> {
        let value = mark.stamp.to_string();
        let _ = self.write_all(vec![Write::DeleteWhile { key, attribute: "stamp", value }]).await?;
        Ok(())
    }

    pub async fn memory_due(&self, owner: &Owner) -> Result<Option<Versioned<MemoryDue>>, StoreError> {
        self.get(&keys::memory_due(owner)).await
    }

    /// Memory is looked at again at `at`.
    pub async fn set_memory_due(
        &self,
        owner: &Owner,
        due: &MemoryDue,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let extras = Extras { due: Some((keys::shard_of_owner(owner), at)), ..Extras::default() };
        self.put(&keys::memory_due(owner), item(due, &extras)?).await
    }

    /// The write with which memory is looked at again at `at`, if the mark is still the one that was read.
    pub fn memory_due_write(
        owner: &Owner,
        due: &Versioned<MemoryDue>,
        at: Timestamp,
    ) -> Result<Write, StoreError> {
        let extras = Extras { due: Some((keys::shard_of_owner(owner), at)), ..Extras::default() };
        Ok(Write::over(keys::memory_due(owner), due.version, item(&due.value, &extras)?))
    }

    /// Nothing is left to do since the mark was read.
    pub async fn clear_memory_due(&self, owner: &Owner, version: u64) -> Result<(), StoreError> {
        let _ = self.write_all(vec![Write::Remove { key: keys::memory_due(owner), version }]).await?;
        Ok(())
    }

    /// The state of the synchronisation; the initial one if there is none yet.
    pub async fn memory_kept(&self, owner: &Owner) -> Result<Versioned<MemoryKept>, StoreError> {
        let found = self.get(&keys::memory_kept(owner)).await?;
        Ok(found.unwrap_or(Versioned { value: MemoryKept::default(), version: 0 }))
    }

    /// Stores the state of a synchronisation that was read at `version` (0: there was none).
    pub async fn replace_memory_kept(
        &self,
        owner: &Owner,
        kept: &MemoryKept,
        version: u64,
    ) -> Result<Written, StoreError> {
        let key = keys::memory_kept(owner);
        self.write_all(vec![Write::over(key, version, item(kept, &Extras::default())?)]).await
    }

    /// `None` if nothing was indexed yet.
    pub async fn memory_index(&self, owner: &Owner) -> Result<Option<Versioned<IndexHead>>, StoreError> {
        self.get(&keys::memory_index(owner)).await
    }

    /// Replaces the index that was read at `version` (0: there was none).
    pub async fn replace_memory_index(
        &self,
        owner: &Owner,
        head: &IndexHead,
        version: u64,
    ) -> Result<Written, StoreError> {
        let key = keys::memory_index(owner);
        self.write_all(vec![Write::over(key, version, item(head, &Extras::default())?)]).await
    }

    /// Deletes the list of the index's objects, if it was not replaced since it was read.
    pub async fn delete_memory_index(&self, owner: &Owner, version: u64) -> Result<(), StoreError> {
        let _ = self.write_all(vec![Write::Remove { key: keys::memory_index(owner), version }]).await?;
        Ok(())
    }

    pub async fn learned(
        &self,
        owner: &Owner,
        source: &Source,
    ) -> Result<Option<Versioned<Learned>>, StoreError> {
        self.get(&keys::learned(owner, source)).await
    }

    /// What was learned of all conversations.
    pub async fn all_learned(&self, owner: &Owner) -> Result<Vec<Learned>, StoreError> {
        Ok(self.all_of(&keys::all_learned(owner)).await?.into_iter().map(|found| found.value).collect())
    }

    /// Stores a block with its facts in place of `replaced`, and that the conversation was learned up to here. `before`: the version of what was learned of it
    /// last, 0 if nothing was. Refused if that has changed, so the same state is not learned twice, whatever its day and wherever its
    /// block is now.
    pub async fn create_block(
        &self,
        owner: &Owner,
        (block, facts): (&Block, &[Fact]),
        replaced: Replaced,
        before: u64,
        stamp: Uuid,
    ) -> Result<Written, StoreError> {
        let plain = Extras::default();
        let learned = Learned {
            source: block.source.clone(),
            fingerprint: block.fingerprint.clone(),
            at: block.created_at,
            block_id: block.block_id,
        };
        let mut writes = vec![
            Write::Create {
                key: keys::memory_block(owner, block.date, block.block_id),
                item: item(block, &plain)?,
            },
            Write::over(keys::learned(owner, &block.source), before, item(&learned, &plain)?),
        ];
        writes.extend(Self::fact_writes(owner, facts)?);
        let mut changed: Vec<FactId> = facts.iter().map(|fact| fact.fact_id).collect();
        for Versioned { value, version } in replaced.facts {
            writes.push(Write::Remove { key: keys::memory_fact(owner, value.fact_id), version });
            changed.push(value.fact_id);
        }
        for block in replaced.blocks {
            writes.push(Self::block_write(owner, &block)?);
        }
        writes.extend(Self::fact_marks(owner, changed, stamp, block.created_at)?);
        self.write_all(writes).await
    }

    /// The writes of new facts. Their parts are to be marked, too.
    pub fn fact_writes(owner: &Owner, facts: &[Fact]) -> Result<Vec<Write>, StoreError> {
        let put = |fact: &Fact| {
            let item = item(fact, &Extras::default())?;
            Ok(Write::Put { key: keys::memory_fact(owner, fact.fact_id), item })
        };
        facts.iter().map(put).collect()
    }

    /// The write of a block over the one that was read, where it is.
    pub fn block_write(owner: &Owner, block: &Versioned<Block>) -> Result<Write, StoreError> {
        let Versioned { value, version } = block;
        let key = match value.archived_by {
            None => keys::memory_block(owner, value.date, value.block_id),
            Some(_) => keys::archived_block(owner, value.date, value.block_id),
        };
        Ok(Write::Replace { key, version: *version, item: item(value, &Extras::default())? })
    }

    /// The marks of the parts of these facts.
    pub fn fact_marks(
        owner: &Owner,
        facts: impl IntoIterator<Item = FactId>,
        stamp: Uuid,
        now: Timestamp,
    ) -> Result<Vec<Write>, StoreError> {
        let part = |id: FactId| MemoryPart::with(Collection::Facts, id.uuid());
        let parts: BTreeSet<_> = facts.into_iter().map(part).collect();
        Self::memory_marks(owner, parts, stamp, now)
    }

    pub async fn fact(&self, owner: &Owner, id: FactId) -> Result<Option<Versioned<Fact>>, StoreError> {
        self.get(&keys::memory_fact(owner, id)).await
    }

    /// These facts. Those that do not exist are left out.
    pub async fn facts(&self, owner: &Owner, ids: &[FactId]) -> Result<Vec<Fact>, StoreError> {
        let keys: Vec<_> = ids.iter().map(|id| keys::memory_fact(owner, *id)).collect();
        self.get_many(&keys).await
    }

    /// All facts, oldest first.
    pub async fn all_facts(&self, owner: &Owner) -> Result<Vec<Fact>, StoreError> {
        Ok(self.all_of(&keys::memory_facts(owner)).await?.into_iter().map(|found| found.value).collect())
    }

    /// The facts of a UTC day, oldest first.
    pub async fn facts_of(&self, owner: &Owner, day: Date) -> Result<Vec<Fact>, StoreError> {
        self.of_day(&keys::memory_facts(owner), FactId::PREFIX, day).await
    }

    /// The cards of a UTC day, oldest first.
    pub async fn cards_of(&self, owner: &Owner, day: Date) -> Result<Vec<Card>, StoreError> {
        self.of_day(&keys::memory_cards(owner), CardId::PREFIX, day).await
    }

    /// These cards, each once. Those that do not exist are left out.
    pub async fn cards(&self, owner: &Owner, ids: &[CardId]) -> Result<Vec<Card>, StoreError> {
        let keys: Vec<_> = ids.iter().map(|id| keys::memory_card(owner, *id)).collect();
        self.get_many(&keys).await
    }

    pub async fn all_cards(&self, owner: &Owner) -> Result<Vec<Card>, StoreError> {
        Ok(self.all_of(&keys::memory_cards(owner)).await?.into_iter().map(|found| found.value).collect())
    }

    /// Stores cards, and marks their parts.
    pub async fn put_cards(
        &self,
        owner: &Owner,
        cards: &[Card],
        stamp: Uuid,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for some in cards.chunks(40) {
            let put = |card: &Card| {
                let item = item(card, &Extras::default())?;
                Ok::<_, StoreError>(Write::Put { key: keys::memory_card(owner, card.card_id), item })
            };
            let mut writes: Vec<Write> = some.iter().map(put).collect::<Result<_, _>>()?;
            let part = |card: &Card| MemoryPart::with(Collection::Cards, card.card_id.uuid());
            let parts: BTreeSet<_> = some.iter().map(part).collect();
            writes.extend(Self::memory_marks(owner, parts, stamp, now)?);
            let _ = self.write_all(writes).await?;
        }
        Ok(())
    }

    /// The blocks that are not archived, the oldest day first.
    pub async fn open_blocks(&self, owner: &Owner) -> Result<Vec<Versioned<Block>>, StoreError> {
        self.all_of(&keys::memory_blocks(owner)).await
    }

    /// Whether a block is not archived.
    pub async fn has_open_blocks(&self, owner: &Owner) -> Result<bool, StoreError> {
        let found = self.query::<Block>(&keys::memory_blocks(owner), None, 1, Order::Oldest).await?;
        Ok(!found.items.is_empty())
    }

    /// The archived blocks from a day on, the oldest day first.
    pub async fn archived_blocks(
        &self,
        owner: &Owner,
        from: Option<Date>,
    ) -> Result<Vec<Versioned<Block>>, StoreError> {
        let range = keys::archived_blocks(owner);
        let after = from.map(|date| format!("{}{date}#", range.prefix));
        self.all_after(&range, after, |_| true).await
    }

    /// The blocks of a day, archived or not, by their ids.
    pub async fn blocks_of(&self, owner: &Owner, date: Date) -> Result<Vec<Block>, StoreError> {
        let of = async |range: Range| {
            let begin = format!("{}{date}#", range.prefix);
            let is_of = |sk: &str| sk.starts_with(&begin);
            self.all_after(&range, Some(begin.clone()), is_of).await
        };
        let (open, archived) =
            futures::try_join!(of(keys::memory_blocks(owner)), of(keys::archived_blocks(owner)))?;
        let mut blocks: Vec<Block> =
            open.into_iter().chain(archived).map(|found: Versioned<Block>| found.value).collect();
        blocks.sort_by_key(|block| block.block_id);
        Ok(blocks)
    }

    /// The writes that put a block into the archive.
    pub fn archive_writes(
        owner: &Owner,
        Versioned { value, version }: Versioned<Block>,
        by: TidyId,
    ) -> Result<[Write; 2], StoreError> {
        let (date, id) = (value.date, value.block_id);
        let archived = item(&Block { archived_by: Some(by), ..value }, &Extras::default())?;
        Ok([
            Write::Remove { key: keys::memory_block(owner, date, id), version },
            Write::Create { key: keys::archived_block(owner, date, id), item: archived },
        ])
    }

    /// The writes that take a block out of the archive.
    pub fn unarchive_writes(
        owner: &Owner,
        Versioned { value, version }: Versioned<Block>,
    ) -> Result<[Write; 2], StoreError> {
        let (date, id) = (value.date, value.block_id);
        let open = item(&Block { archived_by: None, ..value }, &Extras::default())?;
        Ok([
            Write::Remove { key: keys::archived_block(owner, date, id), version },
            Write::Create { key: keys::memory_block(owner, date, id), item: open },
        ])
    }

    pub async fn long_term(&self, owner: &Owner) -> Result<Option<Versioned<LongTermRecord>>, StoreError> {
        self.get(&keys::long_term(owner)).await
    }

    pub async fn long_term_version(
        &self,
        owner: &Owner,
        version: u64,
    ) -> Result<Option<Versioned<LongTermRecord>>, StoreError> {
        self.get(&keys::long_term_version(owner, version)).await
    }

    /// All earlier versions, oldest first, with their numbers.
    pub async fn long_term_versions(
        &self,
        owner: &Owner,
    ) -> Result<Vec<(u64, Versioned<LongTermRecord>)>, StoreError> {
        let found = self.pairs(&keys::long_term_versions(owner), None, |_| true).await?;
        let number = |sk: &str| sk.strip_prefix("LONGV#")?.parse().ok();
        Ok(found.into_iter().filter_map(|(sk, record)| Some((number(&sk)?, record))).collect())
    }

    /// The writes of a new version of the long-term memory over the one that was read.
    pub fn long_term_writes(
        owner: &Owner,
        before: Option<&Versioned<LongTermRecord>>,
        next: &LongTermRecord,
    ) -> Result<Vec<Write>, StoreError> {
        let plain = Extras::default();
        let version = before.map_or(0, |before| before.version);
        let mut writes = vec![Write::over(keys::long_term(owner), version, item(next, &plain)?)];
        if let Some(before) = before {
            let key = keys::long_term_version(owner, before.version);
            writes.push(Write::Put { key, item: item(&before.value, &plain)? });
        }
        Ok(writes)
    }

    pub async fn memory_week(
        &self,
        owner: &Owner,
        monday: Date,
    ) -> Result<Option<Versioned<Week>>, StoreError> {
        self.get(&keys::memory_week(owner, monday)).await
    }

    pub async fn memory_weeks(&self, owner: &Owner) -> Result<Vec<Versioned<Week>>, StoreError> {
        self.all_of(&keys::memory_weeks(owner)).await
    }

    pub async fn memory_tidy(
        &self,
        owner: &Owner,
        id: TidyId,
    ) -> Result<Option<Versioned<TidyRecord>>, StoreError> {
        self.get(&keys::memory_tidy(owner, id)).await
    }

    /// All clean-ups, oldest first.
    pub async fn memory_tidies(&self, owner: &Owner) -> Result<Vec<TidyRecord>, StoreError> {
        Ok(self.all_of(&keys::memory_tidies(owner)).await?.into_iter().map(|found| found.value).collect())
    }

    pub async fn tombstones(&self, owner: &Owner) -> Result<Vec<Tombstone>, StoreError> {
        Ok(self.all_of(&keys::tombstones(owner)).await?.into_iter().map(|found| found.value).collect())
    }

    pub async fn outside_session(
        &self,
        owner: &Owner,
        session: &SessionId,
    ) -> Result<Option<Versioned<OutsideSession>>, StoreError> {
        self.get(&keys::outside_session(owner, session)).await
    }

    pub async fn outside_sessions(&self, owner: &Owner) -> Result<Vec<OutsideSession>, StoreError> {
        Ok(self.all_of(&keys::outside_sessions(owner)).await?.into_iter().map(|found| found.value).collect())
    }

    /// The messages of an outside session that arrived on a UTC day, in the order of their arrival.
    pub async fn outside_messages_of(
        &self,
        owner: &Owner,
        session: &SessionId,
        day: Date,
    ) -> Result<Vec<OutsideMessage>, StoreError> {
        self.of_day(&keys::outside_messages(owner, session), "", day).await
    }

    /// Messages of an outside session by their arrival, after a sort key, at most `limit`.
    pub async fn outside_messages(
        &self,
        owner: &Owner,
        session: &SessionId,
        after: Option<&str>,
        limit: usize,
        order: Order,
    ) -> Result<QueryPage<OutsideMessage>, StoreError> {
        self.query(&keys::outside_messages(owner, session), after, limit, order).await
    }

    /// When these messages of an outside session arrived.
    pub async fn outside_arrivals(
        &self,
        owner: &Owner,
        session: &SessionId,
        ids: &[&str],
    ) -> Result<Vec<Uuid>, StoreError> {
        let keys: Vec<_> = ids.iter().map(|id| keys::outside_once(owner, session, id)).collect();
        let marks: Vec<OutsideOnce> = self.get_many(&keys).await?;
        Ok(marks.into_iter().map(|mark| mark.arrived).collect())
    }

    /// Which of these ids an outside session has already.
    pub async fn known_outside(
        &self,
        owner: &Owner,
        session: &SessionId,
        ids: &[&str],
    ) -> Result<BTreeSet<String>, StoreError> {
        let keys: Vec<_> = ids.iter().map(|id| keys::outside_once(owner, session, id)).collect();
        let marks: Vec<OutsideOnce> = self.get_many(&keys).await?;
        Ok(marks.into_iter().map(|mark| mark.id).collect())
    }

    /// Stores messages of an outside session, at most [`OUTSIDE_AT_ONCE`], with the marks. Refused if one of their ids is known, or if
    /// the session was deleted.
    pub async fn create_outside_messages(
        &self,
        owner: &Owner,
        session: &SessionId,
        messages: &[OutsideMessage],
        now: Timestamp,
    ) -> Result<Written, StoreError> {
        let plain = Extras::default();
        let mut writes = vec![Write::Exists { key: keys::outside_session(owner, session) }];
        let mut parts = BTreeSet::new();
        for message in messages {
            let (id, arrived) = (&message.said.id, message.arrived);
            let mark = OutsideOnce { id: id.clone(), arrived };
            let key = keys::outside_once(owner, session, id);
            writes.push(Write::Create { key, item: item(&mark, &plain)? });
            let key = keys::outside_message(owner, session, arrived);
            writes.push(Write::Create { key, item: item(message, &plain)? });
            parts.insert(MemoryPart::with(Collection::Messages(Source::Outside(session.clone())), arrived));
        }
        let stamp = messages.last().map_or(Uuid::nil(), |message| message.arrived);
        writes.extend(Self::memory_marks(owner, parts, stamp, now)?);
        self.write_all(writes).await
    }

    /// Deletes an outside session, and marks that it is gone.
    pub async fn delete_outside_session(
        &self,
        owner: &Owner,
        session: &SessionId,
        stamp: Uuid,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut writes =
            vec![Write::Delete { key: keys::outside_session(owner, session), must_exist: false }];
        let gone = MemoryPart::gone(Source::Outside(session.clone()));
        writes.extend(Self::memory_marks(owner, [gone], stamp, now)?);
        let _ = self.write_all(writes).await?;
        self.delete_range(&keys::outside_session_all(owner, session)).await
    }

    /// All records of a range.
    pub(super) async fn all_of<T: DeserializeOwned>(
        &self,
        range: &Range,
    ) -> Result<Vec<Versioned<T>>, StoreError> {
        self.all_after(range, None, |_| true).await
    }

    /// The records of a range after a sort key, up to the first one that is not kept.
    pub(super) async fn all_after<T: DeserializeOwned>(
        &self,
        range: &Range,
        after: Option<String>,
        keep: impl Fn(&str) -> bool,
    ) -> Result<Vec<Versioned<T>>, StoreError> {
        Ok(self.pairs(range, after, keep).await?.into_iter().map(|(_, found)| found).collect())
    }

    /// The records of a range after a sort key, up to the first one that is not kept.
    async fn pairs<T: DeserializeOwned>(
        &self,
        range: &Range,
        mut after: Option<String>,
        keep: impl Fn(&str) -> bool,
    ) -> Result<Vec<(String, Versioned<T>)>, StoreError> {
        let mut all = Vec::new();
        loop {
            let found = self.query::<T>(range, after.as_deref(), PAGE, Order::Oldest).await?;
            let count = all.len() + found.items.len();
            all.extend(found.items.into_iter().take_while(|(sk, _)| keep(sk)));
            after = found.last;
            if after.is_none() || all.len() < count {
                return Ok(all);
            }
        }
    }

    /// The records of a UTC day in a range whose sort keys end with an id.
    async fn of_day<T: DeserializeOwned>(
        &self,
        range: &Range,
        id_prefix: &str,
        day: Date,
    ) -> Result<Vec<T>, StoreError> {
        let (first, end) = ids_of(day);
        let begin = |id: Uuid| format!("{}{id_prefix}{}", range.prefix, id.simple());
        let end = begin(end);
        let found = self.all_after(range, Some(begin(first)), |sk| sk < end.as_str()).await?;
        Ok(found.into_iter().map(|found| found.value).collect())
    }
}
