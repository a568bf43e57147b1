//! What became of requests that carried an `Idempotency-Key`: in flight with an expiry, or done with the answer.

use domain::ids::{Owner, RunId};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::keys;
use super::table::{Extras, Store, StoreError, Versioned, item};

/// How long an answer can be replayed.
const LIFETIME: SignedDuration = SignedDuration::from_hours(24);

/// How long a request is taken to be in flight. A process that dies is past it sooner than its client gives up.
const IN_FLIGHT: SignedDuration = SignedDuration::from_secs(60);

/// One key's record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotencyRecord {
    /// SHA-256 of method, path and body.
    pub fingerprint: String,
    pub expires_at: Timestamp,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Outcome {
    InFlight,
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

/// What a request finds under its key.
#[derive(Debug)]
pub enum Claim {
    /// It is the first: it may act, and completes the record at this version.
    First(u64),
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
        loop {
            if self.create(&key, claimed()?).await?.done() {
                return Ok(Claim::First(1));
            }
            let Some(Versioned { value: standing, version }) = self.get::<IdempotencyRecord>(&key).await?
            else {
                continue;
            };
            if standing.expires_at > now {
                return Ok(Claim::Other(standing));
            }
            if self.replace(&key, version, claimed()?).await?.done() {
                return Ok(Claim::First(version + 1));
            }
        }
    }

    /// Stores the answer of a claimed request. Where another has taken the key over meanwhile, theirs stands.
    pub async fn complete_idempotency(
        &self,
        owner: &Owner,
        client_key: &str,
        claimed_at: u64,
        fingerprint: &str,
        outcome: Outcome,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let expires_at = now + LIFETIME;
        let record = IdempotencyRecord { fingerprint: fingerprint.to_owned(), expires_at, outcome };
        let key = keys::idempotency(owner, client_key);
        self.replace(&key, claimed_at, item(&record, &Extras::expiring(expires_at))?).await.map(|_| ())
    }

    /// Gives a claimed key free: the request had no effect and may be made again.
    pub async fn release_idempotency(&self, owner: &Owner, client_key: &str) -> Result<(), StoreError> {
        self.delete(&keys::idempotency(owner, client_key)).await
    }
}
