//! A run of an action: the model gets the task, saves outputs, and a check compares them with the expected output.
//!
//! An executor claims the occurrence, and stores every reply together with it, under the fence of the claim. So an executor that
//! was believed dead cannot write any more.

mod call;
mod claim_or_resume;
mod end;
mod kind;
mod rehearsal;
mod since_last;
mod watched;

use domain::accounts::quota::Charge;
use domain::actions::{Action, Occurrence, OccurrenceState, ReasonCode};
use domain::agents::Agent;
use domain::ids::{Owner, RunId};
use domain::runs::{RunError, RunState};
use futures::future::BoxFuture;
use jiff::Timestamp;
use tracing::Instrument;

use self::end::Ending;
pub use self::rehearsal::rehearse;
use crate::agent_loop::recorder;
use crate::context::Cx;
use crate::error::Result;
use crate::money::quota::Quota;
use crate::store::Versioned;
use crate::store::table::Write;

/// An occurrence that this executor has claimed.
pub struct ClaimedRun {
    pub agent: Agent,
    pub action: Versioned<Action>,
    /// Version 0: the claim is stored when the run begins.
    pub occurrence: Versioned<Occurrence>,
    /// What is stored with the beginning of the run, besides the occurrence and the run's record. Empty if the claim is stored.
    pub unstored: Vec<Write>,
}

/// Whether a claimed run of this action begins within the same second. Then its claim need not be stored before. A run that first looks at
/// pages may wait long for their servers.
#[must_use]
pub fn begins_at_once(action: &Action) -> bool {
    action.watches.is_empty()
}

/// Runs a claimed occurrence until it ends, waits, or is handed on. `false` if a claim that was not stored yet was refused. Then nothing is
/// stored. `beginning` remembers what was read for the claim.
///
/// # Errors
/// If its end can't be stored. Then another executor takes it over when its lease ends.
pub fn run<'a>(
    cx: &'a Cx,
    beginning: &'a Cx,
    owner: &'a Owner,
    claimed: ClaimedRun,
    deadline: Timestamp,
) -> BoxFuture<'a, Result<bool>> {
    Box::pin(async move {
        let run_id = claimed.occurrence.value.run_id;
        let span = tracing::info_span!("run", %run_id, action_id = %claimed.action.value.id);
        let work = async {
            let is_stored = claimed.unstored.is_empty();
            // What was read before a look at pages is old after it.
            let beginning = match begins_at_once(&claimed.action.value) {
                true => beginning.clone(),
                false => cx.remembering(),
            };
            let Some(news) = watched::begins(cx, owner, &claimed).await? else { return Ok(true) };
            let begun = claim_or_resume::begin((cx, beginning), owner, (claimed, news), deadline).await?;
            let Some(mut run) = begun else { return Ok(is_stored) };
            let fence = run.kind.occurrence.value.fence;
            let ending = if run.recorder.run().charge == Charge::Refused {
                Ending::failed(fence, refused_by_plan(cx, owner).await?)
            } else if !run.kind.action.is_approved_as(&run.kind.content) {
                Ending::drifted(fence)
            } else if run.kind.content.call.is_some() {
                call::send(&mut run, deadline).await?
            } else {
                Ending::of(fence, run.drive().await)
            };
            end::end(run, ending).await?;
            Ok(true)
        };
        work.instrument(span).await
    })
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
    let (state, error) = ending_of(occurrence);
    recorder::end_without_executor(cx, owner, found, state, error).await?;
    Ok(())
}

/// How the record of a run ends whose occurrence has ended in this way.
fn ending_of(occurrence: &Occurrence) -> (RunState, Option<RunError>) {
    let state = match occurrence.state {
        OccurrenceState::Cancelled => RunState::Cancelled,
        OccurrenceState::Succeeded | OccurrenceState::Unchanged => RunState::Completed,
        _ => RunState::Failed,
    };
    let code = match (occurrence.state, occurrence.reason_code) {
        _ if occurrence.error_code.is_some() => occurrence.error_code.as_deref().unwrap_or_default(),
        (OccurrenceState::Unknown, _) => "effect_unknown",
        (_, Some(ReasonCode::Unanswered)) => "unanswered",
        (state, _) => state.as_str(),
    };
    let error = occurrence.reason.clone().filter(|_| state != RunState::Completed);
    (state, error.map(|detail| failure(code, detail)))
}
