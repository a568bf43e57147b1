//! The runs that this process executes. It announces their events, so that followers in the same process need not poll.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use domain::ids::RunId;
use tokio::sync::watch;

/// The runs that this process executes, with the newest event of each, so that followers here need not poll.
#[derive(Clone, Default)]
pub struct LiveRuns(Arc<Mutex<HashMap<RunId, watch::Sender<u64>>>>);

impl LiveRuns {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, watch::Sender<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces the newest event of a run that is executed here.
    pub(crate) fn tell(&self, run: RunId, event: u64) {
        self.lock().entry(run).or_insert_with(|| watch::Sender::new(0)).send_replace(event);
    }

    /// Announces that a run is no longer executed here.
    pub(crate) fn forget(&self, run: RunId) {
        self.lock().remove(&run);
    }

    /// Whether no run is executed here.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// The newest event of a run, as it changes; `None` if the run is not executed here.
    #[must_use]
    pub fn listen(&self, run: RunId) -> Option<watch::Receiver<u64>> {
        self.lock().get(&run).map(watch::Sender::subscribe)
    }
}
