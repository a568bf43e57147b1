//! Runs every two hours. It looks at the platform, and has the executors look at the people. It finds them in partitions of the index `due`
//! that no sweep reads, and sends a message for every hundred.

use std::time::Duration;

use domain::watchdog::look_at;
use futures::FutureExt;
use futures::future::BoxFuture;
use models::Models;
use serde_json::{Value, json};
use shared::flows::watched::{pings, watchdog};
use shared::process::metrics;
use shared::runtime::function::{Function, Invocation, Trigger};
use shared::{Cx, Result};

pub const FUNCTION: Function = Function {
    name: "watchdog",
    trigger: Trigger::Timer { every: Duration::from_secs(7_200), newest: Some(look_at), handler },
    models: Models::none,
    areas: &[],
};

fn handler(cx: Cx, invocation: Invocation) -> BoxFuture<'static, Result<Value>> {
    async move {
        let work = watchdog::send(&cx, invocation.deadline);
        let sent = pings::after(&cx, cx.config.pings.watchdog.as_deref(), work).await?;
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let figures = [
            ("OwnersLookedAt", "Count", count(sent.owners)),
            ("LooksRefused", "Count", count(sent.refused)),
            ("PlatformProblems", "Count", count(sent.wrong)),
        ];
        tracing::info!(
            owners = sent.owners,
            refused = sent.refused,
            wrong = sent.wrong,
            "the watchdog looks"
        );
        metrics::emit(FUNCTION.name, cx.clock.now(), &figures);
        Ok(json!(sent))
    }
    .boxed()
}
