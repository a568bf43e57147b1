//! What the programs share that measure due actions: it approves actions, reads what has become of them, and finds percentiles.

use std::collections::BTreeMap;

use domain::actions::Occurrence;
use domain::ids::{ActionId, Owner};
use futures::StreamExt;
use jiff::Timestamp;
use serde_json::json;
use shared::Cx;
use shared::edge::extract::Actor;
use shared::flows::{actions, agents};
use shared::store::Once;
use shared::store::table::Order;

/// How many actions are created, or read, at once.
const AT_ONCE: usize = 32;

pub fn owner(name: &str, n: usize) -> Owner {
    Owner::new(format!("{name}-{n}")).expect("it is a name")
}

/// Approves one action for each of these owners and times. Each owner has one agent.
pub async fn approve(cx: &Cx, due: impl Iterator<Item = (Owner, Timestamp)>) -> Vec<(Owner, ActionId)> {
    let due: Vec<(Owner, Timestamp)> = due.collect();
    let mut agents_of = BTreeMap::new();
    for (owner, _) in &due {
        if agents_of.contains_key(owner) {
            continue;
        }
        let agent = serde_json::from_value(json!({"name": "Watch", "goal": "Watch"})).expect("an agent");
        let made = agents::create(cx, owner, &Once::none(), Actor::Person, agent).await.expect("it is made");
        agents_of.insert(owner.clone(), made.agent.agent_id);
    }
    let one = async |(owner, at): (Owner, Timestamp)| {
        let input = serde_json::from_value(json!({
            "title": "Report", "task_config": {"instructions": "Do it", "expected_output": "A page"},
            "schedule": {"at": at},
        }));
        let (once, input) = (Once::none(), input.expect("an action"));
        let defined = actions::define(cx, &owner, &once, Actor::Person, agents_of[&owner], input).await;
        let defined = defined.expect("it is defined");
        let id = defined.action.id;
        let approved = actions::approve(cx, &owner, &once, Actor::Person, id, &defined.approval_hash).await;
        approved.expect("it is approved");
        (owner, id)
    };
    futures::stream::iter(due.into_iter().map(one)).buffer_unordered(AT_ONCE).collect().await
}

/// The occurrences of these actions.
pub async fn occurrences(cx: &Cx, due: &[(Owner, ActionId)]) -> Vec<Occurrence> {
    let one = async |(owner, id): &(Owner, ActionId)| {
        let found = cx.store.occurrences(owner, *id, None, 10, Order::Oldest).await;
        let found = found.expect("the table answers").items.into_iter();
        found.map(|(_, occurrence)| occurrence.value).collect::<Vec<_>>()
    };
    futures::stream::iter(due.iter().map(one)).buffered(AT_ONCE).concat().await
}

/// How long after its due time each run began, in seconds.
pub fn lags(occurrences: &[Occurrence]) -> Vec<f64> {
    let lag = |occurrence: &Occurrence| {
        Some(occurrence.started_at?.duration_since(occurrence.due_at).as_secs_f64())
    };
    occurrences.iter().filter_map(lag).collect()
}

/// The value below which this share of the values lies. Not a number if there are no values.
pub fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let index = (sorted.len() as f64 * share) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}
