//! How runs work: where, for how long they wait, what they reach, and where their lines are stored.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;

use domain::notices::render::Site;
use domain::reach::{InvalidHost, Policy};
use rustls::RootCertStore;

use super::access::authorities;
use super::outside::OutsideTools;
use super::{ConfigError, Env, given, listed};

/// The whole number in a variable. `None` if the variable is not set.
fn number<N: FromStr + PartialOrd + Display>(
    env: Env<'_>,
    variable: &'static str,
    allowed: RangeInclusive<N>,
    unit: &str,
) -> Result<Option<N>, ConfigError> {
    let Some(text) = env(variable) else { return Ok(None) };
    match text.parse() {
        Ok(number) if allowed.contains(&number) => Ok(Some(number)),
        _ => {
            let (least, most) = allowed.into_inner();
            let problem = format!("must be {least} to {most} {unit}, is `{text}`");
            Err(ConfigError { variable, problem })
        }
    }
}

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
        let count = number(env, "LAMPLIGHTER_EXECUTORS", 1..=1_000, "executors")?;
        Ok(count.map_or_else(Self::default, |count| Self { count }))
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
    /// If the value is not a whole number from 1 to 28.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let runs = Self::default();
        let days = number(env, "LAMPLIGHTER_ANSWER_DAYS", 1..=28, "days")?;
        Ok(Self { answer_days: days.unwrap_or(runs.answer_days), ..runs })
    }
}

/// Which servers are reached at addresses that people and models name.
#[derive(Clone, Debug)]
pub struct ReachConfig {
    pub policy: Arc<Policy>,
    /// The authorities that mail servers of people may have besides the public ones.
    pub mail_authorities: Option<Arc<RootCertStore>>,
    /// The server to which bots of Telegram speak, without a slash at the end.
    pub telegram: String,
}

impl Default for ReachConfig {
    fn default() -> Self {
        let telegram = "https://api.telegram.org".to_owned();
        Self { policy: Arc::default(), mail_authorities: None, telegram }
    }
}

impl ReachConfig {
    /// # Errors
    /// If a value is not a list of hosts, each with or without a port, or not an address, or if a file can't be read.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let variable = "LAMPLIGHTER_ALLOWED_HOSTS";
        let hosts = listed(env, variable).into_iter().map(|host| {
            let problem = |error: InvalidHost| format!("{error}, separated by commas, and has `{host}`");
            host.parse().map_err(|error| ConfigError { variable, problem: problem(error) })
        });
        let allowed_hosts = hosts.collect::<Result<_, _>>()?;
        let variable = "LAMPLIGHTER_SMTP_CA_FILE";
        let mail_authorities = match given(env, variable) {
            Some(path) => Some(Arc::new(authorities(variable, &path)?)),
            None => None,
        };
        let variable = "LAMPLIGHTER_TELEGRAM_API";
        let telegram = match given(env, variable).map(|text| (Site::new(&text), text)) {
            None => Self::default().telegram,
            Some((Ok(server), _)) => server.api(""),
            Some((Err(error), text)) => {
                return Err(ConfigError { variable, problem: format!("{error}, is `{text}`") });
            }
        };
        let policy = Arc::new(Policy { allowed_hosts, ..Policy::default() });
        Ok(Self { policy, mail_authorities, telegram })
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
        let hot_days = number(env, "LAMPLIGHTER_LOG_HOT_DAYS", 1..=u16::MAX, "days")?;
        Ok(hot_days.map_or_else(Self::default, |hot_days| Self { hot_days }))
    }
}
