//! The theme agent: a person says what should change in a theme, and reads along while the agent changes it.
//!
//! A turn is a run like any other: `/runs/{run_id}` has its record and its events, and cancels it. Its edits are a change set of the project,
//! which nobody else sees until it is applied.

mod chat;
mod routes;

use models::Models;
pub use routes::describe;
use shared::runtime::function::{Function, Trigger};

pub const FUNCTION: Function = Function {
    name: "theme-chat",
    trigger: Trigger::Http { routes: routes::router, streaming: true },
    models: Models::from_config,
    areas: &[&themes::area::WITH_TOOLS],
};
