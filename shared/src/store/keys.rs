//! Every key of the table in one place.
//!
//! | what | partition key | sort key |
//! |---|---|---|
//! | agent | `U#owner#AGENT` | `agt_…` |
//! | what belongs to an agent | `U#owner#AGENT#agt_…` | the id of the asset, action, chat or proposal |
//! | action | `U#owner#ACTION` | `act_…` |
//! | occurrence | `U#owner#ACTION#act_…` | `RUN#run_…` (an occurrence's id sorts by its due time) |
//! | message about an action | `U#owner#ACTION#act_…` | `MSG#msg_…` |
//! | asset | `U#owner#ASSET` | `ast_…` |
//! | version of an asset | `U#owner#ASSET#ast_…` | `V#0000000001` |
//! | chat | `U#owner#CHAT` | `cht_…` |
//! | message of a chat | `U#owner#CHAT#cht_…` | `MSG#msg_…` |
//! | proposal | `U#owner#PROPOSAL` | `prp_…` |
//! | run | `U#owner#RUN#run_…` | `META` |
//! | event of a run | `U#owner#RUN#run_…` | `EVENT#0000000001` |
//! | step of a run | `U#owner#RUN#run_…` | `STEP#0001` |
//! | output of a run | `U#owner#RUN#run_…` | `OUT#0001` |
//! | API key | `U#owner#KEY` | `key_…` |
//! | project | `U#owner#PROJECT` | `prj_…` |
//! | what belongs to a project | `U#owner#PROJECT#prj_…` | each area says |
//! | idempotency record | `U#owner#IDEMPOTENCY` | SHA-256 of the key |
//! | a day's spending | `U#owner#SPEND` | `2026-11-21` |
//!
//! The index `due` holds the actions that have a time to be looked at: `shard` (of 64) and
//! `due_at` (an instant of fixed width, so that text sorts as time).

use domain::ids::{
    ActionId, AgentId, ApiKeyId, AssetId, ChatId, MessageId, Owner, ProjectId, ProposalId, RunId,
};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

/// Name of the index over all owners' due actions.
pub const DUE_INDEX: &str = "due";

/// Over how many partitions the index is spread.
pub const SHARDS: u32 = 64;

/// The key of one item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub pk: String,
    pub sk: String,
}

/// A partition, and the part of it whose sort keys begin with `prefix`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    pub pk: String,
    pub prefix: &'static str,
}

fn part(owner: &Owner, kind: &str) -> String {
    format!("U#{owner}#{kind}")
}

fn key(pk: String, sk: impl ToString) -> Key {
    Key { pk, sk: sk.to_string() }
}

#[must_use]
pub fn agent(owner: &Owner, id: AgentId) -> Key {
    key(part(owner, "AGENT"), id)
}

#[must_use]
pub fn agents(owner: &Owner) -> Range {
    Range { pk: part(owner, "AGENT"), prefix: AgentId::PREFIX }
}

/// The mark that something belongs to an agent; `prefix` is the kind's id prefix, or empty for all.
#[must_use]
pub fn agent_children(owner: &Owner, agent: AgentId, prefix: &'static str) -> Range {
    Range { pk: format!("U#{owner}#AGENT#{agent}"), prefix }
}

#[must_use]
pub fn agent_child(owner: &Owner, agent: AgentId, child: impl ToString) -> Key {
    key(format!("U#{owner}#AGENT#{agent}"), child)
}

#[must_use]
pub fn action(owner: &Owner, id: ActionId) -> Key {
    key(part(owner, "ACTION"), id)
}

#[must_use]
pub fn actions(owner: &Owner) -> Range {
    Range { pk: part(owner, "ACTION"), prefix: ActionId::PREFIX }
}

#[must_use]
pub fn occurrence(owner: &Owner, action: ActionId, run: RunId) -> Key {
    key(format!("U#{owner}#ACTION#{action}"), format!("RUN#{run}"))
}

#[must_use]
pub fn occurrences(owner: &Owner, action: ActionId) -> Range {
    Range { pk: format!("U#{owner}#ACTION#{action}"), prefix: "RUN#" }
}

#[must_use]
pub fn action_message(owner: &Owner, action: ActionId, message: MessageId) -> Key {
    key(format!("U#{owner}#ACTION#{action}"), format!("MSG#{message}"))
}

#[must_use]
pub fn action_messages(owner: &Owner, action: ActionId) -> Range {
    Range { pk: format!("U#{owner}#ACTION#{action}"), prefix: "MSG#" }
}

/// Everything that belongs to an action.
#[must_use]
pub fn action_children(owner: &Owner, action: ActionId) -> Range {
    Range { pk: format!("U#{owner}#ACTION#{action}"), prefix: "" }
}

#[must_use]
pub fn asset(owner: &Owner, id: AssetId) -> Key {
    key(part(owner, "ASSET"), id)
}

#[must_use]
pub fn assets(owner: &Owner) -> Range {
    Range { pk: part(owner, "ASSET"), prefix: AssetId::PREFIX }
}

#[must_use]
pub fn asset_version(owner: &Owner, id: AssetId, version: u64) -> Key {
    key(format!("U#{owner}#ASSET#{id}"), format!("V#{version:010}"))
}

#[must_use]
pub fn asset_versions(owner: &Owner, id: AssetId) -> Range {
    Range { pk: format!("U#{owner}#ASSET#{id}"), prefix: "V#" }
}

#[must_use]
pub fn chat(owner: &Owner, id: ChatId) -> Key {
    key(part(owner, "CHAT"), id)
}

#[must_use]
pub fn chat_message(owner: &Owner, chat: ChatId, message: MessageId) -> Key {
    key(format!("U#{owner}#CHAT#{chat}"), format!("MSG#{message}"))
}

#[must_use]
pub fn chat_messages(owner: &Owner, chat: ChatId) -> Range {
    Range { pk: format!("U#{owner}#CHAT#{chat}"), prefix: "MSG#" }
}

#[must_use]
pub fn proposal(owner: &Owner, id: ProposalId) -> Key {
    key(part(owner, "PROPOSAL"), id)
}

#[must_use]
pub fn run(owner: &Owner, id: RunId) -> Key {
    key(format!("U#{owner}#RUN#{id}"), "META")
}

#[must_use]
pub fn run_event(owner: &Owner, id: RunId, event: u64) -> Key {
    key(format!("U#{owner}#RUN#{id}"), format!("EVENT#{event:010}"))
}

#[must_use]
pub fn run_events(owner: &Owner, id: RunId) -> Range {
    Range { pk: format!("U#{owner}#RUN#{id}"), prefix: "EVENT#" }
}

#[must_use]
pub fn run_step(owner: &Owner, id: RunId, step: u32) -> Key {
    key(format!("U#{owner}#RUN#{id}"), format!("STEP#{step:04}"))
}

#[must_use]
pub fn run_steps(owner: &Owner, id: RunId) -> Range {
    Range { pk: format!("U#{owner}#RUN#{id}"), prefix: "STEP#" }
}

#[must_use]
pub fn run_output(owner: &Owner, id: RunId, output: u32) -> Key {
    key(format!("U#{owner}#RUN#{id}"), format!("OUT#{output:04}"))
}

#[must_use]
pub fn run_outputs(owner: &Owner, id: RunId) -> Range {
    Range { pk: format!("U#{owner}#RUN#{id}"), prefix: "OUT#" }
}

/// Everything that belongs to a run.
#[must_use]
pub fn run_children(owner: &Owner, id: RunId) -> Range {
    Range { pk: format!("U#{owner}#RUN#{id}"), prefix: "" }
}

#[must_use]
pub fn api_key(owner: &Owner, id: ApiKeyId) -> Key {
    key(part(owner, "KEY"), id)
}

#[must_use]
pub fn api_keys(owner: &Owner) -> Range {
    Range { pk: part(owner, "KEY"), prefix: ApiKeyId::PREFIX }
}

#[must_use]
pub fn project(owner: &Owner, id: ProjectId) -> Key {
    key(part(owner, "PROJECT"), id)
}

#[must_use]
pub fn projects(owner: &Owner) -> Range {
    Range { pk: part(owner, "PROJECT"), prefix: ProjectId::PREFIX }
}

/// What lies in a project's partition and is deleted with it; `prefix` is a kind's, or empty for all.
#[must_use]
pub fn project_children(owner: &Owner, project: ProjectId, prefix: &'static str) -> Range {
    Range { pk: format!("U#{owner}#PROJECT#{project}"), prefix }
}

#[must_use]
pub fn project_child(owner: &Owner, project: ProjectId, child: impl ToString) -> Key {
    key(format!("U#{owner}#PROJECT#{project}"), child)
}

/// A client's key may hold anything; its hash is what is stored.
#[must_use]
pub fn idempotency(owner: &Owner, client_key: &str) -> Key {
    let hash = Sha256::digest(client_key.as_bytes());
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    key(part(owner, "IDEMPOTENCY"), hex)
}

#[must_use]
pub fn spend(owner: &Owner, day: jiff::civil::Date) -> Key {
    key(part(owner, "SPEND"), day)
}

/// The partition of the `due` index that an action is in.
#[must_use]
pub fn shard(action: ActionId) -> String {
    // The last byte of a UUIDv7 is random: it spreads as well as a hash of the whole would.
    shard_name(u32::from(action.uuid().as_bytes()[15]) % SHARDS)
}

#[must_use]
pub fn shard_name(shard: u32) -> String {
    format!("{shard:02}")
}

/// Owner and action of a key that the `due` index gave.
#[must_use]
pub fn parse_action(key: &Key) -> Option<(Owner, ActionId)> {
    let owner = key.pk.strip_prefix("U#")?.strip_suffix("#ACTION")?;
    Some((Owner::new(owner).ok()?, key.sk.parse().ok()?))
}

/// An instant as text of fixed width: it sorts as time.
#[must_use]
pub fn sortable(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_sort_as_text() {
        let texts: Vec<String> = [0, 1, 999, 1_000, 1_795_251_600_123, 1_795_251_600_124]
            .map(|millis| sortable(Timestamp::from_millisecond(millis).unwrap()))
            .to_vec();
        assert!(texts.is_sorted());
        assert_eq!(texts[0], "1970-01-01T00:00:00.000Z");
        assert_eq!(texts[4], "2026-11-21T09:00:00.123Z");
    }

    #[test]
    fn a_due_entry_names_its_action() {
        let owner = Owner::new("auth0|me").unwrap();
        let id = ActionId::from_uuid(uuid::Uuid::from_u128(7));
        assert_eq!(parse_action(&action(&owner, id)), Some((owner, id)));
        assert_eq!(parse_action(&Key { pk: "U#x#AGENT".into(), sk: id.to_string() }), None);
    }
}
