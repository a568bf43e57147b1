//! The events of a run, as a client reads them.

#![allow(clippy::unwrap_used, reason = "a test's helpers panic as its body does")]

use reqwest::Method;
use serde_json::Value;

use crate::Harness;

/// A server-sent event, as it was sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// From 1, without gaps.
    pub id: u64,
    pub name: String,
    pub data: Value,
}

/// The events of a stream's text, without heartbeats.
pub fn events(text: &str) -> Vec<Event> {
    text.split("\n\n")
        .filter(|frame| frame.starts_with("id:"))
        .map(|frame| {
            let field = |name: &str| {
                frame.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned()
            };
            Event {
                id: field("id:").parse().unwrap(),
                name: field("event:"),
                data: serde_json::from_str(&field("data:")).unwrap(),
            }
        })
        .collect()
}

/// Posts `body`, and returns the events of the answer.
pub async fn stream(h: &Harness, path: &str, body: Value) -> Vec<Event> {
    let request = h.request(Method::POST, path).header("accept", "text/event-stream").json(&body);
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    events(&response.text().await.unwrap())
}

/// The names of the events, each run of equal names once.
pub fn names(events: &[Event]) -> Vec<&str> {
    let mut names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    names.dedup();
    names
}

/// The text of the reply that a reader of these events sees.
pub fn text(events: &[Event]) -> String {
    let deltas = events.iter().filter(|event| event.name == "message.delta");
    deltas.filter_map(|event| event.data["text"].as_str()).collect()
}
