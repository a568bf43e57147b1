//! Responses of handlers.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::IntoResponses;

use crate::problem::Problem;

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

/// The errors that every route can return.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "the variants stand in the OpenAPI document only")]
pub enum Problems {
    /// The input is invalid. `errors` names each field.
    #[response(status = 400, content_type = "application/problem+json")]
    Invalid(Problem),
    /// No valid credentials.
    #[response(status = 401, content_type = "application/problem+json")]
    Unauthenticated(Problem),
    /// The resource does not exist, or belongs to another owner.
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(Problem),
    /// The current state does not allow this. `current` is that state.
    #[response(status = 409, content_type = "application/problem+json")]
    Conflict(Problem),
    /// A required service did not answer. Try again after `Retry-After` seconds.
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(Problem),
}
