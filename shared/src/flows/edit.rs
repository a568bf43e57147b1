//! Optimistic edits: read, decide, write at the version that was read; once more where another was faster.

use crate::extract::IfMatch;
use crate::problem::{Error, Result};

/// How often an edit without `If-Match` is tried again that met another one.
pub const TRIES: u32 = 10;

/// Refuses an edit that was made against another version than the one that is there.
///
/// # Errors
/// 409 with the current state.
pub fn check(if_match: Option<IfMatch>, version: u64, current: &impl serde::Serialize) -> Result<()> {
    match if_match {
        Some(IfMatch(seen)) if seen != version => Err(Error::conflict_with(
            "version_conflict",
            format!("it has changed since version {seen}; this is version {version}"),
            current,
        )),
        _ => Ok(()),
    }
}

/// The answer to an edit that met others again and again.
#[must_use]
pub fn contended() -> Error {
    Error::Store(crate::store::StoreError::Contended)
}
