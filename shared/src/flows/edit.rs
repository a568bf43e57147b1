//! Optimistic edits: read, decide, write if the version is still the one that was read, and otherwise retry.

use std::time::{Duration, Instant};

use crate::edge::extract::IfMatch;
use crate::problem::{Error, Result};

/// How often an edit is tried if other writers change the record first.
const TRIES: u32 = 10;

/// The tries of an edit. It pauses before each try except the first, and has a limit.
///
/// ```ignore
/// let mut tries = Tries::default();
/// loop {
///     tries.next().await?;
///     // Read and decide. Return if the write is done; otherwise another writer was faster.
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Tries {
    made: u32,
    until: Until,
}

#[derive(Clone, Copy, Debug)]
enum Until {
    Tries(u32),
    Time(Instant),
}

impl Default for Tries {
    fn default() -> Self {
        Self::at_most(TRIES)
    }
}

impl Tries {
    /// At most this many.
    #[must_use]
    pub fn at_most(tries: u32) -> Self {
        Self { made: 0, until: Until::Tries(tries) }
    }

    /// As many tries as fit into this time, counted from now, but at least one.
    #[must_use]
    pub fn within(patience: Duration) -> Self {
        Self { made: 0, until: Until::Time(Instant::now() + patience) }
    }

    /// Starts the next try. The first starts at once, the others after a random pause that grows.
    ///
    /// # Errors
    /// 503 if the limit is reached.
    pub async fn next(&mut self) -> Result<()> {
        let is_over = match self.until {
            Until::Tries(most) => self.made >= most,
            Until::Time(end) => self.made > 0 && Instant::now() >= end,
        };
        if is_over {
            return Err(contended());
        }
        if self.made > 0 {
            crate::store::table::back_off(self.made - 1).await;
        }
        self.made += 1;
        Ok(())
    }
}

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

/// The error if other writers changed the record first at every try.
fn contended() -> Error {
    Error::Store(crate::store::StoreError::Contended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tries_have_an_end_and_pauses_between_them() {
        let began = Instant::now();
        let (mut tries, mut made) = (Tries::default(), 0);
        while tries.next().await.is_ok() {
            made += 1;
        }
        assert_eq!(made, TRIES);
        // Each of the nine pauses is at least 1 ms long.
        assert!(began.elapsed().as_millis() >= 9, "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn tries_within_a_time_are_at_least_one() {
        let mut tries = Tries::within(Duration::ZERO);
        tries.next().await.unwrap();
        assert_eq!(tries.next().await.unwrap_err().code(), "contended");
    }
}
