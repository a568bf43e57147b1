//! One turn with an agent, streamed; chats: list, read, append, reset; the conversation about an action; proposals.
//!
//! A chat keeps what was said and names what it has led to. What a reply proposes waits on the server for a person's
//! yes, so that another device sees it.

mod actions;
mod chats;
mod proposals;
mod routes;
mod runs;
mod turn;

pub use routes::describe;
use shared::function::{Function, Trigger};
use shared::models::Models;

pub const FUNCTION: Function = Function {
    name: "agent-chat",
    trigger: Trigger::Http { routes: routes::router, streaming: true },
    models: Models::from_config,
};
