//! When a call is retried.

use std::time::Duration;

use domain::models::ModelError;
use domain::models::error::MAX_RETRY_AFTER;

/// The number of tries and the pauses between them.
#[derive(Debug, Clone, Copy)]
pub struct Retry {
    /// The total number of tries.
    pub tries: u32,
    /// The pause after the first failure. It doubles with each failure.
    pub first_pause: Duration,
    pub longest_pause: Duration,
    /// If a provider asks for a longer wait, there is no further try.
    pub longest_wait: Duration,
    /// Whether a call that timed out is tried again. The next try may take as long.
    pub after_timeouts: bool,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            tries: 3,
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(8),
            longest_wait: MAX_RETRY_AFTER,
            after_timeouts: true,
        }
    }
}

impl Retry {
    /// The pause after failure number `failures` (1 is the first). `None` means give up. A provider's `retry-after`
    /// replaces the doubling pause, unless it is longer than `longest_wait`. `jitter`, from 0 to 1, spreads the callers over the last
    /// quarter of the pause.
    #[must_use]
    pub fn pause(&self, failures: u32, error: &ModelError, jitter: f64) -> Option<Duration> {
        if failures >= self.tries || !error.is_retryable() {
            return None;
        }
        if !self.after_timeouts && matches!(error, ModelError::Timeout(_)) {
            return None;
        }
        match error.retry_after() {
            Some(wait) if wait > self.longest_wait => None,
            Some(wait) => Some(wait),
            None => {
                let doubled = self.first_pause.saturating_mul(1 << (failures - 1).min(16));
                Some(doubled.min(self.longest_pause).mul_f64(1.0 - 0.25 * jitter.clamp(0.0, 1.0)))
            }
        }
    }

    /// Waits before the next try after failure number `failures`. Returns the error if there is no next try.
    pub(super) async fn wait_or_fail(&self, failures: u32, error: ModelError) -> Result<(), ModelError> {
        let Some(pause) = self.pause(failures, &error, rand::random()) else { return Err(error) };
        tracing::warn!(failures, pause_ms = pause.as_millis() as u64, %error, "a call of the model is tried again");
        tokio::time::sleep(pause).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use domain::models::error::TimeoutPhase;

    use super::*;

    #[test]
    fn pauses_double_unless_the_provider_sets_them() {
        let limited = |seconds| ModelError::RateLimited { retry_after: Some(Duration::from_secs(seconds)) };
        let server = ModelError::Server { status: 500, retry_after: None };
        let check = |failures: u32, error: &ModelError, jitter: f64, millis: Option<u64>| {
            let retry = Retry { tries: 8, ..Retry::default() };
            let pause = retry.pause(failures, error, jitter);
            assert_eq!(pause, millis.map(Duration::from_millis), "{failures} {error:?} {jitter}");
        };
        check(1, &server, 0.0, Some(500));
        check(2, &server, 0.0, Some(1_000));
        check(3, &server, 0.0, Some(2_000));
        check(5, &server, 0.0, Some(8_000));
        check(7, &server, 0.0, Some(8_000));
        check(8, &server, 0.0, None);
        check(1, &server, 1.0, Some(375));

        check(1, &limited(7), 1.0, Some(7_000));
        check(1, &limited(0), 1.0, Some(0));
        check(1, &limited(120), 0.0, Some(120_000));
        check(1, &limited(121), 0.0, None);
        check(1, &ModelError::Truncated, 0.0, Some(500));
        check(1, &ModelError::Timeout(TimeoutPhase::Idle), 0.0, Some(500));
        check(1, &ModelError::Timeout(TimeoutPhase::Deadline), 0.0, None);
        check(1, &ModelError::Authentication, 0.0, None);
        check(1, &ModelError::ContextTooLarge, 0.0, None);

        let retry = Retry { after_timeouts: false, ..Retry::default() };
        assert_eq!(retry.pause(1, &ModelError::Timeout(TimeoutPhase::FirstByte), 0.0), None);
        assert_eq!(retry.pause(1, &ModelError::Timeout(TimeoutPhase::Idle), 0.0), None);
        assert!(retry.pause(1, &server, 0.0).is_some());
    }
}
