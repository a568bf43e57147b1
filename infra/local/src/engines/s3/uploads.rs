//! Upload events: each committed object is announced until its event is acknowledged.
//!
//! No upload writes to an outbox. The objects have increasing sequencers, and the bucket stores the sequencer up to
//! which every event was handled. A new subscriber first gets the current objects beyond that mark. So an event arrives
//! at least once, in order per key. An object that was overwritten or deleted meanwhile may be announced only in its
//! newest version, or not at all.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::object::Metadata;
use super::store::{State, Store, Summary};
use super::watch::{MARK_FILE, Watch, acknowledged};

pub use super::watch::ObjectCreated;

/// The events of a bucket, in the order of the commits.
#[derive(Debug)]
pub struct Uploads {
    store: Arc<Store>,
    receiver: mpsc::UnboundedReceiver<(u64, ObjectCreated)>,
}

/// An event that is delivered again after a restart unless it was acknowledged.
#[derive(Debug)]
pub struct Upload {
    pub event: ObjectCreated,
    sequencer: u64,
    store: Arc<Store>,
}

impl Uploads {
    /// Begins with the objects whose events were never acknowledged. A later subscription replaces an earlier one.
    pub(super) fn subscribe(store: &Arc<Store>) -> io::Result<Self> {
        let mark = acknowledged(&store.folder)?;
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut state = store.state();
        let mut missed: Vec<(u64, ObjectCreated)> = (state.objects.iter())
            .filter(|(_, object)| object.sequencer > mark)
            .map(|(key, object)| (object.sequencer, event(&store.bucket, key, object)))
            .collect();
        missed.sort_by_key(|(sequencer, _)| *sequencer);
        let mut watch = Watch { sender, outstanding: BTreeSet::new() };
        for (sequencer, event) in missed {
            watch.announce(sequencer, event);
        }
        state.watch = Some(watch);
        drop(state);
        Ok(Self { store: Arc::clone(store), receiver })
    }

    /// The next event. `None` after another subscription has replaced this one.
    pub async fn next(&mut self) -> Option<Upload> {
        let (sequencer, event) = self.receiver.recv().await?;
        Some(Upload { event, sequencer, store: Arc::clone(&self.store) })
    }
}

impl Upload {
    /// Reports that the effect of the event is durable. If this fails, the event is delivered again.
    pub fn acknowledge(self) -> io::Result<()> {
        let mut state = self.store.state();
        let State { watch: Some(watch), last_sequencer, .. } = &mut *state else { return Ok(()) };
        let before = watch.outstanding.first().copied();
        watch.outstanding.remove(&self.sequencer);
        let after = watch.outstanding.first().copied();
        if before == after {
            return Ok(());
        }
        // Not synced: if the mark is lost in a power cut, events are delivered again, but none is lost.
        let mark = after.map_or(*last_sequencer, |oldest| oldest - 1);
        let staged = self.store.staging_path();
        fs::write(&staged, mark.to_string())?;
        fs::rename(staged, self.store.folder.join(MARK_FILE))
    }
}

impl State {
    /// Announces a committed object to the subscriber, if there is one.
    pub(super) fn publish(&mut self, bucket: &str, metadata: &Metadata) {
        if let Some(watch) = &mut self.watch {
            let event = event(bucket, &metadata.key, &Summary::from(metadata));
            if !watch.announce(metadata.sequencer, event) {
                // The mark is not changed, so the next subscriber begins there.
                self.watch = None;
            }
        }
    }
}

fn event(bucket: &str, key: &str, object: &Summary) -> ObjectCreated {
    ObjectCreated {
        bucket: bucket.to_owned(),
        key: key.to_owned(),
        size: object.size,
        etag: object.etag.clone(),
        sequencer: format!("{:016x}", object.sequencer),
    }
}
