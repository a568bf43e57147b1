//! The daily synchronisation: each conversation that was active since the last one teaches at most eight facts.
//!
//! A block, its facts and the fingerprint of the conversation are written in one transaction, and the block's id is derived from the
//! fingerprint. So the same state of a conversation has one block, whatever crashes and however many synchronisations run at once.

use std::collections::{BTreeMap, BTreeSet};

use domain::background::jobs::Outcome;
use domain::ids::{BlockId, FactId, Owner};
use domain::memory::learn::Rejected;
use domain::memory::session::{Skip, worth_learning};
use domain::memory::{Block, Fact, Source};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::forgotten::Forgotten;
use super::learn::{self, Known, Worker};
use super::{Interrupted, Unfinished, index, sources};
use crate::context::Cx;
use crate::error::Result;
use crate::flows::background::lease::ClaimedJob;
use crate::flows::schedules;
use crate::store::Versioned;
use crate::store::memory::{MemoryKept, MemoryMark, Replaced};

/// How far a synchronisation looks back: two hours more than a day, so that nothing falls between two of them.
const LOOKS_BACK: SignedDuration = SignedDuration::from_hours(26);

/// After so many failures in a row, a conversation about which no model gives a usable answer is left until the person says something in
/// it again. Otherwise it would keep the whole memory from being tidied.
const GIVE_UP: u32 = 4;

/// What a synchronisation has done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = MemorySynced)]
pub struct Synced {
    /// The day that it belongs to, in the person's time zone.
    #[schema(value_type = String, format = Date)]
    pub date: Date,
    /// `skipped` if it has learned nothing, because nothing was new.
    pub result: SyncResult,
    /// The conversations that were active.
    pub sources: Vec<SyncedSource>,
    /// What the models have cost, in micro-dollars.
    pub cost_micros: i64,
}

/// Whether a synchronisation has learned something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SyncResult {
    Written,
    #[default]
    Skipped,
}

/// What a synchronisation has learned of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = MemorySyncedSource)]
pub struct SyncedSource {
    #[schema(value_type = String, example = "cht_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c")]
    pub source: Source,
    /// Why it has taught nothing. Absent if it was learned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Skip>,
    /// The block that it has written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_id: Option<BlockId>,
    /// How many facts it has taught.
    pub facts: usize,
    /// What the model has said and the program has not accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<Rejected>,
}

impl SyncedSource {
    fn skipped(source: &Source, skip: Skip) -> Self {
        Self { source: source.clone(), skipped: Some(skip), block_id: None, facts: 0, rejected: Vec::new() }
    }
}

/// Learns from all conversations that were active since the last synchronisation. `tally` says how many taught something new and how
/// many blocks were written, also if it fails.
pub(super) async fn day(
    cx: &Cx,
    owner: &Owner,
    claimed: &mut ClaimedJob<'_, MemoryKept>,
    (date, zone): (Date, &TimeZone),
    tally: &mut Outcome,
) -> Result<Synced, Unfinished> {
    let now = cx.clock.now();
    // Before the first synchronisation, what counts is when there was something to learn. It may have failed for days.
    let last = match claimed.job.synced_at {
        Some(at) => Some(at),
        None => cx.store.memory_due(owner).await?.map(|due| due.value.since),
    };
    let since = now - LOOKS_BACK;
    let since = last.map_or(since, |at| since.min(at - SignedDuration::from_hours(2)));
    let mut by_source: BTreeMap<Source, Vec<MemoryMark>> = BTreeMap::new();
    for mark in cx.store.active_conversations(owner).await? {
        if let Some(source) = sources::source_of(&mark.part.of) {
            by_source.entry(source.clone()).or_default().push(mark);
        }
    }
    let mut synced = Synced { date, ..Synced::default() };
    let mut known = None;
    let mut worker = Worker::new(cx, claimed.deadline())?;
    let mut failed = None;
    for (source, marks) in by_source {
        claimed.keep().await?;
        let found = one(cx, owner, (&mut worker, &mut known), &source, since, (date, zone)).await;
        tally.cost_micros = worker.budget.spent;
        let has_work = match &found {
            Ok(found) => found.as_ref().is_some_and(|found| found.block_id.is_some()),
            Err(_) => true,
        };
        tally.work_found += u64::from(has_work);
        let found = match found {
            Ok(found) => found,
            // There is no usable answer about this conversation. It does not hold up the others.
            Err(Unfinished::Unusable { reason }) if claimed.job.failures < GIVE_UP => {
                failed.get_or_insert(reason);
                continue;
            }
            Err(Unfinished::Unusable { reason }) => {
                tracing::warn!(reason, "nothing is learned from this state of a conversation");
                Some(SyncedSource::skipped(&source, Skip::Unreadable))
            }
            Err(error) => return Err(error),
        };
        for mark in &marks {
            cx.store.unmark_active(owner, mark).await?;
        }
        if let Some(found) = found {
            if found.block_id.is_some() {
                synced.result = SyncResult::Written;
                tally.artefacts += 1;
            }
            synced.sources.push(found);
        }
    }
    synced.cost_micros = worker.budget.spent;
    index::refresh(cx, owner).await?;
    index::clean(cx, owner).await?;
    if let Some(reason) = failed {
        return Err(Unfinished::Unusable { reason });
    }
    claimed.job.synced_at = Some(now);
    tracing::info!(
        conversations = synced.sources.len(),
        facts = synced.sources.iter().map(|source| source.facts).sum::<usize>(),
        cost_micros = synced.cost_micros,
        "a memory was synchronised"
    );
    Ok(synced)
}

/// Learns from one conversation. `None` if it does not exist any more.
async fn one(
    cx: &Cx,
    owner: &Owner,
    (worker, known): (&mut Worker, &mut Option<Known>),
    source: &Source,
    since: Timestamp,
    (date, zone): (Date, &TimeZone),
) -> Result<Option<SyncedSource>, Unfinished> {
    let forgotten = Forgotten::of(cx, owner).await?;
    let Some(session) = sources::session(cx, owner, source, &forgotten).await? else { return Ok(None) };
    let learned = cx.store.learned(owner, source).await?;
    let before = learned.as_ref().map_or(0, |learned| learned.version);
    let last = learned.as_ref().map(|learned| learned.value.fingerprint.as_str());
    let skipped = |skip| SyncedSource::skipped(source, skip);
    let fingerprint = match worth_learning(&session, last, since, cx.clock.now()) {
        Ok(fingerprint) => fingerprint,
        Err(skip) => return Ok(Some(skipped(skip))),
    };
    let all_known = match known {
        Some(known) => known,
        None => known.insert(Known::of(cx, owner).await?),
    };
    let up_to = learned.map(|learned| learned.value.at);
    let of = (&session, fingerprint, up_to);
    let lesson = learn::from(cx, owner, worker, all_known, of, (date, zone)).await?;
    let new = (&lesson.block, lesson.facts.as_slice());
    let replaced = replaced(cx, owner, &lesson.replaced).await?;
    let Some(replaced) = replaced else { return Err(Interrupted::Lost.into()) };
    if !cx.store.create_block(owner, new, replaced, before, cx.clock.uuid()).await?.done() {
        // Another synchronisation has learned from it meanwhile. If it has read another state, this one is left to do.
        let learned = cx.store.learned(owner, source).await?;
        if learned.is_none_or(|learned| learned.value.fingerprint != lesson.block.fingerprint) {
            return Err(Interrupted::Lost.into());
        }
        *known = None;
        return Ok(Some(skipped(Skip::Unchanged)));
    }
    Ok(Some(SyncedSource {
        source: source.clone(),
        skipped: None,
        block_id: Some(lesson.block.block_id),
        facts: lesson.facts.len(),
        rejected: lesson.rejected,
    }))
}

/// The copies as they are now, and the blocks that they belong to. `None` if one of them is no unconfirmed copy any more: the person has
/// just confirmed, corrected or deleted it.
async fn replaced(cx: &Cx, owner: &Owner, copies: &[Fact]) -> Result<Option<Replaced>> {
    let mut replaced = Replaced::default();
    for copy in copies {
        let found = cx.store.fact(owner, copy.fact_id).await?;
        let Some(found) = found.filter(|found| found.value.state == copy.state) else { return Ok(None) };
        replaced.facts.push(found);
    }
    let ids: BTreeSet<FactId> = copies.iter().map(|copy| copy.fact_id).collect();
    if !ids.is_empty() {
        let (open, archived) =
            futures::try_join!(cx.store.open_blocks(owner), cx.store.archived_blocks(owner, None))?;
        let has = |block: &Versioned<Block>| block.value.facts.iter().any(|id| ids.contains(id));
        for mut block in open.into_iter().chain(archived).filter(has) {
            block.value.facts.retain(|id| !ids.contains(id));
            replaced.blocks.push(block);
        }
    }
    Ok(Some(replaced))
}

/// Synchronises now, because a person or a client asks for it. The day counts as not yet synchronised, so its own time comes all the
/// same.
///
/// # Errors
/// 409 if the account is stopped or the memory is being brought up to date; an error of the models.
pub async fn now(cx: &Cx, owner: &Owner, deadline: Timestamp) -> Result<Synced> {
    let mut claimed = super::claim(cx, owner, deadline).await?;
    let zone = schedules::zone_of(cx, owner, None).await?;
    let date = zone.to_datetime(cx.clock.now()).date();
    let synced = day(cx, owner, &mut claimed, (date, &zone), &mut Outcome::default()).await;
    let synced = synced.map_err(Unfinished::into_error)?;
    claimed.give_back().await?;
    Ok(synced)
}
