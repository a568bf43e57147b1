//! CORS: whether a browser lets a page of another origin call the API.
//!
//! Only configured origins are allowed, and an answer names only the one that asked. The API uses no cookies, so
//! credentials in the sense of CORS are never allowed: a page sends its key in `Authorization`.

use std::time::Duration;

use http::{HeaderName, Method, header};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use crate::config::CorsConfig;

/// The headers that a page may send.
pub const REQUEST_HEADERS: [HeaderName; 11] = [
    header::ACCEPT,
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("last-event-id"),
    HeaderName::from_static("mcp-method"),
    HeaderName::from_static("mcp-name"),
    HeaderName::from_static("mcp-protocol-version"),
    HeaderName::from_static("traceparent"),
];

/// The response headers that a page may read, besides those that browsers always allow.
pub const RESPONSE_HEADERS: [HeaderName; 13] = [
    header::CONTENT_DISPOSITION,
    header::ETAG,
    header::LOCATION,
    header::RETRY_AFTER,
    header::WWW_AUTHENTICATE,
    HeaderName::from_static("idempotent-replayed"),
    HeaderName::from_static("ratelimit-limit"),
    HeaderName::from_static("ratelimit-policy"),
    HeaderName::from_static("ratelimit-remaining"),
    HeaderName::from_static("ratelimit-reset"),
    HeaderName::from_static("x-content-sha256"),
    HeaderName::from_static("x-lamplighter-ignored"),
    HeaderName::from_static("x-request-id"),
];

const METHODS: [Method; 6] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// How long a browser may cache the answer to a preflight. Browsers limit it to two hours or less.
const REMEMBERED: Duration = Duration::from_secs(7_200);

/// Answers preflights and adds the CORS headers to answers. `None` if no origin is configured.
pub(crate) fn layer(config: &CorsConfig) -> Option<CorsLayer> {
    for_origins(config).map(|layer| {
        layer.allow_methods(METHODS).allow_headers(REQUEST_HEADERS).expose_headers(RESPONSE_HEADERS)
    })
}

/// The same for presigned addresses of the local bucket. The template configures the bucket on AWS in the same way. `None`
/// if no origin is configured.
#[must_use]
pub fn for_bucket(config: &CorsConfig) -> Option<CorsLayer> {
    for_origins(config).map(|layer| {
        layer
            .allow_methods([Method::GET, Method::HEAD, Method::PUT])
            .allow_headers(AllowHeaders::mirror_request())
            .expose_headers([header::ETAG, HeaderName::from_static("x-amz-request-id")])
    })
}

fn for_origins(config: &CorsConfig) -> Option<CorsLayer> {
    let origins = config.origins.clone();
    (!origins.is_empty())
        .then(|| CorsLayer::new().allow_origin(AllowOrigin::list(origins)).max_age(REMEMBERED))
}
