//! Agents and what belongs to them.

use domain::agents::{Agent, AgentMetrics};
use domain::history::Change;
use domain::ids::{ActionId, AgentId, AssetId, ChatId};
use domain::text::names;
use serde_json::Value;

use super::{KeptOrNot, Location, keep, noted, read, valid};
use crate::store::agents::Mark;
use crate::store::agents::history::{CHANGE_LIFETIME, Ledger};
use crate::store::keys;

pub(super) fn agent(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let mut agent: Agent = read(record)?;
    agent.name = names::canonical(&agent.name);
    valid(agent.check())?;
    let id = agent.agent_id;
    noted(keep(keys::agent(place.owner, id), &agent), Ledger::Agent(id), Vec::new())
}

pub(super) fn change(place: &Location<'_>, agent: &AgentId, record: &Value) -> KeptOrNot {
    let change: Change = read(record)?;
    let key = keys::agent_change(place.owner, *agent, change.version);
    place.expiring(key, &change, change.at, CHANGE_LIFETIME)
}

pub(super) fn metrics(place: &Location<'_>, agent: &AgentId, record: &Value) -> KeptOrNot {
    keep(keys::agent_metrics(place.owner, *agent), &read::<AgentMetrics>(record)?)
}

/// A mark that something belongs to the agent. Proposals stay behind.
pub(super) fn child(place: &Location<'_>, agent: &AgentId, _: &Value) -> KeptOrNot {
    let sk = place.sk;
    let is_kept =
        sk.parse::<ActionId>().is_ok() || sk.parse::<AssetId>().is_ok() || sk.parse::<ChatId>().is_ok();
    if is_kept { keep(keys::agent_child(place.owner, *agent, sk), &Mark {}) } else { Ok(None) }
}
