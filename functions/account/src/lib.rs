//! The account, its limits, API keys, and usage.
//!
//! A key is shown once, in the response that creates it. After that the platform only knows its hash.

mod profile;
mod routes;

use shared::function::{Function, Trigger};
use shared::models::Models;

shared::routes!(in profile, routes);

pub const FUNCTION: Function = Function {
    name: "account",
    trigger: Trigger::Http { routes: router, streaming: false },
    models: Models::none,
};
