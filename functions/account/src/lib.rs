//! API keys and usage.
//!
//! A key is shown once, in the response that creates it. After that the platform only knows its hash.

mod routes;

pub use routes::describe;
use shared::function::{Function, Trigger};
use shared::models::Models;

pub const FUNCTION: Function = Function {
    name: "account",
    trigger: Trigger::Http { routes: routes::router, streaming: false },
    models: Models::none,
};
