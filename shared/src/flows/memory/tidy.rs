//! The weekly clean-up: the facts of the week go into the long-term memory, which stays short, and the week gets a summary.
//!
//! All of it is one transaction: the new version of the long-term memory, the summary of the week, the record of the clean-up, and the
//! blocks, which move into the archive. A week with more blocks than a transaction can move has several clean-ups. So a crash leaves a
//! clean-up done or not begun, and so does a crash of a rollback.

use domain::background::jobs::Outcome;
use domain::ids::{FactId, Owner, TidyId};
use domain::memory::tidy::{self, LineChange};
use domain::memory::{Fact, LongTerm, MAX_LINES, Week};
use domain::models::{ModelTier, ToolSpec};
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan};
use serde::Serialize;
use utoipa::ToSchema;

use super::learn::Worker;
use super::{Unfinished, facts, schedules, vectors};
use crate::context::{Cx, Data};
use crate::error::{Error, Result};
use crate::flows::background::lease::ClaimedJob;
use crate::store::memory::{LongTermBy, LongTermRecord, MemoryKept, TidyRecord};
use crate::store::table::{Extras, Write, item};
use crate::store::{Store, Tries, Versioned, keys};

/// The most text that a model gets, in bytes.
const MAX_SHOWN: usize = 60_000;

/// How many blocks one clean-up takes at most. DynamoDB accepts a hundred writes together, and a block needs two.
const AT_ONCE: usize = 40;

/// How many versions of the long-term memory are kept.
const VERSIONS: usize = 60;

/// A clean-up of a week.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = MemoryTidy)]
pub struct TidyView {
    /// The id of the clean-up.
    pub tidy_id: TidyId,
    /// The Monday that the week begins with.
    #[schema(value_type = String, format = Date)]
    pub monday: Date,
    /// When it was done.
    pub at: Timestamp,
    /// How many blocks it has archived.
    pub blocks: u64,
    /// How many lines of the model the program has not accepted, or dropped because the memory was full.
    pub rejected: u64,
    /// What the models have cost, in micro-dollars.
    pub cost_micros: i64,
    /// What it has changed in the long-term memory. Absent if the earlier version is no longer kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<Vec<LineChange>>,
    /// When it was undone. Absent if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolled_back_at: Option<Timestamp>,
}

/// Tidies the week that begins with this Monday, and what is left of the weeks before it. Returns the last clean-up. `tally` says how many
/// blocks were found and how many clean-ups were written, also if it fails.
pub(super) async fn week(
    cx: &Cx,
    owner: &Owner,
    claimed: &mut ClaimedJob<'_, MemoryKept>,
    monday: Date,
    tally: &mut Outcome,
) -> Result<Option<TidyRecord>, Unfinished> {
    let mut worker = Worker::new(cx, claimed.deadline())?;
    let mut last = None;
    loop {
        let tidied = some(cx, owner, (claimed, &mut worker), monday, &mut tally.work_found).await;
        tally.cost_micros = worker.budget.spent;
        let Some(record) = tidied? else { break };
        tally.artefacts += 1;
        last = Some(record);
    }
    if last.is_some() {
        forget_versions(cx, owner).await?;
    }
    Ok(last)
}

/// One clean-up, of at most [`AT_ONCE`] blocks, the oldest first. `None` if nothing is left.
async fn some(
    cx: &Cx,
    owner: &Owner,
    (claimed, worker): (&mut ClaimedJob<'_, MemoryKept>, &mut Worker),
    monday: Date,
    blocks: &mut u64,
) -> Result<Option<TidyRecord>, Unfinished> {
    let sunday = monday.saturating_add(6.days());
    let spent = worker.budget.spent;
    let before = cx.store.long_term(owner).await?;
    let mut open = cx.store.open_blocks(owner).await?;
    open.retain(|block| block.value.date <= sunday);
    open.truncate(AT_ONCE);
    if open.is_empty() {
        return Ok(None);
    }
    *blocks += open.len() as u64;
    let ids: Vec<FactId> = open.iter().flat_map(|block| block.value.facts.iter().copied()).collect();
    let of_week: Vec<Fact> = cx.store.facts(owner, &ids).await?;
    let old = before.as_ref().map(|before| before.value.memory.clone()).unwrap_or_default();
    let known = facts::known(cx, owner, old.facts().chain(ids).collect()).await?;
    let new: Vec<Fact> = of_week.into_iter().filter(Fact::is_current).collect();
    let (memory, lines, rejected) = if new.is_empty() {
        (old.clone(), Vec::new(), 0)
    } else {
        let question = tidy::question(&old, &new, monday, MAX_SHOWN);
        let tool = ToolSpec {
            name: tidy::TOOL.to_owned(),
            description: tidy::tool_description().to_owned(),
            input_schema: tidy::tool_schema(),
        };
        let answer = worker.ask(cx, owner, ModelTier::Standard, (tidy::RULES, tool, question)).await?;
        let tidied = tidy::read(&answer, &known);
        let tidied = tidied.map_err(|error| Unfinished::Unusable { reason: error.to_string() })?;
        let (memory, dropped) = tidy::fit(tidy::merge(&old, tidied.sections, &known), &known);
        (memory, tidied.week, tidied.rejected.len() + dropped.len())
    };
    claimed.keep().await?;
    let now = cx.clock.now();
    let tidy_id = TidyId::from_uuid(cx.clock.uuid());
    let record = TidyRecord {
        tidy_id,
        monday,
        at: now,
        before: before.as_ref().map_or(0, |before| before.version),
        after: before.as_ref().map_or(1, |before| before.version + 1),
        blocks: open.len() as u64,
        rejected: rejected as u64,
        cost_micros: worker.budget.spent - spent,
        rolled_back_at: None,
    };
    let earlier = cx.store.memory_week(owner, monday).await?;
    let week_version = earlier.as_ref().map_or(0, |week| week.version);
    let week = Week {
        monday,
        // A block of a Sunday evening comes after the clean-up, and the next one adds it to its own week.
        lines: earlier.into_iter().flat_map(|week| week.value.lines).chain(lines).take(MAX_LINES).collect(),
        tidy_id,
        created_at: now,
    };
    let next = LongTermRecord { memory, by: LongTermBy::Tidy, tidy_id: Some(tidy_id), at: now };
    let mut writes = Store::long_term_writes(owner, before.as_ref(), &next)?;
    let plain = Extras::default();
    writes.push(Write::over(keys::memory_week(owner, monday), week_version, item(&week, &plain)?));
    writes.push(Write::Create { key: keys::memory_tidy(owner, tidy_id), item: item(&record, &plain)? });
    for block in open {
        writes.extend(Store::archive_writes(owner, block, tidy_id)?);
    }
    // While a model was asked, another executor may have begun, or a fact may have been deleted or corrected.
    writes.push(Write::Unchanged { key: keys::memory_kept(owner), version: claimed.version() });
    if !cx.store.write_all(writes).await?.done() {
        // Or a person has just changed the long-term memory. The next try reads all of it again.
        let reason = "the memory was changed meanwhile".to_owned();
        return Err(Unfinished::Failed { reason, again_at: Some(now) });
    }
    tracing::info!(
        blocks = record.blocks,
        rejected,
        cost_micros = record.cost_micros,
        "a week of memory was tidied"
    );
    Ok(Some(record))
}

/// Deletes the oldest versions of the long-term memory.
async fn forget_versions(cx: &Cx, owner: &Owner) -> Result<()> {
    let versions = cx.store.long_term_versions(owner).await?;
    for (number, _) in versions.iter().rev().skip(VERSIONS) {
        cx.store.delete(&keys::long_term_version(owner, *number)).await?;
    }
    Ok(())
}

/// Tidies now what is not archived yet, because a person asks for it. `None` if there is nothing.
///
/// # Errors
/// 409 if the account is stopped or the memory is being brought up to date; an error of the models.
pub async fn now(cx: &Cx, owner: &Owner, deadline: Timestamp) -> Result<Option<TidyView>> {
    let mut claimed = super::claim(cx, owner, deadline).await?;
    let zone = schedules::zone_of(cx, owner, None).await?;
    let monday = domain::memory::when::monday_of(zone.to_datetime(cx.clock.now()).date());
    let tidied = week(cx, owner, &mut claimed, monday, &mut Outcome::default()).await;
    let tidied = tidied.map_err(Unfinished::into_error)?;
    let embedded = vectors::weekly(cx, owner, &mut claimed).await;
    embedded.map_err(|error| Unfinished::Interrupted(error).into_error())?;
    claimed.give_back().await?;
    match tidied {
        None => Ok(None),
        Some(record) => view(cx, owner, record).await.map(Some),
    }
}

/// The clean-ups, newest first, at most `limit`.
///
/// # Errors
/// If the table does not answer.
pub async fn list(data: &Data, owner: &Owner, limit: usize) -> Result<Vec<TidyView>> {
    let mut views = Vec::new();
    for record in data.store.memory_tidies(owner).await?.into_iter().rev().take(limit) {
        views.push(view(data, owner, record).await?);
    }
    Ok(views)
}

async fn view(data: &Data, owner: &Owner, record: TidyRecord) -> Result<TidyView> {
    let TidyRecord { tidy_id, monday, at, before, after, blocks, rejected, cost_micros, rolled_back_at } =
        record;
    let (old, new) = (version(data, owner, before).await?, version(data, owner, after).await?);
    let diff = old.zip(new).map(|(old, new)| tidy::diff(&old, &new));
    Ok(TidyView { tidy_id, monday, at, blocks, rejected, cost_micros, diff, rolled_back_at })
}

/// A version of the long-term memory. 0 is the empty one.
async fn version(data: &Data, owner: &Owner, version: u64) -> Result<Option<LongTerm>> {
    if version == 0 {
        return Ok(Some(LongTerm::default()));
    }
    let current = data.store.long_term(owner).await?;
    if let Some(current) = current.filter(|current| current.version == version) {
        return Ok(Some(current.value.memory));
    }
    Ok(data.store.long_term_version(owner, version).await?.map(|found| found.value.memory))
}

/// Undoes a clean-up: the long-term memory becomes what it was before it, without what was deleted or corrected since. The summary of the
/// week goes, and its blocks leave the archive, so the next clean-up sees them again.
///
/// # Errors
/// 404 if it does not exist; 409 if it was undone, if a later one was not undone, or if its earlier version is no longer kept.
pub async fn roll_back(cx: &Cx, owner: &Owner, id: TidyId) -> Result<TidyView> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let tidies = cx.store.memory_tidies(owner).await?;
        let Versioned { value: record, version: record_version } =
            cx.store.memory_tidy(owner, id).await?.ok_or(Error::NotFound("clean-up"))?;
        if record.rolled_back_at.is_some() {
            return Err(Error::conflict("already_rolled_back", "this clean-up was undone already"));
        }
        let is_later = |other: &TidyRecord| other.tidy_id > id && other.rolled_back_at.is_none();
        if let Some(later) = tidies.iter().find(|other| is_later(other)) {
            let told = format!("undo the later one first: {}, of {}", later.tidy_id, later.at);
            return Err(Error::conflict("later_tidying", told));
        }
        // A fact that is deleted or corrected from here on refuses the transaction.
        let kept = cx.store.memory_kept(owner).await?;
        let before = version(cx, owner, record.before).await?;
        let before = before.ok_or_else(|| {
            Error::conflict("version_gone", "the memory before this clean-up is no longer kept")
        })?;
        let memory = facts::live(cx, owner, &before).await?;
        let now = cx.clock.now();
        let current = cx.store.long_term(owner).await?;
        let next = LongTermRecord { memory, by: LongTermBy::Rollback, tidy_id: Some(id), at: now };
        let rolled_back = TidyRecord { rolled_back_at: Some(now), ..record.clone() };
        let mut writes = Store::long_term_writes(owner, current.as_ref(), &next)?;
        writes.push(Write::Replace {
            key: keys::memory_tidy(owner, id),
            version: record_version,
            item: item(&rolled_back, &Extras::default())?,
        });
        if let Some(week) =
            cx.store.memory_week(owner, record.monday).await?.filter(|week| week.value.tidy_id == id)
        {
            let key = keys::memory_week(owner, week.value.monday);
            writes.push(Write::Remove { key, version: week.version });
        }
        let archived = cx.store.archived_blocks(owner, None).await?;
        for block in archived.into_iter().filter(|block| block.value.archived_by == Some(id)) {
            writes.extend(Store::unarchive_writes(owner, block)?);
        }
        let before = current.map(|current| current.value.memory).unwrap_or_default();
        writes.extend(facts::relisted(cx, owner, &before, &next.memory)?);
        writes.push(Store::memory_wakes_up(owner, now)?);
        writes.push(match kept.version {
            0 => Write::Absent { key: keys::memory_kept(owner) },
            version => Write::Unchanged { key: keys::memory_kept(owner), version },
        });
        if !cx.store.write_all(writes).await?.done() {
            continue;
        }
        return view(cx, owner, rolled_back).await;
    }
}
