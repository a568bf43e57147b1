//! Agents: set up by talking, list, read, change, delete.
//!
//! `POST /setup/chat` asks its questions until the model signals that it has all it needs; the draft it arrives at is
//! what `POST /agents` takes. An agent's numbers (assets, actions, cost) come with it. Deleting an agent deletes all
//! that belongs to it.

mod routes;

pub use routes::describe;
use shared::function::{Function, Trigger};
use shared::models::Models;

pub const FUNCTION: Function = Function {
    name: "agents",
    trigger: Trigger::Http { routes: routes::router, streaming: true },
    models: Models::from_config,
};
