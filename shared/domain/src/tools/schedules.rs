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
        "Returns the times at which a schedule would fire, and the schedule in words. Nothing is scheduled.",
        Read,
        &[Mcp],
        || {
            let properties = json!({
                "schedule": schedule(
                    "When it runs: exactly one of at (once), every (at an interval) and cron (by the calendar).",
                    false,
                ),
                "from": optional(string("Only times after this instant (RFC 3339). Default: now.")),
                "count": optional(integer("How many times, 1 to 100. Default 5.", 1, Some(100))),
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

/// The schema of a schedule: one of three shapes.
pub(super) fn schedule(description: &str, is_optional: bool) -> Value {
    let length = |description: &str| json!({"type": "string", "description": description, "examples": ["30m", "1h 30m", "1d"]});
    let shape = |name: &str, own: Value, is_repeated: bool| {
        let mut properties = json!({
            "timezone": {
                "type": "string",
                "description": "The IANA time zone of the times, such as Europe/Berlin. Default UTC.",
                "examples": ["Europe/Berlin", "America/New_York"],
            },
            "overlap": choice(
                &["skip", "queue", "replace"],
                "What happens to a fire time while an earlier run is active. Default skip.",
            ),
            "catch_up": choice(
                &["none", "latest", "all"],
                "What happens to fire times that passed during an outage. Default latest.",
            ),
            "max_age": length("How late a fire time may still be caught up."),
            "jitter": length("Each fire time is delayed by a random time up to this length."),
        });
        properties[name] = own;
        if is_repeated {
            let zone = "RFC 3339, or a date and time in timezone.";
            properties["start_at"] = string(&format!("No fire time before this. {zone}"));
            properties["end_at"] = string(&format!("No fire time after this. {zone}"));
        }
        object(&properties, &[name])
    };
    let at = json!({
        "type": "string",
        "description": "Once: an RFC 3339 instant, or a date and time in timezone.",
        "examples": ["2026-12-01T09:00", "2026-12-01T09:00:00Z"],
    });
    let every = json!({
        "type": "string",
        "description": "An interval from one minute to 366 days: numbers with w, d, h, m or s.",
        "examples": ["15m", "1h 30m", "1d"],
    });
    let cron = json!({
        "type": "string",
        "description": "Minute, hour, day of month, month and day of week, in timezone. Lists, ranges, steps, names (MON, JAN), \
                        L for the last day of a month, @daily, @weekly, @monthly.",
        "examples": ["0 9 * * MON-FRI", "30 18 1 * *", "@weekly"],
    });
    let mut shapes = vec![shape("at", at, false), shape("every", every, true), shape("cron", cron, true)];
    if is_optional {
        shapes.push(json!({"type": "null"}));
    }
    json!({
        "description": description,
        "anyOf": shapes,
        "examples": [
            {"at": "2026-12-01T09:00", "timezone": "America/New_York"},
            {"every": "1h 30m"},
            {"cron": "0 9 * * MON-FRI", "timezone": "Europe/Berlin"},
        ],
    })
}
