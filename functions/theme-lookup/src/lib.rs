//! A theme: its files, and which of them a request is about.
//!
//! Projects hold a theme each. Their files are written here or imported, and everything else asks the theme's index,
//! which is kept warm in the process.

mod answers;
mod files;
mod import;
mod projects;
mod routes;

pub use routes::describe;
use shared::function::{Function, Trigger};
use shared::models::Models;

pub const FUNCTION: Function = Function {
    name: "theme-lookup",
    trigger: Trigger::Http { routes: routes::router, streaming: true },
    models: Models::none,
};
