//! When a message is delivered again: soon if its function reports a failure, late if the function crashes.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use aws_lambda_events::sqs::SqsEvent;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::error::ProvideErrorMetadata;
use base::clock::Clock;
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use lamplighter_local::engines::queue::{PollOptions, QueueConfig};
use lamplighter_local::engines::{
    BUS_URL, DataLocation, Engines, EnginesConfig, QUEUES_URL, REGION, TABLE_URL,
};
use models::Models;
use models::ModelsConfig;
use serde_json::{Value, json};
use shared::config::{
    AuthConfig, AwsConfig, AwsKeys, BudgetConfig, Config, CorsConfig, ExecutorsConfig, LogsConfig,
    NoticesConfig, PingsConfig, PlansConfig, ReachConfig, RunsConfig,
};
use shared::runtime::function::Invocation;
use shared::{Cx, Error, Result};
use tokio::time::Instant;

use crate::harness::{BUCKET, BUS, QUEUE, TABLE, config, queues};

/// As in the template.
const VISIBILITY: Duration = Duration::from_secs(5_400);

async fn start() -> (Engines, Cx) {
    let queue = QueueConfig { name: QUEUE.into(), visibility_timeout: VISIBILITY, max_receives: 5 };
    let config = EnginesConfig { queues: vec![queue], expiry: false, ..config(DataLocation::Memory) };
    let engines = Engines::start(config).await.unwrap();
    let aws = AwsConfig {
        table: TABLE.into(),
        bucket: BUCKET.into(),
        bus: BUS.into(),
        queue: String::new(),
        dead_letters: None,
        timers: Vec::new(),
        region: REGION.into(),
        credentials: AwsKeys {
            access_key_id: engines.keys().access_key_id.clone(),
            secret_access_key: engines.keys().secret_access_key.clone(),
            session_token: None,
        },
        dynamodb_endpoint: Some(TABLE_URL.into()),
        s3_endpoint: None,
        eventbridge_endpoint: Some(BUS_URL.into()),
        sqs_endpoint: Some(QUEUES_URL.into()),
        ssm_endpoint: None,
        ses_endpoint: None,
        scheduler_endpoint: None,
        http: Some(engines.http_client()),
        eraser: None,
    };
    let config = Config {
        aws,
        auth: AuthConfig::Off,
        master_keys: Default::default(),
        models: ModelsConfig::default(),
        budget: BudgetConfig::default(),
        logs: LogsConfig::default(),
        cors: CorsConfig::default(),
        sign_in: None,
        executors: ExecutorsConfig::default(),
        runs: RunsConfig::default(),
        reach: ReachConfig::default(),
        pings: PingsConfig::default(),
        notices: NoticesConfig::default(),
        plans: PlansConfig::default(),
        rates: domain::accounts::rates::RateLimits::OFF,
    };
    let models = Models::none(&config.models).unwrap();
    let cx = Cx::with_models(config, Clock::System, models);
    (engines, cx)
}

/// When each message was handled.
static HANDLED: LazyLock<Mutex<BTreeMap<String, Vec<Instant>>>> = LazyLock::new(Mutex::default);

fn handle(_: Cx, _: Invocation, message: Value) -> BoxFuture<'static, Result<()>> {
    let name = message["name"].as_str().unwrap().to_owned();
    HANDLED.lock().unwrap().entry(name.clone()).or_default().push(Instant::now());
    async move {
        match name.as_str() {
            "works" => Ok(()),
            "fails" => Err(Error::internal("the table does not answer")),
            // If one message panics, its function reports a failure.
            _ => panic!("it panics"),
        }
    }
    .boxed()
}

#[tokio::test(start_paused = true)]
async fn a_reported_failure_is_retried_soon_and_a_crash_after_the_visibility_timeout() {
    let (engines, cx) = start().await;
    let queue = engines.queue(QUEUE).unwrap();
    let crashes = Arc::new(Mutex::new(Vec::new()));
    let crashed = crashes.clone();
    let options = PollOptions { batch_size: 1, concurrency: 4, timeout: Duration::from_secs(900) };
    let poller = queue.poll_with(options, move |event| {
        let (cx, crashes) = (cx.clone(), crashes.clone());
        async move {
            let event: SqsEvent = serde_json::from_value(event)?;
            if event.records[0].body.as_deref() == Some("crash") {
                crashes.lock().unwrap().push(Instant::now());
                return Err("the process is gone".into());
            }
            let invocation = Invocation { deadline: Timestamp::MAX };
            let response = shared::runtime::lambda::batch(cx, handle, invocation, event).await;
            Ok(serde_json::to_value(response)?)
        }
    });
    for name in ["works", "fails", "panics"] {
        queue.send(json!({ "name": name }).to_string(), Duration::ZERO);
    }
    queue.send("crash", Duration::ZERO);
    tokio::time::sleep(4 * VISIBILITY + Duration::from_secs(60)).await;
    poller.stop().await;

    let pauses = |at: &[Instant]| -> Vec<u64> {
        at.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64().round() as u64).collect()
    };
    let handled = HANDLED.lock().unwrap().clone();
    assert_eq!(handled["works"].len(), 1, "it succeeded");
    for name in ["fails", "panics"] {
        assert_eq!(pauses(&handled[name]), [20, 40, 80, 160], "{name}");
    }
    assert_eq!(pauses(&crashed.lock().unwrap()), [5_400; 4]);
    engines.shutdown().await;
}

#[tokio::test]
async fn only_the_current_delivery_changes_the_visibility() {
    let (engines, _) = start().await;
    let queue = engines.queue(QUEUE).unwrap();
    let id = queue.send("a", Duration::ZERO);
    let message = queue.receive(1, Duration::ZERO).await.remove(0);
    let sqs = queues(&engines, RetryConfig::disabled());
    let url = format!("https://sqs.us-east-1.amazonaws.com/000000000000/{QUEUE}");
    let change = async |url: &str, receipt: &str, seconds: i32| {
        let change = sqs.change_message_visibility().queue_url(url).receipt_handle(receipt);
        let changed = change.visibility_timeout(seconds).send().await;
        changed.err().map(|error| error.code().unwrap_or_default().to_owned())
    };
    let receipt = message.receipt.to_string();
    for (url, receipt, seconds, code) in [
        ("https://sqs.us-east-1.amazonaws.com/000000000000/other", receipt.as_str(), 20, "QueueDoesNotExist"),
        (&url, "no receipt", 20, "ReceiptHandleIsInvalid"),
        (&url, "ff.0193f2a7c5e7d3a9b1f4c6d8e0a2b4c0", 20, "InvalidParameterValue"),
        (&url, &receipt, 43_201, "InvalidParameterValue"),
        (&url, &receipt, -1, "SerializationException"),
    ] {
        assert_eq!(change(url, receipt, seconds).await.as_deref(), Some(code), "{url} {receipt} {seconds}");
    }
    assert!(queue.hidden_for(id).unwrap() > Duration::from_secs(5_000));
    assert_eq!(change(&url, &receipt, 20).await, None);
    assert!(queue.hidden_for(id).unwrap() <= Duration::from_secs(20));
    queue.delete(message.receipt).unwrap();
    assert_eq!(queue.hidden_for(id), None);
    engines.shutdown().await;
}
