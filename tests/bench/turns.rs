//! The cost of a turn without its model. The demo model answers at once, over HTTP, with the data in a folder.
//!
//! ```text
//! cargo run --profile bench -p bench --bin turns
//! ```
//!
//! Prints the time to the first event, to the first text and to the end; then the same for 32 concurrent chats. Exits
//! with 1 if a turn fails.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use futures::future::join_all;
use lamplighter_local::engines::DataLocation;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::BudgetConfig;
use tests::Harness;

/// Turns before the measurement, to open connections and load pages.
const WARM_UP: usize = 20;

/// Sequential turns, each the first of its chat; then further turns of one chat.
const ALONE: usize = 200;

const CHATS: usize = 32;
const TURNS_EACH: usize = 10;

/// The times of one turn.
struct Took {
    first_event: Duration,
    first_words: Duration,
    whole: Duration,
}

#[tokio::main]
async fn main() -> ExitCode {
    let data = tempfile::tempdir().expect("a temporary folder");
    let h = Harness::with(PlatformConfig {
        data: DataLocation::Folder(data.path().join("data")),
        budget: BudgetConfig { day_micros: i64::MAX / 2, ..BudgetConfig::default() },
        ..PlatformConfig::in_memory()
    })
    .await;
    let agent = h.agent().await;
    println!("memory at the start: {}", memory());
    let mut errors = Vec::new();
    for _ in 0..WARM_UP {
        errors.extend(turn(&h, &agent, None).await.err());
    }

    let (mut first, mut further) = (Vec::new(), Vec::new());
    let mut chat = None;
    for _ in 0..ALONE {
        match turn(&h, &agent, None).await {
            Ok((took, new)) => {
                first.push(took);
                chat.get_or_insert(new);
            }
            Err(error) => errors.push(error),
        }
    }
    for _ in 0..ALONE / 4 {
        match turn(&h, &agent, chat.as_ref()).await {
            Ok((took, _)) => further.push(took),
            Err(error) => errors.push(error),
        }
    }
    table("first turns of a chat", &first);
    table("further turns of a chat", &further);

    let began = Instant::now();
    let together = join_all((0..CHATS).map(async |_| {
        let (mut took, mut errors, mut chat) = (Vec::new(), Vec::new(), None);
        for _ in 0..TURNS_EACH {
            match turn(&h, &agent, chat.as_ref()).await {
                Ok((turn, id)) => {
                    took.push(turn);
                    chat = Some(id);
                }
                Err(error) => errors.push(error),
            }
        }
        (took, errors)
    }))
    .await;
    let elapsed = began.elapsed().as_secs_f64();
    let mut took = Vec::new();
    for (more, failed) in together {
        took.extend(more);
        errors.extend(failed);
    }
    table(&format!("{CHATS} chats at once"), &took);
    println!("{:.0} turns a second; memory: {}", took.len() as f64 / elapsed, memory());
    println!("{} errors", errors.len());
    for error in errors.iter().take(10) {
        println!("  {error}");
    }
    h.platform.stop().await;
    if errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One turn, followed to its end. Returns its times and its chat.
async fn turn(h: &Harness, agent: &str, chat: Option<&String>) -> Result<(Took, String), String> {
    let body = json!({"message": "Hello, what can you do?", "chat_id": chat});
    let request = h.request(Method::POST, &format!("/agents/{agent}/chat"));
    let request = request.header("accept", "text/event-stream").json(&body);
    let began = Instant::now();
    let mut response = request.send().await.map_err(|error| error.to_string())?;
    if response.status() != 200 {
        return Err(format!("{}: {}", response.status(), response.text().await.unwrap_or_default()));
    }
    let (mut first_event, mut first_words, mut text) = (None, None, String::new());
    while let Some(piece) = response.chunk().await.map_err(|error| error.to_string())? {
        text.push_str(&String::from_utf8_lossy(&piece));
        for (name, seen) in [("run.started", &mut first_event), ("message.delta", &mut first_words)] {
            if seen.is_none() && text.contains(&format!("event: {name}\n")) {
                *seen = Some(began.elapsed());
            }
        }
    }
    let whole = began.elapsed();
    let (Some(first_event), Some(first_words), true) =
        (first_event, first_words, text.contains("event: run.completed\n"))
    else {
        return Err(format!("the turn did not complete: {text}"));
    };
    let started = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or_default();
    let started: Value = serde_json::from_str(started).map_err(|error| error.to_string())?;
    let chat = started["chat_id"].as_str().ok_or("the first event names no chat")?.to_owned();
    Ok((Took { first_event, first_words, whole }, chat))
}

fn table(what: &str, took: &[Took]) {
    let row = |name: &str, of: fn(&Took) -> Duration| {
        let mut values: Vec<Duration> = took.iter().map(of).collect();
        values.sort_unstable();
        let at = |share: f64| {
            let index = (values.len() as f64 * share) as usize;
            let value = values.get(index.min(values.len().saturating_sub(1)));
            value.copied().unwrap_or_default().as_secs_f64() * 1e3
        };
        println!("  {name:12} p50 {:8.2} ms   p99 {:8.2} ms", at(0.5), at(0.99));
    };
    println!("{what} ({} turns)", took.len());
    row("first event", |took| took.first_event);
    row("first words", |took| took.first_words);
    row("whole turn", |took| took.whole);
}

/// The memory of this process as Linux reports it: resident now, and the peak.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib: Option<f64> = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        kib.map_or_else(|| "-".to_owned(), |kib| format!("{:.0} MB", kib / 1024.0))
    };
    format!("{} resident, {} at the peak", of("VmRSS:"), of("VmHWM:"))
}
