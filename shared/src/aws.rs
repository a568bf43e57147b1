//! The AWS clients: built from the configuration without I/O, so that a cold start pays for none of it twice.
//!
//! `aws-config` is left out: Lambda hands credentials over in the environment, fixed for the life of the execution
//! environment, and the whole chain (profiles, IMDS, SSO) would only make the binary larger and slower to start.

use std::time::Duration;

use aws_credential_types::Credentials;
use aws_sdk_dynamodb::config::{BehaviorVersion, Region, SharedHttpClient, timeout::TimeoutConfig};
use aws_smithy_http_client::{Builder, tls};

use crate::config::AwsConfig;

/// The SDK clients of one process.
#[derive(Clone, Debug)]
pub struct Clients {
    pub dynamodb: aws_sdk_dynamodb::Client,
    pub s3: aws_sdk_s3::Client,
    pub eventbridge: aws_sdk_eventbridge::Client,
}

impl Clients {
    #[must_use]
    pub fn new(config: &AwsConfig) -> Self {
        let keys = &config.credentials;
        let credentials = Credentials::new(
            &keys.access_key_id,
            &keys.secret_access_key,
            keys.session_token.clone(),
            None,
            "environment",
        );
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(Duration::from_secs(2))
            .operation_attempt_timeout(Duration::from_secs(8))
            .operation_timeout(Duration::from_secs(25))
            .build();
        // The three config builders share their setters' names but no trait: a macro says it once.
        macro_rules! client {
            ($sdk:ident, $endpoint:expr $(, $setter:ident($value:expr))*) => {{
                let endpoint: &Option<String> = $endpoint;
                let mut builder = $sdk::Config::builder()
                    .behavior_version(BehaviorVersion::latest())
                    .region(Region::new(config.region.clone()))
                    .credentials_provider(credentials.clone())
                    .sleep_impl(aws_smithy_async::rt::sleep::TokioSleep::new())
                    .timeout_config(timeouts.clone())
                    .http_client(http_client(endpoint.as_deref()))
                    $(.$setter($value))*;
                builder.set_endpoint_url(endpoint.clone());
                $sdk::Client::from_conf(builder.build())
            }};
        }
        Self {
            dynamodb: client!(aws_sdk_dynamodb, &config.dynamodb_endpoint),
            s3: client!(aws_sdk_s3, &config.s3_endpoint, force_path_style(config.s3_endpoint.is_some())),
            eventbridge: client!(aws_sdk_eventbridge, &config.eventbridge_endpoint),
        }
    }
}

/// Plain HTTP for an endpoint on this machine, TLS for everything else.
fn http_client(endpoint: Option<&str>) -> SharedHttpClient {
    if endpoint.is_some_and(|url| url.starts_with("http://")) {
        return Builder::new().build_http();
    }
    Builder::new().tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring)).build_https()
}
