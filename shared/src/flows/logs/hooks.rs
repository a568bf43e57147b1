//! What a coding assistant's hooks say goes into the logs. Nothing that a hook sends is an error to the assistant: what is
//! not taken is kept for a day, to be looked at.

use bytes::Bytes;
use domain::ids::{Owner, ProjectId};
use domain::log::hook::{self, Task};
use domain::log::{Entry, Hook, InstanceId, LogEvent, Refusal, SessionId, name};
use futures::FutureExt;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::write;
use crate::context::Cx;
use crate::flows::{edit, projects};
use crate::page::{self, PageQuery};
use crate::problem::{Error, Result};
use crate::store::Store;
use crate::store::logs::{GivenNames, Launch, RefusedHook};
use crate::store::table::Written;

/// How much of a refused payload is kept, in characters.
const EXCERPT: usize = 1_000;

/// What a hook's address says.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct HookQuery {
    /// The session, in place of the payload's `session_id`.
    pub session: Option<String>,
    /// The project; `default` where nothing else is said.
    pub project: Option<String>,
}

/// Why a hook is not taken: it is to blame, or we are.
enum Failure {
    Refused(Refusal),
    Ours(Error),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Ours(error)
    }
}

/// Takes a hook's payload. What is refused is no error.
///
/// # Errors
/// When the table or the bucket does not answer: then nothing is acknowledged, and the hook may be sent again.
pub async fn ingest(cx: &Cx, owner: &Owner, query: &HookQuery, body: &Bytes) -> Result<()> {
    match take(cx, owner, query, body).await {
        Ok(()) => Ok(()),
        Err(Failure::Ours(error)) => Err(error),
        Err(Failure::Refused(refusal)) => refuse(cx, owner, &refusal, body).await,
    }
}

/// Keeps what was not taken.
///
/// # Errors
/// When the table does not answer.
pub async fn refuse(cx: &Cx, owner: &Owner, refusal: &Refusal, body: &Bytes) -> Result<()> {
    let start = &body[..body.len().min(EXCERPT * 4)];
    let refused = RefusedHook {
        refused_at: cx.clock.now(),
        reason: refusal.to_string(),
        field: refusal.blames().map(str::to_owned),
        bytes: body.len() as u64,
        excerpt: String::from_utf8_lossy(start).chars().take(EXCERPT).collect(),
    };
    Ok(cx.store.refuse_hook(owner, cx.clock.uuid(), &refused).await?)
}

async fn take(cx: &Cx, owner: &Owner, query: &HookQuery, body: &[u8]) -> Result<(), Failure> {
    let (task, event, text) = match hook::parse(body, query.session.as_deref())? {
        Hook::Foreign => return Ok(()),
        Hook::Stopped { session, background, answer } => {
            return Ok(stopped(cx, owner, &session, &background, answer).await?);
        }
        Hook::Asked(task) => {
            let prompt = task.prompt.clone();
            (task, LogEvent::AgentStart, prompt)
        }
        Hook::Answered(task, answer) => (task, LogEvent::AgentComplete, answer),
        Hook::Launched(task, background) => {
            if wanted(cx, owner, query, &task).await?.is_some() {
                launched(cx, owner, &task, &background).await?;
            }
            return Ok(());
        }
    };
    let Some(project) = wanted(cx, owner, query, &task).await? else { return Ok(()) };
    let agent_id = instance(cx, owner, &task, event).await?;
    let once = task.call.as_deref().map(|call| once(event, call));
    let (instruction, output_summary) = match event {
        LogEvent::AgentStart => (Some(text), None),
        LogEvent::AgentComplete => (None, Some(text)),
    };
    let entry = Entry {
        event,
        agent_type: task.agent_type,
        agent_id,
        description: task.description,
        instruction,
        output_summary,
        session_id: task.session,
        timestamp: cx.clock.now(),
    };
    Ok(write(cx, owner, project, &entry, once.as_deref()).await?)
}

/// What names an event of a call within its session.
fn once(event: LogEvent, call: &str) -> String {
    format!("{} {call}", event.as_str())
}

/// The project of a hook, where the project takes it.
async fn wanted(
    cx: &Cx,
    owner: &Owner,
    query: &HookQuery,
    task: &Task,
) -> Result<Option<ProjectId>, Failure> {
    let unknown = || Refusal::field("project", "there is no such project");
    let id: ProjectId = match &query.project {
        None => ProjectId::DEFAULT,
        Some(text) => text.parse().map_err(|_| unknown())?,
    };
    match projects::load(cx, owner, id).await {
        Ok(project) => Ok(project.value.hook_filter.takes(&task.agent_type).then_some(id)),
        Err(Error::NotFound(_)) => Err(unknown().into()),
        Err(error) => Err(error.into()),
    }
}

/// Whose log a task goes to: the one that the assistant names, that of the question to which this is the answer, the one
/// that the prompt names, the assistant's own, or one that is named now.
async fn instance(cx: &Cx, owner: &Owner, task: &Task, event: LogEvent) -> Result<InstanceId> {
    if let Some(instance) = &task.instance {
        return Ok(instance.clone());
    }
    if let (LogEvent::AgentComplete, Some(call)) = (event, &task.call) {
        let question = once(LogEvent::AgentStart, call);
        if let Some(logged) = cx.store.logged_once(owner, &task.session, &question).await? {
            return Ok(logged.agent_id);
        }
    }
    match name::in_prompt(&task.prompt) {
        Some(instance) => Ok(instance),
        None if task.agent_type.is_empty() => Ok(InstanceId::main()),
        None => given_name(cx, owner, task).await,
    }
}

/// The name that a prompt without one has been given, or is given now.
async fn given_name(cx: &Cx, owner: &Owner, task: &Task) -> Result<InstanceId> {
    let fallback = name::Fallback::new(&task.session, &task.agent_type, &task.prompt);
    let mut taken = 0;
    for _ in 0..edit::TRIES {
        if let Some(given) = cx.store.given_name(owner, &task.session, &fallback.prompt).await? {
            return Ok(given.agent_id);
        }
        let found = cx.store.given_names(owner, &task.session, &fallback.hash).await?;
        let (mut names, read_at) = match found {
            Some(found) => (found.value, Some(found.version)),
            None => (GivenNames { first_seen: cx.clock.now(), number: 0 }, None),
        };
        names.number += 1 + taken;
        let name = fallback.name(names.first_seen, names.number, cx.clock.uuid());
        let given = (fallback.prompt.as_str(), &name);
        let of_hash = (fallback.hash.as_str(), &names, read_at);
        match cx.store.give_name(owner, &task.session, given, of_hash).await? {
            Written::Yes => return Ok(name),
            // An agent has chosen this very name: the next number.
            Written::Refused { first: 2 } => taken += 1,
            Written::Refused { .. } => {}
        }
    }
    Err(edit::contended())
}

/// An agent works in the background: its answer will come under the assistant's own id.
async fn launched(cx: &Cx, owner: &Owner, task: &Task, background: &str) -> Result<()> {
    let launch = Launch {
        agent_id: instance(cx, owner, task, LogEvent::AgentComplete).await?,
        agent_type: task.agent_type.clone(),
        description: task.description.clone(),
        call: task.call.clone(),
    };
    Ok(cx.store.put_launch(owner, &task.session, background, &launch, cx.clock.now()).await?)
}

/// The answer of an agent that works in the background. Agents that the assistant waits for stop too, and answer by their
/// own hook: what was not launched, and has no question open under this id, is passed over.
async fn stopped(
    cx: &Cx,
    owner: &Owner,
    session: &SessionId,
    background: &str,
    answer: String,
) -> Result<()> {
    let launch = cx.store.launch(owner, session, background).await?;
    let agent_id = match (&launch, background.parse::<InstanceId>()) {
        (Some(launch), _) => launch.agent_id.clone(),
        (None, Ok(instance)) => instance,
        (None, Err(_)) => return Ok(()),
    };
    let Some(head) = cx.store.log_head(owner, session, &agent_id).await? else { return Ok(()) };
    let head = head.value;
    let (agent_type, description, call) = match (launch, head.asked) {
        (Some(Launch { agent_type, description, call: Some(call), .. }), _) => {
            (agent_type, description, call)
        }
        // Without the call's id, the number of the question tells one answer from another.
        (Some(Launch { agent_type, description, call: None, .. }), Some(_)) => {
            (agent_type, description, format!("{background} {}", head.entries))
        }
        (None, Some(asked)) => (head.agent_type, asked, format!("{background} {}", head.entries)),
        (_, None) => return Ok(()),
    };
    let entry = Entry {
        event: LogEvent::AgentComplete,
        agent_type,
        agent_id,
        description,
        instruction: None,
        output_summary: Some(answer),
        session_id: session.clone(),
        timestamp: cx.clock.now(),
    };
    write(cx, owner, head.project_id, &entry, Some(&once(LogEvent::AgentComplete, &call))).await
}

/// A payload that was not taken.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RefusedView {
    pub refused_at: Timestamp,
    #[schema(example = "session_id: must be 1 to 128 of the characters A-Z a-z 0-9 _ -")]
    pub reason: String,
    /// The field that is to blame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Size of the payload.
    pub bytes: u64,
    /// Its first 1,000 characters.
    pub excerpt: String,
}

/// What was not taken in the last 24 hours.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RefusedHooks {
    /// How many were refused since yesterday began (UTC).
    pub count: u64,
    /// Newest first.
    pub data: Vec<RefusedView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    pub has_more: bool,
}

impl From<RefusedHook> for RefusedView {
    fn from(RefusedHook { refused_at, reason, field, bytes, excerpt }: RefusedHook) -> Self {
        Self { refused_at, reason, field, bytes, excerpt }
    }
}

/// # Errors
/// 400 for a limit or cursor that is none.
pub async fn refused(cx: &Cx, owner: &Owner, query: &PageQuery) -> Result<RefusedHooks> {
    let now = cx.clock.now();
    let newest = |after: Option<String>, limit| {
        async move { cx.store.refused_hooks(owner, after.as_deref(), limit).await }.boxed()
    };
    let keep = |hook: &RefusedHook| Store::is_kept(hook, now);
    let page = page::filtered(owner, "refused hooks", query, newest, keep).await?;
    let page = page.map(|refused| RefusedView::from(refused.value));
    let today = cx.store.refused_hooks_on(owner, now).await?;
    let yesterday = cx.store.refused_hooks_on(owner, now - SignedDuration::from_hours(24)).await?;
    Ok(RefusedHooks {
        count: today + yesterday,
        data: page.data,
        next_cursor: page.next_cursor,
        has_more: page.has_more,
    })
}
