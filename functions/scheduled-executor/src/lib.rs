//! Executes due items: an action with due times to decide and an occurrence to run, or a chat turn whose process has died.
//!
//! Up to ten items run at once. Each has its own lease and deadline. An item that fails or panics does not affect the others.
//!
//! Amazon SES reports e-mails that came back to the same queue.
//!
//! A message of the queue names only the due item. The work itself is read from the table and decided by the domain, so
//! a repeated message runs nothing twice.

use futures::FutureExt;
use futures::future::BoxFuture;
use models::Models;
use serde_json::Value;
use shared::flows::executor::route;
use shared::flows::notices::mail;
use shared::process::metrics;
use shared::runtime::function::{Function, Invocation, Trigger};
use shared::store::DueItem;
use shared::{Cx, Error, Result};

pub const FUNCTION: Function = Function {
    name: "scheduled-executor",
    trigger: Trigger::Queue { handler: execute },
    models: Models::from_config,
    areas: &[&themes::area::WITH_TOOLS],
};

fn execute(cx: Cx, invocation: Invocation, message: Value) -> BoxFuture<'static, Result<()>> {
    async move {
        if mail::is_of_mail(&message) {
            return mail::take(&cx, &message).await;
        }
        let item: DueItem = serde_json::from_value(message)
            .map_err(|error| Error::internal(format!("the message does not name a due item: {error}")))?;
        let looked_at = route::process(&cx, &item, invocation.deadline).await;
        if looked_at.is_err() {
            // The index brings the item again in three minutes, long before the queue does. The metric makes the
            // failure visible.
            metrics::emit(FUNCTION.name, cx.clock.now(), &[("FailedItems", "Count", 1)]);
        }
        looked_at
    }
    .boxed()
}
