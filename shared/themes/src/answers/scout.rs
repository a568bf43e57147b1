//! A structural brief for a request.

use std::sync::Arc;

use domain::ids::{Owner, ProjectId};
use serde::Serialize;
use theme::ThemeIndex;
use theme::answers::{DEFAULT_TARGETS, MAX_EDGES, Relationship, Source, ranges};
use theme::describe::Feature;
use theme::enrich::{Note, Notes};
use theme::graph::Edge;
use theme::lookup::Lookup;
use theme::path::FileKind;
use theme::text::LineRange;
use utoipa::ToSchema;

use super::{Ask, FeatureView, asked, note, with_notes};
use crate::history::recalled;
use shared::context::Cx;
use shared::error::Result;

/// A structural brief: the key files and their content, how they depend on each other, and in what order to edit them.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ScoutBrief {
    pub source: Source,
    pub confident: bool,
    /// One sentence.
    pub summary: String,
    pub key_files: Vec<KeyFile>,
    pub relationships: Vec<Relationship>,
    pub edit_order: Vec<String>,
    pub took_us: u64,
}

/// A file that matters for a request.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct KeyFile {
    pub path: String,
    pub kind: FileKind,
    pub lines: u32,
    pub purpose: String,
    /// Scores can be compared within one answer only.
    pub score: f32,
    pub ranges: Vec<[u32; 2]>,
    /// What the file defines in those lines.
    pub features: Vec<FeatureView>,
    pub reasons: Vec<String>,
    /// A model's note about this content, if the project has enrichment enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enriched: Option<Note>,
}

/// A structural brief for a request.
///
/// # Errors
/// 404 if the project does not exist, 400 if a field is invalid.
pub async fn scout(cx: &Cx, owner: &Owner, project: ProjectId, ask: &Ask) -> Result<ScoutBrief> {
    let limit = ask.checked(DEFAULT_TARGETS)?;
    let (warm, notes) = with_notes(cx, owner, project).await?;
    let history = recalled(cx, &warm.version, &ask.changes).await?;
    let (ask, source) = (ask.clone(), warm.source);
    let find = move |index: &ThemeIndex| {
        let found = index.lookup_with_history(&ask.request, ask.active_file.as_deref(), limit, &history);
        brief(index, source, notes.as_ref(), found)
    };
    let (brief, took_us) = asked(cx, &warm, find).await?;
    Ok(ScoutBrief { took_us, ..brief })
}

fn brief(index: &ThemeIndex, source: Source, notes: Option<&Arc<Notes>>, found: Lookup) -> ScoutBrief {
    let is_key = |path: &str| found.targets.iter().any(|target| target.path == path);
    let mut relationships: Vec<Relationship> = Vec::new();
    for target in &found.targets {
        let between = |edge: &Edge| edge.to.as_deref().is_some_and(is_key);
        let edges = index.depends_on(&target.path).into_iter().filter(between).map(Relationship::from);
        relationships.extend(edges.take(MAX_EDGES));
    }
    let key_files: Vec<KeyFile> = found
        .targets
        .into_iter()
        .filter_map(|target| {
            let file = index.describe(&target.path)?;
            let is_shown = |feature: &Feature| {
                let overlaps = |r: &LineRange| r.start <= feature.lines.end && feature.lines.start <= r.end;
                target.ranges.iter().any(overlaps)
            };
            Some(KeyFile {
                enriched: note(notes, index, &target.path),
                path: target.path,
                kind: file.kind,
                lines: file.lines,
                purpose: file.purpose,
                score: target.score,
                features: file.features.into_iter().filter(is_shown).map(FeatureView::from).collect(),
                ranges: ranges(target.ranges),
                reasons: target.reasons,
            })
        })
        .collect();
    ScoutBrief {
        source,
        confident: found.confident,
        summary: summary(&key_files, index.len(), found.confident),
        key_files,
        relationships,
        edit_order: found.edit_order,
        took_us: 0,
    }
}

fn summary(files: &[KeyFile], of: usize, confident: bool) -> String {
    let Some(first) = files.first() else {
        return format!("None of the theme's {of} files seems to be about the request.");
    };
    let sure = if confident { "Most likely" } else { "Perhaps" };
    let lines: Vec<String> = first.ranges.iter().map(|[start, end]| format!("{start}–{end}")).collect();
    let lines = if lines.is_empty() { String::new() } else { format!(", lines {}", lines.join(", ")) };
    format!("{sure} {}{lines}; {} of {of} files are about the request.", first.path, files.len())
}
