//! What a thing says by itself, between two looks of the watchdog, is counted and told at once.

use domain::ids::{NoticeId, Owner};
use domain::notices::of_watchdog::of_watchdog;
use domain::watchdog::{Observed, Say, Verdict};
use jiff::Timestamp;

use crate::aws::bus::{Event as BusEvent, WatchdogEvent, WatchdogEventKind};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::store::table::Write;
use crate::store::watched::watchdog::WatchdogAlert;
use crate::store::{Store, Versioned};

/// The writes for what a thing has said by itself between two looks: the alert or the recovery, and what the person is told. `said` is one
/// for each thing that was said. They belong into the transaction that stores what was said; the state of the watchdog is read here, so if
/// another look or report changes it meanwhile, that transaction is refused.
///
/// # Errors
/// If the table does not answer.
pub(super) async fn hear(
    cx: &Cx,
    owner: &Owner,
    observed: &Observed,
    (said, name): (&str, &str),
) -> Result<Vec<Write>> {
    let now = cx.clock.now();
    // Without a state, the account is being deleted, and nothing new may be left.
    let Some(Versioned { value: record, version }) = cx.store.watchdog(owner).await? else {
        return Ok(Vec::new());
    };
    let mut writes = Vec::new();
    let told = match record.heard(observed, now) {
        Some(looked) => {
            writes.push(Store::watchdog_write(owner, &looked.record, version, now)?);
            let say = looked.says.into_iter().next();
            if let Some(say) = &say {
                // What was said counts, whatever becomes of the event: a lost report would be worse than a lost event.
                if let Err(error) = cx.bus.publish(&[event(Some(owner), now, say)]).await {
                    let error = Error::from(error);
                    tracing::warn!(cause = %error.causes(), "an event of the watchdog was not published");
                }
                writes
                    .push(Store::watchdog_alert_write(owner, &WatchdogAlert { at: now, say: say.clone() })?);
            }
            say
        }
        // The alert was raised before. The person is told that it happened again, as of each run that fails.
        None if record.wants_to_hear(observed, now) => again(observed, now),
        None => None,
    };
    let seen = record.newest_seen(observed.check, &observed.item).unwrap_or_default();
    if let Some(event) = told.and_then(|say| of_watchdog(&say, Some(name), seen)) {
        let id = NoticeId::of(&format!("watchdog/{}/{}/{said}", observed.check, observed.item), now);
        writes.push(Store::happened_write(owner, id, event, now)?);
    }
    Ok(writes)
}

/// The alert about an anomaly that is known already.
fn again(observed: &Observed, now: Timestamp) -> Option<Say> {
    let Verdict::Anomaly { what, remedy, snapshot } = &observed.verdict else { return None };
    Some(Say::Alert {
        check: observed.check,
        item: observed.item.clone(),
        what: what.clone(),
        remedy: remedy.clone(),
        count: 1,
        since: now,
        last3: vec![snapshot.clone()],
        heal: None,
    })
}

/// What the watchdog says, for the bus.
pub(super) fn event(owner: Option<&Owner>, at: Timestamp, say: &Say) -> BusEvent {
    let (alert, check, item, count, since) = match say {
        Say::Alert { check, item, count, since, .. } => (WatchdogEventKind::Alert, check, item, count, since),
        Say::Recovery { check, item, count, since, .. } => {
            (WatchdogEventKind::Recovery, check, item, count, since)
        }
    };
    BusEvent::WatchdogAlert(WatchdogEvent {
        owner: owner.cloned(),
        alert,
        check: *check,
        item: item.clone(),
        count: *count,
        since: *since,
        at,
    })
}
