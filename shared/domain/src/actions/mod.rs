//! Work that an agent does later: the action, its approval, its due times, and a record of what happened at each due time.
//!
//! - [`action`] and [`input`]: an action, and the input that can change it
//! - [`conditions`]: what a program checks of the outputs of a run
//! - [`change`]: how a change that a model proposes is checked, and approved when it is accepted
//! - [`command`]: whether a command that a model proposes is possible now
//! - [`define`]: the input that defines an action
//! - [`http_call`]: the request that an action without a model sends
//! - [`state`]: the only function that changes an action
//! - [`approval`]: the hash that binds an approval to its content
//! - [`plan`]: decides about the fire times that have come, at one wake-up
//! - [`marks`]: what an action notes of its failures, its held due times and the checks before its next run
//! - [`preflight`]: what is checked before a due time
//! - [`occurrence`] and [`progress`]: one due time or one manual run, from its claim to its end
//! - [`reason`]: why a due time did not simply succeed
//! - [`failures`]: equal failures in a row, which pause an action
//! - [`held`]: the due times that came while a person was asked
//! - [`stopped`]: the due times that came while the account was stopped
//! - [`idle`]: why the due times of an action do not run now
//! - [`mod@why`]: explains in words what happened at a due time
//!
//! All functions are pure. The caller loads, calls, and stores the result on the condition that the `version` (of an action)
//! or the `fence` (of an occurrence) has not changed. If both change, one transaction stores them.
//!
//! # The life of a due time
//! 1. A sweep finds an action whose [`Action::wake_at`] has come, calls [`plan_due`], and writes the occurrences (if absent)
//!    and the action after [`Command::Planned`]. If the live run (or else the oldest run that is due) may be claimed, it
//!    sends a message to the executors.
//! 2. The executor writes [`Command::OccurrenceStarted`] and [`OccurrenceCommand::Claim`]. If that is refused because another
//!    run is live, the action is paused or a person was asked, it writes `Defer`. If it is refused for another reason, it
//!    writes `Cancel`. If no attempt is left, it writes `Expire`.
//! 3. If the action is no longer what was approved ([`Action::is_approved`]), it writes `Drift`. Otherwise it writes `Start`,
//!    and then each step when the step is complete.
//! 4. When the run ends, the occurrence and [`Command::OccurrenceEnded`] are written together.

pub mod action;
pub mod approval;
pub mod change;
pub mod command;
pub mod conditions;
#[cfg(test)]
mod conditions_tests;
pub mod cost;
pub mod define;
pub mod failures;
pub mod held;
pub mod http_call;
pub mod idle;
pub mod input;
mod links;
pub mod marks;
pub mod notebook;
pub mod occurrence;
#[cfg(test)]
mod occurrence_tests;
pub mod plan;
#[cfg(test)]
mod plan_tests;
pub mod preflight;
pub mod progress;
pub mod reason;
#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod simulation;
pub mod state;
#[cfg(test)]
mod state_tests;
pub mod stopped;
pub mod why;
#[cfg(test)]
mod why_tests;

pub use crate::work::{
    ActionChange, ActionCommand, ActionState, Condition, Priority, TaskConfig, TaskConfigPatch,
};
pub use action::{Action, Approval, AskedBudget, Budget};
pub use approval::{AgentBrief, ApprovalContent, ApprovalRecord, Briefing, Difference, approval_hash};
pub use change::AcceptedChange;
pub use command::NotNow;
pub use cost::ExpectedCost;
pub use define::DefineAction;
pub use input::{ActionPatch, MAX_EXPECTED_OUTPUT, MAX_INSTRUCTIONS, NewAction, ValidAction, ValidPatch};
pub use marks::{Failures, Held, Preflight, PreflightCode, PreflightProblem};
pub use notebook::{Notebook, NotebookText};
pub use occurrence::{Covered, Occurrence, OccurrenceKind, OccurrenceState, Telling};
pub(crate) use plan::approximately;
pub use plan::{Decided, Decision, DuePlan, plan_due, plan_due_except};
pub use preflight::DueCheck;
pub use progress::{OccurrenceCommand, OccurrenceRefused, backoff};
pub use reason::{Reason, ReasonCode};
pub use state::{Command, ExecutionResult, Refused, transition};
pub use stopped::{Missed, MissedAnswer, Settled};
pub use why::{ApprovalNow, AtAccount, Circumstances, Why, WhyCode, why, why_at_account};
