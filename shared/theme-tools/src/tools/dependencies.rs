//! `get_dependency_graph`: which files a file uses, and which use it.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashSet;
use theme::graph::Edge;
use theme::scan::{EdgeKind, EdgeNature};
use theme::text::LineRange;

use super::{edge_name, line_list, nature_name};
use crate::answer::Report;
use crate::arguments::{DependencyGraph, Direction};
use crate::error::ToolError;
use crate::tree::Tree;

pub fn run(call: &DependencyGraph, tree: &Tree<'_>) -> Result<String, ToolError> {
    tree.require(&call.path)?;
    let mut report = Report::new(call.page(), "reference", "references");
    let mut first = 0;
    if matches!(call.direction, Direction::Uses | Direction::Both) {
        walk(call, tree, true, &mut report);
        first = report.total();
        report.head(format!("{} uses: {}.", call.path, count(first)));
    }
    if matches!(call.direction, Direction::UsedBy | Direction::Both) {
        walk(call, tree, false, &mut report);
        report.head(format!("{} is used by: {}.", call.path, count(report.total() - first)));
    }
    if call.path.starts_with("templates/") || call.path == "layout/theme.liquid" {
        report.note("A template without a layout of its own uses layout/theme.liquid. Such uses are not listed here; see trace_rendering_chain.");
    }
    Ok(report.finish())
}

fn count(references: usize) -> String {
    format!("{references} {}", if references == 1 { "reference" } else { "references" })
}

/// Classes, texts and settings lead from almost every file to almost every other.
fn is_bulk(kind: EdgeKind) -> bool {
    matches!(kind, EdgeKind::CssClass | EdgeKind::Translation | EdgeKind::Setting)
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum To {
    File(String),
    /// The name that no file has.
    Missing(String),
}

type Group = (String, To, EdgeKind, EdgeNature);

fn walk(call: &DependencyGraph, tree: &Tree<'_>, uses: bool, report: &mut Report) {
    let mut seen: FxHashSet<String> = FxHashSet::default();
    seen.insert(call.path.clone());
    let mut queue = VecDeque::from([(call.path.clone(), 1_usize)]);
    while let Some((path, step)) = queue.pop_front() {
        let edges = if uses { tree.index.depends_on(&path) } else { tree.index.needed_by(&path) };
        // References of one kind to one file are one item.
        let mut groups: BTreeMap<Group, (Vec<LineRange>, Vec<String>)> = BTreeMap::new();
        for Edge { from, to, kind, nature, via, lines } in edges {
            if step > 1 && is_bulk(kind) {
                continue;
            }
            let to = to.map_or_else(|| To::Missing(via.clone()), To::File);
            let group = groups.entry((from, to, kind, nature)).or_default();
            group.0.push(lines);
            group.1.push(via);
        }
        for ((from, to, kind, nature), (mut lines, names)) in groups {
            lines.sort_unstable();
            lines.dedup();
            let next = match (&to, uses) {
                (To::Missing(_), true) => None,
                (To::File(to), true) => Some(to.clone()),
                (_, false) => Some(from.clone()),
            };
            if !is_bulk(kind)
                && step < call.depth
                && let Some(next) = next
                && seen.insert(next.clone())
            {
                queue.push_back((next, step + 1));
            }
            report.item(|| {
                let step = if step > 1 { format!("step {step}: ") } else { String::new() };
                let (target, via) = match to {
                    To::File(path) if is_bulk(kind) => (path, names_of(names)),
                    To::File(path) => (path, String::new()),
                    To::Missing(name) => (format!("missing: {name}"), String::new()),
                };
                format!(
                    "{step}{from} -> {target}  {}{via}{}, {}",
                    edge_name(kind),
                    nature_name(nature),
                    line_list(&lines)
                )
            });
        }
    }
}

/// The first names that lead to a file. The graph lists a stylesheet or locale once, even if many names need it.
fn names_of(mut names: Vec<String>) -> String {
    names.dedup();
    let more = if names.len() > 3 { " …" } else { "" };
    format!(" {}{more}", names[..names.len().min(3)].join(", "))
}
