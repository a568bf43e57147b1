//! Connects the AWS SDK to the engines with calls inside this process. It opens no port.

use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};

use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use axum::body::Body;
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body::{Body as HttpBody, Frame, SizeHint};

use crate::handler::Handler;

/// The host of each engine's endpoint, except for the bucket. The bucket has every other host, because presigned
/// addresses contain the host and port at which clients can reach it.
pub(super) const TABLE_HOST: &str = "table.invalid";
pub(super) const BUS_HOST: &str = "bus.invalid";
pub(super) const QUEUES_HOST: &str = "queues.invalid";

/// The engines as the SDK calls them.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    pub table: Handler,
    pub bus: Handler,
    pub queues: Handler,
    pub bucket: Handler,
}

impl Transport {
    /// The HTTP client of the SDK's clients.
    pub(super) fn client(&self) -> SharedHttpClient {
        let connector = SharedHttpConnector::new(self.clone());
        http_client_fn(move |_, _| connector.clone())
    }

    fn handler(&self, uri: &Uri) -> Handler {
        match uri.host() {
            Some(TABLE_HOST) => self.table.clone(),
            Some(BUS_HOST) => self.bus.clone(),
            Some(QUEUES_HOST) => self.queues.clone(),
            _ => self.bucket.clone(),
        }
    }
}

impl HttpConnector for Transport {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let request = match request.try_into_http1x() {
            Ok(request) => request,
            Err(error) => return HttpConnectorFuture::ready(Err(ConnectorError::user(error.into()))),
        };
        let handler = self.handler(request.uri());
        HttpConnectorFuture::new(async move {
            // A call that never waits would keep its task from letting others run.
            tokio::task::yield_now().await;
            let answer = handler.call(as_sent(request)).await;
            let answer = answer.map_err(|hangup| ConnectorError::io(hangup.into()))?;
            let answer = answer.map(|body| SdkBody::from_body_1_x(Synced(Mutex::new(body))));
            HttpResponse::try_from(answer).map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

/// The request with what an HTTP/1.1 client adds: the host, the length, and a target without the host.
fn as_sent(request: Request<SdkBody>) -> Request<Body> {
    let (mut parts, body) = request.into_parts();
    let host = parts.uri.authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    if let (Some(host), false) = (host, parts.headers.contains_key(header::HOST)) {
        parts.headers.insert(header::HOST, host);
    }
    if let (Some(length @ 1..), false) =
        (body.content_length(), parts.headers.contains_key(header::CONTENT_LENGTH))
    {
        parts.headers.insert(header::CONTENT_LENGTH, length.into());
    }
    let target = parts.uri.path_and_query().cloned();
    parts.uri = Uri::from(target.unwrap_or_else(|| PathAndQuery::from_static("/")));
    Request::from_parts(parts, Body::new(body))
}

/// A body that threads can share, as the SDK requires. Only one thread reads it at a time.
struct Synced(Mutex<Body>);

impl HttpBody for Synced {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let body = self.get_mut().0.get_mut().expect("nothing panics while it is held");
        Pin::new(body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().is_ok_and(|body| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().map(|body| body.size_hint()).unwrap_or_default()
    }
}

/// A JSON answer in the form of an AWS service.
pub(super) fn json_answer(status: http::StatusCode, kind: &'static str, body: String) -> Response<Body> {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, kind)
        .body(Body::from(body))
        .expect("a status and a fixed header make a response")
}
