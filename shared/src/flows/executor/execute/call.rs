//! The run of an action with a call: one request instead of a model.
//!
//! The key of the request is the id of the run, which is the same in all tries. So a try whose result is unknown, because the process
//! died or no answer came, is repeated, and the receiver can tell that it is the same.

use domain::actions::OccurrenceCommand;
use domain::actions::http_call::{Judged, Sent, judge};
use domain::ids::Owner;
use domain::runs::{Run, RunError, RunState};
use jiff::{SignedDuration, Timestamp};

use super::end::Ending;
use super::kind::ActionRun;
use crate::agent_loop::recorder::Recorder;
use crate::agent_loop::{Driver, Rest};
use crate::context::Cx;
use crate::error::Result;
use crate::flows::actions::calls;
use crate::store::runs::CancelCause;

/// A try that could not end before its process does is left to another process.
const LONGEST: SignedDuration = SignedDuration::from_secs(20);

/// Sends one try, and says what follows.
///
/// # Errors
/// If the table does not answer. Then another executor tries again with the same key.
pub(super) async fn send(run: &mut Driver<ActionRun>, deadline: Timestamp) -> Result<Ending> {
    let (cx, kind, recorder) = (run.cx.clone(), &mut run.kind, &mut run.recorder);
    let fence = kind.occurrence.value.fence;
    let Some(call) = kind.content.call.clone() else { return Ok(Ending::Lost) };
    if cx.clock.now() + LONGEST > deadline {
        return Ok(Ending::of(fence, Rest::PutDown));
    }
    let key = kind.occurrence.value.run_id.to_string();
    let mut sent = recorder.run().call.clone().unwrap_or_default();
    if sent.key.is_empty() {
        *sent = Sent { to: call.name(), key: key.clone(), ..Sent::default() };
    }
    sent.attempts = sent.attempts.saturating_add(1);
    // The write is refused if somebody else has the run or has ended it. Then nothing is sent.
    if !store(recorder, sent.clone()).await? {
        return Ok(Ending::Lost);
    }
    let owner = recorder.owner().clone();
    if let Some(cause) = cancelled(&cx, &owner, recorder.run()).await? {
        return Ok(Ending::Cancelled(cause));
    }
    let (tried, answer) = calls::send(&cx, &owner, &call, &key).await?;
    let came_back = match (&tried.status, &tried.error) {
        (Some(code), _) => format!("{} answered {code}", sent.to),
        (None, error) => format!("{}: {}", sent.to, error.as_deref().unwrap_or("no answer came")),
    };
    tracing::info!(status = tried.status, took_ms = tried.took_ms, "a call was sent");
    if !tried.answer.is_empty() {
        recorder.run_mut().taint(sent.attempts, tried.at);
    }
    sent.add(tried);
    let judged = judge(answer);
    // A report is expected only if the server has accepted the request.
    let report_within = call.report_within().filter(|_| judged == Judged::Succeeded);
    recorder.run_mut().message = match call.expect_report_within_minutes.filter(|_| report_within.is_some()) {
        Some(minutes) => format!("{came_back}. Its report is expected within {minutes} minutes."),
        None => came_back.clone(),
    };
    if !store(recorder, sent).await? {
        return Ok(Ending::Lost);
    }
    let failed = |retryable| {
        let error = RunError { code: answer.failure_code().to_owned(), detail: came_back.clone(), retryable };
        Ending::failed(fence, error)
    };
    if let Some(within) = report_within {
        let until = cx.clock.now() + within;
        return Ok(Ending::Stored {
            command: OccurrenceCommand::AwaitReport { fence, until },
            state: RunState::Running,
            error: None,
            asked: Vec::new(),
        });
    }
    Ok(match judged {
        Judged::Succeeded => Ending::Stored {
            command: OccurrenceCommand::Succeed { fence, score: None, note: None },
            state: RunState::Completed,
            error: None,
            asked: Vec::new(),
        },
        Judged::Again(pause) => {
            kind.not_before = cx.clock.now().checked_add(pause).ok();
            failed(true)
        }
        Judged::Failed => failed(false),
    })
}

/// Stores what was sent so far. Returns whether this executor still has the run.
async fn store(recorder: &mut Recorder, sent: Box<Sent>) -> Result<bool> {
    let run = Run { call: Some(sent), ..recorder.run().clone() };
    match recorder.commit_as(run, Vec::new(), Vec::new()).await {
        Ok(_) => Ok(true),
        Err(_) if recorder.is_lost() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Why it must not be sent, if somebody asked the run to stop or has stopped the account.
async fn cancelled(cx: &Cx, owner: &Owner, run: &Run) -> Result<Option<CancelCause>> {
    let (cause, account) =
        tokio::try_join!(cx.store.cancel_cause(owner, run.run_id), cx.store.account(owner))?;
    Ok(cause.or(account.value.stop.map(|_| CancelCause::AccountStopped)))
}
