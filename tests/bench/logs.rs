//! Figures for long context logs: the import of a file, and reads of its end.
//!
//! ```text
//! cargo build --profile bench -p bench -p tests --bin server --bin logs
//! target/release/examples/logs                        # or fewer lines: … logs 50000
//! ```
//!
//! Exits with 1 if a line is missing. `races` measures concurrent writers.

use std::error::Error;
use std::fmt::Write;
use std::time::{Duration, Instant};

use reqwest::Client;
use serde_json::Value;
use shared::flows::archive;
use tests::logs::{hook, imported, report, upload};
use tests::program::{self, Server};

/// Lines of the long log.
const LINES: usize = 500_000;

/// Lines of the short log for comparison.
const SHORT: usize = 1_000;

/// How often the end of each log is read.
const READS: usize = 300;

/// Entries per read.
const TAIL: usize = 100;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

fn long_file(lines: usize) -> String {
    let mut text = String::with_capacity(lines * 120);
    for n in 1..=lines {
        let _ = writeln!(
            text,
            r#"{{"event":"agent_start","agent_id":"arch-large","description":"Entry {n}","timestamp":"2025-08-12T14:00:00.000Z"}}"#
        );
    }
    text
}

/// Imports a log by upload. Returns the size of its archive and the time from the first request to the end.
async fn import(client: &Client, url: &str, path: &str, lines: usize) -> Result<(usize, Duration)> {
    let zip = archive::write([(path, long_file(lines))])?;
    let size = zip.len();
    let began = Instant::now();
    let place = upload(client, url, zip).await?;
    let done = imported(client, url, &place).await?;
    if done["entries"] != lines {
        return Err(format!("lines are missing: {done}").into());
    }
    Ok((size, began.elapsed()))
}

/// Reads the ends of several logs in turn, so that a busy machine slows all of them equally. Returns the sorted times
/// of each log.
async fn tails(client: &Client, url: &str, agents: &[&str]) -> Result<Vec<Vec<Duration>>> {
    let mut took = vec![Vec::with_capacity(READS); agents.len()];
    for _ in 0..READS {
        for (agent, took) in agents.iter().zip(&mut took) {
            let began = Instant::now();
            let path = format!("{url}/context/logs/{agent}?lines={TAIL}");
            let answer = client.get(path).send().await?.bytes().await?;
            took.push(began.elapsed());
            let answer: Value = serde_json::from_slice(&answer)?;
            if answer["entries"].as_array().map(Vec::len) != Some(TAIL) {
                return Err(format!("{agent} has another number of entries").into());
            }
        }
    }
    took.iter_mut().for_each(|took| took.sort_unstable());
    Ok(took)
}

#[tokio::main]
async fn main() -> Result<()> {
    let lines = std::env::args().nth(1).map_or(Ok(LINES), |text| text.parse())?;
    let data = tempfile::tempdir()?;
    let server = Server::start(&mut program::command(&program::beside()?, data.path()));
    let (client, url) = (tests::client(), server.url.as_str());

    let (size, took) = import(&client, url, "dev-perf/arch-large.jsonl", lines).await?;
    println!(
        "import: {lines} lines, {:.1} MB ({:.1} MB as a zip), by upload: {:.1} s",
        long_file(lines).len() as f64 / 1e6,
        size as f64 / 1e6,
        took.as_secs_f64()
    );
    import(&client, url, "dev-perf/arch-small.jsonl", SHORT).await?;
    for n in 0..SHORT {
        report(&client, url, &hook("arch-hot", &format!("hot-{n}"))).await;
    }

    let agents = ["arch-large", "arch-small", "arch-hot"];
    // Warm up: the first reads open connections and load pages that stay.
    tails(&client, url, &agents[1..]).await?;
    let before = server.resident()?;
    let took = tails(&client, url, &agents).await?;
    let after = server.resident()?;
    let at = |agent: usize, percent: usize| took[agent][READS * percent / 100].as_secs_f64();
    for (n, agent) in agents.iter().enumerate() {
        println!(
            "last {TAIL} of {agent}: {:.2} ms p50, {:.2} ms p99 over HTTP",
            at(n, 50) * 1e3,
            at(n, 99) * 1e3
        );
    }
    println!(
        "ratio to {SHORT} lines: {:.2} (imported), {:.2} (from hooks); memory grew by {:.1} MB over {READS} reads each",
        at(0, 50) / at(1, 50),
        at(0, 50) / at(2, 50),
        (after - before) as f64 / 1024.0
    );
    Ok(())
}
