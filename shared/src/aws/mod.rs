//! The AWS clients. They are built from the configuration without I/O, so they add little to a cold start.
//!
//! `aws-config` is not used. Lambda provides credentials in the environment, fixed for the life of the execution
//! environment. The full credential chain (profiles, IMDS, SSO) would only make the binary larger and slower to start.

pub mod bus;
pub mod queues;
pub mod signed;
pub mod storage;
pub mod timers;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Region, SharedHttpClient, timeout::TimeoutConfig};
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

use crate::config::AwsConfig;

/// The number of tries of a call, and the first pause between tries. The pause doubles each time. Pauses are short
/// because DynamoDB throttling ends within milliseconds and a person is waiting.
const TRIES: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(25);

/// Error codes that stay until somebody changes the deployment.
const MISCONFIGURED: [&str; 8] = [
    "AccessDenied",
    "AccessDeniedException",
    "InvalidAccessKeyId",
    "InvalidSignatureException",
    "NoSuchBucket",
    "ResourceNotFoundException",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
];

/// What the SDK clients of a process have in common.
#[derive(Clone)]
pub struct Settings {
    config: AwsConfig,
    credentials: Credentials,
    timeouts: TimeoutConfig,
    http: SharedHttpClient,
    retries: RetryConfig,
}

impl Settings {
    fn new(config: &AwsConfig) -> Self {
        let keys = &config.credentials;
        let session = keys.session_token.clone();
        let (id, secret) = (&keys.access_key_id, &keys.secret_access_key);
        Self {
            credentials: Credentials::new(id, secret, session, None, "environment"),
            timeouts: TimeoutConfig::builder()
                .operation_attempt_timeout(Duration::from_secs(8))
                .operation_timeout(Duration::from_secs(25))
                .build(),
            http: config.http.clone().unwrap_or_else(base::https::sdk_client),
            retries: RetryConfig::standard().with_max_attempts(TRIES).with_initial_backoff(FIRST_PAUSE),
            config: config.clone(),
        }
    }
}

/// A client that can be built when it is needed.
pub trait Build {
    fn build(settings: &Settings) -> Self;
}

// The config builders have setters with the same names but no common trait, so a macro avoids repetition.
macro_rules! build {
    ($sdk:ident, $endpoint:ident $(, $setter:ident)*) => {
        impl Build for $sdk::Client {
            fn build(settings: &Settings) -> Self {
                let endpoint = &settings.config.$endpoint;
                let mut builder = $sdk::Config::builder()
                    .behavior_version(BehaviorVersion::latest())
                    .region(Region::new(settings.config.region.clone()))
                    .credentials_provider(settings.credentials.clone())
                    .sleep_impl(aws_smithy_async::rt::sleep::TokioSleep::new())
                    .timeout_config(settings.timeouts.clone())
                    .http_client(settings.http.clone())
                    .retry_config(settings.retries.clone())
                    $(.$setter(endpoint.is_some()))*;
                builder.set_endpoint_url(endpoint.clone());
                Self::from_conf(builder.build())
            }
        }
    };
}

build!(aws_sdk_dynamodb, dynamodb_endpoint);
build!(aws_sdk_s3, s3_endpoint, force_path_style);
build!(aws_sdk_eventbridge, eventbridge_endpoint);
build!(aws_sdk_sqs, sqs_endpoint);

/// A client that is built on its first use. Only [`Lazy::get`] refers to the code that builds it, so a function that never uses
/// it does not contain it.
pub struct Lazy<C>(Arc<(Settings, OnceLock<C>)>);

impl<C: Build> Lazy<C> {
    #[must_use]
    pub fn get(&self) -> &C {
        let (settings, client) = &*self.0;
        client.get_or_init(|| C::build(settings))
    }
}

impl<C> Lazy<C> {
    fn new(settings: Settings) -> Self {
        Self(Arc::new((settings, OnceLock::new())))
    }
}

impl<C> Clone for Lazy<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C> std::fmt::Debug for Lazy<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lazy").finish_non_exhaustive()
    }
}

/// The SDK clients of one process. All functions use the table and the bucket.
#[derive(Clone, Debug)]
pub struct Clients {
    pub dynamodb: aws_sdk_dynamodb::Client,
    pub s3: aws_sdk_s3::Client,
    pub eventbridge: Lazy<aws_sdk_eventbridge::Client>,
    pub sqs: Lazy<aws_sdk_sqs::Client>,
}

impl Clients {
    #[must_use]
    pub fn new(config: &AwsConfig) -> Self {
        let settings = Settings::new(config);
        Self {
            dynamodb: Build::build(&settings),
            s3: Build::build(&settings),
            eventbridge: Lazy::new(settings.clone()),
            sqs: Lazy::new(settings),
        }
    }
}

/// Whether the deployment causes the failure, so that a retry fails too: a resource does not exist, or access is
/// denied.
pub(crate) fn is_misconfigured<E: ProvideErrorMetadata>(error: &SdkError<E>) -> bool {
    let code = error.as_service_error().and_then(ProvideErrorMetadata::code);
    code.is_some_and(|code| MISCONFIGURED.contains(&code))
}

/// The cause of a failed SDK call, for the log: the kind, the service's error code and the status. It never contains
/// the answer itself, which may hold a person's data. The SDK's own formatting would print the whole answer.
pub(crate) fn cause<E: ProvideErrorMetadata>(error: &SdkError<E>) -> String {
    match error {
        SdkError::ServiceError(failed) => {
            let code = failed.err().code().unwrap_or("an error without a code");
            format!("{code} (HTTP status {})", failed.raw().status().as_u16())
        }
        SdkError::ResponseError(broken) => {
            format!("an answer that can't be read (HTTP status {})", broken.raw().status().as_u16())
        }
        SdkError::TimeoutError(_) => "no answer in time".to_owned(),
        SdkError::DispatchFailure(failure) if failure.is_timeout() => "no connection in time".to_owned(),
        SdkError::DispatchFailure(_) => "no connection".to_owned(),
        _ => "the request could not be made".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::config::http::HttpResponse;
    use aws_sdk_dynamodb::error::ErrorMetadata;
    use aws_sdk_dynamodb::operation::get_item::GetItemError;
    use aws_smithy_types::body::SdkBody;

    use super::*;

    #[test]
    fn a_cause_has_the_error_code_and_nothing_of_the_answer() {
        let answer = HttpResponse::new(503.try_into().unwrap(), SdkBody::from("a person's secret"));
        let meta = ErrorMetadata::builder().code("SlowDown").message("a person's secret").build();
        let error = SdkError::service_error(GetItemError::generic(meta), answer);
        assert_eq!(cause(&error), "SlowDown (HTTP status 503)");
        let error: SdkError<GetItemError> = SdkError::timeout_error("a person's secret");
        assert_eq!(cause(&error), "no answer in time");
    }
}
