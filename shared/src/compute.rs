//! Work that computes, off the threads that serve requests.
//!
//! A handler that computes for more than a few milliseconds keeps every other request of its thread waiting. Such work
//! goes through a [`Lane`]: it runs on a thread for blocking work, only a few at once, within a time budget, and it ends
//! early when the request that asked for it is gone. In a Lambda function the runtime has one thread for requests and
//! further threads for blocking work, so the same holds there.
//!
//! Cancellation is cooperative. Work is given a [`Stop`] and asks it between small steps; what has no small steps must
//! be bounded by the size of its input.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::problem::{Error, Result};

/// The lanes of a process. Cheap to clone.
#[derive(Clone)]
pub struct Compute {
    /// Expressions and path patterns that callers write, over the files of a theme.
    pub searches: Lane,
    /// Questions to an index in memory.
    pub answers: Lane,
    /// Index builds and archives.
    pub builds: Lane,
    /// Bodies of more than [`INLINE_BYTES`], parsed or hashed.
    pub bodies: Lane,
}

/// A body up to this size is parsed and hashed where it arrives: it takes a millisecond or two.
pub const INLINE_BYTES: usize = 256 * 1024;

impl Default for Compute {
    fn default() -> Self {
        // One core stays free for requests where there is more than one.
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let spare = cores.saturating_sub(1).max(1);
        let seconds = Duration::from_secs;
        Self {
            searches: Lane::new("searches", spare, seconds(2), seconds(2)),
            answers: Lane::new("answers", cores, seconds(5), seconds(5)),
            builds: Lane::new("builds", spare, seconds(60), seconds(20)),
            bodies: Lane::new("bodies", cores, seconds(20), seconds(10)),
        }
    }
}

impl Compute {
    /// Does something with a body: at once where it is small, in the lane for bodies where it is large.
    ///
    /// # Errors
    /// What `work` fails with, 503 where too many do the same.
    pub async fn on_body<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if bytes <= INLINE_BYTES { work() } else { self.bodies.run(move |_| Ok(work())).await? }
    }
}

/// A kind of work, with how much of it runs at once and for how long.
#[derive(Clone)]
pub struct Lane {
    name: &'static str,
    slots: Arc<Semaphore>,
    at_once: usize,
    /// How long one piece of work may take.
    pub budget: Duration,
    /// How long it may wait for its turn.
    patience: Duration,
}

impl Lane {
    #[must_use]
    pub fn new(name: &'static str, at_once: usize, budget: Duration, patience: Duration) -> Self {
        Self { name, slots: Arc::new(Semaphore::new(at_once)), at_once, budget, patience }
    }

    /// How much of this work runs now, also for those who have left.
    #[must_use]
    pub fn running(&self) -> usize {
        self.at_once - self.slots.available_permits().min(self.at_once)
    }

    /// Does the work within the lane's budget.
    ///
    /// # Errors
    /// 503 with `Retry-After` where no turn comes in time or the budget is spent.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Stop) -> Result<T, Stopped> + Send + 'static,
    ) -> Result<T> {
        match self.within(self.budget, work).await? {
            Ok(done) => Ok(done),
            Err(Stopped) => Err(Error::Busy { what: self.name }),
        }
    }

    /// Does the work within this much time, which begins when its turn comes. The inner error says that the time was up.
    ///
    /// # Errors
    /// 503 with `Retry-After` where no turn comes in time.
    pub async fn within<T: Send + 'static>(
        &self,
        budget: Duration,
        work: impl FnOnce(&Stop) -> Result<T, Stopped> + Send + 'static,
    ) -> Result<Result<T, Stopped>> {
        let turn = tokio::time::timeout(self.patience, self.slots.clone().acquire_owned()).await;
        let Ok(Ok(turn)) = turn else { return Err(Error::Busy { what: self.name }) };
        let stop = Stop { gone: Arc::default(), until: Instant::now() + budget };
        let _waiting = Waiting(stop.gone.clone());
        let done = tokio::task::spawn_blocking(move || {
            // Held until the work has really ended, also where nobody waits for it any more.
            let _turn = turn;
            work(&stop)
        });
        done.await.map_err(|error| Error::internal(error.to_string()))
    }
}

/// Tells the work that nobody waits for it, when the future that waits is dropped.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The time is up, or nobody waits for the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// Says when work is to end early.
#[derive(Clone, Debug)]
pub struct Stop {
    gone: Arc<AtomicBool>,
    until: Instant,
}

impl Stop {
    /// One that nobody but the clock sets.
    #[must_use]
    pub fn after(budget: Duration) -> Self {
        Self { gone: Arc::default(), until: Instant::now() + budget }
    }

    #[must_use]
    pub fn is_set(&self) -> bool {
        self.gone.load(Ordering::Relaxed) || Instant::now() >= self.until
    }

    /// # Errors
    /// When it is set.
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
        let mut longest = Duration::ZERO;
        while !busy.is_finished() {
            let tick = Instant::now();
            tokio::time::sleep(Duration::from_millis(1)).await;
            longest = longest.max(tick.elapsed());
        }
        assert!(matches!(busy.await.unwrap(), Err(Error::Busy { what: "tests" })));
        assert!(began.elapsed() >= Duration::from_millis(200));
        assert!(longest < Duration::from_millis(150), "the timer was late by {longest:?}");
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_ends_and_gives_its_turn_back() {
        let lane = lane(1, 60_000, 5_000);
        let waiting = tokio::time::timeout(Duration::from_millis(50), lane.run(spin)).await;
        assert!(waiting.is_err(), "it was given up");
        let began = Instant::now();
        assert_eq!(lane.run(|_| Ok(7)).await.unwrap(), 7);
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
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
    async fn a_panic_in_the_work_is_an_error_and_gives_its_turn_back() {
        let lane = lane(1, 1_000, 1_000);
        let failed = lane.run(|_| -> Result<(), Stopped> { panic!("on purpose") }).await;
        assert!(matches!(failed, Err(Error::Internal(_))));
        lane.run(|_| Ok(())).await.unwrap();
    }
}
