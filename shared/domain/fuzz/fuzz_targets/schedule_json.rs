//! Any JSON: a schedule that parses prints as JSON that parses to the same schedule and prints the same.

#![no_main]

use domain::schedule::Schedule;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(schedule) = serde_json::from_slice::<Schedule>(data) else { return };
    let printed = serde_json::to_string(&schedule).expect("a schedule is plain data");
    let parsed: Schedule = serde_json::from_str(&printed).expect("what prints parses");
    assert_eq!(parsed, schedule);
    assert_eq!(serde_json::to_string(&parsed).expect("a schedule is plain data"), printed);
});
