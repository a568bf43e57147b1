//! The findings as a log of SARIF 2.1.0, the format of results of static analysis that code hosts and editors read.

use serde_json::{Value, json};

use super::super::super::values::Fields;
use super::parted;
use super::place::Place;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// A log with one run.
#[must_use]
pub fn log(answer: &Value, place: &Place) -> Value {
    let (refused, others) = parted(answer);
    let mut codes: Vec<&str> = Vec::new();
    let mut results = Vec::new();
    for finding in refused.into_iter().chain(others) {
        let code = finding.text("code");
        let rule = codes.iter().position(|known| *known == code).unwrap_or_else(|| {
            codes.push(code);
            codes.len() - 1
        });
        results.push(json!({
            "ruleId": code,
            "ruleIndex": rule,
            "level": match finding.text("severity") {
                "error" => "error",
                "warning" => "warning",
                _ => "note",
            },
            "message": { "text": finding.text("message") },
            "locations": [{
                "physicalLocation": {
                    "artifactLocation": { "uri": uri(&place.of(finding.text("path"))) },
                    "region": { "startLine": finding.number("line").unwrap_or(1).max(1) }
                }
            }],
            "properties": { "refused": finding.is("refused") }
        }));
    }
    let counts =
        ["refused", "errors", "warnings", "infos", "files", "has_more"].map(|name| (name, &answer[name]));
    let counts: Value = counts
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {
                "driver": {
                    "name": "lamplighter",
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": codes.into_iter().map(rule).collect::<Vec<_>>()
                }
            },
            "results": results,
            "properties": counts
        }]
    })
}

/// A check. GitHub wants the descriptions.
fn rule(code: &str) -> Value {
    let words = words(code);
    json!({
        "id": code,
        "shortDescription": { "text": words },
        "fullDescription": { "text": words },
        "help": { "text": "The message of each finding says what is wrong there. The table of the checks in docs/themes.md says what each check is about." }
    })
}

/// The name of a check in words: `UnknownFilter` is `Unknown filter`.
fn words(code: &str) -> String {
    let mut words = String::new();
    let mut before: Option<char> = None;
    let mut rest = code.chars().peekable();
    while let Some(c) = rest.next() {
        let begins = c.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase() || rest.peek().is_some_and(char::is_ascii_lowercase)
            });
        let is_word = rest.peek().is_some_and(char::is_ascii_lowercase);
        if begins {
            words.push(' ');
        }
        words.push(if begins && is_word { c.to_ascii_lowercase() } else { c });
        before = Some(c);
    }
    words
}

/// A path as a reference of a URI. An absolute path is the address of a file.
fn uri(path: &str) -> String {
    let mut text = String::from(if path.starts_with('/') { "file://" } else { "" });
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z'
            | b'a'..=b'z'
            | b'0'..=b'9'
            | b'-'
            | b'.'
            | b'_'
            | b'~'
            | b'/'
            | b'@'
            | b'+'
            | b','
            | b'=' => {
                text.push(char::from(byte));
            }
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_a_rule_for_each_check_and_a_place_for_each_finding() {
        let finding = |path: &str, line: u32, severity: &str, code: &str, refused: bool| json!({"path": path, "line": line, "severity": severity, "code": code, "message": "it is wrong", "refused": refused});
        let findings = [
            finding("snippets/a b.liquid", 1, "info", "UnusedAssign", false),
            finding("sections/a.liquid", 0, "error", "ValidJSON", true),
            finding("sections/ü.liquid", 9, "warning", "UnusedAssign", false),
        ];
        let log = log(&json!({"findings": findings, "refused": 1, "files": 3}), &Place::default());
        let run = &log["runs"][0];
        let rules: Vec<&str> =
            run["tool"]["driver"].items("rules").iter().map(|rule| rule.text("id")).collect();
        assert_eq!(rules, ["ValidJSON", "UnusedAssign"]);
        let shown = run.items("results").iter().map(|result| {
            let place = &result["locations"][0]["physicalLocation"];
            (
                result.number("ruleIndex"),
                result.text("level"),
                place["artifactLocation"].text("uri"),
                place["region"].number("startLine"),
            )
        });
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [
                (Some(0), "error", "sections/a.liquid", Some(1)),
                (Some(1), "note", "snippets/a%20b.liquid", Some(1)),
                (Some(1), "warning", "sections/%C3%BC.liquid", Some(9)),
            ]
        );
        assert_eq!(run["properties"], json!({"refused": 1, "files": 3}));
        assert_eq!(run["results"][0]["properties"]["refused"], true);
        assert_eq!((log.text("version"), log.text("$schema")), ("2.1.0", SCHEMA));
    }

    #[test]
    fn names_of_checks_become_words() {
        for (code, expected) in [
            ("UnknownFilter", "Unknown filter"),
            ("ValidJSON", "Valid JSON"),
            ("LiquidHTMLSyntaxError", "Liquid HTML syntax error"),
            ("JSONMissingBlock", "JSON missing block"),
            ("", ""),
        ] {
            assert_eq!(words(code), expected);
        }
    }

    #[test]
    fn an_absolute_path_is_the_address_of_a_file() {
        assert_eq!(uri("/tmp/a:b/c#d.liquid"), "file:///tmp/a%3Ab/c%23d.liquid");
        assert_eq!(uri("../theme/a?.liquid"), "../theme/a%3F.liquid");
    }
}
