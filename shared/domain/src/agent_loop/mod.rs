//! The agent loop: what a conversation between a model and tools does next.
//!
//! [`next`] is a pure state machine. A [`Transcript`] is the list of stored steps; a [`Policy`] says what kind of run it is.
//! The shell loads the transcript, asks [`next`], does what it says, stores the result and asks again. So a run can be
//! continued by any process, at any point, from what is stored.
//!
//! - [`step`]: a reply, its calls and their results
//! - [`transcript`]: the steps of a run, and the messages that a model is shown of them
//! - [`repeats`]: loops, which are warned about and then stopped
//! - [`cards`]: calls that wait for a person
//! - [`results`]: long results, which are read in pages
//! - [`check`]: the verdict on a run's output. What a program checks before it is in [`crate::actions::conditions`]

pub mod cards;
pub mod check;
pub mod repeats;
pub mod results;
pub mod step;
pub mod transcript;

#[cfg(test)]
mod tests;

use jiff::Timestamp;

use crate::actions::{Reason, ReasonCode};
use crate::models::StopReason;

pub use crate::ids::CallId;
pub use cards::Card;
pub use check::Verdict;
pub use step::{After, Call, CallResult, NOT_CALLED, Purpose, Reply, Step};
pub use transcript::Transcript;

/// The most that a run's steps may hold, in bytes. An executor drives ten runs in 512 MB; a run holds its steps, the request
/// made of them, and the request's JSON, so this bounds a run to about a twentieth of that memory.
pub const MAX_TRANSCRIPT: usize = 6 * 1024 * 1024;

/// The limits of a kind of run, and how it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How often the model is called for work.
    pub max_steps: usize,
    /// At the last of these steps the model may only talk, and then the run is complete. Otherwise a run that needs more
    /// steps fails.
    pub talks_at_last: bool,
    /// How often the model is asked to repair a call or a signal that can't be read.
    pub max_repairs: usize,
    /// Whether a reply that reached the length limit is continued.
    pub continues_cut_off: bool,
    /// Whether the work must have an output, which is then checked; and how often a check may ask for a better one.
    pub checked: Option<Revisions>,
    /// Whether a program checks conditions before each of these checks. An output that does not meet them may be revised once in
    /// the whole run.
    pub has_conditions: bool,
    /// When the run has taken too long as a whole.
    pub until: Timestamp,
}

/// How often a check may send a run back to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revisions(pub usize);

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Call the model with the conversation so far.
    CallModel { may_call_tools: bool },
    /// Make the calls of the last reply from this one on, in their order.
    Perform { from: usize },
    /// Check the conditions of the outputs, without a model.
    CheckConditions,
    /// Have the model check the outputs.
    Check,
    /// The run ends.
    Finish(Outcome),
}

/// How a run ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// `note` says what a reader should know, for example that the output was not checked.
    Completed {
        score: Option<u8>,
        note: Option<Reason>,
    },
    /// There is nothing to report since the last run.
    NothingNew {
        reason: String,
    },
    Failed {
        code: &'static str,
        detail: String,
    },
    Waiting {
        reason: Reason,
    },
}

impl Outcome {
    #[must_use]
    pub const fn completed() -> Self {
        Self::Completed { score: None, note: None }
    }

    /// The work is done and saved, and the budget does not pay for its check.
    #[must_use]
    pub fn unchecked(why: &str) -> Self {
        let text = format!("the output was saved but not checked: {why}");
        Self::Completed { score: None, note: Some(Reason::new(ReasonCode::NotChecked, text)) }
    }

    fn failed(code: &'static str, detail: impl Into<String>) -> Self {
        Self::Failed { code, detail: detail.into() }
    }
}

/// What a run does next.
#[must_use]
pub fn next(transcript: &Transcript, policy: &Policy, now: Timestamp) -> Next {
    if now >= policy.until {
        let detail = "it was not done within the time that a run may take";
        return Next::Finish(Outcome::failed("run_too_long", detail));
    }
    let Some(last) = transcript.steps.last() else { return Next::CallModel { may_call_tools: true } };
    match last.purpose {
        Purpose::Person | Purpose::Summary | Purpose::Nudge => call_model(transcript, policy),
        Purpose::Conditions => after_conditions(transcript, policy, last),
        Purpose::Check => after_check(transcript, policy, &last.reply),
        Purpose::Work => after_work(transcript, policy, last),
    }
}

fn call_model(transcript: &Transcript, policy: &Policy) -> Next {
    if transcript.is_full() {
        let detail = format!("its steps hold more than {} MB", MAX_TRANSCRIPT / (1024 * 1024));
        return Next::Finish(Outcome::failed("conversation_too_large", detail));
    }
    let done = transcript.count(Purpose::Work);
    if done < policy.max_steps {
        return Next::CallModel { may_call_tools: !policy.talks_at_last || done + 1 < policy.max_steps };
    }
    if policy.talks_at_last {
        return Next::Finish(Outcome::completed());
    }
    let detail = format!("it was not done after {} steps", policy.max_steps);
    Next::Finish(Outcome::failed("too_many_steps", detail))
}

fn after_work(transcript: &Transcript, policy: &Policy, last: &Step) -> Next {
    if last.results.len() < last.reply.calls.len() {
        return Next::Perform { from: last.results.len() };
    }
    if let Some(reason) = last.results.iter().find_map(CallResult::asks) {
        return Next::Finish(Outcome::Waiting { reason: reason.clone() });
    }
    if transcript.outputs == 0
        && let Some(reason) = last.results.iter().find_map(CallResult::nothing_new_because)
    {
        return Next::Finish(Outcome::NothingNew { reason: reason.to_owned() });
    }
    if let Some((code, detail)) = repeats::find(&transcript.steps).and_then(repeats::Repeats::stops) {
        return Next::Finish(Outcome::failed(code, detail));
    }
    if goes_on(transcript, policy, last) {
        return call_model(transcript, policy);
    }
    match policy.checked {
        None => Next::Finish(Outcome::completed()),
        Some(_) if transcript.outputs == 0 => {
            Next::Finish(Outcome::failed("empty_output", "the run ended without an output"))
        }
        Some(_) if policy.has_conditions => Next::CheckConditions,
        Some(_) => Next::Check,
    }
}

/// Whether the model should hear of something, or has not finished.
fn goes_on(transcript: &Transcript, policy: &Policy, last: &Step) -> bool {
    let repairs = last.wants_repair();
    match last.reply.stop {
        StopReason::Pause => return true,
        // The reply has ended where the client wants it to end.
        StopReason::StopSequence => return false,
        StopReason::MaxTokens if !repairs && !last.has_calls() => {
            return policy.continues_cut_off && !last.reply.blocks.is_empty();
        }
        StopReason::MaxTokens if !repairs && !policy.continues_cut_off => return false,
        _ => {}
    }
    if repairs {
        let before = transcript.steps.iter().rev().skip(1).filter(|step| step.wants_repair()).count();
        return before < policy.max_repairs;
    }
    last.results.iter().any(|result| result.after == After::Tell)
}

fn after_conditions(transcript: &Transcript, policy: &Policy, last: &Step) -> Next {
    let unmet = last.report().unwrap_or_default().unmet;
    if unmet.is_empty() {
        return Next::Check;
    }
    if !transcript.was_told_of_conditions() {
        return call_model(transcript, policy);
    }
    let detail = format!("the saved output does not meet the conditions of the action: {}", unmet.join("; "));
    Next::Finish(Outcome::failed("condition_not_met", detail))
}

fn after_check(transcript: &Transcript, policy: &Policy, reply: &Reply) -> Next {
    let revisions = policy.checked.map_or(0, |revisions| revisions.0);
    match Verdict::read(&reply.text) {
        Some(verdict) if verdict.meets => {
            Next::Finish(Outcome::Completed { score: Some(verdict.score()), note: None })
        }
        Some(_) if transcript.revisions_before_last() < revisions => call_model(transcript, policy),
        Some(verdict) => {
            let missing = verdict.missing_text();
            let detail = format!("the saved output does not meet what was expected: {missing}");
            Next::Finish(Outcome::failed("output_rejected", detail))
        }
        None if transcript.unreadable_checks() < 2 => Next::Check,
        None => {
            let detail = "the output is saved, but twice the check of it gave no readable verdict";
            Next::Finish(Outcome::failed("check_unreadable", detail))
        }
    }
}
