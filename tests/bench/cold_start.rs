//! How long each function takes from exec to its first poll, next to a hello world of the same profile.
//!
//! ```text
//! cargo build --release --workspace --exclude lamplighter-local --exclude lamplighter-cli --exclude tests --exclude bench \
//!     --bins --example hello_lambda                   # what is deployed, with the features that it is deployed with
//! cargo run -p bench --bin cold_start             # or another folder: … -- target/debug
//! ```
//!
//! Prints a table: the median of several starts, taken in turn so that a busy machine slows all binaries equally; the
//! ratio to hello world; the size of the binary; and its memory while it waits for the first invocation.
//!
//! Exits with 1 if a start or a size of a release build is more than half above what is asked for. A start is compared with hello
//! world's of the same run, because a busy machine slows both. A size does not depend on the machine. Builds in other folders are only
//! measured, because what is deployed is a release build.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Starts of each binary.
const STARTS: usize = 21;

/// What is asked for: a start, in starts of hello world.
const STARTS_OF_HELLO: f64 = 2.0;

/// What is asked for: the size of a binary, in MB. Lambda loads it before it starts, so a larger one starts later.
const MEGABYTES: f64 = 12.0;

/// A figure may be so many times what is asked for. The difference is for the other work of the machine, and for new
/// features.
const TOLERATED: f64 = 1.5;

/// A binary and its measurements.
struct Measured {
    name: &'static str,
    path: PathBuf,
    starts: Vec<Duration>,
    /// Resident memory in KiB at the last start. `None` if the system does not report it.
    resident: Option<u64>,
}

impl Measured {
    fn new(name: &'static str, path: PathBuf) -> Self {
        Self { name, path, starts: Vec::new(), resident: None }
    }

    fn median(&mut self) -> Duration {
        self.starts.sort_unstable();
        self.starts[self.starts.len() / 2]
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "target/release".to_owned());
    let folder = Path::new(&folder);
    let hello = folder.join("examples/hello_lambda");
    if !hello.is_file() {
        return Err(format!("{} is missing: build it first", hello.display()).into());
    }
    let mut all = vec![Measured::new("hello_lambda", hello)];
    for function in catalog::NAMES {
        let path = folder.join(function);
        if path.is_file() {
            all.push(Measured::new(function, path));
        } else {
            eprintln!("{} is missing", path.display());
        }
    }
    for _ in 0..STARTS {
        for measured in &mut all {
            start(measured)?;
        }
    }
    let hello = all[0].median();
    let is_judged = folder.ends_with("release");
    let mut missed = Vec::new();
    println!("{:20} {:>9} {:>7} {:>9} {:>9}", "binary", "start ms", "ratio", "size MB", "RSS MB");
    for measured in &mut all {
        let median = measured.median();
        let ratio = median.as_secs_f64() / hello.as_secs_f64();
        let size = std::fs::metadata(&measured.path)?.len() as f64 / 1e6;
        let resident =
            measured.resident.map_or_else(|| "-".to_owned(), |kib| format!("{:.1}", kib as f64 / 1024.0));
        println!(
            "{:20} {:>9.2} {ratio:>7.2} {size:>9.1} {resident:>9}",
            measured.name,
            median.as_secs_f64() * 1e3
        );
        for (what, value, asked) in
            [("starts of hello world", ratio, STARTS_OF_HELLO), ("MB of size", size, MEGABYTES)]
        {
            let most = asked * TOLERATED;
            if is_judged && value > most {
                missed.push(format!("{}: {value:.1} {what}, more than {most:.1}", measured.name));
            }
        }
    }
    for what in &missed {
        println!("{what}");
    }
    Ok(if missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Starts a binary, waits for its first poll, and ends it.
fn start(measured: &mut Measured) -> Result<(), Box<dyn Error>> {
    let api = TcpListener::bind("127.0.0.1:0")?;
    let begun = Instant::now();
    let mut child = Command::new(&measured.path)
        .env_clear()
        .envs([
            ("AWS_ACCESS_KEY_ID", "id"),
            // The endpoint uses TLS, so the certificates are loaded. It refuses at once, because the time of a
            // handshake depends on the network.
            ("AWS_ENDPOINT_URL_DYNAMODB", "https://127.0.0.1:1"),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512"),
            ("AWS_LAMBDA_FUNCTION_NAME", measured.name),
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            // With a model, as deployed: its client is part of the start.
            ("ANTHROPIC_API_KEY", "key"),
        ])
        .env("AWS_LAMBDA_RUNTIME_API", api.local_addr()?.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    let polled = first_poll(&api).map(|()| begun.elapsed());
    measured.resident = resident(&child);
    child.kill()?;
    child.wait()?;
    measured.starts.push(polled?);
    Ok(())
}

fn first_poll(api: &TcpListener) -> Result<(), Box<dyn Error>> {
    loop {
        let (connection, _) = api.accept()?;
        let mut line = String::new();
        BufReader::new(connection).read_line(&mut line)?;
        if line.starts_with("GET /2018-06-01/runtime/invocation/next ") {
            return Ok(());
        }
    }
}

/// The resident memory of a process, as Linux reports it.
fn resident(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}
