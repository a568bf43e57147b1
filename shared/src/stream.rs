//! Run events: stored as they happen, followed from any instance, replayed after any id.
//!
//! [`respond`] answers a client: as server-sent events, or with the finished result. A client that leaves takes nothing with
//! it: the run goes on in a task of its own, and the follower is only a reader. The writer is the
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

    /// Says which is the newest event of a run that is executed here.
    pub(crate) fn tell(&self, run: RunId, event: u64) {
        self.lock().entry(run).or_insert_with(|| watch::Sender::new(0)).send_replace(event);
    }

    /// Says that a run is no longer executed here.
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

/// How long a follower tries again that can't read the table: in the process that executes the run, and in another.
const TRY_HERE: Duration = Duration::from_secs(120);
const TRY_ELSEWHERE: Duration = Duration::from_secs(5);

/// The pause after a failed read; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Reads a run.
///
/// # Errors
/// 404 if there is none.
pub async fn load(cx: &Cx, owner: &Owner, id: RunId) -> Result<Versioned<Run>> {
    cx.store.run(owner, id).await?.ok_or(Error::NotFound("run"))
}

/// Answers with a run: its events after `after`, or its result once it has one. A run that has none by `until` is answered
/// as it is, with 202 and its address.
///
/// # Errors
/// 404 if there is none.
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
        // An `EventSource` stops at 204. After anything else, it would ask again for ever.
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
        news(&mut live).await;
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

/// Whether an answer must end before its run: the process is about to end, and does not execute the run itself.
fn is_over(cx: &Cx, until: Timestamp, executed_here: bool) -> bool {
    cx.clock.now() >= until || cx.stopping.is_set() && !executed_here
}

/// How long a reader of the table tries again.
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
    /// Whether it has failed for too long. A follower that ends takes its invocation with it: while the run is executed
    /// here, it stays longer.
    fn is_used_up(&mut self, executed_here: bool) -> bool {
        let bound = if executed_here { TRY_HERE } else { TRY_ELSEWHERE };
        self.since.get_or_insert_with(Instant::now).elapsed() >= bound
    }

    async fn pause(&mut self) {
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
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

/// A run's events as frames, from `after` to the one that ends it, or until this process can't go on with it: then the
/// client comes back with the last id it has.
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
                    news(&mut self.live).await;
                }
                Err(error) if patience.is_used_up(self.live.is_some()) => {
                    // The client comes back with the last id it has; nothing is lost.
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
        // Before the look: what is said after it is not missed.
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

/// What a follower has found.
enum Look {
    Frames(Bytes),
    Nothing,
    /// The run has ended, and all was told.
    End,
}

fn frame(event: &RunEvent) -> String {
    format!("id: {}\nevent: {}\ndata: {}\n\n", event.id, event.event.name(), event.data)
}
