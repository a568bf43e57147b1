//! Who calls, and what the caller has seen.

use domain::accounts::scopes::Scope;
use domain::ids::Owner;

/// The caller. [`crate::edge::app`] adds it to the request after authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub owner: Owner,
    /// The highest scope of the credentials.
    pub scope: Scope,
}

/// The version that the client has edited, from `If-Match: "7"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IfMatch(pub u64);
