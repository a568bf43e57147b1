//! Planted faults are found, on their lines; harmless edits are not reported.

mod corpus;
mod edits;

use std::collections::BTreeSet;

use corpus::reference::{ROWS, Row};
use corpus::{Fault, Grade, Outcome, all, plant};
use theme::check::{CheckedTheme, Severity};
use theme_scripts::Oxc;

#[test]
fn the_theme_without_faults_is_clean() {
    let theme = CheckedTheme::read(corpus::lantern(), Some(&Oxc));
    assert_eq!(theme.findings(), []);
}

#[test]
fn every_planted_fault_is_found() {
    let texts = corpus::lantern();
    let base =
        CheckedTheme::read(texts.iter().map(|(path, text)| (path.as_str(), text.as_str())), Some(&Oxc));
    let (mut missed, mut astray, mut mild, mut wrong, mut count) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), 0);
    for fault in all() {
        count += 1;
        let Outcome { is_caught, is_on_line, expected, findings } = plant(&base, &texts, &fault);
        let shown = || {
            format!(
                "{}: {}:{} {:?} → {:?}\n    {findings:?}",
                fault.kind, expected.0, expected.1, fault.old, fault.new
            )
        };
        let has_error = findings.iter().any(|finding| finding.severity == Severity::Error);
        if matches!(fault.grade, Grade::Refused | Grade::Broken) && is_caught && !has_error {
            mild.push(shown());
        }
        let is_refused = findings.iter().any(|finding| finding.refused);
        if is_refused != (fault.grade == Grade::Refused) {
            wrong.push(format!("{:?}, and refused is {is_refused}: {}", fault.grade, shown()));
        }
        if !is_caught {
            missed.push(shown());
        } else if !is_on_line {
            astray.push(shown());
        }
    }
    assert!(count >= 250, "only {count} faults");
    assert!(missed.is_empty(), "{} of {count} are missed:\n{}", missed.len(), missed.join("\n"));
    assert!(astray.is_empty(), "{} of {count} are on a wrong line:\n{}", astray.len(), astray.join("\n"));
    assert!(wrong.is_empty(), "{} of {count} have another grade:\n{}", wrong.len(), wrong.join("\n"));
    assert!(mild.is_empty(), "{} of {count} are no errors:\n{}", mild.len(), mild.join("\n"));
}

#[test]
fn harmless_edits_are_not_reported() {
    let texts = corpus::lantern();
    let base =
        CheckedTheme::read(texts.iter().map(|(path, text)| (path.as_str(), text.as_str())), Some(&Oxc));
    let mut wrong = Vec::new();
    for fault in corpus::harmless::HARMLESS {
        let mut findings = plant(&base, &texts, fault).findings;
        // A new snippet is not used yet, and a section that replaces no class loses none.
        findings.retain(|finding| finding.code != "OrphanedSnippet");
        if !findings.is_empty() {
            wrong.push(format!("{} {:?}: {findings:?}", fault.path, fault.new));
        }
    }
    assert!(corpus::harmless::HARMLESS.len() >= 40);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The codes of all findings.
fn codes() -> BTreeSet<&'static str> {
    let texts = corpus::lantern();
    let base =
        CheckedTheme::read(texts.iter().map(|(path, text)| (path.as_str(), text.as_str())), Some(&Oxc));
    let findings = |fault: &Fault| plant(&base, &texts, fault).findings;
    all().iter().flat_map(|fault| findings(fault).into_iter().map(|finding| finding.code)).collect()
}

/// Every code that the checks report has its line in the manual.
#[test]
fn every_code_is_in_the_manual() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let manual = std::fs::read_to_string(root.join("../../docs/themes.md")).expect("the manual is there");
    let codes = codes();
    let missing: Vec<&str> =
        codes.iter().copied().filter(|code| !manual.contains(&format!("`{code}`"))).collect();
    assert!(codes.len() > 50, "{codes:?}");
    assert!(missing.is_empty(), "{missing:?}");
}

/// Each check of Shopify's has a check of ours that finds a planted fault, or a reason.
#[test]
fn every_check_of_shopify_is_ours_or_has_a_reason() {
    let codes = codes();
    let names: BTreeSet<&str> = ROWS.iter().map(|(name, _)| *name).collect();
    // `allChecks` of version 3.29.1 has 90 entries. `MaxFileSize` and `ValidVisibleIf` are there twice.
    assert_eq!((ROWS.len(), names.len()), (88, 88));
    let mut unknown: BTreeSet<&str> = BTreeSet::new();
    for (name, row) in ROWS {
        match row {
            Row::Ours(ours) => {
                assert!(!ours.is_empty(), "{name}");
                unknown.extend(ours.iter().copied().filter(|code| !codes.contains(code)));
            }
            Row::None(reason) => {
                assert!(reason.contains(' '), "{name}");
                assert!(!codes.contains(name), "{name} is one of our checks");
            }
        }
    }
    assert!(unknown.is_empty(), "no planted fault has {unknown:?}");
}
