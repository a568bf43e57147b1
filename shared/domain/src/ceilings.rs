//! Ceilings of costs.
//!
//! Before a model is called, the highest cost of the call is reserved under every ceiling that applies. If a ceiling does not
//! pay for the call, a person is asked whether it may be raised. A ceiling that was raised stays raised for its own time only:
//! for the run, the day or the month.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::validate::FieldErrors;

/// The highest ceiling of a run, of a month of an action and of a month of an agent: $1,000.
pub const MAX_MICROS: i64 = 1_000_000_000;

/// The highest ceiling of an owner: a million dollars.
pub const MAX_OWNER_MICROS: i64 = 1_000_000_000_000;

/// What a ceiling limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CeilingOf {
    /// The costs of the run.
    Run,
    /// The costs of the action's runs in a month (UTC).
    ActionMonth,
    /// The costs of the agent's turns and runs in a month (UTC).
    AgentMonth,
    /// All costs of the owner on a day (UTC).
    Day,
    /// All costs of the owner in a month (UTC).
    Month,
}

impl fmt::Display for CeilingOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Run => "the run's ceiling",
            Self::ActionMonth => "the action's ceiling for this month",
            Self::AgentMonth => "the agent's ceiling for this month",
            Self::Day => "today's ceiling",
            Self::Month => "this month's ceiling",
        })
    }
}

/// A ceiling in micro-dollars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceiling {
    pub of: CeilingOf,
    pub micros: i64,
}

/// A ceiling that does not pay for the next call of a model. All amounts are micro-dollars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CeilingReached {
    /// What the ceiling limits.
    pub of: CeilingOf,
    /// The ceiling.
    pub limit_micros: i64,
    /// The part of it by which people have raised it before.
    pub raised_micros: i64,
    /// What is spent, and reserved for calls that are in progress.
    pub committed_micros: i64,
    /// What the next call may cost at least.
    pub needs_micros: i64,
    /// By how much an approval raises the ceiling. A person may choose another amount, if it pays for the next call. After the
    /// answer: the amount that was approved.
    pub raise_by_micros: i64,
    /// The most by which a person may raise the ceiling.
    pub max_raise_micros: i64,
}

impl CeilingReached {
    /// `max_micros` is the most to which a person may raise the ceiling. By default, an approval doubles the ceiling.
    #[must_use]
    pub fn new(
        Ceiling { of, micros }: Ceiling,
        raised_micros: i64,
        committed_micros: i64,
        needs_micros: i64,
        max_micros: i64,
    ) -> Self {
        let max_raise_micros = (max_micros - micros).max(0);
        let missing = committed_micros.saturating_add(needs_micros).saturating_sub(micros);
        Self {
            of,
            limit_micros: micros,
            raised_micros,
            committed_micros,
            needs_micros,
            raise_by_micros: micros.max(missing).min(max_raise_micros),
            max_raise_micros,
        }
    }

    /// The least by which the ceiling must be raised, so that it pays for the next call.
    #[must_use]
    pub fn min_raise_micros(&self) -> i64 {
        self.committed_micros.saturating_add(self.needs_micros).saturating_sub(self.limit_micros).max(1)
    }

    /// Whether the next call can be paid for after a person has raised the ceiling.
    #[must_use]
    pub fn can_be_raised(&self) -> bool {
        self.min_raise_micros() <= self.max_raise_micros
    }

    /// `max_micros` is the most to which a person may raise the ceiling now. It may be less than when the person was asked.
    pub fn limit_raise(&mut self, max_micros: i64) {
        self.max_raise_micros = self.max_raise_micros.min((max_micros - self.limit_micros).max(0));
    }
}

impl fmt::Display for CeilingReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of, limit_micros, committed_micros, needs_micros, .. } = self;
        write!(
            f,
            "{of} of {limit_micros} micro-dollars does not pay for the next call, which may cost {needs_micros} \
             ({committed_micros} are spent or reserved)"
        )
    }
}

/// An owner's ceilings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccountBudget {
    /// The most that everything may cost on a day (UTC), in micro-dollars. The deployment's ceiling of a day applies too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000_000_000_000_i64, example = 5_000_000)]
    pub per_day_micros: Option<i64>,
    /// The most that everything may cost in a month (UTC), in micro-dollars, up to the deployment's highest ceiling of a month
    /// (`ceilings.month_max_micros` in `GET /limits`). Default: no ceiling of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000_000_000_000_i64, example = 50_000_000)]
    pub per_month_micros: Option<i64>,
}

impl AccountBudget {
    /// Adds an error for each field that is invalid.
    pub fn validate(&self, errors: &mut FieldErrors) {
        check(errors, "budget.per_day_micros", self.per_day_micros, MAX_OWNER_MICROS);
        check(errors, "budget.per_month_micros", self.per_month_micros, MAX_OWNER_MICROS);
    }
}

/// Adds an error if a ceiling is not a number of 1 to `max`.
pub fn check(errors: &mut FieldErrors, field: &str, micros: Option<i64>, max: i64) {
    if let Some(micros) = micros.filter(|micros| !(1..=max).contains(micros)) {
        errors.add(field, format!("must be 1 to {max}, is {micros}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(limit: i64, committed: i64, needs: i64, max: i64) -> CeilingReached {
        CeilingReached::new(Ceiling { of: CeilingOf::Day, micros: limit }, 0, committed, needs, max)
    }

    #[test]
    fn an_approval_pays_for_the_next_call() {
        for (limit, committed, needs, max, by, can) in [
            // It doubles the ceiling.
            (100, 95, 10, 1_000, 100, true),
            // More, if the next call needs more.
            (100, 95, 300, 1_000, 295, true),
            // The ceiling was lowered since.
            (100, 900, 10, 1_000, 810, true),
            // Never beyond the highest ceiling.
            (100, 95, 10, 150, 50, true),
            (100, 95, 56, 150, 50, false),
            (100, 95, 55, 150, 50, true),
            (100, 95, 10, 100, 0, false),
            (100, 95, 10, 50, 0, false),
        ] {
            let reached = reached(limit, committed, needs, max);
            assert_eq!((reached.raise_by_micros, reached.can_be_raised()), (by, can), "{reached:?}");
            assert_eq!(reached.min_raise_micros(), committed + needs - limit);
            if can {
                assert!(committed + needs <= limit + by, "{reached:?}");
            }
        }
    }

    #[test]
    fn a_lower_maximum_holds_for_cards_that_wait() {
        for (max, most) in [(2_000, 900), (1_000, 900), (150, 50), (100, 0), (50, 0)] {
            let mut card = reached(100, 95, 10, 1_000);
            card.limit_raise(max);
            assert_eq!(card.max_raise_micros, most, "{max}");
        }
    }

    #[test]
    fn a_sentence_names_the_amounts() {
        assert_eq!(
            reached(100, 95, 10, 1_000).to_string(),
            "today's ceiling of 100 micro-dollars does not pay for the next call, which may cost 10 (95 are spent or reserved)"
        );
    }
}
