//! Search in the files of a theme, within bounds.
//!
//! Expressions are those of the crate `regex`: without backreferences and lookaround, in time linear in the text. A literal
//! is searched as an escaped expression. What is read and what is answered is bounded, and an answer that ended early
//! says where.

use domain::ids::{Owner, ProjectId};
use domain::projects::theme::ThemeFile;
use domain::theme::path::FileKind;
use domain::validate::FieldErrors;
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{contents, glob, state};
use crate::context::Cx;
use crate::problem::Result;

/// The most matches of one answer.
const MAX_MATCHES: usize = 300;
/// The most bytes of files that one call reads.
const MAX_READ: u64 = 32 * 1024 * 1024;
/// How many files are read before the next are asked for.
const STEP: usize = 64;
/// Longer lines are shown around the match, in characters.
const MAX_LINE: usize = 300;
/// Longest expression, in bytes.
const MAX_EXPRESSION: usize = 1_000;

/// What to search for.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct GrepQuery {
    /// The text, or with `regex=true` the expression, to search for in every line.
    pub q: String,
    /// Whether `q` is a regular expression. Default false.
    #[serde(default)]
    pub regex: bool,
    /// Whether upper and lower case are the same. Default false.
    #[serde(default)]
    pub ignore_case: bool,
    /// Only files that this pattern takes, for example `sections/*.liquid`.
    pub glob: Option<String>,
    /// How many matches, 1 to 300. Default 300.
    #[param(minimum = 1, maximum = 300)]
    pub limit: Option<usize>,
    /// `next_path` of the answer before: where to go on.
    pub from: Option<String>,
    /// `next_line` of the answer before.
    pub from_line: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct GrepAnswer {
    pub matches: Vec<Match>,
    pub searched_files: usize,
    /// Where to go on, as `from`: the first file that was not searched to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_path: Option<String>,
    /// The line of that file, as `from_line`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_line: Option<u32>,
}

/// A line that matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Match {
    pub path: String,
    /// From 1.
    pub line: u32,
    /// The line; of a long one what is around the match.
    pub text: String,
}

/// Searches file by file, in the order of their paths.
///
/// # Errors
/// 404 where the project is not there, 400 for an expression, pattern or limit that is none.
pub async fn grep(cx: &Cx, owner: &Owner, project: ProjectId, query: &GrepQuery) -> Result<GrepAnswer> {
    let expression = compile(query)?;
    let limit = match query.limit {
        None => MAX_MATCHES,
        Some(limit) if (1..=MAX_MATCHES).contains(&limit) => limit,
        Some(limit) => {
            return Err(FieldErrors::one("limit", format!("must be 1 to {MAX_MATCHES}, is {limit}")).into());
        }
    };
    let pattern = query.glob.as_deref().map(|pattern| glob::compile("glob", pattern)).transpose()?;
    let generation = state(cx, owner, project).await?.generation;
    let is_searched = |file: &ThemeFile| {
        query.from.as_ref().is_none_or(|from| *from <= file.path)
            && pattern.as_ref().is_none_or(|pattern| pattern.is_match(&file.path))
            && is_text(&file.path)
    };
    let mut files = cx.store.all_theme_files(owner, project, generation).await?;
    files.retain(is_searched);

    let mut answer = GrepAnswer { matches: Vec::new(), searched_files: 0, next_path: None, next_line: None };
    let mut read = 0;
    for step in files.chunks(STEP) {
        let fits = step.iter().take_while(|file| {
            read += file.bytes;
            read <= MAX_READ
        });
        let fits = fits.count();
        let mut texts = contents(cx, owner, project, step[..fits].iter()).await?;
        texts.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for (path, content) in texts {
            let left = limit - answer.matches.len();
            let first = if query.from.as_ref() == Some(&path) { query.from_line.unwrap_or(1) } else { 1 };
            let mut found = matches(&expression, &path, &content, first, left + 1);
            if found.len() > left {
                answer.next_line = found.pop().map(|beyond| beyond.line);
                answer.next_path = Some(path);
                answer.matches.append(&mut found);
                return Ok(answer);
            }
            answer.matches.append(&mut found);
            answer.searched_files += 1;
        }
        if fits < step.len() {
            answer.next_path = Some(step[fits].path.clone());
            break;
        }
    }
    Ok(answer)
}

fn compile(query: &GrepQuery) -> Result<Regex, FieldErrors> {
    let refused = |message: String| FieldErrors::one("q", message);
    if query.q.is_empty() || query.q.len() > MAX_EXPRESSION {
        return Err(refused(format!("must be 1 to {MAX_EXPRESSION} bytes, is {}", query.q.len())));
    }
    let expression = if query.regex { query.q.clone() } else { regex::escape(&query.q) };
    RegexBuilder::new(&expression)
        .case_insensitive(query.ignore_case)
        .size_limit(1 << 20)
        .build()
        .map_err(|error| refused(format!("is no expression that can be searched for: {error}")))
}

/// Whether a file is searched: images and fonts are not.
fn is_text(path: &str) -> bool {
    let ending = path.rsplit('.').next().unwrap_or_default();
    FileKind::of(path) != FileKind::Other
        || matches!(ending, "svg" | "md" | "txt" | "json" | "liquid" | "html" | "xml")
}

/// The lines of a file from `first` on that match, at most so many. A file that is not UTF-8 has none.
fn matches(expression: &Regex, path: &str, content: &[u8], first: u32, most: usize) -> Vec<Match> {
    let Ok(text) = std::str::from_utf8(content) else { return Vec::new() };
    let lines = text.lines().zip(1_u32..).skip_while(|&(_, number)| number < first);
    let found = lines.filter_map(|(line, number)| {
        let at = expression.find(line)?.start();
        Some(Match { path: path.to_owned(), line: number, text: excerpt(line, at) })
    });
    found.take(most).collect()
}

fn excerpt(line: &str, at: usize) -> String {
    if line.len() <= MAX_LINE {
        return line.to_owned();
    }
    let before = line[..at].chars().rev().take(MAX_LINE / 3).map(char::len_utf8).sum::<usize>();
    line[at - before..].chars().take(MAX_LINE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_match_and_long_ones_are_shown_in_part() {
        let query = |q: &str, regex, ignore_case| GrepQuery {
            q: q.into(),
            regex,
            ignore_case,
            ..GrepQuery::default()
        };
        let lines = |query: &GrepQuery, text: &str| -> Vec<(u32, String)> {
            let expression = compile(query).unwrap();
            matches(&expression, "a", text.as_bytes(), 1, 9).into_iter().map(|m| (m.line, m.text)).collect()
        };
        let text = "one\nTwo (2)\r\nthree\n";
        assert_eq!(lines(&query("(2)", false, false), text), [(2, "Two (2)".to_owned())]);
        assert_eq!(
            lines(&query("^t", true, true), text),
            [(2, "Two (2)".to_owned()), (3, "three".to_owned())]
        );
        assert_eq!(lines(&query("^t", true, false), text), [(3, "three".to_owned())]);
        let long = format!("{}needle{}", "é".repeat(1_000), "x".repeat(1_000_000));
        let shown = &lines(&query("needle", false, false), &long)[0].1;
        assert_eq!((shown.chars().count(), shown.find("needle")), (MAX_LINE, Some(200)));
        assert!(matches(&compile(&query("x", false, false)).unwrap(), "a", b"x\xff", 1, 9).is_empty());
    }

    #[test]
    fn an_expression_that_is_none_is_told() {
        let check = |q: &str, expected: &str| {
            let error = compile(&GrepQuery { q: q.into(), regex: true, ..GrepQuery::default() }).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
        };
        check("", "q: must be 1 to 1000 bytes, is 0");
        check("(", "q: is no expression that can be searched for");
        check(r"(a)\1", "q: is no expression that can be searched for");
        check(r"(\pL{1000}){1000}", "q: is no expression that can be searched for");
    }
}
