//! What is wrong with a theme.

use rustc_hash::FxHashSet;
use serde::Serialize;
use utoipa::ToSchema;

use super::super::check::{CheckedTheme, Finding, Severity};

/// The most findings in one answer.
pub const MAX_FINDINGS: usize = 1_000;

/// The most files, and the most deleted paths, of a change.
pub const MAX_CHANGED: usize = 200;

/// The most bytes of files that one check reads. Pictures and fonts are not read.
pub const MAX_READ: u64 = 32 * 1024 * 1024;

/// What is wrong.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CheckAnswer {
    /// By path and line. If there are more than `limit`, the first answer has the worst: first those for which Shopify refuses a file.
    pub findings: Vec<Finding>,
    /// Send it as `cursor` to get the findings that follow. It is absent in the last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// How many files Shopify would refuse, also those whose findings are not listed.
    pub refused: usize,
    /// The number of errors, also of those that are not listed. Of each file and severity, 500 findings are counted.
    pub errors: usize,
    /// The number of warnings, also of those that are not listed.
    pub warnings: usize,
    /// The number of suggestions, also of those that are not listed.
    pub infos: usize,
    /// Whether there are findings that are neither in this answer nor in one before it.
    pub has_more: bool,
    /// How many files the theme has, after the change.
    pub files: usize,
}

impl CheckAnswer {
    /// The findings, as far as an answer can have them, of a theme.
    #[must_use]
    pub fn of(findings: Vec<Finding>, theme: &CheckedTheme) -> Self {
        Self::up_to(findings, theme, MAX_FINDINGS)
    }

    /// The worst findings of a theme, at most so many.
    #[must_use]
    pub fn up_to(findings: Vec<Finding>, theme: &CheckedTheme, most: usize) -> Self {
        Self::part(findings, theme, 0, most)
    }

    /// The findings of a theme after the `skipped` worst, at most so many.
    #[must_use]
    pub fn part(mut findings: Vec<Finding>, theme: &CheckedTheme, skipped: usize, most: usize) -> Self {
        let refused: FxHashSet<&str> =
            findings.iter().filter(|finding| finding.refused).map(|finding| finding.path.as_str()).collect();
        let refused = refused.len();
        let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
        let [errors, warnings, infos] = [Severity::Error, Severity::Warning, Severity::Info].map(count);
        let is_long = findings.len() > skipped.saturating_add(most);
        if is_long || skipped > 0 {
            // The sort is stable, so the first ones of each severity stay.
            findings.sort_by_key(|finding| (!finding.refused, finding.severity));
            findings = findings.into_iter().skip(skipped).take(most).collect();
            findings.sort();
        }
        let has_more = is_long || theme.is_cut();
        Self { findings, next_cursor: None, refused, errors, warnings, infos, has_more, files: theme.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_files_are_counted_and_their_findings_come_before_other_errors() {
        let files = [
            ("sections/a.liquid", "<div>{{ 1 | nothing }}"),
            ("sections/b.liquid", "{% if %}{% endif %}{% if %}{% endif %}{% assign x = 1 %}"),
            ("sections/c.liquid", "{% schema %}{{% endschema %}"),
        ];
        let theme = CheckedTheme::read(files, None);
        let all = theme.findings();
        let total = all.len();
        let answer = CheckAnswer::up_to(all.clone(), &theme, total);
        assert_eq!((answer.refused, answer.findings.len(), answer.has_more), (2, total, false));
        let reasons = all.iter().filter(|finding| finding.refused).count();
        let answer = CheckAnswer::up_to(all.clone(), &theme, reasons);
        assert_eq!((answer.refused, answer.has_more), (2, true));
        assert!(answer.findings.iter().all(|finding| finding.refused) && answer.findings.is_sorted());
        assert_eq!(answer.errors + answer.warnings + answer.infos, total);
        // The parts together are the whole, each finding once.
        for most in 1..=total {
            let mut parts = Vec::new();
            while parts.len() < total {
                let part = CheckAnswer::part(all.clone(), &theme, parts.len(), most);
                assert_eq!(part.has_more, parts.len() + most < total);
                parts.extend(part.findings);
            }
            parts.sort();
            assert_eq!(parts, all);
        }
    }
}
