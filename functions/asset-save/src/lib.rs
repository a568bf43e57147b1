//! What agents keep: assets (save, list, read, versions, delete), and the notebooks of actions.
//!
//! An asset keeps every version of its content. A proposal can be saved once; saving it consumes it.

mod download;
mod notebook;
mod routes;

use models::Models;
use shared::runtime::function::{Function, Trigger};

// Streaming, because a large content could exceed Lambda's limit for the JSON of a buffered response.
pub const FUNCTION: Function = Function {
    name: "asset-save",
    trigger: Trigger::Http { routes: router, streaming: true },
    models: Models::none,
    areas: &[],
};

shared::routes!(in routes, notebook);
