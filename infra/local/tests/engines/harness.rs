//! Engines in memory, and SDK clients for them.

use std::time::Duration;

use aws_credential_types::Credentials;
use aws_sdk_dynamodb::config::BehaviorVersion;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use lamplighter_local::engines::queue::QueueConfig;
use lamplighter_local::engines::{
    BUS_URL, DataLocation, Engines, EnginesConfig, Keys, QUEUES_URL, REGION, RuleConfig, TABLE_URL,
};

pub const TABLE: &str = "lamplighter";
pub const BUCKET: &str = "lamplighter-files";
pub const BUS: &str = "lamplighter-bus";
pub const QUEUE: &str = "occurrences";

pub fn config(data: DataLocation) -> EnginesConfig {
    EnginesConfig {
        data,
        table: TABLE.into(),
        bucket: BUCKET.into(),
        bus: BUS.into(),
        queues: vec![QueueConfig {
            name: QUEUE.into(),
            visibility_timeout: Duration::from_secs(30),
            max_receives: 3,
        }],
        rules: vec![RuleConfig {
            source: Some("lamplighter".into()),
            detail_types: vec!["occurrence.due".into()],
            queue: QUEUE.into(),
        }],
        expiry: true,
        faults: None,
        ports: false,
    }
}

pub async fn engines() -> Engines {
    Engines::start(config(DataLocation::Memory)).await.unwrap()
}

/// With a port for each engine.
pub async fn engines_with_ports() -> Engines {
    let config = EnginesConfig { ports: true, ..config(DataLocation::Memory) };
    Engines::start(config).await.unwrap()
}

macro_rules! sdk_config {
    ($sdk:ident, $url:expr, $retries:expr, $keys:expr, $http:expr) => {{
        let Keys { access_key_id, secret_access_key } = $keys;
        $sdk::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region($sdk::config::Region::new(REGION))
            .credentials_provider(Credentials::from_keys(access_key_id, secret_access_key, None))
            .http_client($http)
            .retry_config($retries)
            .endpoint_url($url)
    }};
}

pub fn dynamo(engines: &Engines) -> aws_sdk_dynamodb::Client {
    dynamo_with(engines, RetryConfig::disabled())
}

pub fn dynamo_with(engines: &Engines, retries: RetryConfig) -> aws_sdk_dynamodb::Client {
    let (keys, http) = (engines.keys(), engines.http_client());
    let config = sdk_config!(aws_sdk_dynamodb, TABLE_URL, retries, keys, http);
    aws_sdk_dynamodb::Client::from_conf(config.build())
}

/// Over TCP, with these keys.
pub fn dynamo_at(url: String, keys: &Keys) -> aws_sdk_dynamodb::Client {
    let http = base::https::sdk_client();
    let config = sdk_config!(aws_sdk_dynamodb, url, RetryConfig::disabled(), keys, http);
    aws_sdk_dynamodb::Client::from_conf(config.build())
}

pub fn s3(engines: &Engines) -> aws_sdk_s3::Client {
    s3_with(engines, RetryConfig::disabled())
}

/// Over TCP, with these keys.
pub fn s3_at(url: &str, keys: &Keys) -> aws_sdk_s3::Client {
    let http = base::https::sdk_client();
    let config = sdk_config!(aws_sdk_s3, url, RetryConfig::disabled(), keys, http).force_path_style(true);
    aws_sdk_s3::Client::from_conf(config.build())
}

pub fn s3_with(engines: &Engines, retries: RetryConfig) -> aws_sdk_s3::Client {
    // If there is a port, presigned addresses name it.
    let url = engines.s3_url().unwrap_or_else(|| "http://127.0.0.1:1".to_owned());
    let (keys, http) = (engines.keys(), engines.http_client());
    let config = sdk_config!(aws_sdk_s3, url, retries, keys, http).force_path_style(true);
    aws_sdk_s3::Client::from_conf(config.build())
}

pub fn events(engines: &Engines) -> aws_sdk_eventbridge::Client {
    let (keys, http) = (engines.keys(), engines.http_client());
    let config = sdk_config!(aws_sdk_eventbridge, BUS_URL, RetryConfig::disabled(), keys, http);
    aws_sdk_eventbridge::Client::from_conf(config.build())
}

pub fn queues(engines: &Engines, retries: RetryConfig) -> aws_sdk_sqs::Client {
    let (keys, http) = (engines.keys(), engines.http_client());
    let config = sdk_config!(aws_sdk_sqs, QUEUES_URL, retries, keys, http);
    aws_sdk_sqs::Client::from_conf(config.build())
}

/// Over TCP, with these keys.
pub fn events_at(url: String, keys: &Keys) -> aws_sdk_eventbridge::Client {
    let http = base::https::sdk_client();
    let config = sdk_config!(aws_sdk_eventbridge, url, RetryConfig::disabled(), keys, http);
    aws_sdk_eventbridge::Client::from_conf(config.build())
}

/// Fails a test that hangs. No machine is so busy that this takes ten minutes.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(600), future).await.expect("it hangs")
}
