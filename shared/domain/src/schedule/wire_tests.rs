//! Schedules as JSON: what is accepted, what is refused and how, and that what prints parses back.

use proptest::prelude::*;
use serde_json::{Value, json};
use utoipa::{PartialSchema, ToSchema};

use super::next_tests::any_cron;
use super::{Schedule, ScheduleInput};

fn refusal(value: Value) -> String {
    serde_json::from_value::<ScheduleInput>(value).map_or_else(
        |error| format!("json: {error}"),
        |input| match input.validate() {
            Ok(schedule) => format!("accepted: {}", schedule.describe()),
            Err(errors) => errors.to_string(),
        },
    )
}

#[test]
fn refusals_name_the_field_and_the_limit() {
    let cases = [
        json!({}),
        json!({"at": "2026-12-01T09:00", "cron": "* * * * *"}),
        json!({"at": "tomorrow"}),
        json!({"at": "2026-12-01"}),
        json!({"at": "2026-12-01T09:00+01:00[Europe/Berlin]"}),
        json!({"at": "1969-12-01T09:00Z"}),
        json!({"at": "2026-12-01T09:00", "end_at": "2026-12-02T09:00"}),
        json!({"every": "59s"}),
        json!({"every": "367d"}),
        json!({"every": "1mo"}),
        json!({"every": "-15m"}),
        json!({"every": "15"}),
        json!({"every": "90.5s"}),
        json!({"cron": "* * * *"}),
        json!({"cron": "60 * * * *"}),
        json!({"cron": "* 24 * * *"}),
        json!({"cron": "* * 0 * *"}),
        json!({"cron": "* * * 13 *"}),
        json!({"cron": "* * * MOON *"}),
        json!({"cron": "* * * * 8"}),
        json!({"cron": "* * * * FRI-TUE"}),
        json!({"cron": "*/0 * * * *"}),
        json!({"cron": "*/90 * * * *"}),
        json!({"cron": "1,,2 * * * *"}),
        json!({"cron": "+1 * * * *"}),
        json!({"cron": "22-6 * * * *"}),
        json!({"cron": "0 0 31 2 *"}),
        json!({"cron": "0 0 31 4,6,9,11 *"}),
        json!({"cron": "@often"}),
        json!({"cron": "* * * * *", "timezone": "Europe/Berln"}),
        json!({"cron": "* * * * *", "timezone": "New York"}),
        json!({"cron": "* * * * *", "timezone": "Mars/Olympus_Mons"}),
        json!({"cron": "* * * * *", "timezone": "+02:00"}),
        json!({"cron": "* * * * *", "overlap": "perhaps"}),
        json!({"cron": "* * * * *", "jitter": "25h", "max_age": "1s"}),
        json!({"cron": "* * * * *", "start_at": "2026-12-02T00:00", "end_at": "2026-12-01T00:00"}),
        json!({"cron": "0 9 1 * *", "start_at": "2026-12-02T00:00", "end_at": "2026-12-31T00:00"}),
        json!({"cron": "* * * * *", "time_zone": "UTC"}),
    ];
    let report: Vec<String> =
        cases.iter().map(|case| format!("{case}\n    {}", refusal(case.clone()))).collect();
    insta::assert_snapshot!(report.join("\n"));
}

#[test]
fn a_schedule_of_whole_days_says_the_time_at_which_it_runs() {
    let anchor = "2026-11-21T13:03:20Z".parse().unwrap();
    let berlin = |every: &str| json!({"every": every, "timezone": "Europe/Berlin"});
    let starts = json!({"every": "1d", "start_at": "2026-10-23T09:00", "timezone": "Europe/Berlin"});
    for (schedule, from, before) in [
        (
            berlin("1d"),
            "Every day at 14:03 (Europe/Berlin).",
            "Every day, at the time of the approval (Europe/Berlin).",
        ),
        (
            berlin("2 days"),
            "Every 2 days at 14:03 (Europe/Berlin).",
            "Every 2 days, at the time of the approval (Europe/Berlin).",
        ),
        (
            berlin("1w"),
            "Every 7 days on Saturday at 14:03 (Europe/Berlin).",
            "Every 7 days, at the time of the approval (Europe/Berlin).",
        ),
        (berlin("24h"), "Every 24 hours (Europe/Berlin).", "Every 24 hours (Europe/Berlin)."),
        (
            starts,
            "Every day, from 23 October 2026 at 09:00 (Europe/Berlin).",
            "Every day, from 23 October 2026 at 09:00 (Europe/Berlin).",
        ),
    ] {
        let schedule: Schedule = serde_json::from_value(schedule).unwrap();
        assert_eq!(
            (schedule.describe_from(Some(anchor)).as_str(), schedule.describe_from(None).as_str()),
            (from, before)
        );
    }
    // It is the time at which it runs, also after the clock has changed.
    let daily: Schedule = serde_json::from_value(berlin("1d")).unwrap();
    for at in daily.fire_times(anchor, "2027-03-26T12:00:00Z".parse().unwrap(), 4) {
        assert_eq!(at.to_zoned_datetime(daily.time_zone().clone()).strftime("%H:%M").to_string(), "14:03");
    }
}

#[test]
fn schedules_speak_english() {
    let cases = [
        json!({"at": "2026-12-01T09:00", "timezone": "europe/berlin"}),
        json!({"every": "1h"}),
        json!({"every": "1d", "start_at": "2026-10-23T09:00", "timezone": "Europe/Berlin"}),
        json!({"every": "24h", "start_at": "2026-10-23T09:00", "timezone": "Europe/Berlin"}),
        json!({"every": "2 weeks"}),
        json!({"every": "1d 12h"}),
        json!({"every": "PT90M", "start_at": "2026-12-01T09:00", "end_at": "2026-12-24T12:00:30Z"}),
        json!({"cron": "* * * * *"}),
        json!({"cron": "*/15 * * * *"}),
        json!({"cron": "@hourly"}),
        json!({"cron": "10,40 * * * *"}),
        json!({"cron": "0 */2 * * *"}),
        json!({"cron": "0 9 * * MON-FRI", "timezone": "America/New_York"}),
        json!({"cron": "30 8,17 * * 1,3,4,5,0"}),
        json!({"cron": "*/10 9-17 * * *"}),
        json!({"cron": "5,7 9-17 * * SAT,SUN"}),
        json!({"cron": "0 0 1,15 * *"}),
        json!({"cron": "0 0 L 3,6,9,12 *"}),
        json!({"cron": "0 9 13 * FRI"}),
        json!({"cron": "0 9 */2 * MON"}),
        json!({"cron": "0 6 10,L JUN-AUG *"}),
    ];
    let report: Vec<String> = cases
        .iter()
        .map(|case| {
            format!("{case}\n    {}", serde_json::from_value::<Schedule>(case.clone()).unwrap().describe())
        })
        .collect();
    insta::assert_snapshot!(report.join("\n"));
}

#[test]
fn defaults_are_filled_in() {
    let cases = [
        (
            json!({"cron": " 0  9 * * * "}),
            json!({"cron": "0 9 * * *", "timezone": "UTC", "overlap": "skip", "catch_up": "latest", "max_age": "1d"}),
        ),
        (
            json!({"every": "15m", "catch_up": "all"}),
            json!({"every": "15m", "timezone": "UTC", "overlap": "skip", "catch_up": "all", "max_age": "7d"}),
        ),
        (
            json!({"at": "2026-12-01T09:00:00+01:00", "timezone": "europe/BERLIN", "catch_up": "none", "overlap": "queue", "jitter": "PT30S"}),
            json!({"at": "2026-12-01T09:00:00+01:00", "timezone": "Europe/Berlin", "overlap": "queue", "catch_up": "none", "jitter": "PT30S"}),
        ),
    ];
    for (given, printed) in cases {
        let schedule: Schedule = serde_json::from_value(given).unwrap();
        assert_eq!(serde_json::to_value(&schedule).unwrap(), printed);
    }
}

#[test]
fn the_documentation_shows_schedules_that_are_accepted() {
    assert_eq!(Schedule::name(), ScheduleInput::name());
    let schema = serde_json::to_value(Schedule::schema()).unwrap();
    assert_eq!(schema, serde_json::to_value(ScheduleInput::schema()).unwrap());
    assert_eq!(schema["additionalProperties"], false);
    let examples = schema["examples"].as_array().unwrap();
    assert_eq!(examples.len(), 3);
    for example in examples {
        serde_json::from_value::<Schedule>(example.clone()).unwrap();
    }
}

proptest! {
    #[test]
    fn what_prints_parses_back(
        timing in prop_oneof![
            any_cron().prop_map(|cron| json!({"cron": cron})),
            (60i64..86_400).prop_map(|seconds| json!({"every": format!("{seconds}s")})),
            (0i64..4_000_000_000).prop_map(|second| json!({"at": jiff::Timestamp::from_second(second).unwrap()})),
        ],
        overlap in prop::sample::select(&["skip", "queue", "replace"][..]),
        catch_up in prop::sample::select(&["none", "latest", "all"][..]),
        max_age in prop::option::of(60i64..86_400),
        jitter in prop::option::of(0i64..86_400),
    ) {
        let mut json = timing;
        json["overlap"] = overlap.into();
        json["catch_up"] = catch_up.into();
        if let Some(max_age) = max_age { json["max_age"] = format!("{max_age}s").into(); }
        if let Some(jitter) = jitter { json["jitter"] = format!("{jitter}s").into(); }
        let schedule: Schedule = serde_json::from_value(json).unwrap();
        let printed = serde_json::to_string(&schedule).unwrap();
        let parsed: Schedule = serde_json::from_str(&printed).unwrap();
        prop_assert_eq!(&parsed, &schedule);
        prop_assert_eq!(serde_json::to_string(&parsed).unwrap(), printed);
        let zone = schedule.timezone();
        prop_assert!(schedule.describe().contains(zone));
    }

    #[test]
    fn no_input_makes_the_parser_panic(text in "[@*0-9A-Za-z,/ -]{0,24}") {
        for key in ["at", "every", "cron"] {
            if let Ok(schedule) = serde_json::from_value::<Schedule>(json!({key: text})) {
                let printed = serde_json::to_value(&schedule).unwrap();
                prop_assert_eq!(serde_json::from_value::<Schedule>(printed).unwrap(), schedule);
            }
        }
    }
}
