//! Measures how punctual, how fair and how expensive the executors are, on the whole local platform with its data in a
//! folder, in real time.
//!
//! ```text
//! cargo run --profile bench -p bench --bin on_time -- lag 500 300     # actions, spread over so many seconds
//! cargo run --profile bench -p bench --bin on_time -- fair 10000 20   # due of one owner, seconds of a run
//! cargo run --profile bench -p bench --bin on_time -- burst 1000 20   # runs due at once, seconds of a run
//! ```
//!
//! `lag` prints how long after their due times runs start. `fair` prints when the runs of twenty other owners start.
//! `burst` prints when the last run starts, and what Lambda costs per run, compared with one run per invocation. Ten
//! executors drive ten runs each, and get messages as from Lambda's event source mapping. Exits with 1 if a run was
//! lost or started early, or if a figure misses its goal.

mod due;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage};
use domain::actions::Occurrence;
use domain::ids::{ActionId, Owner};
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::engines::DataLocation;
use lamplighter_local::engines::queue::Queue;
use lamplighter_local::platform::PlatformConfig;
use serde_json::Value;
use shared::Cx;
use shared::flows::executor::sweep::sweep;
use shared::runtime::function::{Invocation, Trigger};
use tests::Harness;
use tests::model::{Says, ScriptedModel};
use tokio::task::JoinSet;

const EXECUTORS: usize = 10;

/// The memory of an executor in GB, and what a GB-second costs in dollars.
const MEMORY: f64 = 0.5;
const GB_SECOND: f64 = 0.000_013_333_4;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |at: usize, default: usize| arguments.get(at).map_or(default, |text| text.parse().expect("a number"));
    let good = match arguments.first().map(String::as_str) {
        Some("lag") => lag(number(1, 500), number(2, 300)).await,
        Some("fair") => fair(number(1, 10_000), number(2, 20)).await,
        Some("burst") => burst(number(1, 1_000), number(2, 20)).await,
        _ => {
            eprintln!("say `lag`, `fair` or `burst`");
            false
        }
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The platform, its executors and its timer.
struct Bed {
    h: Harness,
    _model: ScriptedModel,
    /// The time of all invocations, in milliseconds.
    busy: Arc<AtomicU64>,
    work: JoinSet<()>,
    _data: tempfile::TempDir,
}

impl Bed {
    async fn start(seconds_of_a_run: usize) -> Self {
        let data = tempfile::tempdir().expect("a temporary folder");
        let model = ScriptedModel::start(|_: &[Value]| Says::Text("Lamp oil is dear.".into())).await;
        // A run calls its model twice: for its work, and once more after its output was saved.
        model.takes(Duration::from_millis(seconds_of_a_run as u64 * 500));
        let h = Harness::with(PlatformConfig {
            data: DataLocation::Folder(data.path().join("data")),
            automatic: false,
            executors: EXECUTORS,
            models: model.config("scripted"),
            ..PlatformConfig::in_memory()
        })
        .await;
        Self { h, _model: model, busy: Arc::default(), work: JoinSet::new(), _data: data }
    }

    fn cx(&self) -> &Cx {
        &self.h.platform.cx
    }

    /// Starts the timer and the executors.
    fn work(&mut self) {
        let cx = self.cx().clone();
        self.work.spawn(async move {
            let mut minutes = tokio::time::interval(Duration::from_secs(60));
            loop {
                minutes.tick().await;
                let deadline = cx.clock.now() + SignedDuration::from_secs(60);
                sweep(&cx, deadline).await.expect("the table answers");
            }
        });
        let queue = self.h.platform.engines().queue("scheduled-executor").expect("executors have a queue");
        for _ in 0..EXECUTORS {
            self.work.spawn(execute(self.cx().clone(), queue.clone(), self.busy.clone()));
        }
    }

    /// Waits until each action has an occurrence that has ended. With `begin`, one that has started is enough.
    async fn occurrences(
        &self,
        due: &[(Owner, ActionId)],
        begin: bool,
        patience: Duration,
    ) -> Vec<Occurrence> {
        let until = Instant::now() + patience;
        loop {
            let found = due::occurrences(self.cx(), due).await;
            let at_rest = |occurrence: &&Occurrence| {
                if begin { occurrence.started_at.is_some() } else { occurrence.state.is_final() }
            };
            if found.iter().filter(at_rest).count() >= due.len() || Instant::now() >= until {
                return found;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn stop(mut self) {
        self.work.shutdown().await;
        self.h.platform.stop().await;
    }
}

/// One executor, which gets messages as from Lambda's event source mapping.
async fn execute(cx: Cx, queue: Queue, busy: Arc<AtomicU64>) {
    let function = catalog::ALL.iter().find(|function| function.name == "scheduled-executor");
    let Some(Trigger::Queue { handler }) = function.map(|function| function.trigger) else {
        panic!("a queue wakes the executor")
    };
    loop {
        let messages = queue.receive(shared::runtime::lambda::BATCH, Duration::from_secs(20)).await;
        if messages.is_empty() {
            continue;
        }
        let mut event = SqsEvent::default();
        event.records.extend(messages.iter().map(|message| {
            let mut record = SqsMessage::default();
            record.message_id = Some(message.id.to_string());
            record.body = Some(message.body.to_string());
            record
        }));
        let began = Instant::now();
        let invocation = Invocation { deadline: cx.clock.now() + SignedDuration::from_mins(15) };
        let response = shared::runtime::lambda::batch(cx.clone(), handler, invocation, event).await;
        busy.fetch_add(began.elapsed().as_millis() as u64, Ordering::Relaxed);
        for message in messages {
            let id = message.id.to_string();
            if response.batch_item_failures.iter().all(|failed| failed.item_identifier != id) {
                let _ = queue.delete(message.receipt);
            }
        }
    }
}

fn in_seconds(seconds: usize) -> Timestamp {
    let now = Timestamp::from_second(Timestamp::now().as_second()).expect("an instant");
    now + SignedDuration::from_secs(seconds as i64)
}

/// Prints the percentiles, and returns (shortest, p50, p99, longest).
fn print(what: &str, lags: &[f64]) -> [f64; 4] {
    let at = |share| due::percentile(lags, share);
    let [min, p50, p99, max] = [at(0.0), at(0.5), at(0.99), at(1.0)];
    println!(
        "{what}: {} started; shortest {min:.3} s, p50 {p50:.3} s, p99 {p99:.3} s, longest {max:.3} s",
        lags.len()
    );
    [min, p50, p99, max]
}

async fn lag(count: usize, seconds: usize) -> bool {
    let mut bed = Bed::start(0).await;
    // Late enough that all actions are approved before the sweep that sends the first.
    let first = 120 + count / 50;
    let times: Vec<Timestamp> = (0..count).map(|n| in_seconds(first + n * seconds / count)).collect();
    let due = due::approve(
        bed.cx(),
        times.into_iter().enumerate().map(|(n, at)| (due::owner("owner", n % 50), at)),
    )
    .await;
    println!("{count} actions are due within {seconds} s, from {first} s on");
    bed.work();
    let patience = Duration::from_secs((first + seconds + 60) as u64);
    let occurrences = bed.occurrences(&due, false, patience).await;
    let lags = due::lags(&occurrences);
    let [min, p50, p99, _] = print("start after due time", &lags);
    bed.stop().await;
    lags.len() == count && min >= 0.0 && p50 <= 0.3 && p99 <= 1.5
}

async fn fair(count: usize, seconds: usize) -> bool {
    const OTHERS: usize = 20;
    let mut bed = Bed::start(seconds).await;
    let at = in_seconds(120 + count / 40);
    // The others are due when the executors are busy with the first owner's runs.
    let later = at + SignedDuration::from_secs(5);
    let noisy = (0..count).map(|_| (due::owner("noisy", 0), at));
    due::approve(bed.cx(), noisy).await;
    let others = due::approve(bed.cx(), (0..OTHERS).map(|n| (due::owner("quiet", n), later))).await;
    println!(
        "{count} of one owner are due in {:.0} s, one each of {OTHERS} others 5 s later",
        at.duration_since(Timestamp::now()).as_secs_f64()
    );
    bed.work();
    let wait = later.duration_since(Timestamp::now()).unsigned_abs() + Duration::from_secs(300);
    let lags = due::lags(&bed.occurrences(&others, true, wait).await);
    let [min, _, _, max] = print("the others, after their due time", &lags);
    bed.stop().await;
    lags.len() == OTHERS && min >= 0.0 && max <= 5.0
}

async fn burst(count: usize, seconds: usize) -> bool {
    let mut bed = Bed::start(seconds).await;
    let at = in_seconds(120 + count / 40);
    let due = due::approve(bed.cx(), (0..count).map(|n| (due::owner("owner", n % 100), at))).await;
    println!(
        "{count} runs of {seconds} s are due in {:.0} s",
        at.duration_since(Timestamp::now()).as_secs_f64()
    );
    bed.work();
    let rounds = count.div_ceil(EXECUTORS);
    let patience = Duration::from_secs((180 + count / 40 + rounds * seconds) as u64);
    let occurrences = bed.occurrences(&due, false, patience).await;
    let lags = due::lags(&occurrences);
    let [min, _, _, max] = print("start after due time", &lags);
    let alone = occurrences.iter().filter_map(|occurrence| {
        Some(occurrence.finished_at?.duration_since(occurrence.started_at?).as_secs_f64())
    });
    let alone: f64 = alone.sum();
    // Executors may still have the last batch, but all runs have ended.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let together = bed.busy.load(Ordering::Relaxed) as f64 / 1_000.0;
    let dollars = |seconds: f64| seconds * MEMORY * GB_SECOND / count as f64;
    println!(
        "Lambda for a run: ${:.7}; with one run per invocation ${:.7}: {:.1} %",
        dollars(together),
        dollars(alone),
        together / alone * 100.0
    );
    bed.stop().await;
    let bound = (count * seconds) as f64 / (EXECUTORS * shared::runtime::lambda::BATCH) as f64 * 1.1;
    lags.len() == count && min >= 0.0 && max <= bound && together / alone <= 0.15
}
