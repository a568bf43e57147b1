//! How the files of a theme depend on each other.

use serde::Serialize;
use utoipa::ToSchema;

use super::super::graph::{Edge, why_unused};
use super::super::index::ThemeIndex;
use super::super::scan::{EdgeKind, EdgeNature};
use super::range;

/// The maximum number of edges in an answer.
pub const MAX_EDGES: usize = 1_000;

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

impl Neighbours {
    /// What a file needs, and which files need it. `None` if the theme does not have the file.
    pub fn of(index: &ThemeIndex, path: &str) -> Option<Self> {
        index.lines(path)?;
        let (mut depends_on, mut needed_by) = (index.depends_on(path), index.needed_by(path));
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
        Some(Self {
            path: path.to_owned(),
            depends_on: depends_on.into_iter().map(Relationship::from).collect(),
            needed_by: needed_by.into_iter().map(Relationship::from).collect(),
            rendered_by,
            truncated,
        })
    }
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

impl Findings {
    /// Files that are probably unused, and references to something that the theme does not contain.
    pub fn of(index: &ThemeIndex) -> Self {
        let mut orphans: Vec<String> = index.orphans().into_iter().map(str::to_owned).collect();
        let mut unresolved = index.unresolved();
        let truncated = orphans.len() > MAX_EDGES || unresolved.len() > MAX_EDGES;
        orphans.truncate(MAX_EDGES);
        unresolved.truncate(MAX_EDGES);
        let unused = |path: &String| Unused { path: path.clone(), reason: why_unused(path) };
        Self {
            probably_unused: orphans.iter().map(unused).collect(),
            orphans,
            unresolved: unresolved.into_iter().map(Relationship::from).collect(),
            edges: index.edges().count(),
            truncated,
        }
    }
}
