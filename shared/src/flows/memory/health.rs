//! What is wrong with a memory: facts that say the same, facts whose conversations do not exist any more, and facts that nobody has used.
//!
//! A fact is used if a model is told it or a search finds it. The day of that is kept in the fact itself, and written at most once a day
//! and fact, while nobody waits for it. If a process ends before, the day is missing: so a fact may have been used, although nothing says it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::ids::{FactId, Owner};
use domain::memory::{Fact, Source};
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::cards;
use super::learn::SAME;
use crate::context::Cx;
use crate::error::Result;
use crate::store::Versioned;
use crate::store::keys;
use crate::store::table::{Extras, Write, item};

/// How many facts each list names at most.
const MOST_NAMED: usize = 50;

/// A fact that is younger had no time to be used.
const OLD: SignedDuration = SignedDuration::from_hours(30 * 24);

/// How many conversations are looked for at once.
const AT_ONCE: usize = 16;

/// Two texts are the same if this many of their fingerprints' numbers are. So two of them have one of any four in common.
const PROBES: usize = 4;

/// What is wrong with a memory.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = MemoryHealth)]
pub struct Health {
    /// How many facts there are, without those that were corrected.
    pub facts: usize,
    /// Those that say nearly the same as an earlier one.
    pub duplicates: Findings,
    /// Those whose conversations do not exist any more. That is no mistake: facts stay until they are deleted.
    pub orphans: Findings,
    /// Those older than 30 days that no search has found and no model was told.
    pub unused: Findings,
}

/// Some of the facts of a memory.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[schema(as = MemoryFindings)]
pub struct Findings {
    /// How many there are.
    pub count: usize,
    /// The newest of them, at most 50.
    pub facts: Vec<Finding>,
}

/// A fact of which something is wrong.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = MemoryFinding)]
pub struct Finding {
    /// The fact.
    pub fact_id: FactId,
    /// What it says.
    pub text: String,
    /// Of a duplicate: the earlier fact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub like: Option<FactId>,
}

impl Findings {
    /// The facts, oldest first, each perhaps with an earlier one.
    fn of(found: Vec<(&Fact, Option<FactId>)>) -> Self {
        let finding = |(fact, like): &(&Fact, Option<FactId>)| Finding {
            fact_id: fact.fact_id,
            text: fact.text.clone(),
            like: *like,
        };
        Self { count: found.len(), facts: found.iter().rev().take(MOST_NAMED).map(finding).collect() }
    }
}

/// Looks at all facts.
///
/// # Errors
/// If the table does not answer.
pub async fn health(cx: &Cx, owner: &Owner) -> Result<Health> {
    let mut facts = cx.store.all_facts(owner).await?;
    facts.retain(|fact| !matches!(fact.state, domain::memory::FactState::Corrected { .. }));
    let gone =
        gone(cx, owner, facts.iter().flat_map(|fact| &fact.sources).map(|quoted| &quoted.source)).await?;
    let now = cx.clock.now();
    // It compares many texts, so it does not hold up other requests.
    cx.compute.builds.run(move |_| Ok(examined(&facts, &gone, now))).await
}

fn examined(facts: &[Fact], gone: &BTreeSet<Source>, now: Timestamp) -> Health {
    let is_gone = |fact: &&Fact| {
        !fact.sources.is_empty() && fact.sources.iter().all(|quoted| gone.contains(&quoted.source))
    };
    let is_unused = |fact: &&Fact| fact.used_on.is_none() && now.duration_since(fact.created_at) > OLD;
    Health {
        facts: facts.len(),
        duplicates: Findings::of(duplicates(facts)),
        orphans: Findings::of(facts.iter().filter(is_gone).map(|fact| (fact, None)).collect()),
        unused: Findings::of(facts.iter().filter(is_unused).map(|fact| (fact, None)).collect()),
    }
}

/// The facts that say nearly the same as an earlier one of their namespace.
fn duplicates(facts: &[Fact]) -> Vec<(&Fact, Option<FactId>)> {
    let prints: Vec<_> = facts.iter().map(|fact| memory::fingerprint(&fact.text)).collect();
    let mut seen: HashMap<(usize, u32), Vec<usize>> = HashMap::new();
    let mut found = Vec::new();
    for (at, (fact, print)) in facts.iter().zip(&prints).enumerate() {
        let probes = (0..PROBES).map(|probe| (probe, print[probe]));
        let earlier = probes.clone().filter_map(|probe| seen.get(&probe)).flatten().copied();
        let is_same = |other: &usize| {
            facts[*other].namespace == fact.namespace && memory::similarity(&prints[*other], print) >= SAME
        };
        match earlier.filter(is_same).min() {
            // What is like it is also like the earlier one, nearly. So many copies of a text are not compared with each other.
            Some(other) => found.push((fact, Some(facts[other].fact_id))),
            None => probes.for_each(|probe| seen.entry(probe).or_default().push(at)),
        }
    }
    found
}

/// Those of the conversations that do not exist any more.
async fn gone(cx: &Cx, owner: &Owner, sources: impl Iterator<Item = &Source>) -> Result<BTreeSet<Source>> {
    let sources: BTreeSet<Source> = sources.cloned().collect();
    let look = |source: Source| async move {
        let exists = match &source {
            Source::Chat(id) => cx.store.chat(owner, *id).await?.is_some(),
            Source::Action(id) => cx.store.action(owner, *id).await?.is_some(),
            Source::Run(id) => cx.store.run(owner, *id).await?.is_some(),
            Source::Outside(name) => cx.store.outside_session(owner, name).await?.is_some(),
        };
        Ok::<_, crate::error::Error>((!exists).then_some(source))
    };
    let looked: Vec<Option<Source>> =
        stream::iter(sources.into_iter().map(look)).buffer_unordered(AT_ONCE).try_collect().await?;
    Ok(looked.into_iter().flatten().collect())
}

/// Notes that these facts were used today, while the caller goes on.
pub(super) fn were_used(cx: &Cx, owner: &Owner, facts: Vec<FactId>) {
    if facts.is_empty() {
        return;
    }
    let (cx, owner) = (cx.detached(), owner.clone());
    tokio::spawn(async move {
        if let Err(error) = note(&cx, &owner, &facts).await {
            tracing::warn!(cause = %error.causes(), "it is not known that facts were used");
        }
    });
}

async fn note(cx: &Cx, owner: &Owner, facts: &[FactId]) -> Result<()> {
    let today = cards::today(cx, owner).await?;
    let is_new = |fact: &Fact| fact.used_on.is_none_or(|day| day < today);
    let found: BTreeMap<FactId, Fact> =
        cx.store.facts(owner, facts).await?.into_iter().map(|fact| (fact.fact_id, fact)).collect();
    for id in found.into_values().filter(is_new).map(|fact| fact.fact_id) {
        let Some(Versioned { value, version }) = cx.store.fact(owner, id).await? else { continue };
        if is_new(&value) {
            let used = item(&Fact { used_on: Some(today), ..value }, &Extras::default())?;
            let key = keys::memory_fact(owner, id);
            // If it was changed meanwhile, its next use is noted.
            let _ = cx.store.write_all(vec![Write::Replace { key, version, item: used }]).await?;
        }
    }
    Ok(())
}
