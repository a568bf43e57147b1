//! What a turn sends to the model, and what the model's calls do. What the model proposes waits until the person
//! accepts it.

use std::convert::Infallible;
use std::sync::{Mutex, OnceLock, PoisonError};

use domain::actions::{Action, ActionState};
use domain::agent_loop::{Call, CallResult, Policy, Reply};
use domain::agents::Agent;
use domain::chats::conversation::window;
use domain::chats::signals::Deliverable;
use domain::chats::summary::MAX_HISTORY_BYTES;
use domain::chats::{Proposal, ProposalBody};
use domain::ids::{ActionId, ProposalId};
use domain::memory::recall;
use domain::models::routing::{AgentRole, Ask, Work};
use domain::models::{Block, Message, ModelTier, StopReason};
use domain::prompts;
use domain::runs::{EventKind, Run};
use domain::tools::actions::{ChangeAction, CommandAction, GENERATE_ACTIONS};
use domain::tools::assets::GENERATE_ASSET;
use domain::tools::{Setting, ToolCall};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::conversation::Conversation;
use super::older::Recent;
use crate::agent_loop::{Kind, KindCx, MAX_OUTPUT_TOKENS, Performed, Terms, ToSummarise};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::actions;
use crate::flows::actions::proposals::{self, Origin};
use crate::flows::memory::forgotten::Forgotten;
use crate::flows::memory::known;
use crate::flows::messages::images;
use crate::flows::projects::living;
use crate::flows::schedules;
use crate::flows::tools::{self, Reach};
use crate::money::ceilings::MonthCeilings;
use crate::store::Store;

/// How often a turn may call the model.
const MAX_STEPS: usize = 8;

/// The name of a reply in the event that says that it is not the JSON that the client wants.
const REPLY: &str = "reply";

/// How long a turn may take in total, in all processes together. The time starts again after a wait for a person.
const LONGEST: SignedDuration = SignedDuration::from_hours(2);

/// The same for turns of the theme agent.
const LONGEST_ON_THEMES: SignedDuration = SignedDuration::from_mins(30);

/// A turn of a conversation.
pub(super) struct Turn {
    pub agent: Option<Agent>,
    pub conversation: Conversation,
    /// Whether the proposals of the run are its own.
    pub proposes: bool,
    /// What was read to see whether it must be cut, so that it is read once.
    read: Mutex<Option<Recent>>,
    /// What was deleted when this process began to tell the model the conversation.
    pub forgotten: OnceLock<Forgotten>,
}

impl Turn {
    pub fn new(agent: Option<Agent>, conversation: Conversation) -> Self {
        Self { agent, conversation, proposes: true, read: Mutex::default(), forgotten: OnceLock::new() }
    }

    /// What holds for the turn in this deployment.
    pub fn terms(&self, cx: &Cx, run: &Run) -> Terms {
        let config = &cx.config;
        let theme = run.theme.as_ref().map(|turn| turn.project_id);
        let longest = if theme.is_some() { LONGEST_ON_THEMES } else { LONGEST };
        let agent = self.agent.as_ref();
        let tier = agent.map_or(ModelTier::Standard, |agent| agent.model_tier);
        let ceiling_micros = agent.and_then(|agent| agent.budget.per_run_micros);
        Terms {
            policy: Policy {
                max_steps: MAX_STEPS,
                talks_at_last: true,
                max_repairs: 1,
                continues_cut_off: false,
                checked: None,
                has_conditions: false,
                until: works_since(run).checked_add(longest).unwrap_or(Timestamp::MAX),
            },
            tier,
            // Whoever talks to an agent gets the models of its tier. The setup conversation writes an agent, and a conversation
            // about an action explains what has happened: there, the work decides.
            work: match (&self.conversation, agent) {
                (Conversation::Action(_), _) => {
                    Ask { role: AgentRole::Specialist, work: Some(Work::Explain), ..Ask::default() }
                }
                (Conversation::Chat(_), None) => Ask { work: Some(Work::Generate), ..Ask::default() },
                (Conversation::Chat(_), Some(agent)) => asks_of_chat(agent),
            },
            ceiling_micros: ceiling_micros.unwrap_or(config.budget.run_micros),
            month: MonthCeilings {
                agent: agent.and_then(|agent| agent.budget.per_month_micros),
                action: None,
            },
            system: self.conversation.system(agent, (run, cx.leads())),
            // Only where a person reads the reply: what a provider's tools find comes from strangers, and nobody here can look into
            // it.
            provider_tools: agent
                .map(|agent| agent.provider_tools.iter().map(|tool| (*tool, u32::MAX)).collect())
                .unwrap_or_default(),
            needs_provider_tools: false,
            rehearses: false,
            has_documents: agent.is_some_and(|agent| agent.docs_project_id.is_some()),
            theme: theme.or_else(|| agent.and_then(|agent| agent.theme_project_id)),
            reply_tokens: MAX_OUTPUT_TOKENS,
        }
    }
}

/// Which models a chat with an agent asks for.
pub fn asks_of_chat(agent: &Agent) -> Ask {
    Ask { tier: Some(agent.model_tier), ..Ask::default() }
}

impl Turn {
    /// Who talks, for a person who is told that the turn waits.
    pub fn who(&self) -> &str {
        match (&self.conversation, &self.agent) {
            (Conversation::Action(action), _) => &action.title,
            (Conversation::Chat(_), Some(agent)) => &agent.name,
            (Conversation::Chat(chat), None) if chat.project_id.is_some() => &chat.title,
            (Conversation::Chat(_), None) => "The setup of an agent",
        }
    }
}

impl Kind for Turn {
    type Change = Infallible;

    fn setting(&self) -> Setting<'_> {
        self.conversation.setting(self.agent.as_ref())
    }

    /// A reply that is not the JSON that the client wants is repaired like a deliverable that can't be read.
    fn complete(&self, run: &Run, reply: &mut Reply) {
        let Some(json) = &run.form.json else { return };
        // After a call whose result the model is told, it goes on.
        let delivers =
            |call: &Call| [GENERATE_ASSET.name, GENERATE_ACTIONS.name].contains(&call.name.as_str());
        let is_last = matches!(reply.stop, StopReason::EndTurn | StopReason::ToolUse);
        if !is_last || !reply.calls.iter().all(delivers) {
            return;
        }
        if let Err(reason) = json.read(&reply.text) {
            let (name, invalid) = (REPLY.to_owned(), Some(reason));
            reply.calls.push(Call { id: None, name, input: Value::Null, invalid, implied: false });
        }
    }

    fn continues(&self) -> bool {
        true
    }

    async fn to_summarise(&self, cx: KindCx<'_>) -> Result<Option<ToSummarise>> {
        let recent = self.conversation.recent(&cx, cx.owner, cx.run.run_id).await?;
        let to_summarise = self.conversation.to_summarise(&cx, cx.owner, &recent).await?;
        if to_summarise.is_none() {
            *self.read.lock().unwrap_or_else(PoisonError::into_inner) = Some(recent);
        }
        Ok(to_summarise)
    }

    async fn history(&self, cx: KindCx<'_>) -> Result<Vec<Message>> {
        let zone = schedules::zone_of(&cx, cx.owner, self.agent.as_ref()).await?;
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Recent { summary, messages, forgotten, .. } = match read {
            Some(recent) => recent,
            None => self.conversation.recent(&cx, cx.owner, cx.run.run_id).await?,
        };
        let project = self.agent.as_ref().and_then(|agent| agent.docs_project_id);
        // A turn may have waited for an answer, or for another process, while a fact was deleted.
        let (recalled, view, docs) = tokio::try_join!(
            known::still_true(&cx, cx.owner, &forgotten, cx.run.recalled.clone()),
            self.conversation.in_view(&cx, cx.owner, (self.agent.as_ref(), &zone), &forgotten),
            living::read::told(&cx, cx.owner, project),
        )?;
        let _ = self.forgotten.set(forgotten);
        let now = prompts::now(works_since(cx.run), &zone);
        // A turn of the theme agent was told the time and what is recalled ahead, in messages that are stored: so later turns begin with the
        // same bytes.
        let parts = match cx.run.theme {
            Some(_) => Vec::new(),
            None => vec![now, recall::block(&recalled), view.unwrap_or_default(), docs.behind],
        };
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let before = parts.join("\n");
        let mut messages = window(&messages, MAX_HISTORY_BYTES);
        images::load(&cx, cx.owner, self.conversation.thread(), &mut messages).await?;
        if let Some(last) = messages.last_mut().filter(|_| !before.is_empty()) {
            // Time and view are placed before the newest message and are not stored. So the earlier history stays the same from
            // turn to turn, and the provider can cache it.
            let at = last.content.iter().position(|block| matches!(block, Block::Text { .. })).unwrap_or(0);
            last.content.insert(at, Block::text(before));
        }
        // Both are the same until messages are cut again or a document is changed, so the provider can cache them.
        if let Some(first) = messages.first_mut() {
            let told = summary.map(|summary| prompts::earlier(&summary)).into_iter();
            let told = told.chain([docs.documents]).filter(|text| !text.is_empty());
            first.content.splice(0..0, told.map(Block::text));
        }
        // It is not stored, so that the conversation stays the same for later turns.
        if let (Some(last), Some(json)) = (messages.last_mut(), &cx.run.form.json) {
            last.content.push(Block::text(json.instruction()));
        }
        Ok(messages)
    }

    fn apply(&mut self, change: Infallible) {
        match change {}
    }

    async fn perform(&self, cx: KindCx<'_>, call: ToolCall) -> Result<Performed<Infallible>> {
        let run = cx.run;
        match (call, self.agent.as_ref()) {
            (ToolCall::Deliver(Deliverable::ReadyToCreate(draft)), None) => {
                let told = "The person sees the agent and can create it.";
                let mut performed = Performed::from(CallResult::rest(told));
                performed.events.push((EventKind::AgentProposed, json!({ "agent_draft": draft })));
                performed.agent_draft = Some(draft);
                Ok(performed)
            }
            (ToolCall::Deliver(Deliverable::Asset(asset)), Some(agent)) => {
                if let Err(errors) = asset.validate() {
                    return Ok(invalid("generate_asset", &errors.to_string()));
                }
                if proposals::room(run) == 0 {
                    return Ok(proposals::too_many("generate_asset", 0, 1));
                }
                let proposal = proposals::of_asset(&cx, cx.owner, origin(run, agent), asset).await?;
                propose(cx, vec![(EventKind::AssetProposed, proposal)]).await
            }
            (ToolCall::Deliver(Deliverable::Actions { mut actions }), Some(agent)) => {
                let (asked, room) = (actions.len(), proposals::room(run));
                actions.truncate(room);
                if actions.is_empty() {
                    return Ok(proposals::too_many("generate_actions", 0, asked));
                }
                let mut proposed = Vec::new();
                for draft in actions {
                    let body = ProposalBody::Action(draft);
                    let proposal =
                        proposals::of_action(&cx, cx.owner, agent, origin(run, agent), body).await?;
                    proposed.push((EventKind::ActionProposed, proposal));
                }
                let mut performed = propose(cx, proposed).await?;
                if asked > room {
                    let more: Performed<Infallible> = proposals::too_many("generate_actions", room, asked);
                    performed.events.extend(more.events);
                    performed.result.content.push('\n');
                    performed.result.content.push_str(&more.result.content);
                    performed.result.is_error = true;
                    performed.result.after = more.result.after;
                }
                Ok(performed)
            }
            (ToolCall::ReadMessages(wanted), _) => {
                let read = self.conversation.read_messages(&cx, cx.owner, wanted).await?;
                Ok(CallResult::of(read).into())
            }
            (ToolCall::ChangeAction(change), Some(agent)) => self.propose_change(cx, agent, *change).await,
            (ToolCall::CommandAction(command), Some(agent)) => self.propose_command(cx, agent, command).await,
            (ToolCall::SyncDocumentation(_), Some(agent)) => {
                Ok(CallResult::of(tools::sync_documentation(&cx, cx.owner, Reach::of(agent)).await?).into())
            }
            (call, Some(agent)) => {
                Ok(CallResult::of(tools::look_up(&cx, cx.owner, Reach::of(agent), call).await?).into())
            }
            (_, None) => Ok(CallResult::refused("there is no agent here").into()),
        }
    }
}

impl Turn {
    /// The action that a call is about, as it is now: it may have changed since the turn began. The inner error is a sentence for the
    /// model. An agent reaches its own actions only.
    async fn target(
        &self,
        cx: KindCx<'_>,
        agent: &Agent,
        named: Option<ActionId>,
    ) -> Result<std::result::Result<Action, String>> {
        let id = match (named, &self.conversation) {
            (Some(id), _) => id,
            (None, Conversation::Action(action)) => action.id,
            (None, Conversation::Chat(_)) => {
                return Ok(Err(
                    "action_id: is required in a chat; query_actions names the actions".to_owned()
                ));
            }
        };
        let found = match actions::load(&cx, cx.owner, id).await {
            Ok(found) => Some(found.value),
            Err(Error::NotFound(_)) => None,
            Err(error) => return Err(error),
        };
        let found = found.filter(|action| action.agent_id == agent.agent_id);
        Ok(found.ok_or_else(|| match named {
            Some(id) => format!("there is no action {id}"),
            None => "the action was deleted".to_owned(),
        }))
    }

    /// Proposes a change of an action. The change is checked against the current action.
    async fn propose_change(
        &self,
        cx: KindCx<'_>,
        agent: &Agent,
        ChangeAction { action_id, change }: ChangeAction,
    ) -> Result<Performed<Infallible>> {
        let action = match self.target(cx, agent, action_id).await? {
            Ok(action) => action,
            Err(told) => return Ok(CallResult::refused(told).into()),
        };
        if action.state == ActionState::Dismissed {
            let told = "the action was dismissed, so it can't be changed";
            return Ok(CallResult::refused(told).into());
        }
        if let Err(errors) = change.check(&action) {
            return Ok(CallResult::refused(errors.to_string()).into());
        }
        let title = change.title.clone().unwrap_or(action.title);
        let body = ProposalBody::Change { action_id: action.id, title, change: Box::new(change) };
        propose_for_action(cx, agent, "change_action", body).await
    }

    /// Proposes a command for an action, if the action allows it now.
    async fn propose_command(
        &self,
        cx: KindCx<'_>,
        agent: &Agent,
        CommandAction { action_id, command }: CommandAction,
    ) -> Result<Performed<Infallible>> {
        let action = match self.target(cx, agent, action_id).await? {
            Ok(action) => action,
            Err(told) => return Ok(CallResult::refused(told).into()),
        };
        if let Err(not_now) = command.check(&action, agent, cx.clock.now()) {
            return Ok(CallResult::refused(not_now.text).into());
        }
        let body = ProposalBody::Command { action_id: action.id, title: action.title, command };
        propose_for_action(cx, agent, "command_action", body).await
    }
}

/// Proposes something for an existing action. The model goes on, and says what it has proposed.
async fn propose_for_action(
    cx: KindCx<'_>,
    agent: &Agent,
    tool: &'static str,
    body: ProposalBody,
) -> Result<Performed<Infallible>> {
    if proposals::room(cx.run) == 0 {
        return Ok(proposals::too_many(tool, 0, 1));
    }
    let proposal = proposals::of_action(&cx, cx.owner, agent, origin(cx.run, agent), body).await?;
    let mut performed = propose(cx, vec![(EventKind::ActionProposed, proposal)]).await?;
    performed.result = CallResult::told(performed.result.content);
    Ok(performed)
}

/// Proposals that are stored with the result of their call. Each replaces the earlier drafts of the same thing.
async fn propose(cx: KindCx<'_>, proposed: Vec<(EventKind, Proposal)>) -> Result<Performed<Infallible>> {
    let owner = cx.owner;
    let mut performed = Performed::from(CallResult::rest(""));
    let mut told = Vec::new();
    // A transaction may contain each record only once.
    let mut replaced: Vec<ProposalId> = Vec::new();
    for (kind, mut proposal) in proposed {
        let mut older = proposals::refined(&cx, owner, &mut proposal).await?;
        older.retain(|older| !replaced.contains(&older.value.proposal_id));
        for older in older {
            replaced.push(older.value.proposal_id);
            performed.staged.writes.push(Store::supersede_write(owner, older, proposal.proposal_id)?);
        }
        let id = proposal.proposal_id;
        let schedule =
            proposals::in_words(&proposal.body).map_or_else(String::new, |text| format!(" {text}"));
        let what = match &proposal.body {
            ProposalBody::Command { command, .. } => format!("{} ", command.verb()),
            _ => String::new(),
        };
        told.push(format!(
            "{what}\"{}\" waits for the person's yes ({id}).{schedule}",
            proposal.body.title()
        ));
        performed.events.push((kind, shown(&proposal)));
        performed.staged.writes.extend(Store::proposal_writes(owner, &proposal)?);
        performed.proposals.push(id);
    }
    performed.result.content = told.join("\n");
    Ok(performed)
}

/// Since when a turn is under way, in all processes together. After a wait for a person, this begins again.
fn works_since(run: &Run) -> Timestamp {
    run.resumed_at.unwrap_or(run.created_at)
}

fn origin(run: &Run, agent: &Agent) -> Origin {
    Origin { agent_id: agent.agent_id, chat_id: run.chat_id, run_id: Some(run.run_id) }
}

fn invalid(kind: &str, reason: &str) -> Performed<Infallible> {
    let mut performed = Performed::from(CallResult::repair(reason));
    performed.events.push((EventKind::DeliverableInvalid, json!({"kind": kind, "reason": reason})));
    performed
}

/// The data of the event that reports a proposal.
fn shown(proposal: &Proposal) -> Value {
    let mut data = json!({"proposal_id": proposal.proposal_id, "title": proposal.body.title()});
    match &proposal.body {
        ProposalBody::Asset { description, asset_type, bytes, .. } => {
            data["description"] = json!(description);
            data["asset_type"] = json!(asset_type);
            data["bytes"] = json!(bytes);
        }
        ProposalBody::Action(draft) => data["action"] = json!(draft),
        ProposalBody::Change { action_id, change, .. } => {
            data["action_id"] = json!(action_id);
            data["change"] = json!(change);
        }
        ProposalBody::Command { action_id, command, .. } => {
            data["action_id"] = json!(action_id);
            data["command"] = json!(command);
        }
    }
    if let Some(text) = proposals::in_words(&proposal.body) {
        data["schedule_text"] = json!(text);
    }
    data
}
