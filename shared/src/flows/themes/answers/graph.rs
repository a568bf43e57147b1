//! How the files of a theme depend on each other.

use domain::ids::{Owner, ProjectId};
use serde::Serialize;
use theme::ThemeIndex;
use theme::graph::{Edge, why_unused};
use theme::scan::{EdgeKind, EdgeNature};
use utoipa::ToSchema;

use super::{asked, current, range};
use crate::context::Cx;
use crate::error::{Error, Result};

/// The maximum number of edges in an answer.
pub(super) const MAX_EDGES: usize = 1_000;

/// One file needs another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Relationship {
    pub from: String,
    /// Absent if the theme does not contain what is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    pub kind: EdgeKind,
    pub nature: EdgeNature,
    /// The name by which `from` refers to it.
    pub name: String,
    /// The lines of `from` with the reference.
    pub range: [u32; 2],
}

impl From<Edge> for Relationship {
    fn from(edge: Edge) -> Self {
        Self {
            from: edge.from,
            to: edge.to,
            kind: edge.kind,
            nature: edge.nature,
            name: edge.via,
            range: range(edge.lines),
        }
    }
}

/// How a file is connected with other files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Neighbours {
    pub path: String,
    /// What it needs.
    pub depends_on: Vec<Relationship>,
    /// What needs it: who renders it, loads it, or uses what it defines.
    pub needed_by: Vec<Relationship>,
    /// The files in `needed_by` that put it on a page, each listed once.
    pub rendered_by: Vec<String>,
    /// Whether some are not listed here.
    pub truncated: bool,
}

/// What a file needs, and which files need it.
///
/// # Errors
/// 404 if the project or the file does not exist.
pub async fn neighbours(cx: &Cx, owner: &Owner, project: ProjectId, path: &str) -> Result<Neighbours> {
    let warm = current(cx, owner, project).await?;
    if warm.index.lines(path).is_none() {
        return Err(Error::NotFound("file"));
    }
    let asked_about = path.to_owned();
    let edges =
        asked(cx, &warm, move |index| (index.depends_on(&asked_about), index.needed_by(&asked_about)));
    let ((mut depends_on, mut needed_by), _) = edges.await?;
    let renders = |edge: &&Edge| {
        matches!(
            edge.kind,
            EdgeKind::Render
                | EdgeKind::Include
                | EdgeKind::Section
                | EdgeKind::SectionGroup
                | EdgeKind::Block
                | EdgeKind::Layout
        )
    };
    let mut rendered_by: Vec<String> =
        needed_by.iter().filter(renders).map(|edge| edge.from.clone()).collect();
    rendered_by.sort_unstable();
    rendered_by.dedup();
    let truncated = depends_on.len() > MAX_EDGES || needed_by.len() > MAX_EDGES;
    depends_on.truncate(MAX_EDGES);
    needed_by.truncate(MAX_EDGES);
    Ok(Neighbours {
        path: path.to_owned(),
        depends_on: depends_on.into_iter().map(Relationship::from).collect(),
        needed_by: needed_by.into_iter().map(Relationship::from).collect(),
        rendered_by,
        truncated,
    })
}

/// What is wrong with the connections of a theme.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Findings {
    /// The paths of `probably_unused`.
    pub orphans: Vec<String>,
    /// Files that are probably unused: no other file needs them, a merchant cannot add them to a page, and no text, script or
    /// computed name of the theme matches their names. If a name is computed at run time and no part of it is known, no
    /// file of that kind is listed. An app, or a person with a link, can still need such a file.
    pub probably_unused: Vec<Unused>,
    /// References to something that the theme does not contain.
    pub unresolved: Vec<Relationship>,
    /// The number of edges of the whole graph.
    pub edges: usize,
    /// Whether some are not listed here.
    pub truncated: bool,
}

/// A file that is probably unused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Unused {
    /// The path.
    pub path: String,
    /// Why it is probably unused.
    pub reason: &'static str,
}

/// Files that are probably unused, and references to something that the theme does not contain.
///
/// # Errors
/// 404 if the project does not exist.
pub async fn findings(cx: &Cx, owner: &Owner, project: ProjectId) -> Result<Findings> {
    let warm = current(cx, owner, project).await?;
    let find = |index: &ThemeIndex| {
        let orphans: Vec<String> = index.orphans().into_iter().map(str::to_owned).collect();
        (orphans, index.unresolved(), index.edges().count())
    };
    let ((mut orphans, mut unresolved, edges), _) = asked(cx, &warm, find).await?;
    let truncated = orphans.len() > MAX_EDGES || unresolved.len() > MAX_EDGES;
    orphans.truncate(MAX_EDGES);
    unresolved.truncate(MAX_EDGES);
    let unused = |path: &String| Unused { path: path.clone(), reason: why_unused(path) };
    Ok(Findings {
        probably_unused: orphans.iter().map(unused).collect(),
        orphans,
        unresolved: unresolved.into_iter().map(Relationship::from).collect(),
        edges,
        truncated,
    })
}
