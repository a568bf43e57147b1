//! EventBridge: an endpoint that accepts `PutEvents` from the AWS SDK and delivers into queues by rules.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

use super::queue::Queue;
use super::{ACCOUNT, REGION};

const MAX_ENTRIES: usize = 10;
/// The most bytes of one request's entries, counted as EventBridge counts them.
const MAX_SIZE: usize = 256 * 1024;
/// The size of an entry's own time, in bytes.
const TIME_SIZE: usize = 14;

/// Matching events go into the queue, in EventBridge's envelope.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    /// `None` matches every source.
    pub source: Option<String>,
    /// An empty list matches every detail type.
    pub detail_types: Vec<String>,
    pub queue: Queue,
}

impl Rule {
    fn matches(&self, source: &str, detail_type: &str) -> bool {
        self.source.as_deref().is_none_or(|wanted| wanted == source)
            && (self.detail_types.is_empty() || self.detail_types.iter().any(|wanted| wanted == detail_type))
    }
}

/// The endpoint for one bus. The account's `default` bus also exists, without rules.
pub(super) fn router(bus: String, rules: Vec<Rule>) -> Router {
    let bus = Arc::new(Bus { name: bus, rules });
    Router::new()
        .route("/", post(move |headers: HeaderMap, body: Bytes| async move { bus.answer(&headers, &body) }))
}

struct Bus {
    name: String,
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PutEvents {
    #[serde(default)]
    entries: Vec<EventEntry>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct EventEntry {
    time: Option<f64>,
    source: Option<String>,
    resources: Vec<String>,
    detail_type: Option<String>,
    detail: Option<String>,
    event_bus_name: Option<String>,
}

/// Why a whole request is refused.
struct Refusal {
    kind: &'static str,
    message: String,
}

/// Why one entry is refused while the others are accepted.
struct EntryError {
    code: &'static str,
    message: String,
}

impl EntryError {
    fn invalid(parameter: &str, reason: &str) -> Self {
        Self {
            code: "InvalidArgument",
            message: format!("Parameter {parameter} is not valid. Reason: {reason}"),
        }
    }
}

impl Bus {
    fn answer(&self, headers: &HeaderMap, body: &[u8]) -> Response {
        let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok());
        let answer = match target {
            Some("AWSEvents.PutEvents") => self.put_events(body),
            other => Err(Refusal {
                kind: "UnknownOperationException",
                message: format!("{} is not served locally", other.unwrap_or("a request without a target")),
            }),
        };
        let (status, body) = match answer {
            Ok(body) => (StatusCode::OK, body),
            Err(Refusal { kind, message }) => {
                (StatusCode::BAD_REQUEST, json!({"__type": kind, "message": message}))
            }
        };
        let headers = [
            (header::CONTENT_TYPE, "application/x-amz-json-1.1".to_owned()),
            (header::HeaderName::from_static("x-amzn-requestid"), Uuid::now_v7().to_string()),
        ];
        (status, headers, Body::from(body.to_string())).into_response()
    }

    fn put_events(&self, body: &[u8]) -> Result<Value, Refusal> {
        let request: PutEvents = serde_json::from_slice(body)
            .map_err(|error| Refusal { kind: "SerializationException", message: error.to_string() })?;
        let validation = |message| Refusal { kind: "ValidationException", message };
        let constraint = |bound| {
            format!(
                "1 validation error detected: Value at 'entries' failed to satisfy constraint: \
                 Member must have length {bound}"
            )
        };
        match request.entries.len() {
            0 => return Err(validation(constraint("greater than or equal to 1"))),
            1..=MAX_ENTRIES => {}
            _ => return Err(validation(constraint("less than or equal to 10"))),
        }
        if request.entries.iter().map(EventEntry::size).sum::<usize>() > MAX_SIZE {
            return Err(validation("Total size of the entries in the request is over the limit.".to_owned()));
        }
        let mut failed = 0;
        let entries: Vec<Value> = (request.entries.iter())
            .map(|entry| match self.publish(entry) {
                Ok(id) => json!({"EventId": id}),
                Err(EntryError { code, message }) => {
                    failed += 1;
                    json!({"ErrorCode": code, "ErrorMessage": message})
                }
            })
            .collect();
        Ok(json!({"FailedEntryCount": failed, "Entries": entries}))
    }

    fn publish(&self, entry: &EventEntry) -> Result<Uuid, EntryError> {
        let source = required("Source", entry.source.as_deref())?;
        let detail_type = required("DetailType", entry.detail_type.as_deref())?;
        let detail = required("Detail", entry.detail.as_deref())?;
        let detail = match serde_json::from_str(detail) {
            Ok(detail @ Value::Object(_)) => detail,
            _ => {
                return Err(EntryError { code: "MalformedDetail", message: "Detail is malformed.".into() });
            }
        };
        if source.starts_with("aws.") {
            return Err(EntryError {
                code: "NotAuthorizedForSourceException",
                message: "Not authorized for the source.".into(),
            });
        }
        let bus = entry.event_bus_name.as_deref().unwrap_or("default");
        // The name may be an ARN; its last part is the name.
        let bus = bus.rsplit('/').next().unwrap_or(bus);
        // AWS accepts events for a bus that does not exist and drops them. Here this is an error.
        if bus != "default" && bus != self.name {
            return Err(EntryError::invalid(
                "EventBusName",
                &format!("Event bus {bus} does not exist; the local one is {}.", self.name),
            ));
        }
        let time = match entry.time {
            Some(seconds) => Timestamp::from_millisecond((seconds * 1000.0) as i64)
                .map_err(|_| EntryError::invalid("Time", "Time is out of range."))?,
            None => Timestamp::now(),
        };
        let id = Uuid::now_v7();
        let envelope = json!({
            "version": "0",
            "id": id,
            "detail-type": detail_type,
            "source": source,
            "account": ACCOUNT,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "region": REGION,
            "resources": entry.resources,
            "detail": detail,
        })
        .to_string();
        let rules = if bus == self.name { self.rules.as_slice() } else { &[] };
        for rule in rules.iter().filter(|rule| rule.matches(source, detail_type)) {
            rule.queue.send(envelope.clone(), Duration::ZERO);
        }
        Ok(id)
    }
}

impl EventEntry {
    fn size(&self) -> usize {
        let texts = [&self.source, &self.detail_type, &self.detail];
        texts.into_iter().flatten().map(String::len).sum::<usize>()
            + self.resources.iter().map(String::len).sum::<usize>()
            + self.time.map_or(0, |_| TIME_SIZE)
    }
}

fn required<'a>(name: &str, value: Option<&'a str>) -> Result<&'a str, EntryError> {
    value
        .filter(|value| !value.is_empty())
        .ok_or_else(|| EntryError::invalid(name, &format!("{name} is a required argument.")))
}
