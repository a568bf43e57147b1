//! Lambda's event source mapping for SQS. It gives batches to a handler and deletes the messages that succeeded.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Message, Queue};
use crate::engines::REGION;
use crate::engines::digest::md5_hex;

/// How long one receive waits for messages.
const LONG_POLL: Duration = Duration::from_secs(20);

/// Why a handler failed. The whole batch is then delivered again.
pub type HandlerError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollOptions {
    /// The most messages that a handler gets at once.
    pub batch_size: usize,
    /// The most handlers that run at once.
    pub concurrency: usize,
    /// A handler that takes longer is aborted, as Lambda aborts a function.
    pub timeout: Duration,
}

/// Handlers that work on a queue. Dropping it aborts them; [`Poller::stop`] lets them finish.
#[derive(Debug)]
pub struct Poller {
    stop: watch::Sender<bool>,
    workers: JoinSet<()>,
}

impl Poller {
    /// Stops receiving, and waits for the batches in progress.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        while self.workers.join_next().await.is_some() {}
    }
}

impl Queue {
    /// Calls `handler` with batches as SQS event JSON, until the poller is stopped or dropped.
    ///
    /// The handler returns a partial batch response (`{"batchItemFailures": [{"itemIdentifier": …}]}`; null or an empty
    /// object is success). The messages that it does not name are deleted. The others become visible again after the
    /// visibility timeout, or sooner if the handler has changed it. An error, a panic, a timeout or an invalid answer
    /// fails the whole batch.
    pub fn poll_with<F, R>(&self, options: PollOptions, handler: F) -> Poller
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, HandlerError>> + Send + 'static,
    {
        let (stop, stopped) = watch::channel(false);
        let handler = Arc::new(handler);
        let mut workers = JoinSet::new();
        for _ in 0..options.concurrency {
            workers.spawn(work(self.clone(), options, Arc::clone(&handler), stopped.clone()));
        }
        Poller { stop, workers }
    }

    fn event(&self, batch: &[Message]) -> Value {
        let arn = self.arn();
        let records: Vec<Value> = (batch.iter())
            .map(|message| {
                let mut attributes = json!({
                    "ApproximateReceiveCount": message.receives.to_string(),
                    "SentTimestamp": message.sent_at.as_millisecond().to_string(),
                    "SenderId": "lamplighter-local",
                    "ApproximateFirstReceiveTimestamp":
                        message.first_received_at.as_millisecond().to_string(),
                });
                if let Some(group) = &message.group {
                    attributes["MessageGroupId"] = (**group).into();
                }
                json!({
                    "messageId": message.id,
                    "receiptHandle": message.receipt.to_string(),
                    "body": &*message.body,
                    "attributes": attributes,
                    "messageAttributes": {},
                    "md5OfBody": md5_hex(message.body.as_bytes()),
                    "eventSource": "aws:sqs",
                    "eventSourceARN": arn,
                    "awsRegion": REGION,
                })
            })
            .collect();
        json!({ "Records": records })
    }
}

async fn work<F, R>(queue: Queue, options: PollOptions, handler: Arc<F>, mut stopped: watch::Receiver<bool>)
where
    F: Fn(Value) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Value, HandlerError>> + Send + 'static,
{
    loop {
        let batch = tokio::select! {
            biased;
            _ = stopped.wait_for(|stop| *stop) => return,
            batch = queue.receive(options.batch_size, LONG_POLL) => batch,
        };
        if batch.is_empty() {
            continue;
        }
        let event = queue.event(&batch);
        // The handler is called inside a task of its own, because it may panic before its first await. A panic ends the
        // task but not the poller. Dropping the set also ends the task.
        let mut run = JoinSet::new();
        let handler = Arc::clone(&handler);
        run.spawn(async move { handler(event).await });
        let outcome = match tokio::time::timeout(options.timeout, run.join_next()).await {
            Ok(Some(Ok(Ok(response)))) => succeeded(&response, &batch),
            Ok(Some(Ok(Err(error)))) => Err(error.to_string()),
            Ok(Some(Err(error))) => Err(error.to_string()),
            Ok(None) => Err("the handler's task is gone".to_owned()),
            Err(_) => Err(format!("the handler took more than {:?}", options.timeout)),
        };
        match outcome {
            Ok(done) => {
                for message in done {
                    if let Err(error) = queue.delete(message.receipt) {
                        // The handler took longer than the visibility timeout, so the message was delivered again:
                        // delivery is at least once.
                        tracing::debug!(queue = queue.config().name, %error, "failed to delete a message");
                    }
                }
            }
            Err(error) => tracing::warn!(
                queue = queue.config().name,
                messages = batch.len(),
                error,
                "a batch failed and will be delivered again"
            ),
        }
    }
}

/// The messages that the response does not name as failed, or an error if the response is invalid.
fn succeeded<'a>(response: &Value, batch: &'a [Message]) -> Result<Vec<&'a Message>, String> {
    let failures = match response {
        Value::Null => &Value::Null,
        Value::Object(fields) => fields.get("batchItemFailures").unwrap_or(&Value::Null),
        other => return Err(format!("the handler answered {other}, which is not a batch response")),
    };
    let failures = match failures {
        Value::Null => &[],
        Value::Array(failures) => failures.as_slice(),
        other => return Err(format!("batchItemFailures is {other}, which is not a list")),
    };
    let ids: HashSet<String> = batch.iter().map(|message| message.id.to_string()).collect();
    let mut failed = HashSet::new();
    for failure in failures {
        match failure["itemIdentifier"].as_str() {
            Some(id) if ids.contains(id) => failed.insert(id),
            _ => return Err(format!("{failure} does not name a message of the batch")),
        };
    }
    Ok(batch.iter().filter(|message| !failed.contains(message.id.to_string().as_str())).collect())
}
