//! Measures how time and memory grow with the length of a text.

use std::alloc::System;
use std::time::Duration;

use cap::Cap;
use rustix::time::{ClockId, clock_gettime};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// The largest growth for a text of twice the length. Linear work has 2, quadratic work 4. It is the mean of two doublings:
/// where a text leaves a cache or a buffer grows by a jump, one doubling costs more.
const MAX_GROWTH: f64 = 2.6;
/// The same if the longest text takes less than [`SHORT`]: memory that is touched for the first time and caches then take a larger share.
/// Machines differ in it: the growth of one shape was below 2.6 on one machine, and 2.8 on another.
const MAX_SHORT_GROWTH: f64 = 3.2;
const SHORT: Duration = Duration::from_millis(100);
/// What takes less time for the longest text is not measured: the clock and the caches decide it.
const LEAST_TIME: Duration = Duration::from_millis(4);
/// The same for memory, in bytes.
const LEAST_MEMORY: usize = 256 * 1024;
/// The longest time for the longest text, without optimisation. With it, all readers are at least ten times as fast.
const MOST_TIME: Duration = Duration::from_secs(15);
/// How often a text is read again if its time seems to grow too much. The least time counts.
const TRIES: usize = 6;

/// A hostile text: `before`, then `unit` until the length is reached, then `after`.
pub struct Shape {
    pub reader: String,
    pub before: &'static str,
    pub unit: &'static str,
    pub after: &'static str,
}

impl Shape {
    /// About `bytes` long. A `§` in the unit becomes the number of its repetition.
    fn text(&self, bytes: usize) -> String {
        let count = bytes / self.unit.len();
        let mut text = self.before.to_owned();
        for number in 0..count {
            match self.unit.split_once('§') {
                Some((left, right)) => text.extend([left, &number.to_string(), right]),
                None => text.push_str(self.unit),
            }
        }
        text + self.after
    }
}

/// The processor time of all threads, so that other programs do not count.
fn now() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

#[derive(Clone, Copy)]
struct Cost {
    time: Duration,
    /// All bytes that were allocated, also those that were given back.
    memory: usize,
}

fn cost(text: &str, read: &dyn Fn(&str)) -> Cost {
    let (began, before) = (now(), ALLOCATOR.total_allocated());
    read(text);
    Cost { time: now() - began, memory: ALLOCATOR.total_allocated() - before }
}

fn ratios(values: [f64; 3]) -> [f64; 2] {
    [values[1] / values[0], values[2] / values[1]]
}

/// The mean growth of two doublings.
fn mean([first, second]: [f64; 2]) -> f64 {
    (first * second).sqrt()
}

/// Reads the text of the shape with `bytes`, and with twice and four times as many.
///
/// # Errors
/// The growth, if it is too large.
pub fn check(shape: &Shape, bytes: usize, read: &dyn Fn(&str)) -> Result<(), String> {
    let name = format!("{}: {:?} {:?} {:?}", shape.reader, shape.before, shape.unit, shape.after);
    let texts = [1, 2, 4].map(|times| shape.text(bytes * times));
    let mut costs: Vec<Cost> = Vec::new();
    for (text, share) in texts.iter().zip([16, 4, 1]) {
        let cost = cost(text, read);
        if cost.time > MOST_TIME / share {
            return Err(format!("{name}: {} bytes take {:?}", text.len(), cost.time));
        }
        costs.push(cost);
    }
    let memory = ratios([0, 1, 2].map(|index| costs[index].memory as f64));
    if costs[2].memory > LEAST_MEMORY && mean(memory) > MAX_GROWTH {
        let bytes: Vec<usize> = costs.iter().map(|cost| cost.memory).collect();
        return Err(format!("{name}: memory grows by {memory:.1?}: {bytes:?} bytes"));
    }
    for _ in 0..TRIES {
        let times = [0, 1, 2].map(|index| costs[index].time.as_secs_f64());
        let most = if costs[2].time < SHORT { MAX_SHORT_GROWTH } else { MAX_GROWTH };
        if costs[2].time < LEAST_TIME || mean(ratios(times)) <= most {
            if std::env::var_os("FIGURES").is_some() {
                println!(
                    "{:6.1} ms {:7} KB {:.1?} {memory:.1?} {name}",
                    times[2] * 1e3,
                    costs[2].memory / 1024,
                    ratios(times)
                );
            }
            return Ok(());
        }
        for (text, least) in texts.iter().zip(&mut costs) {
            least.time = least.time.min(cost(text, read).time);
        }
    }
    let times: Vec<Duration> = costs.iter().map(|cost| cost.time).collect();
    Err(format!(
        "{name}: time grows by {:.1?}: {times:.1?}",
        ratios([0, 1, 2].map(|index| costs[index].time.as_secs_f64()))
    ))
}
