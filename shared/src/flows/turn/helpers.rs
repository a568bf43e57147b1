//! The runs of helpers: parts of a turn that other models do.
//!
//! A helper is a run of its own, with its own lease, steps, events and ceiling. So it survives a crash like any run, and can be followed and
//! cancelled by itself. Its turn waits for it: the process that drives the turn begins the helpers and waits for their ends. A process that
//! takes the turn over finds the same helpers by their ids, and goes on with those that nobody drives.

use std::convert::Infallible;
use std::time::Duration;

use domain::agent_loop::{Outcome, Policy, Step};
use domain::ids::{Owner, RunId};
use domain::models::{Message, ModelTier};
use domain::projects::turn::Helper;
use domain::runs::{EventKind, Run, RunError, RunEvent, RunKind, RunState};
use domain::tools::{Setting, ToolCall};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tracing::Instrument;

use crate::agent_loop::journal::Journal;
use crate::agent_loop::recorder::{self, Recorder};
use crate::agent_loop::{Driver, Kind, KindCx, MAX_OUTPUT_TOKENS, Performed, Rest, Terms};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::runs;
use crate::money::alerts;
use crate::money::ceilings::MonthCeilings;
use crate::store::table::Written;
use crate::store::{Store, Versioned};

/// After this time a turn looks whether the process of a helper is dead.
const LOOK: SignedDuration = SignedDuration::from_secs(2);

/// The pause between two looks at a helper that another process drives.
const PAUSE: Duration = Duration::from_millis(250);

/// Begins the run of a helper, or goes on with it if it has begun and no process drives it. This process drives it until `deadline`.
/// Returns whether it is new.
///
/// # Errors
/// If the table does not answer.
pub async fn begin(cx: &Cx, owner: &Owner, run: Run, deadline: Timestamp) -> Result<bool> {
    let id = run.run_id;
    let data = json!({"run_id": id, "kind": run.kind, "theme": run.theme});
    let started = RunEvent::new(1, EventKind::RunStarted, run.created_at, data);
    let writes = vec![
        Store::run_write(owner, &run)?,
        Store::run_listed_write(owner, &run)?,
        Store::event_write(owner, id, &started)?,
    ];
    match cx.store.write_all(writes).await? {
        Written::Yes => {
            let run = Versioned { value: run, version: 1 };
            let recorder = Recorder::new(cx.clone(), owner.clone(), run, 1);
            spawn(cx, recorder, (Journal::new(id, 0), Vec::new()), deadline)?;
            Ok(true)
        }
        // It has begun already.
        Written::Refused(_) => go_on(cx, owner, id, deadline).await.map(|()| false),
    }
}

/// Waits for the end of a helper.
///
/// # Errors
/// If its record is gone, or the table does not answer for a while.
pub async fn ended(cx: &Cx, owner: &Owner, id: RunId, deadline: Timestamp) -> Result<Run> {
    loop {
        let look = deadline.min(cx.clock.now() + LOOK);
        let run = runs::follow::to_its_end(cx, owner, id, look).await?;
        if run.state.has_ended() {
            return Ok(run);
        }
        go_on(cx, owner, id, deadline).await?;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Takes a helper over in a task of its own, if no process drives it.
async fn go_on(cx: &Cx, owner: &Owner, id: RunId, deadline: Timestamp) -> Result<()> {
    let Some(found) = super::to_take_over(cx, owner, id).await? else { return Ok(()) };
    match claimed(cx, owner, found).await? {
        Some((recorder, steps)) => spawn(cx, recorder, steps, deadline),
        None => Ok(()),
    }
}

/// Goes on with a helper that no process drives, for an executor. A helper whose turn has ended is cancelled.
///
/// # Errors
/// If the table does not answer. Then the item is delivered again.
pub async fn take_over(cx: &Cx, owner: &Owner, found: Versioned<Run>, deadline: Timestamp) -> Result<()> {
    let turn = match helper_of(&found.value) {
        Some(helper) => cx.store.run(owner, helper.turn).await?,
        None => None,
    };
    if turn.is_none_or(|turn| turn.value.state.has_ended()) {
        recorder::end_without_executor(cx, owner, found, RunState::Cancelled, None).await?;
        return Ok(());
    }
    let Some((recorder, steps)) = claimed(cx, owner, found).await? else { return Ok(()) };
    let id = recorder.run().run_id;
    let driver = driver(cx, recorder, steps, deadline)?;
    drive(driver).instrument(tracing::info_span!("helper", run_id = %id)).await;
    Ok(())
}

type Claimed = (Recorder, (Journal, Vec<Step>));

async fn claimed(cx: &Cx, owner: &Owner, found: Versioned<Run>) -> Result<Option<Claimed>> {
    let fence = found.value.fence + 1;
    let (journal, steps) = Journal::load(cx, owner, found.value.run_id, fence, None).await?;
    let is_complete = steps.last().is_none_or(|step| step.results.len() == step.reply.calls.len());
    let recorder = super::claim(cx, owner, found, journal.last() + u32::from(is_complete)).await?;
    Ok(recorder.map(|recorder| (recorder, (journal, steps))))
}

/// Drives it in a task of its own, which goes on if the turn is cut off: it must store its end.
fn spawn(cx: &Cx, recorder: Recorder, steps: (Journal, Vec<Step>), deadline: Timestamp) -> Result<()> {
    let id = recorder.run().run_id;
    let driver = driver(cx, recorder, steps, deadline)?;
    tokio::spawn(drive(driver).instrument(tracing::info_span!("helper", run_id = %id)));
    Ok(())
}

fn helper_of(run: &Run) -> Option<&Helper> {
    run.theme.as_ref()?.helper.as_ref()
}

fn driver(
    cx: &Cx,
    recorder: Recorder,
    steps: (Journal, Vec<Step>),
    deadline: Timestamp,
) -> Result<Driver<Part>> {
    let run = recorder.run();
    let (Some(turn), Some(leads)) = (&run.theme, cx.leads()) else {
        return Err(Error::internal("this function can't drive a helper of the theme agent"));
    };
    let helper = turn.helper.as_ref().ok_or_else(|| Error::internal("a helper has no task"))?;
    let kind = Part { edits: helper.role.edits(), message: (leads.task)(helper) };
    // What depends on the size of the turn is set by `AreaLead::lead` before the first call.
    let terms = Terms {
        policy: Policy {
            max_steps: 1,
            talks_at_last: true,
            max_repairs: 1,
            continues_cut_off: false,
            checked: None,
            has_conditions: false,
            until: helper.until,
        },
        tier: ModelTier::Standard,
        work: domain::models::routing::Ask::default(),
        ceiling_micros: helper.ceiling_micros,
        month: MonthCeilings { agent: None, action: None },
        system: (leads.system)(turn),
        provider_tools: std::collections::BTreeMap::new(),
        needs_provider_tools: false,
        rehearses: false,
        has_documents: false,
        theme: Some(turn.project_id),
        reply_tokens: MAX_OUTPUT_TOKENS,
    };
    let deadline = deadline.min(helper.until);
    Ok(Driver::new(cx, cx.remembering(), (kind, terms), recorder, steps, deadline))
}

/// The future is large, and it is within that of the turn that waits for it.
fn drive(mut driver: Driver<Part>) -> BoxFuture<'static, ()> {
    async move {
        let rest = driver.drive().await;
        let run_id = driver.recorder.run().run_id;
        if let Err(error) = end(driver, rest).await {
            tracing::error!(%run_id, cause = %error.causes(), "the end of a helper could not be stored; its lease will end");
        }
    }
    .boxed()
}

/// Stores the end of a helper, or hands it on.
async fn end(driver: Driver<Part>, rest: Rest) -> Result<()> {
    let Driver { cx, mut recorder, transcript, .. } = driver;
    let owner = recorder.owner().clone();
    let failed = |code: &str, detail: String| RunError { code: code.to_owned(), detail, retryable: false };
    let (state, error) = match rest {
        Rest::Lost => return Ok(()),
        Rest::PutDown => return super::put_down(&cx, recorder).await,
        Rest::Cancelled(cause) => (RunState::Cancelled, cause.error()),
        Rest::Failed(error) => (RunState::Failed, Some(error)),
        Rest::Ended(Outcome::Completed { .. } | Outcome::NothingNew { .. }) => (RunState::Completed, None),
        Rest::Ended(Outcome::Failed { code, detail }) => (RunState::Failed, Some(failed(code, detail))),
        // Nobody is asked about what a helper does.
        Rest::Waits { reason, .. } | Rest::Ended(Outcome::Waiting { reason }) => {
            (RunState::Failed, Some(failed("waiting", reason.text)))
        }
    };
    let last = transcript.steps.last().map(|step| step.reply.text.trim()).filter(|text| !text.is_empty());
    if let Some(last) = last {
        recorder.run_mut().message = crate::agent_loop::shortened(last.to_owned());
    }
    if let Some(leads) = cx.leads()
        && let Some(helper) = recorder.run_mut().theme.as_mut().and_then(|turn| turn.helper.as_mut())
    {
        helper.edited = (leads.edited)(&transcript.steps);
    }
    let cost = recorder.run().cost_micros;
    recorder.finish(state, error, Vec::new()).await?;
    if cost > 0 {
        alerts::check(&cx, &owner, RunKind::Helper).await;
    }
    Ok(())
}

/// What a helper works with.
struct Part {
    edits: bool,
    /// What it is told first.
    message: String,
}

impl Kind for Part {
    type Change = Infallible;

    fn setting(&self) -> Setting<'_> {
        Setting::Helper { edits: self.edits }
    }

    async fn history(&self, _: KindCx<'_>) -> Result<Vec<Message>> {
        Ok(vec![Message::user(self.message.as_str())])
    }

    fn apply(&mut self, change: Infallible) {
        match change {}
    }

    async fn perform(&self, _: KindCx<'_>, _: ToolCall) -> Result<Performed<Infallible>> {
        Ok(domain::agent_loop::CallResult::refused("a helper has no such tool").into())
    }
}
