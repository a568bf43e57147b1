//! `Idempotency-Key`: a POST that is sent again acts only once and gets the same answer.
//!
//! The key is claimed with the request's fingerprint before the handler runs. While the request is in flight, a second
//! one gets 409. A different request with the same key gets 422. Afterwards the stored answer is replayed. If the
//! request started a run, the answer is the run's events or its result, from the beginning. Answers that say "try
//! again" are not kept, and the key becomes free again.
//!
//! Such a request may still have been done: the table accepted the write but every one of its answers was lost, or the
//! process was killed before it could answer. The key records this, because the request's changes and the mark "done"
//! are written in one transaction ([`Store::commit`](crate::store::Store::commit), which needs the request's [`Once`]). A
//! later request with the key is then told that the work is done and that its answer is lost. Requests that do not mark
//! their key (an import of a theme or of logs, the hook of a call, approvals of many actions, a read) are safe to repeat.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use domain::ids::RunId;
use domain::validate::FieldErrors;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::context::Cx;
use crate::edge::accept::Accept;
use crate::edge::extract::Caller;
use crate::edge::stream::{self, BeganRun};
use crate::error::{Error, Result};
use crate::flows::existing;
use crate::request::Invocation;
use crate::request::limits::{MAX_BODY_BYTES, MAX_KEY};
use crate::request::{is_for_openai_client, path_for_client};
use crate::store::{Claim, ClaimedRequest, IdempotencyRecord, Once, RequestState};

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The headers that a replay repeats.
const KEPT_HEADERS: [HeaderName; 3] = [header::CONTENT_TYPE, header::LOCATION, header::ETAG];

/// The largest answer that is kept, in bytes.
const MAX_KEPT: usize = 256 * 1024;

/// Marks a response whose body contains a secret. A replay shows this text instead of the body. The request still acts
/// only once, and the secret is neither stored nor sent again.
#[derive(Clone, Debug)]
pub struct KeptInstead(pub String);

/// A request with this extension was done before and began this run. Only requests of OpenAI clients have it, and each of their
/// handlers that begins a run must answer from this run instead.
#[derive(Clone, Copy, Debug)]
pub struct RepeatedRun(pub RunId);

/// The middleware.
pub async fn layer(State(cx): State<Cx>, request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<Caller>().cloned();
    let (Some(caller), &Method::POST) = (caller, request.method()) else { return next.run(request).await };
    match key(request.headers()) {
        Ok(None) => next.run(request).await,
        Ok(Some(key)) => {
            serve(&cx, &caller, &key, request, next).await.unwrap_or_else(IntoResponse::into_response)
        }
        Err(error) => Error::from(error).into_response(),
    }
}

/// The key of a request, if it has one. An invalid key is refused: if it were ignored, a repeated call would act twice.
fn key(headers: &HeaderMap) -> Result<Option<String>, FieldErrors> {
    let mut values = headers.get_all(KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let refused = |message: String| Err(FieldErrors::one("Idempotency-Key", message));
    if values.next().is_some() {
        return refused("must be given once".to_owned());
    }
    let Some(key) = value.to_str().ok().filter(|key| !key.contains('\t')) else {
        return refused(format!("must be 1 to {MAX_KEY} printable ASCII characters"));
    };
    if key.is_empty() || key.len() > MAX_KEY {
        return refused(format!("must be 1 to {MAX_KEY} printable ASCII characters, is {}", key.len()));
    }
    Ok(Some(key.to_owned()))
}

async fn serve(cx: &Cx, caller: &Caller, key: &str, request: Request, next: Next) -> Result<Response> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, MAX_BODY_BYTES).await.map_err(|_| Error::Malformed {
        status: StatusCode::PAYLOAD_TOO_LARGE,
        code: "payload_too_large",
        message: format!("the body may have at most {MAX_BODY_BYTES} bytes"),
    })?;
    let hashed = (parts.method.clone(), parts.uri.clone(), body.clone());
    let hash = move || {
        let (method, uri, body) = hashed;
        let path = uri.path_and_query().map_or("", |path| path.as_str());
        Ok(fingerprint(method.as_str(), path, &body))
    };
    let fingerprint = cx.compute.on_body(body.len(), hash).await?;
    let owner = &caller.owner;
    let until = Invocation::of(&parts).answers_until();

    let claimed = match cx.store.claim_idempotency(owner, key, &fingerprint, cx.clock.now()).await? {
        Claim::First(claimed) => claimed,
        Claim::Other(record) if record.fingerprint != fingerprint => return Err(Error::IdempotencyMismatch),
        Claim::Other(record) => {
            return replay(cx, caller, record, Request::from_parts(parts, Body::from(body)), next, until)
                .await;
        }
    };
    let mut request = Request::from_parts(parts, Body::from(body));
    request.extensions_mut().insert(Once::of(&claimed));
    let response = next.run(request).await;
    if let Some(BeganRun(run_id)) = response.extensions().get() {
        complete(cx, &claimed, RequestState::Run { run_id: *run_id }).await;
        return Ok(response);
    }
    // A plan that is used up today has room again next month, or under another plan.
    let may_change =
        [StatusCode::TOO_MANY_REQUESTS, StatusCode::PAYMENT_REQUIRED].contains(&response.status());
    if response.status().is_server_error() || may_change {
        cx.store.release_idempotency(&claimed).await?;
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let body =
        axum::body::to_bytes(body, usize::MAX).await.map_err(|error| Error::internal(error.to_string()))?;
    let kept = match parts.extensions.get::<KeptInstead>() {
        Some(KeptInstead(text)) => Some(text.as_str()),
        None => std::str::from_utf8(&body).ok(),
    };
    match kept.filter(|text| text.len() <= MAX_KEPT) {
        Some(text) => {
            let outcome = RequestState::Answered {
                status: parts.status.as_u16(),
                headers: kept_headers(&parts.headers),
                body: text.to_owned(),
            };
            complete(cx, &claimed, outcome).await;
        }
        None => tracing::warn!(bytes = body.len(), "an answer is too large to be kept for a replay"),
    }
    Ok(Response::from_parts(parts, Body::from(body)))
}

/// Keeps the answer. A failure here is only logged: the request was done and must not be done again.
async fn complete(cx: &Cx, claimed: &ClaimedRequest, outcome: RequestState) {
    if let Err(error) = cx.store.complete_idempotency(claimed, outcome, cx.clock.now()).await {
        tracing::warn!(cause = %Error::from(error).causes(), "an answer could not be kept for a replay");
    }
}

async fn replay(
    cx: &Cx,
    caller: &Caller,
    record: IdempotencyRecord,
    mut request: Request,
    next: Next,
    until: Timestamp,
) -> Result<Response> {
    let mut response = match record.outcome {
        RequestState::Done if record.expires_at <= cx.clock.now() => {
            return Err(Error::conflict(
                "idempotency_answer_lost",
                "the request with this Idempotency-Key was done, but its answer is lost: check the result before you send it with another key",
            ));
        }
        RequestState::InFlight | RequestState::Done => {
            return Err(Error::conflict(
                "idempotency_in_flight",
                "a request with this Idempotency-Key is in flight",
            ));
        }
        RequestState::Run { run_id } => {
            let run = existing::run(cx, &caller.owner, run_id).await?;
            if !run.value.state.is_final() {
                return Err(Error::conflict_with(
                    "idempotency_in_flight",
                    format!(
                        "the run of this Idempotency-Key is in progress; follow it at {}",
                        path_for_client(&format!("/runs/{run_id}/events"))
                    ),
                    &serde_json::json!({ "run_id": run_id }),
                ));
            }
            if is_for_openai_client() {
                // Its events have another form there.
                request.extensions_mut().insert(RepeatedRun(run_id));
                next.run(request).await
            } else {
                let accept = Accept::from_headers(request.headers())?;
                stream::respond(cx, &caller.owner, run_id, 0, accept, until).await?
            }
        }
        RequestState::Answered { status, headers, body } => {
            let mut response = Response::new(Body::from(body));
            *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            for (name, value) in headers {
                if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                    response.headers_mut().insert(name, value);
                }
            }
            response
        }
    };
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    Ok(response)
}

fn kept_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    KEPT_HEADERS
        .iter()
        .filter_map(|name| Some((name.to_string(), headers.get(name)?.to_str().ok()?.to_owned())))
        .collect()
}

fn fingerprint(method: &str, path: &str, body: &[u8]) -> String {
    let hash = Sha256::new()
        .chain_update(method)
        .chain_update([0])
        .chain_update(path)
        .chain_update([0])
        .chain_update(body)
        .finalize();
    domain::hex(&hash)
}
