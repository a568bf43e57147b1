//! Following a run: its events as they happen, from any instance, after any id; and its end.
//!
//! A follower only reads. The writer is the [`Recorder`](crate::agent_loop::recorder::Recorder).

use std::time::Duration;

use domain::ids::{Owner, RunId};
use domain::runs::{Run, RunEvent};
use futures::Stream;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::existing;
use crate::process::live_runs::Recent;

/// After this time without an event, a follower reports silence.
const SILENCE: Duration = Duration::from_secs(15);

/// How often a follower looks for events of a run that another process executes.
const POLL: Duration = Duration::from_millis(150);

/// How often a follower reads the table although its own process executes the run, and announces events.
const POLL_LIVE: Duration = Duration::from_secs(2);

/// How long a follower retries if it can't read the table: in the process that executes the run, and in another process.
const TRY_HERE: Duration = Duration::from_secs(120);
const TRY_ELSEWHERE: Duration = Duration::from_secs(5);

/// The pause after a failed read; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How many events are read at once.
const EVENTS: usize = 100;

/// What a follower of a run receives.
pub enum RunUpdate {
    /// New events, oldest first.
    Events(Vec<RunEvent>),
    /// Nothing has happened for a while.
    Silence,
}

/// The run after its end. If `until` comes first, or this process must end, the run as it is then.
///
/// # Errors
/// 404 if it does not exist. If the table does not answer for a while.
pub async fn to_its_end(cx: &Cx, owner: &Owner, id: RunId, until: Timestamp) -> Result<Run> {
    let mut run = existing::run(cx, owner, id).await?.value;
    let mut live = cx.live.listen(id);
    let mut patience = Patience::default();
    while !run.state.is_final() && !is_over(cx, until, live.is_some()) {
        // A run that ends is announced by no event: it is no longer executed here.
        if wait_for_events(&mut live).await == Waited::Announced {
            continue;
        }
        run = match existing::run(cx, owner, id).await {
            Ok(found) => {
                patience = Patience::default();
                found.value
            }
            Err(error @ Error::NotFound(_)) => return Err(error),
            Err(error) if patience.is_used_up(live.is_some()) => return Err(error),
            Err(_) => {
                patience.pause().await;
                run
            }
        };
    }
    Ok(run)
}

/// The events of a run from `after` to its last event, or until `until`, or until this process must end.
pub fn follow(
    cx: Cx,
    owner: Owner,
    id: RunId,
    after: u64,
    until: Timestamp,
) -> impl Stream<Item = RunUpdate> + Send + 'static {
    let live = cx.live.listen(id);
    let (ended, spoke) = (false, Instant::now());
    let follower = Follower { cx, owner, id, after, until, ended, spoke, live, reads: true };
    futures::stream::unfold(follower, |mut follower| async move {
        let update = follower.next().await?;
        Some((update, follower))
    })
}

/// Why a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    /// This process has stored something about the run.
    Announced,
    /// Only the table says whether anything has happened.
    Unknown,
}

/// Waits until there may be new events: until this process announces one, or for a limited time.
async fn wait_for_events(live: &mut Option<watch::Receiver<Recent>>) -> Waited {
    let Some(receiver) = live else {
        tokio::time::sleep(POLL).await;
        return Waited::Unknown;
    };
    match tokio::time::timeout(POLL_LIVE, receiver.changed()).await {
        Ok(Ok(())) => Waited::Announced,
        Ok(Err(_)) => {
            *live = None;
            Waited::Unknown
        }
        Err(_) => Waited::Unknown,
    }
}

/// Whether a follower must stop before its run has ended: the time is over, or the process is about to end and does not execute the run.
fn is_over(cx: &Cx, until: Timestamp, executed_here: bool) -> bool {
    cx.clock.now() >= until || cx.stopping.is_set() && !executed_here
}

/// How long a reader of the table retries.
#[derive(Debug)]
struct Patience {
    since: Option<Instant>,
    pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { since: None, pause: FIRST_PAUSE }
    }
}

impl Patience {
    /// Whether reads have failed for too long. When a follower ends, its invocation ends too. So it retries longer while the
    /// run is executed here.
    fn is_used_up(&mut self, executed_here: bool) -> bool {
        let bound = if executed_here { TRY_HERE } else { TRY_ELSEWHERE };
        self.since.get_or_insert_with(Instant::now).elapsed() >= bound
    }

    async fn pause(&mut self) {
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

struct Follower {
    cx: Cx,
    owner: Owner,
    id: RunId,
    after: u64,
    until: Timestamp,
    ended: bool,
    spoke: Instant,
    live: Option<watch::Receiver<Recent>>,
    /// Whether the next look reads the table, whatever this process has announced.
    reads: bool,
}

/// The result of a read.
enum Look {
    Events(Vec<RunEvent>),
    Nothing,
    /// The run has ended, and all events were sent.
    End,
}

impl Follower {
    async fn next(&mut self) -> Option<RunUpdate> {
        if self.ended {
            return None;
        }
        let mut patience = Patience::default();
        loop {
            match self.look().await {
                Ok(Look::Events(events)) => {
                    self.spoke = Instant::now();
                    return Some(RunUpdate::Events(events));
                }
                Ok(Look::End) => return None,
                Ok(Look::Nothing) if is_over(&self.cx, self.until, self.live.is_some()) => return None,
                Ok(Look::Nothing) => {
                    patience = Patience::default();
                    self.reads = wait_for_events(&mut self.live).await == Waited::Unknown;
                }
                Err(error) if patience.is_used_up(self.live.is_some()) => {
                    // The client reconnects with the last id that it has; nothing is lost.
                    tracing::warn!(cause = %error.causes(), "a follower could not read the table");
                    return None;
                }
                Err(_) => patience.pause().await,
            }
            if self.spoke.elapsed() >= SILENCE {
                self.spoke = Instant::now();
                return Some(RunUpdate::Silence);
            }
        }
    }

    fn found(&mut self, events: Vec<RunEvent>) -> Look {
        if let Some(last) = events.last() {
            self.after = last.id;
            self.ended = last.event.ends_the_run();
        }
        self.reads = false;
        Look::Events(events)
    }

    async fn look(&mut self) -> Result<Look> {
        if let Some(live) = &mut self.live {
            // Before the read, so that an announcement after the read is not missed.
            let recent = live.borrow_and_update().after(self.after);
            match recent {
                Some(events) if !events.is_empty() => return Ok(self.found(events)),
                Some(_) if !self.reads => return Ok(Look::Nothing),
                _ => {}
            }
        }
        let events = self.cx.store.run_events(&self.owner, self.id, self.after, EVENTS).await?;
        if !events.is_empty() {
            return Ok(self.found(events));
        }
        match existing::run(&self.cx, &self.owner, self.id).await {
            Ok(run) if !run.value.state.is_final() => Ok(Look::Nothing),
            Ok(_) if self.cx.store.last_event_id(&self.owner, self.id).await? > self.after => {
                Ok(Look::Nothing)
            }
            Ok(_) | Err(Error::NotFound(_)) => Ok(Look::End),
            Err(error) => Err(error),
        }
    }
}
