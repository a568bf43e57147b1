//! What one invocation of an executor knows about the places that it holds for the owners of its runs. [`crate::flows::executor::places`]
//! takes them and gives them back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use domain::background::lease::Lease;
use domain::background::places::Purpose;
use domain::ids::Owner;
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::AbortHandle;
use uuid::Uuid;

/// The places of an invocation. Clones share them.
#[derive(Clone, Default)]
pub struct Places(Arc<Inner>);

#[derive(Default)]
struct Inner {
    owners: Mutex<HashMap<(Owner, Purpose), Arc<OfOwner>>>,
    /// How many more runs the invocation may start.
    room: AtomicUsize,
}

#[derive(Default)]
pub(crate) struct OfOwner {
    pub(crate) place: AsyncMutex<Option<Held>>,
    /// How many runs or messages use the place.
    pub(crate) runs: AtomicUsize,
    /// Whether a run of this invocation found no place.
    pub(crate) put_off: AtomicBool,
}

pub(crate) struct Held {
    pub(crate) number: u32,
    pub(crate) version: u64,
    pub(crate) lease: Lease<Uuid>,
    /// Whether this was the owner's last free place.
    pub(crate) is_last: bool,
    /// Whether only runs that a person started by hand may use it.
    pub(crate) only_by_hand: bool,
    pub(crate) _renews: AbortOnDrop,
}

pub(crate) struct AbortOnDrop(pub(crate) AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The share of a run or a message in its invocation's place.
pub struct Entered {
    pub(crate) of: Arc<OfOwner>,
    pub(crate) owner: Owner,
    pub(crate) purpose: Purpose,
    /// Whether this was the owner's last free place.
    pub is_last: bool,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.of.runs.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Places {
    /// The places of an invocation that may start up to `room` runs in addition to those that it was called for.
    #[must_use]
    pub fn with_room(room: usize) -> Self {
        Self(Arc::new(Inner { room: AtomicUsize::new(room), ..Inner::default() }))
    }

    /// Reserves room for up to `wanted` additional runs. Returns for how many there was room.
    pub(crate) fn take_room(&self, wanted: usize) -> usize {
        let take = |room: usize| Some(room - room.min(wanted));
        let before = self.0.room.fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
        before.map_or(0, |room| room.min(wanted))
    }

    pub(crate) fn give_room_back(&self, room: usize) {
        self.0.room.fetch_add(room, Ordering::AcqRel);
    }

    pub(crate) fn of(&self, owner: &Owner, purpose: Purpose) -> Arc<OfOwner> {
        let mut owners = self.0.owners.lock().expect("no code panics while it holds the places");
        Arc::clone(owners.entry((owner.clone(), purpose)).or_default())
    }

    /// All owners that this invocation has runs or messages of.
    pub(crate) fn all(&self) -> Vec<((Owner, Purpose), Arc<OfOwner>)> {
        let owners = self.0.owners.lock().expect("no code panics while it holds the places");
        owners.iter().map(|(owner, of)| (owner.clone(), Arc::clone(of))).collect()
    }
}
