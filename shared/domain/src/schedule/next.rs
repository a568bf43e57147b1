//! From wall times to fire times, across clock changes.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan};

use super::Cron;

/// No clock is ever moved by more than this.
const TWO_DAYS: SignedDuration = SignedDuration::from_hours(48);

/// When the clocks of `zone` show `wall` for the first time. If they never do (a gap), the first instant after the gap.
pub(crate) fn first_instant(zone: &TimeZone, wall: DateTime) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(wall).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
            offset.to_timestamp(wall).ok()
        }
        AmbiguousOffset::Gap { after, .. } => {
            // With the later offset, a time in the gap becomes an instant before the change, by less than the length of
            // the gap.
            let before_change = after.to_timestamp(wall).ok()?;
            zone.following(before_change).next().map(|change| change.timestamp())
        }
    }
}

/// The first `origin + k × step` with `k ≥ least` that is strictly after `after`.
pub(super) fn multiple_after(
    origin: Timestamp,
    least: i64,
    step: SignedDuration,
    after: Timestamp,
) -> Option<Timestamp> {
    let elapsed = after.duration_since(origin).as_nanos();
    let passed = i64::try_from(elapsed.div_euclid(step.as_nanos())).ok()?;
    let k = passed.checked_add(1)?.max(least);
    let offset = step.as_secs().checked_mul(k)?;
    origin.checked_add(SignedDuration::from_secs(offset)).ok()
}

/// The first time strictly after `after` that is `k × days` calendar days after `origin` in `zone`, with `k ≥ least`: the clock shows the
/// same time as at `origin`. In a gap it is the first instant after the gap, and in an overlap the first of the two. If two of these times
/// fall into one gap, they are one time.
pub(super) fn days_after(
    zone: &TimeZone,
    origin: Timestamp,
    least: i32,
    days: i32,
    after: Timestamp,
) -> Option<Timestamp> {
    let wall = zone.to_datetime(origin);
    let passed = (zone.to_datetime(after).date() - wall.date()).get_days();
    // The time of the day decides whether this many have passed. One less is never too late.
    let mut k = passed.div_euclid(days).checked_sub(1)?.max(least);
    loop {
        let instant = match k {
            // Not the wall time: `origin` may be in the second pass of an overlap.
            0 => origin,
            _ => first_instant(zone, wall.checked_add(k.checked_mul(days)?.days()).ok()?)?,
        };
        if instant > after {
            return Some(instant);
        }
        k = k.checked_add(1)?;
    }
}

/// How many times there are every `days` calendar days from `first` on, up to `until`.
pub(super) fn count_of_days(zone: &TimeZone, days: i32, first: Timestamp, until: Timestamp) -> u32 {
    let (begin, end) = (zone.to_datetime(first), zone.to_datetime(until));
    let whole = (end.date() - begin.date()).get_days().div_euclid(days);
    let last = begin.checked_add(whole.saturating_mul(days).days()).ok();
    let is_over = last.and_then(|last| first_instant(zone, last)).is_none_or(|last| last > until);
    u32::try_from(whole + 1 - i32::from(is_over)).unwrap_or(0)
}

/// How long the next time of [`days_after`] is away from `nominal` at least. If `nominal` is the end of a gap, the time of its days lies
/// anywhere in the gap.
pub(super) fn least_gap(zone: &TimeZone, days: i32, nominal: Timestamp) -> Option<SignedDuration> {
    let before = nominal.checked_sub(SignedDuration::from_nanos(1)).ok()?;
    let earliest = zone.to_offset(before).to_datetime(nominal);
    let wall = earliest.min(zone.to_datetime(nominal));
    let next = first_instant(zone, wall.checked_add(days.days()).ok()?)?;
    Some(next.duration_since(nominal))
}

/// The first fire time of `cron` in `zone` strictly after `after`.
pub(super) fn cron_after(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    if cron.is_interval() { interval_after(cron, zone, after) } else { appointment_after(cron, zone, after) }
}

/// For crons that name their hours. Every nominal wall time has one instant, and these instants never decrease. So the
/// answer is the first nominal time whose instant is late enough. In the second pass of an overlap, the nominal times
/// up to its end have already passed; the loop skips them.
fn appointment_after(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let mut wall = cron.at_or_after(zone.to_datetime(after))?;
    loop {
        let instant = first_instant(zone, wall)?;
        if instant > after {
            return Some(instant);
        }
        wall = cron.at_or_after(wall.checked_add(1.minute()).ok()?)?;
    }
}

/// For crons that run in all hours. It searches for a match of the wall clock between one clock change and the next.
///
/// If the next match is far away, the clock changes before it are skipped, because no wall time before it matches. The
/// only exception is a change shortly before `from`, which may show again what was just shown.
fn interval_after(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let mut from = after.checked_add(SignedDuration::from_nanos(1)).ok()?;
    loop {
        let offset = zone.to_offset(from);
        let instant =
            cron.at_or_after(offset.to_datetime(from)).and_then(|wall| offset.to_timestamp(wall).ok());
        match (instant, zone.following(from).next().map(|change| change.timestamp())) {
            (Some(instant), Some(change)) if change <= instant => {
                let is_close = change.duration_since(from) < TWO_DAYS;
                from = if is_close { change } else { change.max(instant.checked_sub(TWO_DAYS).ok()?) };
            }
            (instant, _) => return instant,
        }
    }
}
