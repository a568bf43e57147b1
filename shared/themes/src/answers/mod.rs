//! The questions that a theme's index in memory answers: lookup, scout, repo map, map, graph, gate.

mod gate;
mod graph;
mod lookup;
mod map;
mod repo_map;
mod scout;

use std::sync::Arc;
use std::time::Instant;

use domain::ids::{Owner, ProjectId};
use domain::validate::FieldErrors;
use serde::{Deserialize, Serialize};
use theme::ThemeIndex;
use theme::answers::{MAX_REQUEST, MAX_TARGETS, range};
use theme::describe::Feature;
use theme::enrich::{Note, Notes};
use theme::scan::SymbolKind;
use utoipa::ToSchema;

use super::{current, enrich};
use crate::cache::Warm;
use crate::history::{self, GivenChange};
use shared::context::Cx;
use shared::error::Result;
use shared::process::compute::Stop;

pub(crate) use gate::gate_in;
pub use gate::{GateAnswer, GatedView, gate};
pub use graph::{findings, neighbours};
pub use lookup::lookup;
pub(crate) use lookup::lookup_in;
pub use map::{FileMapView, map};
pub use repo_map::{RepoMapAsk, repo_map};
pub use scout::{KeyFile, ScoutBrief, scout};

/// A request in a person's words.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(example = json!({ "request": "The cart drawer does not close on Escape", "limit": 5 }))]
pub struct Ask {
    /// 1 to 10,000 characters.
    #[serde(default)]
    #[schema(required = true, min_length = 1, max_length = 10_000)]
    pub request: String,
    /// The path of the file that the person has open.
    #[serde(default)]
    pub active_file: Option<String>,
    /// The maximum number of targets or files, 1 to 100. Default 8; for the gate 20.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 100)]
    pub limit: Option<usize>,
    /// What was asked and edited before, outside the platform: a coding assistant's own edits, or the commits of a repository. At most 100.
    /// The change sets that were applied here are known already.
    #[serde(default)]
    #[schema(max_items = 100)]
    pub changes: Vec<GivenChange>,
}

impl Ask {
    fn checked(&self, default: usize) -> Result<usize, FieldErrors> {
        let mut errors = FieldErrors::default();
        errors.length("request", &self.request, 1, MAX_REQUEST);
        let limit = self.limit.unwrap_or(default);
        if !(1..=MAX_TARGETS).contains(&limit) {
            errors.add("limit", format!("must be 1 to {MAX_TARGETS}, is {limit}"));
        }
        history::check(&self.changes, &mut errors);
        errors.into_result(limit)
    }
}

/// Asks the index, off the threads that serve requests. Returns the answer and how long it took, in microseconds.
async fn asked<T: Send + 'static>(
    cx: &Cx,
    warm: &Warm,
    ask: impl FnOnce(&ThemeIndex) -> T + Send + 'static,
) -> Result<(T, u64)> {
    let index = warm.index.clone();
    let timed = move |_: &Stop| {
        let started = Instant::now();
        let answer = ask(&index);
        Ok((answer, u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX)))
    };
    cx.compute.answers.run(timed).await
}

/// Something that a file defines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FeatureView {
    pub name: String,
    pub kind: SymbolKind,
    pub range: [u32; 2],
}

impl From<Feature> for FeatureView {
    fn from(feature: Feature) -> Self {
        Self { name: feature.name, kind: feature.kind, range: range(feature.lines) }
    }
}

/// The index, and a model's notes about its files, if the project has any.
async fn with_notes(cx: &Cx, owner: &Owner, project: ProjectId) -> Result<(Warm, Option<Arc<Notes>>)> {
    let notes = async { Ok(enrich::shown(cx, owner, project).await) };
    futures::try_join!(current(cx, owner, project), notes)
}

/// A model's note about the present content of a file.
fn note(notes: Option<&Arc<Notes>>, index: &ThemeIndex, path: &str) -> Option<Note> {
    notes?.of(path, &index.content_hash(path)?).cloned()
}
