//! Schedules: how one is written, and when it would fire.

use domain::schedule::ScheduleInput;
use jiff::Timestamp;
use rmcp::schemars::{self, JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;
use shared::flows::schedules::{self, Preview};

use super::{Failure, given};
use crate::server::Server;

/// What a schedule looks like: one of three shapes. The flows check it; the schema tells a model how to write it.
pub fn shapes(_: &mut SchemaGenerator) -> Schema {
    let zone = json_schema!({
        "type": "string",
        "description": "IANA time zone in which the times are meant, such as Europe/Berlin. UTC if not given.",
        "examples": ["Europe/Berlin", "America/New_York"],
    });
    let overlap = json_schema!({
        "type": "string", "enum": ["skip", "queue", "replace"],
        "description": "What becomes of a fire time while an earlier run is live. skip if not given.",
    });
    let catch_up = json_schema!({
        "type": "string", "enum": ["none", "latest", "all"],
        "description": "What becomes of fire times that are found late, after an outage. latest if not given.",
    });
    let instant = |description: &str| json_schema!({ "type": "string", "description": description });
    let length = |description: &str| {
        json_schema!({
            "type": "string", "description": description, "examples": ["30m", "1h 30m", "1d"],
        })
    };
    let again = |name: &str, shape: Schema| {
        let mut schema = json_schema!({
            "type": "object",
            "properties": {
                "timezone": zone, "overlap": overlap, "catch_up": catch_up,
                "max_age": length("How late a fire time may still be caught up."),
                "start_at": instant("No fire time before this. RFC 3339, or a date and time in timezone."),
                "end_at": instant("No fire time after this. RFC 3339, or a date and time in timezone."),
                "jitter": length("Each fire is put off by up to this long."),
            },
            "required": [name],
            "additionalProperties": false,
        });
        schema
            .as_object_mut()
            .and_then(|schema| schema.get_mut("properties")?.as_object_mut())
            .map(|properties| properties.insert(name.to_owned(), shape.to_value()));
        schema
    };
    let every = again(
        "every",
        json_schema!({
            "type": "string",
            "description": "A length of elapsed time from one minute to 366 days: numbers with w, d, h, m or s.",
            "examples": ["15m", "1h 30m", "1d"],
        }),
    );
    let cron = again(
        "cron",
        json_schema!({
            "type": "string",
            "description": "Minute, hour, day of month, month, day of week, read in timezone. Lists, ranges, steps, names (MON, JAN), \
                L for the last day of a month, @daily, @weekly, @monthly.",
            "examples": ["0 9 * * MON-FRI", "30 18 1 * *", "@weekly"],
        }),
    );
    let once = json_schema!({
        "type": "object",
        "properties": {
            "at": {
                "type": "string",
                "description": "Once: an RFC 3339 instant, or a date and time that is read in timezone.",
                "examples": ["2026-12-01T09:00", "2026-12-01T09:00:00Z"],
            },
            "timezone": zone, "overlap": overlap, "catch_up": catch_up,
            "max_age": length("How late it may still be caught up."),
            "jitter": length("It is put off by up to this long."),
        },
        "required": ["at"],
        "additionalProperties": false,
    });
    json_schema!({
        "description": "Exactly one of at, every and cron.",
        "anyOf": [once, every, cron, { "type": "null" }],
        "examples": [
            { "at": "2026-12-01T09:00", "timezone": "America/New_York" },
            { "every": "1h 30m" },
            { "cron": "0 9 * * MON-FRI", "timezone": "Europe/Berlin" },
        ],
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewSchedule {
    /// When it would run: once (at), at a distance (every) or by the calendar (cron).
    #[schemars(schema_with = "shapes")]
    schedule: ScheduleInput,
    /// Only times after this instant (RFC 3339). Now if not given.
    #[schemars(with = "Option<String>")]
    from: Option<Timestamp>,
    /// How many, 1 to 100. Default 5.
    #[schemars(range(min = 1, max = 100))]
    count: Option<usize>,
}

pub async fn preview_schedule(server: Server, arguments: PreviewSchedule) -> Result<Value, Failure> {
    let PreviewSchedule { schedule, from, count } = arguments;
    given(schedules::preview(&server.cx, Preview { schedule, from, count: count.unwrap_or(5) }).await?)
}
