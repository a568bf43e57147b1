//! The Model Context Protocol over streamable HTTP: the platform's tools, resources and prompts for coding assistants.
//!
//! The server has no sessions, because a Lambda keeps no state: every request is answered by itself, and the server sends
//! nothing on its own. The official SDK implements the protocol. The query parameters `project` and `workflow` of the address
//! choose the context document of calls that name none, and `tools` chooses the sets of tools.
//!
//! The tools are defined in [`domain::tools`]; here is what they do.

mod client;
mod params;
mod prompts;
mod resources;
mod routes;
mod server;
mod tools;

use models::Models;
pub use routes::describe;
use shared::runtime::function::{Function, Trigger};

pub const FUNCTION: Function = Function {
    name: "mcp",
    trigger: Trigger::Http { routes: routes::router, streaming: true },
    models: Models::none,
    areas: &[&themes::area::AREA],
};
