//! Jobs of an account that executors do, one executor at a time.

use domain::ids::Owner;
use jiff::Timestamp;

use crate::store::table::{Store, StoreError, Write, Written};

/// The record of a job: an export or an import.
pub trait Job {
    /// Begins or continues the job. `false` if it was begun too often; then it has failed.
    fn begin(&mut self, now: Timestamp) -> bool;

    /// The write of a job that was read at `version`, 0 if there was none. `continues_at`: when a sweep looks at it, if it has not
    /// ended.
    ///
    /// # Errors
    /// If the record is too large.
    fn write(&self, owner: &Owner, version: u64, continues_at: Timestamp) -> Result<Write, StoreError>;
}

impl Store {
    /// Saves a job, as [`Job::write`] describes it, for an executor.
    pub async fn save_job(
        &self,
        owner: &Owner,
        job: &impl Job,
        version: u64,
        continues_at: Timestamp,
    ) -> Result<Written, StoreError> {
        self.write_all(vec![job.write(owner, version, continues_at)?]).await
    }
}
