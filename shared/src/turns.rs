//! Turns: the writers of one process that are after the same thing go one after another.
//!
//! Nothing depends on it: writers of other processes are met all the same, and the version that a write carries decides.
//! But two hundred writers that all read, decide and write at once would have each other try again and again.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::Arc;

use tokio::sync::{Mutex, MutexGuard};

/// Over how many locks the things are spread. Two that share one wait for each other for nothing, and come to no harm.
const LOCKS: usize = 64;

/// The turns of a process; cheap to clone.
#[derive(Clone, Debug)]
pub struct Turns(Arc<[Mutex<()>]>);

impl Default for Turns {
    fn default() -> Self {
        Self((0..LOCKS).map(|_| Mutex::new(())).collect())
    }
}

impl Turns {
    /// Waits for one's turn at a thing; it is over when the guard goes.
    pub async fn wait(&self, thing: impl Hash) -> MutexGuard<'_, ()> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(thing);
        self.0[(hash % LOCKS as u64) as usize].lock().await
    }
}
