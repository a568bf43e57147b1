//! All configuration: one struct per area, read from the environment once, only here.
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `LAMPLIGHTER_TABLE` | DynamoDB table | `lamplighter` |
//! | `LAMPLIGHTER_BUCKET` | S3 bucket for bodies and files | `lamplighter` |
//! | `LAMPLIGHTER_BUS` | EventBridge bus | `lamplighter` |
//! | `LAMPLIGHTER_QUEUE` | URL of the SQS queue from which executors take due work | none |
//! | `LAMPLIGHTER_EXECUTORS` | how many executors work at once: bounds how many of them one owner's runs may take | 10 |
//! | `LAMPLIGHTER_AUTH` | `on`: every call needs a JWT or an API key; `off`: every call is the owner `local` | `on` |
//! | `LAMPLIGHTER_JWT_ISSUER` | the OIDC issuer whose tokens are accepted | none: API keys only |
//! | `LAMPLIGHTER_JWT_AUDIENCE` | the audience that a token must name | required with an issuer |
//! | `LAMPLIGHTER_JWKS_URL` | the issuer's keys | `{issuer}/.well-known/jwks.json` |
//! | `LAMPLIGHTER_JWKS_CA_FILE` | PEM file with the only authorities that are trusted for the keys' server; for a private issuer | the public ones |
//! | `LAMPLIGHTER_MASTER_KEY` | the parameter of the parameter store with the key that encrypts provider keys; its name ends in `/` and the key's number | none |
//! | `LAMPLIGHTER_RUN_BUDGET_MICROS` | budget of one run in micro-dollars if neither the action nor the agent sets one | 1000000 ($1) |
//! | `LAMPLIGHTER_DAY_BUDGET_MICROS` | budget of one owner per day (UTC) in micro-dollars | 10000000 ($10) |
//! | `LAMPLIGHTER_DAY_BUDGET_MAX_MICROS` | the most to which an owner may raise the budget of a day, in micro-dollars | 100000000 ($100) |
//! | `LAMPLIGHTER_MONTH_BUDGET_MAX_MICROS` | the most to which an owner may set or raise the budget of a month, in micro-dollars. If it is set, it also holds for owners without a budget of a month | 31 times that of a day |
//! | `LAMPLIGHTER_ENRICHMENT_BUDGET_MICROS` | budget of one pass of a model over a theme, in micro-dollars | 2000000 ($2) |
//! | `LAMPLIGHTER_PLAN` | the plan of owners who have not chosen one: `unlimited`, `starter`, `pro`, `team` or `agency` | `unlimited` |
//! | `LAMPLIGHTER_PLANS` | the plans that an owner may choose, separated by commas | only the default plan |
//! | `LAMPLIGHTER_RATE_LIMITS` | `on`, `off`, or limits per minute such as `turns=100,hooks=off` | `on`; `off` with `LAMPLIGHTER_AUTH=off` |
//! | `LAMPLIGHTER_CORS_ORIGINS` | origins of web pages that may call the API, separated by commas | none |
//! | `LAMPLIGHTER_LOG_HOT_DAYS` | the number of days after which lines of context logs move from the table to the bucket, 1 to 65535 | 30 |
//! | `LAMPLIGHTER_ALLOWED_HOSTS` | hosts that are reached although they are not public, such as `models.internal:8080`, separated by commas | none |
//! | `LAMPLIGHTER_ANSWER_DAYS` | for how many days a call waits for a person's yes, 1 to 28 | 14 |
//! | `AWS_REGION`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN` | set by Lambda | |
//! | `AWS_ENDPOINT_URL_DYNAMODB`, `…_S3`, `…_EVENTBRIDGE`, `…_SQS`, `…_SSM` | endpoints that replace those of AWS | none |
//!
//! [`providers`] reads the variables of the model layer.

pub mod outside;
pub mod providers;

use std::sync::Arc;

use aws_sdk_dynamodb::config::SharedHttpClient;
use base::https;
use domain::accounts::plans::Plan;
use domain::accounts::rates::RateLimits;
use domain::ids::Owner;
use domain::reach::{InvalidHost, Policy};
use futures::future::BoxFuture;
use http::HeaderValue;
use models::ModelsConfig;
use rustls::RootCertStore;
use secrecy::SecretSlice;

use crate::config::outside::OutsideTools;
pub use base::aws_keys::AwsKeys;

/// Why the environment can't be used. The message follows "failed to start: …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable} {problem}")]
pub struct ConfigError {
    pub variable: &'static str,
    pub problem: String,
}

/// The configuration of a function.
#[derive(Clone, Debug)]
pub struct Config {
    pub aws: AwsConfig,
    pub auth: AuthConfig,
    pub master_keys: MasterKeysConfig,
    pub models: ModelsConfig,
    pub budget: BudgetConfig,
    pub logs: LogsConfig,
    pub cors: CorsConfig,
    pub runs: RunsConfig,
    pub reach: ReachConfig,
    pub executors: ExecutorsConfig,
    pub plans: PlansConfig,
    /// How many requests a caller may make.
    pub rates: RateLimits,
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

/// The AWS resources and how to reach them.
#[derive(Clone, Debug)]
pub struct AwsConfig {
    pub table: String,
    pub bucket: String,
    pub bus: String,
    /// The URL of the executors' queue.
    pub queue: String,
    pub region: String,
    pub credentials: AwsKeys,
    pub dynamodb_endpoint: Option<String>,
    pub s3_endpoint: Option<String>,
    pub eventbridge_endpoint: Option<String>,
    pub sqs_endpoint: Option<String>,
    pub ssm_endpoint: Option<String>,
    /// The HTTP client of the SDK, if it is not HTTPS. No variable sets it; `infra/local` does.
    pub http: Option<SharedHttpClient>,
    /// Erases what was deleted from the files of the table and the bucket, if these are on this machine. No variable sets it;
    /// `infra/local` does.
    pub eraser: Option<Arc<dyn Eraser>>,
}

/// Erases what was deleted from files.
pub trait Eraser: std::fmt::Debug + Send + Sync {
    /// Returns when the files have nothing any more of what the owner had and what was deleted. An error says why not, and
    /// the call can be repeated.
    fn erase<'a>(&'a self, owner: &'a Owner) -> BoxFuture<'a, Result<(), String>>;
}

/// Who may call.
#[derive(Clone, Debug)]
pub enum AuthConfig {
    /// Every call is the owner `local`. Only for a server that nobody else can reach.
    Off,
    On(Option<Arc<JwtConfig>>),
}

/// Whose tokens are accepted.
#[derive(Clone, Debug)]
pub struct JwtConfig {
    pub issuer: String,
    pub audience: String,
    pub keys: JwtKeys,
}

/// The keys that verify a token's signature.
#[derive(Clone)]
pub enum JwtKeys {
    /// RS256, ES256 and EdDSA keys, fetched from `url` and cached. If `authorities` is set, only their certificates are
    /// trusted for this.
    Jwks { url: String, authorities: Option<RootCertStore> },
    /// A shared secret. No variable sets it; tests do.
    Hs256 { secret: Vec<u8> },
}

impl std::fmt::Debug for JwtKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Jwks { url, .. } => f.debug_struct("Jwks").field("url", url).finish_non_exhaustive(),
            Self::Hs256 { .. } => f.write_str("Hs256"),
        }
    }
}

/// Where the master keys are, which encrypt the provider keys that owners store.
#[derive(Clone, Debug, Default)]
pub enum MasterKeysConfig {
    /// The function needs none.
    #[default]
    None,
    /// In the parameter store, as `{prefix}/{number}`. New secrets are encrypted with the key `current`.
    Parameters { prefix: String, current: u32 },
    /// Key 1, of 32 bytes. No variable sets it; `infra/local` does.
    Given { key: SecretSlice<u8> },
}

/// Budget limits in micro-dollars.
#[derive(Clone, Copy, Debug)]
pub struct BudgetConfig {
    pub run_micros: i64,
    pub day_micros: i64,
    /// The most to which an owner may raise the ceiling of a day.
    pub day_max_micros: i64,
    /// The most to which an owner may set or raise the ceiling of a month. `None`: see [`Self::month_max`].
    pub month_max_micros: Option<i64>,
    /// Of one pass of a model over a theme.
    pub enrichment_micros: i64,
}

impl Default for BudgetConfig {
    fn default() -> Self {
        Self {
            run_micros: 1_000_000,
            day_micros: 10_000_000,
            day_max_micros: 100_000_000,
            month_max_micros: None,
            enrichment_micros: 2_000_000,
        }
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

/// Which servers are reached at addresses that people and models name.
#[derive(Clone, Debug, Default)]
pub struct ReachConfig {
    pub policy: Arc<Policy>,
}

/// Which plans the owners have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlansConfig {
    /// The plan of owners who have not chosen one.
    pub default: Plan,
    /// The plans that an owner may choose, with the default one.
    pub allowed: Vec<Plan>,
}

impl Default for PlansConfig {
    fn default() -> Self {
        Self { default: Plan::Unlimited, allowed: vec![Plan::Unlimited] }
    }
}

/// The origins of web pages that may call the API from a browser, as browsers send them.
#[derive(Clone, Debug, Default)]
pub struct CorsConfig {
    pub origins: Vec<HeaderValue>,
}

/// The prefix of the platform's own variables.
const PREFIX: &str = "LAMPLIGHTER_";

/// The platform's own variables and those of its command, without their prefix. A test compares them with the manuals.
pub const VARIABLES: &[&str] = &[
    "ALLOWED_HOSTS",
    "ANSWER_DAYS",
    "API_KEY",
    "AUTH",
    "BEDROCK",
    "BEDROCK_REGION",
    "BUCKET",
    "BUS",
    "CORS_ORIGINS",
    "DATA",
    "DAY_BUDGET_MAX_MICROS",
    "DAY_BUDGET_MICROS",
    "ENRICHMENT_BUDGET_MICROS",
    "EXECUTORS",
    "FEATURES",
    "HOST",
    "JWKS_CA_FILE",
    "JWKS_URL",
    "JWT_AUDIENCE",
    "JWT_ISSUER",
    "LOG_HOT_DAYS",
    "MASTER_KEY",
    "MODEL",
    "MODELS",
    "MODEL_KEY",
    "MODEL_TOOLS",
    "MODEL_URL",
    "MONTH_BUDGET_MAX_MICROS",
    "PLAN",
    "PLANS",
    "PORT",
    "PRICES",
    "PROJECT",
    "QUEUE",
    "RATE_LIMITS",
    "RUN_BUDGET_MICROS",
    "SERVERS",
    "STATE",
    "TABLE",
    "URL",
];

/// A sentence about each variable of the environment that begins like one of the platform but is none of them. A misspelt
/// variable is ignored, so a limit or a key that somebody believes to have set is not set.
#[must_use]
pub fn unknown_variables(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut sentences: Vec<String> = names.into_iter().filter_map(|name| unknown(&name)).collect();
    sentences.sort_unstable();
    sentences
}

/// Logs each unknown variable of the process.
pub fn warn_of_unknown_variables() {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for sentence in unknown_variables(names) {
        tracing::warn!("{sentence}");
    }
}

fn unknown(name: &str) -> Option<String> {
    let rest = name.strip_prefix(PREFIX).filter(|rest| !VARIABLES.contains(rest))?;
    let near = VARIABLES.iter().map(|known| (strsim::damerau_levenshtein(rest, known), known));
    let near = near.min().filter(|(distance, known)| *distance <= known.len() / 2);
    let hint = near.map_or_else(String::new, |(_, known)| format!("; do you mean {PREFIX}{known}?"));
    Some(format!("the variable {name} is unknown and has no effect{hint}"))
}

/// The environment of the process, or a map in a test.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Config {
    /// # Errors
    /// [`ConfigError`] names the variable that is missing or wrong.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let auth = AuthConfig::read(env)?;
        Ok(Self {
            aws: AwsConfig::read(env)?,
            rates: rates(env, &auth)?,
            auth,
            master_keys: MasterKeysConfig::read(env)?,
            models: providers::read(env)?,
            budget: BudgetConfig::read(env)?,
            logs: LogsConfig::read(env)?,
            runs: RunsConfig::read(env)?,
            reach: ReachConfig::read(env)?,
            cors: CorsConfig::read(env)?,
            executors: ExecutorsConfig::read(env)?,
            plans: PlansConfig::read(env)?,
        })
    }
}

impl AwsConfig {
    /// # Errors
    /// If a variable that Lambda sets is missing.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let required = |variable: &'static str| {
            env(variable).ok_or_else(|| ConfigError { variable, problem: "is not set".to_owned() })
        };
        let named = |variable: &str| env(variable).unwrap_or_else(|| "lamplighter".to_owned());
        Ok(Self {
            table: named("LAMPLIGHTER_TABLE"),
            bucket: named("LAMPLIGHTER_BUCKET"),
            bus: named("LAMPLIGHTER_BUS"),
            queue: env("LAMPLIGHTER_QUEUE").unwrap_or_default(),
            region: required("AWS_REGION")?,
            credentials: AwsKeys {
                access_key_id: required("AWS_ACCESS_KEY_ID")?,
                secret_access_key: required("AWS_SECRET_ACCESS_KEY")?,
                session_token: env("AWS_SESSION_TOKEN"),
            },
            dynamodb_endpoint: env("AWS_ENDPOINT_URL_DYNAMODB"),
            s3_endpoint: env("AWS_ENDPOINT_URL_S3"),
            eventbridge_endpoint: env("AWS_ENDPOINT_URL_EVENTBRIDGE"),
            sqs_endpoint: env("AWS_ENDPOINT_URL_SQS"),
            ssm_endpoint: env("AWS_ENDPOINT_URL_SSM"),
            http: None,
            eraser: None,
        })
    }
}

impl AuthConfig {
    /// # Errors
    /// If a variable has an invalid value.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        match env("LAMPLIGHTER_AUTH").as_deref() {
            Some("off") => return Ok(Self::Off),
            None | Some("on") => {}
            Some(other) => {
                let problem = format!("must be `on` or `off`, is `{other}`");
                return Err(ConfigError { variable: "LAMPLIGHTER_AUTH", problem });
            }
        }
        let present = |variable| env(variable).filter(|value| !value.is_empty());
        let Some(issuer) = present("LAMPLIGHTER_JWT_ISSUER") else { return Ok(Self::On(None)) };
        let audience = present("LAMPLIGHTER_JWT_AUDIENCE").ok_or_else(|| ConfigError {
            variable: "LAMPLIGHTER_JWT_AUDIENCE",
            problem: "is required with LAMPLIGHTER_JWT_ISSUER".to_owned(),
        })?;
        let url = present("LAMPLIGHTER_JWKS_URL")
            .unwrap_or_else(|| format!("{}/.well-known/jwks.json", issuer.trim_end_matches('/')));
        if !url.starts_with("https://") {
            let problem = "must begin with https://".to_owned();
            return Err(ConfigError { variable: "LAMPLIGHTER_JWKS_URL", problem });
        }
        let authorities = match present("LAMPLIGHTER_JWKS_CA_FILE") {
            Some(path) => Some(authorities("LAMPLIGHTER_JWKS_CA_FILE", &path)?),
            None => None,
        };
        let keys = JwtKeys::Jwks { url, authorities };
        Ok(Self::On(Some(Arc::new(JwtConfig { issuer, audience, keys }))))
    }
}

fn authorities(variable: &'static str, path: &str) -> Result<RootCertStore, ConfigError> {
    let refused = |problem: String| ConfigError { variable, problem };
    let pem =
        std::fs::read(path).map_err(|error| refused(format!("names a file that can't be read: {error}")))?;
    https::authorities(&pem).ok_or_else(|| refused("must name a PEM file of certificates".to_owned()))
}

impl MasterKeysConfig {
    /// # Errors
    /// If the value is not the name of a parameter with a number at its end.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let variable = "LAMPLIGHTER_MASTER_KEY";
        let Some(name) = env(variable).filter(|name| !name.is_empty()) else { return Ok(Self::None) };
        let parts = name.rsplit_once('/').filter(|(prefix, _)| prefix.starts_with('/') && prefix.len() > 1);
        match parts.map(|(prefix, number)| (prefix, number.parse())) {
            Some((prefix, Ok(current @ 1..))) => Ok(Self::Parameters { prefix: prefix.to_owned(), current }),
            _ => {
                let problem = format!("must be like /lamplighter/master-keys/1, is `{name}`");
                Err(ConfigError { variable, problem })
            }
        }
    }
}

/// A variable that is `on` or `off`.
fn on_or_off(env: Env<'_>, variable: &'static str, default: bool) -> Result<bool, ConfigError> {
    match env(variable).as_deref().map(str::trim) {
        None | Some("") => Ok(default),
        Some("on") => Ok(true),
        Some("off") => Ok(false),
        Some(other) => Err(ConfigError { variable, problem: format!("must be `on` or `off`, is `{other}`") }),
    }
}

impl BudgetConfig {
    /// The most to which an owner may set or raise the ceiling of a month: what 31 days may cost, unless a variable sets it.
    #[must_use]
    pub fn month_max(&self) -> i64 {
        self.month_max_micros.unwrap_or_else(|| self.day_max_micros.saturating_mul(31))
    }

    /// # Errors
    /// If a budget limit is not a positive whole number.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let set = |variable: &'static str| match env(variable) {
            None => Ok(None),
            Some(text) => match text.parse() {
                Ok(micros) if micros > 0 => Ok(Some(micros)),
                _ => Err(ConfigError {
                    variable,
                    problem: format!("must be a positive number of micro-dollars, is `{text}`"),
                }),
            },
        };
        let micros = |variable, default: i64| Ok(set(variable)?.unwrap_or(default));
        let default = Self::default();
        // The template sets it to an empty text if the operator names no maximum.
        let month_max = "LAMPLIGHTER_MONTH_BUDGET_MAX_MICROS";
        let is_set = env(month_max).is_some_and(|text| !text.trim().is_empty());
        let month_max_micros = if is_set { set(month_max)? } else { None };
        Ok(Self {
            run_micros: micros("LAMPLIGHTER_RUN_BUDGET_MICROS", default.run_micros)?,
            day_micros: micros("LAMPLIGHTER_DAY_BUDGET_MICROS", default.day_micros)?,
            day_max_micros: micros("LAMPLIGHTER_DAY_BUDGET_MAX_MICROS", default.day_max_micros)?,
            month_max_micros,
            enrichment_micros: micros("LAMPLIGHTER_ENRICHMENT_BUDGET_MICROS", default.enrichment_micros)?,
        })
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

impl PlansConfig {
    /// # Errors
    /// If a variable names a plan that does not exist.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let plan = |variable: &'static str, name: &str| {
            Plan::named(name).ok_or_else(|| {
                let names = Plan::ALL.map(Plan::name).join(", ");
                ConfigError { variable, problem: format!("must name plans out of {names}, names `{name}`") }
            })
        };
        let texts = |variable: &'static str| {
            let text = env(variable).unwrap_or_default();
            let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
            names.map(|name| plan(variable, name)).collect::<Result<Vec<_>, _>>()
        };
        let default = match texts("LAMPLIGHTER_PLAN")?[..] {
            [] => Plan::Unlimited,
            [plan] => plan,
            _ => {
                let problem = "must name one plan".to_owned();
                return Err(ConfigError { variable: "LAMPLIGHTER_PLAN", problem });
            }
        };
        let mut allowed = texts("LAMPLIGHTER_PLANS")?;
        allowed.push(default);
        allowed.sort_unstable();
        allowed.dedup();
        Ok(Self { default, allowed })
    }
}

/// The rate limits. Without authentication, only this machine calls, and there are none unless they are configured.
///
/// # Errors
/// If the variable has an invalid value.
pub fn rates(env: Env<'_>, auth: &AuthConfig) -> Result<RateLimits, ConfigError> {
    let variable = "LAMPLIGHTER_RATE_LIMITS";
    match env(variable).filter(|text| !text.trim().is_empty()) {
        None if matches!(auth, AuthConfig::Off) => Ok(RateLimits::OFF),
        text => {
            RateLimits::parse(&text.unwrap_or_default()).map_err(|problem| ConfigError { variable, problem })
        }
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

impl CorsConfig {
    /// # Errors
    /// If an origin is not of the form `https://host` or `https://host:port`, in lower case.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let variable = "LAMPLIGHTER_CORS_ORIGINS";
        let text = env(variable).unwrap_or_default();
        let origins = text.split(',').map(str::trim).filter(|origin| !origin.is_empty());
        let origins = origins.map(|origin| {
            is_origin(origin).then(|| HeaderValue::try_from(origin).ok()).flatten().ok_or_else(|| {
                let problem = format!(
                    "must be origins like https://app.example.com, separated by commas, and has `{origin}`"
                );
                ConfigError { variable, problem }
            })
        });
        Ok(Self { origins: origins.collect::<Result<_, _>>()? })
    }
}

/// Whether a text is an origin as browsers send it: scheme, host, and the port unless it is the default one.
fn is_origin(text: &str) -> bool {
    let Some(authority) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return false;
    };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let is_host = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._[]:".contains(&byte);
    !host.is_empty() && host.bytes().all(is_host) && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAMBDA: &[(&str, &str)] =
        &[("AWS_REGION", "eu-central-1"), ("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "secret")];

    fn read(more: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let find =
            |name: &str| more.iter().chain(LAMBDA).find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        Config::read(&find)
    }

    #[test]
    fn a_lambda_environment_is_enough_and_asks_for_a_key() {
        let config = read(&[]).unwrap();
        assert_eq!(config.aws.table, "lamplighter");
        assert!(matches!(config.auth, AuthConfig::On(None)));
        assert!(!format!("{config:?}").contains("secret\""), "a debug print shows no secret");
    }

    #[test]
    fn an_empty_variable_is_none_and_no_key_is_printed() {
        let models = read(&[
            ("ANTHROPIC_API_KEY", " "),
            ("OPENAI_API_KEY", "sk-1"),
            ("LAMPLIGHTER_MODEL_URL", "http://localhost:11434/v1"),
            ("LAMPLIGHTER_MODEL_KEY", "sk-2"),
            ("LAMPLIGHTER_MODEL_TOOLS", "off"),
            ("LAMPLIGHTER_PRICES", r#"{"compatible/*": "free"}"#),
            ("GOOGLE_AI_API_KEY", "AI-3"),
        ])
        .unwrap()
        .models;
        assert_eq!((&models.anthropic_key, models.openai_key.as_deref()), (&None, Some("sk-1")));
        assert_eq!(models.google_key.as_deref(), Some("AI-3"));
        assert!(!models.servers[&domain::models::ServerName::COMPATIBLE].tools);
        let shown = format!("{models:?}");
        assert!(!["sk-1", "sk-2", "AI-3"].iter().any(|key| shown.contains(key)), "{shown}");
    }

    #[test]
    fn a_forced_model_goes_to_its_provider() {
        let (anthropic, openai) = (("ANTHROPIC_API_KEY", "sk-1"), ("OPENAI_API_KEY", "sk-2"));
        let (url, free) = (
            ("LAMPLIGHTER_MODEL_URL", "http://localhost:11434/v1"),
            (
                "LAMPLIGHTER_PRICES",
                r#"{"compatible/*": "free", "openai/gpt-4o": {"input": 2500000, "output": 10000000}}"#,
            ),
        );
        let check = |model: &str, variables: &[(&str, &str)], expected: Result<&str, &str>| {
            let all: Vec<_> = variables.iter().copied().chain([("LAMPLIGHTER_MODEL", model)]).collect();
            let found = read(&all).map(|config| config.models.forced.map(|model| model.to_string()));
            match (&found, expected) {
                (Ok(Some(found)), Ok(expected)) => assert_eq!(found, expected),
                (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
                _ => panic!("{model}: {found:?}"),
            }
        };
        let both = [anthropic, openai];
        check("gpt-6-sol", &both, Ok("openai/gpt-6-sol"));
        check("openai/gpt-6-sol", &both, Ok("openai/gpt-6-sol"));
        check("claude-sonnet-5-5", &both, Ok("anthropic/claude-sonnet-5-5"));
        check(
            "grok-4.3",
            &both,
            Err("the provider `xai` is not configured; configured are: anthropic, openai"),
        );
        check("xai/grok-4.3", &both, Err("the provider `xai` is not configured"));
        check("gpt-4o", &both, Err("write it as `provider/model`, with one of anthropic, openai"));
        check("gpt-6-sol", &[anthropic], Err("the provider `openai` is not configured"));
        check("gpt-6-sol", &[], Err("LAMPLIGHTER_MODEL is `gpt-6-sol`, and no provider is configured"));
        // A model without a price is refused, with the setting that prices it.
        let unpriced = "uses the model `openai/gpt-4o`, which has no known price, so no budget would limit its cost: set \
                        LAMPLIGHTER_PRICES, for example {\"openai/gpt-4o\": {\"input\": 2500000";
        check("openai/gpt-4o", &both, Err(unpriced));
        check("gpt-4o", &[openai], Err(unpriced));
        check("gpt-4o", &[openai, free], Ok("openai/gpt-4o"));
        check("qwen3", &[url], Err("or {\"compatible/*\": \"free\"} if its models cost nothing"));
        check("qwen3", &[url, free], Ok("compatible/qwen3"));
        check("org/qwen3", &[url, free], Ok("compatible/org/qwen3"));
        check("gpt-6-sol", &[url, free], Ok("compatible/gpt-6-sol"));
        check("gpt-6-sol", &[url, free, openai], Ok("openai/gpt-6-sol"));
        check("compatible/gpt-6-sol", &[url, free, openai], Ok("compatible/gpt-6-sol"));
        check(
            "qwen3",
            &[url, free, openai],
            Err("write it as `provider/model`, with one of compatible, openai"),
        );
        let bedrock = [("LAMPLIGHTER_BEDROCK", "on")];
        check("meta.llama3-70b", &bedrock, Err("uses the model `bedrock/meta.llama3-70b`"));
    }

    #[test]
    fn servers_have_a_name_an_address_prices_and_models() {
        let json = r#"{
            "ollama": {"url": "http://localhost:11434/v1", "models": {"fast": ["qwen3"]}, "prices": {"*": "free"}},
            "router": {"url": "https://router.example/v1", "key": "sk-9", "tools": false,
                       "prices": {"auto": {"input": 1000000, "output": 2000000}}}
        }"#;
        let models = read(&[("LAMPLIGHTER_SERVERS", json), ("ANTHROPIC_API_KEY", "k")]).unwrap().models;
        let [ollama, router] = ["ollama", "router"].map(|name| &models.servers[&name.parse().unwrap()]);
        assert!(ollama.tools && !router.tools && router.key.is_some() && ollama.key.is_none());
        assert!(!format!("{models:?}").contains("sk-9"));
        let price = |model: &str| models.prices.of(&model.parse().unwrap()).map(|price| price.rates.input);
        assert_eq!(
            (price("ollama/qwen3"), price("router/auto"), price("router/x")),
            (Some(0), Some(1_000_000), None)
        );
        for (json, problem) in [
            (r#"{"openai": {"url": "http://a"}}"#, "the name `openai` is the name of a provider"),
            (r#"{"A": {"url": "http://a"}}"#, "the name `A` must be 1 to 32 lower-case letters"),
            (r#"{"a": {"url": "ftp://a"}}"#, "`a`: the address must begin with http:// or https://"),
            (r#"{"a": {"url": "http://a", "key": "x\ny"}}"#, "`a`: the key contains a character"),
            (r#"{"a": {"url": "http://a", "price": {}}}"#, "unknown field `price`"),
            (r#"{"a": {"url": "http://a", "models": {"huge": []}}}"#, "unknown variant `huge`"),
            (r#"{"a": {"url": "http://a"}}"#, "uses the model `a/auto`, which has no known price"),
            (
                r#"{"a": {"url": "http://a", "models": {"deep": ["m"]}, "prices": {"n": "free"}}}"#,
                "uses the model `a/m`, which has no known price",
            ),
        ] {
            let found = read(&[("LAMPLIGHTER_SERVERS", json)]).unwrap_err();
            assert_eq!(found.variable, "LAMPLIGHTER_SERVERS");
            assert!(found.problem.contains(problem), "{json}: {found}");
        }
        let chosen = [("LAMPLIGHTER_MODELS", r#"{"deep": ["olama/m"]}"#), ("ANTHROPIC_API_KEY", "k")];
        let found = read(&chosen).unwrap_err().to_string();
        assert!(found.contains("`olama` is neither a provider nor a server"), "{found}");
    }

    /// Every Lambda function has credentials, so they must not be enough.
    #[test]
    fn bedrock_is_used_only_if_it_is_on() {
        let bedrock = |variables: &[(&str, &str)]| read(variables).unwrap().models.bedrock;
        assert!(bedrock(&[]).is_none());
        assert!(bedrock(&[("LAMPLIGHTER_BEDROCK", "off"), ("LAMPLIGHTER_BEDROCK_REGION", "")]).is_none());
        let own = bedrock(&[("LAMPLIGHTER_BEDROCK", "on"), ("LAMPLIGHTER_BEDROCK_REGION", "")]).unwrap();
        assert_eq!((own.region.as_str(), own.credentials.access_key_id.as_str()), ("eu-central-1", "id"));
        assert!(!format!("{own:?}").contains("\"secret\""));
        let other = bedrock(&[("LAMPLIGHTER_BEDROCK", "on"), ("LAMPLIGHTER_BEDROCK_REGION", "us-east-1")]);
        assert_eq!(other.unwrap().region, "us-east-1");
        let alone = providers::read(&|name| (name == "LAMPLIGHTER_BEDROCK").then(|| "on".to_owned()));
        assert_eq!(alone.unwrap_err().to_string(), "AWS_REGION is not set, and LAMPLIGHTER_BEDROCK is on");
    }

    #[test]
    fn rate_limits_are_off_without_authentication() {
        let rates = |variables: &[(&str, &str)]| read(variables).unwrap().rates;
        assert_eq!(rates(&[]), RateLimits::default());
        assert_eq!(rates(&[("LAMPLIGHTER_RATE_LIMITS", "")]), RateLimits::default());
        assert_eq!(rates(&[("LAMPLIGHTER_AUTH", "off")]), RateLimits::OFF);
        let asked = rates(&[("LAMPLIGHTER_AUTH", "off"), ("LAMPLIGHTER_RATE_LIMITS", "on")]);
        assert_eq!(asked, RateLimits::default());
        assert_eq!(rates(&[("LAMPLIGHTER_RATE_LIMITS", "off")]), RateLimits::OFF);
    }

    #[test]
    fn the_default_plan_may_always_be_chosen() {
        let plans = |variables: &[(&str, &str)]| read(variables).unwrap().plans;
        assert_eq!(plans(&[("LAMPLIGHTER_PLAN", "")]), PlansConfig::default());
        let several = plans(&[("LAMPLIGHTER_PLAN", "pro"), ("LAMPLIGHTER_PLANS", "team, starter,team")]);
        let allowed = vec![Plan::Starter, Plan::Pro, Plan::Team];
        assert_eq!(several, PlansConfig { default: Plan::Pro, allowed });
    }

    #[test]
    fn origins_are_as_browsers_send_them() {
        let origins =
            |text: &str| read(&[("LAMPLIGHTER_CORS_ORIGINS", text)]).map(|config| config.cors.origins);
        assert_eq!(origins("").unwrap(), [""; 0]);
        let several = "https://app.example.com, http://localhost:3000,http://[::1]:8080,";
        let expected = ["https://app.example.com", "http://localhost:3000", "http://[::1]:8080"];
        assert_eq!(origins(several).unwrap(), expected);
        for wrong in [
            "*",
            "null",
            "app.example.com",
            "https://",
            "https://App.example",
            "https://a/b",
            "https://a:x",
            "ftp://a",
        ] {
            assert!(origins(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_misspelt_variable_is_named() {
        let names =
            ["LAMPLIGHTER_MODLE_URL", "LAMPLIGHTER_X", "LAMPLIGHTER_AUTH", "PATH", "lamplighter_data"];
        assert_eq!(
            unknown_variables(names.map(str::to_owned)),
            [
                "the variable LAMPLIGHTER_MODLE_URL is unknown and has no effect; do you mean LAMPLIGHTER_MODEL_URL?",
                "the variable LAMPLIGHTER_X is unknown and has no effect",
            ]
        );
        assert!(VARIABLES.is_sorted());
    }

    #[test]
    fn hosts_that_are_not_public_are_none_or_listed() {
        let policy = |text: &str| {
            let reach = read(&[("LAMPLIGHTER_ALLOWED_HOSTS", text)]).unwrap().reach;
            reach.policy.allowed_hosts.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(policy(" "), [""; 0]);
        assert_eq!(policy("models.internal:8080, 10.0.0.7,"), ["models.internal:8080", "10.0.0.7"]);
        assert_eq!(*read(&[]).unwrap().reach.policy, Policy::default());
    }

    #[test]
    fn a_wrong_value_is_named() {
        for (variables, expected) in [
            (&[("LAMPLIGHTER_AUTH", "maybe")][..], "LAMPLIGHTER_AUTH must be `on` or `off`, is `maybe`"),
            (
                &[("LAMPLIGHTER_CORS_ORIGINS", "https://a.example, https://b.example/")],
                "LAMPLIGHTER_CORS_ORIGINS must be origins like https://app.example.com, separated by commas, and has `https://b.example/`",
            ),
            (
                &[("LAMPLIGHTER_CORS_ORIGINS", "*")],
                "LAMPLIGHTER_CORS_ORIGINS must be origins like https://app.example.com, separated by commas, and has `*`",
            ),
            (&[("LAMPLIGHTER_BEDROCK", "yes")], "LAMPLIGHTER_BEDROCK must be `on` or `off`, is `yes`"),
            (
                &[("LAMPLIGHTER_BEDROCK", "on"), ("LAMPLIGHTER_BEDROCK_REGION", "evil.example/")],
                "LAMPLIGHTER_BEDROCK_REGION must be the name of an AWS region, such as eu-west-1",
            ),
            (
                &[("LAMPLIGHTER_BEDROCK", "on"), ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "localhost")],
                "AWS_ENDPOINT_URL_BEDROCK_RUNTIME must begin with http:// or https:// and have a host",
            ),
            (&[("LAMPLIGHTER_MODEL_TOOLS", "no")], "LAMPLIGHTER_MODEL_TOOLS must be `on` or `off`, is `no`"),
            (
                &[("LAMPLIGHTER_JWT_ISSUER", "https://issuer.example")],
                "LAMPLIGHTER_JWT_AUDIENCE is required with LAMPLIGHTER_JWT_ISSUER",
            ),
            (
                &[("LAMPLIGHTER_JWT_ISSUER", "http://issuer.example"), ("LAMPLIGHTER_JWT_AUDIENCE", "x")],
                "LAMPLIGHTER_JWKS_URL must begin with https://",
            ),
            (
                &[
                    ("LAMPLIGHTER_JWT_ISSUER", "https://issuer.example"),
                    ("LAMPLIGHTER_JWT_AUDIENCE", "x"),
                    ("LAMPLIGHTER_JWKS_CA_FILE", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")),
                ],
                "LAMPLIGHTER_JWKS_CA_FILE must name a PEM file of certificates",
            ),
            (
                &[
                    ("LAMPLIGHTER_JWT_ISSUER", "https://issuer.example"),
                    ("LAMPLIGHTER_JWT_AUDIENCE", "x"),
                    ("LAMPLIGHTER_JWKS_CA_FILE", "/nowhere/ca.pem"),
                ],
                "LAMPLIGHTER_JWKS_CA_FILE names a file that can't be read: No such file or directory (os error 2)",
            ),
            (
                &[("LAMPLIGHTER_MODEL_URL", "localhost:11434/v1")],
                "LAMPLIGHTER_MODEL_URL must begin with http:// or https:// and have a host",
            ),
            (
                &[("OPENAI_API_KEY", "sk-1\nsk-2")],
                "OPENAI_API_KEY contains a character that HTTP headers do not allow",
            ),
            (
                &[("LAMPLIGHTER_DAY_BUDGET_MICROS", "-1")],
                "LAMPLIGHTER_DAY_BUDGET_MICROS must be a positive number of micro-dollars, is `-1`",
            ),
            (
                &[("LAMPLIGHTER_PLAN", "free")],
                "LAMPLIGHTER_PLAN must name plans out of unlimited, starter, pro, team, agency, names `free`",
            ),
            (&[("LAMPLIGHTER_PLAN", "pro,team")], "LAMPLIGHTER_PLAN must name one plan"),
            (
                &[("LAMPLIGHTER_FEATURES", "context_editing=yes")],
                "LAMPLIGHTER_FEATURES must set `context_editing` to `on` or `off`, sets it to `yes`",
            ),
            (
                &[("LAMPLIGHTER_RATE_LIMITS", "turns=none")],
                "LAMPLIGHTER_RATE_LIMITS must set `turns` to 1 to 1000000 requests a minute or `off`, sets it to `none`",
            ),
            (
                &[("LAMPLIGHTER_MASTER_KEY", "/lamplighter/master-keys/0")],
                "LAMPLIGHTER_MASTER_KEY must be like /lamplighter/master-keys/1, is `/lamplighter/master-keys/0`",
            ),
            (
                &[("LAMPLIGHTER_MASTER_KEY", "/1")],
                "LAMPLIGHTER_MASTER_KEY must be like /lamplighter/master-keys/1, is `/1`",
            ),
            (
                &[("LAMPLIGHTER_ALLOWED_HOSTS", "10.0.0.7, *.internal")],
                "LAMPLIGHTER_ALLOWED_HOSTS must be hosts such as models.internal or 10.0.0.7:8080, separated by commas, and has `*.internal`",
            ),
            (&[("LAMPLIGHTER_EXECUTORS", "0")], "LAMPLIGHTER_EXECUTORS must be 1 to 1000 executors, is `0`"),
            (&[("LAMPLIGHTER_ANSWER_DAYS", "29")], "LAMPLIGHTER_ANSWER_DAYS must be 1 to 28 days, is `29`"),
            (
                &[("LAMPLIGHTER_LOG_HOT_DAYS", "0")],
                "LAMPLIGHTER_LOG_HOT_DAYS must be 1 to 65535 days, is `0`",
            ),
        ] {
            assert_eq!(read(variables).unwrap_err().to_string(), expected);
        }
    }
}
