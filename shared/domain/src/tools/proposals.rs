//! Tools about proposals: what waits for a person to accept or discard it.

use serde::Deserialize;
use serde_json::json;

use super::Effect::Read;
use super::Surface::Mcp;
use super::ToolDef;
use super::output::page;
use super::schema::{listing, named, object};
use crate::ids::{AgentId, ProposalId};

pub(super) const PROPOSAL: &[(&str, &str)] =
    &[("proposal_id", "string"), ("kind", "string"), ("title", "string"), ("expires_at", "string")];

pub static LIST_PROPOSALS: ToolDef = ToolDef {
    title: Some("List proposals"),
    output: Some(|| page(PROPOSAL)),
    ..ToolDef::new(
        "list_proposals",
        "Lists an agent's proposals that wait for the user, newest first, without contents.",
        Read,
        &[Mcp],
        || listing(json!({"agent_id": named()}), &["agent_id"]),
    )
};

/// The arguments of [`LIST_PROPOSALS`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListProposals {
    pub agent_id: AgentId,
    pub limit: Option<usize>,
    pub cursor: Option<String>,
}

pub static READ_PROPOSAL: ToolDef = ToolDef {
    title: Some("Read proposal"),
    ..ToolDef::new(
        "read_proposal",
        "Returns a proposal with its content. Only the user can accept or discard it.",
        Read,
        &[Mcp],
        || object(&json!({"proposal_id": named()}), &["proposal_id"]),
    )
};

/// The arguments of [`READ_PROPOSAL`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadProposal {
    pub proposal_id: ProposalId,
}
