//! Computes due times independently of the platform: it checks a simulated wall clock every minute.

use domain::schedule::{CatchUp, Overlap};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use serde_json::{Value, json};

/// A schedule, in a form that a wall clock can evaluate.
#[derive(Clone)]
pub struct Appointment {
    pub timing: Timing,
    pub zone: &'static str,
    pub overlap: Overlap,
    pub catch_up: CatchUp,
    /// The largest delay for catching up. `None`: the platform's default.
    pub max_age: Option<SignedDuration>,
    pub jitter: Option<SignedDuration>,
    /// If set, it is due only within this period.
    pub between: Option<(Timestamp, Timestamp)>,
}

#[derive(Clone)]
pub enum Timing {
    /// Once, at this wall time.
    At(&'static str),
    /// Every `n` hours, counted from the approval.
    Every(i64),
    /// Whenever the wall clock reaches a time that the five cron fields match.
    Wall(&'static str, fn(DateTime) -> bool),
    /// For fields that match every hour: whenever the clock shows a matching time, even if it shows that time twice.
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

    /// The schedule as an API client writes it. It ends at `end`.
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

    /// All due times after `start`, the time of the approval, up to and including `end`. Both are whole minutes.
    ///
    /// # Panics
    /// If the zone or the wall time is invalid.
    #[must_use]
    pub fn due(&self, start: Timestamp, end: Timestamp) -> Vec<Timestamp> {
        let zone = TimeZone::get(self.zone).expect("the zone is known");
        let once = match self.timing {
            Timing::At(wall) => Some(wall.parse::<DateTime>().expect("a wall time")),
            _ => None,
        };
        let minute = SignedDuration::from_mins(1);
        let mut due = Vec::new();
        // The latest time that the wall clock has shown. If the clock is set back, it shows nothing new until it passes
        // this time.
        let mut furthest = zone.to_datetime(start);
        let mut now = start;
        while now < end {
            now += minute;
            let shows = zone.to_datetime(now);
            let came = |wanted: &dyn Fn(DateTime) -> bool| {
                // More than one minute if the clock was set forward.
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

    /// The largest delay for catching up a due time.
    #[must_use]
    pub fn oldest(&self) -> SignedDuration {
        let days = if self.catch_up == CatchUp::All { 7 } else { 1 };
        self.max_age.unwrap_or(SignedDuration::from_hours(24 * days))
    }
}
