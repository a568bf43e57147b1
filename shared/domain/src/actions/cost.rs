//! What an action will probably cost in a month.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::action::Action;

/// The time that counts as a month.
const MONTH: SignedDuration = SignedDuration::from_hours(30 * 24);

/// How many of the last runs count.
pub const LAST_RUNS: usize = 5;

/// The probable cost of the next 30 days. All amounts are in micro-dollars.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ExpectedCost {
    /// How often the schedule fires in the next 30 days.
    #[schema(example = 30)]
    pub runs: u32,
    /// The average of the last five runs. Absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_micros: Option<i64>,
    /// The cheapest of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_micros: Option<i64>,
    /// The most expensive of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_micros: Option<i64>,
    /// What these runs cost together. Without a run so far, as much as the ceiling of a run permits.
    pub month_micros: i64,
    /// The same in words.
    #[schema(example = "about $4.20 in 30 days: 30 runs at $0.14, the last 5 between $0.09 and $0.21")]
    pub text: String,
}

impl ExpectedCost {
    /// Of an action whose last runs have cost this, newest first. `None` if it has no schedule.
    #[must_use]
    pub fn of(action: &Action, last_runs: &[i64], now: Timestamp) -> Option<Self> {
        let schedule = action.schedule.as_ref()?;
        let runs = schedule.count(action.anchor.unwrap_or(now), now, now + MONTH);
        let last = &last_runs[..last_runs.len().min(LAST_RUNS)];
        let count = i64::try_from(last.len()).unwrap_or(i64::MAX);
        let times = |micros: i64| micros.saturating_mul(i64::from(runs));
        let run_micros =
            (count > 0).then(|| last.iter().fold(0_i64, |sum, run| sum.saturating_add(*run)) / count);
        let (least_micros, most_micros) = (last.iter().min().copied(), last.iter().max().copied());
        let month_micros = times(run_micros.unwrap_or(action.budget.per_run_micros));
        let month = dollars(month_micros);
        let text = match (run_micros, least_micros, most_micros) {
            (Some(run), Some(least), Some(most)) => format!(
                "about {month} in 30 days: {} at {}, the last {count} between {} and {}",
                counted(runs),
                dollars(run),
                dollars(least),
                dollars(most)
            ),
            _ => format!(
                "at most {month} in 30 days: {} at {}, the ceiling of a run; no run has shown what one costs",
                counted(runs),
                dollars(action.budget.per_run_micros)
            ),
        };
        Some(Self { runs, run_micros, least_micros, most_micros, month_micros, text })
    }
}

fn counted(runs: u32) -> String {
    if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") }
}

/// An amount for people: cents, or as many digits as a small amount needs.
#[must_use]
pub fn dollars(micros: i64) -> String {
    let amount = micros as f64 / 1_000_000.0;
    match micros {
        0 => "$0.00".to_owned(),
        ..10_000 => format!("${amount:.4}"),
        _ => format!("${amount:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::samples::{approved, defined, noon};
    use super::*;

    fn text(schedule: serde_json::Value, last_runs: &[i64]) -> String {
        ExpectedCost::of(&approved(&schedule), last_runs, noon()).unwrap().text
    }

    #[test]
    fn a_cost_is_told_in_words() {
        let runs = [140_000, 90_000, 210_000, 120_000, 140_000, 9_000_000];
        assert_eq!(
            text(json!({"cron": "0 9 * * *"}), &runs),
            "about $4.20 in 30 days: 30 runs at $0.14, the last 5 between $0.09 and $0.21"
        );
        assert_eq!(
            text(json!({"cron": "0 9 1 * *"}), &[1_234]),
            "about $0.0012 in 30 days: 1 run at $0.0012, the last 1 between $0.0012 and $0.0012"
        );
        let none = text(json!({"cron": "0 9 * * *"}), &[]);
        assert!(none.starts_with("at most $") && none.ends_with("no run has shown what one costs"), "{none}");
        assert_eq!(ExpectedCost::of(&defined(&json!(null)), &runs, noon()), None);
    }

    #[test]
    fn a_frequent_schedule_is_counted() {
        let cost = |schedule| ExpectedCost::of(&approved(&schedule), &[1], noon()).unwrap();
        assert_eq!(cost(json!({"every": "1m"})).runs, 30 * 24 * 60);
        assert_eq!(cost(json!({"every": "1h"})).runs, 30 * 24);
        // From noon on 21 November for 30 days.
        for (schedule, runs) in [
            (json!({"cron": "* * * * *", "timezone": "UTC"}), 43_200),
            (json!({"cron": "* * * * *", "timezone": "UTC", "start_at": "2026-12-19T12:01:00Z"}), 2_880),
            (json!({"cron": "* * * * *", "timezone": "UTC", "end_at": "2026-11-22T08:00:00Z"}), 1_200),
            (json!({"cron": "* * 1 * *", "timezone": "Asia/Kolkata"}), 1_440),
            (json!({"cron": "*/5 9-17 * * MON-FRI", "timezone": "America/New_York"}), 108 * 20),
            (json!({"every": "7m", "end_at": "2026-11-21T12:20:00Z"}), 2),
        ] {
            assert_eq!(cost(schedule.clone()).runs, runs, "{schedule}");
        }
        let passed = defined(&json!({"at": "2026-01-01T00:00:00Z"}));
        assert_eq!(ExpectedCost::of(&passed, &[1], noon()).unwrap().runs, 0);
    }

    #[test]
    fn the_largest_amounts_do_not_overflow() {
        let cost =
            ExpectedCost::of(&approved(&json!({"every": "1m"})), &[i64::MAX, i64::MAX], noon()).unwrap();
        assert_eq!(cost.month_micros, i64::MAX);
    }
}
