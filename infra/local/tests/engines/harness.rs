//! Engines in memory, and SDK clients for them.

use std::time::Duration;

use aws_credential_types::Credentials;
use aws_sdk_dynamodb::config::BehaviorVersion;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use lamplighter_local::engines::queue::QueueConfig;
use lamplighter_local::engines::{
    ACCESS_KEY, DataLocation, Engines, EnginesConfig, REGION, RuleConfig, SECRET_KEY,
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
    }
}

pub async fn engines() -> Engines {
    Engines::start(config(DataLocation::Memory)).await.unwrap()
}

macro_rules! sdk_config {
    ($sdk:ident, $url:expr, $retries:expr) => {
        $sdk::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region($sdk::config::Region::new(REGION))
            .credentials_provider(Credentials::from_keys(ACCESS_KEY, SECRET_KEY, None))
            .http_client(shared::https::sdk_client())
            .retry_config($retries)
            .endpoint_url($url)
    };
}

pub fn dynamo(engines: &Engines) -> aws_sdk_dynamodb::Client {
    dynamo_with(engines, RetryConfig::disabled())
}

pub fn dynamo_with(engines: &Engines, retries: RetryConfig) -> aws_sdk_dynamodb::Client {
    let config = sdk_config!(aws_sdk_dynamodb, engines.dynamo_url(), retries);
    aws_sdk_dynamodb::Client::from_conf(config.build())
}

pub fn s3(engines: &Engines) -> aws_sdk_s3::Client {
    s3_with(engines, RetryConfig::disabled())
}

pub fn s3_at(url: &str) -> aws_sdk_s3::Client {
    let config = sdk_config!(aws_sdk_s3, url, RetryConfig::disabled()).force_path_style(true);
    aws_sdk_s3::Client::from_conf(config.build())
}

pub fn s3_with(engines: &Engines, retries: RetryConfig) -> aws_sdk_s3::Client {
    let config = sdk_config!(aws_sdk_s3, engines.s3_url(), retries).force_path_style(true);
    aws_sdk_s3::Client::from_conf(config.build())
}

pub fn events(engines: &Engines) -> aws_sdk_eventbridge::Client {
    let config = sdk_config!(aws_sdk_eventbridge, engines.events_url(), RetryConfig::disabled());
    aws_sdk_eventbridge::Client::from_conf(config.build())
}

/// Fails the test instead of hanging it.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it takes too long")
}
