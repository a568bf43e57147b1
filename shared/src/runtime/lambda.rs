//! Runs a [`Function`] against the Lambda Runtime API.

use std::process::ExitCode;
use std::time::Duration;

use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent};
use axum::Router;
use base::clock::Clock;
use futures::FutureExt;
use futures::future::join_all;
use jiff::Timestamp;
use lambda_http::RequestExt;
use lambda_http::request::RequestContext;
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::Value;
use tower::util::MapRequest;
use tracing::Instrument;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::prelude::*;

use crate::aws::queues::Delivery;
use crate::config::{Config, warn_of_unknown_variables};
use crate::context::Cx;
use crate::edge::app;
use crate::error::{Error, Result, caught};
use crate::process::held_places::Places;
use crate::request::BasePath;
use crate::runtime::function::{Function, Invocation, Trigger, Uploaded};
use crate::runtime::{logging, model_keys};

/// How many runs one invocation of an executor drives at once. A run mostly waits for its model, so ten cost little
/// more than one. Ten is also the most messages that SQS delivers at once without a batching window.
pub const BATCH: usize = 10;

/// How long a start may wait for the table. If the table is unavailable, the first invocation reports it.
const WARM_UP: Duration = Duration::from_millis(500);

/// The complete `main` of a function.
///
/// It is inlined there, where the declaration is a constant. So the binary does not contain the code for the other
/// triggers.
#[inline(always)]
#[must_use]
pub fn run(function: &Function) -> ExitCode {
    let Function { name, trigger, .. } = *function;
    match trigger {
        Trigger::Http { routes, streaming: true } => {
            start(function, move |cx| lambda_http::run_with_streaming_response(service(cx, routes())))
        }
        Trigger::Http { routes, streaming: false } => {
            start(function, move |cx| lambda_http::run(service(cx, routes())))
        }
        Trigger::Timer { handler, .. } => start(function, move |cx| {
            lambda_runtime::run(service_fn(move |event: LambdaEvent<Value>| {
                let call = handler(cx.clone(), invocation(&event));
                logged(name, event.context.request_id, call)
            }))
        }),
        Trigger::Authorizer { handler } => start(function, move |cx| {
            lambda_runtime::run(service_fn(move |event: LambdaEvent<Value>| {
                let call = handler(cx.clone(), event.payload);
                logged(name, event.context.request_id, call)
            }))
        }),
        Trigger::Queue { handler } => start(function, move |cx| {
            lambda_runtime::run(service_fn(move |event: LambdaEvent<SqsEvent>| {
                let invocation = invocation(&event);
                // Boxed: the compiler has a limit on how deep the types of futures go.
                let call = batch(cx.clone(), handler, invocation, event.payload).boxed().map(Ok);
                logged(name, event.context.request_id, call)
            }))
        }),
        Trigger::Upload { handler } => start(function, move |cx| {
            lambda_runtime::run(service_fn(move |event: LambdaEvent<SqsEvent>| {
                let invocation = invocation(&event);
                let call = uploads(cx.clone(), handler, invocation, event.payload).map(Ok);
                logged(name, event.context.request_id, call)
            }))
        }),
    }
}

type Served = std::result::Result<(), lambda_runtime::Error>;

fn start<F: Future<Output = Served>>(function: &Function, serve: impl FnOnce(Cx) -> F) -> ExitCode {
    init_tracing();
    log_panic_location();
    crate::process::metrics::collect();
    // One thread: an environment serves one invocation at a time, and most have less than one core.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed_to_start(&error),
    };
    warn_of_unknown_variables();
    let env = |name: &str| std::env::var(name).ok();
    let config = runtime
        .block_on(model_keys::read(&env))
        .and_then(|keys| Config::read(&model_keys::with_keys(&env, &keys)));
    let config = match config {
        Ok(config) => config,
        Err(error) => return failed_to_start(&error),
    };
    let cx = match (function.models)(&config.models) {
        Ok(models) => {
            Cx::with_models(config, Clock::System, models).with(|parts| parts.areas = function.areas)
        }
        Err(error) => return failed_to_start(&format_args!("read the models' configuration: {error}")),
    };
    let ended = runtime.block_on(async {
        // During its start, an environment of any size has full cores; an invocation with 512 MB has a third
        // of one. The handshake with the table would be most of the waiting time of a first invocation.
        if tokio::time::timeout(WARM_UP, cx.store.warm()).await.is_err() {
            tracing::debug!("the table is not warm: no answer in time");
        }
        // Only functions that call models have runs to release.
        if cx.models.are_configured() {
            crate::runtime::shutdown::watch(cx.clone()).await;
        }
        serve(cx).await
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("the runtime ended: {error}");
            ExitCode::FAILURE
        }
    }
}

fn failed_to_start(error: &dyn std::fmt::Display) -> ExitCode {
    tracing::error!("failed to start: {error}");
    ExitCode::FAILURE
}

/// The routes in the form that the runners of `lambda_http` serve.
fn service(
    cx: Cx,
    routes: Router<Cx>,
) -> MapRequest<Router, fn(lambda_http::Request) -> lambda_http::Request> {
    MapRequest::new(app::app(cx, routes, None), as_routed)
}

/// Converts a request's path to the path of the route. It removes the stage, which the default domain of a REST API
/// adds, and the base path that a custom domain may add. Answers need both again: see [`BasePath`].
fn as_routed(request: lambda_http::Request) -> lambda_http::Request {
    let raw = request.raw_http_path().to_owned();
    let (resource, seen) = match request.request_context_ref() {
        Some(RequestContext::ApiGatewayV1(context)) => {
            (context.resource_path.clone().unwrap_or_default(), context.path.clone().unwrap_or_default())
        }
        _ => Default::default(),
    };
    let deadline = request
        .lambda_context_ref()
        .and_then(|context| Timestamp::from_millisecond(i64::try_from(context.deadline).ok()?).ok());
    let (mut parts, body) = request.into_parts();
    if let Some(deadline) = deadline {
        parts.extensions.insert(Invocation { deadline });
    }
    let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let path = below_base(&raw, &resource);
    // Only the context has the path as the client sees it, with the stage. It may encode other characters.
    let base = seen.strip_suffix(path).or_else(|| seen.strip_suffix(below_base(&seen, &resource)));
    if let Some(base) = base.filter(|base| !base.is_empty()) {
        parts.extensions.insert(BasePath(base.to_owned()));
    }
    if path.starts_with('/')
        && let Ok(uri) = format!("{path}{query}").parse()
    {
        parts.uri = uri;
    }
    lambda_http::Request::from_parts(parts, body)
}

/// The longest end of the path that matches this resource, such as `/agents/{agent_id}`. The whole path if none
/// matches.
fn below_base<'a>(path: &'a str, resource: &str) -> &'a str {
    let is_one = |candidate: &&str| {
        let mut given = candidate.split('/');
        for part in resource.split('/') {
            match given.next() {
                // Matches the rest of the path.
                Some(_) if part.ends_with("+}") => return true,
                Some(given) if part.starts_with('{') && !given.is_empty() => {}
                Some(given) if given == part => {}
                _ => return false,
            }
        }
        given.next().is_none()
    };
    path.match_indices('/').map(|(at, _)| &path[at..]).find(is_one).unwrap_or(path)
}

fn invocation<T>(event: &LambdaEvent<T>) -> Invocation {
    let millis = i64::try_from(event.context.deadline).unwrap_or(i64::MAX);
    Invocation { deadline: Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX) }
}

async fn logged<T>(
    function: &'static str,
    request_id: String,
    call: impl Future<Output = Result<T>>,
) -> std::result::Result<T, lambda_runtime::Error> {
    let span = tracing::info_span!("invocation", function, request_id);
    let ended = caught(call).instrument(span.clone()).await.flatten();
    ended.map_err(|error| {
        // API Gateway answers 401 only if the authorizer fails with exactly this word, and 500 otherwise.
        if let Error::Unauthenticated(reason) = error {
            span.in_scope(|| tracing::info!(reason, "refused"));
            return lambda_runtime::Error::from("Unauthorized");
        }
        span.in_scope(|| tracing::error!(code = error.code(), cause = %error.causes(), "invocation failed"));
        // The runtime reports this text. It contains the kind of failure and no content.
        lambda_runtime::Error::from(format!("{function} failed: {}", error.code()))
    })
}

type UploadHandler = fn(Cx, Invocation, Uploaded) -> futures::future::BoxFuture<'static, Result<()>>;

/// Handles the S3 notifications of a batch concurrently. The response names the messages that failed; they are retried.
pub async fn uploads(
    cx: Cx,
    handler: UploadHandler,
    invocation: Invocation,
    event: SqsEvent,
) -> SqsBatchResponse {
    each(&cx, event, |body| {
        let (uploads, cx) = (uploads_of(&body), cx.clone());
        async move {
            for upload in uploads? {
                handler(cx.clone(), invocation, upload).await?;
            }
            Ok(())
        }
    })
    .await
}

/// The fields of S3's event that are used.
#[derive(serde::Deserialize)]
struct Notification {
    #[serde(rename = "Records")]
    records: Option<Vec<NotificationRecord>>,
    #[serde(rename = "Event")]
    event: Option<String>,
}

#[derive(serde::Deserialize)]
struct NotificationRecord {
    s3: NotificationEntity,
}

#[derive(serde::Deserialize)]
struct NotificationEntity {
    object: NotificationObject,
}

#[derive(serde::Deserialize)]
struct NotificationObject {
    key: String,
    #[serde(default)]
    sequencer: String,
}

fn uploads_of(body: &str) -> Result<Vec<Uploaded>> {
    let notification: Notification = serde_json::from_str(body)
        .map_err(|error| Error::internal(format!("the message is not an S3 notification: {error}")))?;
    match (notification.records, notification.event.as_deref()) {
        (Some(records), _) => Ok(records
            .into_iter()
            .map(|NotificationRecord { s3: NotificationEntity { object } }| Uploaded {
                key: decoded(&object.key),
                sequencer: object.sequencer,
            })
            .collect()),
        // S3 sends this event when the notification is configured.
        (None, Some("s3:TestEvent")) => Ok(Vec::new()),
        (None, _) => Err(Error::internal("the message is not an S3 notification: it has no records")),
    }
}

/// Decodes a key of a notification. It is encoded like a form value, in which `+` is a space.
fn decoded(key: &str) -> String {
    let value = key.replace('&', "%26").replace('=', "%3D");
    form_urlencoded::parse(value.as_bytes()).next().map(|(key, _)| key.into_owned()).unwrap_or_default()
}

type QueueHandler = fn(Cx, Invocation, Value) -> futures::future::BoxFuture<'static, Result<()>>;

/// Handles the messages of a batch concurrently, each with the places of this invocation. The response names the messages that
/// failed; they are retried.
pub async fn batch(
    cx: Cx,
    handler: QueueHandler,
    invocation: Invocation,
    event: SqsEvent,
) -> SqsBatchResponse {
    let places = Places::with_room(BATCH.saturating_sub(event.records.len()));
    let cx = cx.with(|parts| parts.places = places.clone());
    let response = each(&cx, event, |body| {
        let (message, cx) = (message_of(&body), cx.clone());
        async move { handler(cx, invocation, message?).await }
    })
    .await;
    places.leave_all(&cx).await;
    response
}

/// Handles each message of a batch, and asks the queue to retry failed ones soon. A message whose function crashes
/// stays hidden for the queue's visibility timeout.
async fn each<F: Future<Output = Result<()>>>(
    cx: &Cx,
    event: SqsEvent,
    handle: impl Fn(String) -> F,
) -> SqsBatchResponse {
    let handled = event.records.into_iter().map(|record| {
        let delivery = Delivery::of(&record);
        let id = record.message_id.unwrap_or_default();
        let span = tracing::info_span!("message", message_id = %id);
        let handled = handle(record.body.unwrap_or_default());
        async move {
            match caught(handled).await.flatten() {
                Ok(()) => None,
                Err(error) => {
                    tracing::error!(code = error.code(), cause = %error.causes(), "message failed");
                    if let Some(delivery) = delivery {
                        cx.queues.retry_soon(delivery).await;
                    }
                    Some(id)
                }
            }
        }
        .instrument(span)
    });
    let mut response = SqsBatchResponse::default();
    response.batch_item_failures = join_all(handled)
        .await
        .into_iter()
        .flatten()
        .map(|id| {
            let mut failure = BatchItemFailure::default();
            failure.item_identifier = id;
            failure
        })
        .collect();
    response
}

fn message_of(body: &str) -> Result<Value> {
    serde_json::from_str(body).map_err(|error| Error::internal(format!("the message is not JSON: {error}")))
}

/// Logs the location of a panic but not its text, because the text may quote what somebody has written.
fn log_panic_location() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "panicked");
    }));
}

/// Writes JSON lines for CloudWatch. `RUST_LOG` sets the level. Only fields that the code names are written, never
/// bodies.
fn init_tracing() {
    let filter = logging::filter(LevelFilter::INFO);
    let lines = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(true)
        .with_span_list(false)
        .without_time()
        .with_target(false);
    tracing_subscriber::registry().with(lines.with_filter(filter)).init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_path_is_not_part_of_the_route() {
        for (path, resource, expected) in [
            ("/agents", "/agents", "/agents"),
            ("/v1/agents", "/agents", "/agents"),
            ("/a/b/agents/x", "/agents/{agent_id}", "/agents/x"),
            // The base path has the name of a route, and an id does, too.
            ("/agents/agents", "/agents", "/agents"),
            ("/agents/agents", "/agents/{agent_id}", "/agents/agents"),
            ("/v1/p/f/a/b.css", "/p/f/{path+}", "/p/f/a/b.css"),
            ("/p/f/p/f/a%2Fb", "/p/f/{path+}", "/p/f/p/f/a%2Fb"),
            ("/v1/", "/", "/"),
            // A path that does not match the resource is not changed.
            ("/v1/agents/", "/agents/{agent_id}", "/v1/agents/"),
            ("/v1/other", "/agents", "/v1/other"),
            ("/v1/agents", "", "/v1/agents"),
            ("", "/agents", ""),
        ] {
            assert_eq!(below_base(path, resource), expected, "{path} of {resource}");
        }
    }

    #[test]
    fn a_notification_names_its_objects_decoded_once() {
        let check = |body: &str, expected: &[&str]| {
            let keys: Vec<String> = uploads_of(body).unwrap().into_iter().map(|upload| upload.key).collect();
            assert_eq!(keys, expected, "{body}");
        };
        let record = |key: &str| format!(r#"{{"s3": {{"object": {{"key": "{key}", "sequencer": "0A"}}}}}}"#);
        let both =
            format!(r#"{{"Records": [{}, {}]}}"#, record("a/b.zip"), record("auth0%7Cme/x+y%2Bz%252F.zip"));
        check(&both, &["a/b.zip", "auth0|me/x y+z%2F.zip"]);
        check(&format!(r#"{{"Records": [{}]}}"#, record("a=b%3Dc%26d&e")), &["a=b=c&d&e"]);
        check(r#"{"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "b"}"#, &[]);
        check(r#"{"Records": []}"#, &[]);
        for body in ["", "{}", "[]", r#"{"Records": [{}]}"#, r#"{"Event": "else"}"#] {
            assert!(uploads_of(body).is_err(), "{body}");
        }
    }
}
