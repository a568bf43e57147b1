//! The Model Context Protocol over streamable HTTP: what a coding assistant needs of the platform, as tools, resources and
//! prompts.
//!
//! Stateless, as a Lambda has to be: no session is kept, every request is answered by itself, and nothing is ever sent
//! without being asked for. The protocol is the official SDK's; here is what is behind it. `?project=` and `?workflow=` on the
//! address say which context document is meant where a call does not.

mod prompts;
mod resources;
mod routes;
mod server;
mod tools;

pub use routes::describe;
use shared::function::{Function, Trigger};
use shared::models::Models;

pub const FUNCTION: Function = Function {
    name: "mcp",
    trigger: Trigger::Http { routes: routes::router, streaming: true },
    models: Models::none,
};
