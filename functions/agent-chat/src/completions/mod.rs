//! The Chat Completions API of OpenAI, so that programs written for it can talk to agents.

mod drafts;
mod format;
mod told;

use axum::extract::{Extension, State};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use domain::agent_loop::cards::{self, Asks};
use domain::agents::AgentStatus;
use domain::chats::draft_lines::{After, after};
use domain::ids::{AgentId, Owner, RunId};
use domain::models::Usage;
use domain::runs::{EventKind, Run, RunState};
use futures::stream::{self, BoxStream, StreamExt};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use shared::edge::extract::{Caller, ForeignJson, Id, Once};
use shared::edge::idempotency::RepeatedRun;
use shared::edge::problem::OpenAiError;
use shared::edge::stream::{belongs_to, event_stream, not_failed};
use shared::flows::runs;
use shared::flows::runs::follow::{self, RunUpdate};
use shared::flows::turn::completions::{self, Completion, OfClient, ShownDrafts};
use shared::flows::{agents, existing};
use shared::request::ClientAddress;
use shared::runtime::function::Invocation;
use shared::{Cx, Error, Result};

use drafts::Drafts;
use format::{
    ChatCompletion, Choice, CompletionRequest, CompletionUsage, ModelEntry, ModelList, ReplyMessage,
};
use told::Told;

shared::routes!(complete, list_models, read_model);

/// The largest number of agents in the list of models.
const MAX_MODELS: usize = 1_000;

/// Talk to an agent with an OpenAI client
///
/// `model` is the agent's id. The client keeps the conversation and sends all of it with each request, as with OpenAI. The
/// conversation is also stored as a chat of the agent. Drafts of assets and actions wait as proposals. The reply shows them with their
/// addresses, and the next message `yes` accepts them. If a process dies while it streams, another one writes the unfinished step
/// again. If the new text differs, a line says that the reply begins again. The header `x-lamplighter-ignored` names the fields of the
/// request that have no effect, if there are any.
#[utoipa::path(
    post, path = "/v1/chat/completions", tag = "chats", operation_id = "create_chat_completion",
    request_body = CompletionRequest,
    responses(
        (status = 200, description = "The reply", content(
            (ChatCompletion = "application/json"), (ChatCompletion = "text/event-stream"),
        )),
    ),
)]
async fn complete(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    invocation: Invocation,
    repeated: Option<Extension<RepeatedRun>>,
    address: ClientAddress,
    ForeignJson(request): ForeignJson<CompletionRequest>,
) -> Result<Response> {
    let (agent, conversation, form) = request.read()?;
    let is_json = form.json.is_some();
    let mut ignored = completions::not_sampled(&cx, &caller.owner, agent, &form.sampling).await?;
    ignored.extend(request.without_effect());
    let ignored = HeaderValue::from_str(&ignored.join(", ")).ok().filter(|names| !names.is_empty());
    let (run, created, completion) = match repeated {
        Some(Extension(RepeatedRun(run))) => {
            (run, existing::run(&cx, &caller.owner, run).await?.value.created_at, None)
        }
        None => {
            let client = OfClient { once: &once, by: caller.actor(), address: &address };
            let begun =
                completions::begin(&cx, &caller.owner, agent, conversation, form, client, invocation).await?;
            (begun.begun.run(), cx.clock.now(), Some(begun))
        }
    };
    let answer = Answer {
        owner: caller.owner,
        run,
        agent,
        created,
        until: invocation.answers_until(),
        is_json,
        address,
        with_usage: request.stream_options.is_some_and(|options| options.include_usage == Some(true)),
        cx,
    };
    let mut response = if request.stream == Some(true) {
        let mut response = answer.stream(completion);
        belongs_to(&mut response, run);
        response
    } else {
        match answer.whole(completion).await {
            Ok(reply) => axum::Json(reply).into_response(),
            Err(error) => refused(error),
        }
    };
    if let Some(names) = ignored {
        response.headers_mut().insert(IGNORED, names);
    }
    Ok(response)
}

/// Names the fields of the request that have no effect.
const IGNORED: HeaderName = HeaderName::from_static("x-lamplighter-ignored");

/// OpenAI's clients repeat every call whose answer is a 5xx, unless this header forbids it.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// A failed run. A client must not repeat the call by itself if it would fail again, or if each try costs two calls of a model.
fn refused(error: Error) -> Response {
    let is_final =
        matches!(&error, Error::RunFailed { code, retryable, .. } if !retryable || code == "reply_invalid");
    let mut response = error.into_response();
    if is_final {
        response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    response
}

/// Writes a run's reply in OpenAI's format.
struct Answer {
    cx: Cx,
    owner: Owner,
    run: RunId,
    agent: AgentId,
    created: Timestamp,
    until: Timestamp,
    /// Whether the reply must be JSON: then it is sent at its end, when it was checked.
    is_json: bool,
    address: ClientAddress,
    with_usage: bool,
}

impl Answer {
    fn completion(&self, object: &'static str, choices: Vec<Choice>, usage: Option<Usage>) -> ChatCompletion {
        ChatCompletion {
            id: self.run,
            object,
            created: self.created.as_second(),
            model: self.agent.to_string(),
            choices,
            usage: usage.map(CompletionUsage::from),
        }
    }

    /// The whole reply, when the run has ended.
    async fn whole(&self, completion: Option<Completion>) -> Result<ChatCompletion> {
        let run = follow::to_its_end(&self.cx, &self.owner, self.run, self.until).await?;
        let (state, usage) = (run.state, run.usage);
        not_failed(&run)?;
        let finish_reason = Some(self.finish_reason(&run));
        let mut content = run.message.clone();
        let Drafts { text: notes, ids } = self.notes(run).await?;
        let After { closing, is_visible } = after(&content, &notes);
        if !notes.is_empty() {
            content.push_str(&closing);
            content.push_str(&notes);
        }
        if let Some(completion) = completion.filter(|_| state.is_final()) {
            completion.replied(&self.cx, &self.owner, &content, ShownDrafts { ids, is_visible }).await;
        }
        let message = Some(ReplyMessage { role: "assistant", content });
        let choice = Choice { index: 0, message, delta: None, finish_reason };
        Ok(self.completion("chat.completion", vec![choice], Some(usage)))
    }

    /// `length` if the client does not have the whole reply.
    fn finish_reason(&self, run: &Run) -> &'static str {
        let is_whole = if self.is_json { run.state == RunState::Completed } else { run.state.is_final() };
        if is_whole && !run.cut_off { "stop" } else { "length" }
    }

    /// What the client must know in addition to the text: the drafts that wait, and why the reply ends. A reply that is JSON has
    /// no place for it.
    async fn notes(&self, run: Run) -> Result<Drafts> {
        let state = run.state;
        if self.is_json && state == RunState::Completed {
            return Ok(Drafts::default());
        }
        let open: Vec<_> = cards::open(&run.cards).cloned().collect();
        let view = runs::view(&self.cx, &self.owner, run).await?;
        let at = |path: &str| self.address.at(path);
        let mut drafts = Drafts::of(&view.proposals, &self.address);
        let notes = &mut drafts.text;
        match state {
            RunState::Running => {
                notes
                    .push_str(&format!("\n\n*The reply continues: {}.*", at(&format!("/runs/{}", self.run))));
            }
            RunState::Cancelled => notes.push_str("\n\n*The reply was cancelled.*"),
            RunState::Waiting => {
                for card in &open {
                    let call = at(&format!("/runs/{}/calls/{}", self.run, card.call_id));
                    notes.push_str(&match card.asks {
                        Asks::Permission => format!(
                            "\n\n*The call of `{}` waits for your yes until {}. Read it at {}, then POST to {call}/approve or {call}/reject.*",
                            card.tool, card.expires_at, at(&format!("/runs/{}", self.run)),
                        ),
                        Asks::Outcome => format!(
                            "\n\n*It is not known whether the call of `{}` happened. Find out, then POST to {call}/resolve until {}.*",
                            card.tool, card.expires_at,
                        ),
                        Asks::Ceiling => format!(
                            "\n\n*A ceiling of costs is reached: {}. To raise it, POST to {call}/approve until {}; otherwise POST to {call}/reject.*",
                            card.why, card.expires_at,
                        ),
                    });
                }
            }
            RunState::Completed | RunState::Failed => {}
        }
        Ok(drafts)
    }

    /// Streams the reply while it is written.
    fn stream(self, completion: Option<Completion>) -> Response {
        let updates = follow::follow(self.cx.clone(), self.owner.clone(), self.run, 0, self.until).boxed();
        let chunks = Chunks {
            answer: self,
            updates,
            completion,
            told: Told::default(),
            last: 0,
            between: None,
            begun: false,
            ended: false,
        };
        event_stream(stream::unfold(chunks, |mut chunks| async move {
            let next = chunks.next().await?;
            Some((Bytes::from(next), chunks))
        }))
    }
}

/// A reply that is being streamed.
struct Chunks {
    answer: Answer,
    updates: BoxStream<'static, RunUpdate>,
    /// None if the request was repeated.
    completion: Option<Completion>,
    told: Told,
    /// The last event.
    last: u64,
    /// The event after which the next text begins a new paragraph.
    between: Option<u64>,
    begun: bool,
    ended: bool,
}

impl Chunks {
    /// The next frames.
    async fn next(&mut self) -> Option<String> {
        if self.ended {
            return None;
        }
        let mut frames = String::new();
        if !std::mem::replace(&mut self.begun, true) {
            self.delta(json!({"role": "assistant", "content": ""}), None, &mut frames);
            return Some(frames);
        }
        while frames.is_empty() {
            match self.updates.next().await {
                Some(RunUpdate::Silence) => return Some(": still at work\n\n".to_owned()),
                Some(RunUpdate::Events(events)) => {
                    let mut is_over = false;
                    for event in events {
                        self.last = event.id;
                        match event.event {
                            // It is sent when it was checked.
                            EventKind::MessageDelta | EventKind::ToolResult if self.answer.is_json => {}
                            EventKind::MessageDelta => {
                                if let Some(event) = self.between.take() {
                                    let text = self.told.add(event, "\n\n");
                                    self.send(&text, &mut frames);
                                }
                                let text = event.data["text"].as_str().unwrap_or_default().to_owned();
                                self.say(&text, &mut frames);
                            }
                            // Many clients of this format show this field.
                            EventKind::ThinkingDelta => {
                                let thought = json!({"reasoning_content": event.data["text"]});
                                self.delta(thought, None, &mut frames);
                            }
                            EventKind::StepRestarted => {
                                self.told.restart(event.data["void_from"].as_u64().unwrap_or(event.id));
                            }
                            EventKind::ToolResult => {
                                self.end_step(&mut frames);
                                if !self.told.text().is_empty() && !self.told.text().ends_with("\n\n") {
                                    self.between = Some(event.id);
                                }
                            }
                            kind => is_over |= kind.ends_the_run(),
                        }
                    }
                    if is_over {
                        self.end(&mut frames).await;
                    }
                }
                None => self.end(&mut frames).await,
            }
        }
        Some(frames)
    }

    fn say(&mut self, text: &str, frames: &mut String) {
        let text = self.told.add(self.last, text);
        self.send(&text, frames);
    }

    fn end_step(&mut self, frames: &mut String) {
        let text = self.told.end_step(self.last);
        self.send(&text, frames);
    }

    fn send(&self, text: &str, frames: &mut String) {
        if !text.is_empty() {
            self.delta(json!({"content": text}), None, frames);
        }
    }

    fn delta(&self, delta: Value, finish_reason: Option<&'static str>, frames: &mut String) {
        let choice = Choice { index: 0, message: None, delta: Some(delta), finish_reason };
        frame(&self.answer.completion("chat.completion.chunk", vec![choice], None), frames);
    }

    async fn end(&mut self, frames: &mut String) {
        self.ended = true;
        if let Err(error) = self.finish(frames).await {
            frame(&json!({"error": OpenAiError::from(&error)}), frames);
        }
        frames.push_str("data: [DONE]\n\n");
    }

    async fn finish(&mut self, frames: &mut String) -> Result<()> {
        let (cx, owner) = (self.answer.cx.clone(), self.answer.owner.clone());
        let run = existing::run(&cx, &owner, self.answer.run).await?.value;
        let (state, usage) = (run.state, run.usage);
        not_failed(&run)?;
        let finish_reason = self.answer.finish_reason(&run);
        if state.is_final() {
            self.end_step(frames);
        }
        if self.answer.is_json {
            self.say(&run.message, frames);
        }
        let Drafts { text: notes, ids } = self.answer.notes(run).await?;
        // What was sent can't be changed, so what it opened is closed.
        let After { closing, is_visible } = after(self.told.text(), &notes);
        if !notes.is_empty() {
            self.say(&closing, frames);
            self.say(&notes, frames);
        }
        if let Some(completion) = self.completion.take().filter(|_| state.is_final()) {
            completion.replied(&cx, &owner, self.told.text(), ShownDrafts { ids, is_visible }).await;
        }
        self.delta(json!({}), Some(finish_reason), frames);
        if self.answer.with_usage {
            frame(&self.answer.completion("chat.completion.chunk", Vec::new(), Some(usage)), frames);
        }
        Ok(())
    }
}

fn frame(data: &impl Serialize, frames: &mut String) {
    let json = serde_json::to_string(data).expect("texts and numbers are always JSON");
    frames.push_str(&format!("data: {json}\n\n"));
}

/// List the agents for an OpenAI client, newest first
///
/// Up to 1,000 agents that are not archived.
#[utoipa::path(
    get, path = "/v1/models", tag = "chats", operation_id = "list_agents_as_models",
    responses((status = 200, body = ModelList)),
)]
async fn list_models(State(cx): State<Cx>, caller: Caller) -> Result<axum::Json<ModelList>> {
    let data = agents::all_active(&cx, &caller.owner, MAX_MODELS).await?;
    Ok(axum::Json(ModelList { object: "list", data: data.into_iter().map(ModelEntry::from).collect() }))
}

/// Read an agent for an OpenAI client
///
/// 404 if the agent is archived, because it takes no turns and is not listed.
#[utoipa::path(
    get, path = "/v1/models/{agent_id}", tag = "chats", operation_id = "read_agent_as_model",
    params(AgentId),
    responses((status = 200, body = ModelEntry)),
)]
async fn read_model(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<AgentId>,
) -> Result<axum::Json<ModelEntry>> {
    let agent = existing::agent(&cx, &caller.owner, id).await?.value;
    if agent.status == AgentStatus::Archived {
        return Err(Error::NotFound("agent"));
    }
    Ok(axum::Json(agent.into()))
}
