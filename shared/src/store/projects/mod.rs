//! Projects. The data of a project is in its partition (`keys::project_children`) or in separate partitions.
//!
//! Beside them, their context documents, living documents and themes.

pub mod documents;
mod enrichments;
pub mod living;
pub(super) mod themes;

use domain::ids::{Owner, ProjectId};
use domain::projects::Project;

use super::idempotency::Once;
use super::keys::{self, Key};
use super::table::{Extras, Order, QueryPage, Store, StoreError, Versioned, Write, Written, item};

impl Store {
    pub async fn create_project(
        &self,
        owner: &Owner,
        once: &Once,
        project: &Project,
    ) -> Result<Written, StoreError> {
        let key = keys::project(owner, project.project_id);
        self.commit(once, vec![Write::Create { key, item: item(project, &Extras::default())? }]).await
    }

    pub async fn project(
        &self,
        owner: &Owner,
        id: ProjectId,
    ) -> Result<Option<Versioned<Project>>, StoreError> {
        self.get(&keys::project(owner, id)).await
    }

    /// Writes an edited project together with other writes. Version 0 means that the project was never stored.
    pub async fn replace_project(
        &self,
        owner: &Owner,
        project: &Project,
        version: u64,
        with: Option<Write>,
    ) -> Result<Written, StoreError> {
        let (key, item) = (keys::project(owner, project.project_id), item(project, &Extras::default())?);
        self.write_all(std::iter::once(Write::over(key, version, item)).chain(with).collect()).await
    }

    pub async fn projects(
        &self,
        owner: &Owner,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<Project>, StoreError> {
        self.query(&keys::projects(owner), after, limit, Order::Newest).await
    }

    /// The write that refuses a transaction if the project does not exist. `None` for the default project, which always
    /// exists.
    #[must_use]
    pub fn project_exists(owner: &Owner, id: ProjectId) -> Option<Write> {
        (id != ProjectId::DEFAULT).then(|| Write::Exists { key: keys::project(owner, id) })
    }

    /// The sort keys of the items in a project's partition.
    pub async fn project_children(
        &self,
        owner: &Owner,
        project: ProjectId,
        prefix: &'static str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<serde::de::IgnoredAny>, StoreError> {
        self.query(&keys::project_children(owner, project, prefix), after, limit, Order::Oldest).await
    }

    /// Deletes all items in a project's partition.
    pub async fn delete_project_children(&self, owner: &Owner, project: ProjectId) -> Result<(), StoreError> {
        self.delete_range(&keys::project_children(owner, project, "")).await
    }

    pub async fn delete_project(&self, owner: &Owner, id: ProjectId) -> Result<(), StoreError> {
        let key: Key = keys::project(owner, id);
        self.delete(&key).await
    }
}
