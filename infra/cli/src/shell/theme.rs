//! `theme`: checks, searches and maps the theme of a project.

use std::fmt::Write;

use serde_json::{Value, json};

use super::api::Api;
use super::screen::{Look, block, line, print_json};
use super::values::{Fields, counted};
use crate::Failure;
use crate::args::{Theme, ThemeCommand, ThemeOf};
use crate::output;
use crate::project::ProjectId;
use crate::server::Change;

/// Asks about a theme.
///
/// # Errors
/// If the server does not answer, the project does not exist, or the theme has errors.
pub fn run(api: &Api, args: &Theme) -> Result<(), Failure> {
    match &args.command {
        ThemeCommand::Check { of } => check(api, of),
        ThemeCommand::Lookup { of, request, active } => {
            let mut body = json!({ "request": request });
            if let Some(active) = active {
                body["active_file"] = json!(active);
            }
            let found = api.send(Change::Post, &format!("{}/lookup", path(of)?), &body)?;
            if of.json.json { print_json(&found) } else { Ok(output::print(targets(api, &found))?) }
        }
        ThemeCommand::Map { of, request, active, tokens } => {
            let mut body = json!({ "max_tokens": tokens });
            for (field, value) in [("request", request), ("active_file", active)] {
                if let Some(value) = value {
                    body[field] = json!(value);
                }
            }
            let map = api.send(Change::Post, &format!("{}/repo-map", path(of)?), &body)?;
            if of.json.json { print_json(&map) } else { Ok(output::print(block(map.text("text")))?) }
        }
        ThemeCommand::Graph { of, file: Some(file) } => {
            let graph = api.get(&format!("{}/graph", path(of)?), &[("path", Some(file))])?;
            if of.json.json { print_json(&graph) } else { Ok(output::print(neighbours(&graph))?) }
        }
        ThemeCommand::Graph { of, file: None } => {
            let findings = api.get(&format!("{}/graph/findings", path(of)?), &[])?;
            if of.json.json { print_json(&findings) } else { Ok(output::print(unused(&findings))?) }
        }
    }
}

fn path(of: &ThemeOf) -> Result<String, Failure> {
    let id: ProjectId = of.project.parse().map_err(|error| Failure::Message(format!("{error}")))?;
    Ok(format!("/projects/{id}"))
}

fn check(api: &Api, of: &ThemeOf) -> Result<(), Failure> {
    let answer = api.send(Change::Post, &format!("{}/check", path(of)?), &json!({}))?;
    let number = |field| answer.number(field).unwrap_or(0);
    if of.json.json {
        print_json(&answer)?;
    } else {
        let mut text = String::new();
        for finding in answer.items("findings") {
            let severity = finding.text("severity");
            let look = match severity {
                "error" => Look::Bad,
                "warning" => Look::Careful,
                _ => Look::Dim,
            };
            let _ = writeln!(
                text,
                "{}:{}: {}: {} ({})",
                line(finding.text("path")),
                finding.number("line").unwrap_or(0),
                api.screen.painted(&line(severity), look),
                line(finding.text("message")),
                line(finding.text("code"))
            );
        }
        let _ = writeln!(
            text,
            "{}, {}, {} in {}",
            counted(number("errors"), "error", "errors"),
            counted(number("warnings"), "warning", "warnings"),
            counted(number("infos"), "suggestion", "suggestions"),
            counted(number("files"), "file", "files")
        );
        output::print(text)?;
        if answer.is("has_more") {
            output::note("only the worst findings are listed");
        }
    }
    if number("errors") > 0 {
        return Err(Failure::Message(format!(
            "the theme has {}",
            counted(number("errors"), "error", "errors")
        )));
    }
    Ok(())
}

fn targets(api: &Api, found: &Value) -> String {
    let mut text = String::new();
    for target in found.items("targets") {
        let _ = writeln!(text, "{}", api.screen.painted(&line(target.text("path")), Look::Bold));
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

fn neighbours(graph: &Value) -> String {
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

fn unused(findings: &Value) -> String {
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
