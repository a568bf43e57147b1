//! Searches the files of a theme, within limits.
//!
//! Expressions have neither backreferences nor lookaround. A literal is searched as an escaped expression. The bytes
//! read, the number of matches and the computing time are limited. An answer that ended early says where to continue.

use std::time::{Duration, Instant};

use domain::ids::{Owner, ProjectId};
use domain::projects::theme::ThemeFile;
use domain::validate::FieldErrors;
use serde::{Deserialize, Serialize};
use theme::path::FileKind;
use utoipa::{IntoParams, ToSchema};

use super::expression::{Expression, Matching};
use super::glob::Glob;
use super::{contents, state};
use shared::context::Cx;
use shared::error::Result;
use shared::process::compute::{Stop, Stopped};

/// The most matches in one answer.
const MAX_MATCHES: usize = 300;
/// The most bytes of files that one call reads.
const MAX_READ: u64 = 32 * 1024 * 1024;
/// How many files are read before the next ones are requested.
const STEP: usize = 64;
/// A longer line is shown only in part, around the match. In characters.
const MAX_LINE: usize = 300;
/// The longest expression, in bytes.
const MAX_EXPRESSION: usize = 1_000;

/// What to search for.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct GrepQuery {
    /// The text to search for in every line. With `regex=true`, a regular expression.
    pub q: String,
    /// Whether `q` is a regular expression. Default false.
    #[serde(default)]
    pub regex: bool,
    /// Whether to ignore upper and lower case. Default false.
    #[serde(default)]
    pub ignore_case: bool,
    /// Search only files whose path matches this pattern, for example `sections/*.liquid`.
    pub glob: Option<String>,
    /// The number of matches, 1 to 300. Default 300.
    #[param(minimum = 1, maximum = 300)]
    pub limit: Option<usize>,
    /// `next_path` of the previous answer: where to continue.
    pub from: Option<String>,
    /// `next_line` of the previous answer.
    pub from_line: Option<u32>,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct GrepAnswer {
    pub matches: Vec<Match>,
    pub searched_files: usize,
    /// Send it as `from` to continue: the first file that was not searched completely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_path: Option<String>,
    /// Send it as `from_line`: the line of that file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_line: Option<u32>,
}

/// A line that matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Match {
    pub path: String,
    /// The line's number. The first is 1.
    pub line: u32,
    /// The line. Of a long line, only the part around the match.
    pub text: String,
}

/// Searches the files in the order of their paths.
///
/// # Errors
/// 404 if the project does not exist. 400 if the expression, `glob` or `limit` is invalid, or if the search takes longer
/// than its time budget. 503 if too many searches run already.
pub async fn grep(cx: &Cx, owner: &Owner, project: ProjectId, query: &GrepQuery) -> Result<GrepAnswer> {
    let limit = match query.limit {
        None => MAX_MATCHES,
        Some(limit) if (1..=MAX_MATCHES).contains(&limit) => limit,
        Some(limit) => {
            return Err(FieldErrors::one("limit", format!("must be 1 to {MAX_MATCHES}, is {limit}")).into());
        }
    };
    check_length(query)?;
    let generation = state(cx, owner, project).await?.generation;
    let files = cx.store.all_theme_files(owner, project, generation).await?;
    let mut left = cx.compute.searches.budget;
    let begun = {
        let query = query.clone();
        timed(cx, &mut left, move |stop| begin(&query, files, stop)).await?
    };
    let (mut expression, files) = begun?;

    let mut answer = GrepAnswer { matches: Vec::new(), searched_files: 0, next_path: None, next_line: None };
    let mut read = 0_u64;
    for step in files.chunks(STEP) {
        let fits = step.iter().take_while(|file| {
            read = read.saturating_add(file.bytes);
            read <= MAX_READ
        });
        let fits = fits.count();
        let mut texts = contents(cx, owner, project, step[..fits].iter()).await?;
        texts.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let from = query.from.clone().map(|path| (path, query.from_line.unwrap_or(1)));
        let searched = timed(cx, &mut left, move |stop| {
            let answer = search(&mut expression, answer, &texts, from.as_ref(), limit, stop)?;
            Ok((expression, answer))
        });
        (expression, answer) = searched.await?;
        if answer.next_path.is_some() {
            break;
        }
        if fits < step.len() {
            answer.next_path = Some(step[fits].path.clone());
            break;
        }
    }
    Ok(answer)
}

/// Runs one part of a search. All parts together share the time budget of one search.
async fn timed<T: Send + 'static>(
    cx: &Cx,
    left: &mut Duration,
    work: impl FnOnce(&Stop) -> Result<T, Stopped> + Send + 'static,
) -> Result<T> {
    let lane = &cx.compute.searches;
    let done = lane.within(*left, move |stop| {
        let began = Instant::now();
        work(stop).map(|done| (done, began.elapsed()))
    });
    let Ok((done, took)) = done.await? else {
        let message = format!(
            "takes longer than {} ms on these files: use smaller counts, or name fewer files with `glob`",
            lane.budget.as_millis()
        );
        return Err(FieldErrors::one("q", message).into());
    };
    *left = left.saturating_sub(took);
    Ok(done)
}

type Begun = Result<(Expression, Vec<ThemeFile>), FieldErrors>;

/// Compiles the expression, and selects the files to search.
fn begin(query: &GrepQuery, mut files: Vec<ThemeFile>, stop: &Stop) -> Result<Begun, Stopped> {
    let expression = match compile(query) {
        Ok(expression) => expression,
        Err(errors) => return Ok(Err(errors)),
    };
    files.retain(|file| query.from.as_ref().is_none_or(|from| *from <= file.path) && is_text(&file.path));
    if let Some(pattern) = query.glob.as_deref() {
        let mut glob = match Glob::new("glob", pattern) {
            Ok(glob) => glob,
            Err(errors) => return Ok(Err(errors)),
        };
        let mut kept = Vec::with_capacity(files.len());
        for file in files {
            if glob.is_match(&file.path, stop)? {
                kept.push(file);
            }
        }
        files = kept;
    }
    Ok(Ok((expression, files)))
}

/// Searches texts that are in memory. The inner error is one of the query.
pub(crate) fn in_texts(
    query: &GrepQuery,
    texts: &[(String, impl AsRef<[u8]>)],
    stop: &Stop,
) -> Result<Result<GrepAnswer, FieldErrors>, Stopped> {
    let mut expression = match check_length(query).and_then(|()| compile(query)) {
        Ok(expression) => expression,
        Err(errors) => return Ok(Err(errors)),
    };
    let nothing = GrepAnswer { matches: Vec::new(), searched_files: 0, next_path: None, next_line: None };
    let limit = query.limit.unwrap_or(MAX_MATCHES).clamp(1, MAX_MATCHES);
    search(&mut expression, nothing, texts, None, limit, stop).map(Ok)
}

/// Searches some files in their order, and adds to what was found before.
fn search(
    expression: &mut Expression,
    mut answer: GrepAnswer,
    texts: &[(String, impl AsRef<[u8]>)],
    from: Option<&(String, u32)>,
    limit: usize,
    stop: &Stop,
) -> Result<GrepAnswer, Stopped> {
    for (path, content) in texts {
        let left = limit - answer.matches.len();
        let first = from.filter(|(from, _)| from == path).map_or(1, |(_, line)| *line);
        let mut found = matches(expression, path, content.as_ref(), first, left + 1, stop)?;
        if found.len() > left {
            answer.next_line = found.pop().map(|beyond| beyond.line);
            answer.next_path = Some(path.clone());
            answer.matches.append(&mut found);
            return Ok(answer);
        }
        answer.matches.append(&mut found);
        answer.searched_files += 1;
    }
    Ok(answer)
}

fn check_length(query: &GrepQuery) -> Result<(), FieldErrors> {
    if query.q.is_empty() || query.q.len() > MAX_EXPRESSION {
        let message = format!("must be 1 to {MAX_EXPRESSION} bytes, is {}", query.q.len());
        return Err(FieldErrors::one("q", message));
    }
    Ok(())
}

fn compile(query: &GrepQuery) -> Result<Expression, FieldErrors> {
    let pattern = if query.regex { query.q.clone() } else { Expression::escape(&query.q) };
    let matching = Matching { ignore_case: query.ignore_case, ..Matching::default() };
    Expression::new(&pattern, matching)
        .map_err(|problem| FieldErrors::one("q", format!("the expression {problem}")))
}

/// Whether a file is searched. Images and fonts are not.
pub(crate) fn is_text(path: &str) -> bool {
    let ending = path.rsplit('.').next().unwrap_or_default();
    FileKind::of(path) != FileKind::Other
        || matches!(ending, "svg" | "md" | "txt" | "json" | "liquid" | "html" | "xml")
}

/// The matching lines of a file, starting at line `first`, at most `most` of them. A file that is not UTF-8 has none.
fn matches(
    expression: &mut Expression,
    path: &str,
    content: &[u8],
    first: u32,
    most: usize,
    stop: &Stop,
) -> Result<Vec<Match>, Stopped> {
    let mut found = Vec::new();
    let needle = expression.needle().cloned();
    // Most files have no line that can match.
    if needle.as_ref().is_some_and(|needle| needle.find(content).is_none()) {
        return Ok(found);
    }
    let Ok(text) = std::str::from_utf8(content) else { return Ok(found) };
    for (line, number) in text.lines().zip(1_u32..).skip_while(|&(_, number)| number < first) {
        if needle.as_ref().is_some_and(|needle| needle.find(line.as_bytes()).is_none()) {
            continue;
        }
        let Some(end) = expression.end(line.as_bytes(), stop)? else { continue };
        let text = if line.len() <= MAX_LINE {
            line.to_owned()
        } else {
            excerpt(line, expression.begin(line.as_bytes(), end, stop)?)
        };
        found.push(Match { path: path.to_owned(), line: number, text });
        if found.len() == most {
            break;
        }
    }
    Ok(found)
}

/// The part of a long line around a position.
fn excerpt(line: &str, at: usize) -> String {
    let at = line.floor_char_boundary(at);
    let before = line[..at].chars().rev().take(MAX_LINE / 3).map(char::len_utf8).sum::<usize>();
    line[at - before..].chars().take(MAX_LINE).collect()
}

/// The matching lines of one file, as one call finds them. For the test of growth.
#[cfg(test)]
pub(crate) fn search_all(pattern: &str, text: &str, stop: &Stop) {
    let path = "assets/a.js".to_owned();
    let texts = [(path, text.as_bytes())];
    let mut expression = Expression::new(pattern, Matching::default()).unwrap();
    let nothing = GrepAnswer { matches: Vec::new(), searched_files: 0, next_path: None, next_line: None };
    let answer = search(&mut expression, nothing, &texts, None, MAX_MATCHES, stop).unwrap();
    assert!(answer.matches.len() <= MAX_MATCHES);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop() -> Stop {
        Stop::after(Duration::from_secs(60))
    }

    #[test]
    fn lines_match_and_long_ones_are_shown_in_part() {
        let query = |q: &str, regex, ignore_case| GrepQuery {
            q: q.into(),
            regex,
            ignore_case,
            ..GrepQuery::default()
        };
        let lines = |query: &GrepQuery, text: &str| -> Vec<(u32, String)> {
            let mut expression = compile(query).unwrap();
            let found = matches(&mut expression, "a", text.as_bytes(), 1, 9, &stop()).unwrap();
            found.into_iter().map(|m| (m.line, m.text)).collect()
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
        let mut expression = compile(&query("x", false, false)).unwrap();
        assert!(matches(&mut expression, "a", b"x\xff", 1, 9, &stop()).unwrap().is_empty());
    }

    #[test]
    fn a_text_that_each_match_contains_changes_nothing() {
        let text = "a.b\nxa.by\r\n\na.b a.b\nA.B\r\nab\n.a.b\u{e9}\nend a.b";
        for (q, regex, ignore_case) in [
            ("a.b", false, false),
            ("a.b", false, true),
            ("a.b", true, false),
            ("^a\\.b", true, false),
            ("(a)\\.(b)$", true, false),
            ("a|b", true, false),
            ("x*a\\.b", true, false),
            ("(?:a\\.b)?e", true, false),
            ("a\\.b\\r?\u{e9}", true, false),
            ("\\n", true, false),
            ("b\\na", true, false),
            ("", true, false),
        ] {
            let matching = Matching { ignore_case, ..Matching::default() };
            let pattern = if regex { q.to_owned() } else { Expression::escape(q) };
            let mut expression = Expression::new(&pattern, matching).unwrap();
            let by_lines: Vec<u32> = (1..)
                .zip(text.lines())
                .filter(|(_, line)| expression.end(line.as_bytes(), &stop()).unwrap().is_some())
                .map(|(number, _)| number)
                .collect();
            let found = matches(&mut expression, "a", text.as_bytes(), 1, 99, &stop()).unwrap();
            assert_eq!(found.iter().map(|found| found.line).collect::<Vec<_>>(), by_lines, "{q}");
        }
    }

    #[test]
    fn an_invalid_expression_is_reported() {
        let check = |q: &str, expected: &str| {
            let query = GrepQuery { q: q.into(), regex: true, ..GrepQuery::default() };
            let error = check_length(&query).and_then(|()| compile(&query).map(drop)).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
        };
        check("", "q: must be 1 to 1000 bytes, is 0");
        check("(", "q: the expression can't be read");
        check(r"(a)\1", "q: the expression can't be read");
        check(r"(\pL{1000}){1000}", "q: the expression is too large");
    }
}
