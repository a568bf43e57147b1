//! One occurrence at work: instructions in, drafts and tool calls, outputs saved, a check against what was expected.
//!
//! Every step is stored before the next begins and carries the fence of the claim: an executor that was killed is resumed
//! by the next one, and one that was given up for dead can write nothing any more. Before its deadline a run is put down
//! and handed on.

use domain::actions::{Action, Occurrence, OccurrenceCommand, OccurrenceState, Reason, ReasonCode};
use domain::agents::Agent;
use domain::assets::{AssetPatch, NewAsset};
use domain::chats::ProposalBody;
use domain::chats::signals::Deliverable;
use domain::ids::{AssetId, Owner, ProposalId, RunId};
use domain::models::{Block, Message, ModelRequest, Role, StopReason, ToolChoice, Usage};
use domain::prompts;
use domain::runs::{EventKind, RunError, RunState};
use domain::tools::{Tool, ToolCall};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::actions::{self, runs};
use super::call::{CallError, Ceilings, Reply, call};
use super::proposals::{self, Origin};
use super::wake::{Claimed, MAX_ATTEMPTS, ended};
use super::{assets, edit, messages, tools};
use crate::blobs::BlobKey;
use crate::context::Cx;
use crate::models::Route;
use crate::problem::{Error, Result};
use crate::store::runs::RunOutput;
use crate::store::steps::{Step, standing};
use crate::store::table::{Order, Write, Written};
use crate::store::{Store, StoreError, Versioned};
use crate::stream::{self, Recorder};

/// How long before the executor's end a run is put down.
const CHECKPOINT_BEFORE: SignedDuration = SignedDuration::from_secs(30);

/// How many steps a run may take, checks among them.
const MAX_STEPS: u32 = 24;

/// How often a check may send a run back to work.
const MAX_REVISIONS: usize = 2;

/// How many outputs a run may save.
const MAX_OUTPUTS: usize = 20;

/// The longest answer of one step, in tokens.
const MAX_OUTPUT_TOKENS: u32 = 16_000;

/// The most of the outputs that a check reads, in bytes.
const MAX_CHECKED: usize = 120 * 1024;

/// A step whose messages are larger than this lies in S3.
const MAX_INLINE: usize = 64 * 1024;

/// How a run comes to rest.
enum Rest {
    Succeeded {
        score: Option<u8>,
    },
    Failed {
        error: RunError,
    },
    Waiting {
        reason: Reason,
    },
    Drifted,
    /// The time is nearly up.
    HandOver,
    /// Another has it, or it was cancelled: there is nothing more to write.
    Gone,
}

/// Runs a claimed occurrence until it comes to rest.
///
/// # Errors
/// When its end can't be stored; the lease will tell.
pub async fn run(cx: &Cx, owner: &Owner, claimed: Claimed, deadline: Timestamp) -> Result<()> {
    let run_id = claimed.occurrence.value.run_id;
    let span = tracing::info_span!("run", %run_id, action_id = %claimed.action.value.id);
    tracing::Instrument::instrument(
        async {
            let Some(mut work) = Work::begin(cx, owner, claimed, deadline).await? else { return Ok(()) };
            let rest = match work.until_rest().await {
                Ok(rest) => rest,
                Err(CallError::Cancelled) => Rest::Gone,
                Err(CallError::Deadline) => Rest::HandOver,
                Err(error) => {
                    if let CallError::Failed(cause) = &error {
                        tracing::error!(cause = %cause.causes(), "a step failed");
                    }
                    Rest::Failed { error: error.run_error() }
                }
            };
            work.end(rest).await
        },
        span,
    )
    .await
}

struct Work {
    cx: Cx,
    owner: Owner,
    agent: Agent,
    action: Action,
    occurrence: Versioned<Occurrence>,
    fence: u64,
    recorder: Recorder,
    deadline: Timestamp,
    steps: Vec<Step>,
    messages: Vec<Message>,
    outputs: Vec<RunOutput>,
    /// What the record of the run had cost when the last step was stored.
    settled: (Usage, i64),
    /// What it had cost when this executor took it up.
    began_at_cost: i64,
}

impl Work {
    /// Takes up a run where it was put down. `None`: another executor was faster, or its agent is gone.
    async fn begin(cx: &Cx, owner: &Owner, claimed: Claimed, deadline: Timestamp) -> Result<Option<Self>> {
        let Claimed { agent, action: Versioned { value: action, .. }, occurrence } = claimed;
        let (run_id, fence) = (occurrence.value.run_id, occurrence.value.fence);
        let (run, (last_event, mut steps, outputs)) =
            tokio::try_join!(cx.store.run(owner, run_id), left(cx, owner, &occurrence.value))?;
        let run = match run {
            Some(run) => run,
            None => {
                let run = runs::record(&action, run_id, cx.clock.now());
                let _ = cx.store.transact(vec![Store::run_write(owner, &run)?]).await?;
                Versioned { value: run, version: 1 }
            }
        };
        let mut recorder = Recorder::new(cx.clone(), owner.clone(), run, last_event);
        let record = recorder.run_mut();
        record.state = RunState::Running;
        // The occurrence is what counts costs over all attempts.
        (record.usage, record.cost_micros) = (occurrence.value.usage, occurrence.value.cost_micros);
        record.message.clear();
        let settled = (record.usage, record.cost_micros);
        let began_at_cost = settled.1;

        steps = standing(steps, occurrence.value.steps_done);
        for step in steps.iter_mut().filter(|step| step.overflow) {
            let json = cx.blobs.get(&BlobKey::step(owner, run_id, step.n)).await?;
            step.messages = serde_json::from_slice(&json).map_err(|e| Error::internal(e.to_string()))?;
        }
        let mut messages = vec![Message::user(prompts::task(&action))];
        messages.extend(steps.iter().flat_map(|step| step.messages.iter().cloned()));
        let mut work = Self {
            outputs,
            cx: cx.clone(),
            owner: owner.clone(),
            agent,
            action,
            occurrence,
            fence,
            recorder,
            deadline: deadline - CHECKPOINT_BEFORE,
            steps,
            messages,
            settled,
            began_at_cost,
        };
        if !work.advance(OccurrenceCommand::Start { fence }, Vec::new()).await? {
            return Ok(None);
        }
        if last_event == 0 {
            let data = json!({"run_id": run_id, "kind": "action", "action_id": work.action.id, "agent_id": work.agent.agent_id});
            work.recorder.event(EventKind::RunStarted, data).await?;
        }
        work.hear().await?;
        Ok(Some(work))
    }

    /// Adds what people have said about this run since it was put down: an answer to its question, for example.
    async fn hear(&mut self) -> Result<()> {
        if self.occurrence.value.steps_done == 0 {
            return Ok(());
        }
        let answers: Vec<Block> = self.answers().await?.into_iter().map(Block::text).collect();
        if !answers.is_empty() && self.messages.last().is_some_and(|last| last.role == Role::User) {
            if let Some(last) = self.messages.last_mut() {
                last.content.extend(answers);
            }
        } else if !answers.is_empty() {
            self.messages.push(Message { role: Role::User, content: answers });
        }
        Ok(())
    }

    /// What people have said to this run since it asked, oldest first; with the question, where the steps that tell of it
    /// have expired. What is said about the action besides is not for it.
    async fn answers(&self) -> Result<Vec<String>> {
        let run = Some(self.occurrence.value.run_id);
        let (mut answers, mut after) = (Vec::new(), None::<String>);
        'asked: loop {
            let (id, after_this) = (self.action.id, after.as_deref());
            let found = self.cx.store.messages(&self.owner, id, after_this, 100, Order::Newest).await?;
            let of_run = found.items.into_iter().map(|(_, stored)| stored.value.message);
            for message in of_run.filter(|message| message.run_id == run) {
                if message.role == Role::Assistant {
                    if self.steps.is_empty() {
                        answers.push(format!("You have begun on this before, and asked: {}", message.text()));
                    }
                    break 'asked;
                }
                answers.push(format!("The person answered: {}", message.text()));
            }
            after = found.last;
            if after.is_none() {
                break;
            }
        }
        answers.reverse();
        Ok(answers)
    }

    /// Writes the occurrence after `command`, together with `more`. `false`: it is not ours any more.
    async fn advance(&mut self, command: OccurrenceCommand, more: Vec<Write>) -> Result<bool> {
        let Ok(next) = self.occurrence.value.transition(command, self.cx.clock.now()) else {
            return Ok(false);
        };
        let mut writes = vec![Store::replace_occurrence(&self.owner, &next, self.occurrence.version)?];
        writes.extend(more);
        if !self.cx.store.transact(writes).await?.done() {
            return Ok(false);
        }
        self.occurrence = Versioned { value: next, version: self.occurrence.version + 1 };
        Ok(true)
    }

    fn ceilings(&self) -> Ceilings {
        Ceilings { run_micros: self.action.budget.per_run_micros, deadline: Some(self.deadline) }
    }

    async fn until_rest(&mut self) -> Result<Rest, CallError> {
        if !self.action.is_approved_with(&self.agent) {
            return Ok(Rest::Drifted);
        }
        let route = self.cx.models.route(self.action.model_tier).map_err(CallError::Model)?.clone();
        loop {
            if self.cx.clock.now() >= self.deadline {
                return Ok(Rest::HandOver);
            }
            let last = self.steps.last();
            if last.is_some_and(|step| step.work_done) {
                if let Some(rest) = self.check(&route).await? {
                    return Ok(rest);
                }
                continue;
            }
            if let Some(score) = last.filter(|step| !step.revise).and_then(|step| step.score) {
                return Ok(Rest::Succeeded { score: Some(score) });
            }
            if self.steps.len() as u32 >= MAX_STEPS {
                return Ok(Rest::Failed {
                    error: failure("too_many_steps", format!("it was not done after {MAX_STEPS} steps")),
                });
            }
            if let Some(rest) = self.work(&route).await? {
                return Ok(rest);
            }
        }
    }

    /// One step of work: a call of the model, and what it asks for.
    async fn work(&mut self, route: &Route) -> Result<Option<Rest>, CallError> {
        let request = ModelRequest {
            model: route.model.clone(),
            system: prompts::run(&self.agent),
            tools: Tool::offered_in_run(&self.action.grants).map(Tool::spec).collect(),
            tool_choice: ToolChoice::Auto,
            messages: self.messages.clone(),
            max_output_tokens: MAX_OUTPUT_TOKENS,
            cache_last_turn: true,
        };
        let ceilings = self.ceilings();
        let reply = call(&self.cx, &self.owner, &mut self.recorder, route, request, ceilings, true).await?;
        let blocks = reply.blocks.clone();
        let (stop, text) = (reply.stop, reply.text.trim().to_owned());
        let asked = self.perform(reply).await?;
        let mut messages = Vec::new();
        if !blocks.is_empty() {
            messages.push(Message { role: Role::Assistant, content: blocks });
        }
        let mut step = Step::default();
        let mut waits = None;
        match asked {
            Asked::Nothing => {
                if matches!(stop, StopReason::MaxTokens | StopReason::Pause) && !messages.is_empty() {
                    if stop == StopReason::MaxTokens {
                        messages.push(Message::user("You were cut off. Go on where you stopped."));
                    }
                } else {
                    step.work_done = true;
                    if self.outputs.is_empty() && !text.is_empty() {
                        // A model that was given no tool, or forgot it: what it wrote is the output.
                        let title = self.action.title.clone();
                        let output = NewAsset { title, content: text, ..NewAsset::default() };
                        if let Err(reason) = self.save(output).await? {
                            messages.push(Message::user(prompts::repair(&reason)));
                            step.work_done = false;
                        }
                    }
                }
            }
            Asked::Results(results) => messages.push(Message { role: Role::User, content: results }),
            Asked::Person { reason, results } => {
                messages.push(Message { role: Role::User, content: results });
                waits = Some(reason);
            }
        }
        step.messages = messages;
        if !self.store(step).await? {
            return Ok(Some(Rest::Gone));
        }
        if let Some(reason) = waits {
            return Ok(Some(Rest::Waiting { reason }));
        }
        if self.steps.last().is_some_and(|step| step.work_done) && self.outputs.is_empty() {
            let error = failure("empty_output", "the run ended without an output".to_owned());
            return Ok(Some(Rest::Failed { error }));
        }
        Ok(None)
    }

    /// Stores a step and what it cost. `false`: the run is not ours any more.
    async fn store(&mut self, mut step: Step) -> Result<bool> {
        let run_id = self.occurrence.value.run_id;
        step.n = self.occurrence.value.steps_done + 1;
        step.anew = self.steps.is_empty() && step.n > 1;
        let mut stored = step.clone();
        let json = serde_json::to_vec(&step.messages).map_err(|e| Error::internal(e.to_string()))?;
        if json.len() > MAX_INLINE {
            self.cx.blobs.put(&BlobKey::step(&self.owner, run_id, step.n), json, "application/json").await?;
            stored.messages.clear();
            stored.overflow = true;
        }
        let (usage, cost) = (self.recorder.run().usage, self.recorder.run().cost_micros);
        let command = OccurrenceCommand::StepDone {
            fence: self.fence,
            usage: usage.since(&self.settled.0),
            cost_micros: cost - self.settled.1,
        };
        let write = Store::step_write(&self.owner, run_id, &stored)?;
        if !self.advance(command, vec![write]).await? {
            return Ok(false);
        }
        self.settled = (usage, cost);
        self.messages.extend(step.messages.iter().cloned());
        self.steps.push(step);
        Ok(true)
    }

    /// Does what a reply asks for, in its order.
    async fn perform(&mut self, reply: Reply) -> Result<Asked, CallError> {
        if !reply.text.trim().is_empty() {
            reply.text.trim().clone_into(&mut self.recorder.run_mut().message);
            self.recorder.event(EventKind::MessageCompleted, json!({"text": reply.text.trim()})).await?;
        }
        let (mut results, mut waits) = (Vec::new(), None);
        for deliverable in reply.deliverables {
            let result = match deliverable {
                Deliverable::UseTool { name, input } => self.tool(&name, &input, &mut waits).await?.0,
                Deliverable::Asset(asset) => {
                    self.save(asset).await?.unwrap_or_else(|reason| prompts::repair(&reason))
                }
                Deliverable::Actions { actions } => {
                    let input = json!({ "actions": actions });
                    self.tool(Tool::GenerateActions.name(), &input, &mut waits).await?.0
                }
                Deliverable::Invalid { reason, .. } => prompts::repair(&reason),
                Deliverable::ReadyToCreate(_) => "there is nothing to set up in a run".to_owned(),
            };
            results.push(Block::text(result));
        }
        for tool_use in reply.tool_calls {
            match tool_use.input {
                Ok(input) => {
                    let (content, is_error) = self.tool(&tool_use.name, &input, &mut waits).await?;
                    results.push(Block::ToolResult { tool_use_id: tool_use.id, content, is_error });
                }
                // A call that can't be read is not among the blocks: no result may name it.
                Err(reason) => results.push(Block::text(prompts::repair(&reason))),
            }
        }
        Ok(match (waits, results.is_empty()) {
            (Some(reason), _) => Asked::Person { reason, results },
            (None, false) => Asked::Results(results),
            (None, true) => Asked::Nothing,
        })
    }

    /// Calls one tool. What is not allowed to an unattended run ends it as waiting: `waits` says for what.
    async fn tool(
        &mut self,
        name: &str,
        input: &Value,
        waits: &mut Option<Reason>,
    ) -> Result<(String, bool), CallError> {
        self.recorder.event(EventKind::ToolRequested, json!({"tool": name, "input": brief(input)})).await?;
        let (result, is_error) = self.tool_result(name, input, waits).await?;
        let shown: String = result.chars().take(2_000).collect();
        let data = json!({"tool": name, "is_error": is_error, "result": shown});
        self.recorder.event(EventKind::ToolResult, data).await?;
        Ok((result, is_error))
    }

    async fn tool_result(
        &mut self,
        name: &str,
        input: &Value,
        waits: &mut Option<Reason>,
    ) -> Result<(String, bool), CallError> {
        // One that no grant could give is no tool here: there is nobody to ask for it.
        let Some(tool) = Tool::from_name(name).filter(|tool| tool.is_grantable()) else {
            return Ok((format!("there is no tool {name}"), true));
        };
        if !tool.is_allowed_in_run(&self.action.grants) {
            let text = format!("it wants to use {name}, which this action was not granted");
            *waits = Some(Reason::new(ReasonCode::OutsideGrant, text));
            return Ok((format!("{name} was not granted to this action; the person is asked"), true));
        }
        let call = match tool.parse(input) {
            Ok(call) => call,
            Err(sentence) => return Ok((sentence, true)),
        };
        match call {
            ToolCall::SaveOutput(asset) | ToolCall::Deliver(Deliverable::Asset(asset)) => {
                match self.save(asset).await? {
                    Ok(told) => Ok((told, false)),
                    Err(reason) => Ok((reason, true)),
                }
            }
            ToolCall::AskPerson { question } => {
                *waits = Some(Reason::new(ReasonCode::Asked, question));
                Ok(("the person is asked; the run goes on with the answer".to_owned(), false))
            }
            ToolCall::Deliver(Deliverable::Actions { actions }) => {
                for draft in actions {
                    self.propose(draft).await?;
                }
                Ok(("it waits for the person's yes".to_owned(), false))
            }
            ToolCall::Deliver(_) => Ok((format!("{name} has no use in a run"), true)),
            look_up => match tools::look_up(&self.cx, &self.owner, self.agent.agent_id, look_up).await? {
                Ok(result) => Ok((result, false)),
                Err(sentence) => Ok((sentence, true)),
            },
        }
    }

    async fn propose(&mut self, draft: domain::chats::signals::ActionDraft) -> Result<()> {
        let origin = Origin {
            agent_id: self.agent.agent_id,
            chat_id: None,
            run_id: Some(self.occurrence.value.run_id),
        };
        let id = ProposalId::from_uuid(self.cx.clock.uuid());
        let proposal = proposals::new(&self.cx, origin, id, ProposalBody::Action(draft));
        let data = json!({"proposal_id": id, "title": proposal.body.title()});
        let writes = Store::proposal_writes(&self.owner, &proposal)?;
        self.recorder.event_with(EventKind::ActionProposed, data, writes).await?;
        self.recorder.run_mut().proposals.push(id);
        Ok(())
    }

    /// Saves an output as an asset and under the run. A title that was saved before gets a new version. The inner error
    /// is why it can't be taken as it is.
    async fn save(&mut self, output: NewAsset) -> Result<Result<String, String>, CallError> {
        if let Err(errors) = output.validate() {
            return Ok(Err(errors.to_string()));
        }
        let run = self.occurrence.value.run_id;
        let title = output.title.trim().to_owned();
        let known = self.outputs.iter().position(|o| o.title.eq_ignore_ascii_case(&title));
        let slot = known.unwrap_or(self.outputs.len());
        if slot >= MAX_OUTPUTS {
            return Ok(Err(format!("a run saves at most {MAX_OUTPUTS} outputs")));
        }
        let id = AssetId::for_output(run, slot as u32);
        let saved = RunOutput { asset_id: id, title, bytes: output.content.len() as u64 };
        let listed = || Store::output_write(&self.owner, run, slot as u32 + 1, &saved);
        let (cx, agent) = (&self.cx, self.agent.agent_id);
        if known.is_some()
            || !assets::make_output(cx, &self.owner, agent, run, id, &output, listed()?).await?
        {
            let patch = AssetPatch { content: Some(output.content), ..AssetPatch::default() };
            assets::change(cx, &self.owner, id, None, patch).await?;
            let _ = cx.store.transact(vec![listed()?]).await?;
        }
        let told = format!("saved \"{}\" ({id})", saved.title);
        match known {
            Some(at) => self.outputs[at] = saved,
            None => self.outputs.push(saved),
        }
        Ok(Ok(told))
    }

    /// Has the outputs checked against what was expected. `None`: there is more to do.
    async fn check(&mut self, route: &Route) -> Result<Option<Rest>, CallError> {
        let mut outputs = String::new();
        for output in &self.outputs {
            let content = assets::content(&self.cx, &self.owner, output.asset_id, None).await?.text;
            outputs.push_str(&format!("## {}\n{content}\n\n", output.title));
        }
        let mut end = outputs.len().min(MAX_CHECKED);
        while !outputs.is_char_boundary(end) {
            end -= 1;
        }
        outputs.truncate(end);
        let request = ModelRequest {
            model: route.model.clone(),
            system: prompts::check(),
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            messages: vec![Message::user(prompts::to_check(&self.action, &outputs))],
            max_output_tokens: 1_000,
            cache_last_turn: false,
        };
        let ceilings = self.ceilings();
        let reply = call(&self.cx, &self.owner, &mut self.recorder, route, request, ceilings, false).await;
        let verdict = match reply {
            Ok(reply) => Verdict::read(&reply.text),
            // The work is done and saved: a check that the budget does not pay for is left out.
            Err(CallError::Budget(_)) => None,
            Err(error) => return Err(error),
        };
        let Some(verdict) = verdict else { return Ok(Some(Rest::Succeeded { score: None })) };
        let score = verdict.score.min(100);
        let revisions = self.steps.iter().filter(|step| step.revise).count();
        let revise = !verdict.meets && revisions < MAX_REVISIONS;
        let messages =
            if revise { vec![Message::user(prompts::revise(&verdict.missing))] } else { Vec::new() };
        if !self.store(Step { score: Some(score), revise, messages, ..Step::default() }).await? {
            return Ok(Some(Rest::Gone));
        }
        Ok(if revise { None } else { Some(Rest::Succeeded { score: Some(score) }) })
    }

    /// Writes the rest down: the occurrence, the action and the run's record together.
    async fn end(mut self, rest: Rest) -> Result<()> {
        let fence = self.fence;
        let (command, state, error) = match rest {
            Rest::Gone => return Ok(()),
            Rest::Succeeded { score } => {
                (OccurrenceCommand::Succeed { fence, score }, RunState::Completed, None)
            }
            Rest::Failed { error } => {
                let (text, retryable) = (error.detail.clone(), error.retryable);
                let command =
                    OccurrenceCommand::Fail { fence, error: text, retryable, max_attempts: MAX_ATTEMPTS };
                (command, RunState::Failed, Some(error))
            }
            Rest::Waiting { reason } => (OccurrenceCommand::Wait { fence, reason }, RunState::Waiting, None),
            Rest::Drifted => {
                let detail = "what would have run is not what was approved".to_owned();
                let error = RunError { code: "drifted".to_owned(), detail, retryable: false };
                (OccurrenceCommand::Drift { fence }, RunState::Failed, Some(error))
            }
            Rest::HandOver => (OccurrenceCommand::HandOver { fence }, RunState::Running, None),
        };
        self.recorder.flush().await?;
        // What was spent since the last step belongs to the occurrence however it ends.
        let (usage, cost) = (self.recorder.run().usage, self.recorder.run().cost_micros);
        let mut held = Some(Versioned { version: self.action.version, value: self.action.clone() });
        for _ in 0..edit::TRIES {
            // As this executor has left it; should somebody have changed it meanwhile, as it is now.
            let action = match held.take() {
                Some(held) => held,
                None => match actions::load(&self.cx, &self.owner, self.action.id).await {
                    Ok(action) => action,
                    Err(Error::NotFound(_)) => return Ok(()),
                    Err(error) => return Err(error),
                },
            };
            let now = self.cx.clock.now();
            let mut spent = self.occurrence.value.clone();
            spent.usage = usage;
            spent.cost_micros = cost;
            let command = command.clone().for_action(&action.value);
            let Ok(next) = spent.transition(command, now) else { return Ok(()) };
            let at_rest = next.state.is_final() || next.state == OccurrenceState::Waiting;
            let after = if at_rest { ended(&action.value, &next, now) } else { action.value.clone() };
            let mut writes = vec![Store::replace_occurrence(&self.owner, &next, self.occurrence.version)?];
            let live = Some(&next).filter(|next| after.live_run == Some(next.run_id));
            writes.extend(actions::action_writes(&self.owner, &action, &after, live, now)?);
            let new_cost = cost - self.began_at_cost;
            if new_cost > 0 {
                writes.push(Store::count(&self.owner, self.agent.agent_id, vec![("cost_micros", new_cost)]));
            }
            if next.state == OccurrenceState::Waiting {
                writes.push(self.card(&next)?);
            }
            if at_rest {
                let (state, error) = match (next.state, &next.reason) {
                    (OccurrenceState::Cancelled, Some(reason)) => {
                        (RunState::Cancelled, Some(failure("cancelled", reason.clone())))
                    }
                    _ => (state, error.clone()),
                };
                writes.extend(self.recorder.end_writes(state, error)?);
            }
            let writes = merged(writes);
            match self.cx.store.transact(writes).await? {
                Written::Yes => {
                    tracing::info!(
                        state = next.state.as_str(),
                        attempts = next.attempts,
                        "a run came to rest"
                    );
                    if actions::wake_at(&after, live, now).is_some_and(|at| at <= now) {
                        actions::dispatch(&self.cx, &self.owner, action.value.id).await;
                    }
                    return Ok(());
                }
                Written::Refused { first: 0 } => return Ok(()),
                Written::Refused { .. } => {}
            }
        }
        Err(edit::contended())
    }

    /// The one message that asks a person.
    fn card(&self, occurrence: &Occurrence) -> Result<Write> {
        let question = Block::text(occurrence.reason.clone().unwrap_or_default());
        let message = messages::new(&self.cx, Role::Assistant, vec![question], Some(occurrence.run_id));
        Ok(Store::message_write(&self.owner, self.action.id, &message.into())?)
    }
}

/// What earlier executors of an occurrence have left: the newest event, the steps, the outputs.
async fn left(
    cx: &Cx,
    owner: &Owner,
    occurrence: &Occurrence,
) -> Result<(u64, Vec<Step>, Vec<RunOutput>), StoreError> {
    // The first claim has the first fence: nobody else has written anything.
    if occurrence.fence == 1 {
        return Ok((0, Vec::new(), Vec::new()));
    }
    let run = occurrence.run_id;
    tokio::try_join!(
        cx.store.last_event_id(owner, run),
        cx.store.steps(owner, run),
        cx.store.run_outputs(owner, run),
    )
}

/// What a reply asked for.
enum Asked {
    Nothing,
    Results(Vec<Block>),
    Person { reason: Reason, results: Vec<Block> },
}

/// Adds to one item are one add: a transaction takes each item once.
fn merged(writes: Vec<Write>) -> Vec<Write> {
    let mut out: Vec<Write> = Vec::with_capacity(writes.len());
    for write in writes {
        if let Write::Add { key, numbers, .. } = &write
            && let Some(Write::Add { numbers: standing, .. }) =
                out.iter_mut().find(|w| matches!(w, Write::Add { key: k, .. } if k == key))
        {
            standing.extend(numbers.iter().copied());
            continue;
        }
        out.push(write);
    }
    out
}

fn failure(code: &str, detail: String) -> RunError {
    RunError { code: code.to_owned(), detail, retryable: false }
}

/// The input of a call as events show it: an output's content is read under the run, not in its events.
fn brief(input: &Value) -> Value {
    let mut brief = input.clone();
    if let Some(Value::String(content)) = brief.get_mut("content") {
        *content = format!("({} bytes)", content.len());
    }
    brief
}

/// What a check answers.
#[derive(Debug, Deserialize)]
struct Verdict {
    score: u8,
    meets: bool,
    #[serde(default)]
    missing: Vec<String>,
}

impl Verdict {
    /// Reads the first JSON object of an answer; models like to put words around it.
    fn read(text: &str) -> Option<Self> {
        let start = text.find('{')?;
        serde_json::Deserializer::from_str(&text[start..]).into_iter().next()?.ok()
    }
}

/// Ends the record of a run whose occurrence ended without an executor.
///
/// # Errors
/// When the table does not answer.
pub async fn close(cx: &Cx, owner: &Owner, run: RunId, occurrence: &Occurrence) -> Result<()> {
    let Some(found) = cx.store.run(owner, run).await? else { return Ok(()) };
    if found.value.state.is_final() {
        return Ok(());
    }
    let state = match occurrence.state {
        OccurrenceState::Cancelled => RunState::Cancelled,
        _ => RunState::Failed,
    };
    let error = occurrence.reason.clone().map(|detail| failure(occurrence.state.as_str(), detail));
    stream::end_without_executor(cx, owner, found, state, error).await?;
    Ok(())
}
