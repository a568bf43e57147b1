//! Writes the events of a coding assistant's hooks to the logs. A hook never gets an error for its content. A payload
//! that is not accepted is kept for a day, so that people can look at it.

use std::collections::BTreeMap;

use bytes::Bytes;
use domain::ids::{Owner, ProjectId};
use domain::log::hook::{self, Stop, Task};
use domain::log::{Entry, Hook, InstanceId, LogEvent, Refusal, SessionId, name};
use domain::projects::Project;
use domain::validate::{TIME_LIMIT, is_sane};
use futures::FutureExt;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::write;
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::existing;
use crate::flows::page::{self, PageQuery};
use crate::store::keys::Guard;
use crate::store::logs::{EarlyStop, GivenNames, Launch, LogHead, RefusedHook};
use crate::store::table::Written;
use crate::store::{Once, Store, Tries};

/// How much of a refused payload is kept, in characters.
const EXCERPT: usize = 1_000;

/// The most agent types with dropped hooks that are listed.
const MAX_DROPPED: usize = 100;

/// How far the clock of a hook's machine may be ahead of ours.
const MAX_AHEAD: SignedDuration = SignedDuration::from_mins(5);

/// The query parameters of a hook's address.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct HookQuery {
    /// The session. It replaces the payload's `session_id`.
    #[serde(rename = "session_id", alias = "session")]
    pub session: Option<String>,
    /// The project. Default: `default`.
    #[serde(rename = "project_id", alias = "project")]
    pub project: Option<String>,
    /// When the event happened (RFC 3339), for a hook that is reported later. Default: when the hook arrives. If the
    /// value is not a valid time, or is more than 5 minutes ahead, it is listed under `/context/hooks/rejected`, and
    /// the time of arrival is used instead.
    #[param(example = "2026-11-21T09:00:00.250Z")]
    pub at: Option<String>,
}

/// Why a hook was not processed: its content is invalid, or our side failed.
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

/// Processes a hook's payload. A refused payload is not an error.
///
/// # Errors
/// If the table or the bucket does not answer. Then nothing is acknowledged, and the hook may be sent again.
pub async fn ingest(cx: &Cx, owner: &Owner, once: &Once, query: &HookQuery, body: &Bytes) -> Result<()> {
    let now = cx.clock.now();
    let at = match happened(query.at.as_deref(), now) {
        Ok(at) => at,
        Err(refusal) => {
            refuse(cx, owner, &refusal, body).await?;
            now
        }
    };
    match take(cx, owner, once, query, at, body).await {
        Ok(()) => Ok(()),
        Err(Failure::Ours(error)) => Err(error),
        Err(Failure::Refused(refusal)) => refuse(cx, owner, &refusal, body).await,
    }
}

/// Keeps a payload that was not accepted.
///
/// # Errors
/// If the table does not answer.
pub async fn refuse(cx: &Cx, owner: &Owner, refusal: &Refusal, body: &Bytes) -> Result<()> {
    let refused = refused_hook(cx.clock.now(), refusal, body);
    Ok(cx.store.refuse_hook(owner, cx.clock.uuid(), &refused).await?)
}

fn refused_hook(now: Timestamp, refusal: &Refusal, body: &[u8]) -> RefusedHook {
    let start = &body[..body.len().min(EXCERPT * 4)];
    RefusedHook {
        refused_at: now,
        reason: refusal.to_string(),
        field: refusal.blames().map(str::to_owned),
        bytes: body.len() as u64,
        excerpt: String::from_utf8_lossy(start).chars().take(EXCERPT).collect(),
    }
}

/// The time of a hook, from its address.
fn happened(at: Option<&str>, now: Timestamp) -> Result<Timestamp, Refusal> {
    let Some(text) = at else { return Ok(now) };
    let at: Timestamp = text.parse().map_err(|_| Refusal::field("at", "must be an RFC 3339 time"))?;
    if !is_sane(at) {
        return Err(Refusal::field("at", TIME_LIMIT));
    }
    if at > now + MAX_AHEAD {
        return Err(Refusal::field("at", format!("must not be in the future; the server's time is {now}")));
    }
    Ok(at)
}

async fn take(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    query: &HookQuery,
    at: Timestamp,
    body: &[u8],
) -> Result<(), Failure> {
    // Parsing four megabytes of small values takes a fifth of a second.
    let (owned, session) = (body.to_vec(), query.session.clone());
    let parse = move || Ok(hook::parse(&owned, session.as_deref()));
    let parsed = cx.compute.on_body(body.len(), parse).await??;
    let (task, event, text, background) = match parsed {
        Hook::Foreign => return Ok(()),
        Hook::Stopped(stop) => return stopped(cx, owner, once, query, at, &stop, body).await,
        Hook::Asked(task) => {
            let prompt = task.prompt.clone();
            (task, LogEvent::AgentStart, prompt, None)
        }
        Hook::Answered(task, answer) => (task, LogEvent::AgentComplete, answer.text, answer.background),
        Hook::Launched(task, background) => {
            if let Some(project) = wanted(cx, owner, query, &task.agent_type).await? {
                let agent_id = instance(cx, owner, &task, LogEvent::AgentComplete, at).await?;
                launched(cx, owner, once, project, &task, agent_id, &background).await?;
            }
            return Ok(());
        }
    };
    let Some(project) = wanted(cx, owner, query, &task.agent_type).await? else { return Ok(()) };
    let agent_id = instance(cx, owner, &task, event, at).await?;
    let name = task.call.as_deref().map(|call| line_name(event, call));
    let (instruction, output_summary) = match event {
        LogEvent::AgentStart => (Some(text), None),
        LogEvent::AgentComplete => (None, Some(text)),
    };
    let entry = Entry {
        event,
        agent_type: task.agent_type.clone(),
        agent_id: agent_id.clone(),
        description: task.description.clone(),
        instruction,
        output_summary,
        session_id: task.session.clone(),
        timestamp: at,
    };
    // The line of a call has a name, so it is safe to repeat, and what follows it must not be left out. So only a line
    // without a name marks the request as done.
    let repeatable = Once::none();
    let once = if name.is_some() { &repeatable } else { once };
    write(cx, owner, once, project, &entry, name.as_deref()).await?;
    if let Some(background) = background.filter(|_| task.call.is_some()) {
        launched(cx, owner, once, project, &task, agent_id, &background).await?;
    }
    Ok(())
}

/// The name of an event of a call, unique within its session.
fn line_name(event: LogEvent, call: &str) -> String {
    format!("{} {call}", event.as_str())
}

/// The project of a hook, if the project accepts it. Hooks that its filter drops are counted. Otherwise nobody could
/// see why there is nothing to read.
async fn wanted(
    cx: &Cx,
    owner: &Owner,
    query: &HookQuery,
    agent_type: &str,
) -> Result<Option<ProjectId>, Failure> {
    let project = project_of(cx, owner, query).await?;
    if project.hook_filter.takes(agent_type) {
        return Ok(Some(project.project_id));
    }
    cx.store.drop_hook(owner, cx.clock.now(), project.project_id, agent_type).await.map_err(Error::from)?;
    Ok(None)
}

async fn project_of(cx: &Cx, owner: &Owner, query: &HookQuery) -> Result<Project, Failure> {
    let unknown = || Refusal::field("project", "there is no such project");
    let id: ProjectId = match &query.project {
        None => ProjectId::DEFAULT,
        Some(text) => text.parse().map_err(|_| unknown())?,
    };
    match existing::project(cx, owner, id).await {
        Ok(project) => Ok(project.value),
        Err(Error::NotFound(_)) => Err(unknown().into()),
        Err(error) => Err(error.into()),
    }
}

/// The agent whose log gets a task's entry. In this order: the agent that the assistant names, the agent of the
/// question that this answers, the agent that the prompt names, the assistant itself (`main`) if there is no agent
/// type, and otherwise a generated name.
async fn instance(cx: &Cx, owner: &Owner, task: &Task, event: LogEvent, at: Timestamp) -> Result<InstanceId> {
    if let Some(instance) = &task.instance {
        return Ok(instance.clone());
    }
    if let (LogEvent::AgentComplete, Some(call)) = (event, &task.call) {
        let question = line_name(LogEvent::AgentStart, call);
        if let Some(logged) = cx.store.logged_once(owner, &task.session, &question).await? {
            return Ok(logged.agent_id);
        }
    }
    match name::in_prompt(&task.prompt) {
        Some(instance) => Ok(instance),
        None if task.agent_type.is_empty() => Ok(InstanceId::main()),
        None => given_name(cx, owner, task, at).await,
    }
}

/// The generated name for a prompt that names no agent. The same prompt keeps its name.
async fn given_name(cx: &Cx, owner: &Owner, task: &Task, at: Timestamp) -> Result<InstanceId> {
    let fallback = name::Fallback::new(&task.session, &task.agent_type, &task.prompt);
    let mut taken = 0;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        if let Some(given) = cx.store.given_name(owner, &task.session, &fallback.prompt).await? {
            return Ok(given.agent_id);
        }
        let found = cx.store.given_names(owner, &task.session, &fallback.hash).await?;
        let (mut names, read_at) = match found {
            Some(found) => (found.value, Some(found.version)),
            None => (GivenNames { first_seen: at, number: 0 }, None),
        };
        names.number = names.number.saturating_add(1 + taken);
        let name = fallback.name(names.first_seen, names.number, cx.clock.uuid());
        let given = (fallback.prompt.as_str(), &name);
        let of_hash = (fallback.hash.as_str(), &names, read_at);
        match cx.store.give_name(owner, &task.session, given, of_hash).await? {
            Written::Yes => return Ok(name),
            // An agent has chosen this very name itself. Try the next number.
            Written::Refused(Guard::LogHead) => taken += 1,
            Written::Refused(_) => {}
        }
    }
}

/// Records under which id of the assistant an agent was started. The agent's stop may be reported before or after this,
/// or at the same time. Both sides first write what they know and then look for the other, so at least one of them
/// finds both.
async fn launched(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    project: ProjectId,
    task: &Task,
    agent_id: InstanceId,
    background: &str,
) -> Result<()> {
    let session = &task.session;
    let launch = Launch {
        agent_id,
        agent_type: task.agent_type.clone(),
        description: task.description.clone(),
        call: task.call.clone(),
    };
    cx.store.put_launch(owner, session, background, &launch, cx.clock.now()).await?;
    let Some(early) = cx.store.early_stop(owner, session, background).await? else { return Ok(()) };
    completed(cx, owner, once, project, (session, background), &early.answer, early.at).await?;
    Ok(cx.store.forget_early_stop(owner, session, background, &early).await?)
}

/// Handles the stop of an agent. If its start has not been reported yet, the stop is kept and listed among the refused
/// hooks until that report. This is usual: an agent that the assistant waits for stops before its answer is reported.
async fn stopped(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    query: &HookQuery,
    at: Timestamp,
    stop: &Stop,
    body: &[u8],
) -> Result<(), Failure> {
    let Stop { session, background, agent_type, answer } = stop;
    let project = project_of(cx, owner, query).await?;
    let (id, whose) = (project.project_id, (session, background.as_str()));
    let is_wanted = agent_type.is_empty() || project.hook_filter.takes(agent_type);
    if completed(cx, owner, once, id, whose, answer, at).await? {
        return Ok(());
    }
    if !is_wanted {
        return Ok(cx.store.drop_hook(owner, cx.clock.now(), id, agent_type).await.map_err(Error::from)?);
    }
    let refusal = Refusal::field("agent_id", "no call of this agent has been reported yet");
    let now = cx.clock.now();
    let early = EarlyStop { answer: answer.clone(), at, refusal: cx.clock.uuid(), refused_at: now };
    let shown = refused_hook(now, &refusal, body);
    let kept = cx.store.keep_early_stop(owner, whose, &early, &shown).await.map_err(Error::from)?;
    if kept.done() && completed(cx, owner, once, id, whose, answer, at).await? {
        cx.store.forget_early_stop(owner, session, background, &early).await.map_err(Error::from)?;
    }
    Ok(())
}

/// Logs the answer of a stopped agent, once. Returns whether the agent is known.
async fn completed(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    project: ProjectId,
    (session, background): (&SessionId, &str),
    answer: &str,
    at: Timestamp,
) -> Result<bool> {
    let launch = cx.store.launch(owner, session, background).await?;
    let agent_id = match (&launch, background.parse::<InstanceId>()) {
        (Some(launch), _) => launch.agent_id.clone(),
        (None, Ok(instance)) => instance,
        (None, Err(_)) => return Ok(false),
    };
    let head = cx.store.log_head(owner, session, &agent_id).await?.map(|head| head.value);
    // Without a call id, the number of the question tells answers apart.
    let number = head.as_ref().map_or(0, |head| head.entries);
    let project = head.as_ref().map_or(project, |head| head.project_id);
    // The answer of a call is safe to repeat. The number of a question is not: another question may have followed.
    let repeatable = Once::none();
    let (agent_type, description, call, once) = match (launch, head) {
        (Some(Launch { agent_type, description, call: Some(call), .. }), _) => {
            (agent_type, description, call, &repeatable)
        }
        (Some(Launch { agent_type, description, call: None, .. }), head)
            if head.as_ref().is_none_or(|head| head.asked.is_some()) =>
        {
            (agent_type, description, format!("{background} {number}"), once)
        }
        (None, Some(LogHead { agent_type, asked: Some(asked), .. })) => {
            (agent_type, asked, format!("{background} {number}"), once)
        }
        // The answer is already logged.
        (_, Some(_)) => return Ok(true),
        (_, None) => return Ok(false),
    };
    let entry = Entry {
        event: LogEvent::AgentComplete,
        agent_type,
        agent_id,
        description,
        instruction: None,
        output_summary: Some(answer.to_owned()),
        session_id: session.clone(),
        timestamp: at,
    };
    write(cx, owner, once, project, &entry, Some(&line_name(LogEvent::AgentComplete, &call))).await?;
    Ok(true)
}

/// A payload that was not accepted.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RefusedView {
    pub refused_at: Timestamp,
    #[schema(example = "session_id: must be 1 to 128 of the characters A-Z a-z 0-9 _ -")]
    pub reason: String,
    /// The invalid field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The size of the payload.
    pub bytes: u64,
    /// Its first 1,000 characters.
    pub excerpt: String,
}

/// Hooks of one agent type that a project's filter dropped. Their content is not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct DroppedView {
    pub project_id: ProjectId,
    /// Empty for an agent without a type.
    #[schema(example = "Explore")]
    pub agent_type: String,
    pub count: u64,
    #[schema(example = "the hook_filter of the project does not take this agent type")]
    pub reason: &'static str,
}

/// What was not accepted in the last 24 hours.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RefusedHooks {
    /// How many payloads were refused since the beginning of yesterday (UTC).
    pub count: u64,
    /// How many hooks the filters of projects dropped since the beginning of yesterday (UTC), for up to 100 agent
    /// types.
    pub dropped: Vec<DroppedView>,
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

async fn dropped(cx: &Cx, owner: &Owner, now: Timestamp) -> Result<Vec<DroppedView>> {
    let days = [now, now - SignedDuration::from_hours(24)];
    let mut counts: BTreeMap<(ProjectId, String), u64> = BTreeMap::new();
    for hooks in cx.store.dropped_hooks(owner, &days, MAX_DROPPED).await? {
        *counts.entry((hooks.project_id, hooks.agent_type)).or_default() += hooks.count;
    }
    let reason = "the hook_filter of the project does not take this agent type";
    let view = |((project_id, agent_type), count)| DroppedView { project_id, agent_type, count, reason };
    Ok(counts.into_iter().map(view).collect())
}

/// # Errors
/// 400 if `limit` or `cursor` is invalid.
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
        dropped: dropped(cx, owner, now).await?,
        data: page.data,
        next_cursor: page.next_cursor,
        has_more: page.has_more,
    })
}
