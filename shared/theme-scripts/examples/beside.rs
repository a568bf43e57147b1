//! Prints the planted faults of `tests/corpus` and what our checks find of each, for `beside/theme-check.mjs`, which asks Shopify's theme-check.
//!
//! ```console
//! $ cargo run -p theme-scripts --example beside | node shared/theme-scripts/examples/beside/theme-check.mjs FOLDER
//! ```
//!
//! The first line of the output is the theme without faults: its texts by path. Each other line is an edit of one file, `null` if it is
//! deleted, with the place where a finding must be and our new findings. With `--missed`, it prints only the faults without a finding on their
//! lines, and the harmless edits with one.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::io::{BufWriter, Write};

use serde::Serialize;
use theme::check::{CheckedTheme, Finding, Severity};
use theme_scripts::Oxc;

#[expect(dead_code, reason = "the tests use more of it")]
#[path = "../tests/corpus/mod.rs"]
mod corpus;

use corpus::{Fault, Outcome, Planted};

#[derive(Serialize)]
struct Theme<'a> {
    theme: BTreeMap<&'a str, &'a str>,
}

#[derive(Serialize)]
struct Edit<'a> {
    category: &'a str,
    grade: String,
    is_harmless: bool,
    file: &'a str,
    text: Option<String>,
    /// Where a finding must be.
    path: String,
    line: u32,
    ours: Vec<Ours>,
}

/// A finding of ours that the edit adds.
#[derive(Serialize)]
struct Ours {
    check: &'static str,
    path: String,
    line: u32,
    is_error: bool,
    is_refused: bool,
    message: String,
}

impl Ours {
    fn of(finding: Finding) -> Self {
        let Finding { path, line, code, severity, message, refused } = finding;
        Self { check: code, path, line, is_error: severity == Severity::Error, is_refused: refused, message }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let only_missed = env::args().any(|argument| argument == "--missed");
    let texts = corpus::lantern();
    let pairs = || texts.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    let base = CheckedTheme::read(pairs(), Some(&Oxc));
    let mut output = BufWriter::new(std::io::stdout().lock());
    if !only_missed {
        writeln!(output, "{}", serde_json::to_string(&Theme { theme: pairs().collect() })?)?;
    }
    let all = corpus::all();
    let faults = all.iter().map(|fault| (fault, false));
    let harmless = corpus::harmless::HARMLESS.iter().map(|fault| (fault, true));
    for (fault, is_harmless) in faults.chain(harmless) {
        let Fault { kind, grade, path: file, .. } = *fault;
        let Planted { after, .. } = corpus::edited(&texts, fault);
        let Outcome { is_on_line, expected: (path, line), findings, .. } =
            corpus::plant(&base, &texts, fault);
        // A snippet that was added is not used.
        let is_reported = findings.iter().any(|finding| finding.code != "OrphanedSnippet");
        if only_missed && if is_harmless { !is_reported } else { is_on_line } {
            continue;
        }
        let edit = Edit {
            category: kind,
            grade: format!("{grade:?}"),
            is_harmless,
            file,
            text: after,
            path,
            line,
            ours: findings.into_iter().map(Ours::of).collect(),
        };
        writeln!(output, "{}", serde_json::to_string(&edit)?)?;
    }
    output.flush()?;
    Ok(())
}
