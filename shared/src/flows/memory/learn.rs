//! What a model has learned of one conversation, checked by a program.

use domain::ids::{FactId, Owner};
use domain::memory::learn::{self, NewFact, Reason, Rejected};
use domain::memory::session::{Said, Session, live_branch};
use domain::memory::tombstone::{Tombstone, TombstoneKind, text_sha256};
use domain::memory::{Block, Fact, FactState, Origin, Quoted, Source, UNTITLED};
use domain::models::routing::{AgentRole, Ask};
use domain::models::{Message, ModelRequest, ModelTier, SystemBlock, ToolChoice, ToolSpec};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use models::Models;

use super::{MAX_MICROS, Unfinished};
use crate::context::Cx;
use crate::flows::ask::{self, Answered, WorkBudget};
use crate::model_choice;

/// The most text of a conversation that a model gets, in bytes.
const MAX_SHOWN: usize = 60_000;

/// The longest answer, in tokens.
const MAX_ANSWER: u32 = 2_000;

/// How many messages from before the new ones are shown too, so that the new ones can be understood.
const EARLIER: usize = 10;

/// How similar two facts are if they say the same: the share of their words that is equal.
pub(super) const SAME: f32 = 0.8;

/// What work on memory needs besides the context: the models, and what it has spent.
pub(super) struct Worker {
    models: Models,
    pub budget: WorkBudget,
    last_call: Timestamp,
}

impl Worker {
    pub fn new(cx: &Cx, deadline: Timestamp) -> Result<Self, Unfinished> {
        let call = jiff::SignedDuration::try_from(ask::CALL).unwrap_or_default();
        Ok(Self {
            models: ask::models(cx)?,
            budget: WorkBudget { name: "the ceiling of one day of memory", spent: 0, ceiling: MAX_MICROS },
            last_call: deadline - crate::flows::lease::RESERVE - call,
        })
    }

    /// Asks a model with one tool, and returns the arguments of its call.
    pub async fn ask(
        &mut self,
        cx: &Cx,
        owner: &Owner,
        tier: ModelTier,
        (rules, tool, question): (&'static str, ToolSpec, String),
    ) -> Result<serde_json::Value, Unfinished> {
        if cx.clock.now() > self.last_call {
            return Err(Unfinished::Interrupted(super::Interrupted::TimeUp));
        }
        let wish = Ask { role: AgentRole::Summarizer, tier: Some(tier), ..Ask::default() };
        let route = model_choice::route_of(&self.models, cx, owner, &wish, 0).await?;
        let route =
            route.map_err(|error| Unfinished::Failed { reason: error.to_string(), again_at: None })?;
        let request = ModelRequest {
            system: vec![SystemBlock::cached(rules, domain::models::CacheTtl::FiveMinutes)],
            tool_choice: ToolChoice::Tool(tool.name.clone()),
            tools: vec![tool],
            messages: vec![Message::user(question)],
            max_output_tokens: MAX_ANSWER,
            ..ModelRequest::default()
        };
        let answer =
            ask::ask(cx, owner, &route.candidates, &request, &mut self.budget, self.last_call).await?;
        match answer.answered {
            Answered::Call(arguments) => Ok(arguments),
            // A model without tools may answer with the arguments as text.
            Answered::Text(text) => serde_json::from_str(text.trim()).map_err(|_| Unfinished::Unusable {
                reason: format!("the answer of the model {} is unusable", answer.model),
            }),
        }
    }
}

/// What is known already, so that it is not learned twice and what was deleted stays away.
pub(super) struct Known {
    facts: Vec<[u32; 16]>,
    tombstones: Vec<Tombstone>,
}

impl Known {
    pub async fn of(cx: &Cx, owner: &Owner) -> Result<Self, crate::error::Error> {
        let (facts, tombstones) = futures::try_join!(cx.store.all_facts(owner), cx.store.tombstones(owner))?;
        let facts = facts.iter().map(|fact| memory::fingerprint(&fact.text)).collect();
        Ok(Self { facts, tombstones })
    }

    /// Why a fact is not stored.
    fn refuses(&self, text: &str, sources: &[Quoted]) -> Option<Reason> {
        let shingles = memory::fingerprint(text);
        let is_same = |other: &[u32; 16]| memory::similarity(&shingles, other) >= SAME;
        let sha = text_sha256(text);
        let is_away = |tombstone: &Tombstone| {
            tombstone.keeps_away(&sha, sources)
                || <[u32; 16]>::try_from(tombstone.shingles.as_slice()).is_ok_and(|it| is_same(&it))
        };
        if self.tombstones.iter().any(is_away) {
            return Some(Reason::Forgotten);
        }
        self.facts.iter().any(is_same).then_some(Reason::Known)
    }

    /// Whether a fact of this conversation was deleted.
    fn has_deleted_of(&self, source: &Source) -> bool {
        self.tombstones.iter().any(|tombstone| {
            tombstone.kind == TombstoneKind::Deleted
                && tombstone.sources.iter().any(|quoted| quoted.source == *source)
        })
    }

    fn add(&mut self, text: &str) {
        self.facts.push(memory::fingerprint(text));
    }
}

/// What a conversation has taught.
pub(super) struct Lesson {
    pub block: Block,
    pub facts: Vec<Fact>,
    pub rejected: Vec<Rejected>,
}

/// Asks a model about a conversation with this fingerprint. `since`: the messages up to this time were learned before.
pub(super) async fn from(
    cx: &Cx,
    owner: &Owner,
    worker: &mut Worker,
    known: &mut Known,
    (session, fingerprint, since): (&Session, String, Option<Timestamp>),
    (date, zone): (Date, &TimeZone),
) -> Result<Lesson, Unfinished> {
    let branch = live_branch(&session.messages);
    let first_new = since.map_or(0, |since| {
        branch.iter().position(|said| said.at.is_none_or(|at| at > since)).unwrap_or(branch.len())
    });
    let shown: &[&Said] = &branch[first_new.saturating_sub(EARLIER)..];
    let question = learn::question(session, shown, zone, MAX_SHOWN);
    let tool = ToolSpec {
        name: learn::TOOL.to_owned(),
        description: learn::tool_description().to_owned(),
        input_schema: learn::tool_schema(),
    };
    let answer = worker.ask(cx, owner, ModelTier::Fast, (learn::RULES, tool, question)).await?;
    let refuses = |fact: &NewFact| {
        let sources = [Quoted { source: session.source.clone(), message_ids: fact.message_ids.clone() }];
        let refused = known.refuses(&fact.text, &sources);
        if refused.is_none() {
            known.add(&fact.text);
        }
        refused
    };
    let learned = learn::read(&answer, session, shown, zone, refuses);
    let learned = learned.map_err(|error| Unfinished::Unusable { reason: error.to_string() })?;
    let now = cx.clock.now();
    let block_id = domain::memory::session::block_id(owner, &session.source, &fingerprint);
    let mut facts = Vec::new();
    for NewFact { text, message_ids, said_at } in learned.facts {
        let sources = vec![Quoted { source: session.source.clone(), message_ids }];
        // A person has not read what another program wrote in an outside session.
        let (origin, state) = match session.source {
            Source::Outside(_) => (Origin::Outside, FactState::Unconfirmed),
            _ => (Origin::Conversation, FactState::Current),
        };
        facts.push(Fact {
            fact_id: FactId::from_uuid(cx.clock.uuid()),
            text,
            sources,
            origin,
            state,
            date,
            said_at: said_at.unwrap_or(now),
            block_id: Some(block_id),
            corrects: None,
            used_on: None,
            namespace: session.namespace.clone(),
            created_at: now,
        });
    }
    let block = Block {
        block_id,
        date,
        source: session.source.clone(),
        title: if known.has_deleted_of(&session.source) { UNTITLED.to_owned() } else { learned.title },
        fingerprint,
        facts: facts.iter().map(|fact| fact.fact_id).collect(),
        namespace: session.namespace.clone(),
        created_at: now,
        archived_by: None,
    };
    Ok(Lesson { block, facts, rejected: learned.rejected })
}
