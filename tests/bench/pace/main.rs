//! How many runs a second the local platform does, beside two other engines for durable work on the same machine.
//!
//! ```text
//! cargo run --profile bench -p bench --bin pace                 # or another number of runs: … -- 1000
//! cargo run --profile bench -p bench --bin pace -- 500 FOLDER   # keeps the packages of the others in FOLDER
//! cargo run --profile bench -p bench --bin pace -- ours 500     # without the others
//! cargo run -p bench --bin pace -- count                        # only counts
//! ```
//!
//! A run has six stored steps: claim, model, save, model, check, finish. All runs are due at one second. The model is a process of
//! its own, which answers at once. Restate comes from npm and DBOS from PyPI; they are skipped, with the reason, if they can't be installed or
//! started. Prints for each engine runs a second, how late runs begin, processor time and bytes on the disk for each run, and the ratios.
//! Then it counts what one run asks of the table, which AWS bills.

#[path = "../due.rs"]
mod due;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use domain::models::{ModelId, ModelRef, ServerName, Vendor};
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::engines::DataLocation;
use lamplighter_local::engines::faults::{FaultConfig, FaultRates};
use lamplighter_local::platform::PlatformConfig;
use models::{ModelsConfig, ServerConfig};
use serde_json::Value;
use tests::Harness;
use tests::model::{Says, ScriptedModel, free_server};

/// The packages of the others.
const RESTATE: [&str; 2] = ["@restatedev/restate-server@1.7.12", "@restatedev/restate-sdk@1.17.2"];
const DBOS: &str = "dbos==3.4.0";

/// How many runs are counted.
const COUNTED: usize = 20;

/// Dollars for a write and a read request unit (on demand, us-east-1).
const WRITE_UNIT: f64 = 0.625 / 1e6;
const READ_UNIT: f64 = 0.125 / 1e6;

/// What was measured of one engine.
struct Measured {
    runs: usize,
    seconds: f64,
    /// How late each run began, in seconds.
    delays: Vec<f64>,
    /// Processor time in seconds, without that of the model.
    processor: Option<f64>,
    bytes: u64,
}

impl Measured {
    fn pace(&self) -> f64 {
        self.runs as f64 / self.seconds
    }

    fn row(&self, name: &str) -> String {
        let at = |share| due::percentile(&self.delays, share);
        let processor = self
            .processor
            .map_or("-".to_owned(), |seconds| format!("{:.1}", seconds * 1e3 / self.runs as f64));
        format!(
            "{name:<24} {:>8.1} {:>9.2} {:>9.2} {:>9.2} {processor:>12} {:>9.1}",
            self.pace(),
            at(0.5),
            at(0.99),
            at(1.0),
            self.bytes as f64 / 1024.0 / self.runs as f64
        )
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(8 << 20)
        .build()
        .expect("a runtime");
    if arguments.first().is_some_and(|word| word == "model") {
        runtime.block_on(serve_model());
        return ExitCode::SUCCESS;
    }
    let model = Model::start();
    if arguments.first().is_some_and(|word| word == "count") {
        runtime.block_on(count(&model.url));
        return ExitCode::SUCCESS;
    }
    let alone = arguments.first().is_some_and(|word| word == "ours");
    let arguments = &arguments[usize::from(alone)..];
    let runs = arguments.first().map_or(500, |text| text.parse().expect("a number of runs"));
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = arguments.get(1).map_or_else(|| temporary.path().to_owned(), PathBuf::from);

    println!("{runs} runs due at one second\n");
    println!(
        "{:<24} {:>8} {:>9} {:>9} {:>9} {:>12} {:>9}",
        "", "runs/s", "p50 s", "p99 s", "last s", "processor ms", "KiB/run"
    );
    let mut rows = Vec::new();
    let mut add = |name: &str, measured: Result<Measured, String>| match measured {
        Ok(measured) => {
            println!("{}", measured.row(name));
            rows.push((name.to_owned(), measured));
        }
        Err(reason) => println!("{name:<24} skipped: {reason}"),
    };
    for owners in [1, 50] {
        let measured = runtime.block_on(ours(&model.url, runs, owners));
        add(&format!("ours, {owners} owner(s)"), Ok(measured));
    }
    if !alone {
        add("Restate", restate(&folder, runs, &model.url));
        add("DBOS on SQLite", dbos(&folder, runs, &model.url));
    }
    println!();
    let ours = rows[0].1.pace();
    for (name, measured) in rows.iter().skip(1) {
        println!("ours, 1 owner(s) : {name} = {:.2}", ours / measured.pace());
    }
    println!();
    runtime.block_on(count(&model.url));
    ExitCode::SUCCESS
}

/// The model of all engines, in a process of its own.
struct Model {
    process: Child,
    url: String,
}

impl Model {
    fn start() -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        let mut process = Command::new(program)
            .arg("model")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the model starts");
        let mut url = String::new();
        BufReader::new(process.stdout.take().expect("it is piped"))
            .read_line(&mut url)
            .expect("it says its address");
        Self { process, url: url.trim().to_owned() }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn serve_model() {
    let model = ScriptedModel::start(|_: &[Value]| Says::Text("Lamp oil is dear.".into())).await;
    println!("{}", model.url());
    // Until the program that started it has ended.
    let _ = tokio::task::spawn_blocking(|| std::io::stdin().lines().count()).await;
}

/// The platform with its data in a folder, as `cargo run` starts it.
async fn platform(model: &str, data: &Path, automatic: bool, faults: Option<FaultConfig>) -> Harness {
    let reference =
        ModelRef { vendor: Vendor::Server(ServerName::COMPATIBLE), model: ModelId::new("scripted") };
    let models = ModelsConfig { forced: Some(reference), ..free_server(ServerConfig::at(model.to_owned())) };
    Harness::with(PlatformConfig {
        data: DataLocation::Folder(data.join("data")),
        automatic,
        // As many as `cargo run` has.
        executors: 16,
        models,
        faults,
        ..PlatformConfig::in_memory()
    })
    .await
}

async fn ours(model: &str, runs: usize, owners: usize) -> Measured {
    let data = tempfile::tempdir().expect("a temporary folder");
    let h = platform(model, data.path(), true, None).await;
    let cx = &h.platform.cx;
    // Late enough that all are approved before the sweep that sends them.
    let first = Timestamp::from_second(Timestamp::now().as_second()).expect("an instant");
    let due_at = first + SignedDuration::from_secs(70 + runs as i64 / 25);
    let due = due::approve(cx, (0..runs).map(|n| (due::owner("owner", n % owners), due_at))).await;
    assert!(Timestamp::now() < due_at, "the machine is too slow to approve {runs} actions in time");
    let wait = due_at.duration_since(Timestamp::now()) - SignedDuration::from_secs(1);
    tokio::time::sleep(wait.unsigned_abs()).await;
    let (bytes, processor) = (size(data.path()), processor());
    tokio::time::sleep(due_at.duration_since(Timestamp::now()).unsigned_abs()).await;
    let began = Instant::now();
    let occurrences = loop {
        let found = due::occurrences(cx, &due).await;
        if found.len() == runs && found.iter().all(|occurrence| occurrence.state.is_final()) {
            break found;
        }
        assert!(began.elapsed() < Duration::from_secs(600), "the runs do not end");
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    let processor = processor.zip(self::processor()).map(|(before, after)| after - before);
    let ends = occurrences.iter().filter_map(|occurrence| occurrence.finished_at);
    let last = ends.max().expect("there are runs").duration_since(due_at).as_secs_f64();
    let delays = due::lags(&occurrences);
    let measured = Measured { runs, seconds: last, delays, processor, bytes: size(data.path()) - bytes };
    h.platform.stop().await;
    measured
}

/// Prints what one run asks of the table and the bucket.
async fn count(model: &str) {
    let data = tempfile::tempdir().expect("a temporary folder");
    let faults = FaultConfig { seed: 1, rates: FaultRates::default(), slow_by: Duration::ZERO };
    let h = platform(model, data.path(), false, Some(faults)).await;
    let cx = &h.platform.cx;
    let due_at = Timestamp::now() + SignedDuration::from_secs(5);
    let due = due::approve(cx, (0..COUNTED).map(|_| (due::owner("owner", 0), due_at))).await;
    let wait = due_at.duration_since(Timestamp::now()).as_secs_f64().max(0.0);
    tokio::time::sleep(Duration::from_secs_f64(wait)).await;
    let faults = h.platform.engines().faults().expect("they are configured");
    faults.count();
    shared::flows::executor::sweep::sweep(cx, Timestamp::MAX).await.expect("the table answers");
    tests::executors::Executors::of(&h.platform, 1).work().await;
    let figures = faults.figures().expect("it counts");
    let ended =
        due::occurrences(cx, &due).await.into_iter().filter(|occurrence| occurrence.state.is_final()).count();
    assert_eq!(ended, COUNTED, "all runs have ended");
    let each = |number: f64| number / COUNTED as f64;
    println!("One run asks the table and the bucket {:.1} times:", each(figures.all_requests() as f64));
    for (kind, requests) in &figures.requests {
        println!("  {kind:<20} {:>6.2}", each(*requests as f64));
    }
    println!("  The items that it names:");
    for (kind, times) in &figures.items {
        println!("  {kind:<48} {:>6.2}", each(*times as f64));
    }
    let (read, write) = (each(figures.read_units), each(figures.write_units));
    println!(
        "{read:.1} read units and {write:.1} write units: ${:.2} for 1,000,000 runs",
        (read * READ_UNIT + write * WRITE_UNIT) * 1e6
    );
    h.platform.stop().await;
}

fn restate(folder: &Path, runs: usize, model: &str) -> Result<Measured, String> {
    let packages = folder.join("restate");
    if !packages.join("node_modules").exists() {
        std::fs::create_dir_all(&packages).map_err(|error| error.to_string())?;
        std::fs::write(packages.join("package.json"), r#"{"private": true}"#)
            .map_err(|error| error.to_string())?;
        let mut install = Command::new("npm");
        install.arg("install").arg("--prefix").arg(&packages).args(["--no-audit", "--no-fund", "--silent"]);
        succeeds(install.args(RESTATE))?;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("pace/restate.mjs");
    measured(Command::new("node").arg(script).arg(&packages).arg(runs.to_string()).arg(model), runs)
}

fn dbos(folder: &Path, runs: usize, model: &str) -> Result<Measured, String> {
    let environment = folder.join("dbos");
    if !environment.exists() {
        succeeds(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        succeeds(Command::new(environment.join("bin/pip")).args(["install", "--quiet", DBOS]))?;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("pace/dbos_runs.py");
    measured(Command::new(environment.join("bin/python")).arg(script).arg(runs.to_string()).arg(model), runs)
}

fn succeeds(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// Runs a program that prints what it measured.
fn measured(command: &mut Command, runs: usize) -> Result<Measured, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    let said: Value = serde_json::from_slice(&output.stdout).map_err(|_| {
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        format!("{program}: {}", error.trim().lines().last().unwrap_or("it prints nothing"))
    })?;
    let number = |name: &str| said[name].as_f64().ok_or_else(|| format!("{program}: no `{name}`"));
    Ok(Measured {
        runs,
        seconds: number("seconds")?,
        delays: said["delays"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect(),
        processor: Some(number("processor")?),
        bytes: number("bytes")?.max(0.0) as u64,
    })
}

/// The processor time of this process so far, in seconds, where the system says it.
fn processor() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    // Linux counts in hundredths of a second.
    Some((ticks()? + ticks()?) / 100.0)
}

/// The bytes that the files of a folder take on the disk.
fn size(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let one = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        #[cfg(unix)]
        Ok(metadata) => std::os::unix::fs::MetadataExt::blocks(&metadata) * 512,
        #[cfg(not(unix))]
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.flatten().map(one).sum()
}
