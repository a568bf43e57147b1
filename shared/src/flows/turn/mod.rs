//! A turn: a person sends a message, and the agent streams a reply, calls tools and makes proposals.
//!
//! `begin` stores the run, the message and the first event in one transaction. From then on nothing is lost. A task of its own
//! writes the reply, so the client may disconnect and come back. If the process dies or its time is up, another process takes
//! the run over when the lease ends, and continues after the last stored step.

pub mod about_action;
pub mod completions;
mod conversation;
pub mod helpers;
mod kind;
mod older;

use std::time::Duration;

use domain::accounts::quota::Charge;
use domain::agent_loop::{Outcome, Purpose, Reply, Step};
use domain::agents::Agent;
use domain::background::attempts;
use domain::chats::ChatMessage;
use domain::chats::conversation::{MAX_MESSAGE, READY, said as words_of};
use domain::ids::{ChatId, Owner, ProposalId, RunId};
use domain::memory::Source;
use domain::memory::recall::Recalled;
use domain::memory::told::Told;
use domain::models::image::{self, ImageInput};
use domain::models::{Block, Message, Role, StopReason};
use domain::notices::waits;
use domain::runs::form::{JsonForm, ReplyForm};
use domain::runs::{EventKind, Run, RunError, RunEvent, RunKind, RunState};
use domain::validate::FieldErrors;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::json;
use tracing::Instrument;
use utoipa::ToSchema;

use super::background::due;
use super::memory::{recall, told};
use super::messages::images as pictures;
use super::runs::Begun;
use super::{messages, runs};
use crate::agent_loop::journal::Journal;
use crate::agent_loop::recorder::{self, Recorder, lease_from};
use crate::agent_loop::{Driver, PUT_DOWN_BEFORE, Rest, shortened};
use crate::context::{ChangedBy, Cx};
use crate::error::{Error, Result};
use crate::money::alerts;
use crate::money::quota::Quota;
use crate::request::Invocation;
use crate::request::path_for_client;
use crate::stopped;
use crate::store::chats::threads::LiveTurn;
use crate::store::keys::Guard;
use crate::store::runs::CancelCause;
use crate::store::table::{Write, Written};
use crate::store::{DueItem, Once, Store, Tries, Versioned};

use conversation::Conversation;
pub use conversation::{Planned, Topic};
use kind::Turn;
pub use kind::asks_of_chat;

/// With `if_busy: queue` or `interrupt`: how long a turn tries to begin while other turns hold the conversation.
const BUSY_FOR: SignedDuration = SignedDuration::from_secs(120);

/// How often a queued turn checks whether the conversation is free.
const QUEUE_LOOK: Duration = Duration::from_millis(250);

/// A person's message.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(example = json!({"message": "Write a one-page brief about our three competitors"}))]
pub struct TurnInput {
    /// The conversation to continue. Without it, a new one begins.
    #[serde(default)]
    pub chat_id: Option<ChatId>,
    /// 1 to 32,000 characters.
    #[serde(default)]
    #[schema(required = true, min_length = 1, max_length = 32_000)]
    pub message: String,
    /// Images for the model to look at: up to 8, together at most 3,000,000 bytes before the encoding. A model that can't read
    /// an image is told that it is missing.
    #[serde(default)]
    pub images: Vec<ImageInput>,
    /// What to do if a turn of this conversation is under way.
    #[serde(default)]
    pub if_busy: IfBusy,
}

/// What to do if a turn of the conversation is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfBusy {
    /// 409 `turn_in_progress`, with the id of the live run.
    #[default]
    Reject,
    /// Waits until the live turn has ended, for at most two minutes.
    Queue,
    /// Cancels the live turn and begins. 409 if other turns still hold the conversation after two minutes.
    Interrupt,
}

/// What a person says, and where.
pub struct Said {
    pub topic: Topic,
    pub message: String,
    pub images: Vec<ImageInput>,
    pub if_busy: IfBusy,
    /// The form of the reply.
    pub form: ReplyForm,
}

/// Begins a turn with an agent, or a turn of the conversation that sets an agent up. This process drives the turn until its
/// invocation is nearly over.
///
/// # Errors
/// 404 if the agent, chat or action does not exist; 400 if the message is empty or too long; 409 if the account is stopped, if the agent
/// is archived, or if a turn of the conversation is under way.
pub async fn start(cx: &Cx, owner: &Owner, once: &Once, said: Said, invocation: Invocation) -> Result<Begun> {
    let turn = begin(cx, owner, once, said, Recalls::Ahead, invocation).await?;
    let run_id = turn.recorder.run().run_id;
    // A task of its own, which continues even if the client disconnects.
    tokio::spawn(drive(turn).instrument(tracing::info_span!("turn", run_id = %run_id)));
    Ok(Begun::Here(run_id))
}

/// Begins a turn that an executor drives, for a process that has no time or no rights to do it. Nothing is recalled for it ahead: the
/// index of the memory may be out of this process's reach.
///
/// # Errors
/// As [`start`].
pub async fn hand_on(cx: &Cx, owner: &Owner, once: &Once, said: Said) -> Result<()> {
    let invocation = Invocation { deadline: Timestamp::MAX };
    let turn = Box::pin(begin(cx, owner, once, said, Recalls::Not, invocation)).await?;
    Box::pin(end(turn, Rest::PutDown)).await
}

/// A reply that no model has written.
pub struct Answered {
    pub text: String,
    /// Earlier proposals that the reply shows again.
    pub shows: Vec<ProposalId>,
}

impl From<String> for Answered {
    fn from(text: String) -> Self {
        Self { text, shows: Vec::new() }
    }
}

/// A turn whose reply no model writes: once the message is stored, `reply` does what the message asks for and says what it has
/// done. If this process dies in between, another one lets the model answer the message.
///
/// # Errors
/// As [`start`]; and if the reply can't be stored.
pub async fn answer(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    said: Said,
    invocation: Invocation,
    reply: impl Future<Output = Answered> + Send,
) -> Result<Begun> {
    let mut turn = Box::pin(begin(cx, owner, once, said, Recalls::Ahead, invocation)).await?;
    let run_id = turn.recorder.run().run_id;
    let Answered { text, shows } = reply.await;
    turn.recorder.text(&text).await?;
    let run = turn.recorder.run_mut();
    run.message.clone_from(&text);
    run.proposals = shows;
    // The run that proposed them has already noted that they wait.
    turn.kind.proposes = false;
    let reply = Reply { blocks: vec![Block::text(text.as_str())], text, ..Reply::default() };
    turn.transcript.steps.push(Step { purpose: Purpose::Work, reply, results: Vec::new() });
    Box::pin(end(turn, Rest::Ended(Outcome::completed()))).await?;
    Ok(Begun::Here(run_id))
}

/// # Errors
/// 400 if the message is empty or too long.
pub(super) fn check(field: &str, message: &str) -> Result<()> {
    let mut errors = FieldErrors::default();
    errors.length(field, message, 1, MAX_MESSAGE);
    Ok(errors.into_result(())?)
}

/// Whether the memory is asked about a message before its turn begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Recalls {
    Ahead,
    Not,
}

/// What is recalled about a message.
async fn recalled(cx: &Cx, owner: &Owner, said: &Said) -> Vec<Recalled> {
    match &said.topic {
        Topic::Setup(_) => Vec::new(),
        Topic::Theme(planned) => planned.recalled.clone(),
        &Topic::Agent(agent, chat) => {
            recall::about_message(cx, owner, &said.message, chat.map(Source::Chat), agent).await
        }
        &Topic::Action(id) => match cx.store.action(owner, id).await {
            Ok(Some(action)) => {
                let (here, agent) = (Some(Source::Action(id)), action.value.agent_id);
                recall::about_message(cx, owner, &said.message, here, agent).await
            }
            // The turn itself finds out what is wrong.
            Ok(None) | Err(_) => Vec::new(),
        },
    }
}

async fn begin(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    said: Said,
    recalls: Recalls,
    invocation: Invocation,
) -> Result<Driver<Turn>> {
    let mut errors = FieldErrors::default();
    errors.length("message", &said.message, 1, MAX_MESSAGE);
    let images = image::read_all(&mut errors, "images", &said.images);
    errors.into_result(())?;
    let give_up = (cx.clock.now() + BUSY_FOR).min(invocation.deadline - PUT_DOWN_BEFORE);
    // Counts the writes that were refused although the conversation looked free.
    let mut tries = Tries::default();
    tries.next().await?;
    // The version of the mark, if a turn that has ended has left it.
    let mut left = 0;
    stopped::check(cx, owner).await?;
    let recalled = async {
        match recalls {
            Recalls::Ahead => recalled(cx, owner, &said).await,
            Recalls::Not => Vec::new(),
        }
    };
    let (quota, recalled) = futures::join!(Quota::of(cx, owner), recalled);
    let quota = quota?;
    let mut charge = Charge::Included;
    loop {
        let (agent, conversation, mut writes) =
            Conversation::find(cx, owner, &said.topic, &said.message).await?;
        let agent_id = agent.as_ref().map(|agent| agent.agent_id);
        let now = cx.clock.now();
        let run_id = RunId::from_uuid(cx.clock.uuid());
        let planned = if let Topic::Theme(planned) = &said.topic { Some(planned) } else { None };
        let kind = match (&agent, planned) {
            (_, Some(_)) => RunKind::Theme,
            (Some(_), None) => RunKind::Chat,
            (None, None) => RunKind::Setup,
        };
        let run = Run {
            theme: planned.map(|planned| Box::new(planned.turn.clone())),
            agent_id,
            chat_id: conversation.chat_id(),
            action_id: conversation.action_id(),
            charge,
            form: said.form.clone(),
            recalled: recalled.clone(),
            ..Run::begun(run_id, kind, now, lease_from(now))
        };
        let mut data = json!({"run_id": run.run_id, "kind": run.kind, "agent_id": agent_id});
        match &conversation {
            Conversation::Chat(chat) => data["chat_id"] = json!(chat.chat_id),
            Conversation::Action(action) => data["action_id"] = json!(action.id),
        }
        if let Some(turn) = &run.theme {
            data["theme"] = json!(turn);
        }
        let started = RunEvent::new(1, EventKind::RunStarted, now, data);
        let words = words_of(&said.message, images.clone());
        let words = messages::new(cx, Role::User, words, Some(run.run_id));
        let thread = conversation.thread();
        writes.push(Store::hold_thread(owner, thread, run_id, left)?);
        writes.push(Store::run_write(owner, &run)?);
        writes.push(Store::run_listed_write(owner, &run)?);
        writes.push(Store::event_write(owner, run.run_id, &started)?);
        let told = planned.into_iter().flat_map(|planned| told_ahead(cx, planned, run.run_id));
        let said_and_told = [words.clone()].into_iter().chain(told).collect();
        writes.extend(messages::writes(cx, owner, thread, said_and_told).await?);
        writes.extend(quota.write(owner, charge));
        let written = cx.store.commit_run(once, writes, run_id, now).await?;
        if matches!(written, Written::Refused(_)) {
            pictures::discard(cx, owner, thread, &words).await;
        }
        match written {
            Written::Yes => {
                let run = Versioned { value: run, version: 1 };
                let recorder = Recorder::new(cx.clone(), owner.clone(), run, 1);
                let journal = (Journal::new(run_id, 0), Vec::new());
                return Ok(driver(cx, (agent, conversation), recorder, journal, invocation.deadline));
            }
            Written::Refused(Guard::Conversation) => {
                left = match free(cx, owner, thread, said.if_busy, give_up).await? {
                    Some(version) => {
                        tries.next().await?;
                        version
                    }
                    None => 0,
                };
            }
            Written::Refused(Guard::Quota) => {
                tries.next().await?;
                charge = quota.beyond().map_err(Error::QuotaExceeded)?;
            }
            // A turn of the conversation has just ended, or the conversation or its agent was deleted after it was read.
            Written::Refused(_) => tries.next().await?,
        }
    }
}

/// What a turn of the theme agent is told with the person's message. It is stored as messages, so that later turns begin with the same bytes. What
/// it is told of memory is a message of its own, which loses its words if the person deletes one of the facts.
fn told_ahead(cx: &Cx, planned: &Planned, run: RunId) -> Vec<ChatMessage> {
    let message = |text: &str| messages::of_turn(cx, Message::user(text), run);
    let mut ahead = vec![message(&planned.briefing)];
    if !planned.recalled.is_empty() {
        let mut told = Told::default();
        told.add(&planned.recalled);
        ahead.push(ChatMessage { told, ..message(&domain::memory::recall::block(&planned.recalled)) });
    }
    ahead
}

/// Makes the conversation free for a new turn. Returns the version of the conversation's mark if a turn that has ended left it:
/// then the mark may be replaced. `None` if a turn was under way: then check again.
///
/// # Errors
/// 409 if a turn is under way and `if_busy` is `reject`, or `give_up` has passed.
async fn free(
    cx: &Cx,
    owner: &Owner,
    thread: domain::chats::Thread,
    if_busy: IfBusy,
    give_up: Timestamp,
) -> Result<Option<u64>> {
    let Some(Versioned { value: LiveTurn { run_id }, version }) = cx.store.live_turn(owner, thread).await?
    else {
        return Ok(Some(0));
    };
    let waits = match cx.store.run(owner, run_id).await? {
        Some(found) if !found.value.state.has_ended() => found.value.state == RunState::Waiting,
        // The turn has ended, or its record has expired.
        _ => return Ok(Some(version)),
    };
    let may_wait = cx.clock.now() < give_up;
    match if_busy {
        IfBusy::Interrupt if may_wait => {
            runs::cancel(cx, owner, None, run_id).await?;
        }
        IfBusy::Queue if may_wait => tokio::time::sleep(QUEUE_LOOK).await,
        IfBusy::Interrupt | IfBusy::Queue | IfBusy::Reject => {
            let message = if waits {
                let path = path_for_client(&format!("/runs/{run_id}"));
                format!(
                    "a turn of this conversation waits for an answer about its calls; see the `cards` of {path}"
                )
            } else {
                let path = path_for_client(&format!("/runs/{run_id}/events"));
                format!("a turn of this conversation is under way; follow it at {path}")
            };
            return Err(Error::conflict_with("turn_in_progress", message, &json!({ "run_id": run_id })));
        }
    }
    Ok(None)
}

/// Writes the reply, then ends the run or hands it on.
async fn drive(mut turn: Driver<Turn>) {
    let rest = turn.drive().await;
    let run_id = turn.recorder.run().run_id;
    if let Err(error) = end(turn, rest).await {
        tracing::error!(%run_id, cause = %error.causes(), "the end of a turn could not be stored; its lease will end");
    }
}

/// A turn or a rehearsal that this process may take over, because no process has it. `None` if there is nothing to do, or if it was
/// ended here: somebody has cancelled it, or too many processes have died with it.
///
/// # Errors
/// If the table does not answer. Then the item is delivered again.
pub async fn to_take_over(cx: &Cx, owner: &Owner, id: RunId) -> Result<Option<Versioned<Run>>> {
    let Some(found) = cx.store.run(owner, id).await? else { return Ok(None) };
    let now = cx.clock.now();
    if found.value.answer_by().is_some_and(|until| until <= now) {
        not_answered(cx, owner, found).await?;
        return Ok(None);
    }
    let is_held = !found.value.lease().is_over(now);
    if found.value.state.is_final() || found.value.kind == RunKind::Action || is_held {
        return Ok(None);
    }
    let (cause, account) =
        tokio::try_join!(cx.store.cancel_cause_of(owner, &found.value), cx.store.account(owner))?;
    if let Some(cause) = cause.or(account.value.stop.map(|_| CancelCause::AccountStopped)) {
        recorder::end_without_executor(cx, owner, found, RunState::Cancelled, cause.error()).await?;
        return Ok(None);
    }
    let takeovers = u32::try_from(found.value.fence).unwrap_or(u32::MAX);
    if let Some(times) = attempts::used_up(found.value.attempts, takeovers) {
        let error = RunError {
            code: "interrupted".to_owned(),
            detail: format!("the process that wrote this reply was killed {times} times"),
            retryable: true,
        };
        recorder::end_without_executor(cx, owner, found, RunState::Failed, Some(error)).await?;
        return Ok(None);
    }
    Ok(Some(found))
}

/// Continues a turn whose lease has ended, because its process died or put the turn down.
///
/// # Errors
/// If the table does not answer. Then the item is delivered again.
pub async fn take_over(cx: &Cx, owner: &Owner, found: Versioned<Run>, deadline: Timestamp) -> Result<()> {
    let id = found.value.run_id;
    let of = match Box::pin(Conversation::of(cx, owner, &found.value)).await {
        Ok(of) => of,
        Err(Error::NotFound(what)) => {
            let detail = format!("the {what} of this turn was deleted");
            let error = RunError { code: "not_found".to_owned(), detail, retryable: false };
            recorder::end_without_executor(cx, owner, found, RunState::Failed, Some(error)).await?;
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let fence = found.value.fence + 1;
    let (journal, steps) = Journal::load(cx, owner, id, fence, None).await?;
    let is_complete = steps.last().is_none_or(|s| s.results.len() == s.reply.calls.len());
    let claimed = Box::pin(claim(cx, owner, found, journal.last() + u32::from(is_complete))).await?;
    let Some(recorder) = claimed else { return Ok(()) };
    let turn = driver(cx, of, recorder, (journal, steps), deadline);
    Box::pin(drive(turn)).instrument(tracing::info_span!("turn", run_id = %id)).await;
    Ok(())
}

fn driver(
    cx: &Cx,
    (agent, conversation): (Option<Agent>, Conversation),
    recorder: Recorder,
    steps: (Journal, Vec<Step>),
    deadline: Timestamp,
) -> Driver<Turn> {
    let turn = Turn::new(agent, conversation);
    let terms = turn.terms(cx, recorder.run());
    Driver::new(cx, cx.remembering(), (turn, terms), recorder, steps, deadline)
}

/// Ends a turn that waited for a person and got no answer in time.
async fn not_answered(cx: &Cx, owner: &Owner, found: Versioned<Run>) -> Result<()> {
    let (code, detail) = match &found.value.open_call {
        Some(open) => ("effect_unknown", open.unknown()),
        None => {
            ("unanswered", "a call waited for a person's approval, and nobody answered in time".to_owned())
        }
    };
    let error = RunError { code: code.to_owned(), detail, retryable: false };
    recorder::end_without_executor(cx, owner, found, RunState::Failed, Some(error)).await?;
    Ok(())
}

/// Raises the fence and stores an event that says from which event on the text is void. `None` if another process was faster.
///
/// # Errors
/// If the table does not answer.
pub async fn claim(cx: &Cx, owner: &Owner, found: Versioned<Run>, step: u32) -> Result<Option<Recorder>> {
    let id = found.value.run_id;
    loop {
        let Some(Versioned { value: mut run, version }) = cx.store.run(owner, id).await? else {
            return Ok(None);
        };
        if version != found.version {
            return Ok(None);
        }
        let (last, stored) =
            tokio::try_join!(cx.store.last_event_id(owner, id), cx.store.last_stored_event(owner, id))?;
        // The first event says that the run began. All text is stored before a run waits for a person.
        let stored = stored.max(run.waited).max(1);
        let settle = recorder::settle_left(cx, owner, &mut run, stored).await?;
        run.fence += 1;
        run.attempts += 1;
        let now = cx.clock.now();
        run.lease_until = lease_from(now);
        let data = json!({"step": step, "void_from": stored + 1});
        let event = RunEvent::new(last + 1, EventKind::StepRestarted, now, data);
        let mut writes =
            vec![Store::replace_run_write(owner, &run, version)?, Store::event_write(owner, id, &event)?];
        writes.extend(settle);
        match cx.store.write_all(writes).await? {
            Written::Yes => {
                tracing::info!(run_id = %id, fence = run.fence, step, "a turn is taken over");
                let run = Versioned { value: run, version: version + 1 };
                return Ok(Some(Recorder::new(cx.clone(), owner.clone(), run, last + 1)));
            }
            // The former process has written one more event. Try again.
            Written::Refused(Guard::RunEvent) => {}
            Written::Refused(_) => return Ok(None),
        }
    }
}

/// Puts a run down, and calls an executor that goes on with it.
///
/// # Errors
/// If it can't be stored. Then its lease ends by itself.
pub async fn put_down(cx: &Cx, mut recorder: Recorder) -> Result<()> {
    recorder.run_mut().attempts = 0;
    recorder.put_down().await?;
    // The recorder still exists: an environment that is about to end waits until this message is sent.
    due::dispatch(cx, &DueItem::run(recorder.owner(), recorder.run().run_id)).await;
    Ok(())
}

/// Ends the run, and stores the messages of the reply and the agent's cost with it. Hands a run on that is put down.
async fn end(turn: Driver<Turn>, rest: Rest) -> Result<()> {
    let Driver { cx, kind, mut recorder, transcript, .. } = turn;
    let owner = recorder.owner().clone();
    let (state, error) = match rest {
        Rest::Lost => return Ok(()),
        Rest::PutDown => return put_down(&cx, recorder).await,
        Rest::Waits { events, reason, .. } => {
            let run = recorder.run();
            let waits = waits::turn(run.run_id, run.action_id, kind.who(), &reason.text);
            let waits = Store::waits_write(&owner, waits, cx.clock.now())?;
            return recorder.wait(&events, vec![waits]).await;
        }
        Rest::Cancelled(cause) => (RunState::Cancelled, cause.error()),
        Rest::Failed(error) => (RunState::Failed, Some(error)),
        Rest::Ended(Outcome::Completed { .. } | Outcome::NothingNew { .. }) => (RunState::Completed, None),
        Rest::Ended(Outcome::Failed { code, detail }) => {
            (RunState::Failed, Some(RunError { code: code.to_owned(), detail, retryable: false }))
        }
        Rest::Ended(Outcome::Waiting { reason }) => {
            let error = RunError { code: "waiting".to_owned(), detail: reason.text, retryable: false };
            (RunState::Failed, Some(error))
        }
    };
    let last = transcript.steps.iter().rfind(|step| step.purpose == Purpose::Work).map(|step| &step.reply);
    let is_cut =
        last.is_some_and(|last| matches!(last.stop, StopReason::MaxTokens | StopReason::ContextWindow));
    recorder.run_mut().cut_off |= is_cut;
    let (mut state, mut error) = (state, error);
    if let (RunState::Completed, Some(json)) = (state, recorder.run().form.json.clone()) {
        match formed(&json, last, recorder.run()) {
            Ok(text) => recorder.run_mut().message = text,
            Err(invalid) => (state, error) = (RunState::Failed, Some(invalid)),
        }
    }
    if let (Some(turn), Some(leads)) = (&recorder.run().theme, cx.leads())
        && (leads.has_edited)(&transcript.steps)
    {
        let (run, project, planned) = (recorder.run().run_id, turn.project_id, Some(turn.change_set_id));
        let by = ChangedBy { run, project, planned };
        if let Some((event, _)) = (leads.changed)(cx.clone(), owner.clone(), by).await? {
            recorder.event(EventKind::ThemeChanged, event).await?;
        }
    }
    let run = recorder.run();
    let (run_id, run_kind, cost) = (run.run_id, run.kind, run.cost_micros);
    let may_add = run.form.is_free();
    if state == RunState::Completed && may_add && run.message.is_empty() && !run.proposals.is_empty() {
        let text = READY.to_owned();
        recorder.run_mut().message.clone_from(&text);
        recorder.text(&text).await?;
    }
    // Only complete exchanges are stored: models refuse a conversation in which a call has no result.
    let mut more: Vec<Write> = Vec::new();
    let thread = kind.conversation.thread();
    if state == RunState::Completed {
        let told = told::of_run(&cx, &owner, recorder.run(), kind.conversation.shown(), kind.forgotten.get())
            .await?;
        let said = kept(transcript.history()).into_iter();
        let said = said
            .map(|said| ChatMessage { told: told.clone(), ..messages::of_turn(&cx, said, run_id) })
            .collect();
        more.extend(messages::writes(&cx, &owner, thread, said).await?);
        more.push(kind.conversation.ends_turn(&owner));
        let run = recorder.run();
        if kind.proposes && !run.proposals.is_empty() {
            let waits = waits::proposals(run_id, run.action_id, kind.who());
            more.push(Store::waits_write(&owner, waits, cx.clock.now())?);
        }
    }
    if state == RunState::Cancelled && may_add {
        // What the person has read stays, also for the model. Its calls go, because they have no results.
        let text = recorder.text_so_far();
        if !text.is_empty() {
            let told =
                told::of_run(&cx, &owner, recorder.run(), kind.conversation.shown(), kind.forgotten.get())
                    .await?;
            let said = messages::new(&cx, Role::Assistant, vec![Block::text(text.as_str())], Some(run_id));
            let said = ChatMessage { told, ..said };
            more.extend(messages::writes(&cx, &owner, thread, vec![said]).await?);
            more.push(kind.conversation.ends_turn(&owner));
            recorder.run_mut().message = shortened(text);
        }
    }
    if let Some(agent) = kind.agent.as_ref().filter(|_| cost > 0) {
        more.push(Store::count(&owner, agent.agent_id, vec![("cost_micros", cost)]));
    }
    if !recorder.finish(state, error, more).await? {
        // The conversation was deleted meanwhile, so the late reply is deleted too.
        kind.conversation.sweep(&cx, &owner).await?;
    }
    if cost > 0 {
        alerts::check(&cx, &owner, run_kind).await;
    }
    Ok(())
}

/// The most messages of a turn that its conversation keeps. They are stored in one transaction with the end of the run, and DynamoDB accepts
/// a hundred writes in it.
const MAX_KEPT: usize = 60;

/// The messages of a turn as its conversation keeps them. Of a long turn, the calls and results of the oldest steps are left out, and what
/// the model said there stays.
fn kept(said: Vec<Message>) -> Vec<Message> {
    if said.len() <= MAX_KEPT {
        return said;
    }
    // A call and its result stay together, so what is kept begins with a message of the model.
    let is_reply = |at: &usize| said[*at].role == Role::Assistant;
    let from = (said.len() - MAX_KEPT + 1..said.len()).find(is_reply).unwrap_or(said.len());
    let replies = said[..from].iter().filter(|message| message.role == Role::Assistant);
    let words = replies.flat_map(|message| message.content.iter().filter_map(Block::as_text));
    let words: Vec<&str> = words.map(str::trim).filter(|text| !text.is_empty()).collect();
    let first = (!words.is_empty())
        .then(|| Message { role: Role::Assistant, content: vec![Block::text(words.join("\n\n"))] });
    first.into_iter().chain(said[from..].iter().cloned()).collect()
}

/// The reply of a run that must be JSON: the text of its last step. A reply that was cut off stays as it is.
fn formed(json: &JsonForm, last: Option<&Reply>, run: &Run) -> Result<String, RunError> {
    let text = last.map(|last| last.text.trim()).unwrap_or_default();
    let refused =
        |detail: String, retryable| RunError { code: "reply_invalid".to_owned(), detail, retryable };
    if text.len() > recorder::MAX_PIECE {
        let detail =
            format!("the reply has {} bytes; JSON may have at most {}", text.len(), recorder::MAX_PIECE);
        return Err(refused(detail, false));
    }
    if run.cut_off {
        return Ok(text.to_owned());
    }
    json.read(text).map(str::to_owned).map_err(|reason| refused(reason, true))
}
