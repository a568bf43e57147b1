//! What is asked of a theme: lookup, scout, repo map, map, graph, gate. All of it is told by one index in memory.

use std::sync::Arc;
use std::time::Instant;

use domain::ids::{Owner, ProjectId};
use domain::theme::ThemeIndex;
use domain::theme::describe::{Dependency, Feature};
use domain::theme::enrich::{Note, Notes};
use domain::theme::gating::Passed;
use domain::theme::graph::Edge;
use domain::theme::path::FileKind;
use domain::theme::scan::{EdgeKind, EdgeNature, SymbolKind};
use domain::theme::text::LineRange;
use domain::validate::FieldErrors;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{current, enrich};
use crate::compute::Stop;
use crate::context::Cx;
use crate::page::{self, Page, PageQuery};
use crate::problem::{Error, Result};
use crate::themes::{Source, Warm};

/// Longest request, in characters.
const MAX_REQUEST: usize = 10_000;
/// The most targets or files that can be asked for.
const MAX_TARGETS: usize = 100;
/// Targets where nothing else is asked for.
const DEFAULT_TARGETS: usize = 8;
/// Files that a gate lets through where nothing else is asked for.
const DEFAULT_GATED: usize = 20;
/// The largest repo map, in tokens.
const MAX_TOKENS: usize = 100_000;
const DEFAULT_TOKENS: usize = 2_000;
/// The most edges of one answer.
const MAX_EDGES: usize = 1_000;

/// The first and the last line, from 1.
fn range(lines: LineRange) -> [u32; 2] {
    [lines.start, lines.end]
}

fn ranges(lines: Vec<LineRange>) -> Vec<[u32; 2]> {
    lines.into_iter().map(range).collect()
}

/// What is asked for, in a person's words.
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
    /// How many targets or files at most, 1 to 100. Default 8, for the gate 20.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 100)]
    pub limit: Option<usize>,
}

impl Ask {
    fn checked(&self, default: usize) -> Result<usize, FieldErrors> {
        let mut errors = FieldErrors::default();
        errors.length("request", &self.request, 1, MAX_REQUEST);
        let limit = self.limit.unwrap_or(default);
        if !(1..=MAX_TARGETS).contains(&limit) {
            errors.add("limit", format!("must be 1 to {MAX_TARGETS}, is {limit}"));
        }
        errors.into_result(limit)
    }
}

/// Where a request leads.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct LookupAnswer {
    pub source: Source,
    /// Whether a file to edit is among the first three targets, as far as can be told: nine times of ten it is.
    pub confident: bool,
    /// Best first.
    pub targets: Vec<TargetView>,
    pub related: Vec<RelatedView>,
    /// The targets, each after what it needs.
    pub edit_order: Vec<String>,
    /// How long the lookup took, in microseconds.
    pub took_us: u64,
}

/// A file that a request is about.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct TargetView {
    pub path: String,
    /// Comparable within one answer only.
    pub score: f32,
    /// The lines to look at first.
    pub ranges: Vec<[u32; 2]>,
    /// What of the request was found where.
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

/// Asks the index, off the threads that serve requests. Gives the answer and how long it took, in microseconds.
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

/// The files and lines that a request is about.
///
/// # Errors
/// 404 if the project does not exist, 400 for what breaks a limit.
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

/// A structural brief: the key files with what is in them, how they hang together, and in what order to edit them.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ScoutBrief {
    pub source: Source,
    pub confident: bool,
    /// In a sentence.
    pub summary: String,
    pub key_files: Vec<KeyFile>,
    pub relationships: Vec<Relationship>,
    pub edit_order: Vec<String>,
    pub took_us: u64,
}

/// A file that matters for a request, and what is in it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct KeyFile {
    pub path: String,
    pub kind: FileKind,
    pub lines: u32,
    pub purpose: String,
    /// Comparable within one answer only.
    pub score: f32,
    pub ranges: Vec<[u32; 2]>,
    /// What of the file is in those lines.
    pub features: Vec<FeatureView>,
    pub reasons: Vec<String>,
    /// What a model wrote of this content, where the project wants that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enriched: Option<Note>,
}

/// A thing that a file defines.
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

/// A file needs another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Relationship {
    pub from: String,
    /// Absent where the theme lacks what is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    pub kind: EdgeKind,
    pub nature: EdgeNature,
    /// The name it is referred to by.
    pub name: String,
    /// Where `from` says so.
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

/// The index, and what a model wrote beside it.
async fn with_notes(cx: &Cx, owner: &Owner, project: ProjectId) -> Result<(Warm, Option<Arc<Notes>>)> {
    let notes = async { Ok(enrich::shown(cx, owner, project).await) };
    futures::try_join!(current(cx, owner, project), notes)
}

fn note(notes: Option<&Arc<Notes>>, index: &ThemeIndex, path: &str) -> Option<Note> {
    notes?.of(path, &index.content_hash(path)?).cloned()
}

/// A structural brief for a request.
///
/// # Errors
/// 404 if the project does not exist, 400 for what breaks a limit.
pub async fn scout(cx: &Cx, owner: &Owner, project: ProjectId, ask: &Ask) -> Result<ScoutBrief> {
    let limit = ask.checked(DEFAULT_TARGETS)?;
    let (warm, notes) = with_notes(cx, owner, project).await?;
    let (ask, source) = (ask.clone(), warm.source);
    let (brief, took_us) =
        asked(cx, &warm, move |index| brief(index, source, notes.as_ref(), &ask, limit)).await?;
    Ok(ScoutBrief { took_us, ..brief })
}

fn brief(
    index: &ThemeIndex,
    source: Source,
    notes: Option<&Arc<Notes>>,
    ask: &Ask,
    limit: usize,
) -> ScoutBrief {
    let found = index.lookup(&ask.request, ask.active_file.as_deref(), limit);
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
        return format!("None of the theme's {of} files has to do with the request, as far as can be told.");
    };
    let sure = if confident { "Most likely" } else { "Perhaps" };
    let lines: Vec<String> = first.ranges.iter().map(|[start, end]| format!("{start}–{end}")).collect();
    let lines = if lines.is_empty() { String::new() } else { format!(", lines {}", lines.join(", ")) };
    format!("{sure} {}{lines}; {} of {of} files have to do with it.", first.path, files.len())
}

/// How large an outline of the theme is to be, and what it is for.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(example = json!({ "request": "cart drawer", "max_tokens": 2000 }))]
pub struct RepoMapAsk {
    /// What matters; without it the files that most others need come first.
    #[serde(default)]
    pub request: Option<String>,
    #[serde(default)]
    pub active_file: Option<String>,
    /// 1 to 100,000; 2,000, 4,000, 8,000 and 12,000 are usual. Default 2,000.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 100_000)]
    pub max_tokens: Option<usize>,
}

/// An outline of the theme.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct RepoMapAnswer {
    pub source: Source,
    /// The outline.
    pub text: String,
    /// What it takes, at four bytes a token.
    pub tokens: usize,
    pub max_tokens: usize,
    pub took_us: u64,
}

/// An outline of the theme that never takes more than its budget.
///
/// # Errors
/// 404 if the project does not exist, 400 for what breaks a limit.
pub async fn repo_map(cx: &Cx, owner: &Owner, project: ProjectId, ask: &RepoMapAsk) -> Result<RepoMapAnswer> {
    let mut errors = FieldErrors::default();
    errors.length("request", ask.request.as_deref().unwrap_or_default(), 0, MAX_REQUEST);
    let max_tokens = ask.max_tokens.unwrap_or(DEFAULT_TOKENS);
    if !(1..=MAX_TOKENS).contains(&max_tokens) {
        errors.add("max_tokens", format!("must be 1 to {MAX_TOKENS}, is {max_tokens}"));
    }
    errors.into_result(())?;
    let warm = current(cx, owner, project).await?;
    let ask = ask.clone();
    let outline = move |index: &ThemeIndex| {
        let request = ask.request.as_deref().filter(|request| !request.trim().is_empty());
        index.repo_map(request, ask.active_file.as_deref(), max_tokens)
    };
    let (text, took_us) = asked(cx, &warm, outline).await?;
    let tokens = text.len().div_ceil(domain::theme::repo_map::BYTES_PER_TOKEN);
    Ok(RepoMapAnswer { source: warm.source, tokens, text, max_tokens, took_us })
}

/// What the map says of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FileMapView {
    pub path: String,
    pub kind: FileKind,
    pub bytes: u32,
    pub lines: u32,
    /// What the file is for, in a sentence or two.
    pub purpose: String,
    /// What is in it, in the order of its lines.
    pub features: Vec<FeatureView>,
    /// What it needs, each once.
    pub dependencies: Vec<Dependency>,
    /// Words that tell it from the other files, the most telling first. They are stems.
    pub keywords: Vec<String>,
    /// What a model wrote of this content, where the project wants that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enriched: Option<Note>,
}

/// The map, file by file in the order of their paths.
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

/// How a file hangs together with the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Neighbours {
    pub path: String,
    /// What it needs.
    pub depends_on: Vec<Relationship>,
    /// What needs it: who renders it, loads it, or uses what it defines.
    pub needed_by: Vec<Relationship>,
    /// The files among those that put it on a page, each once.
    pub rendered_by: Vec<String>,
    /// Whether there are more than are listed here.
    pub truncated: bool,
}

/// What a file needs, and what needs it.
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

/// What is wrong with how a theme hangs together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Findings {
    /// Files that nothing needs and that no merchant can put anywhere.
    pub orphans: Vec<String>,
    /// References to what the theme lacks.
    pub unresolved: Vec<Relationship>,
    /// How many edges the whole graph has.
    pub edges: usize,
    /// Whether there are more than are listed here.
    pub truncated: bool,
}

/// What nothing needs, and what is needed and is not there.
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
    Ok(Findings {
        orphans,
        unresolved: unresolved.into_iter().map(Relationship::from).collect(),
        edges,
        truncated,
    })
}

/// The files that an agent should see.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct GateAnswer {
    pub source: Source,
    pub confident: bool,
    /// Targets first, best first.
    pub files: Vec<GatedView>,
    /// How many files of the theme are left out.
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
    /// For a file of more than 16,000 characters: what is where, instead of the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outline: Option<Vec<FeatureView>>,
    /// Beside the outline: what a model wrote of this content, where the project wants that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enriched: Option<Note>,
}

/// The files that an agent should see for a request, and how much of each.
///
/// # Errors
/// 404 if the project does not exist, 400 for what breaks a limit.
pub async fn gate(cx: &Cx, owner: &Owner, project: ProjectId, ask: &Ask) -> Result<GateAnswer> {
    let limit = ask.checked(DEFAULT_GATED)?;
    let (warm, notes) = with_notes(cx, owner, project).await?;
    let ask = ask.clone();
    let choose = move |index: &ThemeIndex| index.gate(&ask.request, ask.active_file.as_deref(), limit);
    let (gate, took_us) = asked(cx, &warm, choose).await?;
    let files = gate.files.into_iter().map(|file| GatedView {
        enriched: file.outline.as_ref().and_then(|_| note(notes.as_ref(), &warm.index, &file.path)),
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
