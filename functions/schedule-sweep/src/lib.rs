//! Runs every minute. Everything that will be due before the next sweep, of all owners, is sent to the executors with
//! the remaining delay.
//!
//! Besides the watchdog and the memory sync, it is the only function that reads across owners, through the only index
//! for that.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use shared::flows::sweep;
use shared::function::{Function, Invocation, Trigger};
use shared::models::Models;
use shared::{Cx, Result, metrics};

pub const FUNCTION: Function = Function {
    name: "schedule-sweep",
    trigger: Trigger::Timer { every: Duration::from_secs(60), handler },
    models: Models::none,
};

fn handler(cx: Cx, invocation: Invocation) -> BoxFuture<'static, Result<Value>> {
    async move {
        let swept = sweep::sweep(&cx, invocation.deadline).await?;
        let dispatched = i64::try_from(swept.published).unwrap_or(i64::MAX);
        let figures =
            [("DispatchLagMs", "Milliseconds", swept.oldest_lag_ms), ("Dispatched", "Count", dispatched)];
        if swept.published > 0 {
            tracing::info!(
                published = swept.published,
                oldest_lag_ms = swept.oldest_lag_ms,
                "actions are due"
            );
        }
        metrics::emit(FUNCTION.name, cx.clock.now(), &figures);
        Ok(json!(swept))
    }
    .boxed()
}
