//! The tools that models may call: what each does, and where it is offered.
//!
//! - [`Tool`]: the registry, an enum of all tools
//! - [`ToolCall`]: a call with parsed arguments
//! - [`decide`]: whether a call is allowed
//! - `spec`: the descriptions and schemas that models see (a schema is part of an approval)
//!
//! In a chat, a person is present and accepts or rejects every proposal. In an unattended run, nobody is present. There, a
//! tool that proposes further work is offered only if the action's grants name it, and grants are part of the approval.

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

/// What a call changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It only reads.
    Read,
    /// It delivers finished content.
    Deliver,
    /// It proposes an agent, work for later, or a change of such work.
    Propose,
    /// It asks a person, and the run waits for the answer.
    Ask,
}

impl Tool {
    /// In the order in which models see them. The order never changes, because it is part of every cached prefix.
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

    /// The name that models and grants use.
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

    /// Whether an unattended run may call it only if the action's grants name it.
    #[must_use]
    pub const fn needs_grant(self) -> bool {
        matches!(self.effect(), Effect::Propose)
    }

    /// Whether an action's grants may name it: all tools that make sense in a run.
    #[must_use]
    pub const fn is_grantable(self) -> bool {
        !matches!(self, Self::ReadyToCreate | Self::ChangeAction)
    }

    /// The names that an action's grants may contain.
    pub fn grantable() -> impl Iterator<Item = &'static str> {
        Self::ALL.into_iter().filter(|tool| tool.is_grantable()).map(Self::name)
    }

    /// Whether an unattended run with these grants may call it. A call that is not allowed ends the run as waiting.
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

    /// The tools of an unattended run with these grants: all that need no grant, and the granted ones. Without
    /// `generate_asset`, so that `save_output` is the only way to deliver content.
    pub fn offered_in_run(grants: &[String]) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|tool| *tool != Self::GenerateAsset && tool.is_allowed_in_run(grants))
    }

    /// Its specification for models.
    #[must_use]
    pub fn spec(self) -> ToolSpec {
        ToolSpec {
            name: self.name().to_owned(),
            description: spec::description(self).to_owned(),
            input_schema: spec::schema(self),
        }
    }

    /// The specifications of the granted tools, which are part of an approval. A tool that no longer exists is left out; this
    /// ends the approval like any other change.
    #[must_use]
    pub fn granted(grants: &[String]) -> Vec<ToolSpecForHash> {
        let tools = grants.iter().filter_map(|name| Self::from_name(name));
        tools
            .map(|tool| ToolSpecForHash { name: tool.name().to_owned(), schema: spec::schema(tool) })
            .collect()
    }
}
