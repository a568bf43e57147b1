//! Projects: created, read, changed, deleted with everything that belongs to them.
//!
//! Every owner always has the project `default`. It is stored when it is first changed; until then it has version 0. After a
//! deletion it is empty again.

use domain::ids::{Owner, ProjectId};
use domain::projects::{NewProject, Project, ProjectPatch};
use futures::FutureExt;
use serde::Serialize;
use utoipa::ToSchema;

use shared::blobs::BlobKey;
use shared::context::Cx;
use shared::error::{Error, QuotaExceeded, Result};
use shared::flows::page::{self, Page, PageQuery};
use shared::flows::projects::indexing;
use shared::flows::{chats, edit, existing, logs};
use shared::money::plans;
use shared::request::caller::IfMatch;
use shared::store::accounts::quota::Created;
use shared::store::table::QueryPage;
use shared::store::{Once, Store, StoreError, Tries, Versioned, keys};

/// A project as clients see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ProjectView {
    #[serde(flatten)]
    pub project: Project,
    /// Send it in `If-Match`.
    pub version: u64,
}

impl From<Versioned<Project>> for ProjectView {
    fn from(Versioned { value, version }: Versioned<Project>) -> Self {
        Self { project: value, version }
    }
}

/// # Errors
/// 400 with every invalid field and its limit; 402 if the plan includes no more projects.
pub async fn create(cx: &Cx, owner: &Owner, once: &Once, input: NewProject) -> Result<ProjectView> {
    let project = input.into_project(ProjectId::from_uuid(cx.clock.uuid()), cx.clock.now())?;
    let plan = plans::plan_of(cx, owner).await?;
    if let Some(projects) = plan.terms().projects {
        let mut tries = Tries::default();
        loop {
            tries.next().await?;
            match cx.store.create_project_within(owner, once, &project, projects).await? {
                Created::Yes => return Ok(ProjectView { project, version: 1 }),
                Created::TooMany => {
                    return Err(Error::QuotaExceeded(QuotaExceeded::Projects { plan, projects }));
                }
                Created::Raced => {}
            }
        }
    }
    if !cx.store.create_project(owner, once, &project).await?.done() {
        return Err(Error::internal("a new id was taken"));
    }
    Ok(ProjectView { project, version: 1 })
}

/// # Errors
/// 400 if `limit` or `cursor` is invalid.
pub async fn list(cx: &Cx, owner: &Owner, query: &PageQuery) -> Result<Page<ProjectView>> {
    let newest = |after: Option<String>, limit| page_with_default(cx, owner, after, limit).boxed();
    Ok(page::filtered(owner, "projects", query, newest, |_| true).await?.map(ProjectView::from))
}

/// A page of the stored projects, newest first. The default project comes last even if it is not stored, because its id
/// sorts first.
async fn page_with_default(
    cx: &Cx,
    owner: &Owner,
    after: Option<String>,
    limit: usize,
) -> Result<QueryPage<Project>, StoreError> {
    let mut found = cx.store.projects(owner, after.as_deref(), limit).await?;
    let id = ProjectId::DEFAULT.to_string();
    let is_there = after.as_ref() == Some(&id) || found.items.last().is_some_and(|(key, _)| *key == id);
    if found.last.is_none() && !is_there {
        found.items.push((id, existing::default_project()));
    }
    Ok(found)
}

/// # Errors
/// 404; 400 with every invalid field; 409 if `If-Match` is not the current version.
pub async fn change(
    cx: &Cx,
    owner: &Owner,
    id: ProjectId,
    if_match: Option<IfMatch>,
    patch: ProjectPatch,
) -> Result<ProjectView> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let current = existing::project(cx, owner, id).await?;
        edit::check(if_match, current.version, &current.value)?;
        let project = current.value.patched(patch.clone(), cx.clock.now())?;
        let dropped = (patch.enrichment == Some(false)).then(|| Store::enrichment_dropped(owner, id));
        if cx.store.replace_project(owner, &project, current.version, dropped).await?.done() {
            match patch.enrichment {
                Some(true) => indexing::enrichment_asked(cx, owner, id).await?,
                Some(false) => cx.blobs.delete_prefix(&BlobKey::all_theme_notes(owner, id)).await?,
                None => {}
            }
            return Ok(ProjectView { project, version: current.version + 1 });
        }
    }
}

/// Deletes a project and everything that belongs to it. The project's own record is deleted first, so that nothing is added any
/// more. If a call was interrupted, the next one continues; it answers 404 only if nothing is left.
///
/// # Errors
/// 404 if it does not exist.
pub async fn delete(cx: &Cx, owner: &Owner, id: ProjectId) -> Result<()> {
    logs::delete::of_project(cx, owner, id).await?;
    let was_there = cx.store.project(owner, id).await?.is_some() || id == ProjectId::DEFAULT;
    let left = !cx.store.project_children(owner, id, "", None, 1).await?.items.is_empty();
    if !was_there && !left {
        return Err(Error::NotFound("project"));
    }
    cx.store.delete_project(owner, id).await?;
    delete_children(cx, owner, id).await
}

/// Deletes what belongs to a project. First comes everything that has partitions of its own, then the project's own
/// partition, and then all files below the project's prefix. The project's own partition comes late, because it shows
/// that an interrupted deletion has left something.
async fn delete_children(cx: &Cx, owner: &Owner, id: ProjectId) -> Result<()> {
    logs::delete::of_project(cx, owner, id).await?;
    chats::erase_of_project(cx, owner, id).await?;
    cx.store.delete_document_versions(owner, id).await?;
    cx.store.delete(&keys::docs_hook(owner, id)).await?;
    cx.store.delete_living_versions(owner, id).await?;
    // This is deleted before the bodies: from here on nobody saves notes.
    cx.store.delete(&keys::enrichment(owner, id)).await?;
    crate::delete_files(cx, owner, id).await?;
    cx.blobs.delete_prefix(&BlobKey::project_prefix(owner, id)).await?;
    cx.store.delete_project_children(owner, id).await?;
    if id == ProjectId::DEFAULT {
        crate::start_new_generation(cx, owner, id).await?;
    }
    Ok(())
}
