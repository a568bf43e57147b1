//! Concurrent writers, and a server that is killed while they write. Prints how many records were sent, found, lost and
//! duplicated.
//!
//! ```text
//! cargo build --profile bench -p bench -p tests --bin server --bin races
//! target/release/examples/races
//! ```
//!
//! Exits with 1 if anything was lost or duplicated.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use reqwest::Client;
use serde_json::{Value, json};
use tests::logs::{counted, export, hook, imported, report, upload};
use tests::program::{self, Server};

const WRITERS: usize = 8;
const EACH: usize = 500;
const KILLS: usize = 5;

/// The number of logs in the imported archive, and of lines per log.
const LOGS: usize = 200;
const LINES: usize = 500;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// The result of one race.
struct Row {
    what: String,
    wanted: usize,
    /// The number of requests, including retries.
    sent: usize,
    counts: BTreeMap<String, usize>,
    took: Duration,
}

impl Row {
    fn lost(&self) -> usize {
        self.wanted.saturating_sub(self.counts.len())
    }

    fn doubled(&self) -> usize {
        self.counts.values().filter(|&&count| count > 1).count()
    }

    fn print(&self) {
        let found: usize = self.counts.values().sum();
        println!(
            "{:<52} {:>7} {:>7} {:>7} {:>6} {:>8} {:>8.1}",
            self.what,
            self.wanted,
            self.sent,
            found,
            self.lost(),
            self.doubled(),
            self.took.as_secs_f64()
        );
    }
}

async fn call(client: &Client, url: &str, tool: &str, arguments: Value) -> Result<Value> {
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments},
    });
    let request = client.post(url).header("accept", "application/json, text/event-stream").json(&message);
    let answer: Value = serde_json::from_slice(&request.send().await?.bytes().await?)?;
    let result = &answer["result"];
    if result["isError"] == json!(false) {
        Ok(result["structuredContent"].clone())
    } else {
        Err(format!("{tool}: {answer}").into())
    }
}

/// Updates one document over MCP, from two clients at once.
async fn updates(url: &str, count: usize) -> Result<Row> {
    let clients = [tests::client(), tests::client()];
    let url = format!("{url}/mcp?workflow=race-{count}");
    call(&clients[0], &url, "parse_mode", json!({"prompt": "PLAN a race"})).await?;
    let began = Instant::now();
    let updates = (0..count).map(|n| {
        let arguments = json!({"mode": "ACT", "progress": [format!("step {n}")]});
        call(&clients[n % 2], &url, "update_context", arguments)
    });
    for answer in join_all(updates).await {
        answer?;
    }
    let took = began.elapsed();
    let read = call(&clients[1], &url, "read_context", json!({})).await?;
    let mut counts = BTreeMap::new();
    for step in read["contextDocument"]["sections"][1]["progress"].as_array().ok_or("no progress")? {
        *counts.entry(step.as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    let what = format!("{count} updates of one document, two clients");
    Ok(Row { what, wanted: count, sent: count, counts, took })
}

/// Sends twenty concurrent hooks for each of four agents.
async fn at_once(client: &Client, url: &str) -> Result<Row> {
    let began = Instant::now();
    let hooks = (0..80).map(|n| async move {
        report(client, url, &hook(&format!("agent-{}", n % 4), &format!("at-once-{n}"))).await
    });
    let sent = join_all(hooks).await.into_iter().sum();
    let took = began.elapsed();
    let files = export(client, url).await?;
    let mut counts = BTreeMap::new();
    for (_, log) in
        files.iter().filter(|(path, _)| path.contains("/agent-") && !path.contains("instructions"))
    {
        counts.extend(counted(log)?);
    }
    Ok(Row { what: "20 hooks of each of 4 agents".to_owned(), wanted: 80, sent, counts, took })
}

/// Eight writers append to one log while the server is killed.
async fn appends(program: &Path, data: &Path) -> Result<Row> {
    let mut server = Server::start(&mut program::command(program, data));
    let (url, port) = (server.url.clone(), server.port().to_owned());
    let done = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (url, done) = (url.clone(), Arc::clone(&done));
            tokio::spawn(async move {
                let (client, mut sent) = (tests::client(), 0);
                for n in 0..EACH {
                    sent += report(&client, &url, &hook("arch-race", &format!("{writer}-{n}"))).await;
                    done.fetch_add(1, Ordering::Relaxed);
                }
                sent
            })
        })
        .collect();
    for kill in 1..=KILLS {
        while done.load(Ordering::Relaxed) < WRITERS * EACH * kill / (KILLS + 1) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(server);
        server = Server::start(program::command(program, data).env("LAMPLIGHTER_PORT", &port));
    }
    let mut sent = 0;
    for writer in writers {
        sent += writer.await?;
    }
    let took = began.elapsed();
    let files = export(&tests::client(), &url).await?;
    let log = files.iter().find(|(path, _)| path.ends_with("/arch-race.jsonl")).ok_or("no log")?.1;
    let what = format!("{WRITERS} writers × {EACH} into one log, {KILLS} × kill -9");
    Ok(Row { what, wanted: WRITERS * EACH, sent, counts: counted(log)?, took })
}

/// Imports an archive while the server is killed.
async fn import(program: &Path, data: &Path) -> Result<Row> {
    let mut server = Server::start(&mut program::command(program, data));
    let (url, port, client) = (server.url.clone(), server.port().to_owned(), tests::client());
    let log = |log: usize| {
        let mut text = String::new();
        for n in 0..LINES {
            let _ = writeln!(
                text,
                r#"{{"event":"agent_start","description":"{log}-{n}","timestamp":"2025-08-12T14:00:00Z"}}"#
            );
        }
        text
    };
    let zip =
        shared::flows::archive::write((0..LOGS).map(|n| (format!("import/arch-{n:03}.jsonl"), log(n))))?;
    let began = Instant::now();
    let path = upload(&client, &url, zip).await?;
    let mut kills = 0;
    for kill in 0..KILLS {
        tokio::time::sleep(Duration::from_millis(60 + 40 * kill as u64)).await;
        drop(server);
        kills += 1;
        server = Server::start(program::command(program, data).env("LAMPLIGHTER_PORT", &port));
        let answer = client.get(format!("{url}{path}")).send().await?.bytes().await?;
        if serde_json::from_slice::<Value>(&answer)?["state"] == "done" {
            break;
        }
    }
    let done = imported(&client, &url, &path).await?;
    let took = began.elapsed();
    let mut counts = BTreeMap::new();
    for (_, log) in export(&client, &url).await?.iter().filter(|(path, _)| path.starts_with("import/arch-")) {
        for (line, count) in counted(log)? {
            *counts.entry(line).or_default() += count;
        }
    }
    let what = format!("import of {} logs, {kills} × kill -9", done["logs"]);
    Ok(Row { what, wanted: LOGS * LINES, sent: 1, counts, took })
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let program = program::beside()?;
    println!(
        "{:<52} {:>7} {:>7} {:>7} {:>6} {:>8} {:>8}",
        "race", "wanted", "sent", "found", "lost", "doubled", "seconds"
    );
    let mut rows = Vec::new();
    let mut end = |row: Row| {
        row.print();
        rows.push((row.lost(), row.doubled()));
    };
    let data = tempfile::tempdir()?;
    let server = Server::start(&mut program::command(&program, data.path()));
    for count in [20, 200] {
        end(updates(&server.url, count).await?);
    }
    end(at_once(&tests::client(), &server.url).await?);
    drop(server);
    end(appends(&program, tempfile::tempdir()?.path()).await?);
    end(import(&program, tempfile::tempdir()?.path()).await?);
    let whole = rows.iter().all(|counts| *counts == (0, 0));
    println!("{}", if whole { "nothing was lost or doubled" } else { "something was lost or doubled" });
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
