//! What a model has learned of one conversation, checked by a program.

use domain::ids::{FactId, Owner};
use domain::memory::learn::{self, NewFact, Reason, Rejected};
use domain::memory::session::{Said, Session, live_branch};
use domain::memory::tombstone::{Tombstone, TombstoneKind, text_sha256};
use domain::memory::{Block, Fact, FactState, MAX_SOURCES, Origin, Quoted, Source, UNTITLED};
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
            last_call: deadline - crate::flows::background::lease::RESERVE - call,
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
    facts: Vec<KnownFact>,
    tombstones: Vec<Tombstone>,
}

struct KnownFact {
    shingles: [u32; 16],
    namespace: String,
    /// It comes from an outside session, and nobody has confirmed it.
    copy: Option<Fact>,
}

impl KnownFact {
    fn of(fact: &Fact) -> Self {
        let is_copy = fact.origin == Origin::Outside && fact.state == FactState::Unconfirmed;
        Self {
            shingles: memory::fingerprint(&fact.text),
            namespace: fact.namespace.clone(),
            copy: is_copy.then(|| fact.clone()),
        }
    }
}

impl Known {
    pub async fn of(cx: &Cx, owner: &Owner) -> Result<Self, crate::error::Error> {
        let (facts, tombstones) = futures::try_join!(cx.store.all_facts(owner), cx.store.tombstones(owner))?;
        let facts = facts.iter().map(KnownFact::of).collect();
        Ok(Self { facts, tombstones })
    }

    /// The unconfirmed copies that a new fact of this conversation replaces, or why it is not stored. What the person says here is a
    /// better source than an outside session. What is known in the namespace of a program is not known to the person's agents.
    fn takes(&mut self, text: &str, sources: &[Quoted], session: &Session) -> Result<Vec<Fact>, Reason> {
        let shingles = memory::fingerprint(text);
        let is_same = |other: &[u32; 16]| memory::similarity(&shingles, other) >= SAME;
        let sha = text_sha256(text);
        let is_away = |tombstone: &Tombstone| {
            tombstone.keeps_away(&sha, sources)
                || <[u32; 16]>::try_from(tombstone.shingles.as_slice()).is_ok_and(|it| is_same(&it))
        };
        if self.tombstones.iter().any(is_away) {
            return Err(Reason::Forgotten);
        }
        let is_own = !matches!(session.source, Source::Outside(_));
        let concerns = |fact: &KnownFact| {
            (fact.namespace.is_empty() || fact.namespace == session.namespace) && is_same(&fact.shingles)
        };
        if self.facts.iter().any(|fact| concerns(fact) && !(is_own && fact.copy.is_some())) {
            return Err(Reason::Known);
        }
        let copies: Vec<KnownFact> = self.facts.extract_if(.., |fact| concerns(fact)).collect();
        let (shingles, namespace) = (shingles, session.namespace.clone());
        self.facts.push(KnownFact { shingles, namespace, copy: None });
        Ok(copies.into_iter().filter_map(|fact| fact.copy).collect())
    }

    /// Whether a fact of this conversation was deleted.
    fn has_deleted_of(&self, source: &Source) -> bool {
        self.tombstones.iter().any(|tombstone| {
            tombstone.kind == TombstoneKind::Deleted
                && tombstone.sources.iter().any(|quoted| quoted.source == *source)
        })
    }
}

/// What a conversation has taught.
pub(super) struct Lesson {
    pub block: Block,
    pub facts: Vec<Fact>,
    /// The unconfirmed copies that these facts replace.
    pub replaced: Vec<Fact>,
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
    // The copies that each new fact replaces, in the order of the facts.
    let mut copies: Vec<Vec<Fact>> = Vec::new();
    let refuses = |fact: &NewFact| {
        let sources = [Quoted { source: session.source.clone(), message_ids: fact.message_ids.clone() }];
        match known.takes(&fact.text, &sources, session) {
            Ok(replaced) => {
                copies.push(replaced);
                None
            }
            Err(reason) => Some(reason),
        }
    };
    let learned = learn::read(&answer, session, shown, zone, refuses);
    let learned = learned.map_err(|error| Unfinished::Unusable { reason: error.to_string() })?;
    let now = cx.clock.now();
    let block_id = domain::memory::session::block_id(owner, &session.source, &fingerprint);
    let mut facts = Vec::new();
    for (NewFact { text, message_ids, said_at }, copies) in learned.facts.into_iter().zip(&copies) {
        let mut sources = vec![Quoted { source: session.source.clone(), message_ids }];
        add_witnesses(&mut sources, copies);
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
    let replaced = copies.into_iter().flatten().collect();
    Ok(Lesson { block, facts, replaced, rejected: learned.rejected })
}

/// Adds the messages of copies as further evidence, as many as a fact may have.
fn add_witnesses(sources: &mut Vec<Quoted>, copies: &[Fact]) {
    let mut room =
        MAX_SOURCES - sources.iter().map(|quoted| quoted.message_ids.len()).sum::<usize>().min(MAX_SOURCES);
    for quoted in copies.iter().flat_map(|copy| &copy.sources) {
        let message_ids: Vec<String> = quoted.message_ids.iter().take(room).cloned().collect();
        room -= message_ids.len();
        if !message_ids.is_empty() {
            sources.push(Quoted { source: quoted.source.clone(), message_ids });
        }
    }
}
