//! The requests of a month that a plan includes, and how a run is counted.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How much more a request costs after the last one that the plan includes.
const OVERAGE_FACTOR: i64 = 2;

/// How a run counts for the plan of its owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Charge {
    /// The plan includes it, or does not count it.
    #[default]
    Included,
    /// It came after the last request that the plan includes. Its cost counts twice.
    Overage,
    /// It was refused, and calls no model.
    Refused,
}

impl Charge {
    #[must_use]
    pub fn is_included(&self) -> bool {
        *self == Self::Included
    }

    /// What a cost counts for the day and the month.
    #[must_use]
    pub const fn counted(self, micros: i64) -> i64 {
        match self {
            Self::Overage => micros.saturating_mul(OVERAGE_FACTOR),
            Self::Included | Self::Refused => micros,
        }
    }

    /// The highest cost that counts as at most `micros`.
    #[must_use]
    pub const fn affords(self, micros: i64) -> i64 {
        match self {
            Self::Overage => micros / OVERAGE_FACTOR,
            Self::Included | Self::Refused => micros,
        }
    }
}

/// A month in UTC, like the day of the ceilings. An owner's time zone does not matter: otherwise a change of the time zone
/// near the end of a month would lead into another month.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month(Date);

impl Month {
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self::of(TimeZone::UTC.to_datetime(now).date())
    }

    /// The month of a day.
    #[must_use]
    pub fn of(day: Date) -> Self {
        Self(day.first_of_month())
    }

    /// Whether a day is in it.
    #[must_use]
    pub fn has(self, day: Date) -> bool {
        day.first_of_month() == self.0
    }

    /// The moment at which it begins.
    #[must_use]
    pub fn begin(self) -> Timestamp {
        TimeZone::UTC.to_timestamp(self.0.at(0, 0, 0, 0)).unwrap_or(Timestamp::MIN)
    }

    /// The moment at which the next month begins.
    #[must_use]
    pub fn end(self) -> Timestamp {
        let next = self.0.checked_add(1.month()).ok();
        next.and_then(|day| TimeZone::UTC.to_timestamp(day.at(0, 0, 0, 0)).ok()).unwrap_or(Timestamp::MAX)
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.strftime("%Y-%m"))
    }
}

/// Reads a month such as `2026-11`.
impl FromStr for Month {
    type Err = jiff::Error;
    fn from_str(text: &str) -> Result<Self, jiff::Error> {
        format!("{text}-01").parse().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_ends_at_midnight_utc() {
        for (at, name, end) in [
            ("2026-11-01T00:00:00Z", "2026-11", "2026-12-01T00:00:00Z"),
            ("2026-11-30T23:59:59.999Z", "2026-11", "2026-12-01T00:00:00Z"),
            ("2026-12-31T23:59:59Z", "2026-12", "2027-01-01T00:00:00Z"),
            ("2028-02-29T12:00:00Z", "2028-02", "2028-03-01T00:00:00Z"),
            ("2026-12-01T00:30:00+01:00", "2026-11", "2026-12-01T00:00:00Z"),
        ] {
            let month = Month::at(at.parse().unwrap());
            assert_eq!((month.to_string().as_str(), month.end().to_string().as_str()), (name, end), "{at}");
            assert_eq!(name.parse::<Month>().unwrap(), month);
        }
        let november = Month::at("2026-11-21T12:00:00Z".parse().unwrap());
        assert!(
            november.has(jiff::civil::date(2026, 11, 30)) && !november.has(jiff::civil::date(2025, 11, 30))
        );
    }

    #[test]
    fn only_overage_counts_twice() {
        assert_eq!([Charge::Included, Charge::Overage, Charge::Refused].map(|c| c.counted(7)), [7, 14, 7]);
        assert_eq!(Charge::Overage.counted(i64::MAX), i64::MAX);
    }
}
