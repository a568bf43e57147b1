//! A run of six stored steps as a durable function of Lambda, with AWS's SDK under its local runner. docs/decisions.md compares it with
//! ours.
//!
//! `cargo run` in this folder. It uses nothing of the platform, and CI does not build it. The steps are those of `tests/bench/pace`:
//! claim, model, save, model, check, finish. The model is scripted, and answers 4 KB at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aws_durable_execution_sdk as durable;
use durable::test_util::{LocalRunner, TestResult};
use durable::{BoxError, DurableContext, OperationError, RetryDecision, StepSemantics};
use serde_json::{Value, json};

const STEPS: [&str; 6] = ["claim", "work", "save", "again", "check", "finish"];
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How many runs are timed.
const TIMED: u32 = 200;

#[derive(Clone, Copy, Default)]
struct Setup {
    semantics: StepSemantics,
    /// A step that fails is not tried again.
    one_attempt: bool,
    /// The code of this step fails when it is called first.
    fails: Option<&'static str>,
    /// Three days after the first call of the model, a person must approve.
    asks: bool,
    /// The second invocation has the code of a later version, with one more step.
    updated: bool,
}

/// What the code of the steps has done.
#[derive(Default)]
struct Done {
    calls: BTreeMap<&'static str, u32>,
    assets: u32,
    invocations: u32,
}

#[derive(Clone, Default)]
struct World(Setup, Arc<Mutex<Done>>);

impl World {
    fn done(&self) -> MutexGuard<'_, Done> {
        self.1.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn step(
        &self,
        ctx: &DurableContext,
        name: &'static str,
        value: Value,
    ) -> Result<Value, OperationError> {
        let world = self.clone();
        let step = ctx.step(move |_| async move {
            let mut done = world.done();
            let calls = done.calls.entry(name).or_default();
            *calls += 1;
            if world.0.fails == Some(name) && *calls == 1 {
                return Err(BoxError::from("the model is overloaded"));
            }
            done.assets += u32::from(name == "save");
            Ok(value)
        });
        let step = step.name(name).semantics(self.0.semantics);
        if self.0.one_attempt { step.retry_strategy(|_, _| RetryDecision::Stop).await } else { step.await }
    }

    async fn ask(
        &self,
        ctx: &DurableContext,
        name: &'static str,
        told: &[Value],
    ) -> Result<Value, OperationError> {
        self.step(ctx, name, json!({"role": "assistant", "told": told.len(), "content": "x".repeat(4096)}))
            .await
    }

    async fn run(self, id: String, ctx: DurableContext) -> Result<Value, BoxError> {
        self.done().invocations += 1;
        if self.0.updated && self.done().invocations > 1 {
            self.step(&ctx, "budget", json!(1)).await?;
        }
        self.step(&ctx, "claim", json!({"run": id})).await?;
        let mut told = vec![json!({"role": "user", "content": "Do it"})];
        told.push(self.ask(&ctx, "work", &told).await?);
        if self.0.asks {
            ctx.wait(3 * DAY).name("days").await?;
            let tell = |_, _id_of_the_callback| async { Ok(()) };
            let answer =
                ctx.wait_for_callback::<String, _, _>(tell).name("approve").timeout(14 * DAY).await?;
            if answer != "yes" {
                return Err("the person said no".into());
            }
        }
        told.push(self.step(&ctx, "save", json!({"role": "tool", "content": "saved"})).await?);
        let text = self.ask(&ctx, "again", &told).await?;
        self.ask(&ctx, "check", &[text]).await?;
        Ok(self.step(&ctx, "finish", json!({"run": id, "state": "succeeded"})).await?)
    }
}

/// Runs once. Returns also the calls of each step.
async fn drive(setup: Setup, runner: LocalRunner) -> (TestResult<Value>, Vec<u32>, Done) {
    let world = World(setup, Arc::default());
    let handler = world.clone();
    let result = runner.run(move |id: String, ctx| handler.clone().run(id, ctx), "run_1".to_owned()).await;
    let done = std::mem::take(&mut *world.done());
    let calls = STEPS.iter().map(|step| done.calls.get(step).copied().unwrap_or_default()).collect();
    (result, calls, done)
}

/// Prints the calls of each step, the assets and the invocations, the operations that AWS bills (the start, each step, wait, context and
/// callback, and each retry), the bytes of the results, and the error.
async fn show(what: &str, setup: Setup, runner: LocalRunner) -> (bool, Vec<u32>) {
    let (result, calls, done) = drive(setup, runner).await;
    let operations = 1 + result.operations().iter().map(|operation| 1 + operation.attempt()).sum::<u32>();
    let bytes: usize =
        result.operations().iter().filter_map(|operation| operation.result()).map(str::len).sum();
    let (invocations, assets) = (result.invocation_count(), done.assets);
    let end = if result.is_suspended() { "waits" } else { result.error_type().unwrap_or("succeeds") };
    println!("{what:<40} {calls:?} {assets:>6} {invocations:>11} {operations:>10} {bytes:>6} {end}");
    (result.is_success(), calls)
}

/// Stops a run before each of its writes in turn, as a process does that dies there. Prints and returns how many writes there are, how
/// many of the stopped runs succeed, the most calls of one step, and the most assets of one run.
async fn stop_everywhere(what: &str, setup: Setup, runner: impl Fn() -> LocalRunner) -> [u32; 4] {
    let [mut writes, mut succeed, mut most, mut assets] = [0; 4];
    loop {
        let runner = runner().fail_checkpoints_after_retryable(writes as usize, 1);
        let (result, calls, done) = drive(setup, runner).await;
        if result.invocation_count() == 1 {
            println!("{what:<40} {writes:>6} {succeed:>8} {most:>6} {assets:>6}");
            return [writes, succeed, most, assets];
        }
        writes += 1;
        succeed += u32::from(result.is_success());
        (most, assets) = (calls.into_iter().fold(most, u32::max), assets.max(done.assets));
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    println!("{:40} calls of each step assets invocations operations  bytes", "");
    let (plain, asks) = (Setup::default(), Setup { asks: true, ..Setup::default() });
    let shown = show("nothing fails", plain, LocalRunner::new()).await;
    assert_eq!(shown, (true, vec![1; 6]));
    let fails = Setup { fails: Some("again"), ..plain };
    let shown = show("the second call of the model fails once", fails, LocalRunner::new()).await;
    assert_eq!(shown, (true, vec![1, 1, 1, 2, 1, 1]));
    let shown =
        show("three days, then a person says yes", asks, LocalRunner::new().callback_success(&"yes")).await;
    assert_eq!(shown, (true, vec![1; 6]));
    let shown = show("nobody answers in time", asks, LocalRunner::new().callback_timeout()).await;
    assert_eq!(shown, (false, vec![1, 1, 0, 0, 0, 0]));
    let shown = show("nobody has answered yet", asks, LocalRunner::new()).await;
    assert_eq!(shown, (false, vec![1, 1, 0, 0, 0, 0]));
    let updated = Setup { updated: true, ..asks };
    let shown = show("a later version goes on", updated, LocalRunner::new().callback_success(&"yes")).await;
    assert_eq!(shown, (false, vec![1, 1, 0, 0, 0, 0]));

    println!("\n{:40} writes succeed  calls assets", "stopped once, before each write");
    let once = Setup { semantics: StepSemantics::AtMostOncePerRetry, ..plain };
    let single = Setup { one_attempt: true, ..once };
    assert_eq!(stop_everywhere("at least once, the default", plain, LocalRunner::new).await, [12, 12, 2, 2]);
    assert_eq!(stop_everywhere("at most once per attempt", once, LocalRunner::new).await, [12, 12, 2, 2]);
    assert_eq!(
        stop_everywhere("at most once, and one attempt", single, LocalRunner::new).await,
        [12, 6, 1, 1]
    );
    let batches = || LocalRunner::new().checkpoint_batching();
    assert_eq!(stop_everywhere("at least once, writes in batches", plain, batches).await, [12, 12, 2, 2]);

    let begun = Instant::now();
    for _ in 0..TIMED {
        assert!(drive(plain, LocalRunner::new().single_page()).await.0.is_success());
    }
    println!(
        "\na run takes {:.2?} in memory; the runner has no clock, so days take none",
        begun.elapsed() / TIMED
    );
}
