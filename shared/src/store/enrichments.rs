//! How far a model has described a theme's files. The notes themselves lie in S3.

use domain::ids::{Owner, ProjectId};
use domain::projects::enrichment::Enrichment;

use super::keys;
use super::table::{Extras, Store, StoreError, Versioned, Write, Written, item};

impl Store {
    /// Where an enrichment stands; version 0 where nothing was ever stored.
    pub async fn enrichment(
        &self,
        owner: &Owner,
        project: ProjectId,
    ) -> Result<Versioned<Enrichment>, StoreError> {
        let found = self.get(&keys::enrichment(owner, project)).await?;
        Ok(found.unwrap_or(Versioned { value: Enrichment::default(), version: 0 }))
    }

    /// Writes where an enrichment stands, over what was read at `version`.
    pub async fn replace_enrichment(
        &self,
        owner: &Owner,
        project: ProjectId,
        enrichment: &Enrichment,
        version: u64,
    ) -> Result<Written, StoreError> {
        let (key, item) = (keys::enrichment(owner, project), item(enrichment, &Extras::default())?);
        let mut writes = vec![Write::over(key, version, item)];
        writes.extend(Self::project_exists(owner, project));
        self.transact(writes).await
    }

    /// The write that ends an enrichment: who is at it can save nothing any more.
    #[must_use]
    pub fn enrichment_dropped(owner: &Owner, project: ProjectId) -> Write {
        Write::Delete { key: keys::enrichment(owner, project), must_exist: false }
    }
}
