//! Every rule of the context document, as tables.

mod forms;
mod modes;
mod round_trip;
mod updates;

use jiff::Timestamp;

use super::document::Document;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The document that a workflow begins with, on a fixed morning.
fn begun(task: &str) -> Document {
    super::update::begin(super::Mode::Plan, task, None, at("2026-01-11T10:00:00Z")).0
}
