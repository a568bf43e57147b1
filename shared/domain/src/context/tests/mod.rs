//! Tables of every rule of the context document.

mod forms;
mod modes;
mod round_trip;
mod updates;

use jiff::Timestamp;

use super::document::Document;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The document at the beginning of a workflow, at a fixed time.
fn begun(task: &str) -> Document {
    super::update::begin(super::Mode::Plan, task, None, at("2026-01-11T10:00:00Z")).0
}
