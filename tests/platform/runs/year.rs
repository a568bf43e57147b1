//! What runs are told about the time over a year, in twelve zones: the right local date, and when they were due.

use jiff::civil::{Date, Weekday, date};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan, ZonedDateTime};
use serde_json::{Value, json};
use tests::model::{Says, ScriptedModel};
use tests::stage::{Stage, noon};

/// Three of them never change their clocks. The others do so in both halves of the earth, by 30 minutes, at midnight, and twice around
/// a month that moves.
const ZONES: [&str; 12] = [
    "Europe/Berlin",
    "Europe/Dublin",
    "America/New_York",
    "America/St_Johns",
    "America/Santiago",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Asia/Beirut",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Asia/Tokyo",
    "UTC",
];

fn writes(_: &[Value]) -> Says {
    Says::Text("A report.".into())
}

/// The days on which the clock changes in the year after noon.
fn changes(zone: &TimeZone) -> Vec<Date> {
    let end = noon() + SignedDuration::from_hours(24 * 365);
    let changes = zone.following(noon()).take_while(|change| change.timestamp() < end);
    changes.map(|change| zone.to_datetime(change.timestamp()).date()).collect()
}

/// These days, each with the day after it, and a Sunday of every third month. A domain test has every day of the year.
fn days(zone: &TimeZone) -> Vec<Date> {
    let changes = changes(zone).into_iter();
    let mut days: Vec<Date> = changes.flat_map(|day| [day, day.tomorrow().unwrap()]).collect();
    let months = (0..4).map(|quarter| date(2026, 12, 1) + (3 * quarter).months());
    days.extend(months.map(|first| first.nth_weekday_of_month(1, Weekday::Sunday).unwrap()));
    days.sort();
    days.dedup();
    days
}

/// A moment as a person says it, made by another library's formats.
fn words(at: Timestamp, zone: &TimeZone) -> String {
    let name = zone.iana_name().unwrap();
    at.to_zoned_datetime(zone.clone()).strftime(&format!("%A, %-d %B %Y, %H:%M ({name}, UTC%:z)")).to_string()
}

/// What each run of this moment was told, before its task.
fn told(model: &ScriptedModel, from: usize) -> Vec<String> {
    let sent = model.sent().into_iter().skip(from);
    sent.map(|sent| {
        let task = sent["messages"][1]["content"].as_str().unwrap().to_owned();
        task[..task.find("</now>").unwrap()].to_owned()
    })
    .collect()
}

/// The time between two days that are looked at is skipped with a stop of the account.
async fn passes_to(stage: &Stage, at: Timestamp) {
    stage.h.post("/account/stop", json!({})).await.expect(200);
    stage.clock.set(at);
    stage.h.post("/account/start", json!({"missed": "skip"})).await.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_run_of_a_year_knows_its_local_date_and_its_due_time() {
    let (mut daily, mut weekly, mut changed, mut expected_changes) = (0, 0, 0, 0);
    for name in ZONES {
        let model = ScriptedModel::start(writes).await;
        let stage = Stage::with(model.config("scripted")).await;
        let zone = TimeZone::get(name).unwrap();
        for (cron, title) in [("30 2 * * *", "Daily"), ("0 9 * * SUN", "Weekly")] {
            let schedule = json!({"cron": cron, "timezone": name, "catch_up": "latest"});
            stage.approved(json!({"title": title, "schedule": schedule})).await;
        }
        expected_changes += changes(&zone).len();
        let mut before: Option<ZonedDateTime> = None;
        for day in days(&zone) {
            // A time in a gap is the first moment after it. A time that comes twice is the first of the two.
            let at = |hour, minute| {
                let nominal = zone.to_ambiguous_zoned_datetime(day.at(hour, minute, 0, 0));
                let is_gap = matches!(nominal.offset(), jiff::tz::AmbiguousOffset::Gap { .. });
                let compatible = nominal.compatible().unwrap().timestamp();
                match is_gap {
                    true => zone.preceding(compatible).next().unwrap().timestamp(),
                    false => compatible,
                }
            };
            let mut dues = vec![at(2, 30)];
            if day.weekday() == Weekday::Sunday {
                dues.push(at(9, 0));
            }
            passes_to(&stage, dues[0] - SignedDuration::from_mins(1)).await;
            for (n, due) in dues.into_iter().enumerate() {
                let began = due + SignedDuration::from_mins(3);
                let asked = model.asked();
                stage.clock.set(began);
                stage.sweep().await;
                stage.executors.work().await;
                let expected = format!(
                    "<now>\nIt is {}. This run was due on {}, and begins 3 min late.\n",
                    words(began, &zone),
                    words(due, &zone)
                );
                let told = told(&model, asked);
                assert!(!told.is_empty(), "{name}: nothing was due on {day}");
                for told in told {
                    assert_eq!(told, expected, "{name}");
                }
                *(if n == 0 { &mut daily } else { &mut weekly }) += 1;
            }
            let now = stage.clock.now().to_zoned_datetime(zone.clone());
            changed += usize::from(before.is_some_and(|before| before.offset() != now.offset()));
            before = Some(now);
        }
    }
    println!(
        "{daily} daily and {weekly} weekly runs; the clock was changed {changed} times between two of them"
    );
    assert!(daily > 12 * 5 && weekly >= 12 * 4, "{daily} {weekly}");
    assert_eq!(
        (changed, expected_changes >= 12),
        (expected_changes, true),
        "each change of the clock lies between two runs"
    );
}
