//! Work that an agent does later: what it is, what a person has approved, when it is due and what became of every due
//! time.
//!
//! - [`action`] and [`input`]: an action, and what may be written into it
//! - [`state`]: the one function through which an action changes
//! - [`approval`]: the hash that binds an approval to what was approved
//! - [`plan`]: what becomes of the fire times that have come, decided at one wake-up
//! - [`occurrence`] and [`progress`]: one due time or one run by hand, and how it goes from its claim to its end
//! - [`reason`]: why a due time has not simply succeeded
//! - [`why`]: what became of a due time, in words
//!
//! All of it is pure: load, call, and write what came back on the condition that the `version` (of an action) or the
//! `fence` (of an occurrence) is still the one that was loaded.

pub mod action;
pub mod approval;
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
mod samples;
#[cfg(test)]
mod simulation;
pub mod state;
#[cfg(test)]
mod state_tests;
pub mod why;
#[cfg(test)]
mod why_tests;

pub use action::{Action, ActionState, Approval, Budget, Priority, TaskConfig};
pub use approval::{ToolSpecForHash, approval_hash};
pub use input::{ActionPatch, NewAction, TaskConfigPatch, ValidAction, ValidPatch};
pub use occurrence::{Occurrence, OccurrenceKind, OccurrenceState};
pub use plan::{Decided, Decision, DuePlan, plan_due};
pub use progress::{OccurrenceCommand, OccurrenceRefused, backoff};
pub use reason::{Reason, ReasonCode};
pub use state::{Command, Outcome, Refused, transition};
pub use why::{Why, WhyCode, why};
