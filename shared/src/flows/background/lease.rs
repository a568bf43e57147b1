//! Work of some minutes that one process at a time does: imports, exports, the map of a theme and its notes.
//!
//! A record says who does the work, and until when. The process renews that while it works, and stops before its own time is over.
//! Then, or if it dies, another process continues.

use std::time::Duration;

use domain::background::dispatch::LEASE;
use domain::ids::Owner;
use jiff::{SignedDuration, Timestamp};

use crate::context::Cx;
use crate::error::{Error, Result};
use crate::store::{Job, Versioned};

/// A process stops this long before its deadline. In this time it saves its work and ends its lease.
pub const RESERVE: SignedDuration = SignedDuration::from_secs(20);

/// An executor saves its job when this time has passed.
const SAVED_EVERY: SignedDuration = SignedDuration::from_secs(30);

/// Whether the process must stop, because its deadline is near.
#[must_use]
pub fn is_time_up(cx: &Cx, deadline: Timestamp) -> bool {
    cx.clock.now() + RESERVE >= deadline
}

/// Does `work` and renews a lease of the length `lease` until the work is done or the lease is lost. A holder that has lost its lease
/// learns that from its next write.
///
/// # Errors
/// Those of the work.
pub async fn renewing<T, R: Future<Output = Result<()>>>(
    cx: &Cx,
    lease: SignedDuration,
    renew: impl Fn() -> R,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let renewals = async {
        loop {
            cx.clock.sleep(Duration::try_from(lease / 3).unwrap_or_default()).await;
            if renew().await.is_err() {
                return std::future::pending().await;
            }
        }
    };
    tokio::select! {
        done = work => done,
        never = renewals => never,
    }
}

/// A job that this executor has claimed.
///
/// The version of the record says which executor has it. One whose lease has ended finds another version when it saves.
pub struct ClaimedJob<'a, J> {
    cx: &'a Cx,
    owner: &'a Owner,
    pub job: J,
    version: u64,
    saved_at: Timestamp,
    deadline: Timestamp,
}

/// Why an executor stops before its job is done.
#[derive(Debug)]
pub enum Interrupted {
    /// Another executor has the job.
    Lost,
    /// The deadline is near.
    TimeUp,
    /// The process is told to end.
    Stopping,
    /// The table or the bucket does not answer.
    Failed(Error),
}

impl<E: Into<Error>> From<E> for Interrupted {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl<'a, J: Job> ClaimedJob<'a, J> {
    /// Claims a job. `None` if another executor was faster, or if the job was begun too often.
    ///
    /// # Errors
    /// If the table does not answer.
    pub async fn claim(
        cx: &'a Cx,
        owner: &'a Owner,
        found: Versioned<J>,
        deadline: Timestamp,
    ) -> Result<Option<Self>> {
        let (now, Versioned { value: mut job, version }) = (cx.clock.now(), found);
        let begins = job.begin(now);
        let mut claimed = Self { cx, owner, job, version, saved_at: now, deadline };
        let saved = claimed.save(now + LEASE).await?;
        Ok((begins && saved).then_some(claimed))
    }

    /// When this executor must have stopped.
    #[must_use]
    pub fn deadline(&self) -> Timestamp {
        self.deadline
    }

    /// The version of the record that this executor has written last. While it stays, no other executor has the job.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Saves the job from time to time, which renews the lease.
    ///
    /// # Errors
    /// If the executor must stop.
    pub async fn keep(&mut self) -> Result<(), Interrupted> {
        self.may_go_on()?;
        let now = self.cx.clock.now();
        if now.duration_since(self.saved_at) >= SAVED_EVERY && !self.save(now + LEASE).await? {
            return Err(Interrupted::Lost);
        }
        Ok(())
    }

    /// Saves the job now with a lease until then, for work during which the lease can't be renewed.
    ///
    /// # Errors
    /// If the executor must stop.
    pub async fn keep_until(&mut self, until: Timestamp) -> Result<(), Interrupted> {
        self.may_go_on()?;
        if self.save(until.min(self.deadline)).await? { Ok(()) } else { Err(Interrupted::Lost) }
    }

    fn may_go_on(&self) -> Result<(), Interrupted> {
        if self.cx.stopping.is_set() {
            return Err(Interrupted::Stopping);
        }
        if is_time_up(self.cx, self.deadline) {
            return Err(Interrupted::TimeUp);
        }
        Ok(())
    }

    /// Saves the job now, which renews the lease. `false` if another executor has the job.
    ///
    /// # Errors
    /// If the table does not answer.
    pub async fn save_now(&mut self) -> Result<bool> {
        self.save(self.cx.clock.now() + LEASE).await
    }

    /// Saves the job and ends the lease. `false` if another executor has the job.
    ///
    /// # Errors
    /// If the table does not answer.
    pub async fn give_back(&mut self) -> Result<bool> {
        self.save(self.cx.clock.now()).await
    }

    async fn save(&mut self, continues_at: Timestamp) -> Result<bool> {
        let saved = self.cx.store.save_job(self.owner, &self.job, self.version, continues_at).await?.done();
        if saved {
            (self.version, self.saved_at) = (self.version + 1, self.cx.clock.now());
        }
        Ok(saved)
    }
}
