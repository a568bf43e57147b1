//! Executors that a test sends out by hand: they take what lies in the queue, twice where it comes twice, and some of them
//! are killed at their work.

use std::collections::{HashSet, VecDeque};
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use lamplighter_local::engines::queue::{Message, Queue, QueueFaults};
use lamplighter_local::platform::Platform;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use shared::Cx;
use shared::flows::due;
use shared::store::DueItem;
use tokio::sync::Notify;
use tokio::time::timeout;

/// As long as a Lambda may run.
const TIMEOUT: SignedDuration = SignedDuration::from_mins(15);

/// So long after a claim its lease is over, and another executor may take what a killed one has left.
pub const LEASE: SignedDuration = SignedDuration::from_mins(17);

/// How long an executor without work waits while others are at theirs: longer than any of them works.
const PATIENCE: Duration = Duration::from_secs(3600);

/// The executors of a platform that does nothing by itself (`automatic: false`).
pub struct Executors {
    cx: Cx,
    queue: Queue,
    /// How many work at once.
    count: usize,
    /// Which share of them is killed, and when.
    kills: Mutex<Kills>,
}

struct Kills {
    share: f64,
    /// How long the last ones worked that were left alone.
    worked: VecDeque<Duration>,
    rng: StdRng,
}

impl Kills {
    /// When the next executor is killed, if it is: at any moment of what one takes, so that no step is spared.
    fn next(&mut self) -> Option<Duration> {
        let longest = self.worked.iter().max().copied().unwrap_or(Duration::from_millis(10));
        self.rng.random_bool(self.share).then(|| longest.mul_f64(self.rng.random()))
    }

    fn left_alone(&mut self, worked: Duration) {
        if self.worked.len() == 16 {
            self.worked.pop_front();
        }
        self.worked.push_back(worked);
    }
}

/// What was done until the queue was empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Worked {
    pub deliveries: usize,
    /// Deliveries of messages that had been delivered before.
    pub duplicates: usize,
    pub killed: usize,
    /// When each message was sent, by the system's clock.
    pub sent: Vec<Timestamp>,
}

impl Worked {
    pub fn add(&mut self, more: Self) {
        self.deliveries += more.deliveries;
        self.duplicates += more.duplicates;
        self.killed += more.killed;
        self.sent.extend(more.sent);
    }
}

impl Executors {
    /// # Panics
    /// When the platform has no executor's queue.
    #[must_use]
    pub fn of(platform: &Platform, count: usize) -> Self {
        let queue = platform.engines().queue("scheduled-executor").expect("executors have a queue").clone();
        let kills = Kills { share: 0.0, worked: VecDeque::new(), rng: StdRng::seed_from_u64(1) };
        Self { cx: platform.cx.clone(), queue, count, kills: Mutex::new(kills) }
    }

    /// From now on this share of the messages comes twice and in any order, and this share of the executors is killed at
    /// its work.
    ///
    /// # Panics
    /// When a test panicked while it used these executors.
    pub fn trouble(&self, duplicates: f64, killed: f64) {
        self.queue.set_faults(QueueFaults { duplicates, reorder: duplicates > 0.0, seed: 1 });
        self.kills.lock().expect("nothing panics while it is held").share = killed;
    }

    /// Works until the queue is empty and nobody is at work.
    ///
    /// # Panics
    /// When an executor fails: none may, whatever it meets.
    pub async fn work(&self) -> Worked {
        let worked = Mutex::new((Worked::default(), HashSet::new()));
        let (busy, ended) = (AtomicUsize::new(0), Notify::new());
        let worker = async || {
            loop {
                // Before the look: an end that comes after it is not missed.
                let mut news = pin!(ended.notified());
                news.as_mut().enable();
                // Who is at work may send something more, and so may a test meanwhile.
                let wait = if busy.load(Ordering::SeqCst) == 0 { Duration::ZERO } else { PATIENCE };
                let mut received = tokio::select! {
                    biased;
                    received = self.queue.receive(1, wait) => received,
                    () = news => continue,
                };
                let Some(message) = received.pop() else { return };
                busy.fetch_add(1, Ordering::SeqCst);
                let (id, sent_at) = (message.id, message.sent_at);
                let died = self.deliver(message).await;
                {
                    let (worked, seen) = &mut *worked.lock().expect("nothing panics while it is held");
                    worked.deliveries += 1;
                    worked.killed += usize::from(died);
                    if seen.insert(id) {
                        worked.sent.push(sent_at);
                    } else {
                        worked.duplicates += 1;
                    }
                }
                busy.fetch_sub(1, Ordering::SeqCst);
                ended.notify_waiters();
            }
        };
        futures::future::join_all((0..self.count).map(|_| worker())).await;
        worked.into_inner().expect("nothing panicked while it was held").0
    }

    /// Gives one message to an executor. `true`: it was killed.
    async fn deliver(&self, message: Message) -> bool {
        let event: Value = serde_json::from_str(&message.body).expect("an event is JSON");
        let item: DueItem =
            serde_json::from_value(event["detail"].clone()).expect("an event names a due item");
        let cx = self.cx.clone();
        let deadline = cx.clock.now() + TIMEOUT;
        let mut executor = tokio::spawn(async move { due::look_at(&cx, &item, deadline).await });
        let began = Instant::now();
        let dies_after = self.kills.lock().expect("nothing panics while it is held").next();
        let ended = match dies_after {
            None => {
                let ended = (&mut executor).await;
                self.kills.lock().expect("nothing panics while it is held").left_alone(began.elapsed());
                Ok(ended)
            }
            Some(after) => timeout(after, &mut executor).await,
        };
        let killed = ended.is_err();
        match ended {
            Ok(ended) => ended.expect("an executor does not panic").expect("an executor does not fail"),
            Err(_) => {
                executor.abort();
                let _ = executor.await;
            }
        }
        // A killed executor's message would come again; that it is lost is worse, and must be survived.
        let _ = self.queue.delete(message.receipt);
        killed
    }
}
