//! The records of background jobs.

use domain::background::jobs::JobRun;
use domain::ids::{JobId, Owner};
use jiff::Timestamp;

use crate::store::keys;
use crate::store::table::{Extras, Order, QueryPage, Store, StoreError, Versioned, Write, Written, item};

impl Store {
    pub async fn job_run(
        &self,
        owner: &Owner,
        due: Timestamp,
        id: JobId,
    ) -> Result<Option<Versioned<JobRun>>, StoreError> {
        self.get(&keys::job_run(owner, due, id)).await
    }

    /// Saves the record of a job. Refused if another process has saved it since `version`, 0 if there was none.
    pub async fn save_job_run(
        &self,
        owner: &Owner,
        job: &JobRun,
        version: u64,
    ) -> Result<Written, StoreError> {
        let key = keys::job_run(owner, job.due, job.job_id);
        self.write_all(vec![Write::over(key, version, item(job, &Extras::expiring(job.kept_until()))?)]).await
    }

    /// The records of jobs, newest due time first.
    pub async fn job_runs(
        &self,
        owner: &Owner,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<JobRun>, StoreError> {
        self.query(&keys::job_runs(owner), after, limit, Order::Newest).await
    }
}
