//! What a run of an action sends to the model, and what the model's calls do.

use std::collections::BTreeMap;

use domain::actions::conditions::{self, Report};
use domain::actions::{Action, ApprovalContent, Notebook, Occurrence, OccurrenceCommand, Reason, ReasonCode};
use domain::agent_loop::{Call, CallResult, Policy, Reply, Revisions};
use domain::agents::Agent;
use domain::assets::NewAsset;
use domain::chats::ProposalBody;
use domain::chats::signals::Deliverable;
use domain::ids::{AssetId, Owner, RunId};
use domain::memory::{Source, recall};
use domain::models::routing::Ask;
use domain::models::{Message, Role, StopReason, Usage};
use domain::prompts::of_run::Found;
use domain::prompts::{self, of_run};
use domain::runs::{EventKind, Run};
use domain::tools::notes::{Note, NothingNew};
use domain::tools::{Setting, ToolCall};
use domain::watch::state::News;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;

use super::since_last;
use crate::agent_loop::{Kind, KindCx, MAX_OUTPUT_TOKENS, Performed, Staged, Terms, ToStore};
use crate::context::Data;
use crate::error::{Error, Result};
use crate::flows::actions::proposals::{self, Origin};
use crate::flows::agents::assets;
use crate::flows::memory::forgotten::Forgotten;
use crate::flows::memory::known;
use crate::flows::projects::living;
use crate::flows::tools::{self, Reach};
use crate::money::ceilings::MonthCeilings;
use crate::store::runs::RunOutput;
use crate::store::table::{Order, Write};
use crate::store::{Store, Versioned, keys};

/// How many steps of work a run may take.
const MAX_STEPS: usize = 24;

/// How often a check may send a run back to work.
const MAX_REVISIONS: Revisions = Revisions(2);

/// How many outputs a run may save.
pub(super) const MAX_OUTPUTS: usize = 20;

/// How much of the outputs a check reads, in bytes.
pub(super) const MAX_CHECKED: usize = 120 * 1024;

/// A claimed occurrence.
pub(super) struct ActionRun {
    pub agent: Agent,
    pub action: Action,
    /// What an approval of the two binds. What the run is told and may do comes from here.
    pub content: ApprovalContent,
    pub occurrence: Versioned<Occurrence>,
    /// The zone in which it reads and names times.
    pub zone: TimeZone,
    /// What has changed of the things that the action watches.
    pub news: Vec<News>,
    pub outputs: Vec<RunOutput>,
    /// The texts of those that this process has saved, if they are short.
    pub texts: BTreeMap<AssetId, String>,
    /// The usage and cost that are stored in the occurrence.
    pub settled: (Usage, i64),
    /// What the run had cost when this executor claimed it.
    pub began_at_cost: i64,
    /// If it is tried again: not before this time.
    pub not_before: Option<Timestamp>,
}

/// What changes when something of the run is stored.
pub(super) enum Change {
    Occurrence {
        next: Box<Occurrence>,
        settled: (Usage, i64),
    },
    /// An output was saved with this text: a new one, or a new version of the one at this index.
    Output(usize, RunOutput, String),
}

/// What holds for a run of this content. `agent_month`: the ceiling of a month of its agent.
pub(super) fn terms(content: &ApprovalContent, agent_month: Option<i64>) -> Terms {
    Terms {
        policy: Policy {
            max_steps: MAX_STEPS,
            talks_at_last: false,
            max_repairs: usize::MAX,
            continues_cut_off: true,
            checked: Some(MAX_REVISIONS),
            has_conditions: !content.conditions.is_empty(),
            // A run may wait for a person for a long time. Its steps and its budget limit it.
            until: Timestamp::MAX,
        },
        tier: content.model_tier,
        work: Ask { tier: Some(content.model_tier), ..Ask::default() },
        ceiling_micros: content.budget.per_run_micros,
        month: MonthCeilings { agent: agent_month, action: content.budget.per_month_micros },
        system: of_run::system(content),
        provider_tools: content.max_uses.clone(),
        needs_provider_tools: !content.max_uses.is_empty(),
        reply_tokens: MAX_OUTPUT_TOKENS,
        rehearses: false,
        has_documents: of_run::documents(content).is_some(),
        theme: of_run::theme(content),
    }
}

/// What a run that begins at `began` is told besides its task: what has happened since the last one, and the documents. Also what is
/// hidden from it.
pub(super) async fn found(
    cx: KindCx<'_>,
    (action, content): (&Action, &ApprovalContent),
    began: Timestamp,
    zone: &TimeZone,
) -> Result<(Found, Forgotten)> {
    let forgotten = Forgotten::of(&cx, cx.owner).await?;
    let since = since_last::since_last(&cx, cx.owner, action, began, &forgotten).await?;
    let docs = living::read::told(&cx, cx.owner, of_run::documents(content)).await?;
    let since_last = prompts::since_last(&since, zone);
    let found =
        Found { documents: docs.documents, documents_behind: docs.behind, since_last, ..Found::default() };
    Ok((found, forgotten))
}

/// If the model has saved no output with a tool, the text of its reply is the output.
pub(super) fn imply_output(content: &ApprovalContent, saved: usize, reply: &mut Reply) {
    let text = reply.text.trim();
    let done = !matches!(reply.stop, StopReason::MaxTokens | StopReason::Pause);
    if reply.calls.is_empty() && done && saved == 0 && !text.is_empty() {
        let call = Call::implied_output(&content.title, text);
        reply.calls.push(call);
    }
}

impl Kind for ActionRun {
    type Change = Change;

    fn setting(&self) -> Setting<'_> {
        of_run::setting(&self.content)
    }

    async fn history(&self, cx: KindCx<'_>) -> Result<Vec<Message>> {
        // The same in every process that works on the run, so that the provider can cache what follows.
        let began = self.began();
        let now = prompts::run_now(&self.occurrence.value, began, &self.zone);
        let (found, forgotten) = found(cx, (&self.action, &self.content), began, &self.zone).await?;
        let still_true = known::still_true(&cx, cx.owner, &forgotten, cx.run.recalled.clone()).await?;
        let (known, news) = (recall::block(&still_true), prompts::news(&self.news));
        Ok(vec![of_run::message(&self.content, Found { now, known, news, ..found })])
    }

    async fn to_check(&self, cx: KindCx<'_>) -> Result<String> {
        let mut outputs = String::new();
        for output in &self.outputs {
            let content = self.text(cx, output).await?;
            outputs.push_str(&format!("## {}\n{content}\n\n", output.title));
            if outputs.len() >= MAX_CHECKED {
                break;
            }
        }
        outputs.truncate(outputs.floor_char_boundary(MAX_CHECKED));
        Ok(of_run::to_check(&self.content, &outputs))
    }

    async fn check_conditions(&self, cx: KindCx<'_>) -> Result<Report> {
        // The date on which the run began, which the task names. It is the same in every process that works on the run.
        let today = self.zone.to_datetime(self.began()).date();
        let mut check = conditions::Check::new(&self.content.conditions, today);
        // One output at a time, because an output may have four megabytes.
        for output in &self.outputs {
            let content = self.text(cx, output).await?;
            let title = output.title.clone();
            // Long outputs take long to check, and other runs must go on meanwhile.
            let checked = tokio::task::spawn_blocking(move || {
                check.output(&title, &content);
                check
            });
            check = checked.await.map_err(|error| Error::internal(error.to_string()))?;
        }
        Ok(check.report())
    }

    fn complete(&self, _: &Run, reply: &mut Reply) {
        imply_output(&self.content, self.outputs.len(), reply);
    }

    fn stage(&self, cx: KindCx<'_>, step: ToStore<'_>) -> Result<Staged<Change>> {
        let fence = self.occurrence.value.fence;
        let (command, settled) = match step {
            ToStore::Reply => {
                let usage = cx.run.usage.since(&self.settled.0);
                let cost_micros = cx.run.cost_micros - self.settled.1;
                let command = OccurrenceCommand::StepDone { fence, usage, cost_micros };
                (command, (cx.run.usage, cx.run.cost_micros))
            }
            ToStore::EffectBegins(effect) => {
                (OccurrenceCommand::EffectBegun { fence, effect: effect.to_owned() }, self.settled)
            }
            ToStore::EffectEnds => (OccurrenceCommand::EffectEnded { fence }, self.settled),
        };
        let next = self.occurrence.value.transition(command, cx.clock.now());
        let mut next = next.map_err(|refused| Error::internal(refused.to_string()))?;
        next.tainted |= cx.run.tainted.is_some();
        let write = Store::replace_occurrence(cx.owner, &next, self.occurrence.version)?;
        Ok(Staged {
            writes: vec![write],
            changes: vec![Change::Occurrence { next: Box::new(next), settled }],
            ..Staged::nothing()
        })
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Occurrence { next, settled } => {
                self.occurrence = Versioned { value: *next, version: self.occurrence.version + 1 };
                self.settled = settled;
            }
            Change::Output(at, saved, text) => {
                self.texts.remove(&saved.asset_id);
                if text.len() + self.texts.values().map(String::len).sum::<usize>() <= MAX_CHECKED {
                    self.texts.insert(saved.asset_id, text);
                }
                match self.outputs.get_mut(at) {
                    Some(output) => *output = saved,
                    None => self.outputs.push(saved),
                }
            }
        }
    }

    async fn said_by_person(&self, cx: KindCx<'_>) -> Result<Option<String>> {
        let said = said_to(&cx, cx.owner, &self.action, cx.run.run_id, false).await?;
        Ok(Some(said.join("\n\n")).filter(|said| !said.is_empty()))
    }

    async fn perform(&self, cx: KindCx<'_>, call: ToolCall) -> Result<Performed<Change>> {
        match call {
            ToolCall::SaveOutput(asset) | ToolCall::Deliver(Deliverable::Asset(asset)) => {
                self.save(cx, asset).await
            }
            ToolCall::AskPerson(asks) => {
                let told = "the person is asked; the run continues when the answer is there";
                Ok(CallResult::asked(told, false, Reason::new(ReasonCode::Asked, asks.in_words())).into())
            }
            ToolCall::Note(note) => self.note(cx, note).await,
            ToolCall::NothingNew(NothingNew { reason }) => Ok(match self.outputs.len() {
                0 => CallResult::nothing_new(reason).into(),
                saved => {
                    let told = format!(
                        "not ended: the run has saved {saved} outputs; end it with a sentence instead"
                    );
                    CallResult::refused(told).into()
                }
            }),
            ToolCall::Deliver(Deliverable::Actions { mut actions }) => {
                let (asked, room) = (actions.len(), proposals::room(cx.run));
                actions.truncate(room);
                let mut performed = if asked > room {
                    proposals::too_many("generate_actions", room, asked)
                } else {
                    CallResult::told("it waits for the person's yes").into()
                };
                for draft in actions {
                    let origin =
                        Origin { agent_id: self.agent.agent_id, chat_id: None, run_id: Some(cx.run.run_id) };
                    let body = ProposalBody::Action(draft);
                    let proposal = proposals::of_action(&cx, cx.owner, &self.agent, origin, body).await?;
                    let id = proposal.proposal_id;
                    let data = json!({"proposal_id": id, "title": proposal.body.title()});
                    performed.events.push((EventKind::ActionProposed, data));
                    performed.staged.writes.extend(Store::proposal_writes(cx.owner, &proposal)?);
                    performed.proposals.push(id);
                }
                Ok(performed)
            }
            ToolCall::SyncDocumentation(_) => {
                let begun = tools::sync_documentation(&cx, cx.owner, self.reach()).await?;
                Ok(CallResult::of(begun).into())
            }
            look_up => {
                let found = tools::look_up(&cx, cx.owner, self.reach(), look_up).await?;
                Ok(CallResult::of(found).into())
            }
        }
    }

    fn outputs(&self) -> usize {
        self.outputs.len()
    }
}

impl ActionRun {
    /// The text of an output. What this process has saved, it does not read.
    async fn text(&self, cx: KindCx<'_>, output: &RunOutput) -> Result<String> {
        match self.texts.get(&output.asset_id) {
            Some(text) => Ok(text.clone()),
            None => Ok(assets::content(&cx, cx.owner, output.asset_id, None).await?.text),
        }
    }

    fn reach(&self) -> Reach {
        Reach::of_run(self.agent.agent_id, &self.content)
    }

    /// When the run began. The same in every process that works on it.
    fn began(&self) -> Timestamp {
        let occurrence = &self.occurrence.value;
        occurrence.started_at.unwrap_or(occurrence.due_at)
    }

    /// Rewrites the notebook. If somebody else has changed it since the run read it, the run is shown the change and may write again.
    async fn note(&self, cx: KindCx<'_>, Note { text, version }: Note) -> Result<Performed<Change>> {
        let (action, current) = tokio::try_join!(
            cx.store.action(cx.owner, self.action.id),
            cx.store.notebook(cx.owner, self.action.id)
        )?;
        if action.is_none() {
            return Ok(CallResult::refused("not written: the task was deleted").into());
        }
        if current.version != version {
            let by = if current.run_id.is_some() { "a run" } else { "the person" };
            let told = format!(
                "not written: {by} has changed the notebook. It is version {} now:\n{}",
                current.version,
                if current.text.is_empty() { "(empty)" } else { &current.text }
            );
            return Ok(CallResult::refused(told).into());
        }
        let next = match current.rewritten(text, Some(cx.run.run_id), cx.clock.now()) {
            Ok(next) => Notebook { tainted: cx.run.tainted.is_some(), ..next },
            Err(errors) => return Ok(CallResult::refused(format!("not written: {errors}")).into()),
        };
        let told = format!("written: the notebook is version {}", next.version);
        let mut performed = Performed::from(CallResult::told(told));
        performed.staged.writes = Store::notebook_writes(cx.owner, self.action.id, &next)?;
        performed.staged.writes.push(Write::Exists { key: keys::action(cx.owner, self.action.id) });
        Ok(performed)
    }

    /// Saves an output as an asset, and lists it with the run. An output with the title of an earlier one becomes its new version.
    async fn save(&self, cx: KindCx<'_>, output: NewAsset) -> Result<Performed<Change>> {
        if let Err(errors) = output.validate() {
            return Ok(CallResult::repair(&errors.to_string()).into());
        }
        let run = cx.run.run_id;
        let title = output.title.trim().to_owned();
        let known = self.outputs.iter().position(|o| o.title.eq_ignore_ascii_case(&title));
        let slot = known.unwrap_or(self.outputs.len());
        if slot >= MAX_OUTPUTS {
            return Ok(CallResult::refused(format!("a run saves at most {MAX_OUTPUTS} outputs")).into());
        }
        let id = AssetId::for_output(run, slot as u32);
        let tainted = cx.run.tainted.is_some();
        let saved = RunOutput { asset_id: id, title, bytes: output.content.len() as u64, tainted };
        let told = format!("saved \"{}\" ({id})", saved.title);
        let mut performed = Performed::from(CallResult::told(told));
        let (agent, text) = (self.agent.agent_id, output.content.clone());
        let mut writes = assets::output_writes(&cx, cx.owner, agent, run, id, output).await?;
        writes.push(Store::output_write(cx.owner, run, slot as u32 + 1, &saved)?);
        performed.staged =
            Staged { writes, changes: vec![Change::Output(slot, saved, text)], ..Staged::nothing() };
        Ok(performed)
    }
}

/// What people have said to a run since it asked. If the steps with the question have expired, the question is included.
pub(super) async fn said_to(
    data: &Data,
    owner: &Owner,
    action: &Action,
    run: RunId,
    begins_anew: bool,
) -> Result<Vec<String>> {
    let (source, forgotten) = (Source::Action(action.id), Forgotten::of(data, owner).await?);
    let (mut answers, mut after) = (Vec::new(), None::<String>);
    'asked: loop {
        let found = data.store.messages(owner, action.id, after.as_deref(), 100, Order::Newest).await?;
        let mut of_run: Vec<_> = found.items.into_iter().map(|(_, stored)| stored.value.message).collect();
        forgotten.take_words(&source, &mut of_run);
        for message in of_run.into_iter().filter(|message| message.run_id == Some(run)) {
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
