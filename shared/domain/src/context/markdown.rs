//! The Markdown form of a context document. [`super::import`] reads exactly what is written here. The first line of an
//! item follows `- `, and every further line is indented by two spaces, so no text of an item can be read as structure.

use std::fmt::Write;

use super::document::{Document, RecommendedAgent, Section};

/// The headings of the parts of a section, by field name.
pub(super) const HEADINGS: [(&str, &str); 5] = [
    ("decisions", "Decisions"),
    ("progress", "Progress"),
    ("findings", "Findings"),
    ("recommendations", "Recommendations"),
    ("notes", "Notes"),
];

pub(super) const RECOMMENDED_HEADING: &str = "Recommended ACT Agent";

/// Writes a document.
#[must_use]
pub fn export(document: &Document) -> String {
    let mut out = String::from("# Context Document\n\n## Metadata\n");
    let _ = writeln!(out, "- Created: {}", document.created_at);
    let _ = writeln!(out, "- Last Updated: {}", document.updated_at);
    for (label, text) in [("Title", &document.title), ("Task", &document.task)] {
        if let Some(text) = text {
            item(&mut out, &format!("{label}: {text}"));
        }
    }
    for (i, section) in document.sections.iter().enumerate() {
        out.push_str(if i == 0 { "\n" } else { "\n---\n\n" });
        write_section(&mut out, section);
    }
    out
}

fn write_section(out: &mut String, section: &Section) {
    let _ = writeln!(out, "## {}", section.mode);
    let labels = [("Status", &section.status), ("Primary Agent", &section.primary_agent)];
    if labels.iter().any(|(_, text)| text.is_some()) {
        out.push('\n');
        for (label, text) in labels {
            if let Some(text) = text {
                let _ = writeln!(out, "**{label}**: {text}");
            }
        }
    }
    if let Some(task) = &section.task {
        out.push_str("\n### Task\n");
        item(out, task);
    }
    for ((_, list), (_, heading)) in section.lists().into_iter().zip(HEADINGS) {
        if !list.is_empty() {
            let _ = writeln!(out, "\n### {heading}");
            list.iter().for_each(|text| item(out, text));
        }
    }
    if let Some(agent) = &section.recommended_act_agent {
        let _ = writeln!(out, "\n### {RECOMMENDED_HEADING}\n{}", agent_line(agent));
    }
}

fn item(out: &mut String, text: &str) {
    for (i, line) in text.split('\n').enumerate() {
        out.push_str(if i == 0 { "- " } else { "  " });
        out.push_str(line);
        out.push('\n');
    }
}

fn agent_line(agent: &RecommendedAgent) -> String {
    match agent.confidence {
        Some(confidence) => format!("{} (confidence: {confidence})", agent.name),
        None => agent.name.clone(),
    }
}
