//! `search_files`: finds files by their names.

use theme::path::FileKind;

use crate::answer::Report;
use crate::arguments::SearchFiles;
use crate::similar::ranked;
use crate::tree::Tree;

pub fn run(call: &SearchFiles, tree: &Tree<'_>) -> String {
    let mut report = Report::new(call.page(), "file", "files");
    report.head("Compared by letters, best first.");
    for (_, path) in ranked(tree.index.paths(), &call.query) {
        report.item(|| {
            let lines = tree.index.lines(path).filter(|_| FileKind::of(path) != FileKind::Other);
            let lines = lines.map_or(String::new(), |lines| format!(", {lines} lines"));
            let size = tree.size(path).map_or(String::new(), |size| format!(", {size} bytes"));
            format!("{path}  {}{lines}{size}", FileKind::of(path))
        });
    }
    report.finish()
}
