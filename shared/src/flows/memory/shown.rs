//! What a person can read: days, weeks, the long-term memory and the archive, as JSON and as Markdown.

use std::collections::{BTreeMap, BTreeSet};

use domain::ids::{BlockId, FactId, Owner, TidyId};
use domain::memory::{Block, Fact, FactState, Line, LongTerm, Origin, Quoted, Source, Week, markdown};
use jiff::Timestamp;
use jiff::civil::Date;
use serde::Serialize;
use utoipa::ToSchema;

use crate::context::Data;
use crate::error::{Error, Result};
use crate::store::memory::{LongTermBy, MemoryKept};

/// What has become of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = FactStateName)]
pub enum StateName {
    Current,
    /// It waits until a person confirms it.
    Unconfirmed,
    /// It was true until another fact replaced it.
    Corrected,
}

/// A fact as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Fact)]
pub struct FactView {
    /// The id of the fact.
    pub fact_id: FactId,
    /// At most 500 bytes, in one line.
    pub text: String,
    /// Where it comes from. Empty if the person wrote it into memory.
    pub sources: Vec<Quoted>,
    /// Who says that it is true.
    pub origin: Origin,
    /// What has become of it.
    pub state: StateName,
    /// Of a corrected fact: the fact that replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<FactId>,
    /// Of a corrected fact: the day of the correction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Date)]
    pub on: Option<Date>,
    /// The day on which it was learned, in the person's time zone.
    #[schema(value_type = String, format = Date)]
    pub date: Date,
    /// When the newest of its messages was written.
    pub said_at: Timestamp,
    /// The block that it belongs to. Absent if the person wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_id: Option<BlockId>,
    /// The fact that it corrects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrects: Option<FactId>,
    /// The namespace of its source. Absent for the person's own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// When it was stored.
    pub created_at: Timestamp,
}

impl From<Fact> for FactView {
    fn from(fact: Fact) -> Self {
        let (state, by, on) = match fact.state {
            FactState::Current => (StateName::Current, None, None),
            FactState::Unconfirmed => (StateName::Unconfirmed, None, None),
            FactState::Corrected { by, on } => (StateName::Corrected, Some(by), Some(on)),
        };
        Self {
            fact_id: fact.fact_id,
            text: fact.text,
            sources: fact.sources,
            origin: fact.origin,
            state,
            by,
            on,
            date: fact.date,
            said_at: fact.said_at,
            block_id: fact.block_id,
            corrects: fact.corrects,
            namespace: fact.namespace,
            created_at: fact.created_at,
        }
    }
}

/// A day with what it has taught.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = MemoryDayEntry)]
pub struct DayEntry {
    #[schema(value_type = String, format = Date)]
    pub date: Date,
    /// How many conversations have taught something.
    pub blocks: usize,
    /// How many facts they have taught.
    pub facts: usize,
    /// Whether all of it is archived.
    pub archived: bool,
}

/// What the memory has, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = MemoryDays)]
pub struct Days {
    /// Newest first. Archived days are in the archive of their year.
    pub data: Vec<DayEntry>,
    /// The latest day that was synchronised.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Date)]
    pub synced: Option<Date>,
    /// The Monday of the latest week that was tidied.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Date)]
    pub tidied: Option<Date>,
    /// Why the last synchronisation or clean-up has failed. Absent if it has succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// What a conversation has taught.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = MemoryBlockView)]
pub struct BlockView {
    /// The id of the block.
    pub block_id: BlockId,
    #[schema(value_type = String, example = "cht_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c")]
    pub source: Source,
    pub title: String,
    /// The namespace of the conversation. Absent for the person's own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub created_at: Timestamp,
    /// The clean-up that has archived it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived_by: Option<TidyId>,
    /// What the conversation has taught.
    pub facts: Vec<FactView>,
}

/// A day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = MemoryDay)]
pub struct DayView {
    #[schema(value_type = String, format = Date)]
    pub date: Date,
    /// The conversations that have taught something.
    pub blocks: Vec<BlockView>,
}

/// A line with the facts that it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = MemoryLineView)]
pub struct LineView {
    /// The line.
    pub text: String,
    /// The facts that it comes from.
    pub facts: Vec<FactView>,
}

/// A part of the long-term memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = MemorySectionView)]
pub struct SectionView {
    /// Its heading. Empty for lines before the first heading.
    pub title: String,
    /// The person has written it. No clean-up changes it.
    pub by_hand: bool,
    pub lines: Vec<LineView>,
}

/// The long-term memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = LongTermMemoryView)]
pub struct LongTermView {
    /// 0 if nothing was ever written.
    pub version: u64,
    pub sections: Vec<SectionView>,
    /// As Markdown, at most 80 lines and 5,000 bytes.
    pub markdown: String,
    /// Who has changed it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<LongTermBy>,
    /// When it was changed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<Timestamp>,
}

/// A week.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = MemoryWeekView)]
pub struct WeekView {
    /// The Monday that the week begins with.
    #[schema(value_type = String, format = Date)]
    pub monday: Date,
    pub lines: Vec<LineView>,
    /// The clean-up that has written it.
    pub tidy_id: TidyId,
    pub created_at: Timestamp,
}

/// The archive of a year.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = MemoryArchive)]
pub struct ArchiveView {
    /// The year.
    pub year: i16,
    /// The archived days, newest first.
    pub days: Vec<DayEntry>,
    /// The Mondays of the weeks that have a summary, newest first.
    #[schema(value_type = Vec<String>)]
    pub weeks: Vec<Date>,
}

fn entries(blocks: impl IntoIterator<Item = Block>) -> Vec<DayEntry> {
    let mut days: BTreeMap<Date, DayEntry> = BTreeMap::new();
    // What is left of a conversation whose facts were all deleted.
    for block in blocks.into_iter().filter(|block| !block.facts.is_empty()) {
        let new = DayEntry { date: block.date, blocks: 0, facts: 0, archived: true };
        let day = days.entry(block.date).or_insert(new);
        day.blocks += 1;
        day.facts += block.facts.len();
        day.archived &= block.archived_by.is_some();
    }
    days.into_values().rev().collect()
}

/// The days that are not archived, newest first.
///
/// # Errors
/// If the table does not answer.
pub async fn days(data: &Data, owner: &Owner) -> Result<Days> {
    let (mut blocks, kept) =
        futures::try_join!(data.store.open_blocks(owner), data.store.memory_kept(owner))?;
    let open: BTreeSet<Date> = blocks.iter().map(|block| block.value.date).collect();
    // Some of these days may be archived in part.
    if let Some(first) = open.first() {
        blocks.extend(data.store.archived_blocks(owner, Some(*first)).await?);
    }
    let blocks = blocks.into_iter().map(|block| block.value).filter(|block| open.contains(&block.date));
    let MemoryKept { daily, weekly, failure, .. } = kept.value;
    Ok(Days { data: entries(blocks), synced: daily, tidied: weekly, failure })
}

/// A day, archived or not. A day that has taught nothing has no blocks.
///
/// # Errors
/// If the table does not answer.
pub async fn day(data: &Data, owner: &Owner, date: Date) -> Result<DayView> {
    let blocks = data.store.blocks_of(owner, date).await?;
    let ids = blocks.iter().flat_map(|block| block.facts.iter().copied());
    let facts = facts_by_id(data, owner, ids).await?;
    let view = |block: Block| BlockView {
        facts: views(&facts, &block.facts),
        block_id: block.block_id,
        source: block.source,
        title: block.title,
        namespace: block.namespace,
        created_at: block.created_at,
        archived_by: block.archived_by,
    };
    let views = blocks.into_iter().map(view).filter(|block| !block.facts.is_empty());
    Ok(DayView { date, blocks: views.collect() })
}

/// A day as Markdown.
///
/// # Errors
/// 404 if it has taught nothing.
pub async fn day_markdown(data: &Data, owner: &Owner, date: Date) -> Result<String> {
    let blocks = data.store.blocks_of(owner, date).await?;
    if blocks.is_empty() {
        return Err(Error::NotFound("day in the memory"));
    }
    blocks_markdown(data, owner, date, blocks).await
}

/// These blocks of a day as Markdown.
pub(super) async fn blocks_markdown(
    data: &Data,
    owner: &Owner,
    date: Date,
    blocks: impl IntoIterator<Item = Block>,
) -> Result<String> {
    let blocks: Vec<Block> = blocks.into_iter().collect();
    let facts = facts_by_id(data, owner, blocks.iter().flat_map(|block| block.facts.iter().copied())).await?;
    let of = |block: Block| {
        let of_block =
            block.facts.iter().filter_map(|id| facts.get(id)).filter(|fact| is_shown(fact)).cloned();
        let of_block: Vec<Fact> = of_block.collect();
        (block, of_block)
    };
    let all: Vec<(Block, Vec<Fact>)> = blocks.into_iter().map(of).collect();
    Ok(markdown::day(date, &all))
}

/// A corrected fact is history, not a part of a day any more.
fn is_shown(fact: &Fact) -> bool {
    !matches!(fact.state, FactState::Corrected { .. })
}

async fn facts_by_id(
    data: &Data,
    owner: &Owner,
    ids: impl IntoIterator<Item = FactId>,
) -> Result<BTreeMap<FactId, Fact>> {
    let ids: Vec<FactId> = ids.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    let found = data.store.facts(owner, &ids).await?;
    Ok(found.into_iter().map(|fact| (fact.fact_id, fact)).collect())
}

fn views(facts: &BTreeMap<FactId, Fact>, ids: &[FactId]) -> Vec<FactView> {
    ids.iter().filter_map(|id| facts.get(id)).cloned().map(FactView::from).collect()
}

fn line_views(facts: &BTreeMap<FactId, Fact>, lines: Vec<Line>) -> Vec<LineView> {
    lines.into_iter().map(|line| LineView { facts: views(facts, &line.facts), text: line.text }).collect()
}

/// The long-term memory; the empty one if nothing was ever written.
///
/// # Errors
/// If the table does not answer.
pub async fn long_term(data: &Data, owner: &Owner) -> Result<LongTermView> {
    let Some(found) = data.store.long_term(owner).await? else {
        return Ok(LongTermView {
            version: 0,
            sections: Vec::new(),
            markdown: markdown::long_term(&LongTerm::default()),
            changed_by: None,
            changed_at: None,
        });
    };
    let memory = found.value.memory;
    let facts = facts_by_id(data, owner, memory.facts()).await?;
    let text = markdown::long_term(&memory);
    let sections = memory.sections.into_iter().map(|section| SectionView {
        title: section.title,
        by_hand: section.by_hand,
        lines: line_views(&facts, section.lines),
    });
    Ok(LongTermView {
        version: found.version,
        sections: sections.collect(),
        markdown: text,
        changed_by: Some(found.value.by),
        changed_at: Some(found.value.at),
    })
}

/// The summary of the week that begins with this Monday, if there is one.
///
/// # Errors
/// If the table does not answer.
pub async fn week(data: &Data, owner: &Owner, monday: Date) -> Result<Option<(Week, WeekView)>> {
    let Some(week) = data.store.memory_week(owner, monday).await?.map(|week| week.value) else {
        return Ok(None);
    };
    let facts =
        facts_by_id(data, owner, week.lines.iter().flat_map(|line| line.facts.iter().copied())).await?;
    let view = WeekView {
        monday,
        lines: line_views(&facts, week.lines.clone()),
        tidy_id: week.tidy_id,
        created_at: week.created_at,
    };
    Ok(Some((week, view)))
}

/// The archived days of a year.
///
/// # Errors
/// If the table does not answer.
pub async fn archive(data: &Data, owner: &Owner, year: i16) -> Result<ArchiveView> {
    let first = Date::new(year, 1, 1).ok();
    let (blocks, weeks) =
        futures::try_join!(data.store.archived_blocks(owner, first), data.store.memory_weeks(owner))?;
    let of_year = blocks.into_iter().map(|block| block.value).filter(|block| block.date.year() == year);
    let weeks = weeks.into_iter().map(|week| week.value.monday).filter(|monday| monday.year() == year).rev();
    Ok(ArchiveView { year, days: entries(of_year), weeks: weeks.collect() })
}
