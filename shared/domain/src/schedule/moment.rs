//! A point in time: an instant or a wall time.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::temporal::Pieces;
use jiff::tz::TimeZone;

use super::next::first_instant;
use crate::validate::TIME_LIMIT;

/// `2026-12-01T09:00:00+01:00` is an instant. `2026-12-01T09:00` is a wall time in the schedule's time zone. It keeps
/// its original text, cut to milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    text: String,
    when: When,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum When {
    Instant(Timestamp),
    Wall(DateTime),
}

impl Moment {
    /// # Errors
    /// What is wrong. The message follows the name of a field.
    pub fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "must be an RFC 3339 instant such as 2026-12-01T09:00:00+01:00, or a date and time \
                                without an offset such as 2026-12-01T09:00";
        let text = text.trim();
        let expected = || EXPECTED.to_owned();
        if text.len() > 64 {
            return Err(expected());
        }
        let pieces = Pieces::parse(text).map_err(|_| expected())?;
        if pieces.time_zone_annotation().is_some() {
            return Err(format!("{EXPECTED}; the time zone goes into `timezone`"));
        }
        let wall = pieces.date().to_datetime(pieces.time().ok_or_else(expected)?);
        let when = match pieces.to_numeric_offset() {
            None => When::Wall(wall),
            Some(offset) => {
                let instant = offset.to_timestamp(wall).map_err(|_| expected())?;
                When::Instant(to_millisecond(instant))
            }
        };
        // Far enough from the ends of the calendar for all arithmetic.
        if !(1970..=9000).contains(&wall.year()) {
            return Err(TIME_LIMIT.to_owned());
        }
        Ok(Self { text: text.to_owned(), when })
    }

    /// The instant of this moment. In a gap it is the first valid instant after the gap, in an overlap the first of the
    /// two. `None` only past the end of the calendar.
    #[must_use]
    pub fn instant(&self, zone: &TimeZone) -> Option<Timestamp> {
        match self.when {
            When::Instant(instant) => Some(instant),
            When::Wall(wall) => first_instant(zone, wall).map(to_millisecond),
        }
    }
}

fn to_millisecond(instant: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(instant.as_millisecond()).unwrap_or(instant)
}

/// As it was written.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
