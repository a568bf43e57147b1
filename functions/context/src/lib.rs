//! The memory of a coding assistant, for when its conversation is gone. It consists of the context documents of a
//! project's workflows, as JSON and as Markdown, with their versions; and of the logs of the assistant's agents, which
//! its hooks report.
//!
//! The function streams, because an export is as large as the logs, and an import takes longer than API Gateway
//! otherwise waits.

mod documents;
mod hooks;
mod logs;
mod recall;
mod routes;

use models::Models;
pub use routes::describe;
use shared::runtime::function::{Function, Trigger};

pub const FUNCTION: Function = Function {
    name: "context",
    trigger: Trigger::Http { routes: routes::router, streaming: true },
    models: Models::none,
    areas: &[],
};
