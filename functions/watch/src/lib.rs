//! What is watched: schedules that something else runs, their reports, and what became of their due times.
//!
//! There is a module for each resource.

mod jobs;
mod routes;
mod watchdog;
mod watched;

use models::Models;
pub use routes::describe;
use shared::runtime::function::{Function, Trigger};

pub const FUNCTION: Function = Function {
    name: "watch",
    trigger: Trigger::Http { routes: routes::router, streaming: true },
    models: Models::none,
    areas: &[],
};
