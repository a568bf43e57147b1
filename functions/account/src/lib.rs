//! The account, its limits, API keys, provider keys, secrets, usage, its export, its import, its deletion,
//! and the switch that stops everything.
//!
//! An API key is shown once, in the response that creates it. After that the platform only knows its hash. Provider keys and
//! secrets are never shown; they are stored encrypted.

mod api_keys;
mod deletion;
mod export;
mod import;
mod profile;
mod provider_keys;
mod secrets;
mod servers;
mod stop;
mod usage;

use models::Models;
use shared::runtime::function::{Function, Trigger};

shared::routes!(in api_keys, deletion, export, import, profile, provider_keys, secrets, servers, stop, usage);

pub const FUNCTION: Function = Function {
    name: "account",
    trigger: Trigger::Http { routes: router, streaming: false },
    models: Models::none,
    areas: &[&themes::area::AREA],
};
