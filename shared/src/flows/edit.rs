//! The check of an edit: is the version that the client has seen still the current one?

use crate::error::{Error, Result};
use crate::request::caller::IfMatch;

/// Refuses an edit whose `If-Match` is not the current version.
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

/// Like [`check`], with a current state that must be read. It is read only for a refusal.
///
/// # Errors
/// 409 with the current state, and the errors of reading it.
pub async fn check_read<V: serde::Serialize>(
    if_match: Option<IfMatch>,
    version: u64,
    current: impl Future<Output = Result<V>>,
) -> Result<()> {
    match if_match {
        Some(IfMatch(seen)) if seen != version => check(if_match, version, &current.await?),
        _ => Ok(()),
    }
}
