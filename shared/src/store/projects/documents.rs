//! Context documents. The current document is in its project's partition. Its versions are in a separate partition,
//! with two items each: the data for lists, and the text. A document has at most 256 KiB, so it fits into one item.

use domain::context::{Cause, Document, VERSION_DAYS, Workflow, markdown};
use domain::ids::{Owner, ProjectId};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::store::keys;
use crate::store::table::{Extras, Order, QueryPage, Store, StoreError, Versioned, Write, item};

/// A stored document with its workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredDocument {
    pub workflow: Workflow,
    pub document: Document,
}

/// A version without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DocumentVersion {
    #[schema(example = 3)]
    pub version: u64,
    pub cause: Cause,
    pub written_at: Timestamp,
    /// Size of its Markdown, in bytes.
    pub bytes: u64,
    /// It may be deleted after this time.
    pub expires_at: Timestamp,
}

impl Store {
    pub async fn document(
        &self,
        owner: &Owner,
        project: ProjectId,
        workflow: &Workflow,
    ) -> Result<Option<Versioned<StoredDocument>>, StoreError> {
        self.get(&keys::document(owner, project, workflow)).await
    }

    /// The documents of a project, sorted by workflow name.
    pub async fn documents(
        &self,
        owner: &Owner,
        project: ProjectId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<StoredDocument>, StoreError> {
        self.query(&keys::documents(owner, project), after, limit, Order::Oldest).await
    }

    /// The writes of a document over the one that was read at `version` (0: it did not exist). They also store it as a
    /// version. Refused if another writer was faster, or if the project does not exist any more.
    pub fn document_writes(
        owner: &Owner,
        project: ProjectId,
        kept: &StoredDocument,
        version: u64,
        cause: Cause,
        now: Timestamp,
    ) -> Result<Vec<Write>, StoreError> {
        let key = keys::document(owner, project, &kept.workflow);
        let newest = item(kept, &Extras::default())?;
        let expires_at = now + SignedDuration::from_hours(24 * VERSION_DAYS);
        let extras = Extras::expiring(expires_at);
        let bytes = markdown::export(&kept.document).len() as u64;
        let about = DocumentVersion { version: version + 1, cause, written_at: now, bytes, expires_at };
        let mut writes = vec![
            Write::over(key, version, newest),
            Write::Put {
                key: keys::document_version(owner, project, &kept.workflow, version + 1),
                item: item(&about, &extras)?,
            },
            Write::Put {
                key: keys::document_text(owner, project, &kept.workflow, version + 1),
                item: item(kept, &extras)?,
            },
        ];
        writes.extend(Self::project_exists(owner, project));
        Ok(writes)
    }

    pub async fn document_versions(
        &self,
        owner: &Owner,
        project: ProjectId,
        workflow: &Workflow,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<DocumentVersion>, StoreError> {
        let range = keys::document_versions(owner, project, workflow, "V#");
        self.query(&range, after, limit, Order::Newest).await
    }

    pub async fn document_version(
        &self,
        owner: &Owner,
        project: ProjectId,
        workflow: &Workflow,
        version: u64,
    ) -> Result<Option<StoredDocument>, StoreError> {
        let found = self.get(&keys::document_text(owner, project, workflow, version)).await?;
        Ok(found.map(|found| found.value))
    }

    /// Deletes the versions of all documents of a project. The documents themselves are in the project's partition.
    pub async fn delete_document_versions(
        &self,
        owner: &Owner,
        project: ProjectId,
    ) -> Result<(), StoreError> {
        let mut after: Option<String> = None;
        loop {
            let found = self.documents(owner, project, after.as_deref(), 10).await?;
            for (_, kept) in found.items {
                let range = keys::document_versions(owner, project, &kept.value.workflow, "");
                self.delete_range(&range).await?;
            }
            after = found.last;
            if after.is_none() {
                return Ok(());
            }
        }
    }
}
