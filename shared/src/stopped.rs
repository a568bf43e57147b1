//! Whether an account is stopped. A stopped account begins no run, and calls no model and no tool.
//!
//! Whatever begins a run asks [`check`]. A run that is under way reads the account before each call of a model
//! ([`ceilings::of_owner`](crate::money::ceilings::of_owner)), before each call outside the platform, and twice a second
//! ([`Recorder::cancelled_because`](crate::agent_loop::recorder::Recorder::cancelled_because)). All reads are consistent and nothing
//! is cached, so this holds in every process.

use domain::ids::Owner;

use crate::context::Data;
use crate::error::{Error, Result};

/// Refuses to begin something in a stopped account.
///
/// # Errors
/// 409 `account_stopped` if the account is stopped.
pub async fn check(data: &Data, owner: &Owner) -> Result<()> {
    match data.store.direct().account(owner).await?.value.stop {
        Some(stop) => Err(Error::account_stopped(stop.at)),
        None => Ok(()),
    }
}
