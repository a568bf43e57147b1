//! Who calls, and what the caller has seen.

use domain::accounts::scopes::Scope;
use domain::history::ChangedBy;
use domain::ids::{ApiKeyId, ChannelId, Owner};

/// The caller. [`crate::edge::app`] adds it to the request after authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub owner: Owner,
    /// The highest scope of the credentials.
    pub scope: Scope,
    /// The API key, if the caller uses one.
    pub key: Option<ApiKeyId>,
}

impl Caller {
    /// Who makes the changes that this caller asks for.
    #[must_use]
    pub fn actor(&self) -> Actor {
        self.key.map_or(Actor::Person, Actor::ApiKey)
    }
}

/// Who asks for a change. Flows that change an action or an agent take it next to the request's [`Once`](crate::store::Once),
/// and note it in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A person who is signed in, or who uses an installation without authentication.
    Person,
    /// The holder of an API key.
    ApiKey(ApiKeyId),
    /// The reader of a message of this channel.
    Channel(ChannelId),
}

impl From<Actor> for ChangedBy {
    fn from(actor: Actor) -> Self {
        match actor {
            Actor::Person => Self::Person,
            Actor::ApiKey(key_id) => Self::ApiKey { key_id },
            Actor::Channel(channel_id) => Self::Channel { channel_id },
        }
    }
}

/// The version that the client has edited, from `If-Match: "7"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IfMatch(pub u64);
