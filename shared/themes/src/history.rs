//! What was asked about a theme before, and what was edited for it. Lookups know it.
//!
//! An applied change set has the request that it was made for and the lines that it changed. The last of them are read once for each
//! revision of a theme, and whoever knows more (a coding assistant its own edits, a shop its commits) gives it with the question.

use std::sync::Arc;

use domain::ids::{Owner, ProjectId};
use domain::validate::FieldErrors;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use shared::context::Cx;
use shared::error::Result;
use theme::History;
use theme::history::{Change, EditedFile, MAX_CHANGES, MAX_FILES};
use utoipa::ToSchema;

use crate::cache::{Recent, ThemeVersion};
use crate::changes::{self, ChangeSet, FileChangeKind, Place};

/// The most histories that a process keeps.
const KEPT: usize = 64;

/// How long a history is used before its times are read again, in hours.
const STALE_HOURS: f32 = 1.0;

/// Something that was asked and edited outside the platform.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenChange {
    /// What was asked, in a person's words, or the message of a commit. Of more than 500 characters, the rest is not read.
    #[serde(default)]
    #[schema(max_length = 10_000)]
    pub request: String,
    /// The paths of the edited files. Of a change of more than 60 files, only the request counts.
    #[schema(max_items = 1000)]
    pub files: Vec<String>,
    /// How long ago it was, in hours.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub hours: f32,
}

/// Checks what a caller gives.
pub(crate) fn check(given: &[GivenChange], errors: &mut FieldErrors) {
    if given.len() > MAX_CHANGES {
        errors.add("changes", format!("must have at most {MAX_CHANGES} entries, has {}", given.len()));
    }
    for (at, change) in given.iter().enumerate() {
        if change.files.len() > MAX_GIVEN_FILES {
            let told = format!("must have at most {MAX_GIVEN_FILES} entries, has {}", change.files.len());
            errors.add(format!("changes[{at}].files"), told);
        }
        if !(change.hours.is_finite() && change.hours >= 0.0) {
            errors.add(format!("changes[{at}].hours"), "must be a number of at least 0");
        }
    }
}

/// The most files of a change that a caller gives.
const MAX_GIVEN_FILES: usize = 1_000;

/// A history, and what it was read of.
struct Read {
    version: ThemeVersion,
    at: Timestamp,
    changes: Vec<Change>,
    history: Arc<History>,
}

/// The histories that this process has read.
type Histories = Recent<(Owner, ProjectId), Arc<Read>, KEPT>;

/// The last changes of a theme: those of its change sets, and those that the caller gives.
///
/// # Errors
/// If the table does not answer.
pub(crate) async fn recalled(cx: &Cx, version: &ThemeVersion, given: &[GivenChange]) -> Result<Arc<History>> {
    let own = own(cx, version).await?;
    if given.is_empty() {
        return Ok(own.history.clone());
    }
    let files = |paths: &[String]| {
        // One file more than a change may have makes it too large, which the history knows.
        let kept = paths.iter().take(MAX_FILES + 1);
        kept.map(|path| EditedFile { path: path.clone(), lines: Vec::new() }).collect()
    };
    let given = given.iter().map(|change| Change {
        request: change.request.clone(),
        files: files(&change.files),
        hours: change.hours,
    });
    let mut all: Vec<Change> = given.chain(own.changes.iter().cloned()).collect();
    all.sort_by(|a, b| a.hours.total_cmp(&b.hours));
    Ok(Arc::new(History::new(all)))
}

async fn own(cx: &Cx, version: &ThemeVersion) -> Result<Arc<Read>> {
    let histories: Arc<Histories> = cx.kept.get();
    let now = cx.clock.now();
    let theme = (version.owner.clone(), version.project);
    let known = histories.get(&theme).filter(|read| read.version == *version);
    if let Some(read) = known.filter(|read| hours(now, read.at) < STALE_HOURS) {
        return Ok(read);
    }
    let place = Place { cx, owner: &version.owner, project: version.project };
    let mut changes: Vec<(Timestamp, Change)> =
        changes::applied(place).await?.into_iter().filter_map(|set| change_of(set, now)).collect();
    changes.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let changes: Vec<Change> = changes.into_iter().map(|(_, change)| change).collect();
    let history = Arc::new(History::new(changes.iter().cloned()));
    let read = Arc::new(Read { version: version.clone(), at: now, changes, history });
    histories.put(theme, read.clone());
    Ok(read)
}

fn hours(now: Timestamp, then: Timestamp) -> f32 {
    (now.duration_since(then).as_secs().max(0) as f32) / 3_600.0
}

/// What a change set says, with the time when it was applied.
fn change_of(set: ChangeSet, now: Timestamp) -> Option<(Timestamp, Change)> {
    let at = set.applied_at?;
    let files = set.files.into_iter().filter(|file| file.change != FileChangeKind::Deleted);
    let files = files.map(|file| {
        let lines = file.lines.iter().map(|&[start, end]| theme::text::LineRange { start, end }).collect();
        EditedFile { path: file.path, lines }
    });
    let request = set.request.unwrap_or(set.title);
    Some((at, Change { request, files: files.collect(), hours: hours(now, at) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_caller_gives_has_limits() {
        let change = |files: usize, hours: f32| GivenChange {
            request: "a".to_owned(),
            files: vec!["snippets/a.liquid".to_owned(); files],
            hours,
        };
        let told = |given: &[GivenChange]| {
            let mut errors = FieldErrors::default();
            check(given, &mut errors);
            errors.into_result(()).err().map(|errors| errors.to_string()).unwrap_or_default()
        };
        assert_eq!(told(&vec![change(1_000, 0.0); 100]), "");
        assert_eq!(told(&vec![change(1, 0.0); 101]), "changes: must have at most 100 entries, has 101");
        assert_eq!(told(&[change(1_001, 0.0)]), "changes[0].files: must have at most 1000 entries, has 1001");
        for hours in [-1.0, f32::NAN, f32::INFINITY] {
            assert_eq!(told(&[change(1, hours)]), "changes[0].hours: must be a number of at least 0");
        }
    }
}
