//! What a page shows first of everything that an owner has: what waits for a person, a day, all runs, a search.
//!
//! No record exists for these answers. They are made from the actions of the owner and from what their records name, so an answer costs
//! a few queries and batches of reads, and not a query for each run. Every answer has bounds, and says whether it reached one.

pub mod day;
pub mod inbox;
pub mod runs;
pub mod search;
mod watched;

use std::collections::{BTreeMap, BTreeSet};

use domain::actions::{Action, ActionState, OccurrenceState};
use domain::agents::Agent;
use domain::ids::{AgentId, Owner, RunId};
use domain::runs::{Run, RunKind, RunState};

use crate::context::Cx;
use crate::error::Result;
use crate::store::runs::ListedRun;

/// How many of the newest actions an answer looks at.
const MAX_ACTIONS: usize = 2_000;

/// How many of the newest turns and rehearsals an answer looks at.
const MAX_LISTED: usize = 5_000;

/// How many turns that have not ended an answer reads.
const MAX_TURNS: usize = 200;

/// How many records a query reads at once.
const PAGE: usize = 500;

/// How many queries an answer sends at once.
const AT_ONCE: usize = 32;

/// The longest text of an item, in characters.
const MAX_TEXT: usize = 2_000;

/// Some of an owner's records, and whether these are all.
struct Found<T> {
    data: Vec<T>,
    complete: bool,
}

/// Reads pages until there is no further one, or until there are `max` records.
async fn all<T, F>(max: usize, read: impl Fn(Option<String>) -> F) -> Result<Found<T>>
where
    F: Future<Output = Result<crate::store::table::QueryPage<T>, crate::store::StoreError>>,
{
    let (mut data, mut after) = (Vec::new(), None::<String>);
    loop {
        let found = read(after.take()).await?;
        data.extend(found.items.into_iter().map(|(_, record)| record.value));
        after = found.last;
        if data.len() > max || data.len() == max && after.is_some() {
            data.truncate(max);
            return Ok(Found { data, complete: false });
        }
        if after.is_none() {
            return Ok(Found { data, complete: true });
        }
    }
}

/// The newest actions.
async fn actions(cx: &Cx, owner: &Owner) -> Result<Found<Action>> {
    all(MAX_ACTIONS, |after| async move { cx.store.actions(owner, after.as_deref(), PAGE).await }).await
}

/// Agents by their ids.
async fn agents_of(
    cx: &Cx,
    owner: &Owner,
    ids: impl IntoIterator<Item = AgentId>,
) -> Result<BTreeMap<AgentId, Agent>> {
    let ids: Vec<AgentId> = ids.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    let agents = cx.store.agents_of(owner, &ids).await?;
    Ok(agents.into_iter().map(|agent| (agent.agent_id, agent)).collect())
}

/// The turns and rehearsals that have not ended, newest first.
async fn open_turns(cx: &Cx, owner: &Owner) -> Result<Found<Run>> {
    let listed =
        all(MAX_LISTED, |after| async move { cx.store.listed_runs(owner, after.as_deref(), PAGE).await });
    let listed = listed.await?;
    let mut open: Vec<RunId> =
        listed.data.iter().filter(|run| may_be_open(run)).map(|run| run.run_id).collect();
    let complete = listed.complete && open.len() <= MAX_TURNS;
    open.truncate(MAX_TURNS);
    let mut runs = cx.store.runs(owner, &open).await?;
    runs.retain(|run| !run.state.has_ended());
    Ok(Found { data: runs, complete })
}

/// Whether a run may not have ended. Earlier versions did not write it: then the run itself says it.
fn may_be_open(run: &ListedRun) -> bool {
    run.ended != Some(true)
}

/// How many runs are under way. Those that wait for a person are not.
fn live(actions: &[Action], turns: &[Run]) -> usize {
    let works = |action: &&Action| action.live_run.is_some() && action.state != ActionState::NeedsApproval;
    let turns = turns.iter().filter(|run| run.state == RunState::Running && run.kind != RunKind::Action);
    actions.iter().filter(works).count() + turns.count()
}

/// The state as pages show it: a claimed run begins within the same second.
fn shown(state: OccurrenceState) -> OccurrenceState {
    match state {
        OccurrenceState::Claimed => OccurrenceState::Running,
        state => state,
    }
}

/// The beginning of a text. A text that was cut ends with an ellipsis.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// A sentence from a reason, which has no capital and no full stop.
fn sentence(text: &str) -> String {
    let text = cut(text.trim());
    let mut letters = text.chars();
    let Some(first) = letters.next() else { return text };
    let rest = letters.as_str();
    let end = if text.ends_with(['.', '?', '!', '…']) { "" } else { "." };
    format!("{}{rest}{end}", first.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        let long = "ä".repeat(MAX_TEXT + 1);
        assert_eq!(cut(&long).chars().count(), MAX_TEXT + 1);
        assert!(cut(&long).ends_with("ä…"));
        let fits = "ä".repeat(MAX_TEXT);
        assert_eq!(cut(&fits), fits);
    }

    #[test]
    fn a_reason_becomes_a_sentence() {
        for (reason, told) in [
            ("the executor was killed", "The executor was killed."),
            ("Which oil?", "Which oil?"),
            ("  ", ""),
            ("über Öl", "Über Öl."),
        ] {
            assert_eq!(sentence(reason), told);
        }
    }
}
