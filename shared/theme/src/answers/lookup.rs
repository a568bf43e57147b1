//! Which files and lines a request is about.

use serde::Serialize;
use utoipa::ToSchema;

use super::super::history::History;
use super::super::index::ThemeIndex;
use super::super::lookup::Lookup;
use super::super::scan::EdgeKind;
use super::{Source, ranges};

/// The longest request, in characters.
pub const MAX_REQUEST: usize = 10_000;

/// The most targets that can be asked for.
pub const MAX_TARGETS: usize = 100;

/// The number of targets if nothing else is asked for.
pub const DEFAULT_TARGETS: usize = 8;

/// The files and lines that a request is about.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct LookupAnswer {
    pub source: Source,
    /// Whether a file to edit is very likely among the first three targets. If this is true, it is so nine times of ten.
    pub confident: bool,
    /// Best first.
    pub targets: Vec<TargetView>,
    pub related: Vec<RelatedView>,
    /// The targets in the order in which to edit them: each after the files that it needs.
    pub edit_order: Vec<String>,
    /// How long the lookup took, in microseconds.
    pub took_us: u64,
}

/// A file that a request is about.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct TargetView {
    pub path: String,
    /// Scores can be compared within one answer only.
    pub score: f32,
    /// The lines to look at first.
    pub ranges: Vec<[u32; 2]>,
    /// Which words of the request were found where.
    pub reasons: Vec<String>,
}

/// A file next to a target.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct RelatedView {
    pub path: String,
    pub edge: EdgeKind,
    /// The target that leads here.
    pub via: String,
}

impl LookupAnswer {
    /// What the index finds.
    pub fn of(
        index: &ThemeIndex,
        source: Source,
        request: &str,
        active_file: Option<&str>,
        limit: usize,
    ) -> Self {
        Self::of_lookup(source, index.lookup(request, active_file, limit))
    }

    /// What the index finds if it knows what was asked and edited before.
    pub fn with_history(
        index: &ThemeIndex,
        source: Source,
        request: &str,
        active_file: Option<&str>,
        limit: usize,
        history: &History,
    ) -> Self {
        Self::of_lookup(source, index.lookup_with_history(request, active_file, limit, history))
    }

    fn of_lookup(source: Source, found: Lookup) -> Self {
        Self {
            source,
            confident: found.confident,
            targets: found
                .targets
                .into_iter()
                .map(|target| TargetView {
                    path: target.path,
                    score: target.score,
                    ranges: ranges(target.ranges),
                    reasons: target.reasons,
                })
                .collect(),
            related: found
                .related
                .into_iter()
                .map(|related| RelatedView { path: related.path, edge: related.edge, via: related.via })
                .collect(),
            edit_order: found.edit_order,
            took_us: 0,
        }
    }
}
