//! Work that an agent does later: what it is, what a person has approved, when it is due and what became of every due
//! time.
//!
//! - [`action`] and [`input`]: an action, and what may be written into it
//! - [`change`]: what a model may propose to change about one
//! - [`define`]: what it takes to define one
//! - [`state`]: the one function through which an action changes
//! - [`approval`]: the hash that binds an approval to what was approved
//! - [`plan`]: what becomes of the fire times that have come, decided at one wake-up
//! - [`occurrence`] and [`progress`]: one due time or one run by hand, and how it goes from its claim to its end
//! - [`reason`]: why a due time has not simply succeeded
//! - [`mod@why`]: what became of a due time, in words
//!
//! All of it is pure: load, call, and write what came back on the condition that the `version` (of an action) or the
//! `fence` (of an occurrence) is still the one that was loaded. Where both change they are written in one transaction.
//!
//! # The life of a due time
//! 1. A sweep finds an action whose [`Action::wake_at`] has come, calls [`plan_due`], and writes the occurrences (if absent)
//!    and the action after [`Command::Planned`]. If the live run, or else the oldest one that is due, may be claimed, it
//!    sends for an executor.
//! 2. The executor writes [`Command::OccurrenceStarted`] and [`OccurrenceCommand::Claim`]. Refused because another run is
//!    live, the action is paused or a person is asked, it writes `Defer`; refused otherwise, `Cancel`. Where no attempt is
//!    left, `Expire`.
//! 3. If the action has drifted ([`Action::is_approved`]), it writes `Drift`. Else `Start`, and every step when it is done.
//! 4. However it leaves for good, the occurrence and [`Command::OccurrenceEnded`] are written together.

pub mod action;
pub mod approval;
pub mod change;
pub mod define;
pub mod input;
pub mod occurrence;
#[cfg(test)]
mod occurrence_tests;
pub mod plan;
#[cfg(test)]
mod plan_tests;
pub mod progress;
pub mod reason;
#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod simulation;
pub mod state;
#[cfg(test)]
mod state_tests;
pub mod why;
#[cfg(test)]
mod why_tests;

pub use action::{Action, ActionState, Approval, Budget, Priority, TaskConfig};
pub use approval::{
    AgentBrief, ApprovalContent, ApprovalRecord, Briefing, Difference, ToolSpecForHash, approval_hash,
};
pub use change::ActionChange;
pub use define::DefineAction;
pub use input::{ActionPatch, NewAction, TaskConfigPatch, ValidAction, ValidPatch};
pub use occurrence::{Occurrence, OccurrenceKind, OccurrenceState};
pub use plan::{Decided, Decision, DuePlan, plan_due, plan_due_except};
pub use progress::{OccurrenceCommand, OccurrenceRefused, backoff};
pub use reason::{Reason, ReasonCode};
pub use state::{Command, Outcome, Refused, transition};
pub use why::{Why, WhyCode, why};
