//! The tries of an optimistic edit: read, decide, write if the version is still the one that was read, and otherwise retry.

use std::time::{Duration, Instant};

use super::table::{StoreError, back_off};

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
    /// [`StoreError::Contended`] if the limit is reached.
    pub async fn next(&mut self) -> Result<(), StoreError> {
        let is_over = match self.until {
            Until::Tries(most) => self.made >= most,
            Until::Time(end) => self.made > 0 && Instant::now() >= end,
        };
        if is_over {
            return Err(StoreError::Contended);
        }
        if self.made > 0 {
            back_off(self.made - 1).await;
        }
        self.made += 1;
        Ok(())
    }
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
        assert!(matches!(tries.next().await, Err(StoreError::Contended)));
    }
}
