//! Reading a theme as a change set has it: files, lines, parts, and searches.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::ids::ChangeSetId;
use serde::Deserialize;
use serde_json::json;
use shared::error::Result;
use shared::process::compute::Stop;
use shared::store::keys;
use theme::path::FileKind;
use theme_edit::{EditError, Opened};
use theme_tools::{Needs, Outcome};

use super::draft::Loaded;
use super::record::{ChangeSet, Stored};
use super::{MadeBy, Place, Target, load};
use crate::cache::Warm;
use crate::glob::Glob;
use crate::grep::{self, GrepQuery};
use crate::{current, unfit};

/// The most files that a list shows.
const MAX_LISTED: usize = 500;

/// The most windows of one reading.
const MAX_READS: usize = 20;

/// The most lines before and after a window.
const MAX_CONTEXT: u32 = 50;

/// The most lines that a search shows.
const MAX_HITS: usize = 200;

/// The most bytes of text that one search reads.
const MAX_SEARCHED: u64 = 64 << 20;

/// What to read. The names are those of the tools.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "tool", rename_all = "snake_case", deny_unknown_fields)]
pub enum Reading {
    ListFiles {
        #[serde(default)]
        glob: Option<String>,
        #[serde(default)]
        after: Option<String>,
    },
    ReadFile {
        path: String,
    },
    ReadLines {
        reads: Vec<Lines>,
        #[serde(default)]
        context: u32,
    },
    ExtractRegion {
        path: String,
        name: String,
    },
    GrepContent {
        pattern: String,
        #[serde(default)]
        regex: bool,
        #[serde(default)]
        glob: Option<String>,
    },
}

/// Some lines of a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    pub path: String,
    pub start: u32,
    pub end: u32,
}

/// A text for a model, or why there is none.
pub type Shown = std::result::Result<String, String>;

/// Reads a theme with the edits of a change set. Without edits, it is the theme as it is stored.
///
/// # Errors
/// 404 if the project or the change set does not exist.
pub async fn read(place: Place<'_>, target: Target, by: MadeBy, reading: Reading) -> Result<Shown> {
    let (mut loaded, _) = load(place, target, by).await?;
    match reading {
        Reading::ListFiles { glob, after } => list(place, &loaded, glob, after).await,
        Reading::ReadFile { path } => open(place, &mut loaded, &path).await,
        Reading::ReadLines { reads, context } => lines(place, &mut loaded, reads, context).await,
        Reading::ExtractRegion { path, name } => region(place, &mut loaded, &path, &name).await,
        Reading::GrepContent { pattern, regex, glob } => {
            search(place, &mut loaded, pattern, regex, glob).await
        }
    }
}

/// The paths that match a pattern.
async fn matching(
    place: Place<'_>,
    paths: Vec<String>,
    pattern: Option<String>,
) -> Result<std::result::Result<Vec<String>, String>> {
    let Some(pattern) = pattern else { return Ok(Ok(paths)) };
    let sift = move |stop: &Stop| {
        let mut glob = match Glob::new("glob", &pattern) {
            Ok(glob) => glob,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let mut kept = Vec::new();
        for path in paths {
            if glob.is_match(&path, stop)? {
                kept.push(path);
            }
        }
        Ok(Ok(kept))
    };
    place.cx.compute.searches.run(sift).await
}

async fn list(
    place: Place<'_>,
    loaded: &Loaded,
    glob: Option<String>,
    after: Option<String>,
) -> Result<Shown> {
    let paths = loaded.draft.paths().map(str::to_owned).collect();
    let paths = match matching(place, paths, glob).await? {
        Ok(paths) => paths,
        Err(why) => return Ok(Err(why)),
    };
    let total = paths.len();
    let rest: Vec<String> =
        paths.into_iter().filter(|path| after.as_ref().is_none_or(|after| path > after)).collect();
    let row = |path: &String| {
        let bytes = loaded.bytes_of(path).map_or_else(|| "?".to_owned(), |bytes| bytes.to_string());
        format!("{path}\t{bytes}\t{}\n", json!(FileKind::of(path)).as_str().unwrap_or_default())
    };
    let mut text = format!("{total} files: path, bytes, kind\n");
    text.extend(rest.iter().take(MAX_LISTED).map(row));
    if let Some(last) = rest.get(MAX_LISTED - 1).filter(|_| rest.len() > MAX_LISTED) {
        text.push_str(&format!("({} more: after {last})\n", rest.len() - MAX_LISTED));
    }
    Ok(Ok(text))
}

async fn open(place: Place<'_>, loaded: &mut Loaded, path: &str) -> Result<Shown> {
    loaded.load_all(place, &[path.to_owned()]).await?;
    Ok(match loaded.draft.open(path) {
        Ok(Opened::Whole(window)) => Ok(window.to_string()),
        Ok(Opened::Outline(outline)) => Ok(outline.to_string()),
        Err(error) => Err(error.to_string()),
    })
}

async fn lines(place: Place<'_>, loaded: &mut Loaded, reads: Vec<Lines>, context: u32) -> Result<Shown> {
    if !(1..=MAX_READS).contains(&reads.len()) {
        return Ok(Err(format!("`reads` must have 1 to {MAX_READS} entries, has {}", reads.len())));
    }
    if context > MAX_CONTEXT {
        return Ok(Err(format!("`context` must be at most {MAX_CONTEXT}, is {context}")));
    }
    let mut parts: Vec<String> = Vec::new();
    for Lines { path, start, end } in reads {
        loaded.load_all(place, std::slice::from_ref(&path)).await?;
        let (first, last) = (start.saturating_sub(context).max(1), end.saturating_add(context));
        let length: usize = parts.iter().map(String::len).sum();
        if length > theme_edit::WINDOW_CHARACTERS {
            parts.push(format!("({path}, lines {start}–{end}: not shown, the answer is long enough)"));
            continue;
        }
        match loaded.draft.read(&path, first, last) {
            Ok(window) => parts.push(window.to_string()),
            Err(error) => parts.push(error.to_string()),
        }
    }
    Ok(Ok(parts.join("\n\n")))
}

async fn region(place: Place<'_>, loaded: &mut Loaded, path: &str, name: &str) -> Result<Shown> {
    loaded.load_all(place, &[path.to_owned()]).await?;
    let Some(bytes) = loaded.draft.file(path).and_then(|file| file.bytes.clone()) else {
        return open(place, loaded, path).await;
    };
    let text = String::from_utf8_lossy(&bytes);
    let nodes = theme_edit::nodes(path, &text);
    let wanted = name.trim().to_lowercase();
    let is_exact = |node: &&theme_edit::Node| node.name.to_lowercase() == wanted;
    let mut found: Vec<_> = nodes.iter().filter(is_exact).collect();
    if found.is_empty() {
        found = nodes.iter().filter(|node| node.name.to_lowercase().contains(&wanted)).collect();
    }
    let [node] = found[..] else {
        let names: Vec<String> = found
            .iter()
            .take(20)
            .map(|node| {
                format!("{} {} (lines {}–{})", node.kind, node.name, node.lines.start, node.lines.end)
            })
            .collect();
        let missing = EditError::BadCall {
            reason: format!("{path} has no part named {name}; read_file shows its parts"),
        };
        return Ok(Err(match names.is_empty() {
            true => missing.to_string(),
            false => format!("several parts have that name: {}; read_lines reads them", names.join(", ")),
        }));
    };
    let (kind, full, start, end) = (node.kind, node.name.clone(), node.lines.start, node.lines.end);
    Ok(match loaded.draft.read(path, start, end) {
        Ok(window) => Ok(format!("{kind} {full}\n{window}")),
        Err(error) => Err(error.to_string()),
    })
}

/// The index of the theme with the edits.
async fn index_of(place: Place<'_>, loaded: &Loaded) -> Result<Warm> {
    let warm = current(place.cx, place.owner, place.project).await?;
    let texts = loaded.texts();
    if texts.is_empty() {
        return Ok(warm);
    }
    let base = warm.index;
    let update = move |_: &Stop| {
        let removed: Vec<String> =
            texts.iter().filter(|(_, text)| text.is_none()).map(|(path, _)| path.clone()).collect();
        let changed = texts.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)));
        Ok(base.updated(changed, &removed))
    };
    let index = Arc::new(place.cx.compute.builds.run(update).await?.map_err(unfit)?);
    Ok(Warm { index, ..warm })
}

/// The versions and texts of files, as a change set has them. What is no text, or is not there, is left out.
///
/// # Errors
/// 404 if the project or the change set does not exist.
pub(crate) async fn texts(
    place: Place<'_>,
    target: Target,
    by: MadeBy,
    paths: &[String],
) -> Result<BTreeMap<String, (String, String)>> {
    let (mut loaded, _) = load(place, target, by).await?;
    loaded.load_all(place, paths).await?;
    let text = |path: &String| {
        let file = loaded.draft.file(path)?;
        let text = std::str::from_utf8(file.bytes.as_deref()?).ok()?;
        Some((path.clone(), (file.version.to_string(), text.to_owned())))
    };
    Ok(paths.iter().filter_map(text).collect())
}

/// What a change set changes, as far as it is known without its edits. `None`: it has no edit, or it is gone.
///
/// # Errors
/// If the table does not answer.
pub(crate) async fn known(place: Place<'_>, id: ChangeSetId) -> Result<Option<ChangeSet>> {
    let key = keys::change_set(place.owner, place.project, id);
    let found = place.cx.store.get::<Stored>(&key).await?.map(|stored| stored.value.set);
    Ok(found.filter(|set| set.edits > 0))
}

/// The index of the theme with the edits of a change set.
///
/// # Errors
/// 404 if the project or the change set does not exist.
pub(crate) async fn index(place: Place<'_>, target: Target, by: MadeBy) -> Result<Warm> {
    let (loaded, _) = load(place, target, by).await?;
    index_of(place, &loaded).await
}

/// What a look at a theme leads to.
pub enum Looked {
    Text(Shown),
    /// The caller checks the theme, or one file.
    Check(Option<String>),
}

/// Answers a question about the theme as a change set has it.
///
/// # Errors
/// 404 if the project or the change set does not exist.
pub async fn look(place: Place<'_>, target: Target, by: MadeBy, call: theme_tools::Call) -> Result<Looked> {
    let (mut loaded, _) = load(place, target, by).await?;
    let index = index_of(place, &loaded).await?.index;
    let paths = match call.needs(&index) {
        Needs::Nothing => Vec::new(),
        Needs::AllText => {
            loaded.draft.paths().filter(|path| grep::is_text(path)).map(str::to_owned).collect()
        }
        Needs::Paths(paths) => paths,
    };
    let bytes: u64 = paths.iter().filter_map(|path| loaded.bytes_of(path)).sum();
    if bytes > MAX_SEARCHED {
        let told = format!(
            "the files have {bytes} bytes, and at most {MAX_SEARCHED} are read at once: name one file"
        );
        return Ok(Looked::Text(Err(told)));
    }
    loaded.load_all(place, &paths).await?;
    let texts: Vec<(String, String)> = paths
        .into_iter()
        .filter_map(|path| {
            let bytes = loaded.draft.file(&path)?.bytes.clone()?;
            Some((path, String::from_utf8_lossy(&bytes).into_owned()))
        })
        .collect();
    let sizes: Vec<(String, u64)> = loaded
        .draft
        .paths()
        .map(|path| (path.to_owned(), loaded.bytes_of(path).unwrap_or_default()))
        .collect();
    let run = move |_: &Stop| {
        let sizes = sizes.iter().map(|(path, bytes)| (path.as_str(), *bytes));
        let texts = texts.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        Ok(call.run(&theme_tools::Tree::new(&index, sizes, texts)))
    };
    let outcome = match place.cx.compute.answers.run(run).await? {
        Ok(outcome) => outcome,
        Err(error) => return Ok(Looked::Text(Err(error.to_string()))),
    };
    Ok(match outcome {
        Outcome::Text(text) => Looked::Text(Ok(text)),
        Outcome::ThemeCheck { path } => Looked::Check(path),
        Outcome::Grep(grep) => {
            let query = GrepQuery {
                q: grep.pattern,
                regex: !grep.is_fixed,
                ignore_case: grep.ignore_case,
                ..GrepQuery::default()
            };
            let (wanted, show) = (grep.paths, (grep.names_only, grep.count_only));
            let is_wanted = |path: &str| {
                let is_in = |folder: &String| {
                    path.strip_prefix(folder.trim_end_matches('/'))
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                };
                wanted.is_empty() || wanted.iter().any(is_in)
            };
            let paths = loaded.draft.paths().filter(|path| grep::is_text(path) && is_wanted(path));
            let paths = paths.map(str::to_owned).collect();
            Looked::Text(find_lines(place, &mut loaded, paths, query, show).await?)
        }
    })
}

async fn search(
    place: Place<'_>,
    loaded: &mut Loaded,
    pattern: String,
    regex: bool,
    glob: Option<String>,
) -> Result<Shown> {
    let paths = loaded.draft.paths().filter(|path| grep::is_text(path)).map(str::to_owned).collect();
    let paths = match matching(place, paths, glob).await? {
        Ok(paths) => paths,
        Err(why) => return Ok(Err(why)),
    };
    let query = GrepQuery { q: pattern, regex, ..GrepQuery::default() };
    find_lines(place, loaded, paths, query, (false, false)).await
}

/// The lines of these files that a query finds; or only the files' names, or how many lines each has.
async fn find_lines(
    place: Place<'_>,
    loaded: &mut Loaded,
    paths: Vec<String>,
    query: GrepQuery,
    (names_only, count_only): (bool, bool),
) -> Result<Shown> {
    let bytes: u64 = paths.iter().filter_map(|path| loaded.bytes_of(path)).sum();
    if bytes > MAX_SEARCHED {
        let told = format!(
            "these files have {bytes} bytes, and at most {MAX_SEARCHED} are searched at once: name fewer files"
        );
        return Ok(Err(told));
    }
    loaded.load_all(place, &paths).await?;
    let texts: Vec<_> = paths
        .into_iter()
        .filter_map(|path| {
            let bytes = loaded.draft.file(&path)?.bytes.clone()?;
            Some((path, bytes))
        })
        .collect();
    let query = GrepQuery { limit: Some(MAX_HITS), ..query };
    let found = place.cx.compute.searches.run(move |stop| grep::in_texts(&query, &texts, stop)).await?;
    Ok(found.map_err(|errors| errors.to_string()).map(|answer| {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        answer.matches.iter().for_each(|hit| *counts.entry(&hit.path).or_default() += 1);
        let mut text: String = match (names_only, count_only) {
            (true, _) => counts.keys().map(|path| format!("{path}\n")).collect(),
            (_, true) => counts.iter().map(|(path, count)| format!("{path}:{count}\n")).collect(),
            _ => answer
                .matches
                .iter()
                .map(|hit| format!("{}:{}: {}\n", hit.path, hit.line, hit.text))
                .collect(),
        };
        match (text.is_empty(), &answer.next_path) {
            (true, _) => text.push_str("no line has it"),
            (_, Some(_)) => {
                text.push_str(&format!(
                    "(only the first {MAX_HITS} lines: name fewer files or a longer pattern)"
                ));
            }
            _ => {}
        }
        text
    }))
}
