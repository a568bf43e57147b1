//! A turn: a person's message in, a streamed reply out, with what it proposes and the tools it calls.
//!
//! `begin` makes the run, the message and its first event in one transaction; from then on nothing is lost. The reply
//! is written by a task of its own: the client may leave and come back. Where the process dies, the next reader ends the
//! run as failed once its lease is over.

mod deliver;
mod place;

use axum::response::{IntoResponse, Response};
use domain::agents::Agent;
use domain::chats::conversation::{MAX_MESSAGE, window};
use domain::ids::{ChatId, Owner, RunId};
use domain::models::{Block, Message, ModelRequest, ModelTier, Role, StopReason, ToolChoice};
use domain::runs::{EventKind, Run, RunEvent, RunKind, RunState};
use domain::tools::Tool;
use domain::validate::FieldErrors;
use serde::Deserialize;
use serde_json::json;
use tracing::Instrument;
use utoipa::ToSchema;

use super::call::{CallError, Ceilings, call};
use super::messages;
use crate::context::Cx;
use crate::idempotency::BeganRun;
use crate::problem::{Error, Result};
use crate::store::table::Write;
use crate::store::{Store, Versioned};
use crate::stream::{self, Accept, Recorder};

use place::Place;
pub use place::Topic;

/// How often a turn calls the model at most.
const MAX_STEPS: usize = 8;

/// How much of the conversation a model is shown.
const MAX_HISTORY: usize = 200;
const MAX_HISTORY_BYTES: usize = 240 * 1024;

/// The longest reply of a turn, in tokens: room for a long document.
const MAX_OUTPUT_TOKENS: u32 = 16_000;

/// A person's words.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(example = json!({"message": "Write a one-page brief about our three competitors"}))]
pub struct TurnInput {
    /// The conversation to go on with; without it a new one begins.
    #[serde(default)]
    pub chat_id: Option<ChatId>,
    /// 1 to 32,000 characters.
    #[serde(default)]
    pub message: String,
}

/// A turn that is stored and may run.
struct Turn {
    cx: Cx,
    owner: Owner,
    agent: Option<Agent>,
    place: Place,
    recorder: Recorder,
}

/// Begins a turn with an agent, or of the conversation that sets one up, and answers with its run.
///
/// # Errors
/// 404 for an agent, a chat or an action that is not there, 400 for a message that is empty or too long, 409 for an
/// archived agent; with JSON asked for also what the run failed with.
pub async fn serve(
    cx: &Cx,
    owner: &Owner,
    topic: Topic,
    message: String,
    accept: Accept,
) -> Result<Response> {
    let turn = begin(cx, owner, topic, message).await?;
    let run_id = turn.recorder.run().run_id;
    // A task of its own: it ends the run whether or not anybody is still there to follow it.
    tokio::spawn(run(turn).instrument(tracing::info_span!("turn", run_id = %run_id)));
    let response = match accept {
        // It has just begun: there is nothing to look up before its first event.
        Accept::Events => stream::event_stream(stream::follow(cx.clone(), owner.clone(), run_id, 0)),
        Accept::Json => match stream::respond(cx, owner, run_id, 0, accept).await {
            Ok(response) => response,
            Err(error) => error.into_response(),
        },
    };
    Ok(of_run(response, run_id))
}

/// A response that is a run's: a repeated request is answered from the run.
pub(super) fn of_run(mut response: Response, run: RunId) -> Response {
    if let Ok(location) = format!("/runs/{run}").try_into() {
        response.headers_mut().insert(axum::http::header::LOCATION, location);
    }
    response.extensions_mut().insert(BeganRun(run));
    response
}

/// # Errors
/// 400 for what is empty or too long.
pub(super) fn check(field: &str, message: &str) -> Result<()> {
    let mut errors = FieldErrors::default();
    errors.length(field, message, 1, MAX_MESSAGE);
    Ok(errors.into_result(())?)
}

async fn begin(cx: &Cx, owner: &Owner, topic: Topic, message: String) -> Result<Turn> {
    check("message", &message)?;
    let (agent, place, mut writes) = Place::find(cx, owner, topic, &message).await?;
    let agent_id = agent.as_ref().map(|agent| agent.agent_id);
    let now = cx.clock.now();
    let run_id = RunId::from_uuid(cx.clock.uuid());
    let kind = if agent.is_some() { RunKind::Chat } else { RunKind::Setup };
    let run = Run {
        agent_id,
        chat_id: place.chat_id(),
        action_id: place.action_id(),
        ..Run::begun(run_id, kind, now, stream::lease_from(now))
    };
    let mut data = json!({"run_id": run.run_id, "kind": run.kind, "agent_id": agent_id});
    match &place {
        Place::Chat(chat) => data["chat_id"] = json!(chat.chat_id),
        Place::Action(action) => data["action_id"] = json!(action.id),
    }
    let started = RunEvent { id: 1, event: EventKind::RunStarted, data };
    let said = messages::new(cx, Role::User, vec![Block::text(message)], Some(run.run_id));
    writes.push(Store::run_write(owner, &run)?);
    writes.push(Store::event_write(owner, run.run_id, &started)?);
    writes.extend(messages::writes(cx, owner, place.thread(), vec![said]).await?);
    if !cx.store.commit(writes).await?.done() {
        // It went away between the look and the write.
        return Err(Error::NotFound(if place.action_id().is_some() { "action" } else { "agent" }));
    }
    let recorder = Recorder::new(cx.clone(), owner.clone(), Versioned { value: run, version: 1 }, 1);
    Ok(Turn { cx: cx.clone(), owner: owner.clone(), agent, place, recorder })
}

/// Writes the reply and ends the run, however it went.
async fn run(mut turn: Turn) {
    let mut said = Vec::new();
    let ended = turn.talk(&mut said).await;
    let run_id = turn.recorder.run().run_id;
    if let Err(error) = turn.end(ended, said).await {
        tracing::error!(%run_id, cause = %error.causes(), "a turn could not be ended; its lease will");
    }
}

impl Turn {
    /// Calls the model until it has nothing more to ask for. What was said is what the chat keeps.
    async fn talk(&mut self, said: &mut Vec<Message>) -> Result<(), CallError> {
        let tier = self.agent.as_ref().map_or(ModelTier::Standard, |agent| agent.model_tier);
        let route = self.cx.models.route(tier).map_err(CallError::Model)?.clone();
        let ceilings = Ceilings {
            run_micros: self
                .agent
                .as_ref()
                .and_then(|agent| agent.budget.per_run_micros)
                .unwrap_or(self.cx.config.budget.run_micros),
            deadline: None,
        };
        let (history, view) = tokio::try_join!(
            self.place.history(&self.cx, &self.owner, MAX_HISTORY),
            self.place.in_view(&self.cx, &self.owner, self.agent.as_ref()),
        )?;
        let mut messages = window(&history, MAX_HISTORY_BYTES);
        if let Some(last) = messages.last_mut() {
            // Before the newest words, and not kept: the history stays the same from turn to turn, and so cached.
            let at = last.content.iter().position(|block| matches!(block, Block::Text { .. })).unwrap_or(0);
            if let Some(view) = view {
                last.content.insert(at, Block::text(view));
            }
        }
        let mut repaired = false;
        for step in 1..=MAX_STEPS {
            let request = ModelRequest {
                model: route.model.clone(),
                system: self.place.system(self.agent.as_ref()),
                tools: self.tools().into_iter().map(Tool::spec).collect(),
                tool_choice: if step == MAX_STEPS { ToolChoice::None } else { ToolChoice::Auto },
                messages: messages.clone(),
                max_output_tokens: MAX_OUTPUT_TOKENS,
                cache_last_turn: true,
            };
            let reply =
                call(&self.cx, &self.owner, &mut self.recorder, &route, request, ceilings, true).await?;
            let blocks = reply.blocks.clone();
            let cut_off = reply.stop == StopReason::MaxTokens;
            let pause = reply.stop == StopReason::Pause;
            let done = self.perform(reply).await?;
            if !blocks.is_empty() {
                let reply = Message { role: Role::Assistant, content: blocks };
                said.push(reply.clone());
                messages.push(reply);
            }
            let answers: Vec<Block> = done
                .results
                .into_iter()
                .chain(done.news.iter().map(|news| Block::text(news.as_str())))
                .collect();
            let has_news = done.go_on || !done.news.is_empty();
            let again = pause || has_news && !(done.broken && std::mem::replace(&mut repaired, true));
            if !answers.is_empty() {
                let answers = Message { role: Role::User, content: answers };
                said.push(answers.clone());
                messages.push(answers);
            }
            if !again || cut_off && !done.broken {
                break;
            }
        }
        Ok(())
    }

    fn tools(&self) -> Vec<Tool> {
        self.place.tools(self.agent.as_ref())
    }

    /// Ends the run; with it go the messages of the reply and the agent's cost.
    async fn end(mut self, ended: Result<(), CallError>, said: Vec<Message>) -> Result<()> {
        let (state, error) = match &ended {
            Ok(()) => (RunState::Completed, None),
            Err(CallError::Cancelled) => (RunState::Cancelled, None),
            Err(error) => {
                if let CallError::Failed(cause) = error {
                    tracing::error!(cause = %cause.causes(), "a turn failed");
                }
                (RunState::Failed, Some(error.run_error()))
            }
        };
        let run = self.recorder.run();
        let (run_id, cost) = (run.run_id, run.cost_micros);
        if state == RunState::Completed && run.message.is_empty() && !run.proposals.is_empty() {
            let run = self.recorder.run_mut();
            run.message = "It is ready and waits for your yes.".to_owned();
            let text = run.message.clone();
            self.recorder.text(&text).await?;
        }
        // Only whole exchanges are kept: a call without its result would spoil every later turn.
        let mut more: Vec<Write> = Vec::new();
        if state == RunState::Completed {
            let said = said
                .into_iter()
                .map(|said| messages::new(&self.cx, said.role, said.content, Some(run_id)))
                .collect();
            more.extend(messages::writes(&self.cx, &self.owner, self.place.thread(), said).await?);
            more.extend(self.place.still_there(&self.owner));
        }
        if let Some(agent) = self.agent.as_ref().filter(|_| cost > 0) {
            more.push(Store::count(&self.owner, agent.agent_id, vec![("cost_micros", cost)]));
        }
        self.recorder.finish(state, error, more).await.map(|_| ())
    }
}
