//! What an owner has once, and what models have used.

use domain::accounts::plans::Plan;
use domain::accounts::profile::Account;
use domain::accounts::quota::Month;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::{KeptOrNot, Location, keep, read, valid};
use crate::store::accounts::models::ModelSettings;
use crate::store::accounts::usage::{LIFETIME, Used};
use crate::store::keys;
use crate::store::notices::StoredPreferences;

pub(super) fn account(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let mut account: Account = read(record)?;
    valid(account.check())?;
    account.alerts.sort_unstable();
    account.alerts.dedup();
    // Who pays is a matter of the other deployment.
    let (plan, billing_mode, overage) = (None::<Plan>, Default::default(), Default::default());
    // A person stops and starts each account by itself.
    keep(keys::account(place.owner), &Account { plan, billing_mode, overage, stop: None, ..account })
}

pub(super) fn model_settings(place: &Location<'_>, record: &Value) -> KeptOrNot {
    keep(keys::model_settings(place.owner), &read::<ModelSettings>(record)?)
}

pub(super) fn preferences(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let stored: StoredPreferences = read(record)?;
    valid(stored.preferences.validate())?;
    keep(keys::preferences(place.owner), &stored)
}

pub(super) fn used(place: &Location<'_>, month: &Month, record: &Value) -> KeptOrNot {
    let used: Used = read(record)?;
    let (date, ..) = keys::usage_parts(place.sk).ok_or("has no valid key")?;
    if !month.has(date) {
        return Err("does not belong to its month".to_owned());
    }
    let at = date.to_zoned_datetime(TimeZone::UTC).map_err(|error| error.to_string())?.timestamp();
    place.expiring(place.key(), &used, at, LIFETIME)
}
