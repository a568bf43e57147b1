//! What became of requests that carried an `Idempotency-Key`: in flight with an expiry, done, or done with the answer.
//!
//! A request does what it is for in one transaction ([`Store::commit`]), and the mark that it is done is part of it. So
//! whatever is lost or killed after that, the key says what is true: either nothing was done, and the key can be claimed
//! again, or all of it was, and it can't.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::ids::{Owner, RunId};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::keys::{self, Key};
use super::table::{Extras, Store, StoreError, Versioned, Write, Written, item};

/// How long an answer can be replayed.
const LIFETIME: SignedDuration = SignedDuration::from_hours(24);

/// How long a request is taken to be in flight. A process that dies is past it sooner than its client gives up.
const IN_FLIGHT: SignedDuration = SignedDuration::from_secs(60);

/// One key's record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotencyRecord {
    /// SHA-256 of method, path and body.
    pub fingerprint: String,
    /// While the request is in flight, when it is no more; afterwards when the answer is forgotten.
    pub expires_at: Timestamp,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Outcome {
    InFlight,
    /// What was asked for is done; the answer is not there, or not yet.
    Done,
    /// The answer, word for word.
    Answered {
        status: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    /// The request began a run: the answer is the run's.
    Run {
        run_id: RunId,
    },
}

impl IdempotencyRecord {
    /// Whether another request may claim the key: who had it is gone and has done nothing.
    fn is_free(&self, now: Timestamp) -> bool {
        match self.outcome {
            Outcome::Done => now >= self.expires_at + LIFETIME,
            Outcome::InFlight | Outcome::Answered { .. } | Outcome::Run { .. } => now >= self.expires_at,
        }
    }
}

/// A request that has claimed its key.
#[derive(Debug)]
pub struct Claimed {
    key: Key,
    fingerprint: String,
    /// Of the record. The mark moves it: who has read the record before can't take it over any more.
    version: u64,
    done: AtomicBool,
}

tokio::task_local! {
    static CLAIMED: Arc<Claimed>;
}

impl Claimed {
    /// Serves the request: the first [`Store::commit`] in `work` is what it is for.
    pub async fn serve<T>(self: &Arc<Self>, work: impl Future<Output = T>) -> T {
        CLAIMED.scope(self.clone(), work).await
    }

    /// The request that is served here and has done nothing yet.
    pub(super) fn current() -> Option<Arc<Self>> {
        CLAIMED.try_with(Arc::clone).ok().filter(|claimed| !claimed.done.load(Ordering::Relaxed))
    }

    /// The write that says that it is done. Refused where another request has taken the key over.
    pub(super) fn mark(&self) -> Write {
        Write::Done { key: self.key.clone(), version: self.version }
    }

    pub(super) fn marked(&self) {
        self.done.store(true, Ordering::Relaxed);
    }

    fn standing(&self) -> u64 {
        self.version + u64::from(self.done.load(Ordering::Relaxed))
    }
}

/// What a request finds under its key.
#[derive(Debug)]
pub enum Claim {
    /// It is the first, and may act.
    First(Arc<Claimed>),
    Other(IdempotencyRecord),
}

impl Store {
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
            outcome: Outcome::InFlight,
        };
        let claimed = || item(&record, &Extras::expiring(now + LIFETIME));
        let first = |version| {
            let (key, fingerprint) = (key.clone(), fingerprint.to_owned());
            Claim::First(Arc::new(Claimed { key, fingerprint, version, done: AtomicBool::new(false) }))
        };
        loop {
            if self.create(&key, claimed()?).await?.done() {
                return Ok(first(1));
            }
            let Some(Versioned { value: standing, version }) = self.get::<IdempotencyRecord>(&key).await?
            else {
                continue;
            };
            if !standing.is_free(now) {
                return Ok(Claim::Other(standing));
            }
            if self.replace(&key, version, claimed()?).await?.done() {
                return Ok(first(version + 1));
            }
        }
    }

    /// Stores the answer of a claimed request. Where another has taken the key over meanwhile, theirs stands.
    pub async fn complete_idempotency(
        &self,
        claimed: &Claimed,
        outcome: Outcome,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let expires_at = now + LIFETIME;
        let record = IdempotencyRecord { fingerprint: claimed.fingerprint.clone(), expires_at, outcome };
        let item = item(&record, &Extras::expiring(expires_at))?;
        self.replace(&claimed.key, claimed.standing(), item).await.map(|_| ())
    }

    /// Gives a claimed key free, unless what it was claimed for is done: the request may be made again.
    pub async fn release_idempotency(&self, claimed: &Claimed) -> Result<(), StoreError> {
        let (key, version) = (claimed.key.clone(), claimed.version);
        self.transact(vec![Write::Remove { key, version }]).await.map(|_: Written| ())
    }
}
