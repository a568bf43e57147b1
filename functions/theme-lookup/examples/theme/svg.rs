//! A picture of the dependency graph: one column per kind of file, one line per edge.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use theme::ThemeIndex;
use theme::path::FileKind;
use theme::scan::{EdgeKind, EdgeNature};

const COLUMN: usize = 330;
const ROW: usize = 17;

/// Columns run from the pages that a visitor requests to the parts they are made of.
fn column(kind: FileKind) -> Option<usize> {
    Some(match kind {
        FileKind::Layout | FileKind::Template | FileKind::JsonTemplate => 0,
        FileKind::SectionGroup | FileKind::Section => 1,
        FileKind::Block => 2,
        FileKind::Snippet => 3,
        FileKind::Stylesheet | FileKind::Script => 4,
        _ => return None,
    })
}

pub fn picture(index: &ThemeIndex) -> String {
    let mut columns: Vec<Vec<&str>> = vec![Vec::new(); 5];
    for path in index.paths() {
        if let Some(column) = column(FileKind::of(path)) {
            columns[column].push(path);
        }
    }
    let mut places: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (x, column) in columns.iter().enumerate() {
        for (y, path) in column.iter().enumerate() {
            places.insert(path, (20 + x * COLUMN, 30 + y * ROW));
        }
    }
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"monospace\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        40 + columns.len() * COLUMN,
        60 + rows * ROW
    );
    let mut drawn = BTreeSet::new();
    for edge in index.edges() {
        let Some(to) = edge.to.as_deref() else { continue };
        let is_structure =
            !matches!(edge.kind, EdgeKind::CssClass | EdgeKind::Translation | EdgeKind::Setting);
        let (Some(&(x1, y1)), Some(&(x2, y2))) = (places.get(edge.from.as_str()), places.get(to)) else {
            continue;
        };
        if !is_structure || !drawn.insert((edge.from.clone(), to.to_owned())) {
            continue;
        }
        let (x1, middle) = (x1 + 250, (x1 + 250 + x2) / 2);
        let dashes = if edge.nature == EdgeNature::Direct { "" } else { " stroke-dasharray=\"3 3\"" };
        let _ = writeln!(
            svg,
            "<path d=\"M{x1} {} C{middle} {} {middle} {} {x2} {}\" fill=\"none\" stroke=\"{}\" stroke-opacity=\".35\"{dashes}/>",
            y1 - 4,
            y1 - 4,
            y2 - 4,
            y2 - 4,
            colour(edge.kind)
        );
    }
    let orphans: BTreeSet<&str> = index.orphans().into_iter().collect();
    for (path, (x, y)) in places {
        let fill = if orphans.contains(path) { "#b00" } else { "#222" };
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" fill=\"{fill}\">{}</text>", escape(path));
    }
    svg + "</svg>\n"
}

fn colour(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Render | EdgeKind::Include => "#06c",
        EdgeKind::Section | EdgeKind::SectionGroup | EdgeKind::Layout => "#080",
        EdgeKind::Block => "#a0a",
        EdgeKind::CustomElement | EdgeKind::Import => "#c60",
        _ => "#888",
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
