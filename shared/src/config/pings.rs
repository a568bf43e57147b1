//! Addresses outside the platform that its timers call. A service that expects these calls notices if the platform has stopped.

use domain::reach::{Policy, check_https};

use super::{ConfigError, Env, given};

/// The addresses that are called after each call of a timer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PingsConfig {
    pub sweep: Option<String>,
    pub watchdog: Option<String>,
}

impl PingsConfig {
    /// # Errors
    /// If a value is not an https address that `policy` allows.
    pub fn read(env: Env<'_>, policy: &Policy) -> Result<Self, ConfigError> {
        let address = |variable: &'static str| {
            let Some(text) = given(env, variable) else { return Ok(None) };
            // The address itself may be a secret, so it is not shown.
            match check_https(&text, policy) {
                Ok(_) => Ok(Some(text)),
                Err(problem) => Err(ConfigError { variable, problem }),
            }
        };
        Ok(Self {
            sweep: address("LAMPLIGHTER_SWEEP_PING_URL")?,
            watchdog: address("LAMPLIGHTER_WATCHDOG_PING_URL")?,
        })
    }
}
