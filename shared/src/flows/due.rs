//! What a due item is there for, by its kind.

use jiff::Timestamp;

use super::{turn, wake};
use crate::bus::Event;
use crate::context::Cx;
use crate::problem::Result;
use crate::store::{DueItem, DueTarget};

/// Looks at an item that is due. The item may have come twice or late: what to do is decided from the stored state.
///
/// # Errors
/// When the table does not answer; the message comes again.
pub async fn look_at(cx: &Cx, item: &DueItem, deadline: Timestamp) -> Result<()> {
    if cx.stopping.is_set() {
        // Another process will find it: it stays due.
        return Ok(());
    }
    match item.target {
        DueTarget::Action(id) => wake::wake(cx, &item.owner, id, deadline).await,
        DueTarget::Run(id) => turn::take_over(cx, &item.owner, id, deadline).await,
    }
}

/// Sends an executor at once. If the bus does not take it, the next sweep does the same within a minute.
pub async fn dispatch(cx: &Cx, item: &DueItem) {
    if let Err(error) = cx.bus.publish(&[Event::Due(item.clone())]).await {
        tracing::warn!(cause = %error, "a due item waits for the next sweep");
    }
}
