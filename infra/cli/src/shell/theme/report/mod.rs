//! What a check has found, for people and for programs.

mod github;
mod place;
mod sarif;
mod text;

use std::cmp::Reverse;

use serde_json::Value;

pub use self::place::Place;
use super::super::screen::{Screen, print_json};
use super::super::values::{Fields, counted};
use crate::Failure;
use crate::args::CheckFormat;
use crate::output;

/// How a check is written.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub format: CheckFormat,
    /// The most findings that are listed. All if it is 0.
    pub limit: usize,
    /// Whether a change was checked, so that only what it adds was found.
    pub is_change: bool,
}

/// Prints what was found.
///
/// # Errors
/// If it can't be written, or there are errors in the theme.
pub fn print(style: Style, place: &Place, mut answer: Value) -> Result<(), Failure> {
    if style.limit > 0 {
        shorten(&mut answer, style.limit);
    }
    match style.format {
        CheckFormat::Json => print_json(&answer)?,
        CheckFormat::Sarif => print_json(&sarif::log(&answer, place))?,
        CheckFormat::Github => output::print(github::commands(&answer, place, style.is_change))?,
        CheckFormat::Text => output::print(text::lines(Screen::look(), &answer, style.is_change))?,
    }
    if answer.is("has_more") {
        output::note(&left_out(&answer));
    }
    match answer.number("errors").unwrap_or(0) {
        0 => Ok(()),
        errors => Err(Failure::Message(format!("the theme has {}", counted(errors, "error", "errors")))),
    }
}

/// Keeps the worst findings, in their order.
fn shorten(answer: &mut Value, most: usize) {
    let Some(findings) = answer["findings"].as_array_mut().filter(|findings| findings.len() > most) else {
        return;
    };
    let mut numbers: Vec<usize> = (0..findings.len()).collect();
    numbers.sort_by_key(|&number| rank(&findings[number]));
    let mut is_kept = vec![false; findings.len()];
    for number in numbers.into_iter().take(most) {
        is_kept[number] = true;
    }
    let mut kept = is_kept.into_iter();
    findings.retain(|_| kept.next().unwrap_or_default());
    answer["has_more"] = Value::Bool(true);
}

/// The worst first: what Shopify refuses, and then by severity.
fn rank(finding: &Value) -> (Reverse<bool>, u8) {
    let severity = match finding.text("severity") {
        "error" => 0,
        "warning" => 1,
        _ => 2,
    };
    (Reverse(finding.is("refused")), severity)
}

/// The findings for which Shopify refuses a file, and the others.
fn parted(answer: &Value) -> (Vec<&Value>, Vec<&Value>) {
    answer.items("findings").iter().partition(|finding| finding.is("refused"))
}

/// Whether Shopify would take the theme. Nothing, if an older server does not say it.
fn verdict(answer: &Value, is_change: bool) -> Option<String> {
    let refused = answer.number("refused")?;
    let files = counted(refused, "file", "files");
    Some(match (refused, is_change) {
        (0, false) => "Shopify would take every file.".to_owned(),
        (_, false) => format!("Shopify would refuse {files}."),
        (0, true) => "The change adds nothing for which Shopify would refuse a file.".to_owned(),
        (_, true) => format!("Because of the change, Shopify would refuse {files}."),
    })
}

/// How many findings of each severity there are.
fn totals(answer: &Value) -> String {
    let count = |field, one, many| counted(answer.number(field).unwrap_or(0), one, many);
    format!(
        "{}, {}, {} in {}",
        count("errors", "error", "errors"),
        count("warnings", "warning", "warnings"),
        count("infos", "suggestion", "suggestions"),
        count("files", "file", "files")
    )
}

/// Why findings are missing, and how to see them.
fn left_out(answer: &Value) -> String {
    let listed = answer.items("findings").len();
    let all: i64 = ["errors", "warnings", "infos"].iter().filter_map(|field| answer.number(field)).sum();
    if usize::try_from(all).is_ok_and(|all| all <= listed) {
        return "of each file, only the first 500 findings of a severity are listed".to_owned();
    }
    format!("the worst {listed} of {all} findings are listed; `--limit 0` lists all")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer() -> Value {
        let finding = |line: u32, severity: &str, refused: bool| json!({"path": "a", "line": line, "severity": severity, "refused": refused});
        let findings = [
            finding(1, "info", false),
            finding(2, "error", false),
            finding(3, "warning", false),
            finding(4, "error", true),
        ];
        json!({"findings": findings, "refused": 1, "errors": 2, "warnings": 1, "infos": 1, "files": 9, "has_more": false})
    }

    fn kept(most: usize) -> (Vec<i64>, bool) {
        let mut answer = answer();
        shorten(&mut answer, most);
        let lines = answer.items("findings").iter().filter_map(|finding| finding.number("line"));
        (lines.collect(), answer.is("has_more"))
    }

    #[test]
    fn the_worst_findings_stay_in_their_order() {
        assert_eq!(kept(1), (vec![4], true));
        assert_eq!(kept(2), (vec![2, 4], true));
        assert_eq!(kept(3), (vec![2, 3, 4], true));
        assert_eq!(kept(4), (vec![1, 2, 3, 4], false));
    }

    #[test]
    fn it_says_first_whether_shopify_takes_the_theme() {
        let mut answer = answer();
        assert_eq!(verdict(&answer, false).as_deref(), Some("Shopify would refuse 1 file."));
        assert_eq!(
            verdict(&answer, true).as_deref(),
            Some("Because of the change, Shopify would refuse 1 file.")
        );
        answer["refused"] = json!(12);
        assert_eq!(verdict(&answer, false).as_deref(), Some("Shopify would refuse 12 files."));
        answer["refused"] = json!(0);
        assert_eq!(verdict(&answer, false).as_deref(), Some("Shopify would take every file."));
        assert_eq!(verdict(&json!({"findings": []}), false), None, "an older server");
    }

    #[test]
    fn what_is_left_out_is_said_with_a_way_to_see_it() {
        let mut answer = answer();
        shorten(&mut answer, 2);
        assert_eq!(left_out(&answer), "the worst 2 of 4 findings are listed; `--limit 0` lists all");
        let all = self::answer();
        assert_eq!(left_out(&all), "of each file, only the first 500 findings of a severity are listed");
    }
}
