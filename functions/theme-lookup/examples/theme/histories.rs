//! The history of each question, out of a clone of its repository: the commits before the question's own.
//!
//! A commit counts as a change of a person: its subject is the request. Merges, and commits with which the platform
//! writes back what was edited in its own editor, do not count.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use theme::History;
use theme::history::{Change, EditedFile, MAX_CHANGES};
use theme::path::FileKind;
use theme::text::LineRange;

use crate::Result;
use crate::bench::{Question, questions};

/// How many commits are read, because some of them do not count.
const READ_COMMITS: usize = 1_000;
const SYNC: &str = "Update from Shopify";
/// What conventional commits begin with.
const KINDS: [&str; 11] =
    ["feat", "fix", "perf", "refactor", "chore", "docs", "style", "test", "build", "ci", "revert"];

/// A line of the file of histories.
#[derive(Serialize, Deserialize)]
struct Line {
    id: String,
    history: History,
}

pub type Histories = HashMap<String, History>;

pub fn load(file: Option<&Path>) -> Result<Histories> {
    let mut histories = Histories::new();
    if let Some(file) = file {
        for line in fs::read_to_string(file)?.lines() {
            let line: Line = serde_json::from_str(line)?;
            histories.insert(line.id, line.history);
        }
    }
    Ok(histories)
}

struct Commit {
    subject: String,
    /// Seconds since 1970.
    time: i64,
    files: Vec<EditedFile>,
}

/// Writes the histories of the questions of `file` to `out`. `clone` is the clone of their repository.
pub fn run(file: &Path, clone: &Path, out: &Path) -> Result<()> {
    let questions = questions(file, "all")?;
    let mut needed = HashSet::new();
    let mut before: Vec<Vec<String>> = Vec::new();
    for question in &questions {
        let limit = READ_COMMITS.to_string();
        let format = "--format=%H %s";
        let log = git(clone, &["log", "--no-merges", "-n", &limit, format, &question.parent], "")?;
        let ids: Vec<String> = log
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter(|(_, subject)| !subject.starts_with(SYNC))
            .map(|(id, _)| id.to_owned())
            .take(MAX_CHANGES)
            .collect();
        needed.extend(ids.iter().cloned());
        needed.insert(question.commit.clone());
        before.push(ids);
    }
    let commits = commits(clone, &needed)?;
    let mut lines = String::new();
    for (question, before) in questions.iter().zip(before) {
        let history = history(question, &before, &commits);
        let line = Line { id: question.id.clone(), history };
        writeln!(lines, "{}", serde_json::to_string(&line)?)?;
    }
    Ok(fs::write(out, lines)?)
}

fn history(question: &Question, before: &[String], commits: &HashMap<String, Commit>) -> History {
    let asked = commits.get(&question.commit).map_or(0, |commit| commit.time);
    History::new(before.iter().filter_map(|id| commits.get(id)).map(|commit| Change {
        request: commit.subject.clone(),
        files: commit.files.iter().filter(|file| FileKind::of(&file.path).is_target()).cloned().collect(),
        hours: (asked - commit.time) as f32 / 3600.0,
    }))
}

/// The subjects, times and edited lines of commits.
fn commits(clone: &Path, ids: &HashSet<String>) -> Result<HashMap<String, Commit>> {
    let input: String = ids.iter().flat_map(|id| [id, "\n"]).collect();
    let format = "--format=commit %H %at %s";
    let log =
        git(clone, &["log", "--no-walk=unsorted", "--stdin", "--no-renames", "-p", "-U0", format], &input)?;
    let mut commits = HashMap::new();
    let mut current: Option<(String, Commit)> = None;
    // Lines of the patch that belong to a hunk could look like anything else.
    let (mut removed, mut added) = (0, 0);
    for line in log.lines() {
        match line.as_bytes().first() {
            Some(b'-') if removed > 0 => {
                removed -= 1;
                continue;
            }
            Some(b'+') if added > 0 => {
                added -= 1;
                continue;
            }
            _ => {}
        }
        if let Some(head) = line.strip_prefix("commit ") {
            commits.extend(current.take());
            let mut parts = head.splitn(3, ' ');
            let (Some(id), Some(time)) = (parts.next(), parts.next()) else { continue };
            let subject = cleaned(parts.next().unwrap_or_default());
            current = Some((id.to_owned(), Commit { subject, time: time.parse()?, files: Vec::new() }));
        } else if let Some((_, commit)) = &mut current {
            if let Some(path) = line.strip_prefix("+++ b/") {
                commit.files.push(EditedFile { path: path.to_owned(), lines: Vec::new() });
            } else if let Some(hunk) = line.strip_prefix("@@ -") {
                let mut ends = hunk.split(' ').take(2).map(|end| {
                    let (start, count) = end.trim_start_matches('+').split_once(',').unwrap_or((end, "1"));
                    let start = start.trim_start_matches('+').parse::<u32>().unwrap_or(0);
                    (start, count.parse::<u32>().unwrap_or(0))
                });
                let (Some(old), Some(new)) = (ends.next(), ends.next()) else { continue };
                (removed, added) = (old.1, new.1);
                if let Some(file) = commit.files.last_mut() {
                    let start = new.0.max(1);
                    file.lines.push(LineRange { start, end: start + new.1.saturating_sub(1) });
                }
            }
        }
    }
    commits.extend(current);
    Ok(commits)
}

/// `[Header] Fix the menu (#12)` becomes `Header Fix the menu`, `fix(cart): no total` becomes `cart no total`.
fn cleaned(subject: &str) -> String {
    let mut subject = subject.trim();
    if let Some((rest, number)) = subject.rsplit_once(" (#")
        && number.strip_suffix(')').is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
    {
        subject = rest;
    }
    let mut text = subject.to_owned();
    if let Some((head, rest)) = subject.split_once(':') {
        let head = head.trim_end_matches('!');
        let (kind, scope) = head.split_once('(').unwrap_or((head, ""));
        if KINDS.contains(&kind) {
            text = format!("{} {rest}", scope.trim_end_matches(')'));
        }
    }
    let text = text.replace(['[', ']'], " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn git(clone: &Path, arguments: &[&str], input: &str) -> Result<String> {
    let mut git = Command::new("git")
        .arg("-C")
        .arg(clone)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = git.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    let output = git.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("git {} failed", arguments.join(" ")).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
