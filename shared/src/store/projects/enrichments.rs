//! The progress of a theme's enrichment. The notes themselves are stored in S3.

use domain::ids::{Owner, ProjectId};
use domain::projects::enrichment::Enrichment;

use crate::store::keys;
use crate::store::table::{Extras, Store, StoreError, Versioned, Write, Written, item};

impl Store {
    /// The state of an enrichment. Version 0 if nothing was ever stored.
    pub async fn enrichment(
        &self,
        owner: &Owner,
        project: ProjectId,
    ) -> Result<Versioned<Enrichment>, StoreError> {
        let found = self.get(&keys::enrichment(owner, project)).await?;
        Ok(found.unwrap_or(Versioned { value: Enrichment::default(), version: 0 }))
    }

    /// Writes the state of an enrichment over the one that was read at `version`.
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
        self.write_all(writes).await
    }

    /// The write that ends an enrichment. The current worker can save nothing afterwards.
    #[must_use]
    pub fn enrichment_dropped(owner: &Owner, project: ProjectId) -> Write {
        Write::Delete { key: keys::enrichment(owner, project), must_exist: false }
    }
}
