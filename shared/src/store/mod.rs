//! The single table: which record is stored under which key, and the operations to read and write it.
//!
//! `records` lists every kind of record, and [`keys`] builds the keys. [`table`] has the basic operations; each area has its own file. All edits use optimistic
//! locking: a write names the version that was read, and the loser of a race is refused.

pub mod keys;
pub mod table;

mod accounts;
mod actions;
mod agents;
pub mod alerts;
mod api_keys;
mod assets;
pub mod chats;
pub mod deletions;
pub mod documents;
pub mod due;
mod due_item;
mod enrichments;
mod exports;
pub mod history;
mod idempotency;
mod imports;
mod job_runs;
mod jobs;
pub mod living;
pub mod log_imports;
pub mod logs;
pub mod memory;
pub mod messages;
mod models;
pub mod notebooks;
pub mod notices;
pub mod partitions;
pub mod places;
mod practices;
mod projects;
mod proposals;
mod provider_keys;
pub mod quota;
mod rates;
mod record_kinds;
pub mod restore;
pub mod runs;
mod secrets;
mod servers;
pub mod spend;
pub mod steps;
mod themes;
pub mod threads;
mod tries;
pub mod usage;
mod walk;
pub mod watchdog;
pub mod watched;
mod watches;

pub use api_keys::ApiKey;
pub use due::DueEntry;
pub use due_item::{DueItem, DueTarget};
pub use idempotency::{Claim, ClaimedRequest, IdempotencyRecord, Once, RequestState};
pub use jobs::Job;
pub use models::ModelSettings;
pub use provider_keys::ProviderKey;
pub use secrets::OwnSecret;
pub use servers::{OwnServer, SealedKey};
pub use table::{Attributes, Store, StoreError, Versioned};
pub use tries::Tries;
pub use walk::Walk;
