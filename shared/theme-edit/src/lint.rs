//! Which problems an edit added.

use serde::{Deserialize, Serialize};
use theme::check::script::ScriptReader;
use theme::check::{CheckedTheme, Finding, Severity};
use theme::text::LineRange;
use utoipa::ToSchema;

use crate::diff::hunks;
use crate::draft::{Draft, FileOutcome, Outcome};
use crate::text::{Text, excerpt, line_range};
use crate::tree::Tree;

/// A problem that an edit added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = EditProblem)]
pub struct Problem {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: u32,
    /// The name of the check.
    pub code: String,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, as a sentence.
    pub message: String,
    /// Whether Shopify refuses the file for it.
    pub refused: bool,
    /// The text of the line.
    pub excerpt: String,
}

/// A changed part of a file that Shopify would refuse, before and after the edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = EditExcerpt)]
pub struct Shown {
    /// The file.
    pub path: String,
    /// The lines before. Without them, `before` is empty.
    pub before_lines: Option<LineRange>,
    /// Their text.
    pub before: String,
    /// The lines after.
    pub after_lines: Option<LineRange>,
    /// Their text.
    pub after: String,
}

/// The problems that an edit added. Problems that the theme had before are not among them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = EditLint)]
pub struct Lint {
    /// By path and line.
    pub problems: Vec<Problem>,
    /// What changed in the files that Shopify would refuse.
    pub shown: Vec<Shown>,
}

impl Lint {
    /// Whether Shopify would refuse a file for one of the problems. Such an edit stays a draft: it must not be pushed.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.problems.iter().any(|problem| problem.refused)
    }
}

/// The most changed parts of a file that are shown, and the most lines of each.
const MOST_SHOWN: (usize, usize) = (5, 20);

/// Checks a theme again after each edit. It reads only the files that changed.
pub struct Linter<'a> {
    theme: CheckedTheme,
    scripts: Option<&'a dyn ScriptReader>,
}

impl<'a> Linter<'a> {
    /// Reads the theme as it is before the first edit. Without `scripts`, JavaScript is not checked.
    #[must_use]
    pub fn new(tree: &Tree, scripts: Option<&'a dyn ScriptReader>) -> Self {
        let mut theme = CheckedTheme::default();
        for (path, file) in &tree.0 {
            match &file.bytes {
                Some(bytes) => theme.add(path, bytes, scripts),
                None => theme.add_unread(path.clone(), 0),
            }
        }
        Self { theme, scripts }
    }

    /// Begins with a theme that was checked before.
    #[must_use]
    pub fn over(theme: CheckedTheme, scripts: Option<&'a dyn ScriptReader>) -> Self {
        Self { theme, scripts }
    }

    /// The theme as it was checked last. Keep a copy of the first one to know what the whole draft added: see [`Linter::since`].
    #[must_use]
    pub fn theme(&self) -> &CheckedTheme {
        &self.theme
    }

    /// Checks the files of an outcome of this draft, and says which problems are new.
    pub fn after(&mut self, draft: &Draft, outcome: &Outcome) -> Lint {
        let before = self.theme.clone();
        for FileOutcome { path, version, after, .. } in &outcome.files {
            match (version, after) {
                (None, _) => self.theme.remove(path),
                (Some(_), Some(bytes)) => self.theme.add(path, bytes, self.scripts),
                (Some(_), None) => self.theme.add_unread(path.clone(), 0),
            }
        }
        let problems = self.since(&before, draft);
        let is_refused =
            |file: &&FileOutcome| problems.iter().any(|problem| problem.refused && problem.path == file.path);
        let shown = outcome.files.iter().filter(is_refused).flat_map(shown).collect();
        Lint { problems, shown }
    }

    /// The problems that the theme has and `base` did not have. A draft is pushed only if none of them is refused.
    #[must_use]
    pub fn since(&self, base: &CheckedTheme, draft: &Draft) -> Vec<Problem> {
        let mut problems = Vec::new();
        let added = self.theme.added_since(base);
        // The findings of a file follow one another, so that its lines are looked for once.
        for of_file in added.chunk_by(|a, b| a.path == b.path) {
            let bytes = of_file.first().and_then(|finding| draft.file(&finding.path)?.bytes.clone());
            let text = bytes.as_deref().map(Text::new);
            problems.extend(of_file.iter().map(|finding| problem(finding.clone(), text.as_ref())));
        }
        problems
    }
}

fn problem(finding: Finding, text: Option<&Text<'_>>) -> Problem {
    let line = (finding.line as usize).saturating_sub(1);
    let excerpt = text
        .filter(|text| line < text.count())
        .map(|text| excerpt(&text.bytes[text.content(line)]))
        .unwrap_or_default();
    Problem {
        path: finding.path,
        line: finding.line,
        code: finding.code.to_owned(),
        severity: finding.severity,
        message: finding.message,
        refused: finding.refused,
        excerpt,
    }
}

fn shown(file: &FileOutcome) -> Vec<Shown> {
    let (old, new) = (file.before.as_deref().unwrap_or_default(), file.after.as_deref().unwrap_or_default());
    let (old, new) = (Text::new(old), Text::new(new));
    let part = |text: &Text, range: &std::ops::Range<usize>| {
        let lines = (!range.is_empty()).then(|| line_range(range.start, range.end));
        let kept = range.clone().take(MOST_SHOWN.1);
        let text: Vec<String> =
            kept.map(|line| String::from_utf8_lossy(&text.bytes[text.content(line)]).into_owned()).collect();
        (lines, text.join("\n"))
    };
    let changed = hunks(&old.lines(), &new.lines());
    let parts = changed.iter().take(MOST_SHOWN.0).map(|hunk| {
        let (before_lines, before) = part(&old, &hunk.old);
        let (after_lines, after) = part(&new, &hunk.new);
        Shown { path: file.path.clone(), before_lines, before, after_lines, after }
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Call, Replacement};

    #[test]
    fn only_new_problems_are_told_and_what_shopify_refuses_is_shown() {
        let tree: Tree =
            [("snippets/boat.liquid", &b"<p>\n{{ product.titel }}\n{% if a %}x{% endif %}\n</p>\n"[..])]
                .into_iter()
                .collect();
        let mut linter = Linter::new(&tree, None);
        let mut draft = Draft::new("run", tree);
        draft.note_seen("snippets/boat.liquid");
        let replace = |old: &str, new: &str| Call::SearchReplace {
            path: "snippets/boat.liquid".to_owned(),
            version: None,
            replacements: vec![Replacement {
                old: old.to_owned(),
                new: new.to_owned(),
                expected_matches: None,
            }],
            allow_shrink: Vec::new(),
        };
        let outcome = draft.apply(&replace("x{% endif %}", "y")).unwrap();
        let lint = linter.after(&draft, &outcome);
        assert!(lint.is_refused(), "{lint:?}");
        assert!(
            lint.problems.iter().all(|problem| !problem.excerpt.contains("titel")),
            "it was there before"
        );
        assert_eq!(
            (&lint.shown[0].before[..], &lint.shown[0].after[..]),
            ("{% if a %}x{% endif %}", "{% if a %}y")
        );
        let outcome = draft.apply(&replace("{% if a %}y", "{% if a %}y{% endif %}")).unwrap();
        assert_eq!(linter.after(&draft, &outcome), Lint::default());
    }
}
