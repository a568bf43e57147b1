//! The AWS resources and the keys of a function.

use std::sync::Arc;

use aws_sdk_dynamodb::config::SharedHttpClient;
use base::aws_keys::AwsKeys;
use domain::ids::Owner;
use futures::future::BoxFuture;
use secrecy::SecretSlice;

use super::{ConfigError, Env, given, listed};

/// The AWS resources and how to reach them.
#[derive(Clone, Debug)]
pub struct AwsConfig {
    pub table: String,
    pub bucket: String,
    pub bus: String,
    /// The URL of the executors' queue.
    pub queue: String,
    /// The ARN of the queue with the messages that could not be handled. Only the watchdog needs it.
    pub dead_letters: Option<String>,
    /// The names of the timers, which are schedules of EventBridge Scheduler. Only the watchdog needs them.
    pub timers: Vec<String>,
    pub region: String,
    pub credentials: AwsKeys,
    pub dynamodb_endpoint: Option<String>,
    pub s3_endpoint: Option<String>,
    pub eventbridge_endpoint: Option<String>,
    pub sqs_endpoint: Option<String>,
    pub ssm_endpoint: Option<String>,
    pub ses_endpoint: Option<String>,
    pub scheduler_endpoint: Option<String>,
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
            dead_letters: given(env, "LAMPLIGHTER_DEAD_LETTERS"),
            timers: listed(env, "LAMPLIGHTER_TIMERS"),
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
            ses_endpoint: env("AWS_ENDPOINT_URL_SESV2"),
            scheduler_endpoint: env("AWS_ENDPOINT_URL_SCHEDULER"),
            http: None,
            eraser: None,
        })
    }
}

impl AwsConfig {
    /// The address of a service in this region.
    #[must_use]
    pub fn endpoint(&self, service: &str) -> String {
        let suffix = if self.region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        format!("https://{service}.{}.{suffix}", self.region)
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
