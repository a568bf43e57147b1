//! A run of an action: the model gets the task, saves outputs, and a check compares them with the expected output.
//!
//! An executor claims the occurrence, and stores every reply together with it, under the fence of the claim. So an executor that
//! was believed dead cannot write any more.

use domain::accounts::quota::Charge;
use domain::actions::{Action, Occurrence, OccurrenceCommand, OccurrenceState, Reason, ReasonCode};
use domain::agent_loop::{Call, CallResult, Outcome, Policy, Purpose, Reply, Revisions, Transcript};
use domain::agents::Agent;
use domain::assets::NewAsset;
use domain::chats::ProposalBody;
use domain::chats::signals::Deliverable;
use domain::ids::{AssetId, Owner, ProposalId, RunId};
use domain::models::{Block, Message, ModelTier, Role, StopReason, SystemBlock, Usage};
use domain::prompts;
use domain::runs::{EventKind, Run, RunError, RunEvent, RunKind, RunState};
use domain::tools::questions::AskPerson;
use domain::tools::{Setting, ToolCall};
use jiff::Timestamp;
use serde_json::json;

use crate::agent_loop::journal::Journal;
use crate::agent_loop::recorder::{self, Recorder, lease_from};
use crate::agent_loop::{self, Kind, PUT_DOWN_BEFORE, Performed};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::actions;
use crate::flows::actions::{records, runs};
use crate::flows::messages;
use crate::flows::proposals::{self, Origin};
use crate::flows::{assets, due, tools};
use crate::money::alerts;
use crate::money::ceilings::MonthCeilings;
use crate::money::quota::Quota;
use crate::store::keys::Guard;
use crate::store::runs::RunOutput;
use crate::store::table::{Order, Write, Written};
use crate::store::{DueItem, Store, Tries, Versioned};

/// How many steps of work a run may take.
const MAX_STEPS: usize = 24;

/// How often a check may send a run back to work.
const MAX_REVISIONS: Revisions = Revisions(2);

/// How many outputs a run may save.
const MAX_OUTPUTS: usize = 20;

/// How much of the outputs a check reads, in bytes.
const MAX_CHECKED: usize = 120 * 1024;

/// Why the work on a run stops.
enum Rest {
    Loop(agent_loop::Rest),
    /// The action, its agent or its tools are no longer what was approved.
    Drifted,
}

/// An occurrence that this executor has claimed.
pub struct ClaimedRun {
    pub agent: Agent,
    pub action: Versioned<Action>,
    pub occurrence: Versioned<Occurrence>,
}

/// Runs a claimed occurrence until it ends, waits, or is handed on.
///
/// # Errors
/// If its end can't be stored. Then another executor takes it over when its lease ends.
pub async fn run(cx: &Cx, owner: &Owner, claimed: ClaimedRun, deadline: Timestamp) -> Result<()> {
    let run_id = claimed.occurrence.value.run_id;
    let span = tracing::info_span!("run", %run_id, action_id = %claimed.action.value.id);
    tracing::Instrument::instrument(
        async {
            let begun = Box::pin(begin(cx, owner, claimed, deadline)).await?;
            let Some(mut agent) = begun else { return Ok(()) };
            let rest = if agent.recorder.run().charge == Charge::Refused {
                Rest::Loop(agent_loop::Rest::Failed(refused_by_plan(cx, owner).await?))
            } else if agent.kind.action.is_approved_with(&agent.kind.agent) {
                Rest::Loop(Box::pin(agent.drive()).await)
            } else {
                Rest::Drifted
            };
            Box::pin(end(agent, rest)).await
        },
        span,
    )
    .await
}

/// Why a run that the plan did not include has failed.
async fn refused_by_plan(cx: &Cx, owner: &Owner) -> Result<RunError> {
    let detail = match Quota::of(cx, owner).await?.exceeded() {
        Some(exceeded) => exceeded.to_string(),
        // The owner has changed the plan since.
        None => "the plan included no more requests when this run was due".to_owned(),
    };
    Ok(failure("quota_exceeded", detail))
}

/// A claimed occurrence.
struct ActionRun {
    cx: Cx,
    owner: Owner,
    agent: Agent,
    action: Action,
    occurrence: Versioned<Occurrence>,
    fence: u64,
    outputs: Vec<RunOutput>,
    /// The output that is being saved, and its index.
    saving: Option<(usize, RunOutput)>,
    /// The occurrence after the step that is being stored.
    next: Option<(Occurrence, (Usage, i64))>,
    /// The usage and cost that are stored in the occurrence.
    settled: (Usage, i64),
    /// What the run had cost when this executor claimed it.
    began_at_cost: i64,
}

impl Kind for ActionRun {
    fn policy(&self) -> Policy {
        Policy {
            max_steps: MAX_STEPS,
            talks_at_last: false,
            max_repairs: usize::MAX,
            continues_cut_off: true,
            checked: Some(MAX_REVISIONS),
            // A run may wait for a person for a long time. Its steps and its budget limit it.
            until: Timestamp::MAX,
        }
    }

    fn tier(&self) -> ModelTier {
        self.action.model_tier
    }

    fn ceiling_micros(&self) -> i64 {
        self.action.budget.per_run_micros
    }

    fn month_ceilings(&self) -> MonthCeilings {
        MonthCeilings {
            agent: self.agent.budget.per_month_micros,
            action: self.action.budget.per_month_micros,
        }
    }

    fn system(&self) -> Vec<SystemBlock> {
        prompts::run(&self.agent)
    }

    fn setting(&self) -> Setting<'_> {
        Setting::Run { grants: &self.action.grants }
    }

    async fn history(&mut self) -> Result<Vec<Message>> {
        Ok(vec![Message::user(prompts::task(&self.action))])
    }

    async fn to_check(&mut self) -> Result<String> {
        let mut outputs = String::new();
        for output in &self.outputs {
            let content = assets::content(&self.cx, &self.owner, output.asset_id, None).await?.text;
            outputs.push_str(&format!("## {}\n{content}\n\n", output.title));
            if outputs.len() >= MAX_CHECKED {
                break;
            }
        }
        outputs.truncate(outputs.floor_char_boundary(MAX_CHECKED));
        Ok(prompts::to_check(&self.action, &outputs))
    }

    /// If the model has saved no output with a tool, the text of its reply is the output.
    fn complete(&self, reply: &mut Reply) {
        let text = reply.text.trim();
        let done = !matches!(reply.stop, StopReason::MaxTokens | StopReason::Pause);
        if reply.calls.is_empty() && done && self.outputs.is_empty() && !text.is_empty() {
            let call = Call::implied_output(&self.action.title, text);
            reply.calls.push(call);
        }
    }

    fn guard(&mut self, run: &Run) -> Result<Option<Write>> {
        let command = OccurrenceCommand::StepDone {
            fence: self.fence,
            usage: run.usage.since(&self.settled.0),
            cost_micros: run.cost_micros - self.settled.1,
        };
        let next = self.occurrence.value.transition(command, self.cx.clock.now());
        let next = next.map_err(|refused| Error::internal(refused.to_string()))?;
        let write = Store::replace_occurrence(&self.owner, &next, self.occurrence.version)?;
        self.next = Some((next, (run.usage, run.cost_micros)));
        Ok(Some(write))
    }

    fn effect(&mut self, begins: Option<&str>) -> Result<Option<Write>> {
        let fence = self.fence;
        let command = match begins {
            Some(effect) => OccurrenceCommand::EffectBegun { fence, effect: effect.to_owned() },
            None => OccurrenceCommand::EffectEnded { fence },
        };
        let next = self.occurrence.value.transition(command, self.cx.clock.now());
        let next = next.map_err(|refused| Error::internal(refused.to_string()))?;
        let write = Store::replace_occurrence(&self.owner, &next, self.occurrence.version)?;
        self.next = Some((next, self.settled));
        Ok(Some(write))
    }

    async fn said_by_person(&mut self) -> Result<Option<String>> {
        let said = said_to(&self.cx, &self.owner, &self.action, self.occurrence.value.run_id, false).await?;
        Ok(Some(said.join("\n\n")).filter(|said| !said.is_empty()))
    }

    fn guarded(&mut self) {
        if let Some((next, settled)) = self.next.take() {
            self.occurrence = Versioned { value: next, version: self.occurrence.version + 1 };
            self.settled = settled;
        }
    }

    async fn perform(&mut self, run: &Run, call: ToolCall) -> Result<Performed> {
        self.saving = None;
        match call {
            ToolCall::SaveOutput(asset) | ToolCall::Deliver(Deliverable::Asset(asset)) => {
                self.save(asset).await
            }
            ToolCall::AskPerson(AskPerson { question }) => {
                let told = "the person is asked; the run continues when the answer is there";
                Ok(CallResult::asked(told, false, Reason::new(ReasonCode::Asked, question)).into())
            }
            ToolCall::Deliver(Deliverable::Actions { mut actions }) => {
                let (asked, room) = (actions.len(), proposals::room(run));
                actions.truncate(room);
                let mut performed = if asked > room {
                    proposals::too_many("generate_actions", room, asked)
                } else {
                    CallResult::told("it waits for the person's yes").into()
                };
                for draft in actions {
                    let id = ProposalId::from_uuid(self.cx.clock.uuid());
                    let origin =
                        Origin { agent_id: self.agent.agent_id, chat_id: None, run_id: Some(run.run_id) };
                    let proposal = proposals::new(&self.cx, origin, id, ProposalBody::Action(draft));
                    let data = json!({"proposal_id": id, "title": proposal.body.title()});
                    performed.events.push((EventKind::ActionProposed, data));
                    performed.writes.extend(Store::proposal_writes(&self.owner, &proposal)?);
                    performed.proposals.push(id);
                }
                Ok(performed)
            }
            look_up => {
                let agent = self.agent.agent_id;
                Ok(match tools::look_up(&self.cx, &self.owner, agent, look_up).await? {
                    Ok(result) => CallResult::told(result).into(),
                    Err(sentence) => CallResult::refused(sentence).into(),
                })
            }
        }
    }

    fn performed(&mut self) {
        match self.saving.take() {
            Some((at, saved)) if at < self.outputs.len() => self.outputs[at] = saved,
            Some((_, saved)) => self.outputs.push(saved),
            None => {}
        }
    }

    fn outputs(&self) -> usize {
        self.outputs.len()
    }
}

impl ActionRun {
    /// Saves an output as an asset, and lists it with the run. An output with the title of an earlier one becomes its new version.
    async fn save(&mut self, output: NewAsset) -> Result<Performed> {
        if let Err(errors) = output.validate() {
            return Ok(CallResult::repair(&errors.to_string()).into());
        }
        let run = self.occurrence.value.run_id;
        let title = output.title.trim().to_owned();
        let known = self.outputs.iter().position(|o| o.title.eq_ignore_ascii_case(&title));
        let slot = known.unwrap_or(self.outputs.len());
        if slot >= MAX_OUTPUTS {
            return Ok(CallResult::refused(format!("a run saves at most {MAX_OUTPUTS} outputs")).into());
        }
        let id = AssetId::for_output(run, slot as u32);
        let saved = RunOutput { asset_id: id, title, bytes: output.content.len() as u64 };
        let told = format!("saved \"{}\" ({id})", saved.title);
        let mut performed = Performed::from(CallResult::told(told));
        let agent = self.agent.agent_id;
        performed.writes = assets::output_writes(&self.cx, &self.owner, agent, run, id, output).await?;
        performed.writes.push(Store::output_write(&self.owner, run, slot as u32 + 1, &saved)?);
        self.saving = Some((slot, saved));
        Ok(performed)
    }
}

/// Begins a run, or continues it after its last stored step. `None` if another executor was faster, or the run has ended.
async fn begin(
    cx: &Cx,
    owner: &Owner,
    claimed: ClaimedRun,
    deadline: Timestamp,
) -> Result<Option<agent_loop::Agent<ActionRun>>> {
    let ClaimedRun { agent, action: Versioned { value: action, .. }, occurrence } = claimed;
    let (run_id, fence) = (occurrence.value.run_id, occurrence.value.fence);
    let done = occurrence.value.steps_done;
    let mut tries = Tries::default();
    let mut charge = Charge::Included;
    loop {
        tries.next().await?;
        // The first claim has fence 1. Nothing is stored before it.
        let ((mut journal, mut steps), outputs, last, stored) = if fence == 1 {
            ((Journal::new(run_id, fence), Vec::new()), Vec::new(), 0, 0)
        } else {
            tokio::try_join!(
                Journal::load(cx, owner, run_id, fence, Some(done)),
                async { Ok(cx.store.run_outputs(owner, run_id).await?) },
                async { Ok(cx.store.last_event_id(owner, run_id).await?) },
                async { Ok(cx.store.last_stored_event(owner, run_id).await?) },
            )?
        };
        let now = cx.clock.now();
        let found = cx.store.run(owner, run_id).await?;
        let version = found.as_ref().map_or(0, |found| found.version);
        let mut run = found.map_or_else(
            || Run {
                usage: occurrence.value.usage,
                cost_micros: occurrence.value.cost_micros,
                ..records::record(&action, run_id, now)
            },
            |found| found.value,
        );
        run.state = RunState::Running;
        run.fence = fence;
        run.lease_until = lease_from(now);
        let settle = recorder::settle_left(cx, owner, &mut run, stored.max(1)).await?;

        let refused = |refused: domain::actions::OccurrenceRefused| Error::internal(refused.to_string());
        let Ok(mut next) = occurrence.value.transition(OccurrenceCommand::Start { fence }, now) else {
            return Ok(None);
        };
        let mut answer_writes = Vec::new();
        // While a call has no result, the model can't get another message. What people said is added to the call's result.
        let is_open = steps.last().is_some_and(|step| step.results.len() < step.reply.calls.len());
        if !is_open
            && let Some(text) =
                answers_since_wait(cx, owner, &action, &occurrence.value, steps.is_empty()).await?
        {
            let reply = Reply { text, ..Reply::default() };
            answer_writes.push(journal.reply(cx, owner, Purpose::Person, &reply, last + 1).await?);
            let usage = Usage::default();
            let command = OccurrenceCommand::StepDone { fence, usage, cost_micros: 0 };
            next = next.transition(command, now).map_err(refused)?;
            steps.push(domain::agent_loop::Step { purpose: Purpose::Person, reply, results: Vec::new() });
            journal.stored();
        }
        // A run counts once for the plan: together with its first event.
        let quota = if last == 0 { Quota::of(cx, owner).await? } else { Quota::NONE };
        if last == 0 {
            run.charge = charge;
        }
        let event = if last == 0 {
            let data = json!({"run_id": run_id, "kind": "action", "action_id": action.id, "agent_id": action.agent_id});
            RunEvent::new(1, EventKind::RunStarted, now, data)
        } else {
            let stored = stored.max(run.waited).max(1);
            let step = journal.last() + u32::from(!is_open);
            let data = json!({"step": step, "void_from": stored + 1});
            RunEvent::new(last + 1, EventKind::StepRestarted, now, data)
        };
        let mut writes = vec![
            Store::replace_occurrence(owner, &next, occurrence.version)?,
            if version == 0 {
                Store::run_write(owner, &run)?
            } else {
                Store::replace_run_write(owner, &run, version)?
            },
            Store::event_write(owner, run_id, &event)?,
        ];
        writes.extend(answer_writes);
        writes.extend(settle);
        writes.extend(quota.write(owner, run.charge));
        match cx.store.write_all(writes).await? {
            Written::Yes => {
                let settled = (occurrence.value.usage, occurrence.value.cost_micros);
                let run = Versioned { value: run, version: version + 1 };
                let kind = ActionRun {
                    cx: cx.clone(),
                    owner: owner.clone(),
                    agent,
                    action,
                    occurrence: Versioned { value: next, version: occurrence.version + 1 },
                    fence,
                    outputs,
                    saving: None,
                    next: None,
                    settled,
                    began_at_cost: settled.1,
                };
                return Ok(Some(agent_loop::Agent {
                    cx: cx.clone(),
                    kind,
                    recorder: Recorder::new(cx.clone(), owner.clone(), run, event.id),
                    journal,
                    transcript: Transcript { steps, outputs: 0 },
                    deadline: deadline - PUT_DOWN_BEFORE,
                    begun: None,
                    reductions: 0,
                }));
            }
            Written::Refused(Guard::Occurrence) => return Ok(None),
            Written::Refused(Guard::Quota) => charge = quota.beyond().unwrap_or(Charge::Refused),
            // A former executor has written something meanwhile. Read again.
            Written::Refused(_) => {}
        }
    }
}

/// What people have said to a run that waited, if this is the first claim after the wait.
async fn answers_since_wait(
    cx: &Cx,
    owner: &Owner,
    action: &Action,
    occurrence: &Occurrence,
    begins_anew: bool,
) -> Result<Option<String>> {
    if !matches!(occurrence.reason_code, Some(ReasonCode::Asked | ReasonCode::OutsideGrant)) {
        return Ok(None);
    }
    let mut answers = said_to(cx, owner, action, occurrence.run_id, begins_anew).await?;
    if answers.is_empty() {
        answers.push("The person has seen this and lets the run continue.".to_owned());
    }
    Ok(Some(answers.join("\n\n")))
}

/// What people have said to a run since it asked. If the steps with the question have expired, the question is included.
async fn said_to(
    cx: &Cx,
    owner: &Owner,
    action: &Action,
    run: RunId,
    begins_anew: bool,
) -> Result<Vec<String>> {
    let (mut answers, mut after) = (Vec::new(), None::<String>);
    'asked: loop {
        let found = cx.store.messages(owner, action.id, after.as_deref(), 100, Order::Newest).await?;
        let of_run = found.items.into_iter().map(|(_, stored)| stored.value.message);
        for message in of_run.filter(|message| message.run_id == Some(run)) {
            if message.role == Role::Assistant {
                if begins_anew {
                    answers.push(format!("You have worked on this before and asked: {}", message.text()));
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

/// Stores how the work stopped: the occurrence, the action and the run's record in one transaction.
async fn end(agent: agent_loop::Agent<ActionRun>, rest: Rest) -> Result<()> {
    let agent_loop::Agent { cx, kind, mut recorder, .. } = agent;
    let (fence, owner) = (kind.fence, kind.owner.clone());
    let failed = |error: RunError| {
        let (text, retryable) = (error.detail.clone(), error.retryable);
        let command = OccurrenceCommand::Fail { fence, error: text, retryable };
        (command, RunState::Failed, Some(error))
    };
    let mut asked = Vec::new();
    let (command, state, error) = match rest {
        Rest::Loop(agent_loop::Rest::Lost) => return Ok(()),
        Rest::Loop(agent_loop::Rest::Cancelled) => {
            let run = kind.occurrence.value.run_id;
            drop(recorder);
            return runs::cancel(&cx, &owner, kind.action.id, run).await;
        }
        Rest::Loop(agent_loop::Rest::PutDown) => {
            (OccurrenceCommand::HandOver { fence }, RunState::Running, None)
        }
        Rest::Loop(agent_loop::Rest::Failed(error)) => failed(error),
        Rest::Loop(agent_loop::Rest::Ended(Outcome::Failed { code, detail })) => {
            failed(failure(code, detail))
        }
        Rest::Loop(agent_loop::Rest::Ended(Outcome::Completed { score, note })) => {
            (OccurrenceCommand::Succeed { fence, score, note }, RunState::Completed, None)
        }
        Rest::Loop(agent_loop::Rest::Ended(Outcome::Waiting { reason })) => {
            (OccurrenceCommand::Wait { fence, reason, answer_by: None }, RunState::Waiting, None)
        }
        Rest::Loop(agent_loop::Rest::Waits { reason, answer_by, events }) => {
            asked = events;
            let answer_by = Some(answer_by);
            (OccurrenceCommand::Wait { fence, reason, answer_by }, RunState::Waiting, None)
        }
        Rest::Drifted => {
            let error = failure("drifted", "what would have run is not what was approved".to_owned());
            (OccurrenceCommand::Drift { fence }, RunState::Failed, Some(error))
        }
    };
    recorder.flush().await?;
    // The cost since the last step always counts for the occurrence.
    let (usage, cost) = (recorder.run().usage, recorder.run().cost_micros);
    let mut held = Some(Versioned { version: kind.action.version, value: kind.action.clone() });
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        // The action as this executor knows it. If somebody has changed it meanwhile, it is read again.
        let action = match held.take() {
            Some(held) => held,
            None => match actions::load(&cx, &owner, kind.action.id).await {
                Ok(action) => action,
                Err(Error::NotFound(_)) => return Ok(()),
                Err(error) => return Err(error),
            },
        };
        let now = cx.clock.now();
        let mut spent = kind.occurrence.value.clone();
        spent.usage = usage;
        spent.cost_micros = cost;
        let command = command.clone().for_action(&action.value, &kind.occurrence.value);
        let Ok(next) = spent.transition(command, now) else { return Ok(()) };
        let at_rest = next.state.is_final() || next.state == OccurrenceState::Waiting;
        let after = if at_rest { action.value.after(&next, now) } else { action.value.clone() };
        let mut writes = vec![Store::replace_occurrence(&owner, &next, kind.occurrence.version)?];
        let live = Some(&next).filter(|next| after.live_run == Some(next.run_id));
        writes.extend(actions::action_writes(&owner, &action, &after, live, now)?);
        // In the transaction that ends the occurrence, so it is counted once, also if an executor dies or an answer is lost.
        writes.extend(actions::run_count(&owner, &next, &after));
        let new_cost = cost - kind.began_at_cost;
        if new_cost > 0 {
            writes.push(Store::count(&owner, kind.agent.agent_id, vec![("cost_micros", new_cost)]));
        }
        if next.state == OccurrenceState::Waiting {
            writes.push(card(&cx, &owner, kind.action.id, &next)?);
        }
        if at_rest {
            let (state, error) = match (next.state, &next.reason) {
                (OccurrenceState::Cancelled, Some(reason)) => {
                    (RunState::Cancelled, Some(failure("cancelled", reason.clone())))
                }
                (OccurrenceState::Unknown, Some(reason)) => {
                    (RunState::Failed, Some(failure("effect_unknown", reason.clone())))
                }
                _ => (state, error.clone()),
            };
            let asked = if state == RunState::Waiting { asked.as_slice() } else { &[] };
            writes.extend(recorder.end_writes(asked, state, error)?);
        }
        let writes = merged(writes);
        match cx.store.write_all(writes).await? {
            Written::Yes => {
                tracing::info!(
                    state = next.state.as_str(),
                    attempts = next.attempts,
                    "the work on a run stopped"
                );
                let item = DueItem::action(&owner, action.value.id);
                due::dispatch_at(&cx, &item, actions::wake_at(&after, live, now)).await;
                if new_cost > 0 {
                    alerts::check(&cx, &owner, RunKind::Action).await;
                }
                return Ok(());
            }
            Written::Refused(Guard::Occurrence) => return Ok(()),
            Written::Refused(_) => {}
        }
    }
}

/// The one message that asks a person.
fn card(cx: &Cx, owner: &Owner, action: domain::ids::ActionId, occurrence: &Occurrence) -> Result<Write> {
    let question = Block::text(occurrence.reason.clone().unwrap_or_default());
    let message = messages::new(cx, Role::Assistant, vec![question], Some(occurrence.run_id));
    Ok(Store::message_write(owner, action, &message.into())?)
}

/// Merges all additions to the same item into one write, because a transaction may contain each item only once.
fn merged(writes: Vec<Write>) -> Vec<Write> {
    let mut out: Vec<Write> = Vec::with_capacity(writes.len());
    for write in writes {
        if let Write::Add { key, numbers, .. } = &write
            && let Some(Write::Add { numbers: merged, .. }) =
                out.iter_mut().find(|w| matches!(w, Write::Add { key: k, .. } if k == key))
        {
            merged.extend(numbers.iter().copied());
            continue;
        }
        out.push(write);
    }
    out
}

fn failure(code: &str, detail: String) -> RunError {
    RunError { code: code.to_owned(), detail, retryable: false }
}

/// Ends the record of a run whose occurrence ended without an executor.
///
/// # Errors
/// If the table does not answer.
pub async fn close(cx: &Cx, owner: &Owner, run: RunId, occurrence: &Occurrence) -> Result<()> {
    let Some(found) = cx.store.run(owner, run).await? else { return Ok(()) };
    if found.value.state.has_ended() {
        return Ok(());
    }
    let state = match occurrence.state {
        OccurrenceState::Cancelled => RunState::Cancelled,
        _ => RunState::Failed,
    };
    let code = match (occurrence.state, occurrence.reason_code) {
        (OccurrenceState::Unknown, _) => "effect_unknown",
        (_, Some(ReasonCode::Unanswered)) => "unanswered",
        (state, _) => state.as_str(),
    };
    let error = occurrence.reason.clone().map(|detail| failure(code, detail));
    recorder::end_without_executor(cx, owner, found, state, error).await?;
    Ok(())
}
