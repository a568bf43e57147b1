//! Context logs under load, as figures: appends that meet while the server is killed, a long file that is imported, and its
//! end that is read.
//!
//! ```text
//! cargo build --release -p tests --bin server --example logs
//! target/release/examples/logs                        # or fewer lines: … logs 50000
//! ```
//!
//! Ends with 1 where a line was lost or doubled.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reqwest::Client;
use serde_json::{Value, json};
use shared::archive::{self, Limits};

/// Lines of the long log.
const LINES: usize = 500_000;

/// Lines of the one it is compared with.
const SHORT: usize = 1_000;

/// How often each log's end is read.
const READS: usize = 300;

/// Entries of one such read.
const TAIL: usize = 100;

const WRITERS: usize = 8;
const EACH: usize = 500;
const KILLS: usize = 5;

const ARCHIVE: Limits =
    Limits { entries: 1_000, entry_bytes: 1 << 30, total_bytes: 1 << 32, path_bytes: 1_000 };

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// The server beside this program, on a folder of its own; killed when it is dropped.
struct Server {
    child: Child,
    url: String,
    /// It writes to this until it ends.
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    fn start(program: &Path, data: &Path, port: &str) -> Result<Self> {
        let mut command = Command::new(program);
        command.env_clear().env("LAMPLIGHTER_DATA", data).env("LAMPLIGHTER_PORT", port);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut stdout = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        let url = line.trim_end().strip_prefix("Lamplighter runs at ").ok_or("the server did not start")?;
        Ok(Self { url: url.to_owned(), child, _stdout: stdout })
    }

    /// What Linux says of it, in KiB.
    fn resident(&self) -> Result<i64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGKILL: it gets no chance to put anything in order.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hook(agent: &str, call: &str) -> Value {
    json!({
        "session_id": "0f2c1f9e-5b1d-4a7e-9f0e-0d6a3b6f2a11", "hook_event_name": "PreToolUse",
        "tool_name": "Task", "tool_use_id": call,
        "tool_input": {
            "subagent_type": "the-architect", "description": call,
            "prompt": format!("AgentId: {agent}\nWork on {call}"),
        },
    })
}

/// Sends a hook until it is acknowledged; how often it had to be sent.
async fn report(client: &Client, url: &str, payload: &Value) -> usize {
    for sent in 1.. {
        let answer = client.post(format!("{url}/context/hooks")).json(payload).send().await;
        if answer.is_ok_and(|answer| answer.status() == 200) {
            return sent;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    0
}

async fn export(client: &Client, url: &str) -> Result<HashMap<String, String>> {
    let zip = client.get(format!("{url}/context/export")).send().await?.error_for_status()?.bytes().await?;
    let files = archive::read(&zip, &ARCHIVE)?;
    files.into_iter().map(|file| Ok((file.path, String::from_utf8(file.bytes)?))).collect()
}

/// How often each description is in a log.
fn counted(log: &str) -> Result<BTreeMap<String, usize>> {
    let mut counts = BTreeMap::new();
    for line in log.lines() {
        let entry: Value = serde_json::from_str(line)?;
        *counts.entry(entry["description"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    Ok(counts)
}

/// Eight writers at one log, and a server that is killed under them. Gives how many lines are lost and doubled.
async fn race(program: &Path, data: &Path) -> Result<(usize, usize)> {
    let mut server = Server::start(program, data, "0")?;
    let url = server.url.clone();
    let port = url.rsplit(':').next().ok_or("no port")?.to_owned();
    let done = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
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
        server = Server::start(program, data, &port)?;
    }
    let mut sent = 0;
    for writer in writers {
        sent += writer.await?;
    }
    let took = begun.elapsed();
    let files = export(&tests::client(), &url).await?;
    let log = files.iter().find(|(path, _)| path.ends_with("/arch-race.jsonl")).ok_or("no log")?.1;
    let counts = counted(log)?;
    let lost = WRITERS * EACH - counts.len();
    let doubled = counts.values().filter(|&&count| count > 1).count();
    println!(
        "race: {WRITERS} writers × {EACH} into one log, {KILLS} × kill -9: {sent} sent, {} acknowledged, {} found, \
         {lost} lost, {doubled} doubled; {:.1} s, {:.0} a second",
        WRITERS * EACH,
        log.lines().count(),
        took.as_secs_f64(),
        (WRITERS * EACH) as f64 / took.as_secs_f64()
    );
    Ok((lost, doubled))
}

/// Four agents, twenty hooks of each at once.
async fn at_once(client: &Client, url: &str) -> Result<bool> {
    let hooks = (0..80).map(|n| async move {
        report(client, url, &hook(&format!("agent-{}", n % 4), &format!("at-once-{n}"))).await
    });
    futures::future::join_all(hooks).await;
    let mut found = Vec::new();
    for agent in 0..4 {
        let log = format!("{url}/context/logs/agent-{agent}?lines=1000");
        let answer: Value = serde_json::from_slice(&client.get(log).send().await?.bytes().await?)?;
        found.push(answer["entries"].as_array().map_or(0, Vec::len));
    }
    println!("at once: 4 agents × 20: {found:?} entries");
    Ok(found == [20; 4])
}

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

async fn import(client: &Client, url: &str, path: &str, text: &str) -> Result<(usize, Duration, Value)> {
    let zip = archive::write([(path, text)])?;
    let size = zip.len();
    let begun = Instant::now();
    let request = client.post(format!("{url}/context/import")).header("content-type", "application/zip");
    let answer = request.body(zip).send().await?;
    let report = serde_json::from_slice(&answer.bytes().await?)?;
    Ok((size, begun.elapsed(), report))
}

/// Reads the ends of several logs by turns, so that a busy machine slows all alike. Gives the median of each.
async fn tails(client: &Client, url: &str, agents: &[&str]) -> Result<Vec<Duration>> {
    let mut took = vec![Vec::with_capacity(READS); agents.len()];
    for _ in 0..READS {
        for (agent, took) in agents.iter().zip(&mut took) {
            let begun = Instant::now();
            let path = format!("{url}/context/logs/{agent}?lines={TAIL}");
            let answer = client.get(path).send().await?.bytes().await?;
            took.push(begun.elapsed());
            let answer: Value = serde_json::from_slice(&answer)?;
            if answer["entries"].as_array().map(Vec::len) != Some(TAIL) {
                return Err(format!("{agent} has another number of entries").into());
            }
        }
    }
    Ok(took
        .into_iter()
        .map(|mut took| {
            took.sort_unstable();
            took[took.len() / 2]
        })
        .collect())
}

#[tokio::main]
async fn main() -> Result<()> {
    let lines = std::env::args().nth(1).map_or(Ok(LINES), |text| text.parse())?;
    let folder: PathBuf = std::env::current_exe()?.parent().and_then(Path::parent).ok_or("no folder")?.into();
    let program = folder.join("server");
    if !program.is_file() {
        return Err(format!("{} is missing: build it first", program.display()).into());
    }
    let (race_data, data) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let (lost, doubled) = race(&program, race_data.path()).await?;

    let server = Server::start(&program, data.path(), "0")?;
    let (client, url) = (tests::client(), server.url.as_str());
    let all_found = at_once(&client, url).await?;

    let text = long_file(lines);
    let (size, took, done) = import(&client, url, "dev-perf/arch-large.jsonl", &text).await?;
    println!(
        "import: {lines} lines, {:.1} MB ({:.1} MB as a zip): {:.1} s; {done}",
        text.len() as f64 / 1e6,
        size as f64 / 1e6,
        took.as_secs_f64()
    );
    import(&client, url, "dev-perf/arch-small.jsonl", &long_file(SHORT)).await?;
    for n in 0..SHORT {
        report(&client, url, &hook("arch-hot", &format!("hot-{n}"))).await;
    }

    let agents = ["arch-large", "arch-small", "arch-hot"];
    // Warm: the first reads make connections and pages that stay.
    tails(&client, url, &agents[1..]).await?;
    let before = server.resident()?;
    let medians = tails(&client, url, &agents).await?;
    let after = server.resident()?;
    for (agent, median) in agents.iter().zip(&medians) {
        println!("last {TAIL} of {agent}: {:.2} ms p50 over HTTP", median.as_secs_f64() * 1e3);
    }
    let ratio = |other: usize| medians[0].as_secs_f64() / medians[other].as_secs_f64();
    println!(
        "ratio to {SHORT} lines: {:.2} (imported), {:.2} (from hooks); memory grew by {:.1} MB over {READS} reads each",
        ratio(1),
        ratio(2),
        (after - before) as f64 / 1024.0
    );
    if lost + doubled > 0 || !all_found {
        return Err("lines were lost or doubled".into());
    }
    Ok(())
}
