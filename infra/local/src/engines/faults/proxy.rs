//! Passes a request to an engine and returns its answer, unless a fault happens.

use axum::body::Body;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::Value;

use super::{Fault, Faults, forge};
use crate::engines::dynamo::operation;
use crate::handler::{Handler, Hangup};

/// Which engine is behind the faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engines) enum Engine {
    Table,
    Bucket,
}

#[derive(Clone)]
struct Proxy {
    engine: Engine,
    behind: Handler,
    faults: Faults,
}

/// Answers in place of the engine behind it.
pub(in crate::engines) fn proxy(engine: Engine, behind: Handler, faults: Faults) -> Handler {
    let proxy = Proxy { engine, behind, faults };
    Handler::new(move |request| {
        let proxy = proxy.clone();
        async move { proxy.answer(request).await }
    })
}

impl Proxy {
    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, Hangup> {
        let (mut head, body) = request.into_parts();
        let mut body = body.collect().await.map_err(|_| Hangup)?.to_bytes();
        let operation = operation(&head.headers);
        let json = || serde_json::from_slice::<Value>(&body).unwrap_or_default();

        if self.faults.stops(self.is_write(&head.method, &operation)) {
            let mut refusal = match self.engine {
                Engine::Table => forge::table_denied(),
                Engine::Bucket => forge::bucket_denied(),
            };
            if head.method == Method::HEAD {
                *refusal.body_mut() = Body::empty();
            }
            return Ok(refusal);
        }
        let index_read = forge::index_read(&operation, &json());
        let fault = self.faults.pick(&self.possible(&operation, json));
        if fault == Some(Fault::StaleIndex)
            && let Some(old) = index_read.as_deref().and_then(|read| self.faults.index_answer(read))
        {
            let content_type = "application/x-amz-json-1.0";
            return Ok(forge::answer(StatusCode::OK, content_type, old));
        }
        let refusal = match fault {
            Some(Fault::Throttled) => Some(forge::throttled(&mut self.faults.state().rng)),
            Some(Fault::Conflict) => Some(forge::conflict(&operation, &json(), &mut self.faults.state().rng)),
            Some(Fault::SlowDown) => Some(forge::slow_down()),
            Some(Fault::Dropped) => return Err(Hangup),
            Some(Fault::Slow) => {
                tokio::time::sleep(self.faults.delay()).await;
                None
            }
            Some(Fault::Unprocessed | Fault::AnswerLost | Fault::StaleIndex) | None => None,
        };
        if let Some(mut refusal) = refusal {
            if head.method == Method::HEAD {
                *refusal.body_mut() = Body::empty();
            }
            return Ok(refusal);
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
                // The engine has finished the request only when its answer is complete.
                answer.into_body().collect().await.map_err(|_| Hangup)?;
                Err(Hangup)
            }
            (_, Some((_, left_over))) if answer.status() == StatusCode::OK => {
                let body = answer.into_body().collect().await.map_err(|_| Hangup)?.to_bytes();
                let mut body: Value = serde_json::from_slice(&body).map_err(|_| Hangup)?;
                let field = if operation == "BatchGetItem" { "UnprocessedKeys" } else { "UnprocessedItems" };
                body[field] = left_over;
                let content_type = "application/x-amz-json-1.0";
                Ok(forge::answer(StatusCode::OK, content_type, body.to_string()))
            }
            _ => match index_read.filter(|_| answer.status() == StatusCode::OK) {
                Some(read) => {
                    let body = answer.into_body().collect().await.map_err(|_| Hangup)?.to_bytes();
                    let body = String::from_utf8(body.to_vec()).map_err(|_| Hangup)?;
                    self.faults.remember_index(read, body.clone());
                    let content_type = "application/x-amz-json-1.0";
                    Ok(forge::answer(StatusCode::OK, content_type, body))
                }
                None => Ok(answer),
            },
        }
    }

    fn is_write(&self, method: &Method, operation: &str) -> bool {
        match self.engine {
            Engine::Bucket => ![Method::GET, Method::HEAD].contains(method),
            Engine::Table => ["PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem"]
                .contains(&operation),
        }
    }

    /// The faults that can happen to this request, the more specific ones first.
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
                    "Query" if forge::index_read(operation, &request()).is_some() => {
                        possible.push(Fault::StaleIndex);
                    }
                    _ => {}
                }
            }
        }
        possible.extend([Fault::Dropped, Fault::AnswerLost, Fault::Slow]);
        possible
    }

    async fn forward(&self, head: http::request::Parts, body: Bytes) -> Result<Response<Body>, Hangup> {
        // All headers are passed on, including the host, because the signature covers them.
        let kind = match self.engine {
            Engine::Table => operation(&head.headers),
            Engine::Bucket => head.method.to_string(),
        };
        let measured =
            if self.engine == Engine::Table && self.faults.counts() { with_capacity(&body) } else { None };
        let keys = if measured.is_some() { keys(&body) } else { Vec::new() };
        let is_measured = measured.is_some();
        let mut request = Request::from_parts(head, Body::from(measured.unwrap_or(body)));
        request.headers_mut().remove(header::TRANSFER_ENCODING);
        if is_measured {
            request.headers_mut().remove(header::CONTENT_LENGTH);
        }
        let answer = self.behind.call(request).await?;
        if !is_measured {
            self.faults.counted(&kind, &[], 0, 0.0, 0.0);
            return Ok(answer);
        }
        let (head, body) = answer.into_parts();
        let body = body.collect().await.map_err(|_| Hangup)?.to_bytes();
        let found: Value = serde_json::from_slice(&body).unwrap_or_default();
        let units = capacity_units(&found["ConsumedCapacity"]);
        let (read, write) = if self.is_write(&Method::POST, &kind) { (0.0, units) } else { (units, 0.0) };
        self.faults.counted(&kind, &keys, found["Count"].as_u64().unwrap_or(0), read, write);
        Ok(Response::from_parts(head, Body::from(body)))
    }
}

/// The kinds of the items whose keys a request names.
fn keys(body: &[u8]) -> Vec<String> {
    let Ok(request) = serde_json::from_slice::<Value>(body) else { return Vec::new() };
    let mut found = Vec::new();
    gather(&request, &mut found);
    found
}

fn gather(value: &Value, found: &mut Vec<String>) {
    let text = |name: &str| value[name]["S"].as_str();
    match (text("pk").or_else(|| text(":pk")), text("sk").or_else(|| text(":prefix"))) {
        (None, None) => {
            let inner = value.as_object().into_iter().flat_map(|fields| fields.values());
            inner.chain(value.as_array().into_iter().flatten()).for_each(|value| gather(value, found));
        }
        (pk, sk) => {
            let is_kind = |word: &&str| word.len() > 1 && word.bytes().all(|b| b.is_ascii_uppercase());
            let words = [pk, sk].into_iter().flatten().flat_map(|key| key.split('#')).filter(is_kind);
            found.push(words.collect::<Vec<_>>().join(" "));
        }
    }
}

/// The request, so that its answer says which units it consumed.
fn with_capacity(body: &[u8]) -> Option<Bytes> {
    let mut request: Value = serde_json::from_slice(body).ok()?;
    request.as_object_mut()?.insert("ReturnConsumedCapacity".to_owned(), "TOTAL".into());
    Some(Bytes::from(request.to_string()))
}

/// The units of an answer: of one table, or of each table of a batch or transaction.
fn capacity_units(consumed: &Value) -> f64 {
    let of_table = |table: &Value| table["CapacityUnits"].as_f64().unwrap_or(0.0);
    consumed.as_array().map_or_else(|| of_table(consumed), |tables| tables.iter().map(of_table).sum())
}
