//! The tools that models and MCP clients may call.
//!
//! - [`ToolDef`]: what a tool is. There is one file for the tools of each area
//! - [`LOOP`]: the tools of the agent loop
//! - [`ToolCall`]: a call of the agent loop, with parsed arguments
//! - [`decide`], [`offered`]: whether a call is allowed, and which tools are offered
//!
//! In a chat, a person is present and accepts or rejects every proposal. In an unattended run, nobody is present. There, a
//! tool that proposes further work or acts outside the platform is offered only if the action's grants name it, and grants
//! are part of the approval.

pub mod actions;
pub mod agents;
mod arguments;
pub mod assets;
mod call;
mod decide;
mod def;
pub mod questions;
mod schema;
#[cfg(test)]
mod tests;

use crate::actions::ToolSpecForHash;

pub use arguments::{Arguments, read};
pub use call::ToolCall;
pub use decide::{Decision, Setting, decide, offered};
pub use def::{Effect, Surface, ToolDef};

/// The default length of a list in the agent loop.
pub const DEFAULT_LIMIT: usize = 20;
/// The maximum length of a list in the agent loop.
pub const MAX_LIMIT: usize = 100;

/// An ordered set of tools with unique names.
pub type Table = &'static [&'static ToolDef];

/// The tools of the agent loop, in the order in which models see them. The order never changes, because it is part of every
/// cached prefix: a new tool goes to the end.
pub const LOOP: Table = &[
    &actions::QUERY_ACTIONS,
    &assets::QUERY_ASSETS,
    &assets::READ_ASSET,
    &assets::GENERATE_ASSET,
    &actions::GENERATE_ACTIONS,
    &agents::READY_TO_CREATE,
    &assets::SAVE_OUTPUT,
    &questions::ASK_PERSON,
    &actions::CHANGE_ACTION,
];

/// All tables. For tests: a function that names one table does not link the tools of the others.
pub const ALL: [Table; 1] = [LOOP];

/// The tool with this name.
#[must_use]
pub fn find(table: Table, name: &str) -> Option<&'static ToolDef> {
    table.iter().copied().find(|tool| tool.name == name)
}

/// The names that an action's grants may contain.
pub fn grantable() -> impl Iterator<Item = &'static str> {
    LOOP.iter().filter(|tool| tool.is_grantable()).map(|tool| tool.name)
}

/// The specifications of the granted tools, which are part of an approval. A tool that no longer exists is left out; this
/// ends the approval like any other change.
#[must_use]
pub fn granted(grants: &[String]) -> Vec<ToolSpecForHash> {
    let tools = grants.iter().filter_map(|name| find(LOOP, name));
    tools.map(|tool| ToolSpecForHash { name: tool.name.to_owned(), schema: (tool.input)() }).collect()
}
