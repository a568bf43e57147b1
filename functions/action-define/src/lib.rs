//! Actions: work that an agent does later.
//!
//! An action is defined (directly or from a proposal), approved (a person's yes to exactly this content), and due by its
//! schedule or run by hand. Every due time has a record of what became of it.

mod approvals;
mod lifecycle;
mod routes;
mod runs;

use shared::function::{Function, Trigger};
use shared::models::Models;

pub const FUNCTION: Function = Function {
    name: "action-define",
    trigger: Trigger::Http { routes: router, streaming: true },
    models: Models::none,
};

shared::routes!(in routes, lifecycle, approvals, runs);
