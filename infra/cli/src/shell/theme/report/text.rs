//! The findings as lines for people.

use std::fmt::Write;

use serde_json::Value;

use super::super::super::screen::{Look, Screen, line};
use super::super::super::values::Fields;
use super::{parted, totals, verdict};

/// Whether Shopify takes the theme, then one line for each finding, and how many there are.
#[must_use]
pub fn lines(screen: Screen, answer: &Value, is_change: bool) -> String {
    let mut text = String::new();
    if let Some(verdict) = verdict(answer, is_change) {
        let look = if answer.number("refused") == Some(0) { Look::Good } else { Look::Bad };
        let _ = writeln!(text, "{}", screen.painted(&verdict, look));
    }
    let (refused, others) = parted(answer);
    if !refused.is_empty() {
        text.push('\n');
        refused.iter().for_each(|finding| write_line(&mut text, screen, finding));
    }
    if !others.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        if !refused.is_empty() {
            text.push_str("Shopify does not refuse a file for these:\n");
        }
        others.iter().for_each(|finding| write_line(&mut text, screen, finding));
    }
    if !refused.is_empty() || !others.is_empty() {
        text.push('\n');
    }
    let _ = writeln!(text, "{}", totals(answer));
    text
}

fn write_line(text: &mut String, screen: Screen, finding: &Value) {
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
        screen.painted(&line(severity), look),
        line(finding.text("message")),
        line(finding.text("code"))
    );
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_refused_comes_first() {
        let finding = |path: &str, severity: &str, refused: bool| json!({"path": path, "line": 3, "severity": severity, "message": "it is wrong", "code": "Check", "refused": refused});
        let shown = |findings: &[Value], refused: u32| {
            let answer = json!({"findings": findings, "refused": refused, "errors": 1, "warnings": 0, "infos": 2, "files": 1});
            lines(Screen::plain(None), &answer, false)
        };
        let (a, b) = (finding("a.liquid", "warning", false), finding("b.liquid", "error", true));
        assert_eq!(
            shown(&[a.clone(), b.clone()], 1),
            "Shopify would refuse 1 file.\n\nb.liquid:3: error: it is wrong (Check)\n\n\
             Shopify does not refuse a file for these:\na.liquid:3: warning: it is wrong (Check)\n\n\
             1 error, 0 warnings, 2 suggestions in 1 file\n"
        );
        assert_eq!(
            shown(&[a], 0),
            "Shopify would take every file.\n\na.liquid:3: warning: it is wrong (Check)\n\n1 error, 0 warnings, 2 suggestions in 1 file\n"
        );
        assert_eq!(
            shown(&[], 0),
            "Shopify would take every file.\n1 error, 0 warnings, 2 suggestions in 1 file\n"
        );
    }
}
