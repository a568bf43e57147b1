//! The answers as text for people.

use std::fmt::Write;

use serde_json::Value;

use super::super::screen::{Look, Screen, block, line};
use super::super::values::{Fields, counted};

/// The outline of a theme.
#[must_use]
pub fn outline(answer: &Value, tokens: u32) -> String {
    match answer.text("text") {
        "" => {
            let tokens = counted(tokens.into(), "token", "tokens");
            format!("nothing of the theme fits into {tokens}; `--tokens N` takes more\n")
        }
        text => block(text),
    }
}

/// The files and lines that a request is about.
#[must_use]
pub fn targets(screen: Screen, found: &Value) -> String {
    let mut text = String::new();
    for target in found.items("targets") {
        let _ = writeln!(text, "{}", screen.painted(&line(target.text("path")), Look::Bold));
        for reason in target.items("reasons").iter().filter_map(Value::as_str) {
            let _ = writeln!(text, "  {}", line(reason));
        }
        let ranges: Vec<String> =
            target.items("ranges").iter().map(lines).filter(|lines| !lines.is_empty()).collect();
        if !ranges.is_empty() {
            let _ = writeln!(text, "  lines {}", ranges.join(", "));
        }
    }
    if text.is_empty() {
        text.push_str("nothing in the theme is about that\n");
    } else if !found.is("confident") {
        text.push_str("this is a guess\n");
    }
    text
}

/// What a file needs, and what needs it.
#[must_use]
pub fn neighbours(graph: &Value) -> String {
    let mut text = String::new();
    for (heading, list, field) in [("needs", "depends_on", "to"), ("is needed by", "needed_by", "from")] {
        let items = graph.items(list);
        if items.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{} {heading}", line(graph.text("path")));
        for item in items {
            let other = item.some(field).unwrap_or("(missing)");
            let _ = writeln!(text, "  {}  {}", line(other), at(item));
        }
    }
    if text.is_empty() {
        let _ = writeln!(text, "nothing needs {}, and it needs nothing", line(graph.text("path")));
    }
    text
}

/// Files that are probably unused, and what is missing.
#[must_use]
pub fn unused(findings: &Value) -> String {
    let mut text = String::new();
    for item in findings.items("probably_unused") {
        let _ = writeln!(text, "{}: probably unused: {}", line(item.text("path")), line(item.text("reason")));
    }
    for item in findings.items("unresolved") {
        let _ = writeln!(text, "{}: missing: {}", line(item.text("from")), line(item.text("name")));
    }
    if text.is_empty() {
        text.push_str("nothing is unused, and nothing is missing\n");
    }
    text
}

/// How and where one file refers to another.
fn at(relation: &Value) -> String {
    let kind = line(relation.text("kind"));
    let name = relation.some("name").map(|name| format!(" {}", line(name))).unwrap_or_default();
    let lines = lines(&relation["range"]);
    let at = if lines.is_empty() { lines } else { format!(", line {lines}") };
    let certain = if relation.text("nature") == "direct" { "" } else { ", perhaps" };
    format!("{kind}{name}{at}{certain}")
}

/// A range of lines, such as `3-7`.
fn lines(range: &Value) -> String {
    match (range[0].as_i64(), range[1].as_i64()) {
        (Some(first), Some(last)) if first == last => first.to_string(),
        (Some(first), Some(last)) => format!("{first}-{last}"),
        _ => String::new(),
    }
}
