//! Runs every minute. It finds all items of all owners that will be due before the next sweep, and sends them to the executors
//! with the remaining delay.
//!
//! It is the only function that reads across owners. For that it uses the only index that contains items of all owners.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use models::Models;
use serde_json::{Value, json};
use shared::flows::executor::sweep::{self, Swept};
use shared::flows::watched::{pings, watchdog};
use shared::process::metrics;
use shared::runtime::function::{Function, Invocation, Trigger};
use shared::{Cx, Error, Result};

pub const FUNCTION: Function = Function {
    name: "schedule-sweep",
    trigger: Trigger::Timer { every: Duration::from_secs(60), newest: None, handler },
    models: Models::none,
    areas: &[],
};

fn handler(cx: Cx, invocation: Invocation) -> BoxFuture<'static, Result<Value>> {
    async move {
        let work = async { all_sent(sweep::sweep(&cx, invocation.deadline).await?) };
        let swept = pings::after(&cx, cx.config.pings.sweep.as_deref(), work).await?;
        watchdog::beat_of_sweep(&cx).await;
        let dispatched = i64::try_from(swept.published).unwrap_or(i64::MAX);
        let figures =
            [("DispatchLagMs", "Milliseconds", swept.oldest_lag_ms), ("Dispatched", "Count", dispatched)];
        if swept.published > 0 {
            tracing::info!(
                published = swept.published,
                oldest_lag_ms = swept.oldest_lag_ms,
                "due items were sent to the executors"
            );
        }
        // An alarm rings if they are missing: only a sweep that has ended well may write them.
        metrics::emit(FUNCTION.name, cx.clock.now(), &figures);
        Ok(json!(swept))
    }
    .boxed()
}

/// A sweep that could not send what is due has failed. The next one finds the same items.
fn all_sent(swept: Swept) -> Result<Swept> {
    match swept.failed {
        0 => Ok(swept),
        failed => Err(Error::internal(format!("the queue has refused {failed} due items"))),
    }
}
