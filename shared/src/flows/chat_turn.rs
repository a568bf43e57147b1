//! A turn: a person's message in, a streamed reply out, with what it proposes and the tools it calls.
//!
//! `begin` makes the run, the message and its first event in one transaction; from then on nothing is lost. The reply
//! is written by a task of its own: the client may leave and come back. Where the process dies, the next reader ends the
//! run as failed once its lease is over.

use axum::response::{IntoResponse, Response};
use domain::agents::{Agent, AgentDraft, AgentStatus};
use domain::assets::NewAsset;
use domain::chats::conversation::{MAX_MESSAGE, window};
use domain::chats::signals::{ActionDraft, Deliverable};
use domain::chats::{Chat, ChatMessage, ProposalBody};
use domain::ids::{AgentId, ChatId, MessageId, Owner, ProposalId, RunId};
use domain::models::{Block, Message, ModelRequest, ModelTier, Role, StopReason, SystemBlock, ToolChoice};
use domain::prompts;
use domain::runs::{EventKind, Run, RunEvent, RunKind, RunState};
use domain::tools::{Tool, ToolCall};
use domain::validate::FieldErrors;
use serde::Deserialize;
use serde_json::{Value, json};
use tracing::Instrument;
use utoipa::ToSchema;

use super::call::{CallError, Ceilings, Reply, call};
use super::proposals::Origin;
use super::{agents, chats, proposals, tools};
use crate::context::Cx;
use crate::idempotency::BeganRun;
use crate::problem::{Error, Result};
use crate::store::table::Write;
use crate::store::{Store, Versioned};
use crate::stream::{self, Accept, Recorder};

/// How often a turn calls the model at most.
const MAX_STEPS: usize = 8;

/// How much of the conversation a model is shown.
const MAX_HISTORY: usize = 200;
const MAX_HISTORY_BYTES: usize = 240 * 1024;

/// The longest reply of a turn, in tokens: room for a long document.
const MAX_OUTPUT_TOKENS: u32 = 16_000;

/// How many assets and actions are put before a model.
const IN_VIEW: usize = 10;

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
    chat: Chat,
    recorder: Recorder,
}

/// Begins a turn with an agent, or of the conversation that sets one up, and answers with its run.
///
/// # Errors
/// 404 for an agent or a chat that is not there, 400 for a message that is empty or too long, 409 for an archived agent;
/// with JSON asked for also what the run failed with.
pub async fn serve(
    cx: &Cx,
    owner: &Owner,
    agent: Option<AgentId>,
    input: TurnInput,
    accept: Accept,
) -> Result<Response> {
    let turn = begin(cx, owner, agent, input).await?;
    let run_id = turn.recorder.run().run_id;
    // A task of its own: it ends the run whether or not anybody is still there to follow it.
    tokio::spawn(run(turn).instrument(tracing::info_span!("turn", run_id = %run_id)));
    let mut response = match accept {
        // It has just begun: there is nothing to look up before its first event.
        Accept::Events => stream::event_stream(stream::follow(cx.clone(), owner.clone(), run_id, 0)),
        Accept::Json => match stream::respond(cx, owner, run_id, 0, accept).await {
            Ok(response) => response,
            Err(error) => error.into_response(),
        },
    };
    if let Ok(location) = format!("/runs/{run_id}").try_into() {
        response.headers_mut().insert(axum::http::header::LOCATION, location);
    }
    response.extensions_mut().insert(BeganRun(run_id));
    Ok(response)
}

async fn begin(cx: &Cx, owner: &Owner, agent: Option<AgentId>, input: TurnInput) -> Result<Turn> {
    let mut errors = FieldErrors::default();
    errors.length("message", &input.message, 1, MAX_MESSAGE);
    errors.into_result(())?;
    let (agent, found) = tokio::join!(
        async {
            match agent {
                None => Ok(None),
                Some(id) => agents::load(cx, owner, id).await.map(|agent| Some(agent.value)),
            }
        },
        async {
            match input.chat_id {
                None => Ok(None),
                Some(id) => chats::load(cx, owner, id).await.map(|chat| Some(chat.value)),
            }
        },
    );
    let agent = agent?;
    if let Some(agent) = agent.as_ref().filter(|agent| agent.status == AgentStatus::Archived) {
        return Err(Error::conflict_with("agent_archived", "an archived agent takes no turns", agent));
    }
    let agent_id = agent.as_ref().map(|agent| agent.agent_id);
    let now = cx.clock.now();
    let (chat, mut writes) = match found? {
        Some(chat) => {
            if chat.agent_id != agent_id {
                return Err(Error::NotFound("chat"));
            }
            (chat, Vec::new())
        }
        None => {
            let title: String = input.message.trim().chars().take(80).collect();
            let chat_id = ChatId::from_uuid(cx.clock.uuid());
            let chat = Chat { chat_id, agent_id, title, created_at: now, reset_after: None };
            let writes = Store::chat_writes(owner, &chat)?;
            (chat, writes)
        }
    };
    let run = Run {
        run_id: RunId::from_uuid(cx.clock.uuid()),
        kind: if agent.is_some() { RunKind::Chat } else { RunKind::Setup },
        state: RunState::Running,
        agent_id,
        chat_id: Some(chat.chat_id),
        action_id: None,
        created_at: now,
        finished_at: None,
        lease_until: stream::lease_from(now),
        message: String::new(),
        proposals: Vec::new(),
        agent_draft: None,
        usage: domain::models::Usage::default(),
        cost_micros: 0,
        error: None,
        prefix_hash: None,
    };
    let started = RunEvent {
        id: 1,
        event: EventKind::RunStarted,
        data: json!({"run_id": run.run_id, "kind": run.kind, "chat_id": chat.chat_id, "agent_id": agent_id}),
    };
    let message = message(cx, Role::User, vec![Block::text(input.message)], run.run_id);
    writes.push(Store::run_write(owner, &run)?);
    writes.push(Store::event_write(owner, run.run_id, &started)?);
    writes.extend(chats::message_writes(cx, owner, chat.chat_id, vec![message]).await?);
    if !cx.store.transact(writes).await?.done() {
        // The agent went away between the look and the write.
        return Err(Error::NotFound("agent"));
    }
    let recorder = Recorder::new(cx.clone(), owner.clone(), Versioned { value: run, version: 1 }, 1);
    Ok(Turn { cx: cx.clone(), owner: owner.clone(), agent, chat, recorder })
}

fn message(cx: &Cx, role: Role, content: Vec<Block>, run: RunId) -> ChatMessage {
    ChatMessage {
        message_id: MessageId::from_uuid(cx.clock.uuid()),
        role,
        content,
        created_at: cx.clock.now(),
        run_id: Some(run),
    }
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

/// What a reply asks for, done.
#[derive(Default)]
struct Done {
    /// The results of native calls; each call must have one.
    results: Vec<Block>,
    /// What the model should hear of: then it is called again.
    news: Vec<String>,
    /// Whether a result is news.
    go_on: bool,
    broken: bool,
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
        let history = chats::history(&self.cx, &self.owner, &self.chat, MAX_HISTORY);
        let (history, view) = tokio::try_join!(history, self.in_view())?;
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
                system: self.system(),
                tools: self.tools().map(Tool::spec).collect(),
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

    fn system(&self) -> Vec<SystemBlock> {
        self.agent.as_ref().map_or_else(prompts::setup, prompts::chat)
    }

    fn tools(&self) -> Box<dyn Iterator<Item = Tool> + Send> {
        match self.agent {
            Some(_) => Box::new(Tool::offered_in_chat()),
            None => Box::new(Tool::offered_in_setup()),
        }
    }

    async fn in_view(&self) -> Result<Option<String>> {
        let Some(agent) = &self.agent else { return Ok(None) };
        let (assets, actions) = tokio::try_join!(
            self.cx.store.agent_assets(&self.owner, agent.agent_id, None, IN_VIEW),
            self.cx.store.agent_actions(&self.owner, agent.agent_id, None, IN_VIEW),
        )?;
        let assets: Vec<_> = assets.items.into_iter().map(|(_, asset)| asset.value).collect();
        let actions: Vec<_> = actions.items.into_iter().map(|(_, action)| action.value).collect();
        Ok(Some(prompts::in_view(&assets, &actions)))
    }

    /// Does what a reply asks for, in its order: signals first, then native calls.
    async fn perform(&mut self, reply: Reply) -> Result<Done, CallError> {
        if !reply.text.trim().is_empty() {
            let run = self.recorder.run_mut();
            if !run.message.is_empty() {
                run.message.push_str("\n\n");
            }
            run.message.push_str(reply.text.trim());
            self.recorder.event(EventKind::MessageCompleted, json!({"text": reply.text.trim()})).await?;
        }
        let mut done = Done::default();
        for deliverable in reply.deliverables {
            match deliverable {
                Deliverable::UseTool { name, input } => {
                    let (result, _) = self.use_tool(&name, &input).await?;
                    done.news.push(format!("Result of {name}:\n{result}"));
                }
                other => {
                    if let Err(reason) = self.deliver(other).await? {
                        done.broken = true;
                        done.news.push(prompts::repair(&reason));
                    }
                }
            }
        }
        for tool_use in reply.tool_calls {
            let (content, is_error) = match &tool_use.input {
                Err(reason) => {
                    self.broken(&tool_use.name, reason).await?;
                    // A call that can't be read is not among the blocks: no result may name it.
                    done.broken = true;
                    done.news.push(prompts::repair(reason));
                    continue;
                }
                Ok(input) => match Deliverable::from_tool_call(&tool_use.name, input) {
                    Some(deliverable) => match self.deliver(deliverable).await? {
                        Ok(told) => (told, false),
                        Err(reason) => {
                            done.broken = true;
                            done.go_on = true;
                            (prompts::repair(&reason), true)
                        }
                    },
                    None => {
                        done.go_on = true;
                        self.use_tool(&tool_use.name, input).await?
                    }
                },
            };
            done.results.push(Block::ToolResult { tool_use_id: tool_use.id, content, is_error });
        }
        Ok(done)
    }

    /// Proposes what a reply delivers. The inner error is why it can't be taken as it is; the person has been told.
    async fn deliver(&mut self, deliverable: Deliverable) -> Result<Result<String, String>, CallError> {
        match (deliverable, self.agent.as_ref().map(|agent| agent.agent_id)) {
            (Deliverable::ReadyToCreate(draft), None) => self.propose_agent(draft).await.map(Ok),
            (Deliverable::Asset(asset), Some(agent)) => {
                if let Err(errors) = asset.validate() {
                    self.broken("generate_asset", &errors.to_string()).await?;
                    return Ok(Err(errors.to_string()));
                }
                self.propose_asset(agent, asset).await.map(Ok)
            }
            (Deliverable::Actions { actions }, Some(agent)) => {
                let mut told = Vec::with_capacity(actions.len());
                for action in actions {
                    told.push(self.propose_action(agent, action).await?);
                }
                Ok(Ok(told.join("\n")))
            }
            (Deliverable::Invalid { signal, reason, .. }, _) => {
                self.broken(&signal.keyword().to_lowercase(), &reason).await?;
                Ok(Err(reason))
            }
            (Deliverable::ReadyToCreate(_), Some(_)) => Ok(Err("this agent exists already".to_owned())),
            (Deliverable::UseTool { name, .. }, _) => Ok(Err(format!("{name} is no deliverable"))),
            (Deliverable::Asset(_) | Deliverable::Actions { .. }, None) => {
                let reason = "there is no agent yet that could deliver it".to_owned();
                self.broken("deliverable", &reason).await?;
                Ok(Err(reason))
            }
        }
    }

    async fn broken(&mut self, kind: &str, reason: &str) -> Result<(), CallError> {
        Ok(self
            .recorder
            .event(EventKind::DeliverableInvalid, json!({"kind": kind, "reason": reason}))
            .await?)
    }

    async fn propose_agent(&mut self, draft: AgentDraft) -> Result<String, CallError> {
        self.recorder.event(EventKind::AgentProposed, json!({ "agent_draft": draft })).await?;
        self.recorder.run_mut().agent_draft = Some(draft);
        Ok("The person sees the agent and may create it.".to_owned())
    }

    fn origin(&self, agent_id: AgentId) -> Origin {
        Origin { agent_id, chat_id: Some(self.chat.chat_id), run_id: Some(self.recorder.run().run_id) }
    }

    async fn propose_asset(&mut self, agent: AgentId, asset: NewAsset) -> Result<String, CallError> {
        let proposal = proposals::of_asset(&self.cx, &self.owner, self.origin(agent), asset).await?;
        self.propose(EventKind::AssetProposed, proposal).await
    }

    async fn propose_action(&mut self, agent: AgentId, draft: ActionDraft) -> Result<String, CallError> {
        let id = ProposalId::from_uuid(self.cx.clock.uuid());
        let proposal = proposals::new(&self.cx, self.origin(agent), id, ProposalBody::Action(draft));
        self.propose(EventKind::ActionProposed, proposal).await
    }

    async fn propose(
        &mut self,
        kind: EventKind,
        proposal: domain::chats::Proposal,
    ) -> Result<String, CallError> {
        let id = proposal.proposal_id;
        let mut data = json!({"proposal_id": id, "title": proposal.body.title()});
        match &proposal.body {
            ProposalBody::Asset { description, asset_type, bytes, .. } => {
                data["description"] = json!(description);
                data["asset_type"] = json!(asset_type);
                data["bytes"] = json!(bytes);
            }
            ProposalBody::Action(draft) => data["action"] = json!(draft),
        }
        let writes = Store::proposal_writes(&self.owner, &proposal)?;
        self.recorder.event_with(kind, data, writes).await?;
        self.recorder.run_mut().proposals.push(id);
        Ok(format!("\"{}\" waits for the person's yes ({id}).", proposal.body.title()))
    }

    /// Calls a tool of the registry. What can't be done is told to the model, and the turn goes on.
    async fn use_tool(&mut self, name: &str, input: &Value) -> Result<(String, bool), CallError> {
        self.recorder.event(EventKind::ToolRequested, json!({"tool": name, "input": input})).await?;
        let (result, is_error) = match self.tool_result(name, input).await {
            Ok(Ok(result)) => (result, false),
            Ok(Err(sentence)) => (sentence, true),
            Err(error) => return Err(error.into()),
        };
        let shown: String = result.chars().take(2_000).collect();
        let data = json!({"tool": name, "is_error": is_error, "result": shown});
        self.recorder.event(EventKind::ToolResult, data).await?;
        Ok((result, is_error))
    }

    async fn tool_result(&self, name: &str, input: &Value) -> Result<Result<String, String>> {
        let offered = Tool::from_name(name).filter(|tool| self.tools().any(|offered| offered == *tool));
        let (Some(tool), Some(agent)) = (offered, &self.agent) else {
            return Ok(Err(format!("there is no tool {name}")));
        };
        let call = match tool.parse(input) {
            Ok(call) => call,
            Err(sentence) => return Ok(Err(sentence)),
        };
        look_up(&self.cx, &self.owner, agent.agent_id, call).await
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
            let messages =
                said.into_iter().map(|said| message(&self.cx, said.role, said.content, run_id)).collect();
            more.extend(chats::message_writes(&self.cx, &self.owner, self.chat.chat_id, messages).await?);
        }
        if let Some(agent) = self.agent.as_ref().filter(|_| cost > 0) {
            more.push(Store::count(&self.owner, agent.agent_id, vec![("cost_micros", cost)]));
        }
        self.recorder.finish(state, error, more).await.map(|_| ())
    }
}

/// Does a call that looks something up. The inner error is a sentence for the model.
///
/// # Errors
/// When the table or the bucket does not answer.
pub async fn look_up(
    cx: &Cx,
    owner: &Owner,
    agent: AgentId,
    call: ToolCall,
) -> Result<Result<String, String>> {
    Ok(match call {
        ToolCall::QueryActions { state, limit } => {
            Ok(tools::query_actions(cx, owner, agent, state, limit).await?)
        }
        ToolCall::QueryAssets { asset_type, query, limit } => {
            Ok(tools::query_assets(cx, owner, agent, asset_type, query.as_deref(), limit).await?)
        }
        ToolCall::ReadAsset { asset_id } => tools::read_asset(cx, owner, asset_id)
            .await?
            .ok_or_else(|| format!("there is no asset {asset_id}")),
        ToolCall::Deliver(_) | ToolCall::SaveOutput(_) | ToolCall::AskPerson { .. } => {
            Err("this tool is not for looking things up".to_owned())
        }
    })
}
