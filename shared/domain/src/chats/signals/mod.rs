//! Deliverables in a model's reply.
//!
//! A model without native tools marks its deliverables with *signals*: a keyword at the start of a line, a line `---`,
//! and a payload. The text around a signal is chat; the payload is never chat.
//!
//! | signal | payload |
//! |---|---|
//! | `READY_TO_CREATE`, as the very first characters of the reply | `KEY: value` lines, values over several lines |
//! | `GENERATE_ASSET` | a JSON object |
//! | `GENERATE_ACTIONS` | a JSON object, or an array of them |
//! | `USE_TOOL: name`, without the `---` | optionally a JSON object on the following lines |
//!
//! [`SignalReader`] reads a reply as it streams. A model with native tools calls tools such as `generate_asset`
//! instead, and [`Deliverable::from_tool_call`] gives the same result.

mod deliverable;
mod explain;
mod payload;
mod reader;

pub use crate::work::ActionDraft;
pub use deliverable::{Deliverable, SignalKind};
pub use explain::explain;
pub use reader::{Reply, SignalReader};

#[cfg(test)]
mod tests;
