//! Scopes: what the holder of credentials may do.
//!
//! The scopes are ordered. `admin` includes `write`, and `write` includes `read`. So one scope, the highest, says
//! everything about a key.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ceilings::CeilingOf;
use crate::tools::Effect;

/// What an API key may do. A higher scope includes the lower ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Read everything except what belongs to `admin`.
    Read,
    /// Change things, run models, approve actions, and raise ceilings of runs, agents and actions.
    Write,
    /// Manage API keys, provider keys, secrets, and the account: its settings, export, import and deletion. Raise the ceilings of its days
    /// and months.
    Admin,
}

/// The text does not name a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be `read`, `write` or `admin`")]
pub struct UnknownScope;

impl Scope {
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }

    /// This scope and all that it includes, lowest first.
    #[must_use]
    pub fn with_included(self) -> Vec<Self> {
        Self::ALL.into_iter().filter(|scope| *scope <= self).collect()
    }

    #[must_use]
    pub fn includes(self, needed: Self) -> bool {
        needed <= self
    }

    /// The scope that a request needs, by its method and the path of its route with the names of parameters.
    ///
    /// The rules are by method and prefix, so a new route has a scope without being named here.
    #[must_use]
    pub fn needed(method: &str, path: &str) -> Self {
        let reads = matches!(method, "GET" | "HEAD" | "OPTIONS");
        match path {
            // Keys, exports, imports. The list of keys and the address of an export are for `admin`, too.
            _ if path.starts_with("/account/") => Self::Admin,
            "/account" if !reads => Self::Admin,
            // Each tool has its own scope, see `Self::of_tool`.
            "/mcp" => Self::Read,
            _ if reads => Self::Read,
            _ => Self::Write,
        }
    }

    /// The scope that a call of a tool needs.
    #[must_use]
    pub const fn of_tool(effect: Effect) -> Self {
        match effect {
            Effect::Read => Self::Read,
            Effect::Ask | Effect::Deliver | Effect::Outside | Effect::Propose | Effect::Write => Self::Write,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scope {
    type Err = UnknownScope;
    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        Self::ALL.into_iter().find(|scope| scope.name() == text).ok_or(UnknownScope)
    }
}

impl Scope {
    /// The scope that an approval needs that raises a ceiling: the same as the route that sets it.
    #[must_use]
    pub fn to_raise(ceiling: CeilingOf) -> Self {
        let path = match ceiling {
            CeilingOf::Run | CeilingOf::ActionMonth => "/actions/{action_id}",
            CeilingOf::AgentMonth => "/agents/{agent_id}",
            CeilingOf::Day | CeilingOf::Month => "/account",
        };
        Self::needed("PATCH", path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_needs_a_scope_by_its_method_and_prefix() {
        for (method, path, needed) in [
            ("GET", "/agents", Scope::Read),
            ("HEAD", "/agents/{agent_id}", Scope::Read),
            ("POST", "/agents", Scope::Write),
            ("DELETE", "/assets/{asset_id}", Scope::Write),
            ("PUT", "/models/settings", Scope::Write),
            ("POST", "/v1/chat/completions", Scope::Write),
            ("GET", "/v1/models", Scope::Read),
            ("POST", "/mcp", Scope::Read),
            ("GET", "/account", Scope::Read),
            ("PATCH", "/account", Scope::Admin),
            ("DELETE", "/account", Scope::Admin),
            ("GET", "/account/api-keys", Scope::Admin),
            ("POST", "/account/api-keys", Scope::Admin),
            ("PUT", "/account/provider-keys/{provider}", Scope::Admin),
            ("GET", "/account/exports/{export_id}", Scope::Admin),
            ("POST", "/account/import", Scope::Admin),
            // Neither a new route nor a new method is open by accident.
            ("POST", "/account/something-new", Scope::Admin),
            ("QUERY", "/something-new", Scope::Write),
            ("POST", "/accounts", Scope::Write),
        ] {
            assert_eq!(Scope::needed(method, path), needed, "{method} {path}");
        }
    }

    #[test]
    fn a_higher_scope_includes_the_lower_ones() {
        use Scope::{Admin, Read, Write};
        for (held, all) in [(Read, &[Read][..]), (Write, &[Read, Write]), (Admin, &[Read, Write, Admin])] {
            assert_eq!(held.with_included(), all);
            for scope in Scope::ALL {
                assert_eq!(held.includes(scope), all.contains(&scope), "{held} {scope}");
            }
            assert_eq!(held.name().parse(), Ok(held));
            assert_eq!(serde_json::to_value(held).unwrap(), held.name());
        }
        assert_eq!("Admin".parse::<Scope>(), Err(UnknownScope));
    }

    #[test]
    fn a_ceiling_is_raised_with_the_scope_that_sets_it() {
        for (of, scope) in [
            (CeilingOf::Run, Scope::Write),
            (CeilingOf::ActionMonth, Scope::Write),
            (CeilingOf::AgentMonth, Scope::Write),
            (CeilingOf::Day, Scope::Admin),
            (CeilingOf::Month, Scope::Admin),
        ] {
            assert_eq!(Scope::to_raise(of), scope, "{of:?}");
        }
    }
}
