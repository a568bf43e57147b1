//! What edits make wrong.

use shared::error::Result;
use shared::process::compute::Stop;
use theme::check::CheckedTheme;
use theme_edit::{Draft, Lint, Linter, Outcome, Problem};
use theme_scripts::Oxc;

use super::Place;
use super::draft::Texts;
use crate::check::{Stoppable, checked};

/// What an edit of a draft has made wrong, the worst first. `before` are the draft's texts before it.
///
/// # Errors
/// As [`checked`].
pub async fn added(place: Place<'_>, before: Texts, draft: Draft, outcome: Outcome) -> Result<Lint> {
    let base = checked(place.cx, place.owner, place.project).await?;
    let lint = move |stop: &Stop| {
        let scripts = Stoppable { scripts: &Oxc, stop };
        let mut linter = Linter::over(with(&base, &before, &scripts), Some(&scripts));
        let mut lint = linter.after(&draft, &outcome);
        worst_first(&mut lint.problems);
        stop.check().map(|()| lint)
    };
    place.cx.compute.checks.run(lint).await
}

/// What all edits of a draft would make wrong, or with `whole`, everything that is wrong in the theme with them. The worst comes first.
///
/// # Errors
/// As [`checked`].
pub async fn of_draft(place: Place<'_>, draft: Draft, texts: Texts, whole: bool) -> Result<Vec<Problem>> {
    let base = checked(place.cx, place.owner, place.project).await?;
    let lint = move |stop: &Stop| {
        let scripts = Stoppable { scripts: &Oxc, stop };
        let linter = Linter::over(with(&base, &texts, &scripts), Some(&scripts));
        let nothing = CheckedTheme::default();
        let mut problems = linter.since(if whole { &nothing } else { &base }, &draft);
        worst_first(&mut problems);
        stop.check().map(|()| problems)
    };
    place.cx.compute.checks.run(lint).await
}

/// What Shopify would refuse comes first, then errors, warnings and hints.
fn worst_first(problems: &mut [Problem]) {
    problems.sort_by_key(|problem| (!problem.refused, problem.severity));
}

/// The theme with these texts.
fn with(theme: &CheckedTheme, texts: &Texts, scripts: &Stoppable<'_>) -> CheckedTheme {
    let deleted: Vec<String> =
        texts.iter().filter(|(_, text)| text.is_none()).map(|(path, _)| path.clone()).collect();
    let changed = texts.iter().filter_map(|(path, text)| Some((path, text.as_ref()?)));
    theme.changed(changed, &deleted, Some(scripts))
}
