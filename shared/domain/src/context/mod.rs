//! The context document of a coding assistant: what was planned, done and found. It outlives the assistant's own memory
//! of the conversation.
//!
//! A document belongs to a project and a workflow, and has at most one section per mode. [`mode`] reads the mode that a
//! prompt asks for. [`update`] decides when a document begins anew and merges updates into it. [`markdown`] writes the
//! form that people read and edit, and [`import`] reads it. [`recommend`] names the agent that should carry out the
//! plan.

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

/// The most items in one update, over all its lists.
pub const MAX_ITEMS: usize = 100;
/// The longest item or task, in characters.
pub const MAX_ITEM: usize = 2_000;
/// The longest title, in characters.
pub const MAX_TITLE: usize = 200;
/// The longest status or agent name, in characters.
pub const MAX_NAME: usize = 100;
/// The largest document, in bytes of its Markdown.
pub const MAX_DOCUMENT: usize = 256 * 1024;
/// How long a version is kept after it was written, in days.
pub const VERSION_DAYS: i64 = 90;
/// The most rounds of plan, act and evaluate in an automatic workflow.
pub const MAX_ITERATIONS: u32 = 3;

/// The error for an update without a document, and the warning for acting or evaluating without one.
pub const NO_DOCUMENT: &str = "No context document found. Run PLAN mode first to create context.";
