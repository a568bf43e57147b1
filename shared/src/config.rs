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
//! | `LAMPLIGHTER_ENRICHMENT_BUDGET_MICROS` | budget of one pass of a model over a theme, in micro-dollars | 2000000 ($2) |
//! | `LAMPLIGHTER_PLAN` | the plan of owners who have not chosen one: `unlimited`, `starter`, `pro`, `team` or `agency` | `unlimited` |
//! | `LAMPLIGHTER_PLANS` | the plans that an owner may choose, separated by commas | only the default plan |
//! | `LAMPLIGHTER_RATE_LIMITS` | `on`, `off`, or limits per minute such as `turns=100,hooks=off` | `on`; `off` with `LAMPLIGHTER_AUTH=off` |
//! | `LAMPLIGHTER_CORS_ORIGINS` | origins of web pages that may call the API, separated by commas | none |
//! | `LAMPLIGHTER_LOG_HOT_DAYS` | the number of days after which lines of context logs move from the table to the bucket, 1 to 65535 | 30 |
//! | `LAMPLIGHTER_ANSWER_DAYS` | for how many days a call waits for a person's yes, 1 to 28 | 14 |
//! | `AWS_REGION`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN` | set by Lambda | |
//! | `AWS_ENDPOINT_URL_DYNAMODB`, `…_S3`, `…_EVENTBRIDGE`, `…_SQS`, `…_SSM` | endpoints that replace those of AWS | none |
//!
//! [`ModelsConfig`] lists the variables of the model layer.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_sdk_dynamodb::config::SharedHttpClient;
use domain::accounts::plans::Plan;
use domain::accounts::rates::RateLimits;
use domain::models::{Features, ModelClass, ModelRef, prices};
use http::HeaderValue;
use rustls::RootCertStore;
use secrecy::SecretSlice;
use serde::Deserialize;

pub use crate::aws_keys::AwsKeys;
use crate::https;
use crate::models::{Addresses, BedrockConfig, Canary, Endpoint, InvalidEndpoint, Limits, ModelsConfig};
use crate::outside::OutsideTools;

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
    /// Of one pass of a model over a theme.
    pub enrichment_micros: i64,
}

impl Default for BudgetConfig {
    fn default() -> Self {
        Self {
            run_micros: 1_000_000,
            day_micros: 10_000_000,
            day_max_micros: 100_000_000,
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

/// The environment of the process, or a map in a test.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Config {
    /// # Errors
    /// [`ConfigError`] names the variable that is missing or wrong.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::read(&|name| std::env::var(name).ok())
    }

    /// # Errors
    /// As [`Config::from_env`].
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let auth = AuthConfig::read(env)?;
        Ok(Self {
            aws: AwsConfig::read(env)?,
            rates: rates(env, &auth)?,
            auth,
            master_keys: MasterKeysConfig::read(env)?,
            models: ModelsConfig::read(env)?,
            budget: BudgetConfig::read(env)?,
            logs: LogsConfig::read(env)?,
            runs: RunsConfig::read(env)?,
            cors: CorsConfig::read(env)?,
            executors: ExecutorsConfig::read(env)?,
            plans: PlansConfig::read(env)?,
        })
    }
}

impl AwsConfig {
    fn read(env: Env<'_>) -> Result<Self, ConfigError> {
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

impl ModelsConfig {
    /// # Errors
    /// If a variable has an invalid value.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let present = |variable| env(variable).filter(|value| !value.trim().is_empty());
        let url_has_no_tools = match present("LAMPLIGHTER_MODEL_TOOLS").as_deref() {
            None | Some("on") => false,
            Some("off") => true,
            Some(other) => {
                let problem = format!("must be `on` or `off`, is `{other}`");
                return Err(ConfigError { variable: "LAMPLIGHTER_MODEL_TOOLS", problem });
            }
        };
        let chosen = present("LAMPLIGHTER_MODELS")
            .map_or_else(|| Ok(ChosenModels::default()), |json| ChosenModels::read(&json));
        let chosen = chosen.map_err(|problem| ConfigError { variable: "LAMPLIGHTER_MODELS", problem })?;
        // The value is not shown: an address may contain a password, and a key is secret.
        let usable = |variable: &'static str, endpoint: Result<Endpoint, InvalidEndpoint>| match endpoint {
            Ok(_) => Ok(()),
            Err(InvalidEndpoint::Address) => {
                let problem = "must begin with http:// or https:// and have a host".to_owned();
                Err(ConfigError { variable, problem })
            }
            Err(InvalidEndpoint::Key) => {
                let problem = "contains a character that HTTP headers do not allow".to_owned();
                Err(ConfigError { variable, problem })
            }
            Err(InvalidEndpoint::Region) => {
                let problem = "must be the name of an AWS region, such as eu-west-1".to_owned();
                Err(ConfigError { variable, problem })
            }
        };
        let url = |variable| {
            let url = present(variable);
            url.as_deref().map_or(Ok(()), |url| usable(variable, Endpoint::bearer(url, None)))?;
            Ok(url)
        };
        let key = |variable| {
            let key = present(variable);
            let endpoint = Endpoint::bearer("http://localhost", key.as_deref());
            usable(variable, endpoint)?;
            Ok(key)
        };
        let variable = "LAMPLIGHTER_FEATURES";
        let features = Features::parse(&env(variable).unwrap_or_default())
            .map_err(|problem| ConfigError { variable, problem })?;
        Ok(Self {
            url: url("LAMPLIGHTER_MODEL_URL")?,
            url_key: key("LAMPLIGHTER_MODEL_KEY")?,
            url_has_no_tools,
            model: present("LAMPLIGHTER_MODEL"),
            first: chosen.first,
            canary: chosen.canary,
            anthropic_key: key("ANTHROPIC_API_KEY")?,
            openai_key: key("OPENAI_API_KEY")?,
            google_key: key("GEMINI_API_KEY")?,
            xai_key: key("XAI_API_KEY")?,
            bedrock: match present("LAMPLIGHTER_BEDROCK").as_deref() {
                None | Some("off") => None,
                Some("on") => {
                    let bedrock = BedrockConfig::read(env)?;
                    let (at, keys) = (bedrock.endpoint.as_deref(), &bedrock.credentials);
                    usable("LAMPLIGHTER_BEDROCK_REGION", Endpoint::bedrock(&bedrock.region, None, keys))?;
                    usable("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", Endpoint::bedrock(&bedrock.region, at, keys))?;
                    Some(bedrock)
                }
                Some(other) => {
                    let problem = format!("must be `on` or `off`, is `{other}`");
                    return Err(ConfigError { variable: "LAMPLIGHTER_BEDROCK", problem });
                }
            },
            addresses: Addresses::default(),
            demo_url: None,
            demo_costs: false,
            limits: Limits::default(),
            features,
        })
    }
}

impl BedrockConfig {
    /// # Errors
    /// If there is no region, or there are no credentials.
    fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let present = |variable| env(variable).filter(|value| !value.trim().is_empty());
        let required = |variable: &'static str| {
            let problem = "is not set, and LAMPLIGHTER_BEDROCK is on".to_owned();
            present(variable).ok_or(ConfigError { variable, problem })
        };
        Ok(Self {
            region: present("LAMPLIGHTER_BEDROCK_REGION").map_or_else(|| required("AWS_REGION"), Ok)?,
            endpoint: present("AWS_ENDPOINT_URL_BEDROCK_RUNTIME"),
            credentials: AwsKeys {
                access_key_id: required("AWS_ACCESS_KEY_ID")?,
                secret_access_key: required("AWS_SECRET_ACCESS_KEY")?,
                session_token: present("AWS_SESSION_TOKEN"),
            },
        })
    }
}

/// The value of `LAMPLIGHTER_MODELS`.
#[derive(Default, Deserialize)]
struct ChosenModels {
    #[serde(default)]
    canary: Option<Canary>,
    #[serde(flatten)]
    first: BTreeMap<ModelClass, Vec<ModelRef>>,
}

impl ChosenModels {
    fn read(json: &str) -> Result<Self, String> {
        let chosen: Self = serde_json::from_str(json).map_err(|error| format!("is invalid: {error}"))?;
        if let Some(canary) = chosen.canary.as_ref().filter(|canary| !(1..=100).contains(&canary.percent)) {
            return Err(format!("is invalid: `canary.percent` must be 1 to 100, is {}", canary.percent));
        }
        let named = chosen.first.values().flatten().chain(chosen.canary.iter().map(|canary| &canary.model));
        for model in named {
            if model.vendor.has_prices() && prices::price(&model.model).is_none() {
                return Err(format!(
                    "is invalid: the model `{model}` has no known price, so no budget would limit it"
                ));
            }
        }
        Ok(chosen)
    }
}

impl std::fmt::Debug for ModelsConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelsConfig")
            .field("url", &self.url)
            .field("model", &self.model)
            .field("anthropic_key", &self.anthropic_key.is_some())
            .field("openai_key", &self.openai_key.is_some())
            .field("google_key", &self.google_key.is_some())
            .field("xai_key", &self.xai_key.is_some())
            .field("bedrock", &self.bedrock)
            .field("demo_url", &self.demo_url)
            .finish_non_exhaustive()
    }
}

impl BudgetConfig {
    /// # Errors
    /// If a budget limit is not a positive whole number.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let micros = |variable: &'static str, default: i64| match env(variable) {
            None => Ok(default),
            Some(text) => match text.parse() {
                Ok(micros) if micros > 0 => Ok(micros),
                _ => Err(ConfigError {
                    variable,
                    problem: format!("must be a positive number of micro-dollars, is `{text}`"),
                }),
            },
        };
        let default = Self::default();
        Ok(Self {
            run_micros: micros("LAMPLIGHTER_RUN_BUDGET_MICROS", default.run_micros)?,
            day_micros: micros("LAMPLIGHTER_DAY_BUDGET_MICROS", default.day_micros)?,
            day_max_micros: micros("LAMPLIGHTER_DAY_BUDGET_MAX_MICROS", default.day_max_micros)?,
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
            ("LAMPLIGHTER_MODEL_TOOLS", "off"),
        ])
        .unwrap()
        .models;
        assert_eq!((&models.anthropic_key, models.openai_key.as_deref()), (&None, Some("sk-1")));
        assert!(models.url_has_no_tools);
        assert!(!format!("{models:?}").contains("sk-1"));
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
        let alone = ModelsConfig::read(&|name| (name == "LAMPLIGHTER_BEDROCK").then(|| "on".to_owned()));
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
