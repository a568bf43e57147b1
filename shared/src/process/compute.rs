//! CPU-bound work, off the threads that serve requests.
//!
//! A handler that computes for more than a few milliseconds blocks every other request of its thread. Such work goes
//! through a [`Lane`]: it runs on a thread for blocking work, only a few pieces at once, within a time limit, and it ends
//! early when the client has disconnected. In a Lambda function the runtime also has one thread for requests and further
//! threads for blocking work.
//!
//! Cancellation is cooperative. The work gets a [`Stop`] and checks it between small steps. Work without small steps must
//! be bounded by the size of its input.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::error::{Error, Result};

/// The lanes of a process. Cheap to clone.
#[derive(Clone)]
pub struct Compute {
    /// Searches of a theme's files with expressions and path patterns of callers.
    pub searches: Lane,
    /// Queries of an index in memory.
    pub answers: Lane,
    /// Index builds and archives.
    pub builds: Lane,
    /// Checks of themes. Index builds do not wait for them.
    pub checks: Lane,
    /// Parsing and hashing of bodies larger than [`INLINE_BYTES`].
    pub bodies: Lane,
}

/// A body up to this size is parsed and hashed on the thread of its request. That takes a millisecond or two.
pub const INLINE_BYTES: usize = 256 * 1024;

impl Default for Compute {
    fn default() -> Self {
        // If there is more than one core, one stays free for requests.
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let spare = cores.saturating_sub(1).max(1);
        let seconds = Duration::from_secs;
        Self {
            searches: Lane::new("searches", spare, seconds(2), seconds(2)),
            answers: Lane::new("answers", cores, seconds(5), seconds(5)),
            builds: Lane::new("builds", spare, seconds(60), seconds(20)),
            checks: Lane::new("checks", spare, seconds(60), seconds(20)),
            bodies: Lane::new("bodies", cores, seconds(20), seconds(10)),
        }
    }
}

impl Compute {
    /// Processes a body: a small one directly, a large one in the lane for bodies.
    ///
    /// # Errors
    /// The errors of `work`; 503 if the lane is full.
    pub async fn on_body<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if bytes <= INLINE_BYTES { work() } else { self.bodies.run(move |_| Ok(work())).await? }
    }
}

/// A kind of work, with its concurrency and its time limit.
#[derive(Clone)]
pub struct Lane {
    name: &'static str,
    slots: Arc<Semaphore>,
    at_once: usize,
    /// How long one piece of work may take.
    pub budget: Duration,
    /// How long it may wait for a free slot.
    patience: Duration,
}

impl Lane {
    #[must_use]
    pub fn new(name: &'static str, at_once: usize, budget: Duration, patience: Duration) -> Self {
        Self { name, slots: Arc::new(Semaphore::new(at_once)), at_once, budget, patience }
    }

    /// How many pieces of work run now, including those whose client has disconnected.
    #[must_use]
    pub fn running(&self) -> usize {
        self.at_once - self.slots.available_permits().min(self.at_once)
    }

    /// Does the work within the lane's time limit.
    ///
    /// # Errors
    /// 503 with `Retry-After` if no slot becomes free in time, or the time limit is reached.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Stop) -> Result<T, Stopped> + Send + 'static,
    ) -> Result<T> {
        match self.within(self.budget, work).await? {
            Ok(done) => Ok(done),
            Err(Stopped) => Err(Error::Busy { what: self.name }),
        }
    }

    /// Does the work within `budget`, counted from the start of the work. The inner error means that the time was over.
    ///
    /// # Errors
    /// 503 with `Retry-After` if no slot becomes free in time.
    pub async fn within<T: Send + 'static>(
        &self,
        budget: Duration,
        work: impl FnOnce(&Stop) -> Result<T, Stopped> + Send + 'static,
    ) -> Result<Result<T, Stopped>> {
        let slot = tokio::time::timeout(self.patience, self.slots.clone().acquire_owned()).await;
        let Ok(Ok(slot)) = slot else { return Err(Error::Busy { what: self.name }) };
        let stop = Stop { abandoned: Arc::default(), until: Instant::now() + budget };
        let _waiting = Waiting(stop.abandoned.clone());
        let done = tokio::task::spawn_blocking(move || {
            // The slot is held until the work has really ended, even if its caller has disconnected.
            let _slot = slot;
            work(&stop)
        });
        done.await.map_err(|error| Error::internal(error.to_string()))
    }
}

/// Tells the work that it was abandoned, when the waiting future is dropped.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The time is over, or nobody waits for the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// Tells work to end early.
#[derive(Clone, Debug)]
pub struct Stop {
    abandoned: Arc<AtomicBool>,
    until: Instant,
}

impl Stop {
    /// A signal that only the clock sets.
    #[must_use]
    pub fn after(budget: Duration) -> Self {
        Self { abandoned: Arc::default(), until: Instant::now() + budget }
    }

    #[must_use]
    pub fn is_set(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed) || Instant::now() >= self.until
    }

    /// # Errors
    /// If it is set.
    pub fn check(&self) -> Result<(), Stopped> {
        if self.is_set() { Err(Stopped) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(at_once: usize, budget: u64, patience: u64) -> Lane {
        Lane::new("tests", at_once, Duration::from_millis(budget), Duration::from_millis(patience))
    }

    /// Spins until it is told to stop.
    fn spin(stop: &Stop) -> Result<(), Stopped> {
        loop {
            stop.check()?;
            std::thread::yield_now();
        }
    }

    #[tokio::test]
    async fn work_ends_with_its_budget_and_the_thread_of_requests_stays_free() {
        let lane = lane(2, 200, 1_000);
        let began = Instant::now();
        let busy = tokio::spawn(async move { lane.run(spin).await });
        // Work on this thread would let it tick once at most. How often it does depends on the machine.
        let mut ticks = 0;
        while !busy.is_finished() {
            tokio::time::sleep(Duration::from_millis(1)).await;
            ticks += 1;
        }
        assert!(matches!(busy.await.unwrap(), Err(Error::Busy { what: "tests" })));
        assert!(began.elapsed() >= Duration::from_millis(200));
        assert!(ticks > 3, "the timer fired {ticks} times");
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_ends_and_gives_its_turn_back() {
        let lane = lane(1, 60_000, 40_000);
        let waiting = tokio::time::timeout(Duration::from_millis(50), lane.run(spin)).await;
        assert!(waiting.is_err(), "it was given up");
        let began = Instant::now();
        assert_eq!(lane.run(|_| Ok(7)).await.unwrap(), 7);
        // Its budget is a minute.
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn too_many_at_once_are_refused_in_time() {
        let lane = lane(1, 2_000, 50);
        let first = tokio::spawn({
            let lane = lane.clone();
            async move { lane.run(spin).await }
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        let refused = lane.run(|_| Ok(())).await.unwrap_err();
        assert_eq!(refused.status(), 503);
        first.abort();
    }

    #[tokio::test]
    async fn builds_do_not_wait_for_checks() {
        let compute = Compute::default();
        let _taken =
            compute.checks.slots.clone().acquire_many_owned(compute.checks.at_once as u32).await.unwrap();
        assert_eq!(compute.builds.run(|_| Ok(7)).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_panic_in_the_work_is_an_error_and_gives_its_turn_back() {
        let lane = lane(1, 1_000, 1_000);
        let failed = lane.run(|_| -> Result<(), Stopped> { panic!("on purpose") }).await;
        assert!(matches!(failed, Err(Error::Internal(_))));
        lane.run(|_| Ok(())).await.unwrap();
    }
}
