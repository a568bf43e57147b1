//! The search: cards, then facts, then the messages themselves. It calls no model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::ids::{FactId, Owner};
use domain::memory::recall::RecalledKind;
use domain::memory::{Fact, FactState, Source};
use domain::validate::FieldErrors;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use memory::{Index, Kind, Layer, Query, Vector};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::forgotten::Forgotten;
use super::vectors::{self, QuestionVector};
use super::{health, index, known, schedules};
use crate::context::{Cx, Data};
use crate::error::Result;

/// The longest question, in characters.
const MAX_QUERY: usize = 1_000;

/// How many hits an answer has at most.
const MAX_HITS: usize = 100;

/// A hit that has found this much of what the question says is good enough, so that the search stops at its layer.
const ENOUGH: f32 = 0.6;

/// Where a search may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = MemoryDepth)]
pub enum Depth {
    /// Cards about work.
    Cards,
    /// Cards and facts.
    Memory,
    /// Cards, facts, and single messages.
    Raw,
}

/// What to search.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Asked {
    /// The question, 1 to 1,000 characters.
    #[param(min_length = 1, max_length = 1000)]
    pub q: String,
    /// At most so many hits, 1 to 100. Default: 10.
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<usize>,
    /// How deep to look. Without it, the search stops at the first of the three layers that has a good hit: cards, facts, messages.
    pub depth: Option<Depth>,
    /// Only this namespace. Without it: all of them. Empty: the person's own.
    #[param(max_length = 64)]
    pub namespace: Option<String>,
}

/// What was found.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = MemoryFound)]
pub struct Found {
    /// The best first.
    pub hits: Vec<HitView>,
    /// The deepest layer that was searched.
    pub stopped_at: Depth,
    /// What took part in the ranking: `words`, `speakers`, `dates`, `cues`, `vectors`.
    #[schema(value_type = Vec<String>, example = json!(["words", "dates"]))]
    pub layers: Vec<&'static str>,
}

/// A text that was found.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = MemoryHit)]
pub struct HitView {
    /// `card`, `memory` (a fact) or `raw` (a message).
    pub kind: RecalledKind,
    /// The id of the card, the fact or the message.
    #[serde(rename = "ref")]
    pub of: String,
    /// The conversation: of a message, or of the first message that a fact comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The message, or the first message that a fact comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The namespace. Absent for the person's own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Who has said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Date)]
    pub date: Option<Date>,
    /// When it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// How much of the question was found, from 0 to 1.
    pub score: f32,
    /// The text, perhaps cut.
    pub text: String,
    /// Of a fact: `current`, `unconfirmed` or `corrected`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    /// Of a corrected fact: the day of the correction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Date)]
    pub until: Option<Date>,
}

/// Searches the memory of an owner.
///
/// # Errors
/// 400 if the question is invalid.
pub async fn search(cx: &Cx, owner: &Owner, asked: &Asked) -> Result<Found> {
    let mut errors = FieldErrors::default();
    errors.length("q", &asked.q, 1, MAX_QUERY);
    let limit = asked.limit.unwrap_or(10);
    if !(1..=MAX_HITS).contains(&limit) {
        errors.add("limit", format!("must be 1 to {MAX_HITS}, is {limit}"));
    }
    errors.into_result(())?;
    let zone = schedules::zone_of(cx, owner, None).await?;
    let index = index::current(cx, owner).await?;
    let layers: &[Depth] = match asked.depth {
        Some(Depth::Cards) => &[Depth::Cards],
        Some(Depth::Memory) => &[Depth::Memory],
        Some(Depth::Raw) => &[Depth::Raw],
        None => &[Depth::Cards, Depth::Memory, Depth::Raw],
    };
    let vector = vectors::of_question(cx, owner, &index, &asked.q).await?;
    let mut found = None;
    for &depth in layers {
        let question = (asked.q.as_str(), vector.clone());
        let at = look(cx, index.clone(), question, (limit, depth), asked.namespace.clone(), &zone).await?;
        let is_enough = at.hits.first().is_some_and(|hit| hit.score >= ENOUGH);
        found = Some(at);
        if is_enough {
            break;
        }
    }
    let mut found = found.unwrap_or(Found { hits: Vec::new(), stopped_at: Depth::Raw, layers: Vec::new() });
    describe(cx, owner, &mut found.hits).await?;
    let facts = found.hits.iter().filter(|hit| hit.kind == RecalledKind::Memory);
    health::were_used(cx, owner, facts.filter_map(|hit| hit.of.parse().ok()).collect());
    Ok(found)
}

/// Searches the memory of an owner for a program that another agent uses. It is told no reply that was told what is deleted now.
///
/// # Errors
/// As [`search`].
pub async fn search_for_agent(cx: &Cx, owner: &Owner, asked: &Asked) -> Result<Found> {
    let mut found = search(cx, owner, asked).await?;
    leave_untold(cx, owner, &mut found.hits).await?;
    Ok(found)
}

/// One search of an index, not described yet.
pub(super) async fn look(
    cx: &Cx,
    index: Arc<Index>,
    (text, vector): (&str, Option<QuestionVector>),
    (limit, depth): (usize, Depth),
    namespace: Option<String>,
    zone: &TimeZone,
) -> Result<Found> {
    let (now, zone, text) = (cx.clock.now(), zone.clone(), text.to_owned());
    let work = move || {
        let kinds: &[Kind] = match depth {
            Depth::Cards => &[Kind::Card],
            Depth::Memory => &[Kind::Card, Kind::Memory],
            Depth::Raw => &[],
        };
        let query = Query {
            limit,
            kinds,
            namespace: namespace.as_deref(),
            me: Some("user"),
            you: Some("assistant"),
            vector: vector.as_ref().map(|(model, values)| Vector { model, values }),
            ..Query::new(&text, now, zone)
        };
        let answer = index.search(&query);
        let hits = answer.hits.iter().map(view).collect();
        let layers = answer.layers.iter().map(|layer| layer_name(*layer)).collect();
        Found { hits, stopped_at: depth, layers }
    };
    cx.compute.answers.run(move |_| Ok(work())).await
}

const fn layer_name(layer: Layer) -> &'static str {
    match layer {
        Layer::Words => "words",
        Layer::Speakers => "speakers",
        Layer::Dates => "dates",
        Layer::Cues => "cues",
        Layer::Vectors => "vectors",
    }
}

fn view(hit: &memory::Hit<'_>) -> HitView {
    let is_raw = hit.kind == Kind::Raw;
    HitView {
        kind: match hit.kind {
            Kind::Card => RecalledKind::Card,
            Kind::Memory => RecalledKind::Memory,
            Kind::Raw => RecalledKind::Raw,
        },
        of: hit.document.to_owned(),
        session_id: is_raw.then(|| hit.session.to_owned()),
        message_id: is_raw.then(|| hit.document.to_owned()),
        namespace: hit.namespace.to_owned(),
        speaker: is_raw.then(|| hit.speaker.to_owned()),
        date: hit.date,
        at: hit.time,
        score: hit.match_share,
        text: hit.text.to_owned(),
        state: None,
        until: hit.corrected_until,
    }
}

/// Adds where facts come from, and what has become of them.
pub(super) async fn describe(cx: &Cx, owner: &Owner, hits: &mut Vec<HitView>) -> Result<()> {
    let is_fact = |hit: &HitView| hit.kind == RecalledKind::Memory;
    let ids: Vec<FactId> =
        hits.iter().filter(|hit| is_fact(hit)).filter_map(|hit| hit.of.parse().ok()).collect();
    let facts: BTreeMap<String, Fact> =
        cx.store.facts(owner, &ids).await?.into_iter().map(|fact| (fact.fact_id.to_string(), fact)).collect();
    // A fact that was deleted since the index was read is not found any more.
    hits.retain(|hit| !is_fact(hit) || facts.contains_key(&hit.of));
    for hit in hits.iter_mut() {
        let Some(fact) = facts.get(&hit.of) else { continue };
        let first = fact.sources.first();
        hit.session_id = first.map(|quoted| quoted.source.to_string());
        hit.message_id = first.and_then(|quoted| quoted.message_ids.first().cloned());
        hit.date = Some(fact.date);
        (hit.state, hit.until) = match fact.state {
            FactState::Current => (Some("current"), None),
            FactState::Unconfirmed => (Some("unconfirmed"), None),
            FactState::Corrected { on, .. } => (Some("corrected"), Some(on)),
        };
    }
    Ok(())
}

/// Leaves out all replies that were told what is deleted now, for whatever reason: other agents are not told them.
///
/// # Errors
/// If the table does not answer.
async fn leave_untold(data: &Data, owner: &Owner, hits: &mut Vec<HitView>) -> Result<()> {
    let raw = hits.iter().filter(|hit| hit.kind == RecalledKind::Raw);
    let raw: Vec<(Source, &str)> =
        raw.filter_map(|hit| Some((hit.session_id.as_ref()?.parse().ok()?, hit.of.as_str()))).collect();
    if raw.is_empty() {
        return Ok(());
    }
    let forgotten = Forgotten::of(data, owner).await?;
    if !forgotten.has_marks() {
        return Ok(());
    }
    let stored = known::stored(data, owner, raw.into_iter()).await?;
    let told = stored.into_iter().filter(|stored| forgotten.was_told(&stored.message.told));
    let told: BTreeSet<String> = told.map(|stored| stored.message.message_id.to_string()).collect();
    hits.retain(|hit| hit.kind != RecalledKind::Raw || !told.contains(&hit.of));
    Ok(())
}
