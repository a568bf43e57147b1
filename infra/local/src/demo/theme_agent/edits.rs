//! Writes the calls that edit.

use std::ops::Range;

use serde_json::json;

use super::super::theme_turn::{File, Found, Step};
use super::Plan;

/// How many lines an old text may have until it stands in the file once.
const MOST_LINES: usize = 40;

/// Replaces a part of a file that was read whole. The old text is the lines of the part, with as many before them, or else after them, as
/// make it the only one.
pub fn replaced(file: &File, part: Range<usize>, new: &str, done: String) -> Found<Plan> {
    let text = file.text.as_str();
    let begin = |at: usize| text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = |at: usize| text[at..].find('\n').map_or(text.len(), |end| at + end);
    let (mut from, mut to) = (begin(part.start), end(part.end));
    let is_only = |old: &str| !old.trim().is_empty() && text.matches(old).take(2).count() == 1;
    for _ in 0..MOST_LINES {
        let old = &text[from..to];
        if !File::is_whole(old) {
            break;
        }
        if is_only(old) {
            let new = format!("{}{new}{}", &text[from..part.start], &text[part.end..to]);
            return Ok(Plan {
                tool: "search_replace",
                input: json!({
                    "path": file.path, "version": file.version, "replacements": [{"old": old, "new": new}],
                }),
                done,
            });
        }
        if from > 0 {
            from = begin(from - 1);
        } else if to < text.len() {
            to = end(to + 1);
        } else {
            break;
        }
    }
    Err(Step::Say(format!("I can't name the place in `{}` so that it is the only one.", file.path)))
}

/// Replaces one line, which was read by its number.
pub fn line(file: &File, number: usize, new: &str, done: String) -> Found<Plan> {
    if !File::is_whole(&file.text) {
        return Err(Step::Say(format!("Line {number} of `{}` is too long for me.", file.path)));
    }
    let edit = json!({"start": number, "end": number, "old": file.text, "content": new});
    Ok(Plan {
        tool: "edit_lines",
        input: json!({"path": file.path, "version": file.version, "edits": [edit]}),
        done,
    })
}

/// Adds lines at the end of a file.
pub fn appended(file: &File, lines: &str, done: String) -> Plan {
    let edit = json!({"after": file.total, "content": lines});
    Plan {
        tool: "edit_lines",
        input: json!({"path": file.path, "version": file.version, "edits": [edit]}),
        done,
    }
}
