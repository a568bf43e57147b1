//! Agents: set up by a conversation, list, read, change, delete. The models that they use. The practices of a person.
//!
//! `POST /setup/chat` asks questions until the model signals that it knows enough. The resulting draft is the input of
//! `POST /agents`. An agent is returned with its numbers (assets, actions, cost). Deleting an agent deletes everything
//! that belongs to it.

mod agents;
mod history;
mod models;
mod overview;
mod practices;
mod routes;

use ::models::Models;
pub use routes::describe;
use shared::runtime::function::{Function, Trigger};

pub const FUNCTION: Function = Function {
    name: "agents",
    trigger: Trigger::Http { routes: routes::router, streaming: true },
    models: Models::from_config,
    areas: &[],
};
