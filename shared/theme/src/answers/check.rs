//! What is wrong with a theme.

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
    /// By path and line. If there are more than 1,000, these are the worst.
    pub findings: Vec<Finding>,
    /// The number of errors, also of those that are not listed. Of each file and severity, 500 findings are counted.
    pub errors: usize,
    /// The number of warnings, also of those that are not listed.
    pub warnings: usize,
    /// The number of suggestions, also of those that are not listed.
    pub infos: usize,
    /// Whether there are findings that are not listed.
    pub has_more: bool,
    /// How many files the theme has, after the change.
    pub files: usize,
}

impl CheckAnswer {
    /// The findings, as far as an answer can have them, of a theme.
    pub fn of(mut findings: Vec<Finding>, theme: &CheckedTheme) -> Self {
        let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
        let [errors, warnings, infos] = [Severity::Error, Severity::Warning, Severity::Info].map(count);
        let is_long = findings.len() > MAX_FINDINGS;
        if is_long {
            // The sort is stable, so the first ones of each severity stay.
            findings.sort_by_key(|finding| finding.severity);
            findings.truncate(MAX_FINDINGS);
            findings.sort();
        }
        let has_more = is_long || theme.is_cut();
        Self { findings, errors, warnings, infos, has_more, files: theme.len() }
    }
}
