//! A week of appointments with a clock change, an outage and crashes: a small version of the benchmark of ninety days.

use domain::schedule::{CatchUp, Overlap};
use jiff::Timestamp;
use jiff::civil::DateTime;
use tests::appointments::{Appointment, Timing};
use tests::season::Season;
use tests::seasons::seasons;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_week_nothing_is_lost_or_done_twice() {
    fn at_half_past_two(wall: DateTime) -> bool {
        wall.hour() == 2 && wall.minute() == 30
    }
    let new = |timing, overlap, catch_up| Appointment::new(timing, "Europe/Berlin", overlap, catch_up);
    let nightly = Timing::Wall("30 2 * * *", at_half_past_two);
    // On the 29th half past two does not exist. The outage is from the 25th to the 28th.
    let season = Season {
        start: at("2026-03-24T12:00:00Z"),
        days: 6,
        outage: (at("2026-03-25T12:00:00Z"), at("2026-03-28T12:00:00Z")),
        appointments: vec![
            new(nightly.clone(), Overlap::Skip, CatchUp::Latest),
            new(nightly.clone(), Overlap::Queue, CatchUp::All).max_age_hours(48),
            new(nightly, Overlap::Replace, CatchUp::None),
            new(Timing::At("2026-03-29T02:10"), Overlap::Skip, CatchUp::Latest),
        ],
        duplicates: 0.2,
        killed: 0.1,
        seed: 7,
    };
    let outcome = season.play().await;
    assert_eq!(outcome.wrong, [""; 0], "{outcome:#?}");
    // Runs by hand: six nights, three times each, and one that is due once.
    assert_eq!(outcome.due, 6 * 3 + 1, "{outcome:#?}");
    assert_eq!(outcome.ends.get("missed CatchUpOff"), Some(&3), "{outcome:#?}");
    assert_eq!(outcome.ends.get("missed Superseded"), Some(&2), "{outcome:#?}");
    assert_eq!(outcome.ends.get("missed TooOld"), Some(&1), "{outcome:#?}");
}

#[test]
fn the_simulated_wall_clock_shows_the_clock_changes() {
    let all: Vec<_> =
        seasons(0.0, 0.0).into_iter().map(|season| (season.start, season.appointments)).collect();
    let cases = [
        // The first action is due at 23:00 in each of its zones, around the night in which that hour is special.
        (2, 0, "America/Nuuk", "2027-03-27T23:00:00Z", "2027-03-28T12:00:00Z", "2027-03-28T01:00:00Z"),
        (1, 1, "Africa/Cairo", "2026-10-29T12:00:00Z", "2026-10-30T12:00:00Z", "2026-10-29T20:00:00Z"),
        (1, 2, "Asia/Beirut", "2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z", "2026-10-24T20:00:00Z"),
        (0, 3, "America/Santiago", "2026-04-04T12:00:00Z", "2026-04-05T12:00:00Z", "2026-04-05T02:00:00Z"),
    ];
    for (season, index, zone, from, to, due) in cases {
        let appointment = &all[season].1[index];
        assert_eq!((appointment.zone, appointment.due(at(from), at(to))), (zone, vec![at(due)]));
    }
}
