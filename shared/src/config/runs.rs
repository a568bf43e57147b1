//! How runs work: where, for how long they wait, what they reach, and where their lines are stored.

use std::sync::Arc;

use domain::reach::{InvalidHost, Policy};

use super::outside::OutsideTools;
use super::{ConfigError, Env};

/// The executors of scheduled runs.
#[derive(Clone, Copy, Debug)]
pub struct ExecutorsConfig {
    /// How many work at once.
    pub count: u32,
}

impl Default for ExecutorsConfig {
    fn default() -> Self {
        Self { count: 10 }
    }
}

impl ExecutorsConfig {
    /// # Errors
    /// If the value is not a whole number from 1 to 1000.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let variable = "LAMPLIGHTER_EXECUTORS";
        let Some(text) = env(variable) else { return Ok(Self::default()) };
        match text.parse() {
            Ok(count) if (1..=1_000).contains(&count) => Ok(Self { count }),
            _ => Err(ConfigError { variable, problem: format!("must be 1 to 1000 executors, is `{text}`") }),
        }
    }
}

/// How runs wait for people, and what they may reach.
#[derive(Clone, Debug)]
pub struct RunsConfig {
    /// The number of days that a call waits for a person's yes, 1 to 28.
    pub answer_days: u16,
    /// Tools that act outside the platform. No variable leads here: tests set it.
    pub outside: OutsideTools,
}

impl Default for RunsConfig {
    /// Two weeks: longer than most absences, and shorter than the 30 days for which a run's steps are kept.
    fn default() -> Self {
        Self { answer_days: 14, outside: OutsideTools::default() }
    }
}

impl RunsConfig {
    /// # Errors
    /// If the number of days is not one.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let variable = "LAMPLIGHTER_ANSWER_DAYS";
        let Some(text) = env(variable) else { return Ok(Self::default()) };
        match text.parse() {
            Ok(answer_days) if (1..=28).contains(&answer_days) => Ok(Self { answer_days, ..Self::default() }),
            _ => Err(ConfigError { variable, problem: format!("must be 1 to 28 days, is `{text}`") }),
        }
    }
}

/// Which servers are reached at addresses that people and models name.
#[derive(Clone, Debug, Default)]
pub struct ReachConfig {
    pub policy: Arc<Policy>,
}

impl ReachConfig {
    /// # Errors
    /// If the value is not a list of hosts, each with or without a port.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let variable = "LAMPLIGHTER_ALLOWED_HOSTS";
        let text = env(variable).unwrap_or_default();
        let hosts = text.split(',').map(str::trim).filter(|host| !host.is_empty());
        let hosts = hosts.map(|host| {
            let problem = |error: InvalidHost| format!("{error}, separated by commas, and has `{host}`");
            host.parse().map_err(|error| ConfigError { variable, problem: problem(error) })
        });
        let allowed_hosts = hosts.collect::<Result<_, _>>()?;
        Ok(Self { policy: Arc::new(Policy { allowed_hosts, ..Policy::default() }) })
    }
}

/// Where lines of context logs are stored.
#[derive(Clone, Copy, Debug)]
pub struct LogsConfig {
    /// The number of days after which a line moves from the table to the bucket, 1 to 65535.
    pub hot_days: u16,
}

impl Default for LogsConfig {
    fn default() -> Self {
        Self { hot_days: 30 }
    }
}

impl LogsConfig {
    /// # Errors
    /// If the value is not a whole number from 1 to 65535.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let variable = "LAMPLIGHTER_LOG_HOT_DAYS";
        let Some(text) = env(variable) else { return Ok(Self::default()) };
        match text.parse() {
            Ok(hot_days) if hot_days > 0 => Ok(Self { hot_days }),
            _ => Err(ConfigError { variable, problem: format!("must be 1 to 65535 days, is `{text}`") }),
        }
    }
}
