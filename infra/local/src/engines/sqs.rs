//! SQS: an endpoint through which functions send messages, change the visibility of received messages, count dead letters and move them
//! back.
//!
//! Only these operations are served. The pollers receive and delete messages in this process. The dead letters of all queues appear as one
//! queue, as in the template.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde::Deserialize;
use serde_json::{Value, json};

use super::DEAD_LETTERS;
use super::digest::md5_hex;
use super::queue::{Queue, Receipt};
use super::transport::json_answer;

const MAX_ENTRIES: usize = 10;

/// The most bytes of all message bodies in a request.
const MAX_BYTES: usize = 1_048_576;

/// The longest delay, in seconds.
const MAX_DELAY: i64 = 900;

/// The longest visibility timeout, in seconds.
const MAX_VISIBILITY: u64 = 43_200;

/// The endpoint for these queues, by name.
pub(super) fn router(queues: HashMap<String, Queue>) -> Router {
    Router::new().route(
        "/",
        post(move |headers: HeaderMap, body: Bytes| async move {
            let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok());
            let answer = match target {
                Some("AmazonSQS.ChangeMessageVisibility") => {
                    change_visibility(&queues, &body).map(|()| json!({}))
                }
                Some("AmazonSQS.SendMessageBatch") => send_batch(&queues, &body),
                Some("AmazonSQS.GetQueueAttributes") => attributes(&queues, &body),
                Some("AmazonSQS.StartMessageMoveTask") => redrive(&queues, &body),
                other => Err(Refusal {
                    kind: "com.amazon.coral.service#UnknownOperationException",
                    message: format!(
                        "{} is not served locally",
                        other.unwrap_or("a request without a target")
                    ),
                }),
            };
            let (status, body) = match answer {
                Ok(answer) => (StatusCode::OK, answer.to_string()),
                Err(Refusal { kind, message }) => {
                    (StatusCode::BAD_REQUEST, json!({"__type": kind, "message": message}).to_string())
                }
            };
            json_answer(status, "application/x-amz-json-1.0", body)
        }),
    )
}

/// Refuses every other queue than the one with the dead letters, whose URL and ARN end in its name.
fn check_dead_letters(name: &str) -> Result<(), Refusal> {
    let of = |name: &str| name.rsplit(['/', ':']).next().map(str::to_owned);
    if of(name) == of(DEAD_LETTERS) { Ok(()) } else { Err(Refusal::unknown_queue()) }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GetQueueAttributes {
    queue_url: String,
}

/// How many dead letters there are.
fn attributes(queues: &HashMap<String, Queue>, body: &[u8]) -> Result<Value, Refusal> {
    let GetQueueAttributes { queue_url } = parsed(body)?;
    check_dead_letters(&queue_url)?;
    let count: usize = queues.values().map(|queue| queue.depth().dead).sum();
    Ok(json!({"Attributes": {"ApproximateNumberOfMessages": count.to_string()}}))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StartMessageMoveTask {
    source_arn: String,
}

/// Moves the dead letters back into their queues.
fn redrive(queues: &HashMap<String, Queue>, body: &[u8]) -> Result<Value, Refusal> {
    let StartMessageMoveTask { source_arn } = parsed(body)?;
    check_dead_letters(&source_arn)?;
    for queue in queues.values() {
        queue.redrive().map_err(|error| Refusal {
            kind: "com.amazonaws.sqs#InternalError",
            message: error.to_string(),
        })?;
    }
    Ok(json!({"TaskHandle": "done"}))
}

/// Why a request is refused.
struct Refusal {
    kind: &'static str,
    message: String,
}

impl Refusal {
    fn invalid(message: impl Into<String>) -> Self {
        Self { kind: "com.amazonaws.sqs#InvalidParameterValue", message: message.into() }
    }

    fn unknown_queue() -> Self {
        Self {
            kind: "com.amazonaws.sqs#QueueDoesNotExist",
            message: "The specified queue does not exist.".to_owned(),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ChangeMessageVisibility {
    queue_url: String,
    receipt_handle: String,
    visibility_timeout: u64,
}

fn parsed<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal {
        kind: "com.amazon.coral.service#SerializationException",
        message: error.to_string(),
    })
}

/// The queue that a URL names.
fn named<'a>(queues: &'a HashMap<String, Queue>, url: &str) -> Result<&'a Queue, Refusal> {
    let name = url.rsplit('/').next().unwrap_or_default();
    queues.get(name).ok_or_else(Refusal::unknown_queue)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SendMessageBatch {
    queue_url: String,
    entries: Vec<MessageEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct MessageEntry {
    id: String,
    message_body: String,
    #[serde(default)]
    delay_seconds: i64,
    message_group_id: Option<String>,
}

/// Each message is accepted or refused independently.
fn send_batch(queues: &HashMap<String, Queue>, body: &[u8]) -> Result<Value, Refusal> {
    let SendMessageBatch { queue_url, entries } = parsed(body)?;
    let queue = named(queues, &queue_url)?;
    let refused = |kind, message: &str| Err(Refusal { kind, message: message.to_owned() });
    match entries.len() {
        0 => {
            return refused("com.amazonaws.sqs#EmptyBatchRequest", "There should be at least one entry.");
        }
        1..=MAX_ENTRIES => {}
        _ => {
            let message = "Maximum number of entries per request are 10.";
            return refused("com.amazonaws.sqs#TooManyEntriesInBatchRequest", message);
        }
    }
    if entries.iter().map(|entry| &entry.id).collect::<HashSet<_>>().len() < entries.len() {
        return refused("com.amazonaws.sqs#BatchEntryIdsNotDistinct", "Ids must be distinct.");
    }
    if entries.iter().map(|entry| entry.message_body.len()).sum::<usize>() > MAX_BYTES {
        return refused(
            "com.amazonaws.sqs#BatchRequestTooLong",
            "Batch requests cannot be longer than 1048576 bytes.",
        );
    }
    let (mut successful, mut failed) = (Vec::new(), Vec::new());
    for entry in entries {
        match entry.refusal() {
            Some(message) => failed.push(json!({
                "Id": entry.id, "Code": "InvalidParameterValue", "Message": message, "SenderFault": true,
            })),
            None => {
                let md5 = md5_hex(entry.message_body.as_bytes());
                let delay = Duration::from_secs(entry.delay_seconds.unsigned_abs());
                let group = entry.message_group_id.map(Into::into);
                let id = queue.send_to(group, entry.message_body, delay);
                successful.push(json!({"Id": entry.id, "MessageId": id, "MD5OfMessageBody": md5}));
            }
        }
    }
    Ok(json!({"Successful": successful, "Failed": failed}))
}

impl MessageEntry {
    fn refusal(&self) -> Option<String> {
        if self.message_body.is_empty() {
            return Some("The request must contain the parameter MessageBody.".to_owned());
        }
        if !(0..=MAX_DELAY).contains(&self.delay_seconds) {
            let given = self.delay_seconds;
            return Some(format!(
                "Value {given} for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= {MAX_DELAY}."
            ));
        }
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b.is_ascii_punctuation();
        let valid = |group: &str| (1..=128).contains(&group.len()) && group.bytes().all(allowed);
        self.message_group_id.as_deref().is_some_and(|group| !valid(group)).then(|| {
            "Value for parameter MessageGroupId is invalid. Reason: MessageGroupId can only include \
             alphanumeric and punctuation characters. 1 to 128 in length."
                .to_owned()
        })
    }
}

fn change_visibility(queues: &HashMap<String, Queue>, body: &[u8]) -> Result<(), Refusal> {
    let ChangeMessageVisibility { queue_url, receipt_handle, visibility_timeout } = parsed(body)?;
    let queue = named(queues, &queue_url)?;
    if visibility_timeout > MAX_VISIBILITY {
        return Err(Refusal::invalid(format!(
            "Value {visibility_timeout} for parameter VisibilityTimeout is invalid. \
             Reason: Must be between 0 and {MAX_VISIBILITY}."
        )));
    }
    let receipt: Receipt = receipt_handle.parse().map_err(|()| Refusal {
        kind: "com.amazonaws.sqs#ReceiptHandleIsInvalid",
        message: "The input receipt handle is invalid.".to_owned(),
    })?;
    queue.change_visibility(receipt, Duration::from_secs(visibility_timeout)).map_err(|_| {
        Refusal::invalid(
            "Value for parameter ReceiptHandle is invalid. \
             Reason: Message does not exist or is not available for visibility timeout change.",
        )
    })
}
