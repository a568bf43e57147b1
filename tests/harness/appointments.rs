//! When appointments are due, found in another way than the platform does: by looking at a clock on the wall every minute.

use domain::schedule::{CatchUp, Overlap};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use serde_json::{Value, json};

/// A schedule, and what it means in a form that a clock on the wall is enough for.
#[derive(Clone)]
pub struct Appointment {
    pub timing: Timing,
    pub zone: &'static str,
    pub overlap: Overlap,
    pub catch_up: CatchUp,
    /// How late it may be caught up; `None`: what the platform takes where nothing is said.
    pub max_age: Option<SignedDuration>,
    pub jitter: Option<SignedDuration>,
    /// The only time in which it is due, where that is not always.
    pub between: Option<(Timestamp, Timestamp)>,
}

#[derive(Clone)]
pub enum Timing {
    /// Once, at this wall time.
    At(&'static str),
    /// Every so many hours from the approval on.
    Every(i64),
    /// Whenever the wall time comes that the five fields name.
    Wall(&'static str, fn(DateTime) -> bool),
    /// The same for fields that name every hour: whenever the clock shows such a time, be it for the second time.
    Shown(&'static str, fn(DateTime) -> bool),
}

impl Appointment {
    #[must_use]
    pub fn new(timing: Timing, zone: &'static str, overlap: Overlap, catch_up: CatchUp) -> Self {
        Self { timing, zone, overlap, catch_up, max_age: None, jitter: None, between: None }
    }

    #[must_use]
    pub fn max_age_hours(self, hours: i64) -> Self {
        Self { max_age: Some(SignedDuration::from_hours(hours)), ..self }
    }

    #[must_use]
    pub fn jitter_minutes(self, minutes: i64) -> Self {
        Self { jitter: Some(SignedDuration::from_mins(minutes)), ..self }
    }

    #[must_use]
    pub fn between(self, from: Timestamp, to: Timestamp) -> Self {
        Self { between: Some((from, to)), ..self }
    }

    /// As an API client writes it. It is due until `end` and no longer.
    #[must_use]
    pub fn schedule(&self, end: Timestamp) -> Value {
        let mut schedule = json!({
            "timezone": self.zone, "overlap": self.overlap, "catch_up": self.catch_up,
        });
        match self.timing {
            Timing::At(wall) => schedule["at"] = json!(wall),
            Timing::Every(hours) => schedule["every"] = json!(format!("{hours}h")),
            Timing::Wall(fields, _) | Timing::Shown(fields, _) => schedule["cron"] = json!(fields),
        }
        if let Some(max_age) = self.max_age {
            schedule["max_age"] = json!(format!("{}h", max_age.as_hours()));
        }
        if let Some(jitter) = self.jitter {
            schedule["jitter"] = json!(format!("{}m", jitter.as_mins()));
        }
        if let Some((from, _)) = self.between {
            schedule["start_at"] = json!(from);
        }
        if !matches!(self.timing, Timing::At(_)) {
            schedule["end_at"] = json!(self.between.map_or(end, |(_, to)| to));
        }
        schedule
    }

    /// All due times after `start`, the instant of the approval, and up to `end`. Both are whole minutes.
    ///
    /// # Panics
    /// For a zone or a wall time that is none.
    #[must_use]
    pub fn due(&self, start: Timestamp, end: Timestamp) -> Vec<Timestamp> {
        let zone = TimeZone::get(self.zone).expect("the zone is known");
        let once = match self.timing {
            Timing::At(wall) => Some(wall.parse::<DateTime>().expect("a wall time")),
            _ => None,
        };
        let minute = SignedDuration::from_mins(1);
        let mut due = Vec::new();
        // The furthest that the clock on the wall has shown: set back, it shows nothing new until it is past this again.
        let mut furthest = zone.to_datetime(start);
        let mut now = start;
        while now < end {
            now += minute;
            let shows = zone.to_datetime(now);
            let came = |wanted: &dyn Fn(DateTime) -> bool| {
                // More than one where the clock was set forward.
                let mut wall = furthest;
                while wall < shows {
                    wall = wall.checked_add(1.minute()).expect("far from the end of the calendar");
                    if wanted(wall) {
                        return true;
                    }
                }
                false
            };
            let is_due = match self.timing {
                Timing::At(_) => came(&|wall| Some(wall) == once),
                Timing::Every(hours) => now.duration_since(start).as_mins() % (hours * 60) == 0,
                Timing::Wall(_, wanted) => came(&wanted),
                Timing::Shown(_, wanted) => wanted(shows),
            };
            if is_due && self.between.is_none_or(|(from, to)| (from..=to).contains(&now)) {
                due.push(now);
            }
            furthest = furthest.max(shows);
        }
        due
    }

    /// How late a due time may be caught up.
    #[must_use]
    pub fn oldest(&self) -> SignedDuration {
        let days = if self.catch_up == CatchUp::All { 7 } else { 1 };
        self.max_age.unwrap_or(SignedDuration::from_hours(24 * days))
    }
}
