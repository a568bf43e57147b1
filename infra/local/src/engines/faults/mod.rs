//! Faults of AWS that the embedded engines never have. This layer in front of the table and the bucket throttles,
//! causes conflicts, does only a part of a batch, answers from an index that is behind the table, answers slowly, and
//! loses connections before and after the work is done. It can also stop the platform's work after a given write, as the end
//! of its process does.

mod forge;
mod proxy;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

pub(super) use proxy::{Engine, proxy};

/// A fault of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Table: `ProvisionedThroughputExceededException` or `ThrottlingException`. Nothing was done.
    Throttled,
    /// Table: `TransactionCanceledException` with `TransactionConflict` reasons, or `TransactionConflictException` for
    /// a single write. Nothing was done.
    Conflict,
    /// Table: a part of a batch of two or more is done, and the rest comes back unprocessed.
    Unprocessed,
    /// Bucket: 503 `SlowDown`. Nothing was done.
    SlowDown,
    /// Table: a read of an index gets the previous answer again, like an index that is behind the table.
    StaleIndex,
    /// Either: the answer comes late.
    Slow,
    /// Either: the connection ends before the request is done.
    Dropped,
    /// Either: the request is done, and then the connection ends without an answer.
    AnswerLost,
}

/// How often each possible fault happens, from 0.0 (never) to 1.0 (always).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FaultRates {
    pub throttled: f64,
    pub conflict: f64,
    pub unprocessed: f64,
    pub slow_down: f64,
    pub stale_index: f64,
    pub slow: f64,
    pub dropped: f64,
    pub answer_lost: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct FaultConfig {
    /// The same seed and the same sequence of requests give the same faults.
    pub seed: u64,
    pub rates: FaultRates,
    /// The longest delay of a slow answer.
    pub slow_by: Duration,
}

/// A handle to change the rates during use, and to count the injected faults. Clones share one state.
#[derive(Debug, Clone)]
pub struct Faults(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    rng: StdRng,
    rates: FaultRates,
    slow_by: Duration,
    injected: [u64; Fault::ALL.len()],
    /// The last answer to each read of an index.
    index: HashMap<String, String>,
    stop: Option<Stop>,
    figures: Option<Figures>,
}

/// What was asked of the table and the bucket.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figures {
    /// How many requests there were of each kind: the operation of the table, and the method of the bucket.
    pub requests: BTreeMap<String, u64>,
    /// How often each kind of item was read or written by its key: the operation, and the words of the key in capitals.
    pub items: BTreeMap<String, u64>,
    /// The most items of one answer to a query.
    pub most_items: u64,
    /// The units that AWS bills for the table, as the engine counts them.
    pub read_units: f64,
    pub write_units: f64,
}

impl Figures {
    /// The number of all requests.
    #[must_use]
    pub fn all_requests(&self) -> u64 {
        self.requests.values().sum()
    }
}

/// The state of a stop.
#[derive(Debug, Clone, Copy)]
struct Stop {
    /// How many more writes are done.
    writes: u64,
    /// Whether reads are done until the first write is refused.
    reads_until_then: bool,
    /// Whether a request was refused.
    has_refused: bool,
}

impl Fault {
    pub const ALL: [Self; 8] = [
        Self::Throttled,
        Self::Conflict,
        Self::Unprocessed,
        Self::SlowDown,
        Self::StaleIndex,
        Self::Slow,
        Self::Dropped,
        Self::AnswerLost,
    ];
}

impl FaultRates {
    fn of(&self, fault: Fault) -> f64 {
        match fault {
            Fault::Throttled => self.throttled,
            Fault::Conflict => self.conflict,
            Fault::Unprocessed => self.unprocessed,
            Fault::SlowDown => self.slow_down,
            Fault::StaleIndex => self.stale_index,
            Fault::Slow => self.slow,
            Fault::Dropped => self.dropped,
            Fault::AnswerLost => self.answer_lost,
        }
    }
}

impl Faults {
    pub(super) fn new(config: &FaultConfig) -> Self {
        Self(Arc::new(Mutex::new(State {
            rng: StdRng::seed_from_u64(config.seed),
            rates: config.rates,
            slow_by: config.slow_by,
            injected: [0; Fault::ALL.len()],
            index: HashMap::new(),
            stop: None,
            figures: None,
        })))
    }

    /// From now on only this many writes are done. After the last one every request, also a read, is refused with an error that
    /// is not retried. So the table and the bucket stay as they are when a process ends after that write.
    pub fn stop_after(&self, writes: u64) {
        self.state().stop = Some(Stop { writes, reads_until_then: false, has_refused: false });
    }

    /// Like [`Self::stop_after`], but requests are refused from the next write on. Reads before it, and what follows from them outside of
    /// the table and the bucket, are done.
    pub fn stop_before_write_after(&self, writes: u64) {
        self.state().stop = Some(Stop { writes, reads_until_then: true, has_refused: false });
    }

    /// Ends a stop. Returns whether it has refused a request.
    pub fn go_on(&self) -> bool {
        self.state().stop.take().is_some_and(|stop| stop.has_refused)
    }

    /// Whether a stop refuses this request. Counts it if it is a write.
    fn stops(&self, is_write: bool) -> bool {
        let mut state = self.state();
        let Some(stop) = &mut state.stop else { return false };
        if stop.writes == 0 {
            if stop.reads_until_then && !is_write && !stop.has_refused {
                return false;
            }
            stop.has_refused = true;
            return true;
        }
        stop.writes -= u64::from(is_write);
        false
    }

    /// From now on requests are counted.
    pub fn count(&self) {
        self.state().figures = Some(Figures::default());
    }

    /// What was counted, if anything.
    pub fn figures(&self) -> Option<Figures> {
        self.state().figures.clone()
    }

    fn counts(&self) -> bool {
        self.state().figures.is_some()
    }

    /// Counts a request.
    fn counted(&self, kind: &str, keys: &[String], items: u64, read_units: f64, write_units: f64) {
        if let Some(figures) = &mut self.state().figures {
            *figures.requests.entry(kind.to_owned()).or_default() += 1;
            for key in keys {
                *figures.items.entry(format!("{kind} {key}")).or_default() += 1;
            }
            figures.most_items = figures.most_items.max(items);
            figures.read_units += read_units;
            figures.write_units += write_units;
        }
    }

    pub fn set_rates(&self, rates: FaultRates) {
        self.state().rates = rates;
    }

    /// How often this fault has been injected.
    pub fn injected(&self, fault: Fault) -> u64 {
        self.state().injected[fault as usize]
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no code panics while it holds the faults")
    }

    /// Decides which of these faults happens to a request, if any, and counts it.
    fn pick(&self, possible: &[Fault]) -> Option<Fault> {
        let State { rng, rates, injected, .. } = &mut *self.state();
        let fault =
            (possible.iter().copied()).find(|fault| rng.random_bool(rates.of(*fault).clamp(0.0, 1.0)))?;
        injected[fault as usize] += 1;
        Some(fault)
    }

    /// The last answer to this read of an index.
    fn index_answer(&self, read: &str) -> Option<String> {
        self.state().index.get(read).cloned()
    }

    fn remember_index(&self, read: String, answer: String) {
        self.state().index.insert(read, answer);
    }

    fn delay(&self) -> Duration {
        let State { rng, slow_by, .. } = &mut *self.state();
        slow_by.mul_f64(rng.random())
    }
}
