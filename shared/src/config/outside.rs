//! Tools that act outside the platform.
//!
//! The loop stores a mark before such a call, and removes the mark when it stores the result. So no such call is made twice
//! unnoticed. See `docs/architecture.md`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use domain::agent_loop::CallResult;
use domain::ids::Owner;
use domain::tools::ToolDef;
use futures::future::BoxFuture;
use serde_json::Value;

/// The longest time that a call may take. It is shorter than the time between the put-down of a run and the end of its process.
pub const LONGEST_CALL: Duration = Duration::from_secs(50);

/// A call that is made now.
#[derive(Clone, Debug)]
pub struct OutsideCall {
    pub owner: Owner,
    pub tool: &'static ToolDef,
    pub arguments: Value,
    /// The idempotency key. It is the same for every attempt at this call, and an idempotent tool does the work once per key.
    pub key: String,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Called {
    /// The result is known: the call succeeded, or it was refused and did nothing.
    Done(CallResult),
    /// The call was sent, and it is not known whether it happened.
    Unknown,
}

/// Makes calls outside the platform.
pub trait Outside: Send + Sync {
    /// The tools. Each of them has the effect [`Outside`](domain::tools::Effect::Outside).
    fn tools(&self) -> Vec<&'static ToolDef>;

    /// The expected cost of a call, in micro-dollars.
    fn cost_micros(&self, _tool: &ToolDef, _arguments: &Value) -> Option<i64> {
        None
    }

    fn call(&self, call: OutsideCall) -> BoxFuture<'static, Called>;
}

/// The tools of this installation that act outside the platform.
#[derive(Clone, Default)]
pub struct OutsideTools(Option<Arc<dyn Outside>>);

impl OutsideTools {
    #[must_use]
    pub fn new(tools: Arc<dyn Outside>) -> Self {
        Self(Some(tools))
    }

    #[must_use]
    pub fn tools(&self) -> Vec<&'static ToolDef> {
        self.0.as_ref().map(|outside| outside.tools()).unwrap_or_default()
    }

    #[must_use]
    pub fn find(&self, name: &str) -> Option<&'static ToolDef> {
        self.tools().into_iter().find(|tool| tool.name == name)
    }

    #[must_use]
    pub fn cost_micros(&self, tool: &ToolDef, arguments: &Value) -> Option<i64> {
        self.0.as_ref()?.cost_micros(tool, arguments)
    }

    /// Makes a call. If it does not end within [`LONGEST_CALL`], its result is unknown.
    pub async fn call(&self, call: OutsideCall) -> Called {
        match &self.0 {
            None => Called::Done(CallResult::refused(format!("there is no tool {}", call.tool.name))),
            Some(outside) => {
                tokio::time::timeout(LONGEST_CALL, outside.call(call)).await.unwrap_or(Called::Unknown)
            }
        }
    }
}

impl fmt::Debug for OutsideTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.tools().iter().map(|tool| tool.name)).finish()
    }
}
