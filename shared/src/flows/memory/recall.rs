//! What a model is told of memory before it answers.
//!
//! The long-term memory comes first, then what a search finds for the newest message or the task: cards, facts, messages. Facts that wait
//! for a confirmation are left out, and so is what was corrected, unless the question is about the past.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::actions::Action;
use domain::ids::{ActionId, AgentId, CardId, Owner, RunId};
use domain::memory::recall::{Recalled, RecalledKind, within_budget};
use domain::memory::{LongTerm, Source};
use domain::runs::Run;

use super::search::{Depth, HitView, describe, look};
use super::{health, index, schedules, vectors};
use crate::context::Cx;
use crate::error::{Error, Result};

/// How long a turn waits for its memory. After that, it begins without it.
const PATIENCE: Duration = Duration::from_secs(4);

/// The most bytes of the long-term memory in a prompt.
const MAX_LONG_TERM: usize = 2_400;

/// How many hits are recalled at most.
const MAX_HITS: usize = 12;

/// Hits that have found less of the question than this are left out.
const LEAST: f32 = 0.1;

/// The most bytes of a message in a prompt.
const MAX_TEXT: usize = 600;

/// The most bytes of a task or a message that are searched for.
const MAX_QUERY: usize = 2_000;

/// What matters for a message of the person. Nothing if memory does not answer in time: the conversation goes on without it.
/// `chat`: the conversation of the message, whose own messages the model gets anyway.
pub(crate) async fn about_message(
    cx: &Cx,
    owner: &Owner,
    message: &str,
    chat: Option<Source>,
    agent: AgentId,
) -> Vec<Recalled> {
    about(cx, owner, message, (Depth::Raw, chat, Some(agent))).await
}

/// What matters for a message to the theme agent: facts about the person, and cards that the person has written. It is no agent of the
/// person, so it is told nothing that agents have said.
pub async fn about_theme(cx: &Cx, owner: &Owner, message: &str) -> Vec<Recalled> {
    about(cx, owner, message, (Depth::Memory, None, None)).await
}

/// What matters for the task of an action. No messages: an agent's replies may repeat what strangers have written, and nobody is there
/// to notice.
pub(crate) async fn about_task(cx: &Cx, owner: &Owner, action: &Action) -> Vec<Recalled> {
    let task = format!("{}\n{}", action.title, action.task_config.instructions);
    about(cx, owner, &task, (Depth::Memory, Some(Source::Action(action.id)), Some(action.agent_id))).await
}

async fn about(
    cx: &Cx,
    owner: &Owner,
    text: &str,
    (depth, except, agent): (Depth, Option<Source>, Option<AgentId>),
) -> Vec<Recalled> {
    match tokio::time::timeout(PATIENCE, found(cx, owner, text, (depth, except, agent))).await {
        Ok(Ok(recalled)) => {
            // A line of the long-term memory may come from several facts.
            let facts = recalled.iter().filter(|one| one.kind == RecalledKind::Memory);
            let facts = facts.flat_map(|one| one.of.parse().ok().into_iter().chain(one.other_facts.clone()));
            health::were_used(cx, owner, facts.collect());
            recalled
        }
        Ok(Err(error)) => {
            tracing::warn!(cause = %error.causes(), "a turn begins without its memory");
            Vec::new()
        }
        Err(_) => {
            tracing::warn!("memory did not answer in time; a turn begins without it");
            Vec::new()
        }
    }
}

async fn found(
    cx: &Cx,
    owner: &Owner,
    text: &str,
    (depth, except, agent): (Depth, Option<Source>, Option<AgentId>),
) -> Result<Vec<Recalled>> {
    let text = &text[..text.floor_char_boundary(MAX_QUERY)];
    // A build that takes longer than this turn waits goes on, so that the next turn finds it done.
    let refreshed = {
        let (cx, owner) = (cx.detached(), owner.clone());
        tokio::spawn(async move { index::current(&cx, &owner).await })
    };
    let (long_term, index) = futures::try_join!(
        async { Ok(cx.store.long_term(owner).await?.map(|found| found.value.memory).unwrap_or_default()) },
        async { refreshed.await.map_err(|error| Error::internal(error.to_string()))? },
    )?;
    let mut recalled = of_long_term(&long_term);
    if !text.trim().is_empty() && !index.is_empty() {
        let zone = schedules::zone_of(cx, owner, None).await?;
        // Only the person's own: what outside sessions said stays in their namespaces.
        let namespace = Some(String::new());
        let vector = vectors::of_question(cx, owner, &index, text).await?;
        let mut found = look(cx, index, (text, vector), (MAX_HITS, depth), namespace, &zone).await?;
        // A run is told its last outputs anyway.
        let here = match &except {
            Some(Source::Action(action)) => Some(*action),
            _ => None,
        };
        let except = except.map(|source| source.to_string());
        let is_here = |hit: &HitView| hit.kind == RecalledKind::Raw && hit.session_id == except;
        found.hits.retain(|hit| hit.score >= LEAST && !is_here(hit));
        describe(cx, owner, &mut found.hits).await?;
        of_agent(cx, owner, &mut found.hits, (agent, here)).await?;
        were_found(&mut recalled, &found.hits);
        recalled.extend(of_hits(found.hits, &recalled));
    }
    Ok(within_budget(recalled))
}

/// Leaves what this agent has said and done. Facts are about the person, so all agents are told them. What outside sessions said is told to
/// no agent before the person has confirmed it.
async fn of_agent(
    cx: &Cx,
    owner: &Owner,
    hits: &mut Vec<HitView>,
    (agent, here): (Option<AgentId>, Option<ActionId>),
) -> Result<()> {
    let cards: BTreeSet<CardId> = (hits.iter())
        .filter(|hit| hit.kind == RecalledKind::Card)
        .filter_map(|hit| hit.of.parse().ok())
        .collect();
    let cards = cx.store.cards(owner, &cards.into_iter().collect::<Vec<_>>()).await?;
    let cards: BTreeMap<String, Option<Source>> =
        cards.into_iter().map(|card| (card.card_id.to_string(), card.source)).collect();
    let source = |hit: &HitView| match hit.kind {
        RecalledKind::Memory => None,
        RecalledKind::Raw => hit.session_id.as_deref().and_then(|source| source.parse().ok()),
        RecalledKind::Card => cards.get(&hit.of).cloned().flatten(),
    };
    let sources: Vec<Option<Source>> = hits.iter().map(source).collect();
    let runs: BTreeSet<RunId> = (sources.iter().flatten())
        .filter_map(|source| if let Source::Run(id) = source { Some(*id) } else { None })
        .collect();
    let runs = cx.store.runs(owner, &runs.into_iter().collect::<Vec<_>>()).await?;
    let runs: BTreeMap<RunId, Run> = runs.into_iter().map(|run| (run.run_id, run)).collect();
    // Several hits may come from one conversation.
    let cx = &cx.remembering();
    let mut kept = Vec::with_capacity(hits.len());
    for (hit, source) in hits.drain(..).zip(sources) {
        let of = match source {
            // A fact, or a card that the person or a client has written.
            None => hit.kind != RecalledKind::Raw,
            Some(Source::Chat(_) | Source::Action(_) | Source::Run(_)) if agent.is_none() => false,
            Some(Source::Chat(id)) => {
                cx.store.chat(owner, id).await?.is_some_and(|chat| chat.value.agent_id == agent)
            }
            Some(Source::Action(id)) => {
                cx.store.action(owner, id).await?.is_some_and(|action| Some(action.value.agent_id) == agent)
            }
            // The titles of its outputs may be what strangers want them to be.
            Some(Source::Run(id)) => runs.get(&id).is_some_and(|run| {
                run.agent_id == agent && run.tainted.is_none() && (here.is_none() || run.action_id != here)
            }),
            Some(Source::Outside(_)) => false,
        };
        if of {
            kept.push(hit);
        }
    }
    *hits = kept;
    Ok(())
}

fn of_long_term(memory: &LongTerm) -> Vec<Recalled> {
    let mut bytes = 0;
    let lines = memory.sections.iter().flat_map(|section| &section.lines);
    let fits = |text: &str| {
        bytes += text.len() + 20;
        bytes <= MAX_LONG_TERM
    };
    let mut fits = fits;
    lines
        .filter(|line| fits(&line.text))
        .filter_map(|line| {
            let (first, others) = line.facts.split_first()?;
            Some(Recalled {
                kind: RecalledKind::Memory,
                of: first.to_string(),
                source: None,
                date: None,
                until: None,
                other_facts: others.to_vec(),
                always: true,
                text: line.text.clone(),
            })
        })
        .collect()
}

/// Notes which lines of the long-term memory the search has found, too.
fn were_found(lines: &mut [Recalled], hits: &[HitView]) {
    let found: BTreeSet<&str> = hits.iter().map(|hit| hit.of.as_str()).collect();
    for line in lines {
        let mut others = line.other_facts.iter().map(ToString::to_string);
        line.always = !found.contains(line.of.as_str()) && !others.any(|fact| found.contains(fact.as_str()));
    }
}

/// The hits in their order: cards, facts, messages.
fn of_hits(mut hits: Vec<HitView>, known: &[Recalled]) -> Vec<Recalled> {
    let known: BTreeSet<&str> = known.iter().map(|one| one.of.as_str()).collect();
    // What was corrected is told only if the best fact is of the past. Then facts that are true now are left out: never both.
    let of_past =
        hits.iter().find(|hit| hit.kind == RecalledKind::Memory).is_some_and(|hit| hit.until.is_some());
    let is_old_message = |hit: &HitView| hit.kind == RecalledKind::Raw && hit.until.is_some();
    hits.retain(|hit| {
        !known.contains(hit.of.as_str())
            && hit.state != Some("unconfirmed")
            && (hit.kind != RecalledKind::Memory || hit.until.is_some() == of_past)
            && (of_past || !is_old_message(hit))
    });
    hits.sort_by_key(|hit| hit.kind);
    let recalled = |hit: HitView| Recalled {
        kind: hit.kind,
        of: hit.of,
        source: hit.session_id.and_then(|source| source.parse().ok()),
        date: hit.date,
        until: hit.until,
        other_facts: Vec::new(),
        always: false,
        text: hit.text[..hit.text.floor_char_boundary(MAX_TEXT)].to_owned(),
    };
    hits.into_iter().map(recalled).collect()
}
