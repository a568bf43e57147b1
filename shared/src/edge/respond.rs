//! Responses of handlers.

use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;

use super::idempotency::KeptInstead;
use crate::error::{Error, Result};

/// 200 with the version as `ETag`, for later use in `If-Match`.
pub struct Tagged<T> {
    pub version: u64,
    pub body: T,
}

/// 201 with the location and version of the new resource.
pub struct Created<T> {
    pub location: String,
    pub version: u64,
    pub body: T,
}

/// 200 with a weak `ETag` that the handler has chosen, because a part of the body changes although nothing has happened.
pub struct Weak<T> {
    pub tag: String,
    pub body: T,
}

/// 200 with what there is, or 204 if there is nothing.
pub fn json_or_none(found: Option<impl Serialize>) -> Response {
    found.map_or_else(|| StatusCode::NO_CONTENT.into_response(), |found| Json(found).into_response())
}

/// An answer whose `body` has a secret that no other answer has. Nobody may store it, and a replay for the same `Idempotency-Key` has
/// `kept` instead.
///
/// # Errors
/// If `kept` cannot be written as JSON, which is a bug.
pub fn secret_once(
    status: StatusCode,
    location: Option<String>,
    kept: &impl Serialize,
    body: &impl Serialize,
) -> Result<Response> {
    let kept = serde_json::to_string(kept).map_err(|error| Error::internal(error.to_string()))?;
    let mut response = (status, Extension(KeptInstead(kept)), Json(body)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(Ok(location)) = location.map(HeaderValue::try_from) {
        headers.insert(header::LOCATION, location);
    }
    Ok(response)
}

fn etag(headers: &mut HeaderMap, version: u64) {
    if let Ok(value) = HeaderValue::try_from(format!("\"{version}\"")) {
        headers.insert(header::ETAG, value);
    }
}

impl<T: Serialize> IntoResponse for Tagged<T> {
    fn into_response(self) -> Response {
        let mut response = Json(self.body).into_response();
        etag(response.headers_mut(), self.version);
        response
    }
}

impl<T: Serialize> IntoResponse for Weak<T> {
    fn into_response(self) -> Response {
        let mut response = Json(self.body).into_response();
        if let Ok(tag) = HeaderValue::try_from(self.tag) {
            response.headers_mut().insert(header::ETAG, tag);
            response
                .headers_mut()
                .insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        }
        response
    }
}

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        let mut response = (StatusCode::CREATED, Json(self.body)).into_response();
        etag(response.headers_mut(), self.version);
        if let Ok(value) = HeaderValue::try_from(self.location) {
            response.headers_mut().insert(header::LOCATION, value);
        }
        response
    }
}
