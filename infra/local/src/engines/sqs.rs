//! SQS: an endpoint at which functions change the visibility of a message that they have received.
//!
//! Only this operation is served. Messages come from rules, and the pollers receive and delete them in this process.

use std::collections::HashMap;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde::Deserialize;
use serde_json::json;

use super::queue::{Queue, Receipt};
use super::transport::json_answer;

/// The longest visibility timeout, in seconds.
const MAX_VISIBILITY: u64 = 43_200;

/// The endpoint for these queues, by name.
pub(super) fn router(queues: HashMap<String, Queue>) -> Router {
    Router::new().route(
        "/",
        post(move |headers: HeaderMap, body: Bytes| async move {
            let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok());
            let answer = match target {
                Some("AmazonSQS.ChangeMessageVisibility") => change_visibility(&queues, &body),
                other => Err(Refusal {
                    kind: "com.amazon.coral.service#UnknownOperationException",
                    message: format!(
                        "{} is not served locally",
                        other.unwrap_or("a request without a target")
                    ),
                }),
            };
            let (status, body) = match answer {
                Ok(()) => (StatusCode::OK, "{}".to_owned()),
                Err(Refusal { kind, message }) => {
                    (StatusCode::BAD_REQUEST, json!({"__type": kind, "message": message}).to_string())
                }
            };
            json_answer(status, "application/x-amz-json-1.0", body)
        }),
    )
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
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ChangeMessageVisibility {
    queue_url: String,
    receipt_handle: String,
    visibility_timeout: u64,
}

fn change_visibility(queues: &HashMap<String, Queue>, body: &[u8]) -> Result<(), Refusal> {
    let ChangeMessageVisibility { queue_url, receipt_handle, visibility_timeout } =
        serde_json::from_slice(body).map_err(|error| Refusal {
            kind: "com.amazon.coral.service#SerializationException",
            message: error.to_string(),
        })?;
    let name = queue_url.rsplit('/').next().unwrap_or_default();
    let queue = queues.get(name).ok_or_else(|| Refusal {
        kind: "com.amazonaws.sqs#QueueDoesNotExist",
        message: "The specified queue does not exist.".to_owned(),
    })?;
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
