//! The map of a theme, file by file.

use domain::ids::{Owner, ProjectId};
use serde::Serialize;
use theme::ThemeIndex;
use theme::describe::Dependency;
use theme::enrich::Note;
use theme::path::FileKind;
use utoipa::ToSchema;

use super::{FeatureView, asked, note, with_notes};
use shared::context::Cx;
use shared::error::Result;
use shared::flows::page::{self, Page, PageQuery};

/// A file in the map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FileMapView {
    pub path: String,
    pub kind: FileKind,
    pub bytes: u32,
    pub lines: u32,
    /// What the file is for, in one or two sentences.
    pub purpose: String,
    /// What it defines, in the order of its lines.
    pub features: Vec<FeatureView>,
    /// What it needs, each listed once.
    pub dependencies: Vec<Dependency>,
    /// Stems of the words that distinguish it from other files, the most distinctive first.
    pub keywords: Vec<String>,
    /// A model's note about this content, if the project has enrichment enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enriched: Option<Note>,
}

/// The map: all files, sorted by path.
///
/// # Errors
/// 404 if the project does not exist, 400 if `limit` or `cursor` is invalid.
pub async fn map(cx: &Cx, owner: &Owner, project: ProjectId, query: &PageQuery) -> Result<Page<FileMapView>> {
    let (limit, list) = (query.limit()?, format!("map of {project}"));
    let after = query.after(owner, &list)?.unwrap_or_default();
    let (warm, notes) = with_notes(cx, owner, project).await?;
    let page = move |index: &ThemeIndex| {
        let mut paths: Vec<&str> =
            index.paths().filter(|path| *path > after.as_str()).take(limit + 1).collect();
        let has_more = paths.len() > limit;
        paths.truncate(limit);
        let data = paths.iter().filter_map(|path| index.describe(path)).map(|file| FileMapView {
            enriched: note(notes.as_ref(), index, &file.path),
            path: file.path,
            kind: file.kind,
            bytes: file.bytes,
            lines: file.lines,
            purpose: file.purpose,
            features: file.features.into_iter().map(FeatureView::from).collect(),
            dependencies: file.dependencies,
            keywords: file.keywords,
        });
        (data.collect(), paths.last().map(|last| (*last).to_owned()), has_more)
    };
    let ((data, last, has_more), _) = asked(cx, &warm, page).await?;
    let next_cursor = last.filter(|_| has_more).map(|last| page::cursor(owner, &list, &last));
    Ok(Page { data, next_cursor, has_more })
}
