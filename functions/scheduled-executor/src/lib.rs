//! One action that has something to do: due times decided, an occurrence run.
//!
//! The queue hands over `action.due` events, which say only which action. What is to be done is read from the table and
//! decided by the domain, so an event that comes twice runs nothing twice.

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use shared::bus::{ActionDue, Event};
use shared::flows::wake;
use shared::function::{Function, Invocation, Trigger};
use shared::models::Models;
use shared::{Cx, Error, Result};

pub const FUNCTION: Function = Function {
    name: "scheduled-executor",
    trigger: Trigger::Queue { detail_type: Event::ACTION_DUE, handler: execute },
    models: Models::from_config,
};

fn execute(cx: Cx, invocation: Invocation, detail: Value) -> BoxFuture<'static, Result<()>> {
    async move {
        let due: ActionDue = serde_json::from_value(detail)
            .map_err(|error| Error::internal(format!("the event names no action: {error}")))?;
        wake::wake(&cx, &due.owner, due.action_id, invocation.deadline).await
    }
    .boxed()
}
