//! Executors that a test drives: they receive the messages of the queue, including duplicates, and some executors are
//! killed while they work.

use std::collections::{HashSet, VecDeque};
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage};
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::engines::queue::{Message, Queue, QueueFaults};
use lamplighter_local::platform::Platform;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use shared::Cx;
use shared::flows::executor::route;
use shared::runtime::function::{Invocation, Trigger};
use shared::store::DueItem;
use tokio::sync::Notify;
use tokio::time::timeout;

/// The longest run of a Lambda.
const TIMEOUT: SignedDuration = SignedDuration::from_mins(15);

/// How long a claim's lease lasts. After this, another executor may take over the work of a killed one.
pub const LEASE: SignedDuration = SignedDuration::from_mins(17);

/// How long an idle executor waits while others work. It is longer than any executor works.
const PATIENCE: Duration = Duration::from_secs(3600);

/// The executors of a platform without automatic work (`automatic: false`).
pub struct Executors {
    cx: Cx,
    queue: Queue,
    /// How many executors work concurrently.
    count: usize,
    /// Which share of them is killed, and when.
    kills: Mutex<Kills>,
}

struct Kills {
    share: f64,
    /// How long the last surviving executors worked.
    worked: VecDeque<Duration>,
    rng: StdRng,
}

impl Kills {
    /// When to kill the next executor, if at all. The time is random within a typical execution, so kills hit every
    /// step.
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
    /// How many deliveries were duplicates.
    pub duplicates: usize,
    pub killed: usize,
    /// When each message was sent, by the system clock.
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
    /// If the platform has no executors' queue.
    #[must_use]
    pub fn of(platform: &Platform, count: usize) -> Self {
        let queue = platform.engines().queue("scheduled-executor").expect("executors have a queue").clone();
        let kills = Kills { share: 0.0, worked: VecDeque::new(), rng: StdRng::seed_from_u64(1) };
        Self { cx: platform.cx.clone(), queue, count, kills: Mutex::new(kills) }
    }

    /// From now on, `duplicates` is the share of messages that are delivered twice and in any order, and `killed` is
    /// the share of executors that are killed while they work.
    ///
    /// # Panics
    /// If a test panicked while it used these executors.
    pub fn trouble(&self, duplicates: f64, killed: f64) {
        self.queue.set_faults(QueueFaults { duplicates, reorder: duplicates > 0.0, seed: 1 });
        self.kills.lock().expect("nothing panics while it is held").share = killed;
    }

    /// Works until the queue is empty and no executor is busy.
    ///
    /// # Panics
    /// If an executor fails. None may fail, whatever happens.
    pub async fn work(&self) -> Worked {
        let worked = Mutex::new((Worked::default(), HashSet::new()));
        let (busy, ended) = (AtomicUsize::new(0), Notify::new());
        let worker = async || {
            loop {
                // This is created before the check, so an end after the check is not missed.
                let mut next_end = pin!(ended.notified());
                next_end.as_mut().enable();
                // Busy executors may send more messages, and so may the test.
                let wait = if busy.load(Ordering::SeqCst) == 0 { Duration::ZERO } else { PATIENCE };
                let mut received = tokio::select! {
                    biased;
                    received = self.queue.receive(1, wait) => received,
                    () = next_end => continue,
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

    /// Gives one message to an executor. Returns `true` if the executor was killed.
    async fn deliver(&self, message: Message) -> bool {
        let item: DueItem = serde_json::from_str(&message.body).expect("a message names a due item");
        let cx = self.cx.clone();
        let deadline = cx.clock.now() + TIMEOUT;
        let mut executor = tokio::spawn(async move { route::process(&cx, &item, deadline).await });
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
        // The message of a killed executor would be delivered again. Deleting it is worse, and the platform must
        // survive that.
        let _ = self.queue.delete(message.receipt);
        killed
    }
}

/// One executor that makes one invocation after the other, like Lambda's event source mapping. An invocation gets up to ten messages,
/// and ends when the last of them is processed.
///
/// # Panics
/// If a message is not processed.
pub async fn invocations(cx: Cx, queue: Queue) {
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
        let invocation = Invocation { deadline: cx.clock.now() + TIMEOUT };
        let response = shared::runtime::lambda::batch(cx.clone(), handler, invocation, event).await;
        assert!(response.batch_item_failures.is_empty(), "{:?}", response.batch_item_failures);
        for message in messages {
            let _ = queue.delete(message.receipt);
        }
    }
}

/// A message that no executor could handle: it was received too often.
///
/// # Panics
/// If the item can't be written.
pub async fn bury(queue: &Queue, item: &DueItem) {
    queue.send(serde_json::to_string(item).expect("it is written"), Duration::ZERO);
    let before = queue.depth().dead;
    while queue.depth().dead == before {
        for message in queue.receive(1, Duration::ZERO).await {
            queue.change_visibility(message.receipt, Duration::ZERO).expect("it was received");
        }
    }
}
