//! Which files and lines a request is about.

use domain::ids::{Owner, ProjectId};
use serde::Serialize;
use theme::ThemeIndex;
use theme::scan::EdgeKind;
use utoipa::ToSchema;

use super::{Ask, DEFAULT_TARGETS, asked, current, ranges};
use crate::context::Cx;
use crate::error::Result;
use crate::process::themes::Source;

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

/// The files and lines that a request is about.
///
/// # Errors
/// 404 if the project does not exist, 400 if a field is invalid.
pub async fn lookup(cx: &Cx, owner: &Owner, project: ProjectId, ask: &Ask) -> Result<LookupAnswer> {
    let limit = ask.checked(DEFAULT_TARGETS)?;
    let warm = current(cx, owner, project).await?;
    let ask = ask.clone();
    let find = move |index: &ThemeIndex| index.lookup(&ask.request, ask.active_file.as_deref(), limit);
    let (found, took_us) = asked(cx, &warm, find).await?;
    Ok(LookupAnswer {
        source: warm.source,
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
        took_us,
    })
}
