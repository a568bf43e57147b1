//! Work that no client waits for: when it is sent, who may do it, how often it is tried, and the record of it.
//!
//! - [`attempts`]: how often a run may be tried
//! - [`dispatch`]: when what is due is sent to the executors
//! - [`jobs`]: one record for every background job
//! - [`lease`]: who may work on something, and until when
//! - [`places`]: how many executors work on one owner's runs at once

pub mod attempts;
pub mod dispatch;
pub mod jobs;
pub mod lease;
pub mod places;
