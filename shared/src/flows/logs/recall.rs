//! What a hook of a coding assistant gets when a session or a sub-agent starts.

use std::collections::BTreeMap;

use domain::ids::{Owner, ProjectId};
use domain::log::recall::{self, Before, Known, KnownWorkflow, MAX_AGENTS, Workflows};
use domain::log::{InstanceId, SessionId};
use futures::future::try_join_all;
use serde::Serialize;
use utoipa::ToSchema;

use super::read::{self, Room};
use crate::context::Cx;
use crate::error::Result;
use crate::flows::projects::documents::{self, DocumentName};
use crate::store::logs::LogHead;
use crate::store::table::Order;

/// How many sessions are searched for agents, newest first.
const SESSIONS: usize = 10;

/// How many logs one query reads, and how many queries search for an agent that has just started.
const PAGE: usize = 200;
const PAGES: usize = 5;

/// How many context documents are read to find the workflows that were changed last. A document has at most 256 KiB.
const DOCUMENTS: usize = 50;

/// If several agents of one type are starting at once, each of them is told about all, up to this many.
const MAX_STARTING: usize = 3;

/// How many agents' last entries are read at once. One line may be as long as a request's body.
const AGENTS_AT_ONCE: usize = 4;

/// How many entries of an agent's own log are returned.
const LINES: u64 = 20;

/// How many entries of another agent's log are returned.
const LINES_OF_OTHERS: u64 = 4;

/// What starts.
#[derive(Clone, Debug)]
pub struct Starting {
    pub session: SessionId,
    /// The type of the sub-agent that starts. Without it, the session itself starts.
    pub agent_type: Option<String>,
    pub place: DocumentName,
}

/// The text for the model.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Recalled {
    /// At most 9,000 characters. Absent if nothing is known. Every line that somebody else wrote is quoted with `|`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

/// The earlier work, as a text for the model that starts.
///
/// # Errors
/// 404 if the project does not exist.
pub async fn recall(cx: &Cx, owner: &Owner, starting: &Starting) -> Result<Recalled> {
    let Starting { session, agent_type, place } = starting;
    let context = match agent_type {
        None => for_session(cx, owner, place).await?,
        Some(agent_type) => for_agent(cx, owner, place.project, session, agent_type).await?,
    };
    Ok(Recalled { context })
}

async fn for_session(cx: &Cx, owner: &Owner, place: &DocumentName) -> Result<Option<String>> {
    let document = documents::find(cx, owner, place).await?;
    let mut known: BTreeMap<InstanceId, Known> = BTreeMap::new();
    for head in recent(cx, owner, place.project).await? {
        let LogHead { agent_id, agent_type, last_at, asked, .. } = head;
        if agent_id == InstanceId::main() || agent_id.is_given() {
            continue;
        }
        let subject = asked.unwrap_or_default();
        let found = Known { agent_id: agent_id.clone(), agent_type, last_at, subject };
        let newest = known.entry(agent_id).or_insert_with(|| found.clone());
        if newest.last_at < found.last_at {
            *newest = found;
        }
    }
    let mut known: Vec<Known> = known.into_values().collect();
    known.sort_by_key(|known| std::cmp::Reverse(known.last_at));
    known.truncate(MAX_AGENTS);
    // For an agent that has answered, only its log says what it was asked.
    for some in known.chunks_mut(AGENTS_AT_ONCE) {
        let last =
            some.iter().map(|known| read::tail(cx, owner, Some(place.project), None, &known.agent_id, 1));
        let last = try_join_all(last.collect::<Vec<_>>()).await?;
        for (known, tail) in some.iter_mut().zip(last) {
            if let Some(last) = tail.entries.into_iter().next() {
                known.subject = last.entry.description;
            }
        }
    }
    let workflows = workflows(cx, owner, place.project).await?;
    let document = document.map(|document| document.markdown());
    Ok(recall::for_session(&known, &workflows, &place.workflow, document.as_deref()))
}

/// The workflows of a project that have a context document, the last changed first.
async fn workflows(cx: &Cx, owner: &Owner, project: ProjectId) -> Result<Workflows> {
    let found = cx.store.documents(owner, project, None, DOCUMENTS).await?;
    let documents = found.items.into_iter().map(|(_, found)| found.value);
    let mut known: Vec<KnownWorkflow> =
        documents.map(|stored| KnownWorkflow::new(stored.workflow, &stored.document)).collect();
    known.sort_by_key(|known| std::cmp::Reverse(known.updated_at));
    Ok(Workflows { known, has_more: found.last.is_some() })
}

/// The logs in the newest sessions of a project, the newest session first.
async fn recent(cx: &Cx, owner: &Owner, project: ProjectId) -> Result<Vec<LogHead>> {
    let sessions = cx.store.log_sessions(owner, None, SESSIONS, Order::Newest).await?;
    let heads = sessions
        .items
        .iter()
        .map(|(_, session)| cx.store.log_heads(owner, &session.value.session_id, None, PAGE));
    let found = try_join_all(heads.collect::<Vec<_>>()).await?;
    let heads = found.into_iter().flat_map(|found| found.items).map(|(_, head)| head.value);
    Ok(heads.filter(|head| head.project_id == project).collect())
}

/// The text for a sub-agent that starts. The assistant reports only the agent's type, not the call that started it.
/// Usually one agent of the type was asked and has not answered yet. If there are several, each one is told about all
/// and knows from its prompt which one it is.
async fn for_agent(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    session: &SessionId,
    agent_type: &str,
) -> Result<Option<String>> {
    let mut starting = Vec::new();
    let mut after: Option<String> = None;
    for _ in 0..PAGES {
        let found = cx.store.log_heads(owner, session, after.as_deref(), PAGE).await?;
        let heads = found.items.into_iter().map(|(_, head)| head.value);
        starting.extend(heads.filter(|head| head.agent_type == agent_type && head.asked.is_some()));
        after = found.last;
        if after.is_none() {
            break;
        }
    }
    starting.sort_by_key(|head| std::cmp::Reverse(head.last_at));
    starting.truncate(MAX_STARTING);
    let mut own = Vec::new();
    let agents = starting.len();
    for LogHead { agent_id, project_id, .. } in starting {
        let entries = read::earlier(
            cx,
            owner,
            Some(project_id),
            &agent_id,
            session,
            LINES,
            &mut Room::shared_by(agents),
        )
        .await?;
        own.push(Before { agent_id, entries });
    }
    if let Some(text) = recall::for_agent(&own) {
        return Ok(Some(text));
    }
    let mut others = Vec::new();
    for head in recent(cx, owner, project).await? {
        let is_other = head.agent_type == agent_type && head.session_id != *session;
        if is_other
            && others.len() < MAX_STARTING
            && others.iter().all(|other: &Before| other.agent_id != head.agent_id)
        {
            let room = &mut Room::shared_by(MAX_STARTING);
            let entries =
                read::earlier(cx, owner, Some(project), &head.agent_id, session, LINES_OF_OTHERS, room)
                    .await?;
            others.push(Before { agent_id: head.agent_id, entries });
        }
    }
    Ok(recall::for_type(agent_type, &others))
}
