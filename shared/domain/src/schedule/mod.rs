//! When an action is due.
//!
//! A [`Schedule`] is exactly one of
//! - `at`: once, at an instant (`2026-12-01T09:00:00+01:00`) or at a wall time in `timezone` (`2026-12-01T09:00`);
//! - `every`: repeatedly after a length of time (`15m`, `1h 30m`, `PT15M`). It counts from an anchor: from
//!   `start_at` if that is given, otherwise from the instant at which the action became due. Whole days and weeks (`1d`, `2 days`, `1w`)
//!   are calendar days in `timezone`: the clock shows the same time each time. Everything else is elapsed time: `24h` is 24 hours, also
//!   when the clock changes, and so is each day of `1d 12h`;
//!
//! # Clock changes
//! A cron that names its hours, and every wall time, fires once on both days of the year on which the clock changes:
//! - in a gap (02:30 does not exist) it fires at the first valid instant after the gap. If several of its times fall
//!   into one gap, they fire once;
//! - in an overlap (02:30 exists twice) it fires at the first occurrence only.
//!
//! A cron that runs in all 24 hours (`*/15 * * * *`) is an interval. It fires whenever the clock shows a matching time.
//! So it does not fire additionally after a gap, and it does not pause during the repeated hour.
//!
//! All functions here are pure. The fire times of a schedule never change as long as the time-zone rules do not change.

pub mod cron;
mod describe;
mod length;
mod moment;
mod next;
#[cfg(test)]
mod next_tests;
mod wire;
#[cfg(test)]
mod wire_tests;
mod zone;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::ids::ActionId;

pub use cron::Cron;
pub use describe::{MONTHS, moment_in_words};
pub use length::Length;
pub use moment::Moment;
pub(crate) use next::first_instant;
pub use wire::ScheduleInput;
#[cfg(test)]
pub(crate) use zone::TRIED_ZONES;

/// The IANA name of a time zone, in its usual spelling.
///
/// # Errors
/// What is wrong, with the most similar names.
pub fn timezone_named(name: &str) -> Result<String, String> {
    let zone = zone::parse(name)?;
    Ok(zone.iana_name().unwrap_or("UTC").to_owned())
}

/// The zone with this name. UTC if the rules of this build do not know the name.
#[must_use]
pub fn zone_or_utc(name: &str) -> TimeZone {
    zone::parse(name).unwrap_or(TimeZone::UTC)
}

/// The times at which an action is due. It is always valid, because it can only come from [`ScheduleInput::validate`]
/// or from its own JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ScheduleInput", into = "ScheduleInput")]
pub struct Schedule {
    timing: Timing,
    zone: TimeZone,
    overlap: Overlap,
    catch_up: CatchUp,
    max_age: Option<Length>,
    start_at: Option<Moment>,
    end_at: Option<Moment>,
    jitter: Option<Length>,
}

/// A schedule has exactly one of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Timing {
    At(Moment),
    Every(Length),
    Cron(Cron),
}

/// What happens to a fire time while an earlier run is live.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// The fire time is skipped.
    #[default]
    Skip,
    /// It runs after the earlier one, in order. At most 200 runs wait; later fire times are skipped.
    Queue,
    /// The earlier run is cancelled.
    Replace,
}

/// What happens to fire times that are found late: after five minutes, or when a newer fire time has already come.
/// Within the five minutes, `overlap: queue` also runs the ones that were overtaken, and `overlap: replace` skips them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// All are missed.
    None,
    /// The newest one runs unless it is older than `max_age` (default: one day). The others are missed.
    #[default]
    Latest,
    /// All that are not older than `max_age` (default: seven days) run one after another, whatever `overlap` says. At
    /// most 200 runs wait; later fire times are skipped.
    All,
}

impl Schedule {
    #[must_use]
    pub const fn timing(&self) -> &Timing {
        &self.timing
    }

    #[must_use]
    pub const fn time_zone(&self) -> &TimeZone {
        &self.zone
    }

    /// The IANA name of the time zone.
    #[must_use]
    pub fn timezone(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    #[must_use]
    pub const fn overlap(&self) -> Overlap {
        self.overlap
    }

    #[must_use]
    pub const fn catch_up(&self) -> CatchUp {
        self.catch_up
    }

    /// How late a fire time may still be caught up. Always set, unless `catch_up` is `none`.
    #[must_use]
    pub const fn max_age(&self) -> Option<&Length> {
        self.max_age.as_ref()
    }

    /// The first instant that can be a fire time.
    #[must_use]
    pub fn starts(&self) -> Option<Timestamp> {
        self.start_at.as_ref().and_then(|moment| moment.instant(&self.zone))
    }

    /// The last instant that can be a fire time.
    #[must_use]
    pub fn ends(&self) -> Option<Timestamp> {
        self.end_at.as_ref().and_then(|moment| moment.instant(&self.zone))
    }

    /// Whether it can fire more than once.
    #[must_use]
    pub const fn is_recurring(&self) -> bool {
        !matches!(self.timing, Timing::At(_))
    }

    /// The first fire time strictly after `after`. `every` counts from `anchor`; the others ignore it.
    #[must_use]
    pub fn next_after(&self, anchor: Timestamp, after: Timestamp) -> Option<Timestamp> {
        let start = self.starts();
        // A fire time at `start_at` itself counts.
        let after = start.map_or(after, |start| after.max(start - SignedDuration::from_nanos(1)));
        let next = match &self.timing {
            Timing::At(moment) => moment.instant(&self.zone).filter(|at| *at > after),
            Timing::Every(length) => {
                let (origin, least) = start.map_or((anchor, 1), |start| (start, 0));
                match length.calendar_days() {
                    Some(days) => next::days_after(&self.zone, origin, least, days, after),
                    None => next::multiple_after(origin, least.into(), length.duration(), after),
                }
            }
            Timing::Cron(cron) => next::cron_after(cron, &self.zone, after),
        };
        next.filter(|next| self.ends().is_none_or(|end| *next <= end))
    }

    /// The first `count` fire times strictly after `from`. Fewer if the schedule ends.
    #[must_use]
    pub fn fire_times(&self, anchor: Timestamp, from: Timestamp, count: usize) -> Vec<Timestamp> {
        let first = self.next_after(anchor, from);
        std::iter::successors(first, |last| self.next_after(anchor, *last)).take(count).collect()
    }

    /// How often it fires after `after`, and until `until` at the latest. A frequent cron expression is not followed from fire time to
    /// fire time: one whole day is counted, and all whole days on which it fires count as much. Days of a clock change may have more or
    /// fewer.
    #[must_use]
    pub fn count(&self, anchor: Timestamp, after: Timestamp, until: Timestamp) -> u32 {
        let until = self.ends().map_or(until, |end| end.min(until));
        let next = |at: Timestamp| self.next_after(anchor, at).filter(|next| *next <= until);
        let Some(first) = next(after) else { return 0 };
        match &self.timing {
            Timing::At(_) => 1,
            Timing::Every(length) if let Some(days) = length.calendar_days() => {
                next::count_of_days(&self.zone, days, first, until)
            }
            Timing::Every(length) => {
                let rest = until.duration_since(first).as_secs() / length.seconds().max(1);
                u32::try_from(rest + 1).unwrap_or(u32::MAX)
            }
            Timing::Cron(_) => self.count_by_days(first, (after, until), next),
        }
    }

    fn count_by_days(
        &self,
        first: Timestamp,
        (after, until): (Timestamp, Timestamp),
        next: impl Fn(Timestamp) -> Option<Timestamp>,
    ) -> u32 {
        let midnight =
            |day: jiff::civil::Date| day.to_zoned_datetime(self.zone.clone()).ok().map(|at| at.timestamp());
        let (mut count, mut of_whole_day, mut fire) = (0_u32, None, Some(first));
        while let Some(first_of_day) = fire {
            let day = self.zone.to_datetime(first_of_day).date();
            let Some((begins, ends)) = midnight(day).zip(day.tomorrow().ok().and_then(midnight)) else {
                break;
            };
            let is_whole =
                after < begins && ends <= until && self.starts().is_none_or(|start| start <= begins);
            let of_day = of_whole_day.filter(|_| is_whole).unwrap_or_else(|| {
                let of_day = std::iter::successors(Some(first_of_day), |last| next(*last));
                u32::try_from(of_day.take_while(|fire| *fire < ends).count()).unwrap_or(u32::MAX)
            });
            if is_whole {
                of_whole_day = Some(of_day);
            }
            count = count.saturating_add(of_day);
            fire = next(ends - SignedDuration::from_nanos(1));
        }
        count
    }

    /// When the fire time `nominal` of `action` is acted upon: after its jitter. The jitter of a fire time never
    /// changes, is at most `jitter` long, and ends before the next fire time.
    #[must_use]
    pub fn wake_at(&self, action: ActionId, nominal: Timestamp) -> Timestamp {
        let Some(jitter) = &self.jitter else { return nominal };
        let to_next = match &self.timing {
            Timing::At(_) => None,
            Timing::Every(length) => match length.calendar_days() {
                Some(days) => next::least_gap(&self.zone, days, nominal).map(|gap| gap.as_secs()),
                None => Some(length.seconds()),
            },
            Timing::Cron(cron) => {
                next::cron_after(cron, &self.zone, nominal).map(|next| next.duration_since(nominal).as_secs())
            }
        };
        let longest = to_next.map_or(jitter.seconds(), |gap| jitter.seconds().min(gap - 1)).max(0);
        let hash = Sha256::new()
            .chain_update(b"jitter\0")
            .chain_update(action.uuid().as_bytes())
            .chain_update(nominal.as_millisecond().to_be_bytes())
            .finalize();
        let mut eight = [0u8; 8];
        eight.copy_from_slice(&hash[..8]);
        let seconds = u64::from_be_bytes(eight) % (longest.unsigned_abs() + 1);
        nominal.checked_add(SignedDuration::from_secs(seconds.cast_signed())).unwrap_or(nominal)
    }

    /// A short English sentence, such as "At 09:00 on weekdays (Europe/Berlin)."
    #[must_use]
    pub fn describe(&self) -> String {
        describe::sentence(self, "")
    }

    /// The same of the schedule of an action. An `every` of whole days without `start_at` runs at the time of day of `anchor`, which the
    /// sentence says.
    #[must_use]
    pub fn describe_from(&self, anchor: Option<Timestamp>) -> String {
        describe::sentence(self, &describe::time_of_days(self, anchor))
    }
}
