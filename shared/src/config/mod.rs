//! All configuration: one struct per area, read from the environment once, only here.
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `LAMPLIGHTER_TABLE` | DynamoDB table | `lamplighter` |
//! | `LAMPLIGHTER_BUCKET` | S3 bucket for bodies and files | `lamplighter` |
//! | `LAMPLIGHTER_BUS` | EventBridge bus | `lamplighter` |
//! | `LAMPLIGHTER_QUEUE` | URL of the SQS queue from which executors take due work | none |
//! | `LAMPLIGHTER_DEAD_LETTERS` | ARN of the SQS queue with the messages that could not be handled, for the watchdog | none: it is not looked at |
//! | `LAMPLIGHTER_TIMERS` | names of the schedules of EventBridge Scheduler that wake functions, for the watchdog, separated by commas | none: they are not looked at |
//! | `LAMPLIGHTER_SWEEP_PING_URL`, `LAMPLIGHTER_WATCHDOG_PING_URL` | a public https address that is called after each sweep and each look, with `/fail` at its end if it has failed | none |
//! | `LAMPLIGHTER_EXECUTORS` | how many executors work at once: bounds how many of them one owner's runs may take | 10 |
//! | `LAMPLIGHTER_AUTH` | `on`: every call needs a JWT or an API key; `off`: every call is the owner `local` | `on` |
//! | `LAMPLIGHTER_JWT_ISSUER` | the OIDC issuer whose tokens are accepted | none: API keys only |
//! | `LAMPLIGHTER_JWT_AUDIENCE` | the audience that a token must name, or `stage:` and a variable of the stage of API Gateway that has it | required with an issuer |
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
//! | `LAMPLIGHTER_SIGN_IN_CLIENT_ID` | the client of an OpenID Connect provider with which people sign in to the console, or `stage:` and a variable of the stage of API Gateway that has it | none: people paste a key |
//! | `LAMPLIGHTER_SIGN_IN_AUTHORIZE_URL`, `LAMPLIGHTER_SIGN_IN_TOKEN_URL` | the provider's addresses for signing in and for tokens | required with a client |
//! | `LAMPLIGHTER_SIGN_IN_SCOPE` | the scopes that the console asks for | `openid` |
//! | `LAMPLIGHTER_SIGN_IN_TOKEN` | the token that the console sends: `id_token` or `access_token` | `id_token` |
//! | `LAMPLIGHTER_LOG_HOT_DAYS` | the number of days after which lines of context logs move from the table to the bucket, 1 to 65535 | 30 |
//! | `LAMPLIGHTER_ALLOWED_HOSTS` | hosts that are reached although they are not public, such as `models.internal:8080`, separated by commas | none |
//! | `LAMPLIGHTER_SMTP_CA_FILE` | PEM file with authorities that are trusted for mail servers of people, besides the public ones | none |
//! | `LAMPLIGHTER_TELEGRAM_API` | the address of another server of Telegram's Bot API | `https://api.telegram.org` |
//! | `LAMPLIGHTER_PUBLIC_URL` | the address under which people reach the platform, for the links of notices and the addresses for reports of calls | `http://127.0.0.1:9000` |
//! | `LAMPLIGHTER_MAIL_CONFIGURATION_SET` | the configuration set of Amazon SES with which e-mails are sent | none |
//! | `LAMPLIGHTER_MAIL_FROM` | the sender of e-mails, which Amazon SES has verified | none: no e-mails |
//! | `LAMPLIGHTER_ANSWER_DAYS` | for how many days a call waits for a person's yes, 1 to 28 | 14 |
//! | `AWS_REGION`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN` | set by Lambda | |
//! | `AWS_ENDPOINT_URL_DYNAMODB`, `…_S3`, `…_EVENTBRIDGE`, `…_SQS`, `…_SSM`, `…_SESV2`, `…_SCHEDULER` | endpoints that replace those of AWS | none |
//!
//! [`providers`] reads the variables of the model layer.

mod access;
mod aws;
mod money;
mod notices;
pub mod outside;
mod pings;
pub mod providers;
mod runs;
mod unknown;

use domain::accounts::rates::RateLimits;
use models::ModelsConfig;

pub use self::access::{AuthConfig, CorsConfig, Given, JwtConfig, JwtKeys, SignIn, SignInToken, rates};
pub use self::aws::{AwsConfig, Eraser, MasterKeysConfig};
pub use self::money::{BudgetConfig, PlansConfig};
pub use self::notices::{MailConfig, NoticesConfig};
pub use self::pings::PingsConfig;
pub use self::runs::{ExecutorsConfig, LogsConfig, ReachConfig, RunsConfig};
pub use self::unknown::{VARIABLES, unknown_variables, warn_of_unknown_variables};
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
    /// How people sign in to the console, if not with a key.
    pub sign_in: Option<SignIn>,
    pub runs: RunsConfig,
    pub reach: ReachConfig,
    pub notices: NoticesConfig,
    pub pings: PingsConfig,
    pub executors: ExecutorsConfig,
    pub plans: PlansConfig,
    /// How many requests a caller may make.
    pub rates: RateLimits,
}

/// The environment of the process, or a map in a test.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Config {
    /// # Errors
    /// [`ConfigError`] names the variable that is missing or wrong.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let auth = AuthConfig::read(env)?;
        let reach = ReachConfig::read(env)?;
        Ok(Self {
            aws: AwsConfig::read(env)?,
            rates: rates(env, &auth)?,
            auth,
            master_keys: MasterKeysConfig::read(env)?,
            models: providers::read(env)?,
            budget: BudgetConfig::read(env)?,
            logs: LogsConfig::read(env)?,
            runs: RunsConfig::read(env)?,
            notices: NoticesConfig::read(env)?,
            pings: PingsConfig::read(env, &reach.policy)?,
            reach,
            cors: CorsConfig::read(env)?,
            sign_in: SignIn::read(env)?,
            executors: ExecutorsConfig::read(env)?,
            plans: PlansConfig::read(env)?,
        })
    }
}

/// The values of a variable that are separated by commas.
fn listed(env: Env<'_>, variable: &str) -> Vec<String> {
    let text = env(variable).unwrap_or_default();
    text.split(',').map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned).collect()
}

/// The value of a variable, without space around it. `None` if nothing is left.
fn given(env: Env<'_>, variable: &str) -> Option<String> {
    env(variable).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
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

#[cfg(test)]
mod tests;
