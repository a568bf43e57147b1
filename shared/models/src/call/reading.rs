//! An answer that arrives: how it is cut into events, and how long a piece may take.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use domain::models::error::TimeoutPhase;
use domain::models::{ModelError, ModelEvent};
use futures::stream::{BoxStream, Stream, StreamExt, TryStreamExt};
use sse_stream::SseByteStream;
use tokio::time::{Instant, timeout_at};

use super::{Decode, sooner};
use crate::aws;

/// How an answer is cut into events.
#[derive(Debug, Clone, Copy)]
pub enum Framing {
    ServerSentEvents,
    /// `application/vnd.amazon.eventstream`. The data of an event is JSON, as `aws.rs` describes.
    EventStream,
}

/// Cuts an answer into the data of its events.
pub fn frames(
    framing: Framing,
    bytes: impl Stream<Item = Result<Bytes, ModelError>> + Send + 'static,
) -> BoxStream<'static, Result<String, ModelError>> {
    match framing {
        Framing::ServerSentEvents => SseByteStream::new(bytes)
            .map_ok(|event| event.data.unwrap_or_default())
            .map_err(|_| ModelError::ConnectionLost)
            .boxed(),
        Framing::EventStream => aws::events(bytes).boxed(),
    }
}

/// An answer that is being read.
pub(super) struct AnswerReader<D> {
    /// The data of each event.
    pub(super) events: BoxStream<'static, Result<String, ModelError>>,
    pub(super) decoder: D,
    pub(super) ready: VecDeque<ModelEvent>,
    pub(super) idle: Duration,
    pub(super) deadline: Instant,
    pub(super) over: bool,
}

impl<D: Decode> AnswerReader<D> {
    pub(super) async fn next(mut self) -> Option<(Result<ModelEvent, ModelError>, Self)> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.over |= matches!(event, ModelEvent::Finished { .. });
                return Some((Ok(event), self));
            }
            if self.over {
                return None;
            }
            match self.read().await {
                Ok(events) => self.ready.extend(events),
                Err(error) => {
                    self.over = true;
                    return Some((Err(error), self));
                }
            }
        }
    }

    async fn read(&mut self) -> Result<Vec<ModelEvent>, ModelError> {
        let (until, phase) = sooner(self.deadline, self.idle, TimeoutPhase::Idle);
        match timeout_at(until, self.events.next()).await.map_err(|_| ModelError::Timeout(phase))? {
            Some(data) => {
                let data = data?;
                if data.is_empty() { Ok(Vec::new()) } else { self.decoder.data(&data) }
            }
            None => self.decoder.end(),
        }
    }
}
