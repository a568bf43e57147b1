//! The platform's engines and a model, and functions that use them.

use base::clock::Clock;
use lamplighter_local::platform::PlatformConfig;
use tests::Harness;

use crate::lambda::Lambda;
use crate::model::FakeModel;

/// What the functions of a test share. The local server shows their results, for the owner `local`.
pub struct Bed {
    pub server: Harness,
    pub model: FakeModel,
}

impl Bed {
    pub async fn new() -> Self {
        Self::with_clock(Clock::System).await
    }

    /// The local server uses this clock. Functions always use the system clock.
    pub async fn with_clock(clock: Clock) -> Self {
        // Timers and queues are off: the test decides when a function is invoked.
        let config =
            PlatformConfig { automatic: false, engine_ports: true, clock, ..PlatformConfig::in_memory() };
        Self { server: Harness::with(config).await, model: FakeModel::start().await }
    }

    pub async fn lambda(&self, function: &str) -> Lambda {
        self.lambda_with(function, &[]).await
    }

    pub async fn lambda_with(&self, function: &str, more: &[(&str, &str)]) -> Lambda {
        let engines = self.server.platform.engines();
        let port = |url: Option<String>| url.expect("the engines have ports");
        let mut variables = vec![
            ("AWS_ACCESS_KEY_ID".to_owned(), engines.keys().access_key_id.clone()),
            ("AWS_SECRET_ACCESS_KEY".to_owned(), engines.keys().secret_access_key.clone()),
            ("AWS_ENDPOINT_URL_DYNAMODB".to_owned(), port(engines.dynamo_url())),
            ("AWS_ENDPOINT_URL_S3".to_owned(), port(engines.s3_url())),
            ("AWS_ENDPOINT_URL_EVENTBRIDGE".to_owned(), port(engines.events_url())),
            ("AWS_ENDPOINT_URL_SQS".to_owned(), port(engines.sqs_url())),
            ("LAMPLIGHTER_QUEUE".to_owned(), self.server.platform.cx.config.aws.queue.clone()),
            ("LAMPLIGHTER_MODEL_URL".to_owned(), self.model.url()),
            ("LAMPLIGHTER_MODEL".to_owned(), "fake".to_owned()),
            ("LAMPLIGHTER_PRICES".to_owned(), r#"{"compatible/*": "free"}"#.to_owned()),
        ];
        variables.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Lambda::start(function, variables).await
    }
}
