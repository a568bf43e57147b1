//! The answers of the API and of the command about a theme: plain lists of what the index and the checks find.
//!
//! There is no clock here. Whoever asks measures the time and sets `took_us`.

mod check;
mod graph;
mod lookup;
mod repo_map;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::text::LineRange;

pub use check::{CheckAnswer, MAX_CHANGED, MAX_FINDINGS, MAX_READ};
pub use graph::{Findings, MAX_EDGES, Neighbours, Relationship, Unused};
pub use lookup::{DEFAULT_TARGETS, LookupAnswer, MAX_REQUEST, MAX_TARGETS, RelatedView, TargetView};
pub use repo_map::{DEFAULT_TOKENS, MAX_TOKENS, RepoMapAnswer};

/// Where an index comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The stored map, which is up to date.
    Map,
    /// The files themselves, read for this answer, because the map is out of date.
    Scout,
}

/// The first and the last line, from 1.
pub fn range(lines: LineRange) -> [u32; 2] {
    [lines.start, lines.end]
}

/// The first and the last line of each range.
pub fn ranges(lines: Vec<LineRange>) -> Vec<[u32; 2]> {
    lines.into_iter().map(range).collect()
}
