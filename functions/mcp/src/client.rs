//! The client of a request: who it is, which context document it means, and how it reaches the routes.

use domain::accounts::scopes::Scope;
use domain::ids::Owner;
use domain::tools::ToolSets;
use shared::edge::extract::{Actor, Caller, Once};
use shared::flows::projects::documents::DocumentName;
use shared::{Cx, Error};

#[derive(Clone)]
pub struct Client {
    pub cx: Cx,
    pub owner: Owner,
    pub scope: Scope,
    /// Who is noted in ledgers.
    pub by: Actor,
    /// A tool that writes commits with it, so that the request acts once. The SDK calls tools in a task of their own, so
    /// nothing else could connect them with the request.
    pub once: Once,
    /// The context document of calls that name none. It is part of the server's address.
    pub place: DocumentName,
    /// The sets of tools that the server's address names.
    pub sets: ToolSets,
    /// What the client writes before a route.
    base: String,
}

impl Client {
    pub fn new(cx: Cx, caller: Caller, once: Once, place: DocumentName, sets: ToolSets) -> Self {
        let by = caller.actor();
        let Caller { owner, scope, .. } = caller;
        Self { cx, owner, scope, by, once, place, sets, base: shared::request::path_for_client("") }
    }

    /// The path of a route as the client has to write it.
    pub fn path(&self, route: &str) -> String {
        format!("{}{route}", self.base)
    }
}

/// The message of an error for the caller. An error of the server is also logged.
pub fn message(error: Error) -> String {
    if error.status().is_server_error() {
        tracing::error!(code = error.code(), cause = %error.causes(), "a call over MCP failed");
    }
    match error {
        Error::Invalid(errors) => errors.to_string(),
        other => other.detail(),
    }
}
