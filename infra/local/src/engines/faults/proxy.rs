//! The reverse proxy: hands a request on, and its answer back, unless a fault comes between.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use super::{Fault, Faults, forge};

type Answer = Response<Either<Full<Bytes>, Incoming>>;

/// Which engine is behind the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engines) enum Engine {
    Table,
    Bucket,
}

/// Ends the connection without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection is to end here")]
pub(in crate::engines) struct Hangup;

#[derive(Clone)]
struct Proxy {
    engine: Engine,
    upstream: SocketAddr,
    client: Client<HttpConnector, Full<Bytes>>,
    faults: Faults,
}

/// Answers for the engine that listens there.
pub(in crate::engines) fn proxy(
    engine: Engine,
    upstream: SocketAddr,
    faults: Faults,
) -> impl Service<Request<Incoming>, Response = Answer, Error = Hangup, Future: Send> + Clone {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let proxy = Proxy { engine, upstream, client, faults };
    service_fn(move |request| {
        let proxy = proxy.clone();
        async move { proxy.answer(request).await }
    })
}

impl Proxy {
    async fn answer(&self, request: Request<Incoming>) -> Result<Answer, Hangup> {
        let (mut head, body) = request.into_parts();
        let mut body = body.collect().await.map_err(|_| Hangup)?.to_bytes();
        let operation = operation(&head.headers);
        let json = || serde_json::from_slice::<Value>(&body).unwrap_or_default();

        let fault = self.faults.pick(&self.possible(&operation, json));
        let refusal = match fault {
            Some(Fault::Throttled) => Some(forge::throttled(&mut self.faults.state().rng)),
            Some(Fault::Conflict) => Some(forge::conflict(&operation, &json(), &mut self.faults.state().rng)),
            Some(Fault::SlowDown) => Some(forge::slow_down()),
            Some(Fault::Dropped) => return Err(Hangup),
            Some(Fault::Slow) => {
                tokio::time::sleep(self.faults.delay()).await;
                None
            }
            Some(Fault::Unprocessed | Fault::AnswerLost) | None => None,
        };
        if let Some(mut refusal) = refusal {
            if head.method == Method::HEAD {
                *refusal.body_mut() = Full::default();
            }
            return Ok(refusal.map(Either::Left));
        }

        let left_over = (fault == Some(Fault::Unprocessed)).then(|| {
            let mut request = json();
            let left_over = forge::leave_over(&mut request, &mut self.faults.state().rng);
            (request, left_over)
        });
        if let Some((request, _)) = &left_over {
            body = Bytes::from(request.to_string());
            head.headers.remove(header::CONTENT_LENGTH);
        }
        let answer = self.forward(head, body).await?;
        match (fault, left_over) {
            (Some(Fault::AnswerLost), _) => {
                // The engine is done with the request only when its answer is complete.
                answer.into_body().collect().await.map_err(|_| Hangup)?;
                Err(Hangup)
            }
            (_, Some((_, left_over))) if answer.status() == StatusCode::OK => {
                let body = answer.into_body().collect().await.map_err(|_| Hangup)?.to_bytes();
                let mut body: Value = serde_json::from_slice(&body).map_err(|_| Hangup)?;
                let field = if operation == "BatchGetItem" { "UnprocessedKeys" } else { "UnprocessedItems" };
                body[field] = left_over;
                let content_type = "application/x-amz-json-1.0";
                Ok(forge::answer(StatusCode::OK, content_type, body.to_string()).map(Either::Left))
            }
            _ => Ok(answer.map(Either::Right)),
        }
    }

    /// The faults that can happen to this request, the ones that say more first.
    fn possible(&self, operation: &str, request: impl Fn() -> Value) -> Vec<Fault> {
        let mut possible = Vec::new();
        match self.engine {
            Engine::Bucket => possible.push(Fault::SlowDown),
            Engine::Table => {
                possible.push(Fault::Throttled);
                match operation {
                    "PutItem" | "UpdateItem" | "DeleteItem" | "TransactWriteItems" | "TransactGetItems" => {
                        possible.push(Fault::Conflict);
                    }
                    "BatchWriteItem" | "BatchGetItem" if forge::batch_size(&request()) >= 2 => {
                        possible.push(Fault::Unprocessed);
                    }
                    _ => {}
                }
            }
        }
        possible.extend([Fault::Dropped, Fault::AnswerLost, Fault::Slow]);
        possible
    }

    async fn forward(&self, head: http::request::Parts, body: Bytes) -> Result<Response<Incoming>, Hangup> {
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let uri = format!("http://{}{path}", self.upstream).parse::<Uri>().map_err(|_| Hangup)?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = head.method;
        *request.uri_mut() = uri;
        // The headers go on as they came, the host among them: the signature covers it.
        *request.headers_mut() = head.headers;
        request.headers_mut().remove(header::TRANSFER_ENCODING);
        self.client.request(request).await.map_err(|error| {
            tracing::warn!(%error, "failed to reach the engine behind the faults");
            Hangup
        })
    }
}

/// The table's operation: `PutItem` of `DynamoDB_20120810.PutItem`.
fn operation(headers: &HeaderMap) -> String {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default();
    target.rsplit('.').next().unwrap_or_default().to_owned()
}
