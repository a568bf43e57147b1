//! Any text as each of the fields of a schedule: what parses prints and parses back, has a sentence, and its fire times
//! increase. The first byte selects the field and the time zone, the next eight are the instant to begin at.

#![no_main]

use domain::schedule::{Schedule, ScheduleInput};
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;

const ZONES: [&str; 8] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Nuuk",
    "Africa/Casablanca",
    "Pacific/Apia",
    "America/Santiago",
];

fuzz_target!(|data: &[u8]| {
    let Some((&[choice, ref instant @ ..], text)) = data.split_first_chunk::<9>() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let some = || Some(text.to_owned());
    let mut input = ScheduleInput {
        timezone: Some(ZONES[usize::from(choice >> 4) % ZONES.len()].to_owned()),
        ..ScheduleInput::default()
    };
    match choice & 15 {
        0 => input.at = some(),
        1 => input.every = some(),
        2 => (input.every, input.start_at) = (Some("1h".into()), some()),
        3 => (input.every, input.end_at) = (Some("1h".into()), some()),
        4 => (input.every, input.jitter) = (Some("1h".into()), some()),
        5 => (input.every, input.timezone) = (Some("1h".into()), some()),
        _ => input.cron = some(),
    }
    let Ok(schedule) = input.validate() else { return };
    let printed = ScheduleInput::from(schedule.clone());
    let parsed: Schedule = printed.clone().validate().expect("what prints parses");
    assert_eq!(parsed, schedule);
    assert_eq!(ScheduleInput::from(parsed), printed);
    assert!(!schedule.describe().is_empty());

    let Ok(from) = Timestamp::from_second(i64::from_be_bytes(*instant) % 250_000_000_000) else { return };
    let mut last = from;
    for fire in schedule.fire_times(from, from, 5) {
        assert!(fire > last, "{fire} after {last}");
        last = fire;
    }
});
