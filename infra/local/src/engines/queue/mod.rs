//! SQS: an in-process fair queue with delays, visibility timeouts, redelivery and a dead-letter queue.
//!
//! Messages have groups (tenants), and the queue delivers messages of each group in turn. So a group with many messages
//! does not delay the others.
//!
//! Delivery is at least once, as in SQS. A crash empties the queue, so senders must be able to send again (the sweep
//! does, when an occurrence's lease ends). Dead letters are kept on disk.

mod dead_letters;
mod poller;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use base::clock::Clock;
use jiff::{SignedDuration, Timestamp};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

pub use dead_letters::{DeadLetter, DeadLetterError};
pub use poller::{HandlerError, PollOptions, Poller};

use dead_letters::DeadLetters;

/// For a message whose delay is measured by another clock.
const NEVER: Duration = Duration::from_secs(365 * 86_400);

/// How often a receiver checks a clock that is set by hand.
const LOOK: Duration = Duration::from_millis(5);

#[derive(Debug, Clone, PartialEq)]
pub struct QueueConfig {
    /// Also the name of the dead letters' file.
    pub name: String,
    /// How long a received message stays hidden from other receivers.
    pub visibility_timeout: Duration,
    /// A message that was received this often without being deleted becomes a dead letter.
    pub max_receives: u32,
}

/// Faults that reveal receivers that rely on more than SQS promises.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct QueueFaults {
    /// The share of received messages that are delivered once more, 0.0 to 1.0.
    pub duplicates: f64,
    /// Delivers visible messages in random order instead of oldest first.
    pub reorder: bool,
    /// The same seed and calls give the same faults.
    pub seed: u64,
}

/// One delivery of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub id: Uuid,
    pub receipt: Receipt,
    pub body: Arc<str>,
    /// The owner of the message.
    pub group: Option<Arc<str>>,
    /// 1 for the first delivery.
    pub receives: u32,
    pub sent_at: Timestamp,
    pub first_received_at: Timestamp,
}

/// Identifies one delivery. The next delivery of the same message makes it stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    slot: u64,
    token: Uuid,
}

impl std::fmt::Display for Receipt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x}.{}", self.slot, self.token.simple())
    }
}

impl std::str::FromStr for Receipt {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (slot, token) = text.split_once('.').ok_or(())?;
        let slot = u64::from_str_radix(slot, 16).map_err(|_| ())?;
        Ok(Self { slot, token: token.parse().map_err(|_| ())? })
    }
}

/// The message was delivered again meanwhile, or is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("use the receipt {0}: it is stale")]
pub struct StaleReceipt(pub Receipt);

/// How many messages are in which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueDepth {
    /// Ready to be received.
    pub visible: usize,
    /// Sent with a delay that has not ended.
    pub delayed: usize,
    /// Received, and neither deleted nor visible again.
    pub in_flight: usize,
    /// In the dead-letter queue, from this run and earlier ones.
    pub dead: usize,
}

/// A handle of a queue; clones are the same queue.
#[derive(Debug, Clone)]
pub struct Queue(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: QueueConfig,
    dead_letters: DeadLetters,
    state: Mutex<State>,
    /// Notified whenever a message may become visible earlier than a receiver expects.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    messages: HashMap<u64, Stored>,
    /// The messages of each group, by the time at which they become visible, then by age.
    groups: BTreeMap<Option<Arc<str>>, Group>,
    /// Counts deliveries.
    turn: u64,
    /// The clock that measures delays.
    clock: Clock,
    /// The messages whose delay is measured by a clock that is set by hand, by the end of the delay.
    delayed: BTreeSet<(Timestamp, u64)>,
    next_slot: u64,
    faults: QueueFaults,
    rng: StdRng,
}

#[derive(Debug, Default)]
struct Group {
    order: BTreeSet<(Instant, u64)>,
    /// The turn of its last delivery.
    served: u64,
}

#[derive(Debug, Clone)]
struct Stored {
    id: Uuid,
    body: Arc<str>,
    group: Option<Arc<str>>,
    visible_at: Instant,
    sent_at: Timestamp,
    first_received_at: Option<Timestamp>,
    receives: u32,
    /// The token of the latest delivery.
    token: Option<Uuid>,
}

impl Queue {
    /// An empty queue, whose dead letters are in `folder/NAME.jsonl` (read if it exists).
    pub fn open(config: QueueConfig, folder: &Path) -> Result<Self, DeadLetterError> {
        let dead_letters = DeadLetters::open(folder.join(format!("{}.jsonl", config.name)))?;
        let state = State {
            messages: HashMap::new(),
            groups: BTreeMap::new(),
            turn: 0,
            clock: Clock::System,
            delayed: BTreeSet::new(),
            next_slot: 0,
            faults: QueueFaults::default(),
            rng: StdRng::seed_from_u64(0),
        };
        let (state, changed) = (Mutex::new(state), Notify::new());
        Ok(Self(Arc::new(Inner { config, dead_letters, state, changed })))
    }

    pub fn config(&self) -> &QueueConfig {
        &self.0.config
    }

    pub fn arn(&self) -> String {
        format!("arn:aws:sqs:{}:{}:{}", super::REGION, super::ACCOUNT, self.0.config.name)
    }

    pub fn set_faults(&self, faults: QueueFaults) {
        let mut state = self.state();
        state.faults = faults;
        state.rng = StdRng::seed_from_u64(faults.seed);
    }

    /// Measures the delays of later messages by this clock.
    pub fn follow(&self, clock: Clock) {
        self.state().clock = clock;
    }

    /// Adds a message without a group, which becomes visible after `delay`. Returns its id.
    pub fn send(&self, body: impl Into<Arc<str>>, delay: Duration) -> Uuid {
        self.send_to(None, body, delay)
    }

    /// Adds a message to a group.
    pub fn send_to(&self, group: Option<Arc<str>>, body: impl Into<Arc<str>>, delay: Duration) -> Uuid {
        let id = Uuid::now_v7();
        let mut state = self.state();
        let (visible_at, ready_at) = state.end_of(delay);
        let slot = state.insert(Stored {
            id,
            body: body.into(),
            group,
            visible_at,
            sent_at: Timestamp::now(),
            first_received_at: None,
            receives: 0,
            token: None,
        });
        state.delayed.extend(ready_at.map(|at| (at, slot)));
        drop(state);
        self.0.changed.notify_waiters();
        id
    }

    /// Takes up to `max` visible messages, waiting up to `wait` for the first one.
    pub async fn receive(&self, max: usize, wait: Duration) -> Vec<Message> {
        let until = Instant::now() + wait;
        loop {
            // Registered before the check, so that no send is missed between the check and the wait.
            let mut changed = std::pin::pin!(self.0.changed.notified());
            changed.as_mut().enable();
            let batch = self.take(max);
            if !batch.is_empty() || Instant::now() >= until {
                return batch;
            }
            let next_visible = self.state().next_visible().unwrap_or(until);
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(next_visible.min(until)) => {}
            }
        }
    }

    /// Deletes the message of this delivery.
    pub fn delete(&self, receipt: Receipt) -> Result<(), StaleReceipt> {
        let mut state = self.state();
        state.check(receipt)?;
        state.remove(receipt.slot);
        Ok(())
    }

    /// Hides the message of this delivery for `timeout` from now. Zero makes it visible at once.
    pub fn change_visibility(&self, receipt: Receipt, timeout: Duration) -> Result<(), StaleReceipt> {
        let mut state = self.state();
        state.check(receipt)?;
        state.reschedule(receipt.slot, Instant::now() + timeout);
        drop(state);
        self.0.changed.notify_waiters();
        Ok(())
    }

    /// How long the message stays hidden. Zero if it is visible. `None` if it is not in the queue.
    pub fn hidden_for(&self, id: Uuid) -> Option<Duration> {
        let now = Instant::now();
        let state = self.state();
        let message = state.messages.values().find(|message| message.id == id)?;
        Some(message.visible_at.saturating_duration_since(now))
    }

    pub fn depth(&self) -> QueueDepth {
        let now = Instant::now();
        let mut depth = QueueDepth { dead: self.0.dead_letters.count(), ..QueueDepth::default() };
        for message in self.state().messages.values() {
            match (message.visible_at <= now, message.token) {
                (true, _) => depth.visible += 1,
                (false, None) => depth.delayed += 1,
                (false, Some(_)) => depth.in_flight += 1,
            }
        }
        depth
    }

    /// Every dead letter, oldest first.
    pub fn dead_letters(&self) -> Result<Vec<DeadLetter>, DeadLetterError> {
        self.0.dead_letters.read()
    }

    /// Moves all dead letters back. Each is a new message, so it is delivered as often as any other.
    pub fn redrive(&self) -> Result<(), DeadLetterError> {
        self.0.dead_letters.drain(|letter| {
            self.send(letter.body, Duration::ZERO);
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("no code panics while it holds the queue")
    }

    fn take(&self, max: usize) -> Vec<Message> {
        let Inner { config, dead_letters, .. } = &*self.0;
        let now = Instant::now();
        let mut state = self.state();
        state.end_delays(now);
        let mut shuffled = Vec::new();
        if state.faults.reorder {
            let visible =
                state.groups.values().flat_map(|group| group.order.iter().take_while(|(at, _)| *at <= now));
            shuffled = visible.map(|(_, slot)| *slot).collect();
            shuffled.shuffle(&mut state.rng);
        }
        let mut batch = Vec::new();
        while batch.len() < max {
            let next = if state.faults.reorder { shuffled.pop() } else { state.next_in_turn(now) };
            let Some(slot) = next else { break };
            state.reschedule(slot, now + config.visibility_timeout);
            if state.messages[&slot].receives >= config.max_receives {
                match dead_letters.append(&state.messages[&slot].dead_letter()) {
                    Ok(()) => state.remove(slot),
                    // The message stays in the queue, and is retried after the visibility timeout.
                    Err(error) => {
                        tracing::error!(queue = config.name, %error, "failed to store a dead letter");
                    }
                }
                continue;
            }
            batch.push(state.deliver(slot));
            let duplicates = state.faults.duplicates.clamp(0.0, 1.0);
            if state.rng.random_bool(duplicates) {
                let copy = Stored { visible_at: now, token: None, ..state.messages[&slot].clone() };
                state.insert(copy);
                self.0.changed.notify_waiters();
            }
        }
        batch
    }
}

impl State {
    fn insert(&mut self, message: Stored) -> u64 {
        let slot = self.next_slot;
        self.next_slot += 1;
        let group = self.groups.entry(message.group.clone()).or_default();
        group.order.insert((message.visible_at, slot));
        self.messages.insert(slot, message);
        slot
    }

    fn remove(&mut self, slot: u64) {
        if let Some(message) = self.messages.remove(&slot)
            && let Some(group) = self.groups.get_mut(&message.group)
        {
            group.order.remove(&(message.visible_at, slot));
            if group.order.is_empty() {
                self.groups.remove(&message.group);
            }
        }
    }

    fn reschedule(&mut self, slot: u64, visible_at: Instant) {
        if let Some(message) = self.messages.get_mut(&slot)
            && let Some(group) = self.groups.get_mut(&message.group)
        {
            group.order.remove(&(message.visible_at, slot));
            group.order.insert((visible_at, slot));
            message.visible_at = visible_at;
        }
    }

    /// The end of a delay that begins now, on this machine's clock or on one that is set by hand.
    fn end_of(&self, delay: Duration) -> (Instant, Option<Timestamp>) {
        let now = Instant::now();
        match &self.clock {
            Clock::Manual(clock) if delay > Duration::ZERO => {
                let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
                (now + NEVER, Some(clock.now().saturating_add(delay).unwrap_or(Timestamp::MAX)))
            }
            Clock::Scaled { factor, .. } => (now + delay / (*factor).max(1), None),
            Clock::System | Clock::Manual(_) => (now + delay, None),
        }
    }

    /// Makes the messages visible whose delay has ended on a clock that is set by hand.
    fn end_delays(&mut self, now: Instant) {
        let Clock::Manual(clock) = &self.clock else { return };
        let time = clock.now();
        while let Some((at, slot)) = self.delayed.first().copied().filter(|(at, _)| *at <= time) {
            self.delayed.remove(&(at, slot));
            self.reschedule(slot, now);
        }
    }

    /// When to check again.
    fn next_visible(&self) -> Option<Instant> {
        let next = self.groups.values().filter_map(|group| group.order.first()).map(|(at, _)| *at).min();
        // Nothing notifies when a clock is set.
        let look = (!self.delayed.is_empty()).then(|| Instant::now() + LOOK);
        next.into_iter().chain(look).min()
    }

    /// The next visible message of the group that has waited longest for its turn.
    fn next_in_turn(&mut self, now: Instant) -> Option<u64> {
        let next = |group: &Group| group.order.first().copied().filter(|(at, _)| *at <= now);
        let waiting = self.groups.values_mut().filter_map(|group| Some((group.served, next(group)?, group)));
        let (_, (_, slot), group) = waiting.min_by_key(|(served, next, _)| (*served, *next))?;
        self.turn += 1;
        group.served = self.turn;
        Some(slot)
    }

    fn deliver(&mut self, slot: u64) -> Message {
        let message = self.messages.get_mut(&slot).expect("every slot in the order has its message");
        let token = Uuid::new_v4();
        message.token = Some(token);
        message.receives += 1;
        Message {
            id: message.id,
            receipt: Receipt { slot, token },
            body: Arc::clone(&message.body),
            group: message.group.clone(),
            receives: message.receives,
            sent_at: message.sent_at,
            first_received_at: *message.first_received_at.get_or_insert_with(Timestamp::now),
        }
    }

    fn check(&self, receipt: Receipt) -> Result<(), StaleReceipt> {
        match self.messages.get(&receipt.slot) {
            Some(message) if message.token == Some(receipt.token) => Ok(()),
            _ => Err(StaleReceipt(receipt)),
        }
    }
}

impl Stored {
    fn dead_letter(&self) -> DeadLetter {
        DeadLetter {
            message_id: self.id,
            body: self.body.to_string(),
            receives: self.receives,
            sent_at: self.sent_at,
            buried_at: Timestamp::now(),
        }
    }
}
