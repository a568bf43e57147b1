//! Assets: save, list, read, versions, delete.
//!
//! An asset keeps every version of its content. A proposal can be saved once; saving it consumes it.

mod download;
mod routes;

use models::Models;
pub use routes::describe;
use shared::runtime::function::{Function, Trigger};

// Streaming, because a large content could exceed Lambda's limit for the JSON of a buffered response.
pub const FUNCTION: Function = Function {
    name: "asset-save",
    trigger: Trigger::Http { routes: routes::router, streaming: true },
    models: Models::none,
};
