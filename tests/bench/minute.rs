//! Ten thousand actions that are due in the same minute, on the whole local platform with its data in a folder.
//!
//! ```text
//! cargo run --profile bench -p bench --bin minute            # or another number: … -- 1000
//! ```
//!
//! Two sweeps overlap, eight executors work, every tenth message is delivered twice, and executors are killed. Prints
//! how long the dispatch of all actions took, the delay of dispatches and starts, and the results. Exits with 1 if an
//! action was lost or ran twice.

mod due;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use base::clock::{Clock, ManualClock};
use domain::actions::{Occurrence, OccurrenceState};
use domain::ids::{ActionId, AssetId, Owner, RunId};
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::engines::DataLocation;
use lamplighter_local::platform::PlatformConfig;
use serde_json::Value;
use shared::Cx;
use shared::flows::executor::sweep::sweep;
use tests::Harness;
use tests::executors::{Executors, LEASE, Worked};
use tests::model::{Says, ScriptedModel};

const EXECUTORS: usize = 8;
const DUPLICATES: f64 = 0.1;
const KILLED: f64 = 0.05;

/// The number of actions per owner.
const EACH: usize = 100;

/// A clock that stands still until it is started. Then it runs like the system clock, and can be set forward.
struct Minute {
    clock: ManualClock,
    due: Timestamp,
    ahead: Arc<AtomicI64>,
}

impl Minute {
    /// Starts the minute. The clock runs until the runtime ends.
    fn begin(&self) -> Instant {
        let began = Instant::now();
        let (clock, due, ahead) = (self.clock.clone(), self.due, self.ahead.clone());
        // The clock is set now, not with the first tick: a sweep before the first tick would find nothing due.
        clock.set(due);
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(Duration::from_millis(1));
            loop {
                ticks.tick().await;
                let millis = began.elapsed().as_millis() as i64 + ahead.load(Ordering::Relaxed);
                clock.set(due + SignedDuration::from_millis(millis));
            }
        });
        began
    }

    fn forward(&self, by: SignedDuration) {
        self.ahead.fetch_add(by.as_millis() as i64, Ordering::Relaxed);
        self.clock.set(self.clock.now() + by);
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let count = std::env::args().nth(1).map_or(10_000, |text| text.parse().expect("a number of actions"));
    let data = tempfile::tempdir().expect("a temporary folder");
    let noon: Timestamp = "2026-11-21T12:00:00Z".parse().expect("an instant");
    let minute = Minute {
        clock: ManualClock::at(noon - SignedDuration::from_hours(1)),
        due: noon,
        ahead: Arc::default(),
    };
    let model = ScriptedModel::start(|_: &[Value]| Says::Text("Lamp oil is dear.".into())).await;
    let h = Harness::with(PlatformConfig {
        data: DataLocation::Folder(data.path().join("data")),
        clock: Clock::Manual(minute.clock.clone()),
        automatic: false,
        models: model.config("scripted"),
        ..PlatformConfig::in_memory()
    })
    .await;
    let cx = &h.platform.cx;

    let began = Instant::now();
    let owners = (0..count).map(|n| (due::owner("owner", n / EACH), noon));
    let due = due::approve(cx, owners).await;
    println!(
        "{count} actions of {} owners approved in {:.1} s",
        count.div_ceil(EACH),
        began.elapsed().as_secs_f64()
    );

    let executors = Executors::of(&h.platform, EXECUTORS);
    executors.trouble(DUPLICATES, KILLED);
    let real_due = Timestamp::now();
    let began = minute.begin();
    let sweeps = tokio::spawn({
        let cx = cx.clone();
        async move {
            let (one, other) = tokio::join!(sweep(&cx, Timestamp::MAX), sweep(&cx, Timestamp::MAX));
            let published = [one, other].map(|swept| swept.expect("the table answers").published);
            let dispatched: usize = published.iter().sum();
            println!("{dispatched} dispatched in {:.1} s", began.elapsed().as_secs_f64());
            dispatched
        }
    });
    let mut worked = Worked::default();
    while !sweeps.is_finished() {
        worked.add(executors.work().await);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let dispatched = sweeps.await.expect("a sweep does not panic");
    worked.add(executors.work().await);
    let worked_in = began.elapsed();
    // More dispatches than actions are fine: if an executor is killed before its claim, its action is due again at
    // once.
    let mut wrong = usize::from(dispatched < count);
    let sent = worked.sent.iter().map(|sent| sent.duration_since(real_due).as_secs_f64());
    println!("  from due to sent   {}", percentiles(&sent.collect::<Vec<_>>()));

    // Work of killed executors is taken over when its lease ends. The message of a killed executor is lost.
    let first_wave = minute.clock.now();
    for _ in 0..10 {
        minute.forward(LEASE);
        let again = sweep(cx, Timestamp::MAX).await.expect("the table answers");
        if again.leased == 0 {
            break;
        }
        worked.add(executors.work().await);
    }

    let ends = due::occurrences(cx, &due).await;
    let first = |occurrence: &&Occurrence| occurrence.started_at.is_some_and(|at| at <= first_wave);
    let begun: Vec<Occurrence> = ends.iter().filter(first).cloned().collect();
    println!(
        "  from due to begun  {}, with {EXECUTORS} executors in {:.1} s",
        percentiles(&due::lags(&begun)),
        worked_in.as_secs_f64()
    );
    println!(
        "{} deliveries, {} of them duplicates; {} executors killed",
        worked.deliveries, worked.duplicates, worked.killed
    );
    let is = |state| ends.iter().filter(|occurrence| occurrence.state == state).count();
    let (succeeded, failed) = (is(OccurrenceState::Succeeded), is(OccurrenceState::Failed));
    // Each claim increments the fence, and so does the end of an occurrence without tries left.
    let claims: u64 = ends.iter().map(|occurrence| occurrence.fence).sum::<u64>() - failed as u64;
    let again = claims as usize - count.min(claims as usize);
    println!("{succeeded} succeeded, {failed} out of tries; {again} claimed again after a kill");
    wrong += usize::from(succeeded + failed != count) + usize::from(again > worked.killed);
    let broken = broken(cx, &due, &ends).await;
    println!("{} lost or doubled", broken.len());
    for what in &broken {
        println!("  {what}");
    }
    h.platform.stop().await;
    if wrong + broken.len() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Everything that is wrong: an action without exactly one occurrence, an occurrence that has not ended, or an output
/// of another run.
async fn broken(cx: &Cx, due: &[(Owner, ActionId)], ends: &[Occurrence]) -> Vec<String> {
    let mut broken = Vec::new();
    let noon = ends.first().map(|occurrence| occurrence.due_at).unwrap_or_default();
    let mut expected: BTreeSet<RunId> = due.iter().map(|(_, id)| RunId::for_occurrence(*id, noon)).collect();
    for occurrence in ends {
        if !expected.remove(&occurrence.run_id) {
            broken.push(format!("it was not due, or is there twice: {occurrence:?}"));
        }
        if !occurrence.state.is_final() {
            broken.push(format!("it has not ended: {occurrence:?}"));
        }
    }
    broken.extend(expected.iter().map(|run| format!("{run} is lost")));
    let possible: BTreeSet<AssetId> = ends.iter().map(|end| AssetId::for_output(end.run_id, 0)).collect();
    let mut assets = BTreeSet::new();
    for owner in due.iter().map(|(owner, _)| owner).collect::<BTreeSet<_>>() {
        let found = cx.store.assets(owner, None, 2 * EACH).await.expect("the table answers");
        assets.extend(found.items.into_iter().map(|(_, asset)| asset.value.asset_id));
    }
    broken.extend(assets.difference(&possible).map(|id| format!("{id} was saved twice, or by nobody")));
    let succeeded = ends.iter().filter(|end| end.state == OccurrenceState::Succeeded);
    let unsaved = succeeded.filter(|end| !assets.contains(&AssetId::for_output(end.run_id, 0)));
    broken.extend(unsaved.map(|end| format!("it has no output: {end:?}")));
    broken
}

/// In seconds.
fn percentiles(values: &[f64]) -> String {
    let at = |share| due::percentile(values, share);
    format!("p50 {:.2} s, p99 {:.2} s, longest {:.2} s", at(0.5), at(0.99), at(1.0))
}
