//! Assets: save, list, read, versions, delete.
//!
//! What an agent has delivered is kept with every content it has had. A proposal is saved once: the save takes it.

mod download;
mod routes;

pub use routes::describe;
use shared::function::{Function, Trigger};
use shared::models::Models;

// Streamed, because a content may be larger in the JSON of a buffered answer than Lambda takes.
pub const FUNCTION: Function = Function {
    name: "asset-save",
    trigger: Trigger::Http { routes: routes::router, streaming: true },
    models: Models::none,
};
