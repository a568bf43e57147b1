//! Run events: stored as they happen, followed from any instance, replayed after any id.
//!
//! [`respond`] answers a client with server-sent events or with the finished result. The run is driven by a task of its own, so
//! it continues if the client disconnects; a follower only reads. The writer is the
//! [`Recorder`](crate::agent_loop::recorder::Recorder).

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use domain::ids::{Owner, RunId};
use domain::runs::{Run, RunError, RunEvent, RunState};
use futures::Stream;
use http::{HeaderValue, StatusCode, header};
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;

pub use crate::accept::Accept;
use crate::context::Cx;
use crate::problem::{Error, Result};
use crate::store::Versioned;

/// How often a silent stream sends a heartbeat.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How often a follower looks for events of a run that another process executes.
const POLL: Duration = Duration::from_millis(150);

/// How often a follower looks for events of a run of its own process. That process announces new events.
const POLL_LIVE: Duration = Duration::from_secs(2);

/// The runs that this process executes, with the newest event of each, so that followers here need not poll.
#[derive(Clone, Default)]
pub struct LiveRuns(Arc<Mutex<HashMap<RunId, watch::Sender<u64>>>>);

impl LiveRuns {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, watch::Sender<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces the newest event of a run that is executed here.
    pub(crate) fn tell(&self, run: RunId, event: u64) {
        self.lock().entry(run).or_insert_with(|| watch::Sender::new(0)).send_replace(event);
    }

    /// Announces that a run is no longer executed here.
    pub(crate) fn forget(&self, run: RunId) {
        self.lock().remove(&run);
    }

    /// Whether no run is executed here.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// The newest event of a run, as it changes; `None` if the run is not executed here.
    #[must_use]
    pub fn listen(&self, run: RunId) -> Option<watch::Receiver<u64>> {
        self.lock().get(&run).map(watch::Sender::subscribe)
    }
}

/// Waits until there may be new events: until this process announces one, or for a limited time.
async fn wait_for_events(live: &mut Option<watch::Receiver<u64>>) {
    let is_closed = match live {
        None => return tokio::time::sleep(POLL).await,
        Some(live) => {
            tokio::time::timeout(POLL_LIVE, live.changed()).await.is_ok_and(|changed| changed.is_err())
        }
    };
    if is_closed {
        *live = None;
    }
}

/// How long a follower retries if it can't read the table: in the process that executes the run, and in another process.
const TRY_HERE: Duration = Duration::from_secs(120);
const TRY_ELSEWHERE: Duration = Duration::from_secs(5);

/// The pause after a failed read; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Reads a run.
///
/// # Errors
/// 404 if it does not exist.
pub async fn load(cx: &Cx, owner: &Owner, id: RunId) -> Result<Versioned<Run>> {
    cx.store.run(owner, id).await?.ok_or(Error::NotFound("run"))
}

/// Answers with a run: its events after `after`, or its result when it is finished. If it is not finished by `until`, the
/// answer is 202 with its state and its address.
///
/// # Errors
/// 404 if it does not exist.
pub async fn respond(
    cx: &Cx,
    owner: &Owner,
    id: RunId,
    after: u64,
    accept: Accept,
    until: Timestamp,
) -> Result<Response> {
    let run = load(cx, owner, id).await?;
    if accept == Accept::Events {
        // An `EventSource` stops at 204. After any other answer it would reconnect for ever.
        if run.value.state.is_final() && after > 0 && after >= cx.store.last_event_id(owner, id).await? {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        return Ok(event_stream(follow(cx.clone(), owner.clone(), id, after, until)));
    }
    let mut run = run.value;
    let mut live = cx.live.listen(id);
    let mut patience = Patience::default();
    while !run.state.is_final() {
        if is_over(cx, until, live.is_some()) {
            let location = [(header::LOCATION, format!("/runs/{id}"))];
            let view = crate::flows::run_view::view(cx, owner, run).await?;
            return Ok((StatusCode::ACCEPTED, location, Json(view)).into_response());
        }
        wait_for_events(&mut live).await;
        run = match load(cx, owner, id).await {
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
    if let Some(error) = run.error.as_ref().filter(|_| run.state == RunState::Failed) {
        return Err(failed(error, id));
    }
    Ok(Json(crate::flows::run_view::view(cx, owner, run).await?).into_response())
}

/// Whether an answer must end before its run: the time is over, or the process is about to end and does not execute the run.
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

/// The error for a caller who asked for the result of a failed run.
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
    // Without this header, nginx buffers the stream.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The events of a run as frames, from `after` to its last event, or until this process must end. Then the client
/// reconnects with the last id that it has.
pub fn follow(
    cx: Cx,
    owner: Owner,
    id: RunId,
    after: u64,
    until: Timestamp,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let live = cx.live.listen(id);
    let follower = Follower { cx, owner, id, after, until, ended: false, spoke: Instant::now(), live };
    futures::stream::unfold(follower, |mut follower| async move {
        let frames = follower.next().await?;
        Some((frames, follower))
    })
}

struct Follower {
    cx: Cx,
    owner: Owner,
    id: RunId,
    after: u64,
    until: Timestamp,
    ended: bool,
    spoke: Instant,
    live: Option<watch::Receiver<u64>>,
}

impl Follower {
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        let mut patience = Patience::default();
        loop {
            match self.look().await {
                Ok(Look::Frames(frames)) => {
                    self.spoke = Instant::now();
                    return Some(frames);
                }
                Ok(Look::End) => return None,
                Ok(Look::Nothing) if is_over(&self.cx, self.until, self.live.is_some()) => return None,
                Ok(Look::Nothing) => {
                    patience = Patience::default();
                    wait_for_events(&mut self.live).await;
                }
                Err(error) if patience.is_used_up(self.live.is_some()) => {
                    // The client reconnects with the last id that it has; nothing is lost.
                    tracing::warn!(cause = %error.causes(), "a follower lost the table");
                    return None;
                }
                Err(_) => patience.pause().await,
            }
            if self.spoke.elapsed() >= HEARTBEAT {
                self.spoke = Instant::now();
                return Some(Bytes::from_static(b"event: heartbeat\ndata: {}\n\n"));
            }
        }
    }

    async fn look(&mut self) -> Result<Look> {
        // Before the read, so that an announcement after the read is not missed.
        if let Some(live) = &mut self.live {
            live.mark_unchanged();
        }
        let events = self.cx.store.run_events(&self.owner, self.id, self.after, 100).await?;
        if let Some(last) = events.last() {
            self.after = last.id;
            self.ended = last.event.ends_the_run();
            return Ok(Look::Frames(Bytes::from(events.iter().map(frame).collect::<String>())));
        }
        match load(&self.cx, &self.owner, self.id).await {
            Ok(run) if !run.value.state.is_final() => Ok(Look::Nothing),
            Ok(_) if self.cx.store.last_event_id(&self.owner, self.id).await? > self.after => {
                Ok(Look::Nothing)
            }
            Ok(_) | Err(Error::NotFound(_)) => Ok(Look::End),
            Err(error) => Err(error),
        }
    }
}

/// The result of a read.
enum Look {
    Frames(Bytes),
    Nothing,
    /// The run has ended, and all events were sent.
    End,
}

fn frame(event: &RunEvent) -> String {
    format!("id: {}\nevent: {}\ndata: {}\n\n", event.id, event.event.name(), event.data)
}
