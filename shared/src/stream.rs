//! Run events: stored as they happen, followed from any instance, replayed after any id.
//!
//! [`Recorder`] is the one writer of a run. It joins text to pieces of at least 200 ms, stores every event before a
//! follower sees it, keeps the run's lease alive and notices a request to cancel. [`respond`] answers a client: as
//! server-sent events, or with the finished result. A client that leaves takes nothing with it: the run goes on in a
//! task of its own, and the follower is only a reader.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use domain::ids::{Owner, RunId};
use domain::runs::{EventKind, Run, RunError, RunEvent, RunKind, RunState};
use futures::Stream;
use http::{HeaderMap, HeaderValue, header};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::context::Cx;
use crate::problem::{Error, Result};
use crate::store::table::{Write, Written};
use crate::store::{Store, Versioned};

/// Text is stored and sent in pieces no more often than this.
const PIECE: Duration = Duration::from_millis(200);

/// A silent stream says that it is alive this often.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How often a follower looks for events of a run that another process executes.
const POLL: Duration = Duration::from_millis(150);

/// How often it looks for those of a run of its own process, which says when there is something.
const POLL_LIVE: Duration = Duration::from_secs(2);

/// The runs that this process executes, and the newest event of each: followers here need not poll for them.
#[derive(Clone, Default)]
pub struct LiveRuns(Arc<Mutex<HashMap<RunId, watch::Sender<u64>>>>);

impl LiveRuns {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, watch::Sender<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, run: RunId, event: u64) {
        self.lock().entry(run).or_insert_with(|| watch::Sender::new(0)).send_replace(event);
    }

    fn forget(&self, run: RunId) {
        self.lock().remove(&run);
    }

    fn listen(&self, run: RunId) -> Option<watch::Receiver<u64>> {
        self.lock().get(&run).map(watch::Sender::subscribe)
    }
}

/// Waits until there may be something new: until this process says so, or for a while.
async fn news(live: &mut Option<watch::Receiver<u64>>) {
    let gone = match live {
        None => return tokio::time::sleep(POLL).await,
        Some(live) => tokio::time::timeout(POLL_LIVE, live.changed()).await.is_ok_and(|said| said.is_err()),
    };
    if gone {
        *live = None;
    }
}

/// For how long an executor's word holds.
const LEASE: SignedDuration = SignedDuration::from_secs(60);

/// How long before its end a lease is renewed.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_secs(30);

/// How often a run looks whether it should stop.
const CANCEL_CHECK: Duration = Duration::from_millis(500);

/// Until when a run that says something now need not say more.
#[must_use]
pub fn lease_from(now: Timestamp) -> Timestamp {
    now + LEASE
}

/// What a client wants to be answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    Events,
    Json,
}

impl Accept {
    /// JSON where it is asked for and events are not; events otherwise.
    #[must_use]
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if accept.contains("application/json") && !accept.contains("text/event-stream") {
            Self::Json
        } else {
            Self::Events
        }
    }
}

/// The run was taken away from its executor: its lease ran out and a reader said so, or it was deleted.
#[derive(Debug, thiserror::Error)]
#[error("the run has ended without its executor")]
pub struct Lost;

/// The writer of one run's events.
pub struct Recorder {
    cx: Cx,
    owner: Owner,
    run: Run,
    version: u64,
    next_event: u64,
    pending: String,
    pending_since: Option<Instant>,
    cancel_checked: Instant,
    cancelled: bool,
}

impl Recorder {
    /// For a run that was just created (or taken over) at `version`, with `last_event` its newest event.
    #[must_use]
    pub fn new(cx: Cx, owner: Owner, run: Versioned<Run>, last_event: u64) -> Self {
        cx.live.tell(run.value.run_id, last_event);
        tracing::info!(run_id = %run.value.run_id, again = last_event > 1, "a run is taken up");
        Self {
            cx,
            owner,
            run: run.value,
            version: run.version,
            next_event: last_event + 1,
            pending: String::new(),
            pending_since: None,
            cancel_checked: Instant::now(),
            cancelled: false,
        }
    }

    #[must_use]
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The record; it is stored with the end of the run, or the next renewal of its lease.
    pub fn run_mut(&mut self) -> &mut Run {
        &mut self.run
    }

    /// Adds text of the reply. It is stored once enough has come together.
    ///
    /// # Errors
    /// When it can't be stored.
    pub async fn text(&mut self, delta: &str) -> Result<()> {
        if delta.is_empty() {
            return Ok(());
        }
        self.pending.push_str(delta);
        // The first piece goes out at once: people wait for it.
        let since = *self.pending_since.get_or_insert_with(|| Instant::now() - PIECE);
        if since.elapsed() >= PIECE {
            self.flush().await?;
            self.pending_since = Some(Instant::now());
        }
        Ok(())
    }

    /// Stores the text that has come together.
    ///
    /// # Errors
    /// When it can't be stored.
    pub async fn flush(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let text = std::mem::take(&mut self.pending);
        self.store(EventKind::MessageDelta, json!({ "text": text }), Vec::new()).await
    }

    /// Stores the text that has come together, where it has waited long enough.
    ///
    /// # Errors
    /// When it can't be stored.
    pub async fn flush_if_due(&mut self) -> Result<()> {
        if self.pending_since.is_some_and(|since| since.elapsed() >= PIECE) {
            self.flush().await?;
            self.pending_since = Some(Instant::now());
        }
        Ok(())
    }

    /// Adds an event, after the text before it.
    ///
    /// # Errors
    /// When it can't be stored.
    pub async fn event(&mut self, kind: EventKind, data: Value) -> Result<()> {
        self.event_with(kind, data, Vec::new()).await
    }

    /// Adds an event together with what it tells of: followers never hear of something that is not there.
    ///
    /// # Errors
    /// When it can't be stored.
    pub async fn event_with(&mut self, kind: EventKind, data: Value, more: Vec<Write>) -> Result<()> {
        self.flush().await?;
        self.pending_since = None;
        self.store(kind, data, more).await
    }

    async fn store(&mut self, event: EventKind, data: Value, more: Vec<Write>) -> Result<()> {
        let event = RunEvent { id: self.next_event, event, data };
        let mut writes = vec![Store::event_write(&self.owner, self.run.run_id, &event)?];
        writes.extend(more);
        let now = self.cx.clock.now();
        let renews = now + RENEW_BEFORE > self.run.lease_until;
        if renews {
            self.run.lease_until = lease_from(now);
            writes.push(Store::replace_run_write(&self.owner, &self.run, self.version)?);
        }
        if !self.cx.store.transact(writes).await?.done() {
            return Err(Error::internal(Lost.to_string()));
        }
        self.version += u64::from(renews);
        self.next_event += 1;
        self.cx.live.tell(self.run.run_id, event.id);
        Ok(())
    }

    /// Keeps the lease while nothing else is written.
    ///
    /// # Errors
    /// When the run was taken away.
    pub async fn keep_alive(&mut self) -> Result<()> {
        let now = self.cx.clock.now();
        if now + RENEW_BEFORE <= self.run.lease_until {
            return Ok(());
        }
        self.run.lease_until = lease_from(now);
        let write = Store::replace_run_write(&self.owner, &self.run, self.version)?;
        if !self.cx.store.transact(vec![write]).await?.done() {
            return Err(Error::internal(Lost.to_string()));
        }
        self.version += 1;
        Ok(())
    }

    /// Whether somebody asked the run to stop. Looks at most twice a second.
    ///
    /// # Errors
    /// When the table does not answer.
    pub async fn is_cancelled(&mut self) -> Result<bool> {
        if !self.cancelled && self.cancel_checked.elapsed() >= CANCEL_CHECK {
            self.cancelled = self.cx.store.cancel_requested(&self.owner, self.run.run_id).await?;
            self.cancel_checked = Instant::now();
        }
        Ok(self.cancelled)
    }

    /// The writes that end the run, for a transaction with more that must go together; text must have been flushed.
    ///
    /// # Errors
    /// For a state that is not final; a bug.
    pub fn end_writes(&mut self, state: RunState, error: Option<RunError>) -> Result<Vec<Write>> {
        self.run.state = state;
        self.run.error = error;
        self.run.finished_at = Some(self.cx.clock.now());
        end_writes(&self.owner, &self.run, self.version, self.next_event)
    }

    /// Ends the run: its record, its last event and `more` together, or nothing of it.
    ///
    /// # Errors
    /// When it can't be stored; then a reader will end it as failed once its lease is over.
    pub async fn finish(mut self, state: RunState, error: Option<RunError>, more: Vec<Write>) -> Result<Run> {
        self.flush().await?;
        self.run.state = state;
        self.run.error = error;
        self.run.finished_at = Some(self.cx.clock.now());
        let end = || end_writes(&self.owner, &self.run, self.version, self.next_event);
        let mut writes = end()?;
        let own = writes.len();
        writes.extend(more);
        match self.cx.store.transact(writes).await? {
            Written::Yes => Ok(self.run.clone()),
            // What goes with the end is gone itself, for example a deleted agent: the run ends all the same.
            Written::Refused { first } if first >= own && self.cx.store.transact(end()?).await?.done() => {
                Ok(self.run.clone())
            }
            Written::Refused { .. } => Err(Error::internal(Lost.to_string())),
        }
    }
}

impl Drop for Recorder {
    /// Followers hear that nobody here writes any more, and look for themselves.
    fn drop(&mut self) {
        self.cx.live.forget(self.run.run_id);
        let Run { run_id, state, cost_micros, .. } = &self.run;
        tracing::info!(%run_id, ?state, cost_micros, "a run is put down");
    }
}

/// The writes that end a run: its record, in the final state that it has, and the event that says so.
fn end_writes(owner: &Owner, run: &Run, version: u64, event_id: u64) -> Result<Vec<Write>> {
    let kind = run.state.event().ok_or_else(|| Error::internal("a run ends in a final state"))?;
    let data = json!({
        "run_id": run.run_id,
        "state": run.state,
        "usage": run.usage,
        "cost_micros": run.cost_micros,
        "error": run.error,
    });
    let event = RunEvent { id: event_id, event: kind, data };
    Ok(vec![Store::replace_run_write(owner, run, version)?, Store::event_write(owner, run.run_id, &event)?])
}

/// Reads a run. One that its executor has left is ended here as failed, by whoever looks first.
///
/// # Errors
/// 404 where there is none.
pub async fn load(cx: &Cx, owner: &Owner, id: RunId) -> Result<Versioned<Run>> {
    loop {
        let found = cx.store.run(owner, id).await?.ok_or(Error::NotFound("run"))?;
        // The occurrence of an action outlives its executor: another one takes it over.
        let left = !found.value.state.is_final()
            && found.value.kind != RunKind::Action
            && found.value.lease_until < cx.clock.now();
        if !left {
            return Ok(found);
        }
        let error = RunError {
            code: "interrupted".to_owned(),
            detail: "the process that wrote this reply ended before it was done".to_owned(),
            retryable: true,
        };
        end_without_executor(cx, owner, found, RunState::Failed, Some(error)).await?;
    }
}

/// Ends a run whose executor is gone or told to stop, as it was `found`. `false`: it was written meanwhile, look again.
///
/// # Errors
/// When the table does not answer.
pub(crate) async fn end_without_executor(
    cx: &Cx,
    owner: &Owner,
    found: Versioned<Run>,
    state: RunState,
    error: Option<RunError>,
) -> Result<bool> {
    let Versioned { value: mut run, version } = found;
    run.state = state;
    run.finished_at = Some(cx.clock.now());
    run.error = error;
    let last = cx.store.last_event_id(owner, run.run_id).await?;
    Ok(cx.store.transact(end_writes(owner, &run, version, last + 1)?).await?.done())
}

/// Answers with a run: its events after `after`, or its result once it has one.
///
/// # Errors
/// 404 where there is none.
pub async fn respond(cx: &Cx, owner: &Owner, id: RunId, after: u64, accept: Accept) -> Result<Response> {
    let run = load(cx, owner, id).await?;
    if accept == Accept::Events {
        return Ok(event_stream(follow(cx.clone(), owner.clone(), id, after)));
    }
    let mut run = run.value;
    let mut live = cx.live.listen(id);
    while !run.state.is_final() {
        news(&mut live).await;
        run = load(cx, owner, id).await?.value;
    }
    if let Some(error) = run.error.as_ref().filter(|_| run.state == RunState::Failed) {
        return Err(failed(error, id));
    }
    Ok(Json(crate::flows::run_view::view(cx, owner, run).await?).into_response())
}

/// The problem that a failed run is to a caller who asked for its result.
fn failed(error: &RunError, run: RunId) -> Error {
    let message = format!("{} (run {run})", error.detail);
    if error.code == "budget_exceeded" {
        return Error::BudgetExceeded { message };
    }
    Error::RunFailed { code: error.code.clone(), message, retryable: error.retryable }
}

/// The response whose body is a stream of server-sent events.
pub fn event_stream(frames: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    use futures::StreamExt;
    let mut response = Response::new(Body::from_stream(frames.map(Ok::<_, Infallible>)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies of the nginx family hold a stream back without it.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// A run's events as frames, from `after` to the one that ends it.
pub fn follow(cx: Cx, owner: Owner, id: RunId, after: u64) -> impl Stream<Item = Bytes> + Send + 'static {
    struct Follower {
        cx: Cx,
        owner: Owner,
        id: RunId,
        after: u64,
        ended: bool,
        spoke: Instant,
        live: Option<watch::Receiver<u64>>,
    }
    let live = cx.live.listen(id);
    let follower = Follower { cx, owner, id, after, ended: false, spoke: Instant::now(), live };
    futures::stream::unfold(follower, |mut f| async move {
        if f.ended {
            return None;
        }
        loop {
            // Before the look: what is said after it is not missed.
            if let Some(live) = &mut f.live {
                live.mark_unchanged();
            }
            let events = match f.cx.store.run_events(&f.owner, f.id, f.after, 100).await {
                Ok(events) => events,
                Err(error) => {
                    // The client comes back with the last id it has; nothing is lost.
                    tracing::warn!(cause = %Error::from(error).causes(), "a follower lost the table");
                    return None;
                }
            };
            if let Some(last) = events.last() {
                f.after = last.id;
                f.ended = last.event.ends_the_run();
                f.spoke = Instant::now();
                let frames: String = events.iter().map(frame).collect();
                return Some((Bytes::from(frames), f));
            }
            if f.spoke.elapsed() >= HEARTBEAT {
                f.spoke = Instant::now();
                return Some((Bytes::from_static(b"event: heartbeat\ndata: {}\n\n"), f));
            }
            // A run that has no more to say ends; one that was left is ended by the look.
            match load(&f.cx, &f.owner, f.id).await {
                Ok(run) if !run.value.state.is_final() => news(&mut f.live).await,
                Ok(_) if f.cx.store.last_event_id(&f.owner, f.id).await.is_ok_and(|last| last > f.after) => {}
                _ => return None,
            }
        }
    })
}

fn frame(event: &RunEvent) -> String {
    format!("id: {}\nevent: {}\ndata: {}\n\n", event.id, event.event.name(), event.data)
}
