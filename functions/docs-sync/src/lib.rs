//! Living documents: texts that describe a project, and that a model keeps up to date with its commits. People, programs and coding
//! assistants read and write them here, and report commits. A synchronisation is asked for here; an executor does it.

mod commits;
mod documents;
mod hook;
mod routes;
mod sync;

use models::Models;
pub use routes::describe;
use shared::runtime::function::{Function, Trigger};

pub const FUNCTION: Function = Function {
    name: "docs-sync",
    trigger: Trigger::Http { routes: routes::router, streaming: false },
    models: Models::none,
    areas: &[],
};
