//! Memory: what is known of a person's conversations and work. It is read as JSON and as Markdown, searched, corrected and forgotten, and
//! other programs add their sessions.
//!
//! The daily synchronisation and the weekly clean-up need no function of their own: the sweep finds the memories that are due, like
//! everything else, and the executors work on them.

mod facts;
mod read;
mod routes;
mod write;

use models::Models;
pub use routes::describe;
use shared::runtime::function::{Function, Trigger};

pub const FUNCTION: Function = Function {
    name: "memory-recall",
    trigger: Trigger::Http { routes: routes::router, streaming: true },
    models: Models::from_config,
    areas: &[],
};
