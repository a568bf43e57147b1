//! Turns with an agent, streamed; chats (list, read, append, reset); the conversation about an action; proposals.
//!
//! A chat stores its messages and the ids of what it has produced. The proposals of a reply wait on the server for a
//! person's approval, so that every device sees them.

mod actions;
mod chats;
mod completions;
mod proposals;
mod routes;
mod runs;
mod turn;

use models::Models;
pub use routes::describe;
use shared::runtime::function::{Function, Trigger};

pub const FUNCTION: Function = Function {
    name: "agent-chat",
    trigger: Trigger::Http { routes: routes::router, streaming: true },
    models: Models::from_config,
    areas: &[&themes::area::WITH_TOOLS],
};
