//! A run as an HTTP response: its events as server-sent events, or its result as JSON.
//!
//! A run is driven by a task of its own, so it continues if the client disconnects.

use std::convert::Infallible;

use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use domain::ids::{Owner, RunId};
use domain::runs::{Run, RunEvent, RunState};
use futures::{Stream, StreamExt};
use http::{HeaderValue, StatusCode, header};
use jiff::Timestamp;

use crate::context::Cx;
use crate::edge::accept::Accept;
use crate::error::{Error, Result};
use crate::flows::existing;
use crate::flows::runs::follow::{self, RunUpdate};
use crate::flows::runs::{self, Begun};
use crate::request::Invocation;

/// A response with this extension began a run.
#[derive(Clone, Copy, Debug)]
pub struct BeganRun(pub RunId);

/// Answers with a run: its events after `after`, or its result when it is finished. If it is not finished by `until`, the
/// answer is 202 with its state and its address.
///
/// # Errors
/// 404 if it does not exist. If a result is wanted and the run has failed: what it failed with.
pub async fn respond(
    cx: &Cx,
    owner: &Owner,
    id: RunId,
    after: u64,
    accept: Accept,
    until: Timestamp,
) -> Result<Response> {
    if accept == Accept::Events {
        let run = existing::run(cx, owner, id).await?.value;
        // An `EventSource` stops at 204. After any other answer it would reconnect for ever.
        if run.state.is_final() && after > 0 && after >= cx.store.last_event_id(owner, id).await? {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        return Ok(events(cx, owner, id, after, until));
    }
    let run = follow::to_its_end(cx, owner, id, until).await?;
    if !run.state.is_final() {
        return accepted(cx, owner, run).await;
    }
    not_failed(&run)?;
    Ok(Json(runs::view(cx, owner, run).await?).into_response())
}

/// Answers a request that began a run, or made one continue. A repeated request is answered from the run.
///
/// # Errors
/// If the run that continues can't be read.
pub async fn respond_begun(
    cx: &Cx,
    owner: &Owner,
    begun: Begun,
    accept: Accept,
    invocation: Invocation,
) -> Result<Response> {
    let (run, until) = (begun.run(), invocation.answers_until());
    let mut response = match (begun, accept) {
        // It has just begun: there is nothing to look up before its first event.
        (Begun::Here(_), Accept::Events) => events(cx, owner, run, 0, until),
        (Begun::Here(_), Accept::Json) => match respond(cx, owner, run, 0, accept, until).await {
            Ok(response) => response,
            Err(error) => error.into_response(),
        },
        (Begun::Elsewhere { after, .. }, Accept::Events) => events(cx, owner, run, after, until),
        (Begun::Elsewhere { .. }, Accept::Json) => {
            return accepted(cx, owner, existing::run(cx, owner, run).await?.value).await;
        }
    };
    belongs_to(&mut response, run);
    Ok(response)
}

/// Names the run that a response is about. A repeated request is answered from the run.
pub fn belongs_to(response: &mut Response, run: RunId) {
    if let Ok(location) = format!("/runs/{run}").try_into() {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response.extensions_mut().insert(BeganRun(run));
}

/// 202 with the run's state and its address.
async fn accepted(cx: &Cx, owner: &Owner, run: Run) -> Result<Response> {
    let location = [(header::LOCATION, format!("/runs/{}", run.run_id))];
    let view = runs::view(cx, owner, run).await?;
    Ok((StatusCode::ACCEPTED, location, Json(view)).into_response())
}

/// Checks a run whose result was asked for.
///
/// # Errors
/// If the run has failed: the reason.
pub fn not_failed(run: &Run) -> Result<()> {
    let Some(error) = run.error.as_ref().filter(|_| run.state == RunState::Failed) else { return Ok(()) };
    let message = format!("{} (run {})", error.detail, run.run_id);
    if error.code == "budget_exceeded" {
        return Err(Error::BudgetExceeded { message });
    }
    Err(Error::RunFailed { code: error.code.clone(), message, retryable: error.retryable })
}

/// A run's events as server-sent events. A client that wants more reconnects with the last id that it has.
fn events(cx: &Cx, owner: &Owner, run: RunId, after: u64, until: Timestamp) -> Response {
    event_stream(follow::follow(cx.clone(), owner.clone(), run, after, until).map(|update| match update {
        RunUpdate::Events(events) => Bytes::from(events.iter().map(frame).collect::<String>()),
        RunUpdate::Silence => Bytes::from_static(b"event: heartbeat\ndata: {}\n\n"),
    }))
}

/// The response whose body is a stream of server-sent events, as frames.
pub fn event_stream(frames: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let mut response = Response::new(Body::from_stream(frames.map(Ok::<_, Infallible>)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Without this header, nginx buffers the stream.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn frame(event: &RunEvent) -> String {
    format!("id: {}\nevent: {}\ndata: {}\n\n", event.id, event.event.name(), event.data)
}
