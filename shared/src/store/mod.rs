//! The single table: which record is stored under which key, and the operations to read and write it.
//!
//! `records` lists every kind of record, and [`keys`] builds the keys. [`table`] has the basic operations; each area has its own file or folder. All edits use optimistic
//! locking: a write names the version that was read, and the loser of a race is refused.

pub mod keys;
pub mod table;

pub mod accounts;
pub mod actions;
pub mod agents;
pub mod chats;
pub mod due;
mod due_item;
mod idempotency;
pub mod logs;
pub mod memory;
pub mod notices;
pub mod partitions;
mod practices;
pub mod projects;
mod record_kinds;
pub mod restore;
pub mod runs;
mod tries;
mod walk;
pub mod watched;

pub use accounts::api_keys::ApiKey;
pub use accounts::models::ModelSettings;
pub use accounts::provider_keys::ProviderKey;
pub use accounts::secrets::OwnSecret;
pub use accounts::servers::{OwnServer, SealedKey};
pub use due::DueEntry;
pub use due_item::{DueItem, DueTarget};
pub use idempotency::{Claim, ClaimedRequest, IdempotencyRecord, Once, RequestState};
pub use runs::jobs::Job;
pub use table::{Attributes, Store, StoreError, Versioned};
pub use tries::Tries;
pub use walk::Walk;
