//! Which files name a file, and how they name it after it was renamed.

use std::collections::BTreeMap;

use theme::ThemeIndex;
use theme::graph::Edge;
use theme::path::{FileKind, check_path, handle};
use theme::scan::{EdgeKind, EdgeNature, scan};
use theme::text::Lines;

use super::Draft;
use crate::error::{EditError, Mention};
use crate::text::Splice;

/// Whether an edge names a file, and not only something that the file defines.
fn names_a_file(edge: &Edge) -> bool {
    edge.nature != EdgeNature::Indirect
        && matches!(
            edge.kind,
            EdgeKind::Render
                | EdgeKind::Include
                | EdgeKind::Section
                | EdgeKind::SectionGroup
                | EdgeKind::Block
                | EdgeKind::Layout
                | EdgeKind::Asset
                | EdgeKind::Import
        )
}

fn edges(draft: &Draft, path: &str) -> Result<Vec<Edge>, EditError> {
    let (mut files, mut missing): (Vec<(&str, &[u8])>, Vec<String>) = (Vec::new(), Vec::new());
    for other in draft.paths().filter(|path| check_path(path).is_ok()) {
        match draft.file(other).map(|file| &file.bytes) {
            Some(Some(bytes)) => files.push((other, bytes)),
            _ if FileKind::of(other).is_target() => missing.push(other.to_owned()),
            _ => files.push((other, b"")),
        }
    }
    if !missing.is_empty() {
        return Err(EditError::NotLoaded { paths: missing });
    }
    let index = ThemeIndex::build(files)
        .map_err(|error| EditError::BadCall { reason: format!("the theme can't be read: {error}") })?;
    Ok(index.needed_by(path).into_iter().filter(names_a_file).collect())
}

fn mention(edge: &Edge) -> Mention {
    Mention { path: edge.from.clone(), lines: edge.lines }
}

/// The places of other files that name a file.
pub(super) fn mentions(draft: &Draft, path: &str) -> Result<Vec<Mention>, EditError> {
    let mut found: Vec<Mention> = edges(draft, path)?.iter().map(mention).collect();
    found.sort();
    found.dedup();
    Ok(found)
}

/// The splices, by file, that give a file its new name everywhere, and the places where the new name can't be written.
#[allow(clippy::type_complexity)]
pub(super) fn updates(
    draft: &Draft,
    path: &str,
    to: &str,
) -> Result<(BTreeMap<String, Vec<Splice>>, Vec<Mention>), EditError> {
    let edges = edges(draft, path)?;
    let folder = |path: &str| path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
    if !edges.is_empty() && (folder(path) != folder(to) || FileKind::of(path) != FileKind::of(to)) {
        return Err(EditError::OtherFolder { path: path.to_owned(), to: to.to_owned() });
    }
    let mut by_file: BTreeMap<&str, Vec<&Edge>> = BTreeMap::new();
    for edge in &edges {
        by_file.entry(&edge.from).or_default().push(edge);
    }
    let (mut updates, mut left) = (BTreeMap::new(), Vec::new());
    for (from, edges) in by_file {
        let text = draft.text_of(from).ok().and_then(|(_, bytes)| std::str::from_utf8(bytes).ok());
        let Some(text) = text else {
            left.extend(edges.into_iter().map(mention));
            continue;
        };
        let lines = Lines::new(text);
        let found = scan(FileKind::of(from), from, text);
        let mut splices: Vec<Splice> = Vec::new();
        for edge in edges {
            let before = splices.len();
            for reference in &found.references {
                let is_it = reference.kind == edge.kind
                    && reference.nature == edge.nature
                    && reference.name.of(text) == edge.via
                    && lines.range_of(reference.name) == edge.lines;
                if let (true, Some(prefix)) = (is_it, edge.via.strip_suffix(handle(path))) {
                    let range = reference.name.start as usize..reference.name.end as usize;
                    splices.push(Splice { range, new: format!("{prefix}{}", handle(to)).into_bytes() });
                }
            }
            if splices.len() == before {
                left.push(mention(edge));
            }
        }
        splices.sort_by_key(|splice| splice.range.start);
        splices.dedup();
        updates.insert(from.to_owned(), splices);
    }
    Ok((updates, left))
}
