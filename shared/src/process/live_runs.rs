//! The runs that this process executes. Their stored events are passed to followers in the same process, so that these need
//! not read the table for each piece of a reply.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use domain::ids::RunId;
use domain::runs::RunEvent;
use tokio::sync::watch;

/// How many events of a run are kept for followers that are slow, and how many bytes. Slower ones read the table.
const KEPT: usize = 64;
const KEPT_BYTES: usize = 512 * 1024;

/// The runs that this process executes, with the newest events of each.
#[derive(Clone, Default)]
pub struct LiveRuns(Arc<Mutex<HashMap<RunId, watch::Sender<Recent>>>>);

/// The newest events of a run. All of them are stored.
#[derive(Debug, Default)]
pub struct Recent {
    /// The id of the newest event.
    pub newest: u64,
    /// The last of them is the newest event. There is no gap.
    events: VecDeque<(Arc<RunEvent>, usize)>,
    bytes: usize,
}

impl Recent {
    /// The events after `after`. `None` if only the table has all of them.
    #[must_use]
    pub fn after(&self, after: u64) -> Option<Vec<RunEvent>> {
        if self.newest <= after {
            return Some(Vec::new());
        }
        let (first, _) = self.events.front()?;
        let new = self.events.iter().filter(|(event, _)| event.id > after);
        (first.id <= after + 1).then(|| new.map(|(event, _)| RunEvent::clone(event)).collect())
    }

    fn add(&mut self, newest: u64, events: Vec<RunEvent>) {
        if newest != self.newest && events.first().is_none_or(|event| event.id != self.newest + 1) {
            self.events.clear();
            self.bytes = 0;
        }
        for event in events {
            let bytes = size(&event.data);
            self.bytes += bytes;
            self.events.push_back((Arc::new(event), bytes));
        }
        self.newest = newest;
        while self.events.len() > KEPT || self.bytes > KEPT_BYTES {
            self.bytes -= self.events.pop_front().map_or(self.bytes, |(_, bytes)| bytes);
        }
    }
}

/// About how many bytes a value takes.
fn size(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::String(text) => text.len() + 32,
        serde_json::Value::Array(items) => items.iter().map(size).sum::<usize>() + 32,
        serde_json::Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + size(value) + 32).sum()
        }
        _ => 32,
    }
}

impl LiveRuns {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, watch::Sender<Recent>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces events of a run that is executed here, once they are stored. `newest` is the id of the newest event.
    pub(crate) fn tell(&self, run: RunId, newest: u64, events: Vec<RunEvent>) {
        let mut runs = self.lock();
        let sender = runs.entry(run).or_insert_with(|| watch::Sender::new(Recent::default()));
        sender.send_modify(|recent| recent.add(newest, events));
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

    /// The newest events of a run, as they change; `None` if the run is not executed here.
    #[must_use]
    pub fn listen(&self, run: RunId) -> Option<watch::Receiver<Recent>> {
        self.lock().get(&run).map(watch::Sender::subscribe)
    }
}

#[cfg(test)]
mod tests {
    use domain::runs::EventKind;
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn events(ids: std::ops::RangeInclusive<u64>, bytes: usize) -> Vec<RunEvent> {
        let event = |id| {
            RunEvent::new(
                id,
                EventKind::MessageDelta,
                Timestamp::UNIX_EPOCH,
                json!({"text": "x".repeat(bytes)}),
            )
        };
        ids.map(event).collect()
    }

    fn ids(recent: &Recent, after: u64) -> Option<Vec<u64>> {
        Some(recent.after(after)?.iter().map(|event| event.id).collect())
    }

    #[test]
    fn events_are_passed_on_without_a_gap_or_not_at_all() {
        let mut recent = Recent::default();
        // A run that is taken over: nobody here knows its earlier events.
        recent.add(7, Vec::new());
        assert_eq!((ids(&recent, 6), ids(&recent, 7), ids(&recent, 9)), (None, Some(vec![]), Some(vec![])));
        recent.add(9, events(8..=9, 1));
        assert_eq!(
            (ids(&recent, 6), ids(&recent, 7), ids(&recent, 8)),
            (None, Some(vec![8, 9]), Some(vec![9]))
        );
        // A write without events changes nothing.
        recent.add(9, Vec::new());
        assert_eq!(ids(&recent, 9), Some(vec![]));
        recent.add(10, events(10..=10, 1));
        assert_eq!(ids(&recent, 9), Some(vec![10]));
        // After a gap the earlier ones are of no use.
        recent.add(20, events(20..=20, 1));
        assert_eq!((ids(&recent, 9), ids(&recent, 19)), (None, Some(vec![20])));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut recent = Recent::default();
        for id in 1..=200 {
            recent.add(id, events(id..=id, 1));
        }
        assert_eq!(
            (recent.events.len(), ids(&recent, 136).map(|ids| ids.len()), ids(&recent, 135)),
            (64, Some(64), None)
        );
        for id in 201..=220 {
            recent.add(id, events(id..=id, 100_000));
        }
        assert!(recent.bytes <= KEPT_BYTES && recent.events.len() == 5, "{}", recent.events.len());
        assert_eq!(ids(&recent, 218), Some(vec![219, 220]));
        recent.add(221, events(221..=221, 2 * KEPT_BYTES));
        assert_eq!((recent.events.len(), recent.bytes, ids(&recent, 220)), (0, 0, None));
    }
}
