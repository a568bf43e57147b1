//! The context document of a coding assistant: what was planned, done and found, so that it outlives the assistant's own
//! memory of the conversation.
//!
//! A document belongs to a project and a workflow. It has at most one section per mode. [`mode`] reads which mode a prompt
//! asks for; [`update`] says when a document begins anew and how an update merges into it; [`markdown`] writes the form
//! that people read and edit, and [`import`] reads it back; [`recommend`] names the agent that should do what was planned.

pub mod document;
pub mod import;
mod limits;
pub mod markdown;
pub mod mode;
pub mod recommend;
pub mod update;
mod workflow;

#[cfg(test)]
mod tests;

pub use document::{Cause, Confidence, Document, Mode, RecommendedAgent, Section};
pub use mode::{ModeRequest, Warning};
pub use update::Update;
pub use workflow::{InvalidWorkflow, Workflow};

/// The most items that one update may bring, over all its lists.
pub const MAX_ITEMS: usize = 100;
/// Longest item, task, in characters.
pub const MAX_ITEM: usize = 2_000;
/// Longest title, in characters.
pub const MAX_TITLE: usize = 200;
/// Longest status or name of an agent, in characters.
pub const MAX_NAME: usize = 100;
/// Largest document, in bytes of its Markdown.
pub const MAX_DOCUMENT: usize = 256 * 1024;
/// How long a version is kept after it was written, in days.
pub const VERSION_DAYS: i64 = 90;
/// How many rounds of plan, act and evaluate an automatic workflow may take.
pub const MAX_ITERATIONS: u32 = 3;

/// What an update is told that comes before any document, and what acting or evaluating without one is warned of.
pub const NO_DOCUMENT: &str = "No context document found. Run PLAN mode first to create context.";
