//! Attacks on the platform, with counts. Anybody can repeat them. Each program exits with 1 if anything is wrong.
//!
//! ```text
//! cargo build -p tests --bin server        # the server that is killed and measured is a separate program
//! cargo run -p bench --bin attack -- isolation     # a stranger calls every route with foreign ids
//! cargo run -p bench --bin attack -- cards         # keys without the scope try to raise ceilings
//! cargo run -p bench --bin attack -- inputs        # invalid input to every route
//! cargo run -p bench --bin attack -- imports       # hostile archives, imported into accounts
//! cargo run -p bench --bin attack -- scripts       # hostile scripts, styles and other files of a theme, in checks
//! cargo run -p bench --bin attack -- kills         # kill -9 under load
//! cargo run -p bench --bin attack -- burst         # 150 actions due in one second, and kill -9
//! cargo run -p bench --bin attack -- growth        # memory and latency while data grows
//! cargo run -p bench --bin attack -- all
//! ```
//!
//! Requests are generated from `/openapi.json`, so new routes are attacked without a change here. A number after the
//! name is the seed (default 1); the same seed gives the same requests.

#![allow(clippy::unwrap_used, reason = "a program that measures panics where it can't measure")]

mod burst;
mod cards;
mod growth;
mod imports;
mod inputs;
mod isolation;
mod scripts;

use std::process::ExitCode;
use std::time::Instant;

use tests::{kills, program};

/// The number of kills in `kills`, and the number of concurrent writers.
const KILLS: usize = 42;
const WRITERS: usize = 6;

#[tokio::main]
async fn main() -> ExitCode {
    let what = std::env::args().nth(1).unwrap_or_default();
    let seed = std::env::args().nth(2).map_or(1, |text| text.parse().expect("the seed is a number"));
    let names: Vec<&str> = match what.as_str() {
        "all" => vec!["isolation", "cards", "inputs", "imports", "scripts", "kills", "burst", "growth"],
        one => vec![one],
    };
    let mut is_well = true;
    for name in names {
        let began = Instant::now();
        let wrong = match name {
            "isolation" => isolation::attack(seed).await,
            "cards" => cards::attack(seed).await,
            "inputs" => inputs::attack(seed).await,
            "imports" => imports::attack(seed).await,
            "scripts" => scripts::attack().await,
            "kills" => kill().await,
            "burst" => burst::attack().await,
            "growth" => growth::measure().await,
            _ => {
                eprintln!(
                    "usage: attack isolation|cards|inputs|imports|scripts|kills|burst|growth|all [seed]"
                );
                return ExitCode::from(2);
            }
        };
        println!("{name}: {} wrong, in {:.1} s", wrong.len(), began.elapsed().as_secs_f64());
        wrong.iter().take(40).for_each(|what| println!("  {what}"));
        is_well &= wrong.is_empty();
    }
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn kill() -> Vec<String> {
    let data = tempfile::tempdir().unwrap();
    let server = program::beside().unwrap();
    let figures = kills::kill(|| program::command(&server, data.path()), KILLS, WRITERS).await;
    println!("{figures}");
    figures.wrong()
}
