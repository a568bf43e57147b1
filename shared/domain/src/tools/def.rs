//! What a tool is: one definition for the models, for approvals, for MCP clients and for the rules.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::models::ToolSpec;

/// What a call changes. It decides who has to agree to a call, and what happens to a call whose process died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It only reads.
    Read,
    /// It delivers finished content.
    Deliver,
    /// It proposes an agent, work for later, or a change of such work. A person accepts or discards the proposal.
    Propose,
    /// It asks a person, and the run waits for the answer.
    Ask,
    /// It changes data of the platform. The change and the call's result are stored in one transaction.
    Write,
    /// It acts outside the platform, where nothing can be undone or be part of a transaction.
    Outside,
}

/// Where tools are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Surface {
    /// The conversation that sets an agent up.
    Setup,
    /// A conversation with an agent.
    Chat,
    /// The conversation about one action.
    AboutAction,
    /// A conversation with the theme agent.
    Theme,
    /// A part of such a conversation that another model does.
    Helper,
    /// An unattended run of an action.
    Run,
    /// The MCP server.
    Mcp,
}

/// The definition of a tool. Definitions are statics; two are equal if they are the same static.
pub struct ToolDef {
    /// The name that models, MCP clients and grants use. Unique on each surface.
    pub name: &'static str,
    /// The name that an MCP client shows to people.
    pub title: Option<&'static str>,
    /// What the model is told about the tool.
    pub description: &'static str,
    /// The JSON Schema of the arguments. It is part of the approval of an action that was granted the tool: a changed schema
    /// withdraws these approvals.
    pub input: fn() -> Value,
    /// The JSON Schema of the result, if the result is JSON with a promised shape.
    pub output: Option<fn() -> Value>,
    pub effect: Effect,
    /// The name of its grant, if several tools have one. Otherwise the grant has the name of the tool.
    pub granted_as: Option<&'static str>,
    /// Whether a second call with the same arguments changes nothing more.
    pub idempotent: bool,
    /// Whether it replaces something that exists.
    pub replaces: bool,
    pub surfaces: &'static [Surface],
    /// Surfaces that do not offer the tool, but accept a call of it.
    pub accepted_on: &'static [Surface],
}

impl ToolDef {
    /// A tool without a title and a result schema, which neither is idempotent nor replaces anything.
    #[must_use]
    pub const fn new(
        name: &'static str,
        description: &'static str,
        effect: Effect,
        surfaces: &'static [Surface],
        input: fn() -> Value,
    ) -> Self {
        Self {
            name,
            title: None,
            description,
            input,
            output: None,
            effect,
            granted_as: None,
            idempotent: false,
            replaces: false,
            surfaces,
            accepted_on: &[],
        }
    }

    #[must_use]
    pub fn is_offered_on(&self, surface: Surface) -> bool {
        self.surfaces.contains(&surface)
    }

    #[must_use]
    pub fn is_accepted_on(&self, surface: Surface) -> bool {
        self.is_offered_on(surface) || self.accepted_on.contains(&surface)
    }

    /// Whether an unattended run may call it only if the action's grants name it.
    #[must_use]
    pub const fn needs_grant(&self) -> bool {
        matches!(self.effect, Effect::Propose | Effect::Outside) || self.granted_as.is_some()
    }

    /// The grant that lets an unattended run call it.
    #[must_use]
    pub const fn grant(&self) -> &'static str {
        match self.granted_as {
            Some(grant) => grant,
            None => self.name,
        }
    }

    /// Whether an action's grants may name it.
    #[must_use]
    pub fn is_grantable(&self) -> bool {
        self.is_accepted_on(Surface::Run)
    }

    /// Whether models without tool calling ask for it with a signal in their text. See [`crate::chats::signals`].
    #[must_use]
    pub fn is_signal(&self) -> bool {
        matches!(self.name, "generate_asset" | "generate_actions" | "ready_to_create")
    }

    /// Its specification for models.
    #[must_use]
    pub fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            input_schema: (self.input)(),
        }
    }
}

/// The part of a tool that an approval binds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ApprovedTool)]
pub struct ToolSpecForHash {
    pub name: String,
    /// The JSON Schema of its input.
    #[schema(value_type = Object)]
    pub schema: Value,
}

impl PartialEq for ToolDef {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for ToolDef {}

impl fmt::Debug for ToolDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolDef({})", self.name)
    }
}
