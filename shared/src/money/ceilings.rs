//! The ceilings that hold for an owner, and how far each may be raised.

use domain::accounts::profile::Account;
use domain::ceilings::{self, Ceiling, CeilingOf, MAX_MICROS};
use domain::ids::Owner;
use domain::schedule::zone_or_utc;
use domain::validate::FieldErrors;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::config::BudgetConfig;
use crate::context::Cx;
use crate::error::{Error, Result};

/// The ceilings that hold for a call of a model.
#[derive(Clone, Debug)]
pub struct Ceilings {
    /// The ceiling of the run, in micro-dollars.
    pub run_micros: i64,
    /// Those of days and months, before anybody has raised them.
    pub of_times: Vec<Ceiling>,
    /// The zone of the account.
    pub zone: TimeZone,
}

/// The ceilings of an agent's and an action's month, if they have any.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonthCeilings {
    pub agent: Option<i64>,
    pub action: Option<i64>,
}

/// The most to which a person may raise a ceiling.
#[must_use]
pub fn most(cx: &Cx, of: CeilingOf) -> i64 {
    match of {
        CeilingOf::Run => MAX_MICROS,
        CeilingOf::ActionMonth | CeilingOf::AgentMonth => MAX_MICROS.min(cx.config.budget.month_max()),
        CeilingOf::Day => cx.config.budget.day_max_micros,
        CeilingOf::Month => cx.config.budget.month_max(),
    }
}

/// Refuses a ceiling of a month that is higher than the deployment allows.
///
/// # Errors
/// If it is too high.
pub fn check_month(cx: &Cx, of: CeilingOf, micros: Option<i64>) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    ceilings::check(&mut errors, "budget.per_month_micros", micros, most(cx, of));
    errors.into_result(())
}

/// A ceiling after people have raised it by `raised_micros`. It may have been set to another amount before or after, and the
/// deployment's maximum may have changed, so the sum may be more than the maximum. Then the maximum holds.
#[must_use]
pub fn raised(cx: &Cx, Ceiling { of, micros }: Ceiling, raised_micros: i64) -> i64 {
    micros.saturating_add(raised_micros).min(most(cx, of).max(micros))
}

/// The ceilings of an owner's day and month, and the zone of the account.
///
/// # Errors
/// If the table does not answer; 409 `account_stopped` if the account is stopped, so that no call is made.
pub async fn of_owner(cx: &Cx, owner: &Owner) -> Result<(Vec<Ceiling>, TimeZone)> {
    let account = cx.store.account(owner).await?.value;
    if let Some(stop) = account.stop {
        return Err(Error::account_stopped(stop.at));
    }
    let (day, month) = of_account(cx, &account);
    let mut ceilings = vec![Ceiling { of: CeilingOf::Day, micros: day }];
    ceilings.extend(month.map(|micros| Ceiling { of: CeilingOf::Month, micros }));
    Ok((ceilings, zone_or_utc(&account.timezone)))
}

/// The ceilings of an account's day and month, in micro-dollars. The deployment's highest ceiling of a month holds for an account
/// without a ceiling of its own, too, if the deployment sets it.
#[must_use]
pub fn of_account(cx: &Cx, account: &Account) -> (i64, Option<i64>) {
    let deployment = cx.config.budget.day_micros;
    let day = account.budget.per_day_micros.map_or(deployment, |own| own.min(deployment));
    let BudgetConfig { month_max_micros, .. } = cx.config.budget;
    let month = account.budget.per_month_micros.map(|own| own.min(cx.config.budget.month_max()));
    (day, month.or(month_max_micros))
}

/// When a ceiling holds no longer, so that nobody needs to raise it.
#[must_use]
pub fn ends(of: CeilingOf, now: Timestamp) -> Option<Timestamp> {
    let today = TimeZone::UTC.to_datetime(now).date();
    let next = match of {
        CeilingOf::Run => return None,
        CeilingOf::Day => today.tomorrow().ok()?,
        CeilingOf::ActionMonth | CeilingOf::AgentMonth | CeilingOf::Month => {
            today.last_of_month().tomorrow().ok()?
        }
    };
    Some(next.to_zoned_datetime(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_ends_with_its_time() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        for (of, now, expected) in [
            (CeilingOf::Run, "2026-11-21T12:00:00Z", None),
            (CeilingOf::Day, "2026-11-21T00:00:00Z", Some("2026-11-22T00:00:00Z")),
            (CeilingOf::Day, "2026-12-31T23:59:59Z", Some("2027-01-01T00:00:00Z")),
            (CeilingOf::Month, "2026-11-21T12:00:00Z", Some("2026-12-01T00:00:00Z")),
            (CeilingOf::AgentMonth, "2026-12-01T00:00:00Z", Some("2027-01-01T00:00:00Z")),
            (CeilingOf::ActionMonth, "2026-02-28T23:00:00Z", Some("2026-03-01T00:00:00Z")),
        ] {
            assert_eq!(ends(of, at(now)), expected.map(at), "{of:?} {now}");
        }
    }
}
