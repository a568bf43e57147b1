//! What a coding assistant should still know when its own memory of the conversation is gone: the context document of a
//! project's workflow, as JSON and as Markdown, with its versions.

mod documents;
mod routes;

use shared::function::{Function, Trigger};

pub const FUNCTION: Function =
    Function { name: "context", trigger: Trigger::Http { routes: routes::router, streaming: false } };
