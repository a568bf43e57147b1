//! Actions: work that an agent does later.
//!
//! An action is defined (directly or from a proposal) and approved by a person, for exactly this content. Then it runs
//! by its schedule or by hand. Every due time has a record of its result.

mod approvals;
mod history;
mod lifecycle;
mod routes;
mod runs;

use models::Models;
use shared::runtime::function::{Function, Trigger};

pub const FUNCTION: Function = Function {
    name: "action-define",
    trigger: Trigger::Http { routes: router, streaming: true },
    models: Models::none,
    areas: &[],
};

shared::routes!(in routes, lifecycle, approvals, runs, history);
