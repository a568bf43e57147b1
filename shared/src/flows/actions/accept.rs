//! Accepts what a model has proposed for an existing action: a change, or a command.

use domain::actions::{AcceptedChange, ActionCommand, ActionPatch, Command};
use domain::chats::ProposalBody;
use domain::ids::{Owner, ProposalId, RunId};
use domain::validate::FieldErrors;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::apply::{Changed, With, change, perform};
use super::rehearse::{RehearseAction, rehearse_accepting};
use super::runs::run_accepting;
use super::{ActionView, load, not_now, read};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::actions::proposals;
use crate::flows::existing;
use crate::request::caller::Actor;
use crate::store::Once;

/// How a person accepts a proposal.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(example = json!({"approval_hash": "9167086c669c2fdcdf9d72457f672d0acb873ab2c8e72a1f582736d2ea7a0a31"}))]
pub struct AcceptProposal {
    /// Of a change: the `approval_hash` of the proposal that the person has seen. The changed action is then also approved.
    pub approval_hash: Option<String>,
    /// Of a change: another title for the action. It is approved with the change.
    #[schema(max_length = 200)]
    pub title: Option<String>,
}

/// A proposal that was accepted.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AcceptedProposal {
    pub proposal_id: ProposalId,
    /// `change` or `command`.
    #[schema(value_type = String, example = "command")]
    pub kind: &'static str,
    /// The command that was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<ActionCommand>,
    /// The run or the rehearsal that has begun. Follow it at `/runs/{run_id}/events`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The action afterwards. If it needs an approval, its `approval_hash` differs from `approval.hash`.
    pub action: ActionView,
}

/// Accepts a proposal of a change or of a command. The transaction that does it also removes the proposal, so it is done once.
///
/// # Errors
/// 404 if the proposal or its action does not exist; 400 if it is a proposal of something else; 409 if there is a newer proposal, if the
/// action does not allow it now, or if the changed action would not be what `approval_hash` stands for; and as the route of the command.
pub async fn accept(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    by: Actor,
    id: ProposalId,
    input: AcceptProposal,
) -> Result<AcceptedProposal> {
    let proposal = proposals::to_accept(cx, owner, id).await?;
    let AcceptProposal { approval_hash, title } = input;
    let accepted =
        |action| AcceptedProposal { proposal_id: id, kind: "change", command: None, run_id: None, action };
    match &proposal.body {
        ProposalBody::Change { action_id, change: proposed, .. } => {
            let Some(hash) = approval_hash else {
                let patch = ActionPatch { proposal_id: Some(id), title, ..ActionPatch::default() };
                return Ok(accepted(change(cx, owner, once, by, *action_id, None, patch).await?));
            };
            let action = load(cx, owner, *action_id).await?.value;
            // If the agent is edited after this read, the approval is for the old agent and is not valid.
            let agent = existing::agent(cx, owner, action.agent_id).await?.value;
            let patch = |title| ActionPatch { title, ..ActionPatch::default() }.over((**proposed).clone());
            let shown = proposals::valid(cx, owner, &agent, patch(None)).await?;
            let given = proposals::valid(cx, owner, &agent, patch(title)).await?;
            let approves = AcceptedChange { shown: &shown, given: &given, hash: &hash, agent: &agent };
            let with = With::approving(by, &proposal, approves);
            let changed =
                perform(cx, owner, once, *action_id, Command::Patch { patch: &given }, with).await?;
            Ok(accepted(ActionView::new(changed.action, &agent).after(changed.effects)))
        }
        ProposalBody::Command { action_id: action, command, .. } => {
            let mut errors = FieldErrors::default();
            for (field, is_given) in [("approval_hash", approval_hash.is_some()), ("title", title.is_some())]
            {
                if is_given {
                    errors.add(field, "has no meaning for a command: only a change has it");
                }
            }
            errors.into_result(())?;
            let (action, command) = (*action, *command);
            let found = load(cx, owner, action).await?.value;
            let agent = existing::agent(cx, owner, found.agent_id).await?.value;
            if let Err(refused) = command.check(&found, &agent, cx.clock.now()) {
                return Err(not_now(cx, owner, &refused, found).await);
            }
            let of_state = async |command| {
                let with = With::accepting(by, Some(&proposal));
                let Changed { action, effects } = perform(cx, owner, once, action, command, with).await?;
                Ok::<_, Error>((ActionView::new(action, &agent).after(effects), None))
            };
            let (view, run_id) = match command {
                ActionCommand::Pause => of_state(Command::Pause).await?,
                ActionCommand::Resume => of_state(Command::Resume).await?,
                ActionCommand::Dismiss => of_state(Command::Dismiss).await?,
                ActionCommand::RunNow => {
                    let started = run_accepting(cx, owner, once, by, action, Some(&proposal)).await?;
                    (started.action, Some(started.run_id))
                }
                ActionCommand::Rehearse => {
                    let with = RehearseAction::default();
                    let begun = rehearse_accepting(cx, owner, once, action, with, Some(&proposal)).await?;
                    (read(cx, owner, action).await?, Some(begun.run_id))
                }
            };
            Ok(AcceptedProposal { kind: "command", command: Some(command), run_id, ..accepted(view) })
        }
        ProposalBody::Asset { .. } | ProposalBody::Action(_) => {
            let told = "must be a proposal of a change or of a command: save an asset with POST /agents/{agent_id}/assets, and define \
                        an action with POST /agents/{agent_id}/actions";
            Err(FieldErrors::one("proposal_id", told).into())
        }
    }
}
