//! The platform pauses an action: the entry of the ledger, and the event.

use domain::actions::Action;
use domain::history::Change;
use domain::ids::Owner;
use jiff::Timestamp;

use crate::aws::bus::{ActionAlert, ActionAlertKind, Event};
use crate::context::Cx;
use crate::error::Result;
use crate::process::metrics;
use crate::store::agents::history::Ledger;
use crate::store::table::Write;
use crate::store::{Store, Versioned};

/// Whether the platform has just paused it.
fn is_new(before: &Action, after: &Action) -> bool {
    before.paused_because.is_none() && after.paused_because.is_some()
}

/// The entry of the ledger, if this change is a pause by the platform. It belongs to the transaction of the change.
pub(super) fn noted(
    owner: &Owner,
    read: &Versioned<Action>,
    next: &Action,
    now: Timestamp,
) -> Result<Option<Write>> {
    if !is_new(&read.value, next) {
        return Ok(None);
    }
    let change = Change::paused_by_platform(read.version + 1, now);
    Ok(Some(Store::change_write(owner, Ledger::Action(next.id), &change)?))
}

/// Tells the operator of a pause by the platform, after the transaction. If the process dies before, the event is lost; the action, its
/// history and `why` have the reason.
pub async fn tell(cx: &Cx, owner: &Owner, before: &Action, after: &Action) {
    let (true, Some(failures)) = (is_new(before, after), &after.failures) else { return };
    tracing::warn!(action_id = %after.id, code = failures.code, "an action is paused after three equal failures");
    metrics::emit("scheduled-executor", cx.clock.now(), &[("ActionsPaused", "Count", 1)]);
    let alert = ActionAlert {
        owner: owner.clone(),
        agent_id: after.agent_id,
        action_id: after.id,
        alert: ActionAlertKind::Paused,
        codes: failures.code.clone(),
        due_at: None,
    };
    if let Err(error) = cx.bus.publish(&[Event::ActionAlert(alert)]).await {
        tracing::warn!(cause = %error, "the event of a paused action was not published");
    }
}
