//! The tools, one per module.

pub mod chain;
pub mod command;
pub mod dependencies;
mod diff;
pub mod performance;
pub mod placeholder;
pub mod references;
pub mod schema;
pub mod search;
pub mod setting;
pub mod variants;
pub mod visibility;

use theme::scan::{EdgeKind, EdgeNature};

fn edge_name(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Render => "render",
        EdgeKind::Include => "include",
        EdgeKind::Section => "section",
        EdgeKind::SectionGroup => "section group",
        EdgeKind::Block => "block",
        EdgeKind::Layout => "layout",
        EdgeKind::Asset => "asset",
        EdgeKind::Import => "import",
        EdgeKind::CustomElement => "custom element",
        EdgeKind::CssClass => "class",
        EdgeKind::Translation => "translation",
        EdgeKind::Setting => "setting",
    }
}

fn nature_name(nature: EdgeNature) -> &'static str {
    match nature {
        EdgeNature::Direct => "",
        EdgeNature::Indirect => " (name known only at run time)",
        EdgeNature::Preset => " (stored content)",
    }
}

/// `line 3`, or `lines 3, 5–7`.
fn line_list(lines: &[theme::text::LineRange]) -> String {
    const MOST: usize = 12;
    let one = |range: &theme::text::LineRange| match range.start == range.end {
        true => range.start.to_string(),
        false => format!("{}–{}", range.start, range.end),
    };
    let shown: Vec<String> = lines.iter().take(MOST).map(one).collect();
    let word = if lines.len() == 1 && lines[0].count() == 1 { "line" } else { "lines" };
    let more = if lines.len() > MOST { format!(" and {} more", lines.len() - MOST) } else { String::new() };
    format!("{word} {}{more}", shown.join(", "))
}
