//! The places that one invocation of an executor holds for the owners of its runs. [`domain::background::places`] has the rules.
//!
//! All runs of an owner in one invocation share one place. The invocation takes the place before it claims the first of these
//! runs, renews its lease while they are under way, and gives it back after the last one. A run that finds no free place goes on
//! the owner's backlog (`backlog.rs`). An invocation that gives a place back dispatches the backlog. Messages share another place, and
//! a message that finds none is sent a little later.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base::clock::Clock;
use domain::background::lease::Lease;
use domain::background::places::{self, Free, Full, LEASE, Purpose, RENEW_EVERY};
use domain::ids::Owner;
use uuid::Uuid;

use super::backlog;
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::process::held_places::{AbortOnDrop, Entered, Held, OfOwner, Places};
use crate::store::{Store, Tries};

/// The shortest wait of a holder before it renews its lease.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);

impl Places {
    /// Lets a run of this owner use the place that this invocation has, or a place that it takes now.
    ///
    /// # Errors
    /// If the table does not answer. The inner error says that no place is free.
    pub async fn enter(
        &self,
        cx: &Cx,
        owner: &Owner,
        by_hand: bool,
    ) -> Result<std::result::Result<Entered, Full>> {
        let entered = self.enter_for(cx, owner, Purpose::Runs, by_hand).await?;
        if entered.is_err() {
            let of = self.of(owner, Purpose::Runs);
            let _place = of.place.lock().await;
            if !of.put_off.load(Ordering::Acquire) {
                backlog::mark(cx, owner).await?;
                of.put_off.store(true, Ordering::Release);
            }
        }
        Ok(entered)
    }

    /// Lets a message of this owner use the place that this invocation has, or a place that it takes now.
    ///
    /// # Errors
    /// If the table does not answer. The inner error says that no place is free.
    pub async fn enter_to_send(&self, cx: &Cx, owner: &Owner) -> Result<std::result::Result<Entered, Full>> {
        self.enter_for(cx, owner, Purpose::Messages, false).await
    }

    async fn enter_for(
        &self,
        cx: &Cx,
        owner: &Owner,
        purpose: Purpose,
        by_hand: bool,
    ) -> Result<std::result::Result<Entered, Full>> {
        let of = self.of(owner, purpose);
        let mut place = of.place.lock().await;
        let now = cx.clock.now();
        let usable =
            place.as_ref().filter(|held| !held.lease.is_over(now) && (by_hand || !held.only_by_hand));
        let is_last = match usable {
            Some(held) => held.is_last,
            None => match take(cx, (owner, purpose), &of, by_hand).await? {
                Ok(taken) => {
                    let is_last = taken.is_last;
                    if let Some(former) = place.replace(taken) {
                        // Runs by hand that are under way use the new place from now on.
                        let former_place = (purpose, former.number);
                        let _ = cx.store.free_place(owner, former_place, former.version).await?;
                    }
                    is_last
                }
                Err(full) => return Ok(Err(full)),
            },
        };
        of.runs.fetch_add(1, Ordering::AcqRel);
        drop(place);
        Ok(Ok(Entered { of, owner: owner.clone(), purpose, is_last }))
    }

    /// Gives back the remaining places at the end of the invocation. Where a place is free by now, it also dispatches the backlog of runs that
    /// this invocation has put off: the place may have been given back before they were on it.
    pub async fn leave_all(&self, cx: &Cx) {
        for ((owner, purpose), of) in self.all() {
            let left = match free(cx, (&owner, purpose), &of).await {
                Ok(false) if of.put_off.load(Ordering::Acquire) => {
                    backlog::dispatch_if_free(cx, &owner).await
                }
                freed => freed.map(|_| ()),
            };
            if let Err(error) = left {
                tracing::warn!(cause = %error.causes(), "a place could not be given back; its lease will end");
            }
        }
    }
}

impl Entered {
    /// Ends the use of the place by a run or a message. After the last one the place is given back.
    pub async fn leave(self, cx: &Cx) {
        let (of, owner, purpose) = (Arc::clone(&self.of), self.owner.clone(), self.purpose);
        drop(self);
        if let Err(error) = free(cx, (&owner, purpose), &of).await {
            tracing::warn!(cause = %error.causes(), "a place could not be given back; its lease will end");
        }
    }
}

/// Gives the place back if nothing uses it, and dispatches the backlog of runs. `false` if there was no place to give back.
async fn free(cx: &Cx, (owner, purpose): (&Owner, Purpose), of: &OfOwner) -> Result<bool> {
    let mut place = of.place.lock().await;
    if of.runs.load(Ordering::Acquire) > 0 {
        return Ok(false);
    }
    let Some(held) = place.take() else { return Ok(false) };
    let _ = cx.store.free_place(owner, (purpose, held.number), held.version).await?;
    drop(place);
    if purpose == Purpose::Runs {
        backlog::dispatch(cx, owner).await?;
    }
    Ok(true)
}

async fn take(
    cx: &Cx,
    (owner, purpose): (&Owner, Purpose),
    of: &Arc<OfOwner>,
    by_hand: bool,
) -> Result<std::result::Result<Held, Full>> {
    let executors = cx.config.executors.count;
    let mut tries = Tries::default();
    loop {
        // Each refusal means that another executor has taken a place.
        if tries.next().await.is_err() {
            let executors = match purpose {
                Purpose::Runs => places::of_owner(executors),
                Purpose::Messages => places::of_messages(executors),
            };
            return Ok(Err(Full { executors }));
        }
        let taken = cx.store.places(owner, purpose).await?;
        let leases: Vec<_> = taken.iter().map(|(place, _)| *place).collect();
        let now = cx.clock.now();
        let chosen = match purpose {
            Purpose::Runs => places::choose(&leases, executors, by_hand, now, rand::random()),
            Purpose::Messages => places::choose_for_messages(&leases, executors, now, rand::random()),
        };
        let Free { number, is_last } = match chosen {
            Ok(free) => free,
            Err(full) => return Ok(Err(full)),
        };
        let version = taken.iter().find(|((n, _), _)| *n == number).map_or(0, |(_, version)| *version);
        let lease = Lease::take(cx.clock.uuid(), now, LEASE);
        if cx.store.take_place(owner, (purpose, number), version, &lease).await?.done() {
            let renews = tokio::spawn(renew(
                cx.clock.clone(),
                cx.store.direct(),
                (owner.clone(), purpose),
                Arc::downgrade(of),
                lease.holder,
            ));
            let renews = AbortOnDrop(renews.abort_handle());
            let only_by_hand = purpose == Purpose::Runs && number >= places::of_owner(executors);
            return Ok(Ok(Held {
                number,
                version: version + 1,
                lease,
                is_last,
                only_by_hand,
                _renews: renews,
            }));
        }
    }
}

/// Renews the lease of a place as long as this invocation holds it. It has no `Cx`, because a `Cx` would keep the places alive.
async fn renew(
    clock: Clock,
    store: Store,
    (owner, purpose): (Owner, Purpose),
    of: std::sync::Weak<OfOwner>,
    holder: Uuid,
) {
    loop {
        // With the manual clock, `sleep` may return at once.
        tokio::join!(clock.sleep(RENEW_EVERY.unsigned_abs()), tokio::time::sleep(SHORTEST_PAUSE));
        let Some(of) = of.upgrade() else { return };
        let mut place = of.place.lock().await;
        let Some(held) = place.as_mut().filter(|held| held.lease.is_held_by(holder)) else { return };
        let lease = held.lease.renew(clock.now(), LEASE);
        if lease.until.duration_since(held.lease.until) < RENEW_EVERY / 2 {
            continue;
        }
        match store.take_place(&owner, (purpose, held.number), held.version, &lease).await {
            Ok(written) if written.done() => (held.lease, held.version) = (lease, held.version + 1),
            // The lease ended, and another executor has the place. The runs here continue. The next run takes another place.
            Ok(_) => {
                tracing::warn!("the lease of a place ended before it was renewed");
                *place = None;
                return;
            }
            Err(error) => {
                let error = Error::from(error);
                tracing::warn!(cause = %error.causes(), "the lease of a place was not renewed; it will be tried again");
            }
        }
    }
}
