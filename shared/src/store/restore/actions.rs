//! Actions and their occurrences.

use domain::actions::{Action, Notebook, Occurrence};
use domain::history::{Change, Effect};
use domain::ids::ActionId;
use domain::watch::state::WatchState;
use serde_json::Value;

use super::{KeptOrNot, Location, keep, noted, read, valid};
use crate::store::actions::OCCURRENCE_LIFETIME;
use crate::store::actions::notebooks::LastOutputs;
use crate::store::agents::history::{CHANGE_LIFETIME, Ledger};
use crate::store::keys;

pub(super) fn action(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let action: Action = read(record)?;
    valid(action.check())?;
    let unapproved = action.clone().unapproved();
    let effects = Effect::of_action(&action, &unapproved);
    noted(keep(keys::action(place.owner, action.id), &unapproved), Ledger::Action(action.id), effects)
}

pub(super) fn change(place: &Location<'_>, action: &ActionId, record: &Value) -> KeptOrNot {
    let change: Change = read(record)?;
    let key = keys::action_change(place.owner, *action, change.version);
    place.expiring(key, &change, change.at, CHANGE_LIFETIME)
}

pub(super) fn last_outputs(place: &Location<'_>, action: &ActionId, record: &Value) -> KeptOrNot {
    keep(keys::last_outputs(place.owner, *action), &read::<LastOutputs>(record)?)
}

pub(super) fn notebook(place: &Location<'_>, action: &ActionId, record: &Value) -> KeptOrNot {
    let notebook: Notebook = read(record)?;
    valid(notebook.check())?;
    keep(keys::notebook_version(place.owner, *action, notebook.version), &notebook)
}

pub(super) fn watch_state(place: &Location<'_>, action: &ActionId, record: &Value) -> KeptOrNot {
    let state: WatchState = read(record)?;
    valid(state.check())?;
    keep(keys::watch_state(place.owner, *action), &state)
}

pub(super) fn occurrence(place: &Location<'_>, _: &ActionId, record: &Value) -> KeptOrNot {
    let occurrence: Occurrence = read(record)?;
    if !occurrence.state.is_final() {
        return Ok(None);
    }
    if let Some(report) = &occurrence.report {
        valid(report.check())?;
    }
    let key = keys::occurrence(place.owner, occurrence.action_id, occurrence.run_id);
    place.expiring(key, &occurrence, occurrence.due_at, OCCURRENCE_LIFETIME)
}
