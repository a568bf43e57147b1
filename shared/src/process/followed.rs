//! The owners whom the watchdog is known to look at, so that an executor does not ask the table for each item.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use domain::ids::Owner;
use jiff::{SignedDuration, Timestamp};

/// How long a process trusts what it knows. An account may be deleted and begin again meanwhile.
const TRUSTED: SignedDuration = SignedDuration::from_hours(1);

/// How many owners a process remembers.
const REMEMBERED: usize = 10_000;

/// The owners whom the watchdog is known to look at. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Followed(Arc<Mutex<HashMap<Owner, Timestamp>>>);

impl Followed {
    #[must_use]
    pub fn knows(&self, owner: &Owner, now: Timestamp) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(owner).is_some_and(|at| now.duration_since(*at).abs() < TRUSTED)
    }

    pub fn learn(&self, owner: &Owner, now: Timestamp) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.retain(|_, at| now.duration_since(*at).abs() < TRUSTED);
        }
        if known.len() < REMEMBERED {
            known.insert(owner.clone(), now);
        }
    }
}
