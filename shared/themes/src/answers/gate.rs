//! Which files an agent should see for a request.

use std::sync::Arc;

use domain::ids::{Owner, ProjectId};
use serde::Serialize;
use theme::ThemeIndex;
use theme::answers::{Source, ranges};
use theme::enrich::{Note, Notes};
use theme::gating::Passed;
use theme::path::FileKind;
use utoipa::ToSchema;

use super::{Ask, FeatureView, asked, note, with_notes};
use crate::cache::Warm;
use crate::history::recalled;
use shared::context::Cx;
use shared::error::Result;

/// The number of files if no `limit` is given.
const DEFAULT_GATED: usize = 20;

/// The files that an agent should see.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct GateAnswer {
    pub source: Source,
    pub confident: bool,
    /// Targets first, best first.
    pub files: Vec<GatedView>,
    /// The number of files of the theme that are left out.
    pub left_out: usize,
    pub took_us: u64,
}

/// A file that an agent should see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct GatedView {
    pub path: String,
    pub kind: FileKind,
    pub why: Passed,
    pub bytes: u32,
    pub lines: u32,
    /// The lines to look at first.
    pub ranges: Vec<[u32; 2]>,
    /// For a file of more than 16,000 characters: what it defines and where, instead of its content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outline: Option<Vec<FeatureView>>,
    /// With the outline: a model's note about this content, if the project has enrichment enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enriched: Option<Note>,
}

/// The files that an agent should see for a request, and how much of each.
///
/// # Errors
/// 404 if the project does not exist, 400 if a field is invalid.
pub async fn gate(cx: &Cx, owner: &Owner, project: ProjectId, ask: &Ask) -> Result<GateAnswer> {
    ask.checked(DEFAULT_GATED)?;
    let (warm, notes) = with_notes(cx, owner, project).await?;
    gate_in(cx, warm, notes.as_ref(), ask).await
}

/// The same in an index that the caller has.
pub(crate) async fn gate_in(
    cx: &Cx,
    warm: Warm,
    notes: Option<&Arc<Notes>>,
    ask: &Ask,
) -> Result<GateAnswer> {
    let limit = ask.checked(DEFAULT_GATED)?;
    let history = recalled(cx, &warm.version, &ask.changes).await?;
    let ask = ask.clone();
    let choose = move |index: &ThemeIndex| {
        index.gate_with_history(&ask.request, ask.active_file.as_deref(), limit, &history)
    };
    let (gate, took_us) = asked(cx, &warm, choose).await?;
    let files = gate.files.into_iter().map(|file| GatedView {
        enriched: file.outline.as_ref().and_then(|_| note(notes, &warm.index, &file.path)),
        path: file.path,
        kind: file.kind,
        why: file.why,
        bytes: file.bytes,
        lines: file.lines,
        ranges: ranges(file.ranges),
        outline: file.outline.map(|outline| outline.into_iter().map(FeatureView::from).collect()),
    });
    Ok(GateAnswer {
        source: warm.source,
        confident: gate.confident,
        files: files.collect(),
        left_out: gate.left_out,
        took_us,
    })
}
