//! What a model may call: the built-in tools, what each does to the world, and where it is offered.
//!
//! - [`Tool`]: the registry, an enum; a name that is not in it is no tool
//! - [`ToolCall`]: a call with its arguments read
//! - [`decide`]: whether a call may be made
//! - `spec`: what models are told of a tool (its JSON Schema is part of an approval)
//!
//! In a chat a person is present and says yes or no to everything that is proposed. In an unattended run nobody is: a
//! tool that proposes further work is offered there only where the action's grants name it, and a grant is part of what
//! was approved.

mod call;
mod decide;
mod spec;
#[cfg(test)]
mod tests;

use crate::actions::ToolSpecForHash;
use crate::models::ToolSpec;

pub use call::{DEFAULT_LIMIT, MAX_LIMIT, ToolCall};
pub use decide::{Decision, Setting, decide};

/// A built-in tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tool {
    QueryActions,
    QueryAssets,
    ReadAsset,
    GenerateAsset,
    GenerateActions,
    ReadyToCreate,
    SaveOutput,
    AskPerson,
    ChangeAction,
}

/// What a call does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing.
    Read,
    /// It hands over finished content.
    Deliver,
    /// It proposes something that goes on afterwards: an agent, work for later, or a change to it.
    Propose,
    /// It asks a person, and the run waits for the answer.
    Ask,
}

impl Tool {
    /// In the order in which models are told of them, which never changes: it is part of every cached prefix.
    pub const ALL: [Self; 9] = [
        Self::QueryActions,
        Self::QueryAssets,
        Self::ReadAsset,
        Self::GenerateAsset,
        Self::GenerateActions,
        Self::ReadyToCreate,
        Self::SaveOutput,
        Self::AskPerson,
        Self::ChangeAction,
    ];

    /// As models and grants write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueryActions => "query_actions",
            Self::QueryAssets => "query_assets",
            Self::ReadAsset => "read_asset",
            Self::GenerateAsset => "generate_asset",
            Self::GenerateActions => "generate_actions",
            Self::ReadyToCreate => "ready_to_create",
            Self::SaveOutput => "save_output",
            Self::AskPerson => "ask_person",
            Self::ChangeAction => "change_action",
        }
    }

    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    #[must_use]
    pub const fn effect(self) -> Effect {
        match self {
            Self::QueryActions | Self::QueryAssets | Self::ReadAsset => Effect::Read,
            Self::GenerateAsset | Self::SaveOutput => Effect::Deliver,
            Self::GenerateActions | Self::ReadyToCreate | Self::ChangeAction => Effect::Propose,
            Self::AskPerson => Effect::Ask,
        }
    }

    /// Whether an unattended run may call it only where the action's grants name it.
    #[must_use]
    pub const fn needs_grant(self) -> bool {
        matches!(self.effect(), Effect::Propose)
    }

    /// Whether an action's grants may name it: whatever a run can make use of.
    #[must_use]
    pub const fn is_grantable(self) -> bool {
        !matches!(self, Self::ReadyToCreate | Self::ChangeAction)
    }

    /// The names that an action's grants may hold.
    pub fn grantable() -> impl Iterator<Item = &'static str> {
        Self::ALL.into_iter().filter(|tool| tool.is_grantable()).map(Self::name)
    }

    /// Whether an unattended run under these grants may call it. A call that may not be made ends the run as waiting.
    #[must_use]
    pub fn is_allowed_in_run(self, grants: &[String]) -> bool {
        self.is_grantable() && (!self.needs_grant() || grants.iter().any(|grant| grant == self.name()))
    }

    /// The tools of a conversation with an agent.
    pub fn offered_in_chat() -> impl Iterator<Item = Self> {
        [Self::QueryActions, Self::QueryAssets, Self::ReadAsset, Self::GenerateAsset, Self::GenerateActions]
            .into_iter()
    }

    /// The tools of the conversation about one action.
    pub fn offered_about_action() -> impl Iterator<Item = Self> {
        Self::offered_in_chat().chain([Self::ChangeAction])
    }

    /// The tools of the conversation that sets an agent up.
    pub fn offered_in_setup() -> impl Iterator<Item = Self> {
        std::iter::once(Self::ReadyToCreate)
    }

    /// The tools of an unattended run under these grants: all that need no grant, and those that are named. Content is
    /// delivered by `save_output` there, so that the model has one way to do it.
    pub fn offered_in_run(grants: &[String]) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|tool| *tool != Self::GenerateAsset && tool.is_allowed_in_run(grants))
    }

    /// What a model is told of it.
    #[must_use]
    pub fn spec(self) -> ToolSpec {
        ToolSpec {
            name: self.name().to_owned(),
            description: spec::description(self).to_owned(),
            input_schema: spec::schema(self),
        }
    }

    /// The specifications of the tools that grants name, as an approval binds them. A tool that has gone since is left
    /// out, which is a change of what was approved like any other.
    #[must_use]
    pub fn granted(grants: &[String]) -> Vec<ToolSpecForHash> {
        let tools = grants.iter().filter_map(|name| Self::from_name(name));
        tools
            .map(|tool| ToolSpecForHash { name: tool.name().to_owned(), schema: spec::schema(tool) })
            .collect()
    }
}
