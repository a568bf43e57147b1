//! A theme: its files, and the files that a request is about.
//!
//! Each project has one theme. Its files are written or imported here. Everything else queries the theme's index, which
//! the process keeps in memory.

mod answers;
mod changes;
mod files;
mod import;
mod projects;
mod routes;

use models::Models;
pub use routes::describe;
use shared::runtime::function::{Function, Trigger};

pub const FUNCTION: Function = Function {
    name: "theme-lookup",
    trigger: Trigger::Http { routes: routes::router, streaming: true },
    models: Models::none,
    areas: &[&themes::area::AREA],
};
