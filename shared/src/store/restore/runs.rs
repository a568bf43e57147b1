//! Runs and what belongs to them.

use domain::ids::RunId;
use domain::runs::{Run, RunEvent};
use serde_json::Value;

use super::{KeptOrNot, Location, Named, is_number, naming, read};
use crate::blobs::BlobKey;
use crate::store::keys;
use crate::store::runs::steps::StepPart;
use crate::store::runs::{LIFETIME, ListedRun, RunOutput};

/// The highest number of a step or of a call. Keys have four digits for it.
const MANY_STEPS: u32 = 9_999;

/// The highest number of an event. Keys have ten digits for it.
const MANY_EVENTS: u64 = 9_999_999_999;

pub(super) fn listed(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let id: RunId = place.sk.parse().map_err(|_| "has no valid key".to_owned())?;
    let listed = ListedRun { run_id: id, ..read(record)? };
    place.expiring(keys::run_listed(place.owner, id), &listed, id.instant(), LIFETIME)
}

pub(super) fn run(place: &Location<'_>, id: &RunId, record: &Value) -> KeptOrNot {
    let run: Run = read(record)?;
    place.expiring(keys::run(place.owner, run.run_id), &run, id.instant(), LIFETIME)
}

pub(super) fn event(place: &Location<'_>, id: &RunId, record: &Value) -> KeptOrNot {
    let event: RunEvent = read(record)?;
    if !(1..=MANY_EVENTS).contains(&event.id) {
        return Err(format!("has an invalid `id`: must be 1 to {MANY_EVENTS}, is {}", event.id));
    }
    place.expiring(keys::run_event(place.owner, *id, event.id), &event, id.instant(), LIFETIME)
}

pub(super) fn step(place: &Location<'_>, id: &RunId, record: &Value) -> KeptOrNot {
    let (owner, part): (_, StepPart) = (place.owner, read(record)?);
    let is_numbered = |number: u32| number <= MANY_STEPS;
    if part.n == 0 || !is_numbered(part.n) || !part.call.is_none_or(is_numbered) {
        return Err(format!("has an invalid `n` or `call`: must be at most {MANY_STEPS}"));
    }
    let kept = place.expiring(keys::run_step(owner, *id, part.n, part.call), &part, id.instant(), LIFETIME);
    let object = part.overflow.then(|| BlobKey::step(owner, *id, part.n, part.call, part.fence));
    naming(kept, object.into_iter().map(Named::from).collect())
}

pub(super) fn output(place: &Location<'_>, _: &RunId, record: &Value) -> KeptOrNot {
    if is_number(place.sk, "OUT#") { place.plain(&read::<RunOutput>(record)?) } else { Ok(None) }
}
