//! Records of requests with an `Idempotency-Key`: in flight with an expiry, done, or done with the answer.
//!
//! A request does its work in one transaction ([`Store::commit`]), which also marks the key as done. So even if the
//! process dies or the answer is lost, the key's record is correct: either nothing was done and the key can be claimed
//! again, or everything was done and it cannot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::ids::{Owner, RunId};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::keys::{self, Guard, Key};
use super::table::{Extras, Store, StoreError, Versioned, Write, Written, item};

/// How long an answer can be replayed.
const LIFETIME: SignedDuration = SignedDuration::from_hours(24);

/// How long a request counts as in flight. A dead process reaches this limit before its client gives up.
const IN_FLIGHT: SignedDuration = SignedDuration::from_secs(60);

/// The record of one key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotencyRecord {
    /// SHA-256 of method, path and body.
    pub fingerprint: String,
    /// While the request is in flight: when the in-flight mark expires. Afterwards: when the answer is deleted.
    pub expires_at: Timestamp,
    pub outcome: RequestState,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RequestState {
    InFlight,
    /// The work is done. The answer is missing, or not stored yet.
    Done,
    /// The stored answer.
    Answered {
        status: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    /// The request began a run. The run is the answer.
    Run {
        run_id: RunId,
    },
}

impl IdempotencyRecord {
    /// Whether another request may claim the key because its holder has disappeared without doing anything.
    fn is_free(&self, now: Timestamp) -> bool {
        match self.outcome {
            RequestState::Done => now >= self.expires_at + LIFETIME,
            RequestState::InFlight | RequestState::Answered { .. } | RequestState::Run { .. } => {
                now >= self.expires_at
            }
        }
    }
}

/// A request that has claimed its key.
#[derive(Debug)]
pub struct ClaimedRequest {
    key: Key,
    fingerprint: String,
    /// The version of the record. Marking it as done changes the version, so a request that read the record before
    /// cannot claim it any more.
    version: u64,
    done: AtomicBool,
}

impl ClaimedRequest {
    /// The write that marks the request as done. If the request began a run, the mark names the run and says until when
    /// it can be replayed. Refused if another request has taken the key over.
    fn mark(&self, run: Option<(RunId, Timestamp)>) -> Write {
        let texts = match run {
            None => vec![("outcome.state", "done".to_owned())],
            Some((run, now)) => vec![
                ("outcome.state", "run".to_owned()),
                ("outcome.run_id", run.to_string()),
                ("expires_at", (now + LIFETIME).to_string()),
            ],
        };
        Write::Set { key: self.key.clone(), version: self.version, texts }
    }

    fn marked(&self) {
        self.done.store(true, Ordering::Relaxed);
    }

    fn current_version(&self) -> u64 {
        self.version + u64::from(self.done.load(Ordering::Relaxed))
    }
}

/// What makes the work of a request happen once. [`Store::commit`] needs it.
///
/// Handlers get it as an argument: the middleware of `Idempotency-Key` adds it to the request. Work without a request
/// (executors, sweeps, timers) has [`Once::none`]. All clones belong to the same request: the first commit with any of
/// them marks the request as done, and later ones are plain writes.
#[derive(Clone, Debug)]
pub struct Once(Option<Arc<ClaimedRequest>>);

impl Once {
    /// For work without an `Idempotency-Key`, which only a POST has, and for work that is safe to repeat. No commit marks a request
    /// as done.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// For the work of a request that has claimed its key.
    #[must_use]
    pub fn of(claimed: &Arc<ClaimedRequest>) -> Self {
        Self(Some(claimed.clone()))
    }

    /// The request, if it has a key and is not marked as done yet.
    fn unmarked(&self) -> Option<&ClaimedRequest> {
        self.0.as_deref().filter(|claimed| !claimed.done.load(Ordering::Relaxed))
    }
}

/// The result of claiming a key.
#[derive(Debug)]
pub enum Claim {
    /// The request is the first one with this key, and may act.
    First(Arc<ClaimedRequest>),
    Other(IdempotencyRecord),
}

impl Store {
    /// Commits the work of a request: all of the writes or none. If the request has an `Idempotency-Key`, the same
    /// transaction marks the key as done, so the work is never done again under that key. Writes before this call must
    /// be safe to repeat.
    ///
    /// # Errors
    /// As [`Store::write_all`]; also if another request has taken the key over.
    pub async fn commit(&self, once: &Once, writes: Vec<Write>) -> Result<Written, StoreError> {
        self.commit_marked(once, writes, None).await
    }

    /// Like [`Store::commit`], for a request that begins a run. Afterwards the answer for the key is the run.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub async fn commit_run(
        &self,
        once: &Once,
        writes: Vec<Write>,
        run: RunId,
        now: Timestamp,
    ) -> Result<Written, StoreError> {
        self.commit_marked(once, writes, Some((run, now))).await
    }

    async fn commit_marked(
        &self,
        once: &Once,
        mut writes: Vec<Write>,
        run: Option<(RunId, Timestamp)>,
    ) -> Result<Written, StoreError> {
        let Some(claimed) = once.unmarked() else { return self.write_all(writes).await };
        writes.push(claimed.mark(run));
        match self.write_all(writes).await? {
            Written::Yes => {
                claimed.marked();
                Ok(Written::Yes)
            }
            Written::Refused(Guard::Idempotency) => Err(StoreError::TakenOver),
            refused => Ok(refused),
        }
    }

    /// Claims a key for a request.
    pub async fn claim_idempotency(
        &self,
        owner: &Owner,
        client_key: &str,
        fingerprint: &str,
        now: Timestamp,
    ) -> Result<Claim, StoreError> {
        let key = keys::idempotency(owner, client_key);
        let record = IdempotencyRecord {
            fingerprint: fingerprint.to_owned(),
            expires_at: now + IN_FLIGHT,
            outcome: RequestState::InFlight,
        };
        let claimed = || item(&record, &Extras::expiring(now + LIFETIME));
        let first = |version| {
            let (key, fingerprint) = (key.clone(), fingerprint.to_owned());
            Claim::First(Arc::new(ClaimedRequest { key, fingerprint, version, done: AtomicBool::new(false) }))
        };
        loop {
            if self.create(&key, claimed()?).await?.done() {
                return Ok(first(1));
            }
            let Some(Versioned { value: existing, version }) = self.get::<IdempotencyRecord>(&key).await?
            else {
                continue;
            };
            if !existing.is_free(now) {
                return Ok(Claim::Other(existing));
            }
            if self.replace(&key, version, claimed()?).await?.done() {
                return Ok(first(version + 1));
            }
        }
    }

    /// Stores the answer of a claimed request. If another request has claimed the key in the meantime, that request's
    /// record is kept.
    pub async fn complete_idempotency(
        &self,
        claimed: &ClaimedRequest,
        outcome: RequestState,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let expires_at = now + LIFETIME;
        let record = IdempotencyRecord { fingerprint: claimed.fingerprint.clone(), expires_at, outcome };
        let item = item(&record, &Extras::expiring(expires_at))?;
        self.replace(&claimed.key, claimed.current_version(), item).await.map(|_| ())
    }

    /// Releases a claimed key so that the request may be repeated, unless its work is done.
    pub async fn release_idempotency(&self, claimed: &ClaimedRequest) -> Result<(), StoreError> {
        let (key, version) = (claimed.key.clone(), claimed.version);
        self.write_all(vec![Write::Remove { key, version }]).await.map(|_: Written| ())
    }
}
