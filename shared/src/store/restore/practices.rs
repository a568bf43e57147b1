//! Practices and their check-ins.

use domain::ids::PracticeId;
use domain::practices::{CheckIn, Practice};
use domain::text::names;
use serde_json::Value;

use super::{KeptOrNot, Location, keep, read, valid};
use crate::store::keys;

pub(super) fn practice(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let mut practice: Practice = read(record)?;
    practice.name = names::canonical(&practice.name);
    valid(practice.check())?;
    keep(keys::practice(place.owner, practice.practice_id), &practice)
}

pub(super) fn check_in(place: &Location<'_>, practice: &PracticeId, record: &Value) -> KeptOrNot {
    let check_in: CheckIn = read(record)?;
    valid(check_in.check())?;
    keep(keys::check_in(place.owner, *practice, check_in.date), &check_in)
}
