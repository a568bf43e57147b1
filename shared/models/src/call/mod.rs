//! One request over HTTP and its streamed answer, under time limits.

mod blocks;
mod endpoint;
mod reading;
mod turns;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use domain::models::error::TimeoutPhase;
use domain::models::{ModelError, ModelEvent, Provider, Usage};
use futures::future;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

pub(crate) use self::blocks::{ToolCall, in_order};
pub use self::endpoint::{Endpoint, InvalidEndpoint, ModelLimits};
use self::reading::AnswerReader;
pub use self::reading::{Framing, frames};
pub(crate) use self::turns::{before_newest_words, newest_words, stable, turns};
use super::EventStream;

/// The most bytes of an answer that are read. A longer answer counts as broken off. The longest reply that a run
/// requests has 16,000 tokens, which are at most a few megabytes with their frames. Ten runs share an executor's
/// memory.
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;

fn sooner(deadline: Instant, limit: Duration, phase: TimeoutPhase) -> (Instant, TimeoutPhase) {
    let until = Instant::now() + limit;
    if until < deadline { (until, phase) } else { (deadline, TimeoutPhase::Deadline) }
}

/// The request that a codec has encoded.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// The path below the endpoint's base.
    pub path: Cow<'static, str>,
    /// A header that only this call has.
    pub header: Option<(&'static str, &'static str)>,
    pub body: Value,
}

/// The reading half of a codec. Each try begins with a clone.
pub trait Decode: Clone + Send + Sync + 'static {
    /// How the answer is cut into events.
    const FRAMING: Framing = Framing::ServerSentEvents;

    /// Handles the data of one event. Nothing is read after a `Finished`.
    ///
    /// # Errors
    /// An error that the provider reports in the middle of its answer, or [`ModelError::Malformed`].
    fn data(&mut self, data: &str) -> Result<Vec<ModelEvent>, ModelError>;

    /// Handles the end of an answer without a `Finished`.
    ///
    /// # Errors
    /// [`ModelError::Truncated`], unless the format allows it.
    fn end(&mut self) -> Result<Vec<ModelEvent>, ModelError>;
}

/// The whole call: encodes, sends, retries, reads.
pub(super) fn stream<D: Decode>(
    endpoint: Endpoint,
    provider: Provider,
    call: Result<Call, ModelError>,
    decoder: D,
) -> EventStream {
    let tries =
        Attempts { endpoint, provider, call: Some(call), decoder, deadline: None, failures: 0, failed: None };
    stream::unfold(Some(tries), |tries| async move {
        let mut tries = tries?;
        match tries.next().await {
            Ok(Try::Lost(reported)) => {
                Some((Ok(stream::iter([Ok(ModelEvent::TryLost(reported))]).boxed()), Some(tries)))
            }
            Ok(Try::Opened(events)) => Some((Ok(events), None)),
            Err(error) => Some((Err(error), None)),
        }
    })
    .try_flatten()
    .boxed()
}

/// The tries of one call.
struct Attempts<D> {
    endpoint: Endpoint,
    provider: Provider,
    call: Option<Result<Call, ModelError>>,
    decoder: D,
    deadline: Option<Instant>,
    failures: u32,
    /// Why the last try failed, if the pause after it has not begun yet.
    failed: Option<ModelError>,
}

/// The result of a try.
enum Try {
    Opened(EventStream),
    /// The try failed and may have been billed, and another one follows. The usage is what the provider had reported.
    Lost(Usage),
}

impl<D: Decode> Attempts<D> {
    async fn next(&mut self) -> Result<Try, ModelError> {
        let limits = self.endpoint.limits;
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + limits.deadline);
        let tries = async {
            loop {
                if let Some(error) = self.failed.take() {
                    limits.retry.wait_or_fail(self.failures, error).await?;
                }
                let call = match &self.call {
                    Some(Ok(call)) => call,
                    _ => return Err(self.call.take().and_then(Result::err).unwrap_or(ModelError::Truncated)),
                };
                let (endpoint, provider, decoder) = (&self.endpoint, self.provider, self.decoder.clone());
                let mut seen = Vec::new();
                let error = match open(endpoint, provider, call, decoder, deadline, &mut seen).await {
                    Ok(events) => return Ok(Try::Opened(events)),
                    Err(error) => error,
                };
                self.failures += 1;
                if limits.retry.pause(self.failures, &error, 0.0).is_none() {
                    // A reply that has begun is billed, even if it fails. Its events say what it used.
                    let events = seen.into_iter().map(Ok).chain([Err(error)]);
                    return Ok(Try::Opened(stream::iter(events).boxed()));
                }
                let lost = !seen.is_empty() || error.may_be_billed();
                self.failed = Some(error);
                if lost {
                    let reported = seen.into_iter().rev().find_map(|event| match event {
                        ModelEvent::Usage(usage) => Some(usage),
                        _ => None,
                    });
                    return Ok(Try::Lost(reported.unwrap_or_default()));
                }
            }
        };
        timeout_at(deadline, tries).await.unwrap_or(Err(ModelError::Timeout(TimeoutPhase::Deadline)))
    }
}

/// One try, until the first event that a requester would notice. A failure before that can be retried; then `seen` has the
/// events before it.
async fn open<D: Decode>(
    endpoint: &Endpoint,
    provider: Provider,
    call: &Call,
    decoder: D,
    deadline: Instant,
    seen: &mut Vec<ModelEvent>,
) -> Result<EventStream, ModelError> {
    let body = serde_json::to_vec(&call.body).expect("a JSON value always serializes");
    let answer = endpoint.post(&call.path, call.header, body, provider, deadline).await?;
    let mut left = MAX_ANSWER_BYTES;
    let bytes = answer.bytes_stream().take_while(move |chunk| {
        let read = chunk.as_ref().map_or(0, Bytes::len);
        let fits = read <= left;
        left = left.saturating_sub(read);
        future::ready(fits)
    });
    let events = frames(D::FRAMING, bytes.map_err(|_| ModelError::ConnectionLost));
    let reading = AnswerReader {
        events,
        decoder,
        ready: VecDeque::new(),
        idle: endpoint.limits.idle,
        deadline,
        over: false,
    };
    let mut events = stream::unfold(reading, AnswerReader::next).boxed();
    while let Some(event) = events.next().await {
        let event = event?;
        let unnoticed = matches!(event, ModelEvent::Started { .. } | ModelEvent::Usage(_));
        seen.push(event);
        if !unnoticed {
            break;
        }
    }
    Ok(stream::iter(std::mem::take(seen).into_iter().map(Ok)).chain(events).boxed())
}

#[cfg(test)]
mod tests;
