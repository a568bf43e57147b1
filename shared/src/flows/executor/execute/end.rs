//! Stores how the work on a run stopped.

use domain::actions::{Occurrence, OccurrenceCommand, OccurrenceState};
use domain::agent_loop::{Outcome, Step};
use domain::ids::{ActionId, Owner};
use domain::models::{Block, Role};
use domain::projects::turn::ThemeChanges;
use domain::prompts::of_run;
use domain::runs::{EventKind, Run, RunError, RunKind, RunState};
use futures::future::BoxFuture;
use serde_json::Value;

use super::kind::ActionRun;
use super::since_last;
use super::{ending_of, failure};
use crate::agent_loop::{Driver, Rest};
use crate::context::{ChangedBy, Cx};
use crate::error::{Error, Result};
use crate::flows::actions::{self, runs};
use crate::flows::background::due;
use crate::flows::memory::cards;
use crate::flows::{messages, notices};
use crate::money::alerts;
use crate::store::keys::Guard;
use crate::store::runs::CancelCause;
use crate::store::table::{Write, Written};
use crate::store::{DueItem, Store, Tries, Versioned};

/// What becomes of a run when the work on it stops.
pub(super) enum Ending {
    /// Another executor has it. There is nothing to store.
    Lost,
    /// Somebody asked it to stop, or has stopped the account.
    Cancelled(CancelCause),
    /// `command` is stored in the occurrence. If the occurrence then rests, the run's record gets `state` and `error`, after the
    /// events that tell what it waits for.
    Stored {
        command: OccurrenceCommand,
        state: RunState,
        error: Option<RunError>,
        asked: Vec<(EventKind, Value)>,
    },
}

impl Ending {
    /// After the loop.
    pub fn of(fence: u64, rest: Rest) -> Self {
        let stored = |command, state| Self::Stored { command, state, error: None, asked: Vec::new() };
        match rest {
            Rest::Lost => Self::Lost,
            Rest::Cancelled(cause) => Self::Cancelled(cause),
            Rest::PutDown => stored(OccurrenceCommand::HandOver { fence }, RunState::Running),
            Rest::Failed(error) => Self::failed(fence, error),
            Rest::Ended(Outcome::Failed { code, detail }) => Self::failed(fence, failure(code, detail)),
            Rest::Ended(Outcome::Completed { score, note }) => {
                stored(OccurrenceCommand::Succeed { fence, score, note }, RunState::Completed)
            }
            Rest::Ended(Outcome::NothingNew { reason }) => {
                stored(OccurrenceCommand::NothingNew { fence, reason }, RunState::Completed)
            }
            Rest::Ended(Outcome::Waiting { reason }) => {
                stored(OccurrenceCommand::Wait { fence, reason, answer_by: None }, RunState::Waiting)
            }
            Rest::Waits { reason, answer_by, events } => Self::Stored {
                command: OccurrenceCommand::Wait { fence, reason, answer_by: Some(answer_by) },
                state: RunState::Waiting,
                error: None,
                asked: events,
            },
        }
    }

    pub fn failed(fence: u64, error: RunError) -> Self {
        let (text, retryable) = (error.detail.clone(), error.retryable);
        let command = OccurrenceCommand::Fail { fence, error: text, retryable };
        Self::Stored { command, state: RunState::Failed, error: Some(error), asked: Vec::new() }
    }

    /// The action, its agent or its tools are no longer what was approved.
    pub fn drifted(fence: u64) -> Self {
        let error = failure("drifted", "what would have run is not what was approved".to_owned());
        let command = OccurrenceCommand::Drift { fence };
        Self::Stored { command, state: RunState::Failed, error: Some(error), asked: Vec::new() }
    }
}

/// Stores how the work stopped: the occurrence, the action and the run's record in one transaction.
pub(super) fn end(run: Driver<ActionRun>, ending: Ending) -> BoxFuture<'static, Result<()>> {
    Box::pin(async move {
        let Driver { cx, mut kind, mut recorder, transcript, .. } = run;
        let owner = recorder.owner().clone();
        let (command, state, error, asked) = match ending {
            Ending::Lost => return Ok(()),
            Ending::Cancelled(cause) => {
                let run = kind.occurrence.value.run_id;
                drop(recorder);
                return runs::cancel(&cx, &owner, None, kind.action.id, run, cause).await;
            }
            Ending::Stored { command, state, error, asked } => (command, state, error, asked),
        };
        let cx = cx.remembering();
        recorder.flush().await?;
        if state.has_ended()
            && let Some((event, changed)) = theme_changes(&cx, &owner, &kind, &transcript.steps).await
        {
            recorder.run_mut().changed = Some(Box::new(changed));
            recorder.event(EventKind::ThemeChanged, event).await?;
        }
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
            let Ok(mut next) = spent.transition(command, now) else { return Ok(()) };
            if next.state == OccurrenceState::Failed && next.report.is_none() {
                next.error_code = error.as_ref().map(|error| error.code.clone());
            }
            if let Some(at) = kind.not_before {
                next.not_before(at);
            }
            next.tainted |= recorder.run().tainted.is_some();
            let mut writes = Vec::new();
            if next.state == OccurrenceState::Succeeded {
                let (last, is_same) = since_last::remember(&cx, &owner, &next, &kind.outputs).await?;
                writes.push(Store::last_outputs_write(&owner, action.value.id, &last)?);
                if is_same && next.reason_code.is_none() {
                    next.flag_as_same();
                }
            }
            let at_rest = next.state.is_final() || next.state == OccurrenceState::Waiting;
            let after = if at_rest { action.value.after(&next, now) } else { action.value.clone() };
            let ended = (&next, kind.occurrence.version);
            writes.extend(actions::run_writes(&owner, (&action, &after), ended, now)?);
            let new_cost = cost - kind.began_at_cost;
            if new_cost > 0 {
                writes.push(Store::count(&owner, kind.agent.agent_id, vec![("cost_micros", new_cost)]));
            }
            if next.state.is_final() {
                writes.extend(cards::of_run(&cx, &owner, &action.value, &next, &kind.outputs).await?);
            }
            if next.state == OccurrenceState::Waiting {
                writes.extend(card(&cx, &owner, (kind.action.id, &next), recorder.run())?);
            }
            if at_rest {
                let (state, error) = match (next.state, &next.reason) {
                    (OccurrenceState::Cancelled, Some(reason)) => {
                        (RunState::Cancelled, Some(failure("cancelled", reason.clone())))
                    }
                    (OccurrenceState::Unknown, Some(reason)) => {
                        (RunState::Failed, Some(failure("effect_unknown", reason.clone())))
                    }
                    _ if next.report.is_some() => ending_of(&next),
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
                    due::dispatch_at(&cx, &item, actions::wake_after(&after, &next, now)).await;
                    actions::tell_pause(&cx, &owner, &action.value, &after).await;
                    let ended = Versioned { value: next, version: kind.occurrence.version + 1 };
                    let ended = notices::Ended { occurrence: ended, action: after, outputs: kind.outputs };
                    notices::tell_ended(&cx, &owner, ended).await;
                    if new_cost > 0 {
                        alerts::check(&cx, &owner, RunKind::Action).await;
                    }
                    return Ok(());
                }
                Written::Refused(Guard::Occurrence) => {
                    // A report does not take the run from this executor. Everything else does.
                    let Some(reported) = reported(&cx, &owner, &kind.occurrence.value).await? else {
                        return Ok(());
                    };
                    kind.occurrence = reported;
                }
                Written::Refused(_) => {}
            }
        }
    })
}

/// What the run has changed in the theme of its agent. If that can't be read, the run ends all the same.
async fn theme_changes(
    cx: &Cx,
    owner: &Owner,
    kind: &ActionRun,
    steps: &[Step],
) -> Option<(Value, ThemeChanges)> {
    let (project, leads) = (of_run::theme(&kind.content)?, cx.leads()?);
    if !(leads.has_edited)(steps) {
        return None;
    }
    let by = ChangedBy { run: kind.occurrence.value.run_id, project, planned: None };
    match (leads.changed)(cx.clone(), owner.clone(), by).await {
        Ok(changed) => changed,
        Err(error) => {
            tracing::warn!(cause = %error.causes(), "a run does not say what it has changed in its theme");
            None
        }
    }
}

/// The occurrence, if all that has changed since `known` is that its report came.
async fn reported(cx: &Cx, owner: &Owner, known: &Occurrence) -> Result<Option<Versioned<Occurrence>>> {
    let found = cx.store.occurrence(owner, known.action_id, known.run_id).await?;
    Ok(found.filter(|found| {
        let Occurrence { fence, state, report, .. } = &found.value;
        (*fence, *state) == (known.fence, known.state) && report.is_some() && known.report.is_none()
    }))
}

/// The one message that asks a person.
fn card(
    cx: &Cx,
    owner: &Owner,
    (action, occurrence): (ActionId, &Occurrence),
    run: &Run,
) -> Result<Vec<Write>> {
    let question = Block::text(occurrence.reason.clone().unwrap_or_default());
    let mut message = messages::new(cx, Role::Assistant, vec![question], Some(occurrence.run_id));
    message.told.add(&run.recalled);
    messages::small_writes(cx, owner, action, &message)
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
