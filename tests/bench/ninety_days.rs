//! Three seasons of ninety days on the real store: clock changes in both directions, crashes, duplicates, an outage of
//! three days.
//!
//! ```text
//! cargo run --profile bench -p bench --bin ninety_days           # or a few days around the outage: … -- 10
//! ```
//!
//! Prints the results of the due times of each season, and everything that is wrong. Exits with 1 if anything is wrong.

use std::process::ExitCode;

use tests::seasons::seasons;

/// The share of messages that are delivered twice, and of executors and sweeps that are killed.
const DUPLICATES: f64 = 0.1;
const KILLED: f64 = 0.05;

// On one thread: the parts wait for each other, and switching threads takes longer than most of their work.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let days: Option<i64> = std::env::args().nth(1).map(|text| text.parse().expect("a number of days"));
    let mut wrong = 0;
    // One after the other, because the time of each season is reported.
    for season in seasons(DUPLICATES, KILLED) {
        let season = match days {
            Some(days) => season.shortened(days),
            None => season,
        };
        let outcome = season.play().await;
        println!(
            "{} days from {}: {} appointments, {} due times, in {:.1} s",
            season.days,
            season.start,
            season.appointments.len(),
            outcome.due,
            outcome.took.as_secs_f64()
        );
        println!(
            "  {} executors and {} sweeps killed, {} duplicate deliveries, nothing from {} to {}",
            outcome.executors_killed,
            outcome.sweeps_killed,
            outcome.duplicates,
            season.outage.0,
            season.outage.1
        );
        for (end, count) in &outcome.ends {
            println!("  {count:6} {end}");
        }
        for what in &outcome.wrong {
            println!("  WRONG: {what}");
        }
        wrong += outcome.wrong.len();
    }
    println!("{wrong} wrong");
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
