//! Commits are reported, and wait for a synchronisation.

use domain::ids::{Owner, ProjectId};
use domain::living::changelog::Full;
use domain::living::{Commit, CommitId, Staleness};
use domain::validate::FieldErrors;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::existing;
use crate::store::{Once, Store, Tries};

/// How many commits one request may report.
pub const MAX_AT_ONCE: usize = 200;

/// How many commits a report may have that several requests send.
const MAX_REPORT: usize = 5_000;

/// Commits of a project.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[schema(as = NewDocsCommits)]
pub struct NewCommits {
    /// 1 to 200, oldest first.
    #[schema(min_items = 1, max_items = 200)]
    pub commits: Vec<Commit>,
    /// The ids of all commits of the report, if several requests send it: commits of one report never replace each other. At most 5,000.
    #[serde(default)]
    #[schema(max_items = 5_000, value_type = Vec<String>)]
    pub report: Vec<CommitId>,
}

/// What became of commits that were reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = DocsCommitsAdded)]
pub struct CommitsAdded {
    /// How many wait now that were not known.
    pub new: u64,
    /// How many have replaced a waiting commit of an earlier report with the same author, time and message: a rebase has probably made them.
    pub rebased: u64,
    /// How many were known: they wait, or a synchronisation has taken them.
    pub known: u64,
    /// How many commits wait for a synchronisation.
    pub commits_since_sync: u64,
    /// How far the documents are behind: not at all, by one or two commits, or by more.
    pub staleness: Staleness,
}

/// The commits that wait.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = DocsCommits)]
pub struct CommitList {
    /// In the order in which they were reported. At most 1,000.
    pub data: Vec<Commit>,
}

/// Adds commits to the changelog of a project. It may be repeated: a commit waits once, and one that a synchronisation has taken does not
/// come back.
///
/// # Errors
/// 400 with every invalid field; 404 if the project does not exist; 409 if the changelog is full.
pub async fn add(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    project: ProjectId,
    NewCommits { commits, report }: NewCommits,
) -> Result<CommitsAdded> {
    let mut errors = FieldErrors::default();
    if commits.is_empty() || commits.len() > MAX_AT_ONCE {
        errors.add("commits", format!("must be 1 to {MAX_AT_ONCE} commits, are {}", commits.len()));
    } else {
        for (n, commit) in commits.iter().enumerate() {
            errors.nest(&format!("commits[{n}]"), commit.check());
        }
    }
    if report.len() > MAX_REPORT {
        errors.add("report", format!("must have at most {MAX_REPORT} ids, has {}", report.len()));
    }
    errors.into_result(())?;
    existing::project(cx, owner, project).await?;
    let mut tries = Tries::within(std::time::Duration::from_secs(10));
    loop {
        tries.next().await?;
        let before = cx.store.changelog(owner, project).await?;
        let mut changelog = before.value.clone();
        let added = changelog
            .add(commits.clone(), &report)
            .map_err(|full: Full| Error::conflict("changelog_full", full.to_string()))?;
        let waiting = changelog.commits().len();
        let answer = CommitsAdded {
            new: added.new as u64,
            rebased: added.rebased as u64,
            known: added.known as u64,
            commits_since_sync: waiting as u64,
            staleness: Staleness::of(waiting),
        };
        if changelog == before.value {
            return Ok(answer);
        }
        let writes = Store::changelog_writes(owner, project, &changelog, before.version)?;
        if cx.store.commit(once, writes).await?.done() {
            return Ok(answer);
        }
        existing::project(cx, owner, project).await?;
    }
}

/// The commits that wait for a synchronisation.
///
/// # Errors
/// 404 if the project does not exist.
pub async fn list(cx: &Cx, owner: &Owner, project: ProjectId) -> Result<CommitList> {
    existing::project(cx, owner, project).await?;
    let changelog = cx.store.changelog(owner, project).await?;
    Ok(CommitList { data: changelog.value.commits().to_vec() })
}
