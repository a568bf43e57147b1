//! What is told of costs: a spending alert that a month has reached.

use super::plan::{Event, Happening};
use super::{About, Cause, LeadsTo, NoticeKey, NoticeKind};
use crate::accounts::quota::Month;
use crate::actions::cost::dollars;

/// A month's costs have reached a threshold, both in micro-dollars. Each threshold of a month is a cause of its own.
#[must_use]
pub fn of_costs(month: Month, threshold: i64, spent: i64) -> Event {
    let cause = Cause::new(&format!("month:{month}:{threshold}"));
    let title = format!("{} of this month are spent", dollars(threshold));
    let reason = format!("The spending alert of {month} is reached: {} were spent so far.", dollars(spent));
    let key = NoticeKey { kind: NoticeKind::Budget, action_id: None, cause };
    Event::new(key, Happening::Happened, About::new(&title, &reason, LeadsTo::Usage))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_threshold_of_a_month_is_told_apart() {
        let month: Month = "2026-11".parse().expect("it is a month");
        let event = of_costs(month, 5_000_000, 5_030_000);
        assert_eq!(event.key.to_string(), "budget/-/month:2026-11:5000000");
        assert_eq!(event.about.title, "$5.00 of this month are spent");
        assert_eq!(event.about.reason, "The spending alert of 2026-11 is reached: $5.03 were spent so far.");
        assert_ne!(of_costs(month, 6_000_000, 6_000_000).key, event.key);
    }
}
