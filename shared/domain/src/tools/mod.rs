//! The tools that models and MCP clients may call.
//!
//! - [`ToolDef`]: what a tool is. There is one file for the tools of each area
//! - [`LOOP`], [`MCP`]: the tools of the agent loop, and those of the MCP server. The two overlap in meaning, but not in
//!   definition: a tool of the loop reaches one agent's data and its schema is part of approvals; an MCP client reaches all
//!   data of its owner, in pages
//! - [`SETS`]: sets of the tools of the MCP server, which a client names in the server's address
//! - [`OWN`]: the tools that the loop performs itself
//! - [`DOCUMENTS`], [`THEME`]: the tools of agents that use living documents, or a theme
//! - [`HELPERS`]: the tools with which the theme agent gives parts of its work to other models
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
pub mod context;
mod decide;
mod def;
pub mod documents;
pub mod logs;
pub mod memory;
pub mod messages;
pub mod notes;
mod output;
pub mod practices;
pub mod projects;
pub mod proposals;
pub mod questions;
pub mod results;
pub mod runs;
pub mod schedules;
mod schema;
mod sets;
#[cfg(test)]
mod tests;
pub mod theme;
pub mod theme_tools;
pub mod watched;

pub use arguments::{Arguments, read_fields};
pub use call::ToolCall;
pub use decide::{Decision, Setting, decide, decide_about, offered, offered_of};
pub use def::{Effect, Surface, ToolDef, ToolSpecForHash};
pub use sets::{SETS, ToolSet, ToolSets, UnknownToolSet};

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
    &notes::NOTE,
    &notes::NOTHING_NEW,
    &messages::READ_MESSAGES,
    &practices::QUERY_PRACTICE,
    &runs::EXPLAIN_OWN_ACTION,
    &actions::COMMAND_ACTION,
];

/// The tools of the MCP server, in the order in which it lists them.
pub const MCP: Table = &[
    &context::PARSE_MODE,
    &context::UPDATE_CONTEXT,
    &context::READ_CONTEXT,
    &context::LIST_CONTEXT_VERSIONS,
    &context::RESTORE_CONTEXT,
    &logs::READ_AGENT_LOG,
    &logs::APPEND_AGENT_LOG,
    &theme::LOOKUP_THEME,
    &theme::CHECK_THEME,
    &theme::FIX_THEME,
    &projects::LIST_PROJECTS,
    &projects::LIST_WORKFLOWS,
    &agents::LIST_AGENTS,
    &agents::READ_AGENT,
    &agents::PROPOSE_AGENT,
    &assets::LIST_ASSETS,
    &assets::READ_ANY_ASSET,
    &assets::PROPOSE_ASSET,
    &actions::LIST_ACTIONS,
    &actions::READ_ACTION,
    &actions::PROPOSE_ACTION,
    &runs::EXPLAIN_ACTION,
    &runs::LIST_RUNS,
    &runs::READ_RUN,
    &runs::LIST_RUN_OUTPUTS,
    &schedules::PREVIEW_SCHEDULE,
    &proposals::LIST_PROPOSALS,
    &proposals::READ_PROPOSAL,
    &memory::SEARCH_MEMORY,
    &memory::REMEMBER_CARD,
    &memory::CORRECT_FACT,
    &memory::FORGET_FACT,
    &watched::REPORT_RUN,
    &practices::READ_PRACTICES,
    &documents::READ_PROJECT_DOCUMENT,
    &documents::SYNC_PROJECT_DOCUMENTATION,
    &documents::ADD_COMMIT,
];

/// The tools that the loop performs itself, for every kind of run. No grant names them.
pub const OWN: Table = &[&results::READ_RESULT];

/// The tools of agents that use the living documents of a project. No grant names them: the setting of the agent is part of the approval.
pub const DOCUMENTS: Table = &[&documents::READ_DOCUMENT, &documents::SYNC_DOCUMENTATION];

/// All tables. For tests: a function that uses one table does not link the tools of the others.
pub const ALL: [Table; 6] = [LOOP, OWN, DOCUMENTS, THEME, HELPERS, MCP];

/// The tool with this name.
#[must_use]
pub fn find(table: Table, name: &str) -> Option<&'static ToolDef> {
    table.iter().copied().find(|tool| tool.name == name)
}

/// The tools of agents that have a theme. Those that edit need the grant [`theme_tools::EDIT`] in an unattended run. The area of themes performs
/// them.
pub const THEME: Table = theme_tools::TOOLS;

/// The tools with which the theme agent gives parts of its work to other models. The area of themes performs them.
pub const HELPERS: Table = theme_tools::HELPERS;

/// The tools that an agent's projects give it, besides [`LOOP`]: of living documents, and of a theme.
pub fn of_projects(has_documents: bool, has_theme: bool) -> impl Iterator<Item = &'static ToolDef> + use<> {
    let documents: Table = if has_documents { DOCUMENTS } else { &[] };
    let theme: Table = if has_theme { THEME } else { &[] };
    documents.iter().chain(theme).copied()
}

/// The names that an action's grants may contain.
pub fn grantable() -> impl Iterator<Item = &'static str> {
    let of_loop = LOOP.iter().filter(|tool| tool.is_grantable()).map(|tool| tool.name);
    of_loop.chain([theme_tools::EDIT, theme_tools::APPLY])
}

/// The specifications of the tools that a person approves: those that are granted, and those that its projects give the agent. A tool that
/// no longer exists is left out; this ends the approval like any other change.
#[must_use]
pub fn approved(
    grants: &[String],
    of_projects: impl Iterator<Item = &'static ToolDef>,
) -> Vec<ToolSpecForHash> {
    let granted = grants.iter().filter_map(|name| find(LOOP, name));
    let is_granted = |tool: &&ToolDef| !tool.needs_grant() || grants.iter().any(|name| name == tool.grant());
    let tools = granted.chain(of_projects.filter(is_granted));
    tools.map(|tool| ToolSpecForHash { name: tool.name.to_owned(), schema: (tool.input)() }).collect()
}
