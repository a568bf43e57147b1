//! What a coding assistant should still know when its own memory of the conversation is gone: the context document of a
//! project's workflow, as JSON and as Markdown, with its versions; and the logs of the assistant's agents, which its hooks
//! report.
//!
//! It streams: an export is as large as what was logged, and an import takes longer than API Gateway waits else.

mod documents;
mod hooks;
mod logs;
mod recall;
mod routes;

pub use routes::describe;
use shared::function::{Function, Trigger};
use shared::models::Models;

pub const FUNCTION: Function = Function {
    name: "context",
    trigger: Trigger::Http { routes: routes::router, streaming: true },
    models: Models::none,
};
