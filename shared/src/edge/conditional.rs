//! Answers that a client has already. A `GET` whose JSON has no version gets a weak `ETag`, the hash of its body. If the client sends it
//! in `If-None-Match`, and the answer is still the same, the answer is 304 without a body.
//!
//! The answer is made in any case, so this saves the transfer and not the work. A strong `ETag` is a version for `If-Match`. Parts of such an
//! answer may change while the version stays (the counts of an agent, for example), so it is never answered with 304.

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use sha2::{Digest, Sha256};

use crate::error::Error;

/// Answers with more bytes get no `ETag`.
const MAX_HASHED: usize = 4 << 20;

/// The weak `ETag` of a content.
#[must_use]
pub fn tag_of(content: &[u8]) -> String {
    let hash = Sha256::digest(content);
    format!("W/\"{}\"", domain::hex(&hash[..16]))
}

/// Adds the `ETag`, and answers with 304 if the client has this content.
pub(crate) async fn layer(request: Request, next: Next) -> Response {
    if request.method() != Method::GET {
        return next.run(request).await;
    }
    let held: Vec<HeaderValue> = request.headers().get_all(IF_NONE_MATCH).iter().cloned().collect();
    let response = match tagged(next.run(request).await).await {
        Ok(response) => response,
        Err(error) => return error.into_response(),
    };
    match weak_tag(response.headers()) {
        Some(tag) if response.status() == StatusCode::OK && held.iter().any(|held| names(held, tag)) => {
            unchanged(response)
        }
        _ => response,
    }
}

/// The answer with an `ETag`, if it is JSON that is complete and has none.
async fn tagged(response: Response) -> Result<Response, Error> {
    let is_json = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    let fits = response.body().size_hint().exact().is_some_and(|bytes| bytes <= MAX_HASHED as u64);
    if response.status() != StatusCode::OK || !is_json || !fits || response.headers().contains_key(ETAG) {
        return Ok(response);
    }
    let (mut parts, body) = response.into_parts();
    let body = to_bytes(body, MAX_HASHED).await.map_err(|error| Error::internal(error.to_string()))?;
    if let Ok(tag) = HeaderValue::try_from(tag_of(&body)) {
        parts.headers.insert(ETAG, tag);
        // A browser keeps it for this person only, and asks each time whether it is still the same.
        parts.headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("private, no-cache"));
    }
    Ok(Response::from_parts(parts, Body::from(body)))
}

fn weak_tag(headers: &HeaderMap) -> Option<&str> {
    headers.get(ETAG)?.to_str().ok().filter(|tag| tag.starts_with("W/"))
}

/// Whether a value of `If-None-Match` names this weak tag. The comparison is the weak one (RFC 9110, section 8.8.3.2).
fn names(held: &HeaderValue, tag: &str) -> bool {
    let Ok(held) = held.to_str() else { return false };
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    // None of our tags has a comma.
    held.trim() == "*" || held.split(',').any(|held| opaque(held) == opaque(tag))
}

/// 304 with the headers that the answer would have, without those that describe a body.
fn unchanged(response: Response) -> Response {
    let (mut parts, _) = response.into_parts();
    parts.status = StatusCode::NOT_MODIFIED;
    parts.headers.remove(CONTENT_TYPE);
    parts.headers.remove(http::header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_tags_is_compared_weakly() {
        let tag = tag_of(b"{}");
        let strong = tag.trim_start_matches("W/").to_owned();
        for held in [&*tag, &strong, "*", &format!("\"3\", {tag}"), &format!("{strong} ,W/\"x\"")] {
            assert!(names(&HeaderValue::try_from(held).unwrap(), &tag), "{held}");
        }
        for held in ["", "\"\"", "W/", "3", &strong[1..], &tag_of(b"[]"), &tag.to_uppercase()] {
            assert!(!names(&HeaderValue::try_from(held).unwrap(), &tag), "{held}");
        }
        assert!(!names(&HeaderValue::from_bytes(b"\"\xff\"").unwrap(), &tag));
    }
}
