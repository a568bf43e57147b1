//! Replays real edits: `replay < edits.jsonl`. Each line has `path`, `before` and `after`.
//!
//! Each edit is made in four ways: as replacements of the changed lines alone, as replacements with three lines around them, by line
//! numbers, and as a whole file. The program says how many results have the bytes of `after`, how many are other bytes, and how many were
//! refused for what.

use std::collections::BTreeMap;
use std::io::BufRead;

use serde::Deserialize;
use theme::text::LineRange;
use theme_edit::diff::{Hunk, hunks};
use theme_edit::{Call, Draft, EditError, LineEdit, Replacement, Tree};

#[derive(Deserialize)]
struct Edit {
    path: String,
    before: String,
    after: String,
}

/// A text as a model writes it: with LF only.
fn written(lines: &[&str]) -> String {
    lines.concat().replace("\r\n", "\n")
}

/// The hunks as replacements, each with `around` lines on both sides. Hunks that are near are joined.
fn replacements(olds: &[&str], news: &[&str], changed: &[Hunk], around: usize) -> Vec<Replacement> {
    let mut joined: Vec<Hunk> = Vec::new();
    for hunk in changed {
        match joined.last_mut() {
            Some(last) if hunk.old.start <= last.old.end + 2 * around => {
                last.old.end = hunk.old.end;
                last.new.end = hunk.new.end;
            }
            _ => joined.push(hunk.clone()),
        }
    }
    let wide = |hunk: &Hunk| {
        let before = around.min(hunk.old.start);
        let after = around.min(olds.len() - hunk.old.end);
        Replacement {
            old: written(&olds[hunk.old.start - before..hunk.old.end + after]),
            new: written(&news[hunk.new.start - before..hunk.new.end + after]),
            expected_matches: None,
        }
    };
    joined.iter().map(wide).collect()
}

/// The name of a refusal.
fn name(error: &EditError) -> String {
    let json = serde_json::to_value(error).unwrap_or_default();
    json.get("refused").and_then(serde_json::Value::as_str).unwrap_or("?").to_owned()
}

fn main() {
    let mut counts: BTreeMap<(&str, String), usize> = BTreeMap::new();
    let mut total = 0;
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line");
        let Edit { path, before, after } = serde_json::from_str(&line).expect("an edit");
        total += 1;
        let (olds, news): (Vec<&str>, Vec<&str>) =
            (before.split_inclusive('\n').collect(), after.split_inclusive('\n').collect());
        let changed = hunks(&olds, &news);
        let lines = |hunk: &Hunk| {
            let content = written(&news[hunk.new.clone()]);
            if hunk.old.is_empty() {
                LineEdit::Insert { after: hunk.old.start as u32, content }
            } else {
                LineEdit::Replace {
                    start: hunk.old.start as u32 + 1,
                    end: hunk.old.end as u32,
                    content,
                    old: None,
                }
            }
        };
        let all = vec![LineRange { start: 1, end: u32::MAX }];
        let (version, path_of) = (None::<String>, || path.clone());
        let search = |around| Call::SearchReplace {
            path: path_of(),
            version: version.clone(),
            replacements: replacements(&olds, &news, &changed, around),
            allow_shrink: all.clone(),
        };
        let calls = [
            ("changed lines alone", search(0)),
            ("with three lines", search(3)),
            (
                "line numbers",
                Call::EditLines {
                    path: path_of(),
                    version: version.clone(),
                    edits: changed.iter().map(lines).collect(),
                    allow_shrink: all.clone(),
                },
            ),
            (
                "whole file",
                Call::WriteFile {
                    path: path_of(),
                    version: version.clone(),
                    content: after.replace("\r\n", "\n"),
                    allow_shrink: all.clone(),
                },
            ),
        ];
        for (way, call) in calls {
            let tree: Tree = [(path.as_str(), before.as_bytes())].into_iter().collect();
            let mut draft = Draft::new("replay", tree);
            draft.note_seen(&path);
            let result = match draft.apply(&call) {
                Err(error) => {
                    if !matches!(error, EditError::Ambiguous { .. } | EditError::EmptySearch { .. }) {
                        eprintln!("{way}: {error}");
                    }
                    name(&error)
                }
                Ok(_) => {
                    let made = draft.file(&path).and_then(|file| file.bytes.clone()).unwrap_or_default();
                    let made = String::from_utf8_lossy(&made).into_owned();
                    let kind = if made == after {
                        "equal"
                    } else if made.trim_end() == after.trim_end() {
                        "equal but for the end of the file"
                    } else if made.replace("\r\n", "\n").trim_end() == after.replace("\r\n", "\n").trim_end()
                    {
                        "equal but for line ends, which the edit changed"
                    } else {
                        eprintln!("{way}: {path} has other bytes");
                        "other bytes"
                    };
                    kind.to_owned()
                }
            };
            *counts.entry((way, result)).or_default() += 1;
        }
    }
    println!("{total} edits");
    for ((way, result), count) in counts {
        println!("{way}: {result}: {count}");
    }
}
