//! Responses of handlers.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;

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
