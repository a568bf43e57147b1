//! Tools about schedules, and how a schedule is written.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Effect::Read;
use super::Surface::Mcp;
use super::ToolDef;
use super::output;
use super::schema::{choice, integer, object, optional, string};
use crate::schedule::ScheduleInput;

pub static PREVIEW_SCHEDULE: ToolDef = ToolDef {
    title: Some("Preview schedule"),
    output: Some(|| output::object(&[("fire_times", "[]string"), ("schedule_text", "string")])),
    ..ToolDef::new(
        "preview_schedule",
        "Returns the due times of a schedule, and the schedule in words. It schedules nothing.",
        Read,
        &[Mcp],
        || {
            let properties = json!({
                "schedule": schedule("Exactly one of at, every and cron."),
                "from": optional(string("Only times after this (RFC 3339). Default: now.")),
                "count": optional(integer("Default 5.", 1, Some(100))),
            });
            object(&properties, &["schedule"])
        },
    )
};

/// The arguments of [`PREVIEW_SCHEDULE`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreviewSchedule {
    pub schedule: ScheduleInput,
    pub from: Option<Timestamp>,
    pub count: Option<usize>,
}

/// The schema of a schedule. The three kinds share one object, because three objects would repeat their common properties.
pub(super) fn schedule(description: &str) -> Value {
    let shown = |description: &str, example: &str| json!({"type": "string", "description": description, "examples": [example]});
    let properties = json!({
        "at": shown("Once: RFC 3339, or a date and time in timezone.", "2026-12-01T09:00"),
        "every": shown("An interval from 1m to 366d: numbers with w, d, h, m or s.", "1h 30m"),
        "cron": shown(
            "Minute, hour, day of month, month, day of week, in timezone. Also names (MON, JAN), L (last day of a month), \
             @daily, @weekly, @monthly.",
            "0 9 * * MON-FRI",
        ),
        "timezone": shown("IANA time zone. Default: that of the account.", "Europe/Berlin"),
        "overlap": choice(
            &["skip", "queue", "replace"],
            "If an earlier run is still active at a due time. Default skip.",
        ),
        "catch_up": choice(&["none", "latest", "all"], "Due times that passed during an outage. Default latest."),
        "max_age": shown("How late a due time may still be caught up.", "1d"),
        "jitter": shown("Each due time is delayed by a random time up to this.", "5m"),
        "start_at": string("Not with at. No due time before this."),
        "end_at": string("Not with at. No due time after this."),
    });
    let mut schema = object(&properties, &[]);
    schema["description"] = json!(description);
    schema["anyOf"] = ["at", "every", "cron"].map(|kind| json!({"required": [kind]})).into();
    schema["examples"] = json!([{"cron": "0 9 * * MON-FRI", "timezone": "Europe/Berlin"}]);
    schema
}
