//! `docs commit`: reports commits to the platform.

use serde_json::{Value, json};

use super::Docs;
use super::git::{Repository, is_id};
use crate::Failure;
use crate::output;
use crate::server::{Change, ServerError};
use crate::shell::screen::print_json;
use crate::shell::values::{Fields, counted};

/// How many commits wait at most, and so how many are reported.
pub const MOST: usize = 1_000;

/// How many commits one call reports.
const AT_ONCE: usize = 200;

/// How much of them, in bytes of JSON. Texts with many escapes are long.
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// The longest message, in bytes.
const MAX_MESSAGE: usize = 4_000;

/// The longest name of an author, in characters.
const MAX_AUTHOR: usize = 100;

/// How many files of a commit are named.
const MAX_FILES: usize = 50;

/// The longest path of a file, in bytes.
const MAX_PATH: usize = 300;

/// The years 1970 to 9000, in seconds. A commit may name any number.
const TIMES: std::ops::RangeInclusive<i64> = 0..=221_845_392_000;

/// Reports these revisions, or the newest commit.
///
/// # Errors
/// If one is no commit, or if the server refuses them or does not answer.
pub fn run(docs: &Docs, revisions: &[String], json: bool) -> Result<(), Failure> {
    let repository = Repository::find()?;
    let head = ["HEAD".to_owned()];
    let mut ids: Vec<String> = Vec::new();
    for revision in if revisions.is_empty() { &head } else { revisions } {
        for id in named(&repository, revision)? {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
    }
    if ids.len() > MOST {
        return Err(Failure::Message(format!(
            "these are {} or more commits, and at most {MOST} wait for a synchronisation",
            ids.len()
        )));
    }
    let added = report(docs, &read(&repository, &ids)?)?;
    if json {
        return print_json(&added);
    }
    Ok(output::print(format!(
        "{}; {} since the last synchronisation\n",
        told(&added),
        counted(added.number("commits_since_sync").unwrap_or(0), "commit", "commits"),
    ))?)
}

fn told(added: &Value) -> String {
    let number = |field| added.number(field).unwrap_or(0);
    let mut told = vec![format!("reported {}", counted(number("new"), "new commit", "new commits"))];
    for (field, what) in [("rebased", "rebased"), ("known", "known before")] {
        if number(field) > 0 {
            told.push(format!("{} {what}", number(field)));
        }
    }
    told.join(", ")
}

/// The commits that a person names, oldest first: one, or a range.
fn named(repository: &Repository, revision: &str) -> Result<Vec<String>, Failure> {
    let most = format!("--max-count={}", MOST + 1);
    let ids = if revision.contains("..") {
        repository.ask(&[
            "rev-list",
            "--topo-order",
            "--reverse",
            &most,
            "--end-of-options",
            revision,
            "--",
        ])?
    } else {
        let commit = format!("{revision}^{{commit}}");
        repository.ask(&["rev-parse", "--verify", "--end-of-options", &commit])?
    };
    Ok(ids_of(&ids))
}

/// The commits since others, oldest first, at most [`MOST`] of the newest.
///
/// # Errors
/// What git says.
pub fn since(repository: &Repository, head: &str, known: &[String]) -> Result<Vec<String>, Failure> {
    let mut lines = format!("{head}\n");
    for id in known {
        lines.push_str(&format!("^{id}\n"));
    }
    let most = format!("--max-count={MOST}");
    let ids = repository.ask_about(&["rev-list", "--topo-order", "--reverse", &most, "--stdin"], &lines)?;
    Ok(ids_of(&ids))
}

fn ids_of(printed: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(printed).lines().filter(|id| is_id(id)).map(str::to_owned).collect()
}

/// A commit without its files.
struct Header {
    id: String,
    parent: Option<String>,
    at: i64,
    author: String,
    message: String,
}

/// The commits with these ids, as the API takes them, in this order. Those without a message are left out: they tell nothing.
///
/// # Errors
/// What git says.
pub fn read(repository: &Repository, ids: &[String]) -> Result<Vec<Value>, Failure> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let headers = headers(repository, ids)?;
    let files = files(repository, &headers)?;
    let commits = headers.into_iter().zip(files).filter_map(|(header, paths)| {
        let Header { id, at, author, message, .. } = header;
        let message = message.trim();
        let message = message[..message.floor_char_boundary(MAX_MESSAGE)].trim_end();
        let author: String = author.trim().chars().take(MAX_AUTHOR).collect();
        let at = jiff::Timestamp::from_second(at.clamp(*TIMES.start(), *TIMES.end())).ok()?;
        let all = paths.len();
        let fits = |path: &String| (1..=MAX_PATH).contains(&path.len());
        let paths: Vec<String> = paths.into_iter().filter(fits).take(MAX_FILES).collect();
        let mut commit = json!({
            "id": id, "at": at.to_string(), "message": message, "more_files": all - paths.len(), "files": paths,
        });
        if !author.is_empty() {
            commit["author"] = author.into();
        }
        (!message.is_empty()).then_some(commit)
    });
    Ok(commits.collect())
}

/// What the commits say.
fn headers(repository: &Repository, ids: &[String]) -> Result<Vec<Header>, Failure> {
    let lines: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let printed = repository.ask_about(
        &[
            "rev-list",
            "--no-walk=unsorted",
            "--encoding=UTF-8",
            "--format=%H%x00%P%x00%at%x00%an%x00%B%x00",
            "--stdin",
        ],
        &lines,
    )?;
    // No part of a commit has a NUL. Before each is a line `commit`, and before that the end of the line of the one before.
    let parts: Vec<&[u8]> = printed.split(|byte| *byte == 0).collect();
    let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
    let headers: Vec<Header> = parts
        .chunks_exact(5)
        .map(|parts| Header {
            id: text(parts[0]).lines().last().unwrap_or_default().to_owned(),
            parent: text(parts[1]).split(' ').next().filter(|id| is_id(id)).map(str::to_owned),
            at: text(parts[2]).parse().unwrap_or(0),
            author: text(parts[3]),
            message: text(parts[4]),
        })
        .collect();
    if headers.iter().map(|header| &header.id).ne(ids) {
        return Err(Failure::Message("git: it has printed other commits than were asked for".to_owned()));
    }
    Ok(headers)
}

/// The files that the commits change, also against the first parent of a merge.
fn files(repository: &Repository, headers: &[Header]) -> Result<Vec<Vec<String>>, Failure> {
    let lines: String = headers
        .iter()
        .map(|Header { id, parent, .. }| match parent {
            Some(parent) => format!("{id} {parent}\n"),
            None => format!("{id}\n"),
        })
        .collect();
    let printed = repository.ask_about(
        &["diff-tree", "--stdin", "--root", "-r", "-z", "--name-status", "--no-renames"],
        &lines,
    )?;
    let mut files: Vec<Vec<String>> = headers.iter().map(|_| Vec::new()).collect();
    let mut at = None;
    let mut parts = printed.split(|byte| *byte == 0);
    // A commit, and then the letter and the path of each file. So a file whose name is the hash of a commit is a file.
    while let Some(part) = parts.next().filter(|part| !part.is_empty()) {
        let part = String::from_utf8_lossy(part);
        if is_id(part.trim_end()) {
            let next = at.map_or(0, |at| at + 1);
            at = headers[next.min(headers.len())..]
                .iter()
                .position(|header| header.id == part.trim_end())
                .map(|n| n + next);
        } else if let (Some(at), Some(path)) = (at, parts.next()) {
            files[at].push(String::from_utf8_lossy(path).into_owned());
        }
    }
    Ok(files)
}

/// How many ids of a report the platform takes.
const MAX_REPORT: usize = 5_000;

/// How many of the first commits one call takes.
fn fitting(commits: &[Value]) -> usize {
    let mut bytes = 0;
    let fit = commits.iter().take(AT_ONCE).take_while(|commit| {
        bytes += commit.to_string().len();
        bytes <= MAX_BYTES
    });
    fit.count().max(1)
}

/// Reports commits, oldest first. Returns what became of them in all.
///
/// # Errors
/// If the server refuses some or does not answer. Those before are reported; it does no harm to report them again.
pub fn report(docs: &Docs, commits: &[Value]) -> Result<Value, ServerError> {
    let mut all = json!({ "new": 0, "rebased": 0, "known": 0 });
    // Commits of one report never replace each other, so each part names all.
    let ids: Vec<&Value> = commits.iter().map(|commit| &commit["id"]).take(MAX_REPORT).collect();
    let mut rest = commits;
    while !rest.is_empty() {
        let (some, later) = rest.split_at(fitting(rest));
        rest = later;
        let mut body = json!({ "commits": some });
        if some.len() < commits.len() {
            body["report"] = json!(ids);
        }
        let added = docs.api.sent(Change::Post, &docs.path("/commits"), &body)?;
        for field in ["new", "rebased", "known"] {
            all[field] = json!(all.number(field).unwrap_or(0) + added.number(field).unwrap_or(0));
        }
        for field in ["commits_since_sync", "staleness"] {
            all[field] = added[field].clone();
        }
    }
    Ok(all)
}
