//! Living documents: a model that keeps them by a plain rule, and what tests ask of the platform.

#![allow(clippy::unwrap_used, reason = "a test's helpers panic as its body does")]

use serde_json::{Value, json};

use crate::Harness;
use crate::model::Says;

/// Texts, each with its number or its name.
pub type Named<T> = Vec<(T, String)>;

/// The parts of a question: the commits, by their numbers, and the texts, by their names. Without the marks of quotes.
#[must_use]
pub fn read_question(question: &str) -> (Named<u64>, Named<String>) {
    let (mut commits, mut texts) = (Named::new(), Named::new());
    let mut in_commits = false;
    for line in question.lines() {
        match line {
            "<commits>" => in_commits = true,
            "</commits>" => in_commits = false,
            _ => {}
        }
        if let Some(name) = line.strip_prefix("<text name=\"").and_then(|rest| rest.strip_suffix("\">")) {
            texts.push((name.to_owned(), String::new()));
            continue;
        }
        let Some(quoted) = line.strip_prefix("> ") else { continue };
        if in_commits {
            match quoted.strip_prefix("commit ").and_then(|rest| rest.split_once(',')) {
                Some((number, _)) => commits.push((number.parse().unwrap(), String::new())),
                None => commits.last_mut().unwrap().1.push_str(&format!("{quoted}\n")),
            }
        } else if let Some((_, text)) = texts.last_mut() {
            text.push_str(&format!("{quoted}\n"));
        }
    }
    (commits, texts)
}

/// A model that keeps documents: it appends the first line of each commit as a line of its own. Of several parts, it chooses the first one.
#[must_use]
pub fn keeps(messages: &[Value]) -> Says {
    let system = messages[0]["content"].to_string();
    let question = messages.iter().find(|message| message["role"] == "user").unwrap();
    let question = question["content"]
        .as_str()
        .map_or_else(|| question["content"][0]["text"].as_str().unwrap().to_owned(), str::to_owned);
    let (commits, texts) = read_question(&question);
    if system.contains("<lamplighter:documents-plan>") {
        let part = question.split_once("<parts>\n> ").unwrap().1.split(' ').next().unwrap();
        let numbers: Vec<u64> = commits.iter().map(|(number, _)| *number).collect();
        return Says::Call("choose_parts", json!({"parts": [{"part": part, "commits": numbers}]}));
    }
    if !system.contains("<lamplighter:documents-write>") {
        return Says::Text("OK".to_owned());
    }
    let lines: String = commits
        .iter()
        .map(|(_, message)| format!("- {}\n", message.lines().next().unwrap_or_default()))
        .collect();
    let texts: String =
        texts.iter().map(|(name, text)| format!("==={name}===\n{}\n\n{lines}", text.trim_end())).collect();
    Says::Text(format!("{texts}===END===\n"))
}

/// A commit with this number.
#[must_use]
pub fn commit(n: u64) -> Value {
    json!({
        "id": format!("{n:08x}{:032x}", n + 1), "at": "2026-11-20T08:00:00Z", "author": "Ada",
        "message": format!("Change number {n}"), "files": [format!("src/part_{n}.rs")],
    })
}

/// Reports commits, and returns the answer.
pub async fn reports(h: &Harness, project: &str, numbers: impl IntoIterator<Item = u64>) -> Value {
    let commits: Vec<Value> = numbers.into_iter().map(commit).collect();
    h.post(&format!("/projects/{project}/docs/commits"), json!({"commits": commits})).await.expect(200)
}

/// The text of a document.
pub async fn text(h: &Harness, project: &str, name: &str) -> String {
    let read = h.get(&format!("/projects/{project}/docs/{name}")).await.expect(200);
    read["content"].as_str().unwrap().to_owned()
}

/// How often each of the changes with these numbers stands in a text.
#[must_use]
pub fn times(text: &str, numbers: impl IntoIterator<Item = u64>) -> Vec<usize> {
    let is_line = |n: u64| move |line: &&str| *line == format!("- Change number {n}");
    numbers.into_iter().map(|n| text.lines().filter(is_line(n)).count()).collect()
}
