//! API Gateway's limit on the headers of a request, so that everything that works here also works there.

use axum::response::IntoResponse;
use futures::FutureExt;
use http::{HeaderMap, StatusCode};

use crate::handler::Handler;

/// The most bytes of all header names and values together.
const MAX_BYTES: usize = 10_240;

/// Answers 431 to requests with more.
pub(crate) fn bounded(handler: Handler) -> Handler {
    Handler::new(move |request| {
        let bytes = bytes_of(request.headers());
        if bytes <= MAX_BYTES {
            return handler.call(request);
        }
        let refusal = shared::Error::Malformed {
            status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            code: "headers_too_large",
            message: format!("the headers may have at most {MAX_BYTES} bytes together; these have {bytes}"),
        };
        async move { Ok(refusal.into_response()) }.boxed()
    })
}

fn bytes_of(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}
