//! Locks by key: the writers of one process that change the same item wait for each other.
//!
//! This is only an optimisation. Other processes may still write concurrently, and the version in each write decides which
//! one succeeds. Without these locks, two hundred concurrent writers of one item would make each other retry many times.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::Arc;

use tokio::sync::{Mutex, MutexGuard};

/// The number of locks. Two keys that share a lock wait for each other without need, but without harm.
const LOCKS: usize = 64;

/// The locks of a process. Cheap to clone.
#[derive(Clone, Debug)]
pub struct KeyedLocks(Arc<[Mutex<()>]>);

impl Default for KeyedLocks {
    fn default() -> Self {
        Self((0..LOCKS).map(|_| Mutex::new(())).collect())
    }
}

impl KeyedLocks {
    /// Waits for the lock of a key. Dropping the guard releases it.
    pub async fn lock(&self, key: impl Hash) -> MutexGuard<'_, ()> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        self.0[(hash % LOCKS as u64) as usize].lock().await
    }
}
