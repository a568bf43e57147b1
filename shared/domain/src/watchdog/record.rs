//! What the watchdog knows of an owner: the counters, and the person's settings.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Check, CheckSettings, Counter, Heal, Observed, Say, Verdict, WatchdogSettings, heal_now, look};

/// How many counters are kept. A look that finds more wrong keeps the first ones.
pub const MAX_COUNTERS: usize = 100;

/// How long a counter of a row that has ended is kept, for people who ask what was wrong.
const KEPT: SignedDuration = SignedDuration::from_hours(7 * 24);

/// A counter with its check and item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CounterOf {
    pub check: Check,
    /// What is counted: a job, a queue, or the id of what a person owns.
    pub item: String,
    #[serde(flatten)]
    pub counter: Counter,
}

/// What is stored about the looks at an owner, or at the platform.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchdogRecord {
    pub settings: WatchdogSettings,
    /// Those of rows that go on, and of rows that have ended lately.
    pub counters: Vec<CounterOf>,
}

/// What a look leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    pub record: WatchdogRecord,
    pub says: Vec<Say>,
}

impl WatchdogRecord {
    /// The record after a look, or `None` if the look changes nothing. `complete`: `observed` has everything that there is, so a row about
    /// anything else has ended without a word.
    #[must_use]
    pub fn looked(&self, observed: &[Observed], complete: bool, at: Timestamp) -> Option<Looked> {
        let (mut counters, mut says) = (Vec::new(), Vec::new());
        let mut changed = false;
        for observed in observed {
            let before = self.counter(observed.check, &observed.item);
            let (after, say) =
                look(before.cloned().unwrap_or_default(), observed, at, self.settings.of(observed.check));
            says.extend(say);
            if !is_told(&after) {
                changed |= before.is_some_and(is_told);
                continue;
            }
            if before.is_some_and(|before| is_same(before, &after)) {
                counters.extend(before.map(|before| named(observed.check, &observed.item, before.clone())));
                continue;
            }
            changed = true;
            counters.push(named(observed.check, &observed.item, after));
        }
        for kept in &self.counters {
            let was_seen =
                observed.iter().any(|other| (other.check, &other.item) == (kept.check, &kept.item));
            if was_seen {
                continue;
            }
            match kept.counter.anomalies > 0 && complete {
                true => changed = true,
                false => counters.push(kept.clone()),
            }
        }
        changed.then(|| Looked { record: self.with(counters, at), says })
    }

    /// The record after a thing has said by itself, between two looks, how it is. What it says is certain, so the first anomaly alerts. None
    /// if that changes nothing: it is known already, or the person does not want to be told.
    #[must_use]
    pub fn heard(&self, observed: &Observed, at: Timestamp) -> Option<Looked> {
        let settings = self.settings.of(observed.check);
        let before = self.counter(observed.check, &observed.item).cloned().unwrap_or_default();
        let is_news = match observed.verdict {
            Verdict::Unknown | Verdict::Off => false,
            Verdict::Fine => before.anomalies > 0,
            Verdict::Anomaly { .. } => before.alerted_at.is_none() && !before.is_snoozed(at),
        };
        if !settings.enabled || !is_news {
            return None;
        }
        // A report is no look: the next look must not be taken for a repeated one, and a report may come in the moment of a look.
        let seen = before.seen;
        let settings = CheckSettings { hits: 1, ..settings };
        let (after, say) = look(Counter { seen: None, ..before }, observed, at, settings);
        let mut counters = self.counters.clone();
        counters.retain(|of| (of.check, &of.item) != (observed.check, &observed.item));
        counters.push(named(observed.check, &observed.item, Counter { seen, ..after }));
        Some(Looked { record: self.with(counters, at), says: say.into_iter().collect() })
    }

    /// Whether a person is told each time that a thing says by itself that it is wrong.
    #[must_use]
    pub fn wants_to_hear(&self, observed: &Observed, at: Timestamp) -> bool {
        let is_snoozed = self.counter(observed.check, &observed.item).is_some_and(|of| of.is_snoozed(at));
        self.settings.of(observed.check).enabled && !is_snoozed
    }

    /// What was wrong with a thing at the newest look that has seen something wrong.
    #[must_use]
    pub fn newest_seen(&self, check: Check, item: &str) -> Option<&str> {
        Some(self.counter(check, item)?.last3.first()?.text.as_str())
    }

    /// Whether the newest that is known of a thing is that it is wrong.
    #[must_use]
    pub fn is_wrong(&self, check: Check, item: &str) -> bool {
        self.counter(check, item).is_some_and(|of| of.anomalies > 0)
    }

    fn with(&self, mut counters: Vec<CounterOf>, at: Timestamp) -> Self {
        counters.retain(|of| {
            let seen = of.counter.seen.unwrap_or(at);
            of.counter.anomalies > 0 || !of.counter.is_idle(at) || at.duration_since(seen) <= KEPT
        });
        // The rows that go on come first, so that those are dropped that have ended.
        counters.sort_by_key(|of| (of.counter.anomalies == 0, of.check));
        counters.truncate(MAX_COUNTERS);
        Self { settings: self.settings.clone(), counters }
    }

    /// What is tried at a look that is counted, with the item. A repeated look tries the same, as long as it sees that it is wrong.
    #[must_use]
    pub fn heals(&self, observed: &[Observed], at: Timestamp) -> Vec<(Heal, String)> {
        let tried = observed.iter().filter_map(|observed| {
            let counter = self.counter(observed.check, &observed.item)?;
            let heal = heal_now(counter, observed).filter(|_| counter.seen == Some(at))?;
            Some((heal, observed.item.clone()))
        });
        tried.collect()
    }

    fn counter(&self, check: Check, item: &str) -> Option<&Counter> {
        let of = self.counters.iter().find(|of| of.check == check && of.item == item);
        of.map(|of| &of.counter)
    }
}

/// Whether a counter says more than that nothing was ever wrong.
fn is_told(counter: &Counter) -> bool {
    counter.anomalies > 0 || !counter.last3.is_empty() || counter.snoozed_until.is_some()
}

/// Whether two counters differ in nothing but the look that they have seen. Then nothing is written.
fn is_same(before: &Counter, after: &Counter) -> bool {
    Counter { seen: before.seen, ..after.clone() } == *before
}

fn named(check: Check, item: &str, counter: Counter) -> CounterOf {
    CounterOf { check, item: item.to_owned(), counter }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_second(1_795_251_600 + hours * 3_600).unwrap()
    }

    fn wrong(item: &str, hours: i64) -> Observed {
        Observed::anomaly(Check::JobFailed, item, "It has failed", "Mend it.", at(hours))
    }

    fn fine(item: &str) -> Observed {
        Observed::fine(Check::JobFailed, item)
    }

    #[test]
    fn a_row_alerts_once_and_recovers_once_and_fine_things_write_nothing() {
        let new = WatchdogRecord::default();
        assert_eq!(new.looked(&[fine("a"), fine("b")], true, at(0)), None);
        let first = new.looked(&[wrong("a", 0), fine("b")], true, at(0)).unwrap();
        assert_eq!((first.says.len(), first.record.counters.len()), (0, 1));
        // The same look again.
        assert_eq!(first.record.looked(&[wrong("a", 0), fine("b")], true, at(0)), None);
        let second = first.record.looked(&[wrong("a", 2)], true, at(2)).unwrap();
        assert!(matches!(&second.says[..], [Say::Alert { count: 2, .. }]), "{:?}", second.says);
        let third = second.record.looked(&[wrong("a", 4)], true, at(4)).unwrap();
        assert_eq!(third.says, []);
        let fourth = third.record.looked(&[fine("a")], true, at(6)).unwrap();
        assert!(matches!(&fourth.says[..], [Say::Recovery { count: 3, .. }]), "{:?}", fourth.says);
        // The ended row stays for a week, and nothing is written meanwhile.
        assert_eq!(fourth.record.counters.len(), 1);
        assert_eq!(fourth.record.looked(&[fine("a")], true, at(8)), None);
        let later = fourth.record.looked(&[fine("a"), wrong("b", 400)], true, at(400)).unwrap();
        assert_eq!(later.record.counters.len(), 1, "{:?}", later.record);
        assert_eq!(later.record.counters[0].item, "b");
    }

    #[test]
    fn what_is_gone_ends_without_a_word_but_only_if_everything_was_seen() {
        let first = WatchdogRecord::default().looked(&[wrong("a", 0)], true, at(0)).unwrap().record;
        let raised = first.looked(&[wrong("a", 2)], true, at(2)).unwrap().record;
        assert_eq!(raised.looked(&[], false, at(4)), None);
        let gone = raised.looked(&[], true, at(4)).unwrap();
        assert_eq!((gone.says, gone.record.counters), (vec![], vec![]));
    }

    #[test]
    fn only_the_first_two_looks_of_a_row_heal_and_each_does_until_it_is_right() {
        let dead = |hours| Observed::anomaly(Check::DeadLetters, "queue", "Some", "Look.", at(hours));
        let redrives = |record: &WatchdogRecord, observed: Observed, hours| {
            record.heals(&[observed], at(hours)).into_iter().map(|(heal, _)| heal).collect::<Vec<_>>()
        };
        let mut record = WatchdogRecord::default();
        assert_eq!(redrives(&record, dead(0), 0), [], "nothing was counted yet");
        for (look, expected) in [(0, [Heal::Redrive].as_slice()), (2, &[Heal::Redrive]), (4, &[]), (6, &[])] {
            record = record.looked(&[dead(look)], true, at(look)).unwrap().record;
            for _ in 0..2 {
                assert_eq!(redrives(&record, dead(look), look), expected, "look {look}");
            }
            assert_eq!(redrives(&record, Observed::fine(Check::DeadLetters, "queue"), look), []);
            assert_eq!(redrives(&record, dead(look), look - 2), [], "a look that comes late");
        }
    }

    #[test]
    fn the_counters_are_bounded() {
        let all: Vec<Observed> = (0..300).map(|n| wrong(&format!("item{n}"), 0)).collect();
        let looked = WatchdogRecord::default().looked(&all, true, at(0)).unwrap();
        assert_eq!(looked.record.counters.len(), MAX_COUNTERS);
    }
}
