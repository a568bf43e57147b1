//! Takes a claimed run up: for the first time, or after its last stored step.

use std::collections::BTreeMap;

use domain::accounts::quota::Charge;
use domain::actions::{Action, ApprovalContent, Occurrence, OccurrenceCommand, ReasonCode};
use domain::agent_loop::{Purpose, Reply, Step};
use domain::ids::Owner;
use domain::models::{Usage, sources};
use domain::runs::{EventKind, Run, RunEvent, RunState};
use domain::schedule::moment_in_words;
use domain::watch::state::News;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::json;

use super::ClaimedRun;
use super::kind::{ActionRun, said_to, terms};
use super::since_last;
use crate::agent_loop::Driver;
use crate::agent_loop::journal::Journal;
use crate::agent_loop::recorder::{self, Recorder, lease_from};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::actions::records;
use crate::flows::memory::recall;
use crate::flows::schedules;
use crate::money::quota::Quota;
use crate::store::keys::Guard;
use crate::store::runs::RunOutput;
use crate::store::table::{Write, Written};
use crate::store::{Store, Tries, Versioned};

/// Begins a run, or continues it after its last stored step. `news`: what it is told of changes. `beginning` remembers what
/// is read for it. `None` if another executor was faster, or the run has ended.
pub(super) fn begin<'a>(
    (process, beginning): (&'a Cx, Cx),
    owner: &'a Owner,
    (claimed, news): (ClaimedRun, Vec<News>),
    deadline: Timestamp,
) -> BoxFuture<'a, Result<Option<Driver<ActionRun>>>> {
    Box::pin(async move {
        let cx = &beginning;
        let ClaimedRun { agent, action: Versioned { value: action, .. }, occurrence, unstored } = claimed;
        let claimed = &occurrence.value;
        let content = ApprovalContent::now(&action, &agent);
        // A run that goes on keeps what it was told when it began.
        let begins_anew = claimed.steps_done == 0;
        let recalled = async {
            match begins_anew && action.call.is_none() {
                true => Ok(recall::about_task(cx, owner, &action).await),
                false => Ok(Vec::new()),
            }
        };
        let is_tainted = async { Ok(begins_anew && since_last::is_tainted(cx, owner, &action).await?) };
        let (zone, is_tainted, recalled) = tokio::try_join!(
            Box::pin(schedules::zone_of_run(cx, owner, &content)),
            Box::pin(is_tainted),
            Box::pin(recalled),
        )?;
        let mut tries = Tries::default();
        let mut charge = Charge::Included;
        loop {
            tries.next().await?;
            let is_stored = unstored.is_empty();
            let loaded = Start::load(cx, owner, &action, claimed, is_stored).await?;
            let Some(mut start) = loaded else { return Ok(None) };
            if !start.has_open_call()
                && let Some(answers) =
                    answers_since_wait(cx, owner, &action, claimed, start.steps.is_empty()).await?
            {
                // The task says when the run began, which may be days ago.
                let now = moment_in_words(start.now, &zone);
                start.hear(cx, owner, format!("It is now {now}.\n\n{answers}")).await?;
            }
            // A run counts once for the plan: together with its first event.
            let quota = if start.is_first() { Quota::of(cx, owner).await? } else { Quota::NONE };
            if start.is_first() && is_tainted {
                start.run.taint(0, start.now);
            }
            let pages = || news.iter().filter_map(|news| news.source.clone());
            if start.is_first() && pages().next().is_some() {
                start.run.taint(0, start.now);
                sources::add(&mut start.run.sources, pages());
            }
            if start.is_first() {
                start.run.recalled = recalled.clone();
            }
            let event = if start.is_first() { start.begins(&action, charge) } else { start.goes_on() };
            let Start { occurrence: started, run, version, journal, steps, outputs, writes, .. } = start;
            // The first condition that is not met decides.
            let mut all = vec![
                Store::replace_occurrence(owner, &started, occurrence.version)?,
                match version {
                    0 => Store::run_write(owner, &run)?,
                    version => Store::replace_run_write(owner, &run, version)?,
                },
                Store::event_write(owner, run.run_id, &event)?,
            ];
            all.extend(writes);
            all.extend(unstored.iter().cloned());
            all.extend(quota.write(owner, run.charge));
            match cx.store.write_all(all).await? {
                Written::Yes => {
                    let settled = (claimed.usage, claimed.cost_micros);
                    let occurrence = Versioned { value: started, version: occurrence.version + 1 };
                    let began_at_cost = settled.1;
                    let kind = ActionRun {
                        agent,
                        action,
                        content,
                        occurrence,
                        zone,
                        news,
                        outputs,
                        texts: BTreeMap::new(),
                        settled,
                        began_at_cost,
                        not_before: None,
                    };
                    let terms = terms(&kind.content, kind.agent.budget.per_month_micros);
                    let run = Versioned { value: run, version: version + 1 };
                    let recorder = Recorder::new(process.clone(), owner.clone(), run, event.id);
                    let steps = (journal, steps);
                    let driver = Driver::new(process, cx.clone(), (kind, terms), recorder, steps, deadline);
                    return Ok(Some(driver));
                }
                Written::Refused(Guard::Occurrence) => return Ok(None),
                Written::Refused(Guard::Quota) => charge = quota.beyond().unwrap_or(Charge::Refused),
                Written::Refused(_) if !is_stored => return Ok(None),
                // A former executor has written something meanwhile. Read again.
                Written::Refused(_) => {}
            }
        }
    })
}

/// A run as an executor takes it up, and the writes that go with it.
struct Start {
    now: Timestamp,
    /// The occurrence after the claim.
    occurrence: Occurrence,
    run: Run,
    /// The version of the run's record. 0 if there is none: it has expired while the run waited.
    version: u64,
    journal: Journal,
    steps: Vec<Step>,
    outputs: Vec<RunOutput>,
    /// The id of the newest event. 0 if the run has not begun.
    last_event: u64,
    /// The id of the newest event whose text is part of a stored step.
    last_stored: u64,
    writes: Vec<Write>,
}

impl Start {
    /// `None` if the occurrence can't start under its fence. If its claim is not stored, it has no record.
    async fn load(
        cx: &Cx,
        owner: &Owner,
        action: &Action,
        claimed: &Occurrence,
        is_stored: bool,
    ) -> Result<Option<Self>> {
        let (run_id, fence) = (claimed.run_id, claimed.fence);
        // The first claim has fence 1. Before it, only the record is stored.
        let ((journal, steps), outputs, last_event, last_stored) = if fence == 1 {
            ((Journal::new(run_id, fence), Vec::new()), Vec::new(), 0, 0)
        } else {
            tokio::try_join!(
                Journal::load(cx, owner, run_id, fence, Some(claimed.steps_done)),
                async { Ok(cx.store.run_outputs(owner, run_id).await?) },
                async { Ok(cx.store.last_event_id(owner, run_id).await?) },
                async { Ok(cx.store.last_stored_event(owner, run_id).await?) },
            )?
        };
        let now = cx.clock.now();
        let Ok(occurrence) = claimed.transition(OccurrenceCommand::Start { fence }, now) else {
            return Ok(None);
        };
        let found = if is_stored { cx.store.run(owner, run_id).await? } else { None };
        let version = found.as_ref().map_or(0, |found| found.version);
        let mut run = found.map_or_else(
            || Run {
                usage: claimed.usage,
                cost_micros: claimed.cost_micros,
                ..records::record(action, run_id, now)
            },
            |found| found.value,
        );
        run.state = RunState::Running;
        run.fence = fence;
        run.lease_until = lease_from(now);
        let writes = recorder::settle_left(cx, owner, &mut run, last_stored.max(1)).await?;
        Ok(Some(Self {
            now,
            occurrence,
            run,
            version,
            journal,
            steps,
            outputs,
            last_event,
            last_stored,
            writes,
        }))
    }

    const fn is_first(&self) -> bool {
        self.last_event == 0
    }

    /// While a call has no result, the model can't get another message. What people said is added to the call's result.
    fn has_open_call(&self) -> bool {
        self.steps.last().is_some_and(|step| step.results.len() < step.reply.calls.len())
    }

    /// Adds what people said as a step of theirs.
    async fn hear(&mut self, cx: &Cx, owner: &Owner, text: String) -> Result<()> {
        let reply = Reply { text, ..Reply::default() };
        let step = self.journal.reply(cx, owner, Purpose::Person, &reply, self.last_event + 1).await?;
        let (fence, usage) = (self.run.fence, Usage::default());
        let command = OccurrenceCommand::StepDone { fence, usage, cost_micros: 0 };
        let heard = self.occurrence.transition(command, self.now);
        self.occurrence = heard.map_err(|refused| Error::internal(refused.to_string()))?;
        self.writes.push(step);
        self.journal.stored();
        self.steps.push(Step { purpose: Purpose::Person, reply, results: Vec::new() });
        Ok(())
    }

    /// The first event of the run, which counts for the plan from now on.
    fn begins(&mut self, action: &Action, charge: Charge) -> RunEvent {
        self.run.charge = charge;
        let data = json!({
            "run_id": self.run.run_id, "kind": "action", "action_id": action.id, "agent_id": action.agent_id,
        });
        RunEvent::new(1, EventKind::RunStarted, self.now, data)
    }

    /// The event that says from which event on the text of the former executor is void.
    fn goes_on(&self) -> RunEvent {
        // All text is stored before a run waits for a person.
        let stored = self.last_stored.max(self.run.waited).max(1);
        let step = self.journal.last() + u32::from(!self.has_open_call());
        let data = json!({"step": step, "void_from": stored + 1});
        RunEvent::new(self.last_event + 1, EventKind::StepRestarted, self.now, data)
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
