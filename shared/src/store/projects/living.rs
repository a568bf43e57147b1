//! The living documents of projects: the changelog, the newest synchronisation, the documents, and their versions. The texts are objects,
//! which are written before the record that names them.

use domain::ids::{Owner, ProjectId, SyncId};
use domain::living::sync::{Sync, SyncState};
use domain::living::{Changelog, DocName, MAX_TEXT};
use domain::validate::{FieldErrors, MAX_STORED};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::store::keys;
use crate::store::notices::SealedText;
use crate::store::runs::jobs::Job;
use crate::store::table::{Extras, Order, QueryPage, Store, StoreError, Versioned, Write, Written, item};

/// How many versions of a document are kept.
pub const VERSIONS: u64 = 60;

/// Why a version of a document was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LivingCause {
    Created,
    /// A person or a program has sent it.
    Edited,
    /// A synchronisation has written it.
    Synced,
    /// An earlier version has become the newest one.
    Restored,
}

/// A version of a document, as it is stored. The newest one is also the record of the document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LivingVersion {
    pub name: DocName,
    pub version: u64,
    /// The object of the text.
    pub text: Uuid,
    /// The SHA-256 of the text, in hexadecimal digits.
    pub sha256: String,
    pub bytes: u64,
    pub cause: LivingCause,
    /// The synchronisation that has written it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_id: Option<SyncId>,
    pub written_at: Timestamp,
    /// When the document was created.
    pub created_at: Timestamp,
}

/// The webhook of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredHook {
    pub project_id: ProjectId,
    /// The branch whose commits count. None: the default branch of the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    pub created_at: Timestamp,
    /// The secret, encrypted.
    pub secret: SealedText,
}

impl LivingVersion {
    /// Checks a record that comes from outside, such as from an archive.
    ///
    /// # Errors
    /// Every invalid field, with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        if self.version == 0 {
            errors.add("version", "must be at least 1");
        }
        errors.most("version", self.version, MAX_STORED);
        errors.most("bytes", self.bytes, MAX_TEXT as u64);
        errors.sha256("sha256", &self.sha256);
        errors.time("written_at", self.written_at);
        errors.time("created_at", self.created_at);
        errors.into_result(())
    }
}

impl Job for Sync {
    fn begin(&mut self, now: Timestamp) -> bool {
        Self::begin(self, now)
    }

    fn write(&self, owner: &Owner, version: u64, continues_at: Timestamp) -> Result<Write, StoreError> {
        let due = (!self.has_ended()).then(|| (keys::shard(self.sync_id.uuid()), continues_at));
        let lease_until = (self.state == SyncState::Running).then_some(continues_at);
        let item = item(&Self { lease_until, ..self.clone() }, &Extras { due, expires: None })?;
        Ok(Write::over(keys::docs_sync(owner, self.project_id), version, item))
    }
}

impl Store {
    /// The changelog of a project. Version 0 if nothing was ever stored.
    pub async fn changelog(
        &self,
        owner: &Owner,
        project: ProjectId,
    ) -> Result<Versioned<Changelog>, StoreError> {
        let found = self.get(&keys::docs_changelog(owner, project)).await?;
        Ok(found.unwrap_or(Versioned { value: Changelog::default(), version: 0 }))
    }

    /// The writes of a changelog over the one that was read. Refused if the project does not exist any more.
    ///
    /// # Errors
    /// If the record is too large.
    pub fn changelog_writes(
        owner: &Owner,
        project: ProjectId,
        changelog: &Changelog,
        version: u64,
    ) -> Result<Vec<Write>, StoreError> {
        let item = item(changelog, &Extras::default())?;
        let mut writes = vec![Write::over(keys::docs_changelog(owner, project), version, item)];
        writes.extend(Self::project_exists(owner, project));
        Ok(writes)
    }

    pub async fn docs_sync(
        &self,
        owner: &Owner,
        project: ProjectId,
    ) -> Result<Option<Versioned<Sync>>, StoreError> {
        self.get(&keys::docs_sync(owner, project)).await
    }

    pub async fn living_document(
        &self,
        owner: &Owner,
        project: ProjectId,
        name: &DocName,
    ) -> Result<Option<Versioned<LivingVersion>>, StoreError> {
        self.get(&keys::living_document(owner, project, name)).await
    }

    /// The documents of a project, by their names.
    pub async fn living_documents(
        &self,
        owner: &Owner,
        project: ProjectId,
    ) -> Result<Vec<Versioned<LivingVersion>>, StoreError> {
        self.all_of(&keys::living_documents(owner, project)).await
    }

    pub async fn docs_hook(
        &self,
        owner: &Owner,
        project: ProjectId,
    ) -> Result<Option<StoredHook>, StoreError> {
        Ok(self.get(&keys::docs_hook(owner, project)).await?.map(|found| found.value))
    }

    /// The writes of a webhook in place of an earlier one. Refused if the project does not exist any more.
    ///
    /// # Errors
    /// If the record is too large.
    pub fn docs_hook_writes(owner: &Owner, hook: &StoredHook) -> Result<Vec<Write>, StoreError> {
        let key = keys::docs_hook(owner, hook.project_id);
        let mut writes = vec![Write::Put { key, item: item(hook, &Extras::default())? }];
        writes.extend(Self::project_exists(owner, hook.project_id));
        Ok(writes)
    }

    /// Deletes a webhook. It is refused if there is none.
    pub async fn delete_docs_hook(&self, owner: &Owner, project: ProjectId) -> Result<Written, StoreError> {
        self.write_all(vec![Write::Delete { key: keys::docs_hook(owner, project), must_exist: true }]).await
    }

    /// The writes of a version of a document over the record that was read (0: there was none). Refused if another writer was faster.
    ///
    /// # Errors
    /// If the record is too large.
    pub fn living_writes(
        owner: &Owner,
        project: ProjectId,
        new: &LivingVersion,
        read_at: u64,
    ) -> Result<[Write; 2], StoreError> {
        let plain = Extras::default();
        let key = keys::living_document(owner, project, &new.name);
        Ok([
            Write::over(key, read_at, item(new, &plain)?),
            Write::Put {
                key: keys::living_version(owner, project, &new.name, new.version),
                item: item(new, &plain)?,
            },
        ])
    }

    pub async fn living_version(
        &self,
        owner: &Owner,
        project: ProjectId,
        name: &DocName,
        version: u64,
    ) -> Result<Option<LivingVersion>, StoreError> {
        let found = self.get(&keys::living_version(owner, project, name, version)).await?;
        Ok(found.map(|found| found.value))
    }

    /// The versions of a document, newest first.
    pub async fn living_versions(
        &self,
        owner: &Owner,
        project: ProjectId,
        name: &DocName,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<LivingVersion>, StoreError> {
        self.query(&keys::living_versions(owner, project, name), after, limit, Order::Newest).await
    }

    /// Deletes the version that is too old after this one was written. Returns it.
    pub async fn forget_living_version(
        &self,
        owner: &Owner,
        project: ProjectId,
        newest: &LivingVersion,
    ) -> Result<Option<LivingVersion>, StoreError> {
        let Some(old) = newest.version.checked_sub(VERSIONS).filter(|version| *version > 0) else {
            return Ok(None);
        };
        let found = self.living_version(owner, project, &newest.name, old).await?;
        if found.is_some() {
            self.delete(&keys::living_version(owner, project, &newest.name, old)).await?;
        }
        Ok(found)
    }

    /// Deletes the versions of all documents of a project. The documents themselves are in the project's partition.
    pub async fn delete_living_versions(&self, owner: &Owner, project: ProjectId) -> Result<(), StoreError> {
        for document in self.living_documents(owner, project).await? {
            self.delete_range(&keys::living_versions(owner, project, &document.value.name)).await?;
        }
        Ok(())
    }
}
