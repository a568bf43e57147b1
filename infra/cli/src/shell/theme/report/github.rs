//! The findings as commands of a workflow of GitHub Actions, which shows them beside the code.
//!
//! GitHub shows only the first ten errors and the first ten warnings of a step, so what Shopify refuses comes first.

use std::fmt::Write;

use serde_json::Value;

use super::super::super::values::Fields;
use super::place::Place;
use super::{parted, totals, verdict};
use crate::output::must_be_escaped;

/// Whether Shopify takes the theme, then one command for each finding, and how many there are.
#[must_use]
pub fn commands(answer: &Value, place: &Place, is_change: bool) -> String {
    let mut text = verdict(answer, is_change).map_or_else(String::new, |verdict| format!("{verdict}\n"));
    let (refused, others) = parted(answer);
    for finding in refused.into_iter().chain(others) {
        let command = match finding.text("severity") {
            "error" => "error",
            "warning" => "warning",
            _ => "notice",
        };
        let _ = writeln!(
            text,
            "::{command} file={},line={},title={}::{}",
            property(&place.of(finding.text("path"))),
            finding.number("line").unwrap_or(1),
            property(finding.text("code")),
            data(finding.text("message"))
        );
    }
    let _ = writeln!(text, "{}", totals(answer));
    text
}

/// The text of a command. Escapes keep it on its line, and no character controls a terminal.
fn data(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '%' => safe.push_str("%25"),
            '\r' => safe.push_str("%0D"),
            '\n' => safe.push_str("%0A"),
            c if must_be_escaped(c) => safe.extend(c.escape_default()),
            c => safe.push(c),
        }
    }
    safe
}

/// The value of a property of a command. A colon and a comma would end it.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_finding_is_one_command() {
        let answer = json!({
            "findings": [
                {"path": "snippets/a, b:c%.liquid", "line": 2, "severity": "info", "code": "One", "message": "50% of it,\r\nand: more\u{1b}"},
                {"path": "sections/a.liquid", "line": 7, "severity": "error", "code": "Two", "message": "wrong\n::error::injected", "refused": true},
                {"path": "sections/a.liquid", "line": 8, "severity": "warning", "code": "Three", "message": "odd"}
            ],
            "refused": 1, "errors": 1, "warnings": 1, "infos": 1, "files": 2
        });
        let expected = "\
            Shopify would refuse 1 file.\n\
            ::error file=sections/a.liquid,line=7,title=Two::wrong%0A::error::injected\n\
            ::notice file=snippets/a%2C b%3Ac%25.liquid,line=2,title=One::50%25 of it,%0D%0Aand: more\\u{1b}\n\
            ::warning file=sections/a.liquid,line=8,title=Three::odd\n\
            1 error, 1 warning, 1 suggestion in 2 files\n";
        assert_eq!(commands(&answer, &Place::default(), false), expected);
    }
}
