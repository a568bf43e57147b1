//! Imports of log files. Unfinished imports are marked, so that an interrupted import is found again.

use domain::ids::{ImportId, Owner};
use domain::log::import::LogImport;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::store::keys;
use crate::store::table::{Extras, Order, Store, StoreError, Versioned, Write, Written, item};

/// How long the result of an import can be read.
const KEPT: SignedDuration = SignedDuration::from_hours(7 * 24);

#[derive(Serialize, Deserialize)]
struct Mark {
    import_id: ImportId,
}

impl Store {
    /// Starts an import. Refused if the project does not exist any more.
    pub async fn begin_log_import(&self, owner: &Owner, import: &LogImport) -> Result<Written, StoreError> {
        let (id, plain) = (import.import_id, Extras::default());
        let mut writes = vec![
            Write::Create { key: keys::log_import(owner, id), item: item(import, &plain)? },
            Write::Put {
                key: keys::open_log_import(owner, id),
                item: item(&Mark { import_id: id }, &plain)?,
            },
        ];
        writes.extend(Self::project_exists(owner, import.project_id));
        self.write_all(writes).await
    }

    pub async fn log_import(
        &self,
        owner: &Owner,
        id: ImportId,
    ) -> Result<Option<Versioned<LogImport>>, StoreError> {
        self.get(&keys::log_import(owner, id)).await
    }

    /// Writes the progress or the result of an import over the record that was read at `version`.
    pub async fn write_log_import(
        &self,
        owner: &Owner,
        import: &LogImport,
        version: u64,
    ) -> Result<Written, StoreError> {
        let (id, is_final) = (import.import_id, import.state.is_final());
        let extras = if is_final { Extras::expiring(import.updated_at + KEPT) } else { Extras::default() };
        let key = keys::log_import(owner, id);
        let mut writes = vec![Write::Replace { key, version, item: item(import, &extras)? }];
        if is_final {
            writes.push(Write::Delete { key: keys::open_log_import(owner, id), must_exist: false });
        }
        self.write_all(writes).await
    }

    /// The unfinished imports, oldest first.
    pub async fn open_log_imports(&self, owner: &Owner, limit: usize) -> Result<Vec<ImportId>, StoreError> {
        self.marked_log_imports(&keys::open_log_imports(owner), limit).await
    }

    /// Records that an import, which is about to be ended from outside, may have left segments without a log.
    pub async fn mark_left_log_import(&self, owner: &Owner, id: ImportId) -> Result<(), StoreError> {
        let mark = item(&Mark { import_id: id }, &Extras::default())?;
        self.put(&keys::left_log_import(owner, id), mark).await
    }

    pub async fn forget_left_log_import(&self, owner: &Owner, id: ImportId) -> Result<(), StoreError> {
        self.delete(&keys::left_log_import(owner, id)).await
    }

    /// The imports that may have left such segments.
    pub async fn left_log_imports(&self, owner: &Owner, limit: usize) -> Result<Vec<ImportId>, StoreError> {
        self.marked_log_imports(&keys::left_log_imports(owner), limit).await
    }

    async fn marked_log_imports(
        &self,
        marks: &keys::Range,
        limit: usize,
    ) -> Result<Vec<ImportId>, StoreError> {
        let found = self.query(marks, None, limit, Order::Oldest).await?;
        Ok(found.items.into_iter().map(|(_, mark): (_, Versioned<Mark>)| mark.value.import_id).collect())
    }
}
