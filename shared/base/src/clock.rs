//! The clock, and the ids that are made from its time. Simulations set the clock; all other code uses the system time.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use uuid::{ContextV7, Uuid};

/// The source of the current time.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    #[default]
    System,
    /// Starts at `start` and runs `factor` times as fast as the system clock.
    Scaled { start: Timestamp, since: Instant, factor: u32, sequence: Arc<Sequence> },
    /// Stands still until it is set.
    Manual(ManualClock),
}

/// A clock that a simulation sets, in milliseconds since the epoch.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicI64>, Arc<Sequence>);

impl ManualClock {
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(now.as_millisecond())), Arc::default())
    }

    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_millisecond(), Ordering::SeqCst);
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.0.load(Ordering::SeqCst)).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// A sequence per clock, so two ids of the same millisecond still sort by creation order. A sequence never goes back,
/// so two clocks must not share one.
pub struct Sequence(AssertUnwindSafe<Mutex<AssertUnwindSafe<ContextV7>>>);

impl Default for Sequence {
    fn default() -> Self {
        Self(AssertUnwindSafe(Mutex::new(AssertUnwindSafe(ContextV7::new().with_additional_precision()))))
    }
}

impl fmt::Debug for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sequence")
    }
}

/// The process has one system clock, and so one sequence for it.
static SYSTEM: LazyLock<Sequence> = LazyLock::new(Sequence::default);

impl Clock {
    /// A clock that starts at the system time and runs `factor` times as fast.
    #[must_use]
    pub fn scaled(factor: u32) -> Self {
        Self::Scaled { start: Timestamp::now(), since: Instant::now(), factor, sequence: Arc::default() }
    }

    /// The current time, cut to the millisecond, so stored and compared times have no hidden digits.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let now = match self {
            Self::System => Timestamp::now(),
            Self::Scaled { start, since, factor, .. } => {
                *start + SignedDuration::try_from(since.elapsed() * *factor).unwrap_or(SignedDuration::ZERO)
            }
            Self::Manual(manual) => return manual.now(),
        };
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    /// Waits for `time` of this clock. With a manual clock it only waits briefly.
    pub async fn sleep(&self, time: Duration) {
        let real = match self {
            Self::System => time,
            Self::Scaled { factor, .. } => time / (*factor).max(1),
            Self::Manual(_) => Duration::from_millis(1),
        };
        tokio::time::sleep(real).await;
    }

    /// A new UUIDv7 with this clock's time. It sorts after all earlier ones, even if the clock was set back meanwhile.
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        self.uuid_at(self.now())
    }

    /// Makes later ids sort after all ids up to `then`, although the clock shows an earlier time: an earlier process
    /// made ids with a clock that was later set back.
    pub fn ids_after(&self, then: Timestamp) {
        let _ = self.uuid_at(then);
    }

    fn uuid_at(&self, at: Timestamp) -> Uuid {
        let seconds = at.as_second().max(0) as u64;
        let sequence = match self {
            Self::System => &*SYSTEM,
            Self::Scaled { sequence, .. } => sequence,
            Self::Manual(manual) => &manual.1,
        };
        Uuid::new_v7(uuid::Timestamp::from_unix(&*sequence.0, seconds, at.subsec_nanosecond().max(0) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_millisecond_sort_in_the_order_they_were_made() {
        let clock = Clock::Manual(ManualClock::at("2026-11-21T09:00:00.123Z".parse().unwrap()));
        let ids: Vec<Uuid> = (0..1_000).map(|_| clock.uuid()).collect();
        assert!(ids.is_sorted());
        assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), 1_000);
        let (seconds, nanos) = ids[0].get_timestamp().unwrap().to_unix();
        assert_eq!((seconds, nanos / 1_000_000), (1_795_251_600, 123));
    }

    #[test]
    fn ids_sort_in_the_order_they_were_made_though_the_clock_is_set_back() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let manual = ManualClock::at(at("2026-11-24T09:00:00Z"));
        let clock = Clock::Manual(manual.clone());
        let ahead = clock.uuid();
        manual.set(at("2026-11-21T09:00:00Z"));
        let ids: Vec<Uuid> = (0..1_000).map(|_| clock.uuid()).collect();
        assert!(ids.is_sorted() && ids[0] > ahead);
        // Another process, after it was told the time.
        let restarted = Clock::Manual(ManualClock::at(at("2026-11-21T09:00:00Z")));
        restarted.ids_after(at("2026-11-24T09:00:00.001Z"));
        assert!(restarted.uuid() > ahead);
    }

    #[test]
    fn clocks_do_not_influence_each_other() {
        let at = |text: &str| Clock::Manual(ManualClock::at(text.parse().unwrap()));
        let (late, early) = (at("2030-01-01T00:00:00Z"), at("2026-11-21T09:00:00Z"));
        let _ = late.uuid();
        let _ = Clock::System.uuid();
        assert_eq!(early.uuid().get_timestamp().unwrap().to_unix().0, 1_795_251_600);
    }

    #[test]
    fn a_manual_clock_moves_only_when_set() {
        let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
        let clock = Clock::Manual(manual.clone());
        assert_eq!(clock.now(), Timestamp::UNIX_EPOCH);
        let later = Timestamp::from_second(60).unwrap();
        manual.set(later);
        assert_eq!(clock.now(), later);
    }
}
