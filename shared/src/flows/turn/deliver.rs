//! What a reply asks for, done: what it proposes is kept for the person's yes, what it looks up is told to the model.

use domain::actions::{ActionChange, ActionState};
use domain::agents::AgentDraft;
use domain::assets::NewAsset;
use domain::chats::signals::{ActionDraft, Deliverable};
use domain::chats::{Proposal, ProposalBody};
use domain::ids::{AgentId, ProposalId};
use domain::models::Block;
use domain::prompts;
use domain::runs::EventKind;
use domain::tools::{Tool, ToolCall};
use serde_json::{Value, json};

use super::super::call::{CallError, Reply};
use super::super::proposals::Origin;
use super::super::{actions, proposals, tools};
use super::{Place, Turn};
use crate::problem::{Error, Result};
use crate::store::Store;

/// What a reply asks for, done.
#[derive(Default)]
pub(super) struct Done {
    /// The results of native calls; each call must have one.
    pub results: Vec<Block>,
    /// What the model should hear of: then it is called again.
    pub news: Vec<String>,
    /// Whether a result is news.
    pub go_on: bool,
    pub broken: bool,
}

impl Turn {
    /// Does what a reply asks for, in its order: signals first, then native calls.
    pub(super) async fn perform(&mut self, reply: Reply) -> Result<Done, CallError> {
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
        let run = self.recorder.run();
        Origin { agent_id, chat_id: run.chat_id, run_id: Some(run.run_id) }
    }

    async fn propose_asset(&mut self, agent: AgentId, asset: NewAsset) -> Result<String, CallError> {
        let proposal = proposals::of_asset(&self.cx, &self.owner, self.origin(agent), asset).await?;
        Ok(self.propose(EventKind::AssetProposed, proposal).await?)
    }

    async fn propose_action(&mut self, agent: AgentId, draft: ActionDraft) -> Result<String, CallError> {
        let id = ProposalId::from_uuid(self.cx.clock.uuid());
        let proposal = proposals::new(&self.cx, self.origin(agent), id, ProposalBody::Action(draft));
        Ok(self.propose(EventKind::ActionProposed, proposal).await?)
    }

    async fn propose(&mut self, kind: EventKind, proposal: Proposal) -> Result<String> {
        let id = proposal.proposal_id;
        let mut data = json!({"proposal_id": id, "title": proposal.body.title()});
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

    async fn tool_result(&mut self, name: &str, input: &Value) -> Result<Result<String, String>> {
        let offered = Tool::from_name(name).filter(|tool| self.tools().contains(tool));
        let (Some(tool), Some(agent)) = (offered, self.agent.as_ref().map(|agent| agent.agent_id)) else {
            return Ok(Err(format!("there is no tool {name}")));
        };
        let call = match tool.parse(input) {
            Ok(call) => call,
            Err(sentence) => return Ok(Err(sentence)),
        };
        match call {
            ToolCall::ChangeAction(change) => self.propose_change(agent, change).await,
            call => tools::look_up(&self.cx, &self.owner, agent, call).await,
        }
    }

    /// Proposes to change the action that this is about, as it is now. The inner error is a sentence for the model.
    async fn propose_change(
        &mut self,
        agent: AgentId,
        change: ActionChange,
    ) -> Result<Result<String, String>> {
        let Place::Action(action) = &self.place else {
            return Ok(Err("there is no action here to change".to_owned()));
        };
        // It may have been changed since the turn began.
        let action = match actions::load(&self.cx, &self.owner, action.id).await {
            Ok(action) => action.value,
            Err(Error::NotFound(_)) => return Ok(Err("the action was deleted".to_owned())),
            Err(error) => return Err(error),
        };
        if action.state == ActionState::Dismissed {
            return Ok(Err("the action was dismissed: it can't be changed any more".to_owned()));
        }
        if let Err(errors) = change.check(&action) {
            return Ok(Err(errors.to_string()));
        }
        let title = change.title.clone().unwrap_or(action.title);
        let body = ProposalBody::Change { action_id: action.id, title, change: Box::new(change) };
        let id = ProposalId::from_uuid(self.cx.clock.uuid());
        let proposal = proposals::new(&self.cx, self.origin(agent), id, body);
        self.propose(EventKind::ActionProposed, proposal).await.map(Ok)
    }
}
